//! `strict` and `fast`: how they reach the functions that are called, what each target makes of them, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/native.rs"]
mod native;
#[path = "support/nvrtc.rs"]
mod nvrtc;
#[path = "support/spirv_val.rs"]
mod spirv_val;

use trefoil_codegen::emit::{cuda, spirv, wgsl};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Instance, Module, Precision, instantiate};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Feature, Target};
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

fn kernel(source: &str) -> Module {
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    instantiate(&outputs.into_iter().next().unwrap().module, &Instance::default()).unwrap()
}

fn lowered(module: &Module, target: Target) -> Lowered {
    let verified = verify(module.clone()).unwrap_or_else(|errors| panic!("{errors}"));
    let (profile, transport) = variants(&verified).into_iter().find(|(profile, _)| profile.target == target).unwrap();
    lower(&verified, &profile, transport).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(source: &str, words: &[&str]) {
    let error = match parse_source(source) {
        Err(errors) => errors.to_string(),
        Ok(outputs) => verify(outputs.into_iter().next().unwrap().module).unwrap_err().to_string(),
    };
    for word in words {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/precision",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => "made from the kernels of codegen/tests/precision.rs",
    }, {
        insta::assert_snapshot!(name, text);
    });
}

const STRICT: &str = "
#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(Float64), strict)]
fn strict(x: &[Vec3<f32>], d: &[f64], y: &mut [f32], z: &mut [f64]) {
    let i = global_index();
    let v = x[i];
    let w = v * v - v;
    y[i] = dot(v, w) + mix(v.x, v.y, v.z) * sqrt(v.x) / v.y;
    z[i] = d[i] * d[i] + 1.0;
}";

const FAST: &str = "
#[kernel(workgroup(64), fast)]
fn fast(x: &[Vec2<f32>], y: &mut [f32]) {
    let i = global_index();
    let v = x[i];
    let w = v.exp() / sqrt(v);
    y[i] = tanh(w.x) + powf(w.x, w.y) * log10(v.x) + min(v.x, v.y) + sin(v.x) * ln(v.y);
}";

