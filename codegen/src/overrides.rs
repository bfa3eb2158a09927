//! Specialisation constants in WGSL: how they are declared, and a text in which they have their values.
//!
//! An artefact's WGSL declares them as overrides, which whoever makes a pipeline gives values. naga settles overrides by computing with every constant of the module again, in which it refuses modules that it has
//! called valid, and panics at others. So a device whose WGSL goes to naga writes the values into the text first.

use crate::artefact::{Constant, ParamScalar};

/// The line that declares a constant: `@id(0) override TILE: u32 = 16u;`
#[cfg(feature = "wgsl")]
pub(crate) fn declaration(position: usize, name: &str, ty: &str, scalar: ParamScalar, value: i64) -> String {
    format!("@id({position}) override {name}: {ty} = {};", literal(scalar, value))
}

fn literal(scalar: ParamScalar, value: i64) -> String {
    match scalar {
        ParamScalar::Bool => (value != 0).to_string(),
        ParamScalar::I32 => format!("i32({value})"),
        _ => format!("{value}u"),
    }
}

/// The text with the values of its kernel's constants, and without overrides: `const TILE: u32 = 64u;`
pub fn settled(text: &str, constants: &[Constant]) -> String {
    text.split_inclusive('\n').map(|line| settled_line(line, constants).unwrap_or_else(|| line.to_owned())).collect()
}

/// The line with the value, if it declares one of the constants.
fn settled_line(line: &str, constants: &[Constant]) -> Option<String> {
    let (position, declared) = line.strip_prefix("@id(")?.split_once(") override ")?;
    let (name_and_type, _) = declared.split_once(" = ")?;
    let constant = constants.get(position.parse::<usize>().ok()?)?;
    Some(format!("const {name_and_type} = {};\n", literal(constant.scalar, constant.value)))
}

#[cfg(all(test, feature = "wgsl"))]
mod tests {
    use super::*;

    fn constant(scalar: ParamScalar, value: i64) -> Constant {
        Constant { name: "c".into(), scalar, value, low: i64::MIN, high: i64::MAX, multiple: 1 }
    }

    #[test]
    fn values_take_the_place_of_overrides() {
        let lines = [
            declaration(0, "TILE", "u32", ParamScalar::Index, 16),
            declaration(1, "SCALE", "i32", ParamScalar::I32, -2),
            declaration(2, "ROUND", "bool", ParamScalar::Bool, 1),
        ];
        assert_eq!(lines[0], "@id(0) override TILE: u32 = 16u;");
        assert_eq!(lines[1], "@id(1) override SCALE: i32 = i32(-2);");
        let text = format!("{}\nfn f() {{}}\n", lines.join("\n"));
        let constants =
            [constant(ParamScalar::Index, 64), constant(ParamScalar::I32, -8), constant(ParamScalar::Bool, 0)];
        let wanted = "const TILE: u32 = 64u;\nconst SCALE: i32 = i32(-8);\nconst ROUND: bool = false;\nfn f() {}\n";
        assert_eq!(settled(&text, &constants), wanted);
    }

    #[test]
    fn other_lines_stay() {
        let text = "struct Params {\n    n: u32,\n}\n@id(3) override OTHER: u32 = 1u;\n@group(0) @binding(0) var<uniform> params: Params;";
        assert_eq!(settled(text, &[]), text);
    }
}
