//! Function parameters, closures, methods and operators of structs: what becomes of them, and what is said about mistakes.

use trefoil_codegen::ir::{Instance, instantiate};
use trefoil_codegen::verify::verify;

use super::{ir, mistakes, outputs};

const REDUCE: &str = "
#[device] fn reduce<F: Fn(f32, f32) -> f32>(x: &[f32], first: f32, combine: F) -> f32 {
    let mut result = first;
    for i in 0..x.len() { result = combine(result, x[i]); }
    result
}
#[device] fn product(a: f32, b: f32) -> f32 { a * b }
#[device] fn twice<T: Number>(a: T, b: T) -> T { a + b + b }
";

fn with(prelude: &str, statements: &str) -> String {
    format!(
        "{prelude}#[kernel(workgroup(64))] pub fn f(x: &[f32], z: &[f32], y: &mut [f32], u: &[u32], a: f32) {{\n{statements}\n}}"
    )
}

/// What is said about a kernel with this body, which begins in the line after `prelude`'s last.
fn refused(prelude: &str, statements: &str, position: &str, words: &[&str]) {
    let said = mistakes(&with(prelude, statements));
    assert_eq!(said.lines().count(), 1, "one mistake, one message:\n{said}");
    assert!(said.starts_with(&format!("{position}: ")), "expected it at {position}:\n{said}\n{statements}");
    for word in words {
        assert!(said.contains(word), "expected `{word}` in:\n{said}");
    }
}

