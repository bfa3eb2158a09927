//! Mistakes: what is said, on which token, and that one mistake gives one message.

use super::{mistakes, refused};

#[test]
fn types_must_agree() {
    refused("let t = a * n;", "3:13", &["expected `f32`, found `u32`", "as f32"]);
    refused("y[0] = 1;", "3:8", &["expected `f32`, found `{integer}`", "2.0"]);
    refused("let t: u32 = k;", "3:14", &["expected `u32`, found `i32`", "as u32"]);
    refused("y[n] = a;", "3:3", &["an index is a `usize`, this is `u32`", "as usize"]);
    refused("if n { }", "3:4", &["expected `bool`, found `u32`"]);
    refused("while k { }", "3:7", &["expected `bool`"]);
    refused("let t = if c { 1.0 } else { n };", "3:27", &["both branches must give one type"]);
    refused("let t = if c { 1.0 };", "3:14", &["`else`"]);
    refused("let t = match n { 0 => 1.0, _ => c };", "3:34", &["expected `{float}`, found `bool`"]);
    refused("let t = [1.0, n];", "3:15", &["expected `{float}`, found `u32`"]);
    refused("let t = -n;", "3:9", &["`u32` has no sign"]);
    refused("let t = c + c;", "3:11", &["`bool` has no `+`"]);
    refused("let t = a << 2;", "3:11", &["`f32` has no `<<`"]);
    refused("let t = exp(n);", "3:13", &["`exp` works on f32", "as f32"]);
    refused("let t = n.sqrt();", "3:9", &["`sqrt` works on f32", "as f32"]);
    refused("let t = a as bool;", "3:9", &["compare instead"]);
    refused("let t = c as f32;", "3:9", &["as u32 as f32"]);
    refused("let t = 5000000000;", "3:9", &["too large"]);
    refused("let t = 3000000000;", "3:9", &["too large for i32", "u32"]);
    refused("let t = Vec2::splat(a) == Vec2::splat(a);", "3:24", &["vectors are compared lane by lane"]);
    refused("let t = Vec2::splat(a).z;", "3:24", &["a Vec2 has no lane `z`"]);
    refused("let t = Vec3::new(a, a);", "3:9", &["`Vec3::new` takes 3 arguments, 2 given"]);
    refused("let t; ", "3:5", &["the type of this is not known"]);
    refused("let t = {};", "3:5", &["would hold `()`"]);
    refused("1.0", "3:1", &["expected `()`"]);
}

#[test]
fn memory_is_used_as_it_is_declared() {
    refused("x[0] = a;", "3:1", &["this slice is read only", "&mut [T]"]);
    refused("x[0] += a;", "3:1", &["this slice is read only"]);
    refused("x.set_vec4(0, Vec4::splat(a));", "3:1", &["read only"]);
    refused("a = 1.0;", "3:1", &["declare it `mut`"]);
    refused("let t = x;", "3:9", &["a slice is no value"]);
    refused("y = x;", "3:1", &["a slice cannot be assigned as a whole"]);
    refused("let t = y.iter();", "3:11", &["`.iter()` is not part"]);
    refused("for v in y { }", "3:10", &["0..x.len()"]);
    refused("let t = x[0..2];", "3:11", &["parts of slices"]);
    refused("let t = &a;", "3:9", &["cannot hold a reference"]);
    refused("let t = workgroup_array::<f32>(n);", "3:32", &["no constant `n` is known"]);
    refused("let t = workgroup_array::<bool>(4);", "3:27", &["workgroup memory cannot hold `bool`"]);
    refused("let t = 1.0 + workgroup_array::<f32>(4);", "3:15", &["a `let` of its own"]);
    refused("let t = workgroup_uniform_load(&x[0]);", "3:32", &["an element of a workgroup array"]);
}

