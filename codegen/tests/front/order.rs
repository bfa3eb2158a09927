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