#[test]
fn a_helper_has_one_copy_for_each_function_that_it_is_given() {
    let text = ir(&with(
        REDUCE,
        "y[0] = reduce(x, 0.0, |a, b| a.max(b)) + reduce(x, 1.0, |a, b| a.max(b));
         y[1] = reduce(x, 1.0, product);
         y[2] = reduce(x, 1.0, twice) + reduce(x, 1.0, twice::<f32>);
         y[3] = reduce(x, 1.0, max) + reduce(x, 1.0, f32::max);
         y[4] = reduce(z, 1.0, f32::min);",
    ));
    // Two ways to write `twice` are two functions; of the mathematical library there is one.
    assert_eq!(text.matches("fn reduce").count(), 6, "{text}");
    for line in [
        "let a.2: f32 = result.0;",
        "result.0 = max(a.2, b.3);",
        "result.0 = product(result.0, x[",
        "result.0 = max(result.0, x[",
        "result.0 = twice(result.0, x[",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn functions_are_handed_on() {
    let text = ir("
        #[device] fn apply<T: Number, F>(x: T, f: &F) -> T where F: Fn(T) -> T { f(x) }
        #[device] fn rows<T: Number, F: Fn(T) -> T + Copy>(x: &[T], f: F) -> T { apply(x[0], &f) + apply(x[1], &f) }
        #[device] fn both(x: f32, f: impl Fn(f32) -> f32, g: impl Fn(f32) -> f32) -> f32 { f(g(x)) }
        #[kernel(workgroup(64))] pub fn k(x: &[f32], u: &[u32], y: &mut [f32]) {
            y[0] = rows(x, |v| v * 2.0);
            y[1] = rows(u, |v| v * 2) as f32;
            y[2] = both(x[0], |v: f32| -> f32 { let w = v + 1.0; if w > 2.0 { w } else { 0.5 } }, |v| apply(v, sqrt));
        }");
    assert_eq!(text.matches("fn apply").count(), 3, "{text}");
    assert!(text.contains("fn apply(x: f32) -> f32") && text.contains("fn apply_1(x: u32) -> u32"), "{text}");
    assert!(text.contains("sqrt(x)"), "{text}");
}

#[test]
fn functions_of_slices_and_without_a_result() {
    let text = ir("
        #[device] fn each(count: usize, f: impl Fn(usize)) { for i in 0..count { f(i); } }
        #[device] fn read(x: &[f32], f: impl Fn(&[f32], usize) -> f32) -> f32 { f(x, 1) + f(x, 2) }
        #[device] fn at(x: &[f32], i: usize) -> f32 { x[i] }
        #[kernel(workgroup(64))] pub fn k(x: &[f32], y: &mut [f32]) {
            y[0] = read(x, at) + read(x, |v, i| v[i] * 2.0);
            each(4, |_| barrier());
        }");
    assert!(text.contains("barrier") && text.contains("* 2.0"), "{text}");
}

#[test]
fn a_closure_captures_nothing() {
    refused(
        REDUCE,
        "y[0] = reduce(x, 0.0, |p, q| p + q * a);",
        "10:38",
        &["would capture `a`", "pass it to the function as an argument"],
    );
    refused(REDUCE, "let w = 2.0; y[0] = reduce(x, w, |p, q| p + q * w);", "10:49", &["would capture `w`"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, |p, q| p + z[0]);", "10:34", &["would capture `z`"]);
}

#[test]
fn a_closure_does_not_see_the_names_of_the_helper() {
    let text = ir("
        #[device] fn scale(x: f32) -> f32 { x * 2.0 }
        #[device] const LIMIT: f32 = 3.0;
        #[device] fn apply(x: f32, scale: f32, limit: f32, f: impl Fn(f32) -> f32) -> f32 { let s = scale + limit; f(x) * s }
        #[kernel(workgroup(64))] pub fn k(x: &[f32], y: &mut [f32]) {
            y[0] = apply(x[0], 3.0, 1.0, |v| scale(v).min(LIMIT));
        }");
    assert!(text.contains("min(scale(v.1), 3.0) * s.0"), "{text}");
}

#[test]
fn a_type_parameter_has_no_functions_of_a_trait() {
    let said = mistakes("#[device] fn f<O: Number>(x: O) -> O { O::apply(x) }");
    assert!(said.contains("no function `O::apply`") && said.contains("impl Fn(f32) -> f32"), "{said}");
    assert!(!said.contains("conversions"), "{said}");
}

#[test]
fn functions_that_do_not_fit() {
    refused(
        REDUCE,
        "y[0] = reduce(x, 0.0, |p| p);",
        "10:23",
        &["a function of 2 parameters is wanted here, this closure has 1"],
    );
    refused(REDUCE, "y[0] = reduce(x, 0.0, |p, q| 1);", "10:30", &["expected `f32`", "2.0"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, |p: u32, q| 1.0);", "10:24", &["this parameter is a `f32`"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, a);", "10:23", &["`a` is a variable"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, exp);", "10:23", &["`exp` takes 1 argument, 2 given"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, 1.0);", "10:23", &["expected a function"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, nothing);", "10:23", &["no function `nothing` is known"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, twice::<u32>);", "10:23", &["`twice` takes `u32`"]);
    refused(REDUCE, "y[0] = reduce(x, 0.0, |p, q| { return p; });", "10:32", &["`return`"]);
    refused(REDUCE, "let t = |v: f32| v;", "10:9", &["a closure stands as an argument"]);
}

#[test]
fn function_types_that_are_none() {
    let whole = |source: &str, position: &str, word: &str| {
        let said = mistakes(source);
        assert!(said.starts_with(&format!("{position}: ")) && said.contains(word), "{said}\n{source}");
    };
    whole("#[device] fn f<F: FnMut(f32) -> f32>(x: f32, g: F) -> f32 { x }", "1:16", "bounded by `Fn`");
    whole("#[device] fn f(x: impl Copy) -> f32 { 1.0 }", "1:19", "`impl Trait` is for functions alone");
    whole("#[device] fn f<F: Fn(f32) -> f32>(g: F) -> f32 { let h = g; 1.0 }", "1:58", "a function is no value");
    whole("#[device] fn f<F: Fn(f32) -> f32>(g: F) -> f32 { g(1.0, 2.0) }", "1:50", "`g` takes 1 argument, 2 given");
    whole("#[device] fn f<F: Fn(f32) -> f32>(g: F) -> u32 { g(1.0) }", "1:50", "expected `u32`, found `f32`");
    whole(
        "#[kernel(workgroup(64))] fn k(y: &mut [f32], g: impl Fn(f32) -> f32) { y[0] = g(1.0); }",
        "1:49",
        "a kernel takes no functions",
    );
    whole(
        "#[device] fn f<T: Number>(x: T) -> T where f32: Copy { x }",
        "1:44",
        "bounds type parameters of this function",
    );
}

const COMPLEX: &str = "
#[device] struct Complex { re: f32, im: f32 }
#[device] impl Complex {
    const ONE: Complex = Complex { re: 1.0, im: 0.0 };
    const SIDES: usize = 2;
    fn new(re: f32, im: f32) -> Self { Self { re, im } }
    fn norm(&self) -> f32 { self.re * self.re + self.im * self.im }
    fn scaled(mut self, by: f32) -> Self { self.re *= by; self.im *= by; self }
    fn unit(self) -> Complex { if self.norm() == 0.0 { return Self::ONE; } self.scaled(1.0 / self.norm()) }
    fn turn(&mut self) { let re = self.re; self.re = -self.im; self.im = re; }
    fn turn_twice(&mut self) { self.turn(); Self::turn(self); }
    fn map<F: Fn(f32) -> f32 + Copy>(self, f: F) -> Self { Self::new(f(self.re), f(self.im)) }
}
#[device] impl Add for Complex { type Output = Complex; fn add(self, other: Self) -> Self::Output { Self::new(self.re + other.re, self.im + other.im) } }
#[device] impl Mul for Complex { type Output = Self; fn mul(self, o: Complex) -> Self { Complex::new(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re) } }
#[device] impl Mul<f32> for Complex { type Output = Self; fn mul(self, by: f32) -> Self { self.scaled(by) } }
#[device] impl Neg for Complex { type Output = Self; fn neg(self) -> Self { Complex::new(-self.re, -self.im) } }
#[device] impl AddAssign for Complex { fn add_assign(&mut self, other: Self) { self.re += other.re; self.im += other.im; } }
#[device] impl PartialEq for Complex { fn eq(&self, other: &Self) -> bool { self.re == other.re && self.im == other.im } }
#[device] enum Act { Relu, Gelu, Keep }
#[device] impl Act {
    const FIRST: Act = Act::Relu;
    fn apply(self, x: f32) -> f32 { match self { Self::Relu => x.max(0.0), Act::Gelu | Act::Keep => x } }
    fn next(self) -> Self { match self { Act::Relu => Act::Gelu, _ => Act::Keep } }
}
";

#[test]
fn methods_of_structs_and_enums() {
    let text = ir(&format!(
        "{COMPLEX}
        #[kernel(workgroup(64))] pub fn k(z: &mut [Complex], y: &mut [f32], act: Act) {{
            let mut c = z[0];
            c.turn_twice();
            z[1].turn();
            z[2] = c.unit().scaled(2.0).map(|v| v + 1.0);
            z[3] = Complex::new(1.0, c.norm());
            let sides = [0.0; Complex::SIDES];
            y[0] = act.next().apply(Complex::ONE.re) + Act::FIRST.apply(c.re) + sides[1] + z[4].norm();
        }}"
    ));
    for line in [
        "fn Complex_new(re: f32, im: f32) -> Complex",
        "fn Complex_norm(this: Complex) -> f32",
        "fn Complex_scaled(this: Complex, by: f32) -> Complex",
        "fn Complex_turn(this: &mut Complex)",
        "Complex_turn_twice(&mut c.0);",
        "[f32; 2]::splat(0.0)",
        "fn Act_next(this: Act) -> Act",
        "let mut this.0: Complex = this;",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn an_arm_takes_as_many_variants_as_there_are() {
    let variants: Vec<String> = (0..70).map(|number| format!("V{number}")).collect();
    let most: Vec<String> = variants[1..].iter().map(|variant| format!("E::{variant}")).collect();
    let source = format!(
        "#[device] enum E {{ {} }}
        #[kernel(workgroup(64))] pub fn k(e: E, y: &mut [f32]) {{ y[0] = match e {{ {} => 1.0, _ => 2.0 }}; }}",
        variants.join(", "),
        most.join(" | ")
    );
    let module = instantiate(&outputs(&source)[0].module, &Instance::default()).unwrap();
    verify(module).unwrap_or_else(|errors| panic!("{errors}"));
}

#[test]
fn operators_of_structs() {
    let text = ir(&format!(
        "{COMPLEX}
        #[kernel(workgroup(64))] pub fn k(z: &mut [Complex], y: &mut [f32]) {{
            z[0] = (z[1] + z[2]) * z[3] * 2.0 + -z[4];
            z[5] += z[0];
            if z[0] == z[1] && z[2] != z[3] {{ y[0] = 1.0; }}
        }}"
    ));
    for line in [
        "Complex_add(Complex_mul_1(Complex_mul(Complex_add(z[?1], z[?2]), z[?3]), 2.0), Complex_neg(z[?4]))",
        "Complex_add_assign(&mut part",
        "!Complex_eq(z[?2], z[?3])",
    ] {
        assert!(text.contains(line), "expected `{line}` in\n{text}");
    }
}

