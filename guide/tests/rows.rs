//! Every row of the language, on every device that has it.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../tests/common/mod.rs"]
mod common;

use trefoil::artefact::{Feature, Target};
use trefoil::{Device, DeviceKind};
use trefoil_guide::{Cell, Row, Support};

fn target(device: &Device) -> Target {
    match device.kind() {
        DeviceKind::Cpu => Target::Cpu,
        DeviceKind::Wgpu => Target::Wgsl,
        DeviceKind::Vulkan => Target::Spirv,
        DeviceKind::Cuda => Target::Cuda,
    }
}

/// What a device makes of a row. A device of wgpu with matrices runs the SPIR-V of kernels that have any.
fn cell(row: &Row, device: &Device) -> Cell {
    let own = row.cell(target(device)).unwrap();
    if own.support != Support::CompileError || device.kind() != DeviceKind::Wgpu {
        return own;
    }
    let spirv = row.cell(Target::Spirv).unwrap();
    let matrices = Feature::CooperativeMatrices;
    let handed_through =
        device.properties().features.has(matrices) && spirv.requires.contains(&matrices.variant_name());
    if handed_through { spirv } else { own }
}

/// Runs a row's check wherever its cell is no compile error and the device has what it requires.
fn run(row: &Row) {
    let mut ran = 0;
    for subject in common::devices() {
        let device = &subject.device;
        let cell = cell(row, device);
        if cell.support == Support::CompileError {
            continue;
        }
        let has: Vec<_> = device.properties().features.iter().map(|feature| feature.variant_name()).collect();
        if cell.requires.iter().any(|feature| !has.contains(feature)) {
            eprintln!("{}: {} lacks {:?}", row.name, subject.name, cell.requires);
            continue;
        }
        (row.check)(device).unwrap_or_else(|error| panic!("{} on {}: {error}", row.name, subject.name));
        ran += 1;
    }
    assert!(ran > 0, "{} ran nowhere", row.name);
}

macro_rules! tests {
    ($($name:ident: $kernels:tt;)*) => {
        $(
            #[test]
            fn $name() {
                run(trefoil_guide::ROWS.iter().find(|row| row.name == stringify!($name)).unwrap());
            }
        )*
    };
}

trefoil_guide::with_rows!(tests);

#[test]
fn no_cell_is_empty_and_every_refusal_gives_its_reason() {
    for row in trefoil_guide::ROWS {
        assert!(!row.feature().is_empty(), "{}", row.name);
        for target in Target::ALL {
            let cell = row.cell(target).unwrap();
            assert!(cell.support != Support::CompileError || !cell.note.is_empty(), "{} on {target:?}", row.name);
            for kernel in row.instances() {
                let served = if target == Target::Cpu {
                    kernel.cpu.is_some()
                } else {
                    kernel.variants.iter().any(|variant| variant.target == target)
                };
                assert_eq!(served, cell.support != Support::CompileError, "{} for {target:?}", kernel.name);
            }
        }
    }
}

#[test]
fn the_guide_is_fresh() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src");
    let advice = "run: cargo run -p trefoil-cli -- language --book docs/src/language";
    let chapters = trefoil_guide::book::chapters().unwrap();
    for (name, text) in &chapters {
        let there = std::fs::read_to_string(folder.join("language").join(name)).unwrap_or_default();
        assert!(there == *text, "docs/src/language/{name} is stale; {advice}");
    }
    for file in std::fs::read_dir(folder.join("language")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(chapters.contains_key(&name), "docs/src/language/{name} is of no row");
    }
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    assert!(
        summary.contains(&trefoil_guide::book::summary()),
        "docs/src/SUMMARY.md lacks:\n{}",
        trefoil_guide::book::summary()
    );
}
