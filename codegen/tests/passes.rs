//! What each pass makes of the IR, as text; that nothing computes anything else afterwards; and that the verifier takes what they leave.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/evaluated.rs"]
mod evaluated;
#[path = "support/kernels/mod.rs"]
mod kernels;

use std::fmt::Write as _;

use evaluated::evaluated;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::passes::{Sharing, fold, share};
use trefoil_codegen::verify::verify;

const COMMON: Sharing = Sharing { common: true, invariant: false };
const INVARIANT: Sharing = Sharing { common: false, invariant: true };

/// A kernel of 64 invocations, verified.
fn kernel(signature: &str, body: &str) -> Module {
    source(&format!("#[kernel(workgroup(64))]\nfn k({signature}) {{\n{body}\n}}"))
}

fn source(source: &str) -> Module {
    let output = parse_source(source).unwrap_or_else(|errors| panic!("{errors}\n{source}")).remove(0);
    let module = instantiate(&output.module, &Instance::default()).unwrap();
    verify(module).unwrap_or_else(|errors| panic!("{errors}\n{source}")).module
}

/// The kernel's own statements after a pass.
fn after(mut module: Module, pass: impl Fn(&mut Module)) -> Vec<String> {
    pass(&mut module);
    verify(module.clone()).unwrap_or_else(|errors| panic!("{errors}\n{module}"));
    let text = module.to_string();
    let body = text.split_once(") {\n").unwrap().1;
    body.trim_end().trim_end_matches('}').trim_end().lines().map(|line| line.trim().to_owned()).collect()
}

fn common(signature: &str, body: &str) -> Vec<String> {
    after(kernel(signature, body), |module| share(module, COMMON))
}

fn invariant(signature: &str, body: &str) -> Vec<String> {
    after(kernel(signature, body), |module| share(module, INVARIANT))
}

fn folded(signature: &str, body: &str) -> Vec<String> {
    after(kernel(signature, body), fold)
}

#[test]
fn literals_are_computed_and_operations_that_do_nothing_are_gone() {
    assert_eq!(
        folded(
            "y: &mut [u32], n: u32",
            "y[0] = (n + 0) * 1;\ny[1] = 0 * n + 7 * 6;\ny[2] = (n / 1) | 0;\ny[3] = (n % 1) + (n & 0);\ny[4] = n / (7 * 0);\ny[5] = n << 0;"
        ),
        ["y[?0] = n;", "y[?1] = 42u32;", "y[?2] = n;", "y[?3] = 0u32;", "y[?4] = 0u32;", "y[?5] = n;",]
    );
}

#[test]
fn floats_are_not_folded() {
    assert_eq!(
        folded("y: &mut [f32], n: f32", "y[0] = (n + 0.0) * 1.0;\ny[1] = n * 0.0;"),
        ["y[?0] = ((n + 0.0) * 1.0);", "y[?1] = (n * 0.0);"]
    );
}

#[test]
fn what_is_never_run_is_gone() {
    assert_eq!(
        folded(
            "y: &mut [u32], n: u32",
            "if 3 < 4 && n > 1 {\ny[0] = 1;\n}\nif n > 1 && 4 < 3 {\ny[1] = 1;\n} else {\ny[2] = 1;\n}\n\
             for k in 4..4 {\ny[k] = 1;\n}\nlet a = if 1 == 1 { n } else { 5 };\ny[3] = a;"
        ),
        ["if (n > 1u32) {", "y[?0] = 1u32;", "}", "y[?2] = 1u32;", "let mut a.1: u32;", "a.1 = n;", "y[?3] = a.1;"]
    );
}

#[test]
fn a_comparison_is_turned_round_where_it_is_exact() {
    assert_eq!(
        folded("y: &mut [u32], n: u32, f: f32", "if !(n == 1) {\ny[0] = 1;\n}\nif !(f < 1.0) {\ny[1] = 1;\n}"),
        ["if (n != 1u32) {", "y[?0] = 1u32;", "}", "if !(f < 1.0) {", "y[?1] = 1u32;", "}"]
    );
}