#[test]
fn members_that_are_none() {
    let lines = COMPLEX.lines().count() + 2;
    let said = |statements: &str, column: usize, words: &[&str]| {
        let said = mistakes(&format!(
            "{COMPLEX}#[kernel(workgroup(64))] pub fn k(z: &mut [Complex], c: &[Complex], y: &mut [f32], act: Act) {{\n{statements}\n}}"
        ));
        assert_eq!(said.lines().count(), 1, "one mistake, one message:\n{said}");
        assert!(
            said.starts_with(&format!("{lines}:{column}: ")),
            "expected it at {lines}:{column}:\n{said}\n{statements}"
        );
        for word in words {
            assert!(said.contains(word), "expected `{word}` in:\n{said}");
        }
    };
    said("y[0] = z[0].length();", 13, &["`Complex` has no `length`", "it has ONE, SIDES, new, norm"]);
    said("z[0] = Complex::zero();", 8, &["`Complex` has no `zero`"]);
    said("z[0] = Complex::ZERO;", 8, &["`Complex` has no `ZERO`"]);
    said("y[0] = z[0].norm(1.0);", 8, &["`norm` takes 0 arguments, 1 given"]);
    said("y[0] = z[0].new(1.0, 2.0).re;", 13, &["takes no `self`", "Complex::new"]);
    said("c[0].turn();", 1, &["read only"]);
    said("z[0] = z[0] / z[1];", 13, &["`Complex` has no `/`", "operators(..)"]);
    said("z[0] -= z[1];", 6, &["`Complex` has no `-=`"]);
    said("y[0] = act.length();", 12, &["`Act` has no `length`"]);
    said("z[0] = z[0] * act;", 15, &["expected `Complex`, found `Act`"]);
}

