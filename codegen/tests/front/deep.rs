//! What is nested deeper than a stack can hold is a mistake of its author's, and the end of no compiler; what people write is far from it.

#![allow(clippy::unwrap_used, reason = "a helper of tests unwraps too")]

use trefoil_codegen::compile::compile;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::Instance;

/// A kernel with these statements, in which `before` and `after` stand so often around something.
fn nested(around: (&str, &str), before: &str, inner: &str, after: &str, times: usize) -> String {
    let body = format!("{}{}{inner}{}{}", around.0, before.repeat(times), after.repeat(times), around.1);
    format!("#[kernel(workgroup(64))] fn k(y: &mut [u32], n: u32) {{ {body} }}")
}

/// What is said of a source on the stack that rustc gives macros, and whether it could be compiled.
fn outcome(source: String) -> Result<(), String> {
    let work = move || {
        let outputs = parse_source(&source).map_err(|errors| errors.to_string())?;
        for output in &outputs {
            compile(&output.module, &Instance::default()).map_err(|found| found.to_string())?;
        }
        Ok(())
    };
    std::thread::Builder::new().stack_size(8 << 20).spawn(work).unwrap().join().unwrap()
}

type Form = ((&'static str, &'static str), &'static str, &'static str, &'static str);

/// What may stand within itself, in values, statements, types and patterns.
const FORMS: [Form; 22] = [
    (("y[0] = ", ";"), "(", "n", ")"),
    (("y[0] = ", ";"), "{", "n", "}"),
    (("y[0] = ", ";"), "!", "n", ""),
    (("y[0] = ", ";"), "(n+", "n", ")"),
    (("y[0] = ", ";"), "min(n,", "n", ")"),
    (("y[0] = ", ";"), "", "n", "+n"),
    (("y[0] = ", ";"), "", "n", ".min(3)"),
    (("y[0] = ", ";"), "", "n", " as u32"),
    (("y[0] = ", ";"), "if n > 1 { 2 } else ", "{ 1 }", ""),
    (("", ""), "if n > y[0] {", "y[0] = 1;", "}"),
    (("", ""), "for i in 0..2 {", "y[0] = 1;", "}"),
    (("", ""), "while y[0] < n {", "y[0] = 1;", "}"),
    (("", ""), "match n { 0 => {} _ => {", "y[0] = 1;", "}}"),
    (("if n > 1", " { y[0] = 1; }"), "", "", "&& n > 2"),
    (("let a = ", "; y[0] = 1;"), "[", "1u32", "]"),
    (("let a: ", " = 1;"), "[", "u32", ";1]"),
    (("let a: ", " = 1;"), "Vec2<", "u32", ">"),
    (("let a: ", " = 1;"), "A<u8, ", "u32", ">"),
    (("let a: ", " = 1;"), "&", "u32", ""),
    (("let a = ", ";"), "|x|", "n", ""),
    (("let ", " = n;"), "&", "x", ""),
    (("", "n;"), "return ", "", ""),
];

#[test]
fn deep_nesting_is_a_mistake() {
    for (around, before, inner, after) in FORMS {
        for times in [1000, 5000] {
            let said = outcome(nested(around, before, inner, after, times)).unwrap_err();
            assert!(said.contains("nested too deep"), "{before}{inner}{after} {times} times: {said}");
        }
    }
}

#[test]
fn some_nesting_is_none() {
    for (around, before, inner, after) in &FORMS[..15] {
        assert_eq!(outcome(nested(*around, before, inner, after, 24)), Ok(()), "{before}{inner}{after}");
    }
    // Sums of a stencil, and tables.
    let sum: Vec<String> = (0..343).map(|i| format!("y[{i}] * {i}")).collect();
    let table: Vec<String> = (0..3000).map(|i| format!("{i} + 1")).collect();
    let body = format!("y[0] = {}; let table = [{}]; y[1] = table[n as usize];", sum.join(" + "), table.join(", "));
    assert_eq!(outcome(nested(("", ""), "", &body, "", 1)), Ok(()));
    let cases: Vec<String> =
        (0..500).map(|i| format!("if n > {i} {{ y[0] = {i}; }} match n {{ 1 => {{}} _ => {{}} }}")).collect();
    assert_eq!(outcome(nested(("", ""), "", &cases.join(" "), "", 1)), Ok(()));
}

/// Sixty loops within each other once took 2^60 walks of the innermost.
#[test]
fn nested_loops_take_no_time() {
    assert_eq!(outcome(nested(("", ""), "for i in 0..2 {", "y[0] = 1;", "}", 60)), Ok(()));
}

#[test]
fn items_that_use_each_other_do_so_only_so_deep() {
    let items = |first: &str, next: fn(usize) -> String, count: usize, value: &str| {
        let items: String = (1..=count).map(next).collect();
        outcome(format!("{first} {items} #[kernel(workgroup(64))] fn k(y: &mut [u32]) {{ y[0] = {value}; }}"))
    };
    let call = |i: usize| format!("#[device] fn g{i}(x: u32) -> u32 {{ g{}(x) + 1 }}", i - 1);
    let first = "#[device] fn g0(x: u32) -> u32 { x }";
    assert_eq!(items(first, call, 50, "g50(1)"), Ok(()));
    assert!(items(first, call, 200, "g200(1)").unwrap_err().contains("functions and constants use each other"));
    // Each looks the one before up twice, which is 2^30 times.
    let twice = |i: usize| format!("#[device] const C{i}: u32 = C{0} + C{0};", i - 1);
    let first = "#[device] const C0: u32 = 0;";
    assert_eq!(items(first, twice, 10, "C10"), Ok(()));
    assert!(items(first, twice, 30, "C30").unwrap_err().contains("constants are used more than"));
    let lengths = |i: usize| format!("#[device] const C{i}: usize = C{0} + C{0};", i - 1);
    let first = "#[device] const C0: usize = 0;";
    assert!(items(first, lengths, 30, "[1; 1 + C30][0]").unwrap_err().contains("constants are used more than"));
}

/// Structs that hold the one before twice have 2^25 scalars after 25 of them.
#[test]
fn structs_grow_only_so_large() {
    let twice = |count: usize| {
        let structs: String =
            (1..=count).map(|i| format!("#[device] struct S{i} {{ a: S{0}, b: S{0} }} ", i - 1)).collect();
        let kernel =
            format!("#[kernel(workgroup(64))] fn k(x: &[S{count}], y: &mut [S{count}]) {{ let v = x[0]; y[1] = v; }}");
        outcome(format!("#[device] struct S0 {{ a: f32 }} {structs} {kernel}"))
    };
    assert_eq!(twice(8), Ok(()));
    for count in [17, 25, 60] {
        let said = twice(count).unwrap_err();
        assert!(said.contains("`S17` is made of 131072 scalars, where 65536 are possible"), "{said}");
    }
    let array = "#[kernel(workgroup(64))] fn k(y: &mut [f32]) { let a = [1.0f32; 1 << 20]; y[0] = a[y.len()]; }";
    let said = outcome(array.replace("1 << 20", "1048576")).unwrap_err();
    assert!(said.contains("`[f32; 1048576]` is made of 1048576 scalars"), "{said}");
}

#[test]
fn workgroup_memory_is_only_so_large() {
    let shared = |length: &str| {
        let body = "shared[local_index()] = 1.0; barrier(); y[0] = shared[1];";
        outcome(format!(
            "#[kernel(workgroup(64))] fn k(y: &mut [f32]) {{ let mut shared = workgroup_array::<f32>({length}); {body} }}"
        ))
    };
    assert!(shared("5000000").unwrap_err().contains("uses 20000000 bytes of workgroup memory, where 16777216 bytes"));
    assert!(shared("2000000000").unwrap_err().contains("uses 4 GiB or more of workgroup memory"));
}

/// Functions that call the one before twice make 2^30 calls after 30 of them.
#[test]
fn calls_grow_only_so_many() {
    let twice = |count: usize, first: &str, call: &dyn Fn(usize) -> String| {
        let functions: String = (1..=count).map(call).collect();
        outcome(format!("{first} {functions} #[kernel(workgroup(64))] fn k(y: &mut [u32]) {{ y[0] = g{count}(1); }}"))
    };
    let values = |i: usize| format!("#[device] fn g{i}(x: u32) -> u32 {{ g{0}(x) + g{0}(x + 1) }} ", i - 1);
    let first = "#[device] fn g0(x: u32) -> u32 { x ^ (x + 3) }";
    assert_eq!(twice(8, first, &values), Ok(()));
    let said = twice(30, first, &values).unwrap_err();
    assert!(said.contains("values, those of the functions that it calls counted at each call"), "{said}");
    // What waits for others is put in for its calls on the CPU.
    let waits = |i: usize| {
        format!("#[device] fn g{i}(x: u32) -> u32 {{ let a = g{0}(x); let b = g{0}(x + 1); a + b }} ", i - 1)
    };
    let first = "#[device] fn g0(x: u32) -> u32 { barrier(); x + 1 }";
    assert_eq!(twice(6, first, &waits), Ok(()));
    assert!(twice(30, first, &waits).is_err());
    // Each is made anew for other constants.
    let copies = |i: usize| {
        format!(
            "#[device] fn g{i}<const N: usize>(x: u32) -> u32 {{ g{0}::<{{ N * 2 }}>(x) + g{0}::<{{ N * 2 + 1 }}>(x) }} ",
            i - 1
        )
    };
    let first = "#[device] fn g0<const N: usize>(x: u32) -> u32 { x + N as u32 }";
    let outermost = |i: usize| format!("#[device] fn g{i}(x: u32) -> u32 {{ g{0}::<1>(x) }} ", i - 1);
    assert_eq!(twice(7, first, &|i| if i == 7 { outermost(i) } else { copies(i) }), Ok(()));
    let said = twice(21, first, &|i| if i == 21 { outermost(i) } else { copies(i) }).unwrap_err();
    assert!(said.contains("more than 1024 copies of functions are made"), "{said}");
}

/// naga follows nesting less far than Rust does, and what becomes of an operator may be a call.
#[test]
fn what_naga_would_not_follow_has_a_place() {
    let forms: [Form; 12] = [
        (("y[0] = ", ";"), "", "n", "/y[1]"),
        (("y[0] = ", ";"), "", "n", "%n"),
        (("y[0] = ", ";"), "", "n", "<<n"),
        (("y[0] = ", ";"), "", "n", "&n|1"),
        (("y[0] = ", ";"), "", "n", ".min(3)"),
        (("y[0] = ", ";"), "!", "n", ""),
        (("y[0] = ", ";"), "n/(", "n", ")"),
        (("y[0] = ", ";"), "y[(", "0", ") as usize]"),
        (("y[0] = ", ";"), "if n > 1 { 2 } else ", "{ 1 }", ""),
        (("if n > 1", " { y[0] = 1; }"), "", "", "&& n > 2 || n < 7"),
        (("", ""), "for i in 0..2 {", "y[0] = 1;", "}"),
        (("", ""), "while y[0] < n {", "y[0] = 1;", "}"),
    ];
    for (around, before, inner, after) in forms {
        let mut refused = 0;
        for times in [20, 40, 60, 62, 100, 120, 126, 150, 180, 190, 195, 199, 200, 250, 300, 390] {
            let Err(said) = outcome(nested(around, before, inner, after, times)) else {
                assert_eq!(refused, 0, "{before}{inner}{after} {times} times");
                continue;
            };
            refused += 1;
            assert!(said.contains("nested too deep"), "{before}{inner}{after} {times} times: {said}");
        }
    }
    let chain = nested(("y[0] = ", ";"), "", "n", "/y[1]", 300);
    let said = outcome(chain).unwrap_err();
    assert!(said.contains("brackets within each other, of which 190 are possible"), "{said}");
}

#[test]
fn two_parameters_have_two_names() {
    let said = super::mistakes("#[kernel(workgroup(1))]\nfn k(n: &[u32], n: &mut [u32]) { n[0] = 1; }");
    assert_eq!(said, "2:17: another parameter is called `n` too");
}