#[test]
fn what_is_dear_is_computed_once_where_it_dominates() {
    assert_eq!(
        common(
            "y: &mut [u32], n: u32, m: u32",
            "y[0] = n / m + 1;\nif n > 3 {\ny[1] = n / m + 2;\n} else {\ny[2] = n % m;\n}\ny[3] = n % m;"
        ),
        [
            "let n_quotient.0: u32 = (n / m);",
            "y[?0] = (n_quotient.0 + 1u32);",
            "if (n > 3u32) {",
            "y[?1] = (n_quotient.0 + 2u32);",
            "} else {",
            // Nothing that is computed in one branch dominates what follows it.
            "y[?2] = (n % m);",
            "}",
            "y[?3] = (n % m);",
        ]
    );
}

#[test]
fn a_local_of_the_author_is_the_name_and_a_second_one_is_dropped() {
    assert_eq!(
        common(
            "y: &mut [u32], n: u32",
            "let a = n * 3;\nlet b = n * 3;\ny[0] = a + b;\ny[1] = n * 3 + 5;\ny[2] = 3 * n;"
        ),
        ["let a.0: u32 = (n * 3u32);", "y[?0] = (a.0 + a.0);", "y[?1] = (a.0 + 5u32);", "y[?2] = a.0;"]
    );
}

#[test]
fn a_comparison_of_integers_or_bools_is_the_same_from_either_side() {
    let shared = |a: &str, b: &str| {
        let body = format!("let a = {a};\nlet b = {b};\ny[0] = (a & b) as u32;");
        let after = common("y: &mut [u32], n: u32, m: u32, p: bool", &body);
        after.last().is_some_and(|line| line == "y[?0] = ((a.0 & a.0) as u32);")
    };
    assert!(shared("n / m == n", "n == n / m"));
    assert!(shared("n / m != n", "n != n / m"));
    assert!(shared("(n / m == 7) ^ p", "p ^ (7 == n / m)"));
    assert!(!shared("n / m < n", "n < n / m"));
}

#[test]
fn what_is_cheap_gets_no_name_until_it_is_frequent() {
    let few = "y[0] = n * 4;\ny[1] = n * 4;";
    assert_eq!(common("y: &mut [u32], n: u32", few), ["y[?0] = (n * 4u32);", "y[?1] = (n * 4u32);"]);
    let many: String = (0..9).map(|k| format!("y[{k}] = n * 4;\n")).collect();
    assert_eq!(common("y: &mut [u32], n: u32", &many)[0], "let n_product.0: u32 = (n * 4u32);");
}

#[test]
fn floats_are_shared_as_they_are_and_never_reordered() {
    assert_eq!(
        common(
            "y: &mut [f32], a: f32, b: f32",
            "y[0] = (a * b + 1.0) * 2.0;\ny[1] = a * b + 1.0;\ny[2] = a * b + 1.0;\ny[3] = b * a + 1.0;"
        ),
        [
            "let a_sum.0: f32 = ((a * b) + 1.0);",
            "y[?0] = (a_sum.0 * 2.0);",
            "y[?1] = a_sum.0;",
            "y[?2] = a_sum.0;",
            "y[?3] = ((b * a) + 1.0);",
        ]
    );
}

#[test]
fn reads_are_shared_until_somebody_may_have_written() {
    assert_eq!(
        common(
            "x: &[u32], y: &mut [u32]",
            "let i = local_index();\ny[i] = x[i] + y[i];\ny[i + 1] = x[i] + y[i];\nbarrier();\ny[i + 2] = x[i];"
        ),
        [
            "let i.0: usize = local_index();",
            "let x_value.1: u32 = x[?i.0];",
            "y[?i.0] = (x_value.1 + y[?i.0]);",
            "y[?(i.0 + 1)] = (x_value.1 + y[?i.0]);",
            "barrier();",
            "y[?(i.0 + 2)] = x_value.1;",
        ]
    );
    assert_eq!(
        common(
            "y: &mut [u32]",
            "let mut t = workgroup_array::<u32>(64);\nlet i = local_index();\nt[i] = 1;\nbarrier();\n\
             y[i] = t[63 - i] * t[63 - i];\nbarrier();\ny[i + 64] = t[63 - i];"
        )[3..],
        [
            "let t_value.1: u32 = t[(63 - i.0)];",
            "y[?i.0] = (t_value.1 * t_value.1);",
            "barrier();",
            "y[?(i.0 + 64)] = t[(63 - i.0)];",
        ]
    );
}

