//! The language guide's chapters: the table, and for each row its example with what it becomes for every target.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use trefoil::artefact::{Code, Kernel, ParamTransport, Target};
use trefoil_codegen::compile::{build, lower_for_cpu};
use trefoil_codegen::emit::{cpu, spirv};
use trefoil_codegen::ir::{Instance, Module};

use crate::{Cell, Outcome, ROWS, Row, Support};

/// The files that `trefoil language --book` writes, by their paths in the book's folder. They are checked in under `docs/src/language`, and a
/// test holds them against this.
///
/// # Errors
/// A kernel's IR cannot be read.
pub fn chapters() -> Outcome<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    files.insert("table.md".to_owned(), table()?);
    for row in ROWS {
        files.insert(format!("{}.md", row.name), chapter(row)?);
    }
    Ok(files)
}

/// The lines of `SUMMARY.md` for the chapters.
pub fn summary() -> String {
    let mut lines = "- [What the language holds](language/table.md)\n".to_owned();
    for row in ROWS {
        let _ = writeln!(lines, "  - [{}](language/{}.md)", row.feature(), row.name);
    }
    lines
}

fn table() -> Outcome<String> {
    let mut text = "# What the language holds\n\n\
        *yes*: the target's language has it. *emulated*: it is made of what the target's language has, with the same results. *compile error*: a kernel that uses it and lists \
        the target is refused while it is built, on the token that wants it. A name in brackets is a feature that the device must have. `wgsl` is WGSL as wgpu reads it; browsers have no types of 64 bits. Cells are asked of the compiler; a test runs every row on every device.\n\n"
        .to_owned();
    text += "| feature |";
    for target in Target::ALL {
        let _ = write!(text, " {} |", target.name());
    }
    text += "\n|---|---|---|---|---|\n";
    for row in ROWS {
        let _ = write!(text, "| [{}]({}.md) |", row.feature(), row.name);
        for target in Target::ALL {
            let Cell { support, requires, .. } = row.cell(target)?;
            let requires = if requires.is_empty() { String::new() } else { format!(" ({})", requires.join(", ")) };
            let _ = write!(text, " {}{requires} |", support.name());
        }
        text.push('\n');
    }
    Ok(text)
}

fn chapter(row: &Row) -> Outcome<String> {
    let mut text = format!("# {}\n\n", row.feature());
    text += "| | | |\n|---|---|---|\n";
    for target in Target::ALL {
        let Cell { support, requires, note } = row.cell(target)?;
        let requires = if requires.is_empty() { String::new() } else { format!("requires {}", requires.join(", ")) };
        let _ = writeln!(text, "| {} | {} | {} |", target.name(), support.name(), join(&[&requires, note.trim()]));
    }
    // The first lines are the title and what the example imports.
    let example = row.source.split_once("\n\n").map_or(row.source, |(_, rest)| rest);
    let _ = write!(text, "\n```rust\n{}\n```\n", example.trim_end());
    for kernels in row.kernels {
        let Some(kernel) = kernels.first() else { continue };
        let _ = write!(text, "\n## What `{}` becomes\n", kernel.name);
        for target in Target::ALL {
            if row.cell(target)?.support != Support::CompileError {
                let (language, emitted) = emitted(kernel, target)?;
                let _ = write!(
                    text,
                    "\n<details><summary>{}</summary>\n\n```{language}\n{}\n```\n\n</details>\n",
                    target.name(),
                    emitted.trim_end()
                );
            }
        }
    }
    Ok(text)
}

fn join(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

/// The poorest variant, which every device runs; parameters by value where there is a choice.
fn emitted(kernel: &Kernel, target: Target) -> Outcome<(&'static str, String)> {
    if target == Target::Cpu {
        let instance = Instance::from_bytes(&kernel.instance)?;
        let compiled =
            build(&Module::from_bytes(&kernel.ir)?, &instance, &[target]).map_err(|found| found.to_string())?;
        let lowered = lower_for_cpu(&compiled.verified).map_err(|found| found.to_string())?;
        return Ok(("rust", cpu::text(&lowered)?));
    }
    let of_target = || kernel.variants.iter().filter(|variant| variant.target == target);
    let by_value = of_target().rfind(|variant| variant.transport == ParamTransport::Value);
    let variant = by_value.or_else(|| of_target().next_back()).ok_or("the kernel has no such variant")?;
    Ok(match &variant.code {
        Code::Text(text) if target == Target::Cuda => ("cuda", text.to_string()),
        Code::Text(text) => ("wgsl", text.to_string()),
        Code::Spirv(bytes) => {
            let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
            ("spirv", spirv::disassemble(&words.collect::<Vec<_>>()))
        }
    })
}
