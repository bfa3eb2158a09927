//! Small bodies and their IR.

use super::{body, ir};

fn is(statements: &str, expected: &str) {
    let found = body(statements);
    let expected = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(found.trim(), expected, "\n{statements}");
}

#[test]
fn constants_of_rusts_library() {
    for (path, value) in [
        ("std::f32::consts::PI", "3.1415927"),
        ("core::f32::consts::FRAC_PI_4", "0.7853982"),
        ("f32::consts::TAU", "6.2831855"),
        ("PI", "3.1415927"),
    ] {
        let text = super::body(&format!("y[0] = {path};"));
        assert!(text.contains(value), "{path}: {text}");
    }
    let text = super::body("y[0] = (std::f64::consts::PI * 2.0) as f32;");
    assert!(text.contains("3.141592653589793"), "{text}");
}

#[test]
fn literals_take_the_type_that_is_wanted() {
    is(
        "let i = 3; let s = 0.5; let t = 7; y[i] = s; u[t as usize] = 0xff; let m = -5; let z = m + k; let q = 1 + n;",
        "
        let i.0: usize = 3;
        let s.1: f32 = 0.5;
        let t.2: i32 = 7i32;
        y[?i.0] = s.1;
        u[?(t.2 as usize)] = 255u32;
        let m.3: i32 = -5i32;
        let z.4: i32 = (m.3 + k);
        let q.5: u32 = (1u32 + n);
        ",
    );
}

#[test]
fn a_literal_that_is_converted_has_the_target_s_type_if_that_is_of_its_kind() {
    is(
        "let a = 4000000000 as u32; let b = 3 as f32; let c = 2.5 as u32; let d = c as i32 as f32;",
        "
        let a.0: u32 = 4000000000u32;
        let b.1: f32 = 3.0;
        let c.2: u32 = 2u32;
        let d.3: f32 = ((c.2 as i32) as f32);
        ",
    );
}

#[test]
fn a_conversion_says_nothing_of_operands_and_branches() {
    is(
        "let i = global_index(); for j in 0..3 { let t = (100 * j + 10 * i) as u32; }
         let m = 7; let p = (2 * m) as u32; let q = m + k;
         let s = 0.5; let d = (2.0 * s) as f64; let r = s * a;",
        "
        let i.0: usize = global_index();
        for j.1 in 0..3 step 1 {
        let t.2: u32 = (((100 * j.1) + (10 * i.0)) as u32);
        }
        let m.3: i32 = 7i32;
        let p.4: u32 = ((2i32 * m.3) as u32);
        let q.5: i32 = (m.3 + k);
        let s.6: f32 = 0.5;
        let d.7: f64 = ((2.0 * s.6) as f64);
        let r.8: f32 = (s.6 * a);
        ",
    );
}

#[test]
fn what_is_computed_of_literals_and_then_converted_is_i32() {
    is(
        "let p = (1 << 20) as u64; let q = (1 - 2) as u32; let r = -(3 - 5) as u64; let s = select(c, -1, 1) as u32;
         let t = max(-7, 2) as usize; u[0] = (if c { -1 } else { 1 }) as u32; u[1] = (match k { 0 => -1, _ => 1 }) as u32;",
        "
        let p.0: u64 = ((1i32 << 20u32) as u64);
        let q.1: u32 = ((1i32 - 2i32) as u32);
        let r.2: u64 = (-(3i32 - 5i32) as u64);
        let s.3: u32 = (select(c, -1i32, 1i32) as u32);
        let t.4: usize = (max(-7i32, 2i32) as usize);
        let mut value.5: i32;
        if c {
        value.5 = -1i32;
        } else {
        value.5 = 1i32;
        }
        u[?0] = (value.5 as u32);
        let mut value.6: i32;
        match k {
        0 => {
        value.6 = -1i32;
        }
        _ => {
        value.6 = 1i32;
        }
        }
        u[?1] = (value.6 as u32);
        ",
    );
}

#[test]
fn a_conversion_reaches_a_literal_through_signs_and_blocks() {
    is(
        "let p = !0 as u64; let q = ((4000000000)) as u32; let r = -(3000000000) as i64; let s = { let z = k; 4000000000 } as u32;
         let d = 0.1 as f64; let e = -0.1 as f64; let f = (0.1 * 3.0) as f64; let g = 0.1; let h = (g * 3.0) as f64;",
        "
        let p.0: u64 = !0u64;
        let q.1: u32 = 4000000000u32;
        let r.2: i64 = -3000000000i64;
        let z.3: i32 = k;
        let s.4: u32 = 4000000000u32;
        let d.5: f64 = 0.1f64;
        let e.6: f64 = -0.1f64;
        let f.7: f64 = (0.1f64 * 3.0f64);
        let g.8: f64 = 0.1f64;
        let h.9: f64 = (g.8 * 3.0f64);
        ",
    );
}