#[test]
fn control_flow() {
    refused("break;", "3:1", &["outside of a loop"]);
    refused("'o: loop { break; }", "3:1", &["labels are not part"]);
    refused("for i in unroll(0..4) { if c { break; } }", "3:32", &["unrolled loop"]);
    refused("match n { 0 => {}, 1..=9 => {} }", "3:7", &["no arm for `10..=4294967295`"]);
    refused("match c { true => {} }", "3:7", &["no arm for `false`"]);
    refused("match n { 0 if c => {}, _ => {} }", "3:16", &["guards are not part"]);
    refused("match a { _ => {} }", "3:7", &["integers of 32 bits, bools and enums"]);
    refused("match n { -1 => {}, _ => {} }", "3:11", &["`u32` has no negative values"]);
    refused("let t = loop { break 1.0; };", "3:22", &["`break` with a value"]);
    refused("return a;", "3:8", &["expected `()`, found `f32`"]);
    refused("if let 0 = n { }", "3:4", &["`if let`"]);
    refused("for i in 0..a { }", "3:10", &["expected `f32`"]);
    refused("for i in 0.. { }", "3:10", &["a start and an end"]);
    refused("for i in (0..4).step_by(0) { }", "3:25", &["never ends"]);
    refused("if const { n > 2 } { }", "3:4", &["the condition of an `if const`"]);
    refused("if target::has(Feature::Subgroups) { }", "3:4", &["if const"]);
    refused("if const { target::has(Feature::Tensors) } { }", "3:24", &["Feature::Subgroups"]);
}

#[test]
fn what_the_language_lacks() {
    refused("let t = |v: f32| v;", "3:9", &["a closure stands as an argument"]);
    refused("panic!(\"{n}\");", "3:1", &["`panic!` is not part", "reports that it got here"]);
    refused("let t = format!(\"{n}\");", "3:9", &["macros are not part"]);
    refused("let (p, q) = 1.0;", "3:5", &["let (a, b) = (x, y)"]);
    refused("let ((p, q), r) = (1.0, 2.0);", "3:6", &["each part is a variable"]);
    refused("let t: i128 = 1;", "3:8", &["`i128` is not part of the kernel language (yet)"]);
    refused("let t = 300u8;", "3:9", &["too large for u8"]);
    refused("let t = f16::from_f32(a) * 0.5;", "3:28", &["write `f16::from_f32(0.5)`"]);
    refused("let t = exp(bf16::from_f32(a));", "3:13", &["`exp` works on f32", "`.to_f32()`"]);
    refused("let t = a as f16;", "3:9", &["`f16::from_f32(..)`"]);
    refused("let t = cbrt(2.0f64);", "3:14", &["`cbrt` works on f32", "compute it from what `f64` has"]);
    refused("for i in 0..3u64 {}", "3:10", &["a range counts integers of 32 bits"]);
    refused("let t = 5_000_000_000;", "3:9", &["too large for i32"]);
    refused("let t: f32 = 1e39;", "3:14", &["too large for f32"]);
    refused("let t = -(2u64);", "3:9", &["`u64` has no sign: convert with `as i64` first"]);
    refused("let t = y[n as u64];", "3:11", &["an index is a `usize`, this is `u64`"]);
    refused("let t = count_ones(1u64);", "3:20", &["integers of 32 bits"]);
    refused("let t = 1u128;", "3:9", &["`u128` is not part"]);
    refused("fn inner() {}", "3:1", &["a function inside of a body", "#[device]"]);
    refused("let t = unsafe { 1.0 };", "3:9", &["`unsafe` is not part"]);
    refused("#[cfg(test)] let t = 1.0;", "3:1", &["`cfg` is not evaluated inside of a kernel", "#[device] const"]);
    refused("#[test] let t = 1.0;", "3:1", &["attribute"]);
    refused("let t = \"text\";", "3:9", &["text"]);
    refused("let t = a.powi(2);", "3:11", &["powf"]);
    refused("let t = rotate_left(x.len(), 1);", "3:21", &["`rotate_left` works on u32 and i32", "as u32"]);
    refused("let t = length(a);", "3:16", &["`length` works on vectors of f32"]);
    refused("let t = pack4x8snorm(a);", "3:22", &["Vec4<f32>"]);
    refused("let t = cross(Vec2::splat(a), Vec2::splat(a));", "3:15", &["`cross` works on Vec3<f32>"]);
    refused(
        "let w = workgroup_array::<Atomic<f32>>(4); w[0].max(a);",
        "3:49",
        &["`.max()` belongs to atomics of integers"],
    );
    refused("let t = subgroup_xor(a);", "3:22", &["`subgroup_xor` works on i32, u32"]);
    refused("let t = subgroup_ballot(a);", "3:25", &["bool"]);
    refused("let t = 5u32.dot4_u8(6, 7);", "3:14", &["`dot4_u8` is a function: `dot4_u8(..)`"]);
    refused("let t = log(a);", "3:9", &["no function `log`", "`ln`"]);
    refused("let t = nothing(a);", "3:9", &["no function `nothing` is known", "#[device]"]);
    refused("let t = NOTHING;", "3:9", &["no variable or constant `NOTHING`", "#[device]"]);
    refused("let t: Nothing = a;", "3:8", &["no type of the name `Nothing`"]);
}

