//! `trefoil language`: what the language holds, and what each target makes of it.

use std::path::Path;

use serde_json::{Map, Value, json};
use trefoil::artefact::Target;
use trefoil_guide::book::chapters;
use trefoil_guide::{Cell, ROWS, Row};

use crate::Outcome;

fn cells(row: &Row) -> Outcome<Vec<(Target, Cell)>> {
    let cell = |target: Target| match row.cell(target) {
        Ok(cell) => Ok((target, cell)),
        Err(error) => Err(format!("{}: {error}", row.name).into()),
    };
    Target::ALL.into_iter().map(cell).collect()
}

/// Prints the table, for people or as an array of objects: `feature`, `row`, `test`, a cell for each target, and beside it what it
/// requires and what stands for what.
pub fn table(as_json: bool) -> Outcome {
    if as_json {
        let rows = ROWS.iter().map(object).collect::<Outcome<Vec<_>>>()?;
        say!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let widest = ROWS.iter().map(|row| row.feature().chars().count()).max().unwrap_or(0);
    let heads: String = Target::ALL.iter().map(|target| format!("  {:<13}", target.name())).collect();
    say!("{:<widest$}{heads}", "feature");
    let mut notes = Vec::new();
    for row in ROWS {
        let mut line = format!("{:<widest$}", row.feature());
        for (target, cell) in cells(row)? {
            let mut note = Vec::new();
            if !cell.requires.is_empty() {
                note.push(format!("requires {}", cell.requires.join(", ")));
            }
            if !cell.note.is_empty() {
                note.push(cell.note);
            }
            let mark = if note.is_empty() {
                String::new()
            } else {
                notes.push(format!("{}, {}: {}", row.feature(), target.name(), note.join("; ")));
                format!(" [{}]", notes.len())
            };
            line += &format!("  {:<13}", format!("{}{mark}", cell.support.name()));
        }
        say!("{}", line.trim_end());
    }
    say!("");
    for (number, note) in notes.iter().enumerate() {
        say!("[{}] {note}", number + 1);
    }
    say!(
        "Each row is a file in guide/src/rows and a test of the same name in guide/tests/rows.rs, which runs it on every device."
    );
    Ok(())
}

/// Writes the chapters of the guide.
pub fn book(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, text) in chapters().map_err(|error| error.to_string())? {
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn object(row: &Row) -> Outcome<Value> {
    let mut object = Map::new();
    object.insert("feature".to_owned(), json!(row.feature()));
    object.insert("row".to_owned(), json!(row.name));
    object.insert("test".to_owned(), json!(row.test()));
    let mut details = Map::new();
    for (target, cell) in cells(row)? {
        object.insert(target.name().to_owned(), json!(cell.support));
        details.insert(target.name().to_owned(), json!({ "requires": cell.requires, "note": cell.note }));
    }
    object.insert("details".to_owned(), Value::Object(details));
    Ok(Value::Object(object))
}
