//! What kernels assert and print: what is read of it, and what is left of it.

use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::compile::{Reports, build_with};
use trefoil_codegen::ir::{Instance, StatementKind, instantiate, statements};
use trefoil_codegen::target::{Feature, Target};
use trefoil_codegen::verify::{verify, verify_reporting};

use super::{body, kernel, outputs, refused};

#[test]
fn conditions_are_told_with_what_is_compared() {
    let told = |condition: &str| {
        let text = body(&format!("let i = n as usize; assert!({condition});"));
        let start = text.find("fail(\"").unwrap_or_else(|| panic!("nothing is told in\n{text}")) + 6;
        text[start..].split('"').next().unwrap_or_default().to_owned()
    };
    for (condition, message) in [
        ("i < x.len()", "i < x.len(): i is {0}, x.len() is {1}"),
        ("i < x.len() && (n != 3 || !c)", "i < x.len() && (n != 3 || !c): i is {0}, x.len() is {1}, n is {2}"),
        ("!(a.abs() >= -1.5)", "!(a.abs() >= -1.5): a.abs() is {0}"),
        ("x[i] == x[i] * -a", "x[i] == x[i] * -a: x[i] is {0}, x[i] * -a is {1}"),
        ("c", "c"),
        (
            "max(n, 2) as usize <= u.len() << 2",
            "max(n, 2) as usize <= u.len() << 2: max(n, 2) as usize is {0}, u.len() << 2 is {1}",
        ),
    ] {
        assert_eq!(told(condition), format!("assertion failed: {message}"));
    }
}

#[test]
fn messages_are_read_as_rust_reads_them() {
    let text = body("println!(\"{{{n}}} {} {a} {0}\", k);");
    assert!(text.contains("print(\"{{{1}}} {0} {2} {0}\", k, n, a);"), "{text}");
    let text = body("println!(\"{0} {0:#x} {named:08.3} {a:e}\", n, named = a * 2.0);");
    assert!(text.contains("print(\"{0} {0} {1} {2}\", n, (a * 2.0), a);"), "{text}");
    let text = body("println!(); print!(\"{}\", k); debug_assert_ne!(n, 2, \"not {n}\");");
    for line in ["print(\"\");", "print(\"{0}\", k);", "fail(\"assertion failed: not {0}\", n);"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn what_cannot_be_told_is_refused_at_its_place() {
    refused("assert!();", "3:1", &["takes what must hold"]);
    refused("assert!(n);", "3:9", &["expected `bool`, found `u32`"]);
    refused("assert_eq!(n, a);", "3:15", &["f32"]);
    refused("println!(\"{:?}\", x);", "3:18", &[]);
    refused("println!(\"{n:z}\");", "3:10", &["does not know the format `z`"]);
    refused("println!(\"{n\");", "3:10", &["none of what it knows"]);
    refused("println!(\"n}\");", "3:10", &["is written `}}`"]);
    refused("println!(\"{n:1$}\");", "3:10", &["none of what it knows"]);
    refused("println!(\"{n:99999999999}\");", "3:10", &["too many"]);
}

#[test]
fn reports_are_left_out_as_a_whole_or_written_to_a_buffer() {
    let source = kernel("let i = n as usize; assert!(x[i] > 0.0, \"{} {k}\", u[i]); y[i] = a;");
    let plain = kernel("let i = n as usize; y[i] = a;");
    let module = |source: &str| instantiate(&outputs(source)[0].module, &Instance::default()).unwrap();
    let verified = verify(module(&source)).unwrap();
    assert_eq!(verified.module.entry.body.len(), verify(module(&plain)).unwrap().module.entry.body.len());
    let (reporting, sites) = verify_reporting(module(&source)).unwrap();
    assert_eq!(reporting.module.bindings.len(), verified.module.bindings.len() + 1);
    assert_eq!((sites.len(), sites[0].line, sites[0].values.len()), (1, 3, 2));
    for module in [&verified.module, &reporting.module] {
        statements(&module.entry.body, &mut |statement| {
            assert!(!matches!(statement.kind, StatementKind::Report(_) | StatementKind::Reporting(_)));
        });
    }
}

#[test]
fn functions_that_report_alone_are_called_where_there_are_reports() {
    let source = "
        #[device] fn told(x: u32) { assert!(x < 5); }
        #[device] fn half(x: u32) -> u32 { told(x); x / 2 }
        #[kernel(workgroup(64))] pub fn k(y: &mut [u32]) { told(y[0]); y[1] = half(y[0]); }";
    let module = || instantiate(&outputs(source)[0].module, &Instance::default()).unwrap();
    let plain = verify(module()).unwrap().module.to_string();
    assert_eq!(plain.matches("told(").count(), 1, "its definition alone: {plain}");
    let reporting = verify_reporting(module()).unwrap().0.module.to_string();
    assert_eq!(reporting.matches("told(").count(), 3, "{reporting}");
}

#[test]
fn what_is_called_for_reports_does_not_wait() {
    let source = |statements: &str| {
        format!(
            "#[device] fn first(t: &[f32]) -> f32 {{ barrier(); t[0] }}
            #[device] fn deeper(t: &[f32]) -> f32 {{ first(t) + 1.0 }}
            #[kernel(workgroup(64))] pub fn k(y: &mut [f32]) {{
            let mut t = workgroup_array::<f32>(64); t[local_index()] = 1.0; {statements} y[global_index()] = 2.0; }}"
        )
    };
    let module = |statements: &str| instantiate(&outputs(&source(statements))[0].module, &Instance::default()).unwrap();
    for statements in ["assert!(first(&t) > 0.0);", "println!(\"{}\", deeper(&t));"] {
        let said = verify(module(statements)).unwrap_err().to_string();
        assert!(said.contains("computed for reports alone") && said.contains("this waits"), "{said}");
    }
    verify(module("let v = deeper(&t); assert!(v > 0.0);")).unwrap();
}