#[test]
fn what_is_never_assigned_is_a_value() {
    is(
        "let mut p = a; let mut q = a; q += 1.0; let r; if c { r = 1.0; } else { r = p; } y[0] = q + r;",
        "
        let p.0: f32 = a;
        let mut q.1: f32 = a;
        q.1 = (q.1 + 1.0);
        let mut r.2: f32;
        if c {
        r.2 = 1.0;
        } else {
        r.2 = p.0;
        }
        y[?0] = (q.1 + r.2);
        ",
    );
}

#[test]
fn several_values_are_computed_before_the_first_has_a_name() {
    is(
        "let (p, mut q) = (a, 1.0); let (p, _) = (q, p); q += p; y[0] = q;",
        "
        let p.0: f32 = a;
        let mut q.1: f32 = 1.0;
        let p.2: f32 = q.1;
        q.1 = (q.1 + p.2);
        y[?0] = q.1;
        ",
    );
}

#[test]
fn arrays_are_places_only_if_they_are_written() {
    is(
        "let w = [1.0, 2.0]; let mut v = [0.0; 4]; let i = global_index(); v[i] = w[i] + w[1]; y[i] = v[i];",
        "
        let w.0: [f32; 2] = [f32; 2](1.0, 2.0);
        let mut v.1: [f32; 4] = [f32; 4]::splat(0.0);
        let i.2: usize = global_index();
        v.1[?i.2] = (w.0[i.2] + w.0.1);
        y[?i.2] = v.1[?i.2];
        ",
    );
}

#[test]
fn vectors_work_lane_by_lane_and_with_scalars() {
    is(
        "let mut v = Vec4::new(1.0, 2.0, 3.0, a); v = 2.0 * v + v.exp(); v.x = v.y; v /= 2.0; let d = v.dot(v); y.set_vec4(0, -v); y[0] = d + x.vec2(1).y;",
        "
        let mut v.0: Vec4<f32> = Vec4<f32>(1.0, 2.0, 3.0, a);
        v.0 = ((Vec4<f32>::splat(2.0) * v.0) + exp(v.0));
        v.0.0 = v.0.1;
        v.0 = (v.0 / Vec4<f32>::splat(2.0));
        let d.1: f32 = dot(v.0, v.0);
        y.vec4(?0) = -v.0;
        y[?0] = (d.1 + x.vec2(?1).1);
        ",
    );
}

#[test]
fn integers() {
    is(
        "let i = n << 3; let j = n >> i; let m = !n & 7 | 1 ^ n; let w = n.wrapping_add(1); let o = n.count_ones(); let z = k >> n; u[0] = i + j + m + w + o + (z as u32);",
        "
        let i.0: u32 = (n << 3u32);
        let j.1: u32 = (n >> i.0);
        let m.2: u32 = ((!n & 7u32) | (1u32 ^ n));
        let w.3: u32 = (n + 1u32);
        let o.4: u32 = count_ones(n);
        let z.5: i32 = (k >> n);
        u[?0] = (((((i.0 + j.1) + m.2) + w.3) + o.4) + (z.5 as u32));
        ",
    );
}

#[test]
fn rounded_up_division_has_no_overflow() {
    is(
        "let b = (n + 1).div_ceil(4);",
        "
        let dividend.0: u32 = (n + 1u32);
        let b.1: u32 = ((dividend.0 / 4u32) + (((dividend.0 % 4u32) != 0u32) as u32));
        ",
    );
}

#[test]
fn bits_and_choices() {
    is(
        "let b = a.to_bits(); let f = f32::from_bits(b); let g = bitcast::<i32>(b); let h = select(c, f, f32::MAX); y[0] = h + PI + g as f32;",
        "
        let b.0: u32 = bitcast::<u32>(a);
        let f.1: f32 = bitcast::<f32>(b.0);
        let g.2: i32 = bitcast::<i32>(b.0);
        let h.3: f32 = select(c, f.1, 3.4028235e38);
        y[?0] = ((h.3 + 3.1415927) + (g.2 as f32));
        ",
    );
}

