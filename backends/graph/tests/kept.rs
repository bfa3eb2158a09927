//! Kernels that another process left: served, and trusted only where they are whole and the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use common::{devices, numbers};
use trefoil::device::{DeviceKind, DeviceOptions};
use trefoil::{Device, devices as opened};
use trefoil_graph::{Eager, ElementType, Executable, Extents, Graph, Model, Options};

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("trefoil-kept-{test}-{}", std::process::id())))
    }

    fn open(&self, kind: DeviceKind) -> Device {
        opened::open(kind, &DeviceOptions { cache: Some(self.0.clone()), ..DeviceOptions::default() }).unwrap()
    }

    /// The files of kernels.
    fn kernels(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path());
        let is_kernel = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("kernel-");
        files.filter(is_kernel).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kinds() -> BTreeSet<DeviceKind> {
    devices().iter().map(Device::kind).collect()
}

/// A region and a pull, so two kernels, as on a device that was just opened, with a model that knows none; how many were compiled.
fn compile_and_run(device: &Device) -> usize {
    let mut g = Graph::new();
    let x = g.input("x", ElementType::F32, [5, 7]).unwrap();
    let y = g.neg(x).unwrap();
    let y = g.exp(y).unwrap();
    // Not moved in runs, so that it is a kernel on the CPU too.
    let y = g.reverse(y, &[1]).unwrap();
    g.output("y", y).unwrap();
    let model = Model::new();
    let executable = Executable::compile(&g, &model, device, &Options::default()).unwrap();
    let x = numbers(35, 1, 2.0);
    let outputs = executable.run(&[("x", (&x).into())], &Extents::new()).unwrap();
    let y = outputs.get::<f32>("y").unwrap();
    for (at, value) in y.iter().enumerate() {
        let wanted = (-f64::from(x[at / 7 * 7 + 6 - at % 7])).exp();
        assert!((f64::from(*value) - wanted).abs() <= 1e-6 * wanted, "{}: {at}", device.properties().name);
    }
    let kernels = model.kernels();
    assert!(kernels.compiled().unwrap() <= kernels.count().unwrap());
    kernels.compiled().unwrap()
}

#[test]
fn a_kernel_is_compiled_once_for_all_that_share_a_folder() {
    for kind in kinds() {
        let folder = Folder::new(&format!("shared-{kind}"));
        let first = compile_and_run(&folder.open(kind));
        assert!(first > 0, "{kind}");
        assert_eq!(folder.kernels().len(), first, "{kind}");
        assert_eq!(compile_and_run(&folder.open(kind)), 0, "{kind}");
        // Ops one by one take the same kernels from there, and leave theirs.
        let eager = Eager::new(&folder.open(kind));
        let x = eager.tensor(&[3], &[1f32, 2.0, 3.0]).unwrap();
        assert_eq!(eager.neg(&x).unwrap().read::<f32>().unwrap(), [-1.0, -2.0, -3.0]);
        assert!(folder.kernels().len() > first, "{kind}");
        // Without a folder each device has its own.
        assert_eq!(compile_and_run(&opened::open(kind, &DeviceOptions::default()).unwrap()), first, "{kind}");
    }
}

#[test]
fn what_is_damaged_or_of_other_sources_is_compiled_again() {
    let folder = Folder::new("damaged");
    let all = compile_and_run(&folder.open(DeviceKind::Cpu));
    let change = |how: &dyn Fn(&mut Vec<u8>)| {
        for path in folder.kernels() {
            let mut bytes = fs::read(&path).unwrap();
            how(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(compile_and_run(&folder.open(DeviceKind::Cpu)), all);
        // What was compiled took the place of what was not trusted.
        assert_eq!(compile_and_run(&folder.open(DeviceKind::Cpu)), 0);
    };
    change(&|bytes| bytes.truncate(bytes.len() / 2));
    change(&|bytes| bytes.clear());
    change(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    // Another kernel's file under this one's name.
    let files = folder.kernels();
    let contents: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, other) in files.iter().zip(contents.iter().cycle().skip(1)) {
        fs::write(path, other).unwrap();
    }
    let expected = if all > 1 { all } else { 0 };
    assert_eq!(compile_and_run(&folder.open(DeviceKind::Cpu)), expected);
    // Another state of the compiler: its name stands in the key, which an entry holds whole.
    let sources = trefoil_codegen::artefact::SOURCES.as_bytes();
    for path in folder.kernels() {
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.windows(sources.len()).any(|part| part == sources), "{}", path.display());
    }
}

#[test]
fn several_may_write_at_once() {
    let folder = Folder::new("writers");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| compile_and_run(&folder.open(DeviceKind::Cpu)));
        }
    });
    assert_eq!(compile_and_run(&folder.open(DeviceKind::Cpu)), 0);
    assert!(fs::read_dir(&folder.0).unwrap().all(|file| file.unwrap().path().extension().unwrap() == "bin"));
}
