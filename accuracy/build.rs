//! Writes the kernels that are measured: for each float type and number of arguments one, which calls a function of the language by its number.
//!
//! Which functions there are is read from the compiler's own table, so that a new one is measured without a word here.

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use trefoil_codegen::ir::{MathFunction, OperandType, Scalar, Type};

const ARGUMENTS: [&str; 3] = ["x", "y", "z"];

/// Whether a function takes floats of that type alone, gives one, and has a reference that is better: what `f64` does not compute exactly needs one of more digits than `f64` has.
fn is_measured(function: MathFunction, scalar: Scalar, arguments: usize) -> bool {
    let same = function.operands().iter().all(|operand| *operand == OperandType::Same);
    let called = !function.name().contains(' ');
    let shaped = function.arguments() == arguments && function.is_lanewise() && function.gives() == OperandType::Same;
    let better = scalar != Scalar::F64 || function.is_exact();
    called && shaped && same && better && function.takes(&Type::Scalar(scalar))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    let mut tables = String::new();
    for scalar in [Scalar::F32, Scalar::F16, Scalar::BF16, Scalar::F64] {
        for count in 1..=ARGUMENTS.len() {
            let functions: Vec<MathFunction> =
                MathFunction::ALL.iter().copied().filter(|one| is_measured(*one, scalar, count)).collect();
            let Some((last, others)) = functions.split_last() else { continue };
            let (ty, given) = (scalar.rust_name(), &ARGUMENTS[..count]);
            let kernel = format!("functions_of_{count}_{ty}");
            let slices: Vec<String> = given.iter().map(|name| format!("{name}: &[{ty}]")).collect();
            let values: Vec<String> = given.iter().map(|name| format!("{name}[i]")).collect();
            let values = values.join(", ");
            let requires = if scalar == Scalar::F64 { ", requires(Float64)" } else { "" };
            writeln!(text, "/// Functions of {count} `{ty}`, by number.\n#[kernel(workgroup(64){requires})]")?;
            writeln!(text, "pub fn {kernel}({}, out: &mut [{ty}], which: u32) {{", slices.join(", "))?;
            writeln!(text, "    let i = global_index();\n    if i < out.len() {{\n        out[i] = match which {{")?;
            for (number, function) in others.iter().enumerate() {
                writeln!(text, "            {number} => {}({values}),", function.name())?;
            }
            writeln!(text, "            _ => {}({values}),\n        }};\n    }}\n}}\n", last.name())?;
            let names: Vec<String> = functions.iter().map(|function| format!("MathFunction::{function:?}")).collect();
            let buffers: Vec<String> = (0..count).map(|argument| format!("&given[{argument}]")).collect();
            writeln!(
                tables,
                "    Group::of::<{ty}>(\"{ty}\", &[{}], |given, out, which| {kernel}({}, out, which)),",
                names.join(", "),
                buffers.join(", ")
            )?;
        }
    }
    let tables = format!("/// Every group.\npub fn groups() -> Vec<Group> {{\n    vec![\n{tables}    ]\n}}\n");
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("kernels.rs");
    std::fs::write(out, text + &tables)?;
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