#[test]
fn loops_over_ranges() {
    is(
        "for i in 0..x.len() { y[i] = x[i]; }
         for j in (0..n).step_by(2) { u[j as usize] = j; }
         for _ in 0..=3 { y[0] += 1.0; }
         for i in unroll(0..4) { y[i] = 0.0; }",
        "
        for i.0 in 0..x.len() step 1 {
        y[?i.0] = x[?i.0];
        }
        for j.1 in 0u32..n step 2u32 {
        u[?(j.1 as usize)] = j.1;
        }
        for index.2 in 0i32..4i32 step 1i32 {
        y[?0] = (y[?0] + 1.0);
        }
        for i.3 in unroll(0..4) step 1 {
        y[?i.3] = 0.0;
        }
        ",
    );
}

#[test]
fn a_reversed_loop_counts_up_and_looks_from_the_end() {
    is(
        "for i in (k..9).rev() { u[i as usize] = 1; }",
        "
        for i_up.0 in k..9i32 step 1i32 {
        let i.1: i32 = ((9i32 - 1i32) - (i_up.0 - k));
        u[?(i.1 as usize)] = 1u32;
        }
        ",
    );
}

#[test]
fn a_closed_range_may_end_at_the_largest_number() {
    is(
        "for i in 1..=n { u[0] += i; }",
        "
        let first.0: u32 = 1u32;
        let last.1: u32 = n;
        let mut i_next.2: u32 = first.0;
        let mut i_more.3: bool = (first.0 <= last.1);
        while i_more.3 {
        let i.4: u32 = i_next.2;
        i_more.3 = (i.4 != last.1);
        i_next.2 = (i.4 + 1u32);
        u[?0] = (u[?0] + i.4);
        }
        ",
    );
}

#[test]
fn a_counter_that_the_body_changes_is_a_copy() {
    is(
        "for mut i in 0..n { i += 1; u[0] = i; }",
        "
        for i.0 in 0u32..n step 1u32 {
        let mut i.1: u32 = i.0;
        i.1 = (i.1 + 1u32);
        u[?0] = i.1;
        }
        ",
    );
}

#[test]
fn a_counter_that_the_body_changes_hides_a_variable_of_its_name_in_the_loop_alone() {
    is(
        "let i = n * 2; for mut i in 0..3u32 { i += 1; u[1] = i; } u[0] = i;",
        "
        let i.0: u32 = (n * 2u32);
        for i.1 in 0u32..3u32 step 1u32 {
        let mut i.2: u32 = i.1;
        i.2 = (i.2 + 1u32);
        u[?1] = i.2;
        }
        u[?0] = i.0;
        ",
    );
}

#[test]
fn a_step_that_a_counter_with_a_sign_cannot_hold_counts_as_the_largest() {
    is(
        "for i in (k..9).step_by(n as usize) { u[0] = i as u32; }
         for j in (0..n).step_by(n as usize) { u[0] = j; }",
        "
        for i.0 in k..9i32 step (min((n as usize), 2147483647) as i32) {
        u[?0] = (i.0 as u32);
        }
        for j.1 in 0u32..n step ((n as usize) as u32) {
        u[?0] = j.1;
        }
        ",
    );
}

#[test]
fn a_step_of_64_bits_is_not_cut() {
    let wide = |body: &str| {
        format!(
            "#[kernel(workgroup(64), index = 64, targets(spirv, cuda, cpu))] pub fn g(u: &mut [u32], n: u32) {{ {body} }}"
        )
    };
    let text = ir(&wide("for i in (0..n).step_by(u.len()) { u[0] = i; }"));
    assert!(text.contains("step (min(u.len(), 4294967295) as u32)"), "{text}");
    let said = super::mistakes(&wide("for i in (0..n).step_by(5_000_000_000) { u[0] = i; }"));
    assert!(said.contains("a range of `u32` has steps up to 4294967295: count in `usize`"), "{said}");
}

#[test]
fn vectors_are_shifted_by_a_word() {
    let output = super::outputs(&super::kernel(
        "let v = Vec2::splat(n) << 2; let s = 3; let w = v >> s; let p = v << w; u[0] = w.x << p.y;",
    ));
    let text = output[0].checked.to_string().replace(' ', "");
    for part in ["Vec2::splat(n)<<2u32", "lets:u32=3u32", "=v<<w;"] {
        assert!(text.contains(part), "expected `{part}` in\n{text}");
    }
}

#[test]
fn an_integer_type_has_as_many_bits_as_in_rust() {
    is(
        "u[0] = n >> (u32::BITS - 1); u[1] = i64::BITS;",
        "
        u[?0] = (n >> (32u32 - 1u32));
        u[?1] = 64u32;
        ",
    );
}