#[test]
fn a_variable_that_is_stored_to_is_another_value() {
    assert_eq!(
        common(
            "y: &mut [u32], n: u32",
            "let mut a = n;\ny[0] = a / n;\ny[1] = a / n;\na = 5;\ny[2] = a / n;\nfor k in 0..4 {\ny[k] = a / n;\na = a + 1;\n}"
        ),
        [
            "let mut a.0: u32 = n;",
            "let a_quotient.2: u32 = (a.0 / n);",
            "y[?0] = a_quotient.2;",
            "y[?1] = a_quotient.2;",
            "a.0 = 5u32;",
            "y[?2] = (a.0 / n);",
            "for k.1 in 0..4 step 1 {",
            "y[?k.1] = (a.0 / n);",
            "a.0 = (a.0 + 1u32);",
            "}",
        ]
    );
}

#[test]
fn the_right_side_of_and_makes_no_name_but_takes_one() {
    assert_eq!(
        common(
            "y: &mut [u32], n: u32, m: u32",
            "if n > 1 && n / m > 2 {\ny[0] = n / m;\ny[1] = n / m;\n}\nwhile n / m > y[5] {\ny[5] = y[5] + 1;\n}"
        ),
        [
            "if ((n > 1u32) && ((n / m) > 2u32)) {",
            "let n_quotient.0: u32 = (n / m);",
            "y[?0] = n_quotient.0;",
            "y[?1] = n_quotient.0;",
            "}",
            "while ((n / m) > y[?5]) {",
            "y[?5] = (y[?5] + 1u32);",
            "}",
        ]
    );
}

#[test]
fn what_a_loop_does_not_change_moves_before_it() {
    assert_eq!(
        invariant(
            "y: &mut [u32], n: u32, m: u32",
            "for k in 0..64 {\nlet row = n * m;\nfor j in 0..4 {\ny[j] = row + n / m + k as u32 * m + j as u32;\n}\n}"
        ),
        [
            "let row.1: u32 = (n * m);",
            "let row_sum.3: u32 = (row.1 + (n / m));",
            "for k.0 in 0i32..64i32 step 1i32 {",
            "let row_sum.4: u32 = (row_sum.3 + ((k.0 as u32) * m));",
            "for j.2 in 0..4 step 1 {",
            "y[?j.2] = (row_sum.4 + (j.2 as u32));",
            "}",
            "}",
        ]
    );
}

#[test]
fn what_a_loop_would_pay_for_nothing_stays() {
    // A division and a root of floats, a division that not every round computes, a read, an offset, and a single addition.
    for value in ["a / 3.0", "a.sqrt()", "x[5]", "a + 1.0"] {
        let body = format!("for k in 0..64 {{\ny[k] = {value};\n}}");
        let kernel = kernel("x: &[f32], y: &mut [f32], a: f32", &body);
        let before = after(kernel.clone(), |_| {});
        assert_eq!(after(kernel, |module| share(module, INVARIANT)), before, "{value}");
    }
    let rare = kernel("y: &mut [u32], n: u32, m: u32", "for k in 0..64 {\nif k > 60 {\ny[k] = n / m;\n}\n}");
    let before = after(rare.clone(), |_| {});
    assert_eq!(after(rare, |module| share(module, INVARIANT)), before);
}

#[test]
fn no_more_than_eight_values_move_out_of_one_loop() {
    let lines: String = (0..12).map(|k| format!("y[k + {k}] = n * m{k};\n")).collect();
    let params: String = (0..12).fold(String::new(), |mut params, k| {
        write!(params, ", m{k}: u32").unwrap();
        params
    });
    let lines = invariant(&format!("y: &mut [u32], n: u32{params}"), &format!("for k in 0..64 {{\n{lines}}}"));
    assert_eq!(lines.iter().position(|line| line.starts_with("for ")), Some(8));
}

/// Numbers from nowhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len())]
    }
}

/// Writes kernels in which much is said twice.
struct Author {
    random: Random,
    text: String,
    /// Expressions that can be said where the text is, and how many of them were there outside of each block.
    known: Vec<String>,
    names: usize,
    budget: usize,
}

impl Author {
    fn kernel(seed: u64) -> String {
        let known = [
            "n",
            "m",
            "a",
            "b",
            "(local_index() as u32)",
            "x[local_index() + 3]",
            "y[local_index()]",
            "3u32",
            "(3u32 - 3u32)",
        ];
        let mut author = Self {
            random: Random(seed),
            text: String::new(),
            known: known.map(str::to_owned).to_vec(),
            names: 0,
            budget: 40,
        };
        author.block(0);
        format!(
            "#[kernel(workgroup(64))]\nfn k(x: &[u32], y: &mut [u32], n: u32, m: u32) {{\nlet mut t = workgroup_array::<u32>(64);\n\
             t[local_index()] = 7;\nlet mut a = x[local_index()];\nlet mut b = n;\n{}y[local_index() + 128] = a;\ny[local_index() + 192] = b;\n}}",
            author.text
        )
    }