#[test]
fn items_within_a_body_are_told_of_once() {
    refused("const K: usize = 3; let t = [0.0; K]; y[K] = t[0];", "3:1", &["a constant inside of a body", "#[device]"]);
    refused("y[0] = twice(a) + 1.0; fn twice(x: f32) -> f32 { x * 2.0 }", "3:24", &["a function inside of a body"]);
    refused("static S: u32 = 1; u[0] = S;", "3:1", &["a `static` inside of a body", "write a constant"]);
    refused("struct P { a: f32 } let p: P = P { a: 1.0 }; y[0] = p.a;", "3:1", &["a type inside of a body"]);
    refused("use other::scale; y[0] = scale(a);", "3:1", &["`use` stands outside"]);
}

#[test]
fn names_of_rusts_library_and_of_other_languages() {
    refused("y[0] = std::cmp::max(a, 1.0);", "3:8", &["`std::cmp::max` is not part", "write `max(a, b)`"]);
    refused("let t = core::mem::swap(n, k);", "3:9", &["`core::mem::swap`", "`let t = a; a = b; b = t;`"]);
    refused("let t = std::process::id();", "3:9", &["`std::process::id` is not part", "the prelude"]);
    refused("let t = std::f32::MAX;", "3:9", &["write `f32::MAX`"]);
    refused("let t: std::ops::Range = a;", "3:8", &["`std::ops::Range` is not part"]);
    refused("let t = Some(a);", "3:9", &["`Option` is not part", "a bool"]);
    refused("let t = std::option::Option::None;", "3:9", &["`Option` is not part"]);
    refused("let t = Err(n);", "3:9", &["`Result` is not part"]);
    refused("let t = vec3(a, a, a);", "3:9", &["`vec3` is not part", "`Vec3::new(x, y, z)`"]);
    refused("let t = threadIdx.x;", "3:9", &["`threadIdx` is not part", "`local_index()`"]);
    refused("let t = thread_idx();", "3:9", &["`local_index()`"]);
    refused("__syncthreads();", "3:1", &["`barrier()`"]);
    refused("workgroupBarrier();", "3:1", &["`barrier()`"]);
    refused("let t = get_global_id(0);", "3:9", &["`global_index()`"]);
    let said = mistakes("#[device] fn vec2(x: f32) -> f32 { x }");
    assert!(said.contains("`vec2` is no name for a #[device] item") && said.contains("`Vec2::new(x, y)`"), "{said}");
}

#[test]
fn fields_that_a_struct_cannot_have() {
    for (ty, advice) in [
        ("bool", "keep a bool as a u32"),
        ("u8", "pack four u8 in a u32, with `pack4xu8`"),
        ("[u8; 4]", "pack four u8"),
        ("Vec2<f16>", "`pack2x16float`"),
        ("usize", "keep it as a u32"),
    ] {
        let said = mistakes(&format!("#[device] struct S {{ a: f32, b: {ty} }}"));
        assert!(said.contains("is none: ") && said.contains(advice), "{ty}: {said}");
    }
}