#[test]
fn matches_become_switches() {
    is(
        "let w = match n { 0 => 1, 1 | 2 => 5, 3..=4 => n, other => other * 2 };
         match k { -1 => y[0] = 1.0, _ => {} }",
        "
        let mut w.0: u32;
        let selector.1: u32 = n;
        match selector.1 {
        0 => {
        w.0 = 1u32;
        }
        1 | 2 => {
        w.0 = 5u32;
        }
        3 | 4 => {
        w.0 = n;
        }
        _ => {
        let other.2: u32 = selector.1;
        w.0 = (other.2 * 2u32);
        }
        }
        match k {
        4294967295 => {
        y[?0] = 1.0;
        }
        _ => {
        }
        }
        ",
    );
}

#[test]
fn a_match_over_wide_ranges_compares() {
    is(
        "let w = match n { 0..=999 => 1, 1000.. => 2 };",
        "
        let mut w.0: i32;
        let selector.1: u32 = n;
        if (selector.1 <= 999u32) {
        w.0 = 1i32;
        } else {
        w.0 = 2i32;
        }
        ",
    );
}

#[test]
fn an_arm_that_nothing_reaches_is_left_out() {
    is(
        "match c { true => y[0] = 1.0, false => y[0] = 2.0 } match n { 1 => y[1] = 1.0, 1 => y[1] = 2.0, _ => y[1] = 3.0 }",
        "
        let selector.0: bool = c;
        if selector.0 {
        y[?0] = 1.0;
        } else {
        y[?0] = 2.0;
        }
        match n {
        1 => {
        y[?1] = 1.0;
        }
        _ => {
        y[?1] = 3.0;
        }
        }
        ",
    );
}

#[test]
fn early_ends() {
    is(
        "if c { return; } let v = if n > 2 { 1.0 } else { return; }; loop { if a < v { break; } continue; }",
        "
        if c {
        return;
        }
        let mut v.0: f32;
        if (n > 2u32) {
        v.0 = 1.0;
        } else {
        return;
        }
        loop {
        if (a < v.0) {
        break;
        }
        continue;
        }
        ",
    );
}

#[test]
fn features_are_asked_for_while_compiling() {
    is(
        "if const { target::has(Feature::Subgroups) && !target::has(Feature::F16Storage) } { y[0] = subgroup_add(a); } else { y[0] = a; }",
        "
        if const (target::has(Subgroups) && !target::has(F16Storage)) {
        let value.0 = subgroup_add(a);
        y[?0] = value.0;
        } else {
        y[?0] = a;
        }
        ",
    );
}

#[test]
fn generics_stay_until_they_are_given() {
    let text = ir("
        #[kernel(workgroup(N), instances(T = [f32, u32], N = [32, 64], SIGN = [true, false]))]
        pub fn g<T: Number, const N: usize, const SIGN: bool>(x: &[T], y: &mut [T]) {
            let mut tile = workgroup_array::<T>(2 * N);
            let i = local_index();
            tile[i + N] = x[i] * T::lit(2.0) + T::lit(-1.5);
            if SIGN { y[i] = max(tile[i], x[tile.len() - 1]); }
            if const { N > 32 } { y[0] = x[0]; }
        }");
    for line in [
        "workgroup tile: [T; (2 * N)]",
        "kernel(N, 1, 1) fn g<T: Number, const N: usize, const SIGN: bool>(",
        "tile[?(i.0 + N)] = ((x[?i.0] * lit(2.0)) + lit(-1.5));",
        "if SIGN {",
        "y[?i.0] = max(tile[?i.0], x[?((2 * N) - 1)]);",
        "if const (N > 32) {",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn every_combination_of_values_is_an_instance() {
    let outputs = super::outputs(
        "#[kernel(workgroup(64), instances(N = [1, 2], T = [f32, f16]))] pub fn g<T: Float, const N: i32>(x: &[T], y: &mut [T]) { y[0] = x[N as usize]; }",
    );
    let shown: Vec<String> = outputs[0].instances.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["f32, 1i32", "f32, 2i32", "f16, 1i32", "f16, 2i32"]);
}

#[test]
fn atomics_give_the_old_value() {
    let text = ir("
        #[kernel(workgroup(64))]
        pub fn g(bins: &[Atomic<i32>], y: &mut [i32]) {
            let old = bins[1].add(2);
            bins[0].store(old);
            y[0] = bins[2].compare_exchange(3, 4) + bins[3].load();
            bins[4].min(1);
        }");
    for line in [
        "let old.0 = atomic Add bins[?1](2i32);",
        "atomic Store bins[?0](old.0);",
        "= atomic CompareExchange bins[?2]",
        "= atomic Load bins[?3]",
        "atomic Min bins[?4](1i32);",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}
