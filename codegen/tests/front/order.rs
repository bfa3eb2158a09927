//! Operands are evaluated in Rust's order, each once.

use super::body;

#[test]
fn what_is_read_before_an_effect_is_kept() {
    let text = body("y[1] = y[0] + { y[0] = 2.0; a } * y[0];");
    assert_eq!(text.trim(), "let value.0: f32 = y[?0];\ny[?0] = 2.0;\ny[?1] = (value.0 + (a * y[?0]));");
}

#[test]
fn the_right_side_of_and_runs_only_if_it_decides() {
    let text = body("if c && { y[0] = 1.0; n > 2 } { y[1] = 2.0; }");
    assert_eq!(
        text.trim(),
        "let mut value.0: bool = c;\nif value.0 {\ny[?0] = 1.0;\nvalue.0 = (n > 2u32);\n}\nif value.0 {\ny[?1] = 2.0;\n}"
    );
}

#[test]
fn a_condition_with_effects_is_evaluated_in_each_round() {
    let text = body("let mut i = n; while { i += 1; i < 9 } { y[0] = 1.0; }");
    assert_eq!(
        text.trim(),
        "let mut i.0: u32 = n;\nloop {\ni.0 = (i.0 + 1u32);\nif !(i.0 < 9u32) {\nbreak;\n}\ny[?0] = 1.0;\n}"
    );
}

#[test]
fn an_index_that_is_used_twice_is_computed_once() {
    let text = body("let mut i = 0; y[{ i += 1; i }] += a;");
    assert_eq!(
        text.trim(),
        "let mut i.0: usize = 0;\ni.0 = (i.0 + 1);\nlet index.1: usize = i.0;\ny[?index.1] = (y[?index.1] + a);"
    );
}

#[test]
fn the_value_comes_before_the_place() {
    let text = body("let mut i = 0; y[i] = { i += 1; a };");
    assert_eq!(text.trim(), "let mut i.0: usize = 0;\ni.0 = (i.0 + 1);\ny[?i.0] = a;");
}

#[test]
fn the_place_comes_before_the_value_where_rust_has_a_call() {
    for (statement, place_first) in [
        ("y.set_vec2(i, { i += 1; x.vec2(0) });", true),
        ("y.set_vec4(i, { i += 1; x.vec4(0) });", true),
        ("w.set([i, 1], { i += 1; a });", true),
        ("h[i] += { i += 1; h[0] };", true),
        ("b[i] -= { i += 1; b[0] };", true),
        ("t[i] *= { i += 1; t[0] };", true),
        ("v[i] += { i += 1; v[0] };", true),
        ("y[i] += { i += 1; a };", false),
        ("t[i] = { i += 1; t[0] };", false),
        ("v[i] = { i += 1; v[0] };", false),
    ] {
        let text = super::ir(&format!(
            "#[kernel(workgroup(1), instances(T = [f32]))]
            pub fn g<T: Number>(
                x: &[f32], y: &mut [f32], w: &mut View<f32, 2>, h: &mut [f16], b: &mut [bf16], t: &mut [T],
                v: &mut [Vec2<f32>], a: f32,
            ) {{ let mut i = 0; {statement} }}"
        ));
        let changed = text.find("i.0 = (i.0 + 1);").unwrap();
        // What is evaluated before an effect is a local.
        let kept = text.find("let value.1: usize = ").is_some_and(|kept| kept < changed);
        assert_eq!(kept, place_first, "{statement}\n{text}");
    }
}

/// Whether the index `i` is read before it is changed by `i += 1`, which stands in a function of its own or of a kernel.
fn is_read_first(text: &str) -> bool {
    let line = |is: &dyn Fn(&str) -> bool| text.lines().map(str::trim).position(is);
    let changed = line(&|line| line.starts_with("i.") && line.ends_with(" + 1);"));
    let read = line(&|line| line.contains(": usize = i."));
    let changed = changed.unwrap_or_else(|| panic!("nothing changes `i` in\n{text}"));
    read.is_some_and(|read| read < changed)
}

#[test]
fn a_type_parameter_has_calls_whatever_stands_for_it() {
    for (statement, place_first) in [
        ("x[i] += { i += 1; x[0] };", true),
        ("l[i] -= { i += 1; x[0] };", true),
        ("m[1][i] *= { i += 1; x[0] };", true),
        ("r[i] /= { i += 1; x[0] };", true),
        ("v[i] %= { i += 1; x[0] };", true),
        ("x[i] = { i += 1; x[0] };", false),
        ("y[i] += { i += 1; 1.0 };", false),
        ("n[i] += { i += 1; 1 };", false),
        ("l[i] = { i += 1; x[0] };", false),
    ] {
        for (number, slice) in [("f32", "x"), ("u32", "x"), ("f32", "&mut w")] {
            let text = super::ir(&format!(
                "#[device] fn acts<T: Number>(x: &mut [T], y: &mut [f32], r: &mut [T; 4]) {{
                    let mut i = 0;
                    let mut l = [x[0]; 4];
                    let mut m = [l; 2];
                    let mut n = [0; 4];
                    let mut v = Vec4::splat(x[1]);
                    {statement}
                }}
                #[kernel(workgroup(1))] pub fn g(x: &mut [{number}], y: &mut [f32]) {{
                    let mut w = workgroup_array::<{number}>(4);
                    let mut r = [x[0]; 4];
                    acts({slice}, y, &mut r);
                }}"
            ));
            assert_eq!(is_read_first(&text), place_first, "{statement} of {number} in {slice}\n{text}");
        }
    }
}