/// A kernel over `x: &[i64], d: &[f64], z: &mut [f64]` in the form that reports.
fn reporting(attribute: &str, statements: &str) -> Kernel {
    let source = format!(
        "#[kernel(workgroup(64){attribute})] pub fn f(x: &[i64], d: &[f64], z: &mut [f64]) {{ let i = global_index(); {statements} }}"
    );
    let built = build_with(&outputs(&source)[0].module, &Instance::default(), &Target::ALL, Reports::Buffered);
    built.unwrap_or_else(|error| panic!("{error}\nof\n{source}")).kernel
}

#[test]
fn values_of_64_bits_are_told_on_every_target() {
    for (attribute, statements) in [
        ("", "z[i] = d[i]; println!(\"{} {:?}\", x[i], d[i]);"),
        (", requires(Int64)", "z[i] = d[i]; assert!(x[i] + 1 > 0);"),
        (", requires(Float64)", "z[i] = d[i] * 0.5; assert!(d[i] >= 0.0, \"{} {}\", d[i], x[i]);"),
    ] {
        let kernel = reporting(attribute, statements);
        for target in [Target::Wgsl, Target::Spirv, Target::Cuda] {
            assert!(kernel.variants.iter().any(|variant| variant.target == target), "{target:?} of {statements}");
        }
        assert_eq!(kernel.sites.len(), 1);
    }
    // Where there are doubles, their words are those of integers.
    let statements = "if const { target::has(Feature::Float64) } { z[i] = d[i] * 0.5; } println!(\"{}\", d[i]);";
    let kernel = reporting("", statements);
    for target in [Target::Wgsl, Target::Spirv] {
        let of = kernel.variants.iter().filter(|variant| variant.target == target);
        let features: Vec<_> = of.map(|variant| variant.features).collect();
        assert!(features.iter().any(|set| !set.has(Feature::Float64)), "{target:?}");
        assert!(features.iter().any(|set| set.has(Feature::Float64) && set.has(Feature::Int64)), "{target:?}");
        assert!(features.iter().all(|set| set.has(Feature::Int64) || !set.has(Feature::Float64)), "{target:?}");
    }
}