#[test]
fn what_rust_and_other_languages_have_under_another_name() {
    refused("let t = Vec3 { x: 1.0, y: a, z: a };", "3:9", &["`Vec3::new(..)`"]);
    refused("let t = Vec3::ZERO;", "3:9", &["`Vec3::splat(0.0)`"]);
    refused("let t = Vec2::splat(a).yx();", "3:24", &["`yx` is none", "`Vec2::new(v.y, v.x)`"]);
    refused("let t = Vec2::splat(a).x();", "3:24", &["a lane is a field"]);
    refused("let t = Vec::new();", "3:9", &["`[0.0; N]`", "`workgroup_array`"]);
    refused("let t = vec![0.0; 4];", "3:9", &["`[0.0; N]`", "`workgroup_array`"]);
    refused("let t = n.saturating_sub(1);", "3:11", &["`a.max(b) - b`"]);
    refused("let t = n.saturating_add(1);", "3:11", &["`a + b.min(!a)`"]);
    refused("let t = n.abs_diff(1);", "3:11", &["`a.max(b) - a.min(b)`"]);
    refused("let t = n.checked_add(1);", "3:11", &["`Option`", "wrapping_add"]);
    refused("let t = n.swap_bytes();", "3:11", &["rotate_left"]);
    refused("let t = a.sin_cos();", "3:11", &["`x.sin()`"]);
    refused("let t = u32::from(c);", "3:9", &["`x as u32`"]);
    refused("let t = f16::from(a);", "3:9", &["`f16::from_f32(..)`"]);
    refused("let t = threadIdx.x;", "3:9", &["`local_id()`"]);
    refused("let t = blockIdx.x;", "3:9", &["`group_id()`"]);
    refused("let t = gl_GlobalInvocationID.x;", "3:9", &["`global_id()`"]);
    refused("let t = blockDim.x;", "3:9", &["workgroup(..)"]);
    refused("if let Some(v) = a { y[0] = v + 1.0; }", "3:4", &["`if let`"]);
    refused("while let Some(v) = a { y[0] = v + 1.0; break; }", "3:7", &["`while let`"]);
    refused("y[0] = if let Some(v) = a { v } else { 0.0 };", "3:11", &["`if let`"]);
}

#[test]
fn numbers_that_do_not_fit() {
    refused("let t = -1; let w: u32 = t;", "3:9", &["`u32`, the type of this literal, has no sign", "`as u32`"]);
    refused("let t = -200; let w: i8 = t;", "3:9", &["too small for i8"]);
    refused("for i in (k..9).step_by(3_000_000_000) {}", "3:25", &["a range of `i32` has steps up to 2147483647"]);
    refused("for i in (k..=n as i32).step_by(3_000_000_000) {}", "3:33", &["steps up to 2147483647"]);
    refused("let t = Vec2::splat(n) << Vec3::splat(n);", "3:24", &["by a `Vec2<u32>`", "`Vec3<u32>`"]);
    refused("let mut t = Vec2::splat(n); t <<= Vec2::splat(k);", "3:31", &["by a `u32`", "`Vec2<i32>`"]);
    refused("let t = Vec2::splat(n) >> k;", "3:24", &["by a `u32`, this is by a `i32`", "`as u32`"]);
}

#[test]
fn what_is_said_of_literals_that_are_computed_with_and_then_converted() {
    refused("let t = (1 << 40) as u64;", "3:15", &["`i32` has 32 bits: shift by fewer"]);
    refused("let s = 1; let t = s << 33; let w: u32 = t;", "3:25", &["`u32` has 32 bits: shift by fewer"]);
    let _ = super::outputs(&super::kernel("let s = 1; let t = s << 33; let w: u64 = t;"));
    refused("let t = (3000000000 - 1) as u32;", "3:10", &["too large for i32"]);
    refused("let t = (if c { 3000000000 } else { 0 }) as u64;", "3:17", &["too large for i32"]);
    refused("let t = -1 as u32;", "3:9", &["`u32` has no sign"]);
    refused("let t = bitcast(a) as u32;", "3:9", &["bitcast::<u32>(x)"]);
}