#[test]
fn blocks_that_are_wrong() {
    let whole = |source: &str, word: &str| {
        let said = mistakes(source);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(word), "{said}\n{source}");
    };
    let c = "#[device] struct C { x: f32 }\n";
    whole(&format!("{c}#[device] impl<T> C {{ fn f(self) -> f32 {{ 1.0 }} }}"), "`impl` blocks with generics");
    whole(
        &format!("{c}#[device] impl Default for C {{ fn default() -> Self {{ C {{ x: 1.0 }} }} }}"),
        "of an operator's trait",
    );
    whole("#[device] impl f32 { fn f(self) -> f32 { 1.0 } }", "a struct or enum that carries #[device]");
    whole(&format!("{c}#[device] impl C {{ fn f(self) -> f32 {{ self.f() }} }}"), "`f` calls itself");
    whole(&format!("{c}#[device] impl C {{ fn f(&self) {{ self.x = 1.0; }} }}"), "and `self` as `&mut self`");
    whole(&format!("{c}#[device] impl C {{ fn f(self) -> f32 {{ self.y }} }}"), "`C` has no field `y`");
    whole(&format!("{c}#[device] impl C {{ const X: u32 = 1.0; }}"), "expected `u32`");
    whole("#[device] fn f(self) -> f32 { 1.0 }", "`self` stands in a #[device] `impl` alone");
}