#[test]
fn every_target_says_it_in_its_way() {
    for (source, has_wgsl) in [(STRICT, false), (FAST, true)] {
        let module = kernel(source);
        let name = module.name.clone();
        native::record(&name, |target| lowered(&module, target), snapshot);
        if has_wgsl {
            let text = wgsl::emit(&lowered(&module, Target::Wgsl)).unwrap();
            wgsl::validate(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            snapshot(&format!("{name}.wgsl"), &text);
        }
    }
}

/// In strict code no sum, difference or product is left to be contracted.
#[test]
fn nothing_is_left_to_contract() {
    let text = spirv::disassemble(&spirv::emit(&lowered(&kernel(STRICT), Target::Spirv)).unwrap());
    let decorated = text.matches("NoContraction").count();
    let rounding = ["OpFAdd", "OpFSub", "OpFMul", "OpFDiv"].map(|op| text.matches(op).count()).iter().sum::<usize>();
    assert!(rounding > 10 && decorated == rounding, "{decorated} of {rounding}\n{text}");
    assert!(!text.contains("OpDot"), "{text}");
}

/// Nor where a variable is assigned what it was, and something else.
#[test]
fn variables_are_multiplied_and_added_to_one_by_one() {
    let source = "#[kernel(workgroup(64), targets(spirv, cuda, cpu)PRECISION)]
    fn k(x: &[f32], y: &mut [f32]) {
        let i = global_index();
        let mut s = x[i];
        s *= x[i + 1];
        s += x[i + 2];
        s -= x[i + 3];
        s /= x[i + 4];
        y[i] = s;
    }";
    let text = |precision: &str| {
        let module = kernel(&source.replace("PRECISION", precision));
        cuda::emit(&lowered(&module, Target::Cuda)).unwrap()
    };
    let (usual, strict, fast) = (text(""), text(", strict"), text(", fast"));
    for operator in ["*=", "+=", "-=", "/="] {
        assert!(usual.contains(&format!("s {operator} ")), "{usual}");
        assert!(!strict.contains(&format!("s {operator} ")), "{strict}");
    }
    for function in ["__fmul_rn(s, ", "__fadd_rn(s, ", "__fsub_rn(s, ", "__fdiv_rn(s, "] {
        assert!(strict.contains(function), "{strict}");
    }
    assert!(fast.contains("__fdividef(s, ") && fast.contains("s *= "), "{fast}");
}

/// A function that says nothing is as its caller; one that says something is what it says.
#[test]
fn a_function_is_as_its_caller_unless_it_says_otherwise() {
    let source = "
    #[device]
    fn plain(x: f32) -> f32 { x * x + 1.0 }
    #[device(strict)]
    fn exact(x: f32) -> f32 { plain(x) * x + 1.0 }
    #[device(fast)]
    fn quick(x: f32) -> f32 { plain(x) + exp(x) }
    #[device(methods)]
    struct Pair { a: f32, b: f32 }
    #[device(strict)]
    impl Pair { fn sum(self) -> f32 { self.a * self.b + plain(self.a) } }
    #[kernel(workgroup(64), targets(spirv, cuda, cpu))]
    fn mixed(y: &mut [f32]) {
        let x = y[0];
        let pair = Pair { a: x, b: x };
        y[0] = plain(x) + exact(x) + quick(x) + pair.sum();
    }";
    let module = kernel(source);
    let mut found: Vec<(String, Precision)> =
        module.functions.iter().map(|(_, function)| (function.name.clone(), function.precision)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("Pair_sum", Precision::Strict),
        ("exact", Precision::Strict),
        ("plain", Precision::Usual),
        ("plain_1", Precision::Strict),
        ("plain_2", Precision::Fast),
        ("quick", Precision::Fast),
    ];
    assert_eq!(found.iter().map(|(name, precision)| (name.as_str(), *precision)).collect::<Vec<_>>(), expected);
    assert_eq!(module.entry.precision, Precision::Usual);
    let strict = kernel(&source.replace("cpu))]", "cpu), strict)]"));
    assert!(
        strict
            .functions
            .iter()
            .all(|(_, function)| function.name != "plain" || function.precision == Precision::Strict)
    );
    assert_eq!((strict.entry.precision, strict.functions.len()), (Precision::Strict, 5));
}

#[test]
fn wgsl_cannot_be_strict() {
    let words = ["`strict` needs `Feature::Strict`, which wgsl never has", "list `targets(spirv, cuda, cpu)` alone"];
    refused("#[kernel(workgroup(64), strict)] fn k(x: &mut [f32]) { x[0] = x[0] * x[1] + x[2]; }", &words);
    refused(
        "#[device(strict)] fn f(x: f32) -> f32 { x * x + 1.0 } #[kernel(workgroup(64))] fn k(x: &mut [f32]) { x[0] = f(x[0]); }",
        &words,
    );
    // Where nothing is rounded there is nothing to keep apart.
    let integers = kernel("#[kernel(workgroup(64), strict)] fn k(x: &mut [u32]) { x[0] = x[0] * x[1] + x[2]; }");
    assert!(variants(&verify(integers).unwrap()).iter().any(|(profile, _)| profile.target == Target::Wgsl));
}

/// Code chooses by the feature, and what is called in the arm that is left out needs nothing.
#[test]
fn a_kernel_may_be_strict_where_it_can() {
    let source = "
    #[device(strict)]
    fn exact(x: f32) -> f32 { x * x + 1.0 }
    #[device]
    fn near(x: f32) -> f32 { x * x + 1.0 }
    #[kernel(workgroup(64))]
    fn k(x: &mut [f32]) {
        let v = x[0];
        if const { target::has(Feature::Strict) } { x[0] = exact(v); } else { x[0] = near(v); }
    }";
    let verified = verify(kernel(source)).unwrap();
    for (profile, transport) in variants(&verified) {
        let lowered = lower(&verified, &profile, transport).unwrap();
        let names: Vec<&str> = lowered.module.functions.iter().map(|(_, function)| function.name.as_str()).collect();
        assert_eq!(names, [if profile.target == Target::Wgsl { "near" } else { "exact" }]);
        assert_eq!(profile.features.has(Feature::Strict), profile.target != Target::Wgsl);
    }
}

#[test]
fn words_are_given_once_and_where_they_mean_something() {
    refused(
        "#[kernel(workgroup(64), strict, fast)] fn k(x: &mut [f32]) { x[0] = 1.0; }",
        &["`strict` or `fast`, not both"],
    );
    refused("#[kernel(workgroup(64), fast, fast)] fn k(x: &mut [f32]) { x[0] = 1.0; }", &["`fast` is given twice"]);
}