#[test]
fn one_mistake_gives_one_message_and_several_give_several() {
    let said = mistakes(
        "#[kernel(workgroup(64))]\npub fn f(y: &mut [f32], n: u32) {\nlet p = nothing(1);\nlet q = p + 1.0;\ny[0] = q * p;\ny[n] = 1.0;\nlet r = n + 1.0;\n}",
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("3:9: ") && lines[1].starts_with("6:3: ") && lines[2].starts_with("7:13: "), "{said}");
}

fn whole(source: &str, position: &str, words: &[&str]) {
    let said = mistakes(source);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(&format!("{position}: ")), "expected it at {position}:\n{said}\n{source}");
    for word in words {
        assert!(said.contains(word), "expected `{word}` in:\n{said}");
    }
}

#[test]
fn attributes() {
    whole("#[kernel] fn f(y: &mut [f32]) {}", "1:14", &["the size of a workgroup is missing"]);
    whole("#[kernel(workgroup(0))] fn f(y: &mut [f32]) {}", "1:20", &["at least one invocation"]);
    whole("#[kernel(workgroup(1, 2, 3, 4))] fn f(y: &mut [f32]) {}", "1:29", &["three axes"]);
    whole("#[kernel(workgroup(64), shape(2))] fn f(y: &mut [f32]) {}", "1:25", &["`shape` is unknown"]);
    whole("#[kernel(workgroup(64), targets(metal))] fn f(y: &mut [f32]) {}", "1:33", &["`metal` is no target"]);
    whole("#[kernel(workgroup(64), requires(Tensors))] fn f(y: &mut [f32]) {}", "1:34", &["`Tensors` is no feature"]);
    whole("#[kernel(workgroup(64))] fn f<T: Number>(y: &mut [T]) {}", "1:30", &["instances(T = [f32])"]);
    whole(
        "#[kernel(workgroup(64), instances(T = [f16]))] fn f<T: Int>(y: &mut [T]) {}",
        "1:40",
        &["an `Int` is one of i32, u32, i8, u8, i16, u16, i64 and u64"],
    );
    whole(
        "#[kernel(workgroup(64), instances(T = [f32], N = [1]))] fn f<T: Number>(y: &mut [T]) {}",
        "1:46",
        &["no generic parameter `N`"],
    );
    whole(
        "#[kernel(workgroup(64), instances(N = [-1]))] fn f<const N: usize>(y: &mut [f32]) {}",
        "1:40",
        &["no usize"],
    );
    whole("#[kernel(workgroup(64), instances(T = [f32]))] fn f<T: Copy>(y: &mut [T]) {}", "1:53", &["`Element`"]);
}

#[test]
fn signatures() {
    whole("#[kernel(workgroup(64))] fn f(y: &mut f32) {}", "1:34", &["a kernel takes values, slices"]);
    whole("#[kernel(workgroup(64))] fn f(y: &[bool]) {}", "1:36", &["keep a bool as a u32"]);
    whole("#[kernel(workgroup(64))] fn f(y: &[usize]) {}", "1:36", &["keep it as a u32"]);
    whole("#[kernel(workgroup(64))] fn f(y: &[i128]) {}", "1:36", &["`i128` is not part"]);
    whole("#[kernel(workgroup(64))] fn f(y: &mut [Atomic<u32>]) {}", "1:34", &["&[Atomic<u32>]"]);
    whole(
        "#[kernel(workgroup(64))] fn f(y: &[Atomic<f16>]) {}",
        "1:43",
        &["`Atomic<T>` of u32, i32, u64, i64 and f32"],
    );
    whole("#[kernel(workgroup(64))] fn f(y: &View<f32>) {}", "1:34", &["`&View<f32, 2>`"]);
    whole("#[kernel(workgroup(64))] fn f(y: &[f32]) -> f32 { 1.0 }", "1:45", &["a kernel gives no value"]);
    whole("#[kernel(workgroup(64))] fn f(p: [bool; 2]) {}", "1:34", &["pass it in a slice"]);
    whole("#[kernel(workgroup(64))] fn f(p: [[bool; 2]; 2]) {}", "1:34", &["pass it in a slice"]);
    whole("#[kernel(workgroup(64), instances(T = [f16]))] fn f<T: Element>(p: T) {}", "1:68", &["pass it in a slice"]);
    whole("#[device] struct P(f32);", "1:11", &["named fields"]);
    whole("#[device] struct P { a: bool }", "1:25", &["`bool` is none"]);
    whole("#[device] enum E { A(f32) }", "1:20", &["without fields"]);
    whole("#[device] fn exp(x: f32) -> f32 { x }", "1:14", &["belongs to the kernel language"]);
    whole("#[device] fn f(x: f32) -> f32 { let y = x; }", "1:24", &["this function gives `f32`"]);
    whole("#[device] fn f(x: &[f32]) { x[0] = 1.0; }", "1:29", &["read only"]);
}