#[test]
fn bounds_of_type_parameters() {
    let text = ir("
        #[device] fn pick<T: Int, U>(x: T, y: U, bits: u32) -> T where U: Number { let low = x & !(!T::lit(0.0) << bits); if y > U::lit(1.0) { low } else { doubled(low ^ x) } }
        #[device] fn doubled<T: Number>(x: T) -> T { x + x }
        #[kernel(workgroup(64), instances(T = [i32, u32], U = [f32, u32], N = [2, 3]))]
        pub fn k<T, U: Number, const N: usize>(x: &[T], v: &[U], y: &mut [T]) where T: Int {
            let parts = [v[0]; N];
            y[0] = pick(x[0], parts[N - 1], count_ones(x[1])) % x[2];
        }");
    assert!(text.contains("fn pick(x: T, y: U, bits: u32) -> T") && text.contains("fn doubled(x: T) -> T"), "{text}");
    let said = |bound: &str, body: &str| mistakes(&format!("#[device] fn f<T: {bound}>(x: T) -> T {{ {body} }}"));
    assert!(said("Number", "x & x").contains("bound it by `Int` for bits"));
    assert!(said("Element", "x + x").contains("`Element` is only moved about"));
    assert!(said("Int", "x.sqrt()").contains("`sqrt` works on f32"));
    let said = mistakes("#[kernel(workgroup(64), instances(T = [f32]))] fn f<T: Int>(y: &mut [T]) {}");
    assert!(said.contains("an `Int` is one of i32, u32, i8, u8, i16, u16, i64 and u64"), "{said}");
}

#[test]
fn structs_hold_enums_outside_of_buffers() {
    let source = |parameter: &str| {
        format!(
            "#[device] enum Act {{ Keep, Relu }}
            #[device] struct Layer {{ scale: f32, act: Act }}
            #[device] struct Two {{ layers: [Layer; 2] }}
            #[device] fn apply(l: Layer, x: f32) -> f32 {{ match l.act {{ Act::Keep => x, Act::Relu => l.scale * x }} }}
            #[kernel(workgroup(64))] pub fn k({parameter} y: &mut [f32], act: Act) {{
                let mut layers = Two {{ layers: [Layer {{ scale: 2.0, act }}, Layer {{ scale: 3.0, act: Act::Keep }}] }};
                if layers.layers[0].act == Act::Keep {{ layers.layers[1].act = Act::Relu; }}
                y[0] = apply(layers.layers[1], apply(layers.layers[0], y[0]));
            }}"
        )
    };
    assert!(ir(&source("")).contains("struct Layer { scale: f32, act: Act }"));
    let said = mistakes(&source("x: &[Two],"));
    assert!(
        said.starts_with("5:52: ") && said.contains("`Two` holds the enum `Act`") && said.contains("as a u32"),
        "{said}"
    );
    for (parameter, found) in [("l: Layer,", "`Layer`"), ("l: [Two; 3],", "`[Two; 3]`"), ("l: [Act; 2],", "`[Act; 2]`")]
    {
        let said = mistakes(&source(parameter));
        assert!(said.starts_with(&format!("5:50: {found} has the enum `Act` in it")), "{said}");
        assert!(said.contains("by itself, or keep it as a u32"), "{said}");
    }
}
