//! The page that shows what was measured: a column a device.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use crate::measure::{Measured, SAMPLES, SEED, Worst};

/// What was measured, by the names of the files.
///
/// # Errors
/// A file cannot be read.
pub fn read(folder: &Path) -> Result<BTreeMap<String, Measured>, Box<dyn Error>> {
    let mut all = BTreeMap::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path)?;
            all.insert(name, serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(all)
}

/// An error, as short as it may be said.
fn cell(worst: Option<&Worst>) -> String {
    let Some(worst) = worst else { return "-".to_owned() };
    match worst.steps {
        None => format!("no number at {}", numbers(&worst.at)),
        Some(0.0) => "0".to_owned(),
        Some(steps) if steps < 9.95 => format!("{steps:.2}"),
        Some(steps) if steps < 100.0 => format!("{steps:.0}"),
        Some(steps) => format!(
            "{} ({:.0e})",
            if steps < 1e5 { format!("{steps:.0}") } else { format!("{steps:.0e}") },
            worst.absolute
        ),
    }
}

fn numbers(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:e}")).collect::<Vec<_>>().join(", ")
}

/// The page.
///
/// # Errors
/// Nothing that happens: text is written to memory.
pub fn page(all: &BTreeMap<String, Measured>) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(
        page,
        "# How exact functions are\n\n\
         The largest error of each mathematical function, measured on devices, in units of the last place of the type: the distance of neighbouring numbers at the exact result. The functions \
         and their inputs are those of the package `trefoil-accuracy`, which takes the list of functions from the compiler; `cargo run --release -p trefoil-accuracy -- measure \
         --device NAME --into docs/accuracy/COLUMN.json` measures a device, and `cargo run -p trefoil-accuracy -- page` writes this page from all the files there, which also tell \
         where the largest error is.\n\n\
         Each row is {SAMPLES} inputs from a seeded sequence ({SEED:#x}) and every combination of the range's ends, their neighbours, 0, 0.5, 1 and 2, against a reference in `f64`. Where \
         the error is 100 units or more, the largest error of results up to 1 in size follows as a number. A result below the smallest normal number may be 0 or anything up to that number, since devices may \
         flush those; infinities and NaN are held to their meaning by the tests (`tests/meaning.rs`), not here. Errors of `mul_add` and `mix` are counted in units of the largest number that is added, those of \
         `rem_euclid` in units of the larger argument, those of `smoothstep` in units of 1.\n\n## Devices\n"
    )?;
    for (name, Measured { device, name: adapter, driver, .. }) in all {
        writeln!(page, "* `{name}`: {device}, {adapter}, {driver}")?;
    }
    let mut keys: Vec<[&str; 3]> = Vec::new();
    for measured in all.values() {
        for row in &measured.rows {
            let key = [row.scalar.as_str(), row.function.as_str(), row.inputs.as_str()];
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let mut scalars: Vec<&str> = keys.iter().map(|[scalar, ..]| *scalar).collect();
    scalars.dedup();
    for scalar in scalars {
        let columns: Vec<&str> = all.keys().map(String::as_str).collect();
        writeln!(page, "\n## `{scalar}`\n\n| function | inputs | {} |", columns.join(" | "))?;
        writeln!(page, "|---|---|{}", "---|".repeat(columns.len()))?;
        for [_, function, inputs] in keys.iter().filter(|[other, ..]| *other == scalar) {
            let cells: Vec<String> = all
                .values()
                .map(|measured| {
                    let same =
                        |row: &&Worst| (&*row.scalar, &*row.function, &*row.inputs) == (scalar, function, inputs);
                    cell(measured.rows.iter().find(same))
                })
                .collect();
            writeln!(page, "| `{function}` | {inputs} | {} |", cells.join(" | "))?;
        }
    }
    Ok(page)
}