#[test]
fn calls() {
    let with = |call: &str| {
        format!(
            "#[device] fn s(v: &mut [f32], t: &mut f32, n: u32) {{ v[0] = *t; }}\n#[kernel(workgroup(64))] fn f(x: &[f32], y: &mut [f32], b: &[Atomic<u32>]) {{ let mut t = 1.0;\n{call}\n}}"
        )
    };
    whole(&with("s(x, &mut t, 1);"), "3:3", &["read only here"]);
    whole(&with("s(b, &mut t, 1);"), "3:3", &["atomics"]);
    whole(&with("s(y, t, 1);"), "3:6", &["pass `&mut x`"]);
    whole(&with("s(y, &mut t);"), "3:1", &["`s` takes 3 arguments, 2 given"]);
    whole(&with("s(y, &mut t, 1.0);"), "3:14", &["expected `u32`"]);
    whole(&with("s(t, &mut t, 1);"), "3:3", &["a buffer or a workgroup array"]);
    whole(&with("let v = b[0];"), "3:9", &["`.load()`"]);
    whole(&with("b[0] = 1;"), "3:1", &["`.store(..)`"]);
    whole(&with("b[0].fetch_add(1);"), "3:6", &["`.add(v)`"]);
    whole(&with("let v = t + s(y, &mut t, 1);"), "3:13", &["expected `f32`, found `()`"]);
}

#[test]
fn halves_and_generic_types_are_converted() {
    let with = |line: &str| {
        format!(
            "#[kernel(workgroup(64), instances(T = [f16]))] fn f<T: Float>(x: &[T], h: &mut [f16], y: &mut [f32]) {{\n{line}\n}}"
        )
    };
    whole(&with("y[0] = x[0] * 2.0;"), "2:15", &["`T::lit(2.0)`"]);
    whole(&with("y[0] = x[0].to_f32() + x[1];"), "2:24", &["`.to_f32()`"]);
    whole(&with("h[0] = h[1] & h[2];"), "2:13", &["`f16` has no `&`"]);
    whole(&with("h[0] = h[1] * 2.0;"), "2:15", &["`f16::from_f32(2.0)`"]);
    whole(&with("h[0] = h[1] + y[2];"), "2:15", &["`f16::from_f32(..)`"]);
    whole(&with("h[0] = y[1];"), "2:8", &["f16::from_f32"]);
    whole(&with("h[0] = y[1] as f16;"), "2:8", &["f16::from_f32"]);
    whole(&with("y[0] = exp(h[0]);"), "2:12", &["`.to_f32()`"]);
}

#[test]
fn matches_on_enums_take_every_variant() {
    whole(
        "#[device] enum E { A, B, C }\n#[kernel(workgroup(64))] fn f(e: E, y: &mut [f32]) {\ny[0] = match e { E::A => 1.0, E::C => 2.0 };\n}",
        "3:14",
        &["no arm for `E::B`"],
    );
    whole(
        "#[device] enum E { A, B }\n#[kernel(workgroup(64))] fn f(e: E, y: &mut [f32]) {\nif e == E::D { y[0] = 1.0; }\n}",
        "3:9",
        &["no variant `D`"],
    );
}