    fn expression(&mut self) -> String {
        if self.random.below(3) == 0 {
            return self.known[self.random.below(self.known.len())].clone();
        }
        let (left, right) = (
            self.known[self.random.below(self.known.len())].clone(),
            self.known[self.random.below(self.known.len())].clone(),
        );
        let text = match self.random.below(8) {
            0 => format!("({left} / {right})"),
            1 => format!("({left} % {right})"),
            2 => format!("min({left}, {right})"),
            3 => format!("(if {left} < {right} {{ {left} }} else {{ {right} }})"),
            4 => format!("x[(({left} * {right}) % 70) as usize]"),
            5 => format!("t[local_index()] * {right}"),
            6 => format!("(({left} * {right} > 5u32 && {left} / {right} < 9u32) as u32)"),
            _ => format!("({left} {} {right})", self.random.one(&["+", "*", "-", "&", "^"])),
        };
        if text.len() < 60 {
            self.known.push(text.clone());
        }
        text
    }

    fn block(&mut self, depth: usize) {
        let outside = self.known.len();
        for _ in 0..2 + self.random.below(6) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let value = self.expression();
            match self.random.below(if depth < 3 { 10 } else { 6 }) {
                0 | 1 => {
                    let name = format!("v{}", self.names);
                    self.names += 1;
                    writeln!(self.text, "let {name} = {value};").unwrap();
                    self.known.push(name);
                }
                2 => writeln!(self.text, "a = {value};").unwrap(),
                3 => writeln!(self.text, "b = b + {value};").unwrap(),
                4 => writeln!(self.text, "y[local_index()] = {value};").unwrap(),
                5 => writeln!(self.text, "t[local_index()] = {value};").unwrap(),
                6 | 7 => {
                    writeln!(self.text, "for k in 0u32..({value}) % 4 {{").unwrap();
                    self.known.push("k".to_owned());
                    self.block(depth + 1);
                    self.text.push_str("}\n");
                    self.known.pop();
                }
                _ => {
                    writeln!(self.text, "if {value} > {}u32 {{", self.random.below(4)).unwrap();
                    self.block(depth + 1);
                    self.text.push_str("} else {\n");
                    self.block(depth + 1);
                    if depth > 0 && self.random.below(3) == 0 && self.text.contains("for k") {
                        self.text.push_str("b = b + 1;\n");
                    }
                    self.text.push_str("}\n");
                }
            }
        }
        self.known.truncate(outside);
    }
}

type Pass = fn(&mut Module);

