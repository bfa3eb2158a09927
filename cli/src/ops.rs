//! `trefoil ops`: the op table.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use trefoil::DeviceKind;
use trefoil::graph::ElementType;
use trefoil::graph::compile::fuse::kernel::feature;
use trefoil::graph::ops::map::Accuracy;
use trefoil::graph::ops::table::{Row, rows};

use crate::Outcome;

/// Prints the table, for people or as an array of objects: `op`, `attributes`, `types`, `devices`, `formula`, `accuracy`.
pub fn table(as_json: bool) -> Outcome {
    write!(std::io::stdout(), "{}", if as_json { objects()? } else { page() })?;
    Ok(())
}

/// Writes both forms into the folder of the documentation.
pub fn docs(folder: &Path) -> Outcome {
    for (name, text) in [("src/ops.md", page()), ("ops.json", objects()?)] {
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn objects() -> Outcome<String> {
    let objects: Vec<Value> = rows().iter().map(object).collect();
    Ok(serde_json::to_string_pretty(&objects)? + "\n")
}

/// The devices of a row: kernels are written once, so that a device lacks at most types of elements.
fn object(row: &Row) -> Value {
    let Row { op, attributes, types, formula, accuracy } = row;
    let types: Vec<_> = types.iter().map(|element| element.name()).collect();
    let devices = DeviceKind::ALL.map(DeviceKind::name);
    json!({
        "op": op, "attributes": attributes, "types": types, "devices": devices, "formula": formula, "accuracy": accuracy,
    })
}

fn page() -> String {
    let devices = DeviceKind::ALL.map(DeviceKind::name).join(", ");
    let wide = ElementType::list(|element| feature(element).is_some());
    let mut page = format!(
        "# The ops\n\nEvery op runs on {devices}. Elements of {wide} are computed where the device has such arithmetic, and moved everywhere. \
         The accuracy of functions of elements is that of f32, or of f64, in units of the last place (ulp); of f16 and bf16 it is, before their own rounding, that of f32 or 2^-{} of the result, whichever is more. \
         Made by `cargo run -p trefoil-cli -- ops --docs docs`.\n\n\
         | op | computes | attributes | types | accuracy |\n|---|---|---|---|---|\n",
        Accuracy::BITS_OF_HALVES
    );
    for Row { op, attributes, types, formula, accuracy } in rows() {
        let types = if types.len() == ElementType::ALL.len() {
            "all".to_owned()
        } else {
            types.iter().map(|element| element.name()).collect::<Vec<_>>().join(", ")
        };
        let formula = formula.replace('|', "\\|");
        let accuracy = accuracy.replace('|', "\\|");
        page += &format!("| `{op}` | {formula} | {} | {types} | {accuracy} |\n", attributes.join(", "));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_are_fresh() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for (name, text) in [("src/ops.md", page()), ("ops.json", objects().unwrap_or_default())] {
            let there = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
            assert!(there == text, "docs/{name} is old: cargo run -p trefoil-cli -- ops --docs docs");
        }
    }

    #[test]
    fn no_op_is_there_twice() {
        let mut names: Vec<_> = rows().into_iter().map(|row| row.op).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