#[test]
fn the_index_of_a_type_parameter_is_computed_before_the_value() {
    for (bound, place_first) in [("T: Number", true), ("T: Element", false)] {
        let element = if place_first { "T" } else { "f32" };
        let text = super::ir(&format!(
            "#[device] fn index_of(i: &mut usize) -> usize {{ *i += 1; *i }}
            #[device] fn value_of<U: Number>(i: &mut usize, x: U) -> U {{ *i *= 2; x }}
            #[device] fn acts<{bound}>(x: &mut [{element}], z: T) {{ let mut i = 0; x[index_of(&mut i)] += value_of(&mut i, x[0]); }}
            #[kernel(workgroup(1))] pub fn g(x: &mut [f32]) {{ acts(x, 1.0); }}"
        ));
        let acts = &text[text.find("fn acts").unwrap()..];
        let (index, value) = (acts.find("index_of(").unwrap(), acts.find("value_of(").unwrap());
        assert_eq!(index < value, place_first, "{text}");
    }
}

#[test]
fn what_a_closure_calls_is_decided_where_it_is_written() {
    let closure = "|v| { let mut i = 0; let mut l = [v; 4]; l[i] += { i += 1; v }; l[0] }";
    for (bound, place_first) in [("<T: Number>", true), ("", false)] {
        let element = if place_first { "T" } else { "f32" };
        let text = super::ir(&format!(
            "#[device] fn once<U: Number>(x: U, f: impl Fn(U) -> U) -> U {{ f(x) }}
            #[device] fn handed_on<U: Number>(x: U, f: impl Fn(U) -> U) -> U {{ once(x, f) }}
            #[device] fn acts{bound}(x: &mut [{element}]) {{ x[0] = handed_on(x[1], {closure}); }}
            #[kernel(workgroup(1))] pub fn g(x: &mut [f32]) {{ acts(x); }}"
        ));
        assert_eq!(is_read_first(&text), place_first, "{text}");
    }
    // Two that are written alike and act in different ways are not one.
    let text = super::ir(&format!(
        "#[device] fn once<U: Number>(x: U, f: impl Fn(U) -> U) -> U {{ f(x) }}
        #[device] fn acts<T: Number>(x: &mut [T], y: &mut [f32]) {{ x[0] = once(x[1], {closure}); y[0] = once(y[1], {closure}); }}
        #[kernel(workgroup(1))] pub fn g(x: &mut [f32], y: &mut [f32]) {{ acts(x, y); }}"
    ));
    assert_eq!(text.matches("fn once").count(), 2, "{text}");
}

#[test]
fn the_fields_of_a_struct_are_evaluated_as_they_are_written() {
    let text = super::ir(
        "
        #[device] struct Pair { first: u32, second: u32 }
        #[kernel(workgroup(1))]
        pub fn g(p: &mut [Pair], bins: &[Atomic<u32>]) {
            p[0] = Pair { second: bins[0].add(1), first: bins[1].add(1) };
        }",
    );
    let (second, first) = (text.find("atomic Add bins[?0]").unwrap(), text.find("atomic Add bins[?1]").unwrap());
    assert!(second < first, "{text}");
    assert!(text.contains("p[?0] = Pair(value.1, value.0);"), "{text}");
}

#[test]
fn calls_with_effects_become_statements_in_order() {
    let text = super::ir(
        "
        #[device] fn bump(v: &mut [f32], i: usize) -> f32 { v[i] += 1.0; v[i] }
        #[device] fn twice(v: f32) -> f32 { v * 2.0 }
        #[kernel(workgroup(1))]
        pub fn g(y: &mut [f32]) {
            y[9] = y[0] + bump(y, 0) * twice(bump(y, 1));
            twice(1.0);
        }",
    );
    let body = &text[text.find("kernel").unwrap()..];
    for line in [
        "let value.0: f32 = y[?0];",
        "let value.1: f32 = bump(0);",
        "let value.2: f32 = bump(1);",
        "y[?9] = (value.0 + (value.1 * twice(value.2)));",
    ] {
        assert!(body.contains(line), "expected `{line}` in\n{text}");
    }
    assert_eq!(body.matches("twice").count(), 1, "a call that only computes is dropped with its value:\n{text}");
}