/// Every pass alone, and all together.
fn passes() -> [(&'static str, Pass); 4] {
    [
        ("fold", fold),
        ("common", |module| share(module, COMMON)),
        ("invariant", |module| share(module, INVARIANT)),
        ("all", |module| {
            fold(module);
            share(module, Sharing::ALL);
        }),
    ]
}

fn same(module: &Module, bindings: &[(Vec<u32>, u32)], text: &str) {
    let expected = evaluated(module, bindings.to_vec());
    for (name, pass) in passes() {
        let mut passed = module.clone();
        pass(&mut passed);
        assert!(
            evaluated(&passed, bindings.to_vec()) == expected,
            "{name} changes what is computed:\n{text}\n{passed}"
        );
    }
}

#[test]
fn random_kernels_compute_the_same() {
    for seed in 0..300 {
        let text = Author::kernel(seed);
        let mut random = Random(seed);
        let words: Vec<u32> = (0..256)
            .map(|_| if random.below(2) == 0 { random.below(9) } else { random.below(1 << 30) } as u32)
            .collect();
        let bindings = [(words[..64].to_vec(), 64), (words, 256)];
        same(&source(&text), &bindings, &text);
    }
}

#[test]
fn the_kernels_of_the_tests_compute_the_same() {
    for module in kernels::all().into_iter().chain([kernels::large_tile()]) {
        let module = verify(module).unwrap().module;
        let bindings: Vec<_> = (0..module.bindings.len())
            .map(|binding| ((0..4096u32).map(|word| (word * 7 + binding as u32) % 61).collect(), 64))
            .collect();
        let text = module.to_string();
        same(&module, &bindings, &text);
    }
}

/// The workgroup arrays that are left of a kernel, and how many bytes they take.
fn arrays(body: &str) -> (Vec<String>, u32) {
    let text = format!(
        "#[device]\nfn total(scratch: &mut [u32], own: u32) -> u32 {{\nscratch[local_index()] = own;\nbarrier();\nlet sum = scratch[0] + scratch[63];\n\
         barrier();\nsum\n}}\n#[kernel(workgroup(64))]\nfn k(y: &mut [u32], n: u32) {{\n{body}\n}}"
    );
    let output = parse_source(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}")).remove(0);
    let verified = verify(instantiate(&output.module, &Instance::default()).unwrap()).unwrap();
    let text = verified.module.to_string();
    let arrays = text.lines().filter_map(|line| line.strip_prefix("workgroup ")).map(str::to_owned).collect();
    (arrays, verified.info.workgroup_bytes)
}

fn left(lines: &[&str], bytes: u32) -> (Vec<String>, u32) {
    (lines.iter().map(|line| (*line).to_owned()).collect(), bytes)
}

const TWO: &str =
    "let mut a = workgroup_array::<u32>(64);\nlet mut b = workgroup_array::<u32>(128);\nlet i = local_index();\n";

#[test]
fn arrays_with_a_barrier_between_their_lives_are_one() {
    let body = format!(
        "{TWO}a[i] = n;\nbarrier();\ny[i] = a[63 - i];\nbarrier();\nb[i] = n + 1;\nb[i + 64] = n;\nbarrier();\ny[i + 64] = b[127 - i];"
    );
    assert_eq!(arrays(&body), left(&["a_and_b: [u32; 128]"], 512));
    // The values are those that the kernel says.
    let module = kernel("y: &mut [u32], n: u32", &body);
    let result = evaluated(&module, vec![(vec![9; 128], 128)]);
    assert!(result[0].iter().all(|word| *word == 1));
}

#[test]
fn arrays_that_live_together_stay_two() {
    // No barrier between; one only in a branch; alive round after round; a barrier behind an early return of a function.
    for between in ["y[i] = a[i];", "y[i] = a[i];\nif n > 1 {\nbarrier();\n}"] {
        let body = format!("{TWO}a[i] = n;\nbarrier();\n{between}\nb[i] = y[i];\nbarrier();\ny[i + 64] = b[63 - i];");
        assert_eq!(arrays(&body), left(&["a: [u32; 64]", "b: [u32; 128]"], 768), "{between}");
    }
    let body = format!(
        "{TWO}for k in 0..n {{\na[i] = k;\nbarrier();\nb[i] = a[63 - i];\nbarrier();\ny[i] = b[63 - i];\nbarrier();\n}}"
    );
    assert_eq!(arrays(&body).0.len(), 2);
}

#[test]
fn barriers_of_functions_count_where_they_are_called() {
    let body =
        format!("{TWO}let first = total(&mut a, n);\nlet second = total(&mut b, first);\ny[i] = first + second;");
    assert_eq!(arrays(&body), left(&["a_and_b: [u32; 128]"], 512));
}

#[test]
fn other_elements_atomics_and_guards_keep_arrays_apart() {
    let lives = |a: &str, first: &str, b: &str, second: &str| {
        let body = format!(
            "let mut a = workgroup_array::<{a}>(64);\nlet mut b = workgroup_array::<{b}>(128);\nlet i = local_index();\n{first}\nbarrier();\n{second}"
        );
        arrays(&body).0.len()
    };
    let plain = "a[i] = 1;\nbarrier();\ny[i] = a[63 - i];";
    assert_eq!(lives("u32", plain, "u32", "b[i] = 1;"), 1);
    assert_eq!(lives("u32", plain, "f32", "b[i] = 1.0;"), 2);
    assert_eq!(lives("u32", plain, "Atomic<u32>", "b[i].store(1);"), 2);
    assert_eq!(
        lives("Atomic<u32>", "a[i].store(1);\nbarrier();\ny[i] = a[63 - i].load();", "Atomic<u32>", "b[i].store(1);"),
        1
    );
    // What lies past the end of the shorter one would be there in the longer.
    assert_eq!(lives("u32", "a[i] = 1;\nbarrier();\ny[i] = a[n as usize];", "u32", "b[i] = 1;"), 2);
    assert_eq!(lives("u32", plain, "u32", "b[n as usize] = 1;"), 1);
}
