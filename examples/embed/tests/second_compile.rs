//! MiniLM compiled by one process after the other, with one folder for what is kept: the second makes no kernel.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use trefoil::device::{DeviceKind, DeviceOptions};
use trefoil::devices;
use trefoil::graph::{Executable, Options, Symbol};
use trefoil_embed::bert::{self, BertConfig};

/// Tells a process of this test that it is one of those that compile, and in which folder.
const FOLDER: &str = "TREFOIL_TEST_KEPT";
/// What such a process prints before its counts.
const COUNTS: &str = "kernels compiled, kernels, microseconds:";

/// The model's file, if it was fetched. Where devices are required, it is too.
fn model() -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.model/all-MiniLM-L6-v2/model.safetensors");
    if file.is_file() {
        return Some(file);
    }
    assert!(std::env::var("TREFOIL_REQUIRE_DEVICES").is_err(), "no {}: run scripts/fetch-model.sh", file.display());
    eprintln!("not tested: no model in {}; scripts/fetch-model.sh fetches it", file.display());
    None
}

/// Compiles, and prints what became of it.
fn compile(file: &Path, folder: PathBuf) {
    let options = DeviceOptions { cache: Some(folder), ..DeviceOptions::default() };
    let device = devices::open(DeviceKind::Cpu, &options).unwrap();
    let model = bert::weights(&BertConfig::MINILM_L6, file).unwrap();
    let [batch, tokens] = [("batch", 32), ("tokens", 256)].map(|(name, most)| Symbol::new(name, 1, most).unwrap());
    let graph = bert::encoder(&BertConfig::MINILM_L6, &batch, &tokens).unwrap();
    let start = Instant::now();
    let executable = Executable::compile(&graph, &model, &device, &Options::default()).unwrap();
    let microseconds = start.elapsed().as_micros();
    let kernels = model.kernels();
    println!("{COUNTS} {} {} {microseconds}", kernels.compiled().unwrap(), kernels.count().unwrap());
    drop(executable);
}

/// Has another process compile.
fn in_a_process(folder: &Path) -> std::process::Child {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "the_second_process_makes_no_kernel", "--nocapture"]).env(FOLDER, folder);
    process.stdout(std::process::Stdio::piped()).spawn().unwrap()
}

/// Its kernels compiled, kernels, and microseconds.
fn counts(process: std::process::Child) -> [u64; 3] {
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let (_, counts) = text.split_once(COUNTS).unwrap();
    let mut counts = counts.split_whitespace().map(|count| count.parse().unwrap());
    [(); 3].map(|()| counts.next().unwrap())
}

#[test]
fn the_second_process_makes_no_kernel() {
    let Some(file) = model() else { return };
    if let Some(folder) = std::env::var_os(FOLDER) {
        compile(&file, folder.into());
        return;
    }
    let folder = std::env::temp_dir().join(format!("trefoil-second-compile-{}", std::process::id()));
    // Two at once write the same files.
    let first = [in_a_process(&folder), in_a_process(&folder)].map(counts);
    for [compiled, kernels, _] in first {
        assert!(kernels > 0 && compiled <= kernels, "{first:?}");
    }
    let second: Vec<_> = (0..3).map(|_| counts(in_a_process(&folder))).collect();
    for [compiled, kernels, _] in &second {
        assert_eq!((*compiled, *kernels), (0, first[0][1]), "{second:?}");
    }
    let fastest = second.iter().map(|[_, _, microseconds]| microseconds).min().unwrap();
    println!("{} kernels; first {} ms, then {} ms", first[0][1], first[0][2] / 1000, fastest / 1000);
    // What another process left, damaged, is as good as nothing.
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 9;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let [compiled, kernels, _] = counts(in_a_process(&folder));
    assert_eq!(compiled, kernels);
    std::fs::remove_dir_all(&folder).unwrap();
}
