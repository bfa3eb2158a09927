//! Generated kernels, each compiled once: equal structures share one, across the executables of a model, and equal IR across processes.
//!
//! In memory a kernel is known by its [`Structure`], which says all that a graph's ops decide of it. On disk it is known by its IR, its target and the compiler's sources: a name and attributes may belong to another op in
//! another program, and another state of the compiler may make something else of the same IR. The folder is the device's ([`Backend::kept`]).
//!
//! [`Backend::kept`]: trefoil_dsl::device::Backend::kept

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Kernel, SOURCES, Target};
use trefoil_codegen::compile::{Reports, build_with};
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::{Instance, Module};
use trefoil_dsl::device::Device;
use trefoil_dsl::support::cache::DiskCache;

use super::fuse::kernel::Structure;
use super::fuse::splice::{Facts, facts, identity};
use crate::error::{Error, Result};

/// What files of kernels are called.
const KIND: &str = "kernel";

/// Kernels by structure and target.
#[derive(Debug, Default)]
pub struct KernelCache {
    known: Mutex<Known>,
    /// What is known of kernels of candidates, by their identities.
    facts: Mutex<BTreeMap<u64, Arc<Facts>>>,
}

#[derive(Debug, Default)]
struct Known {
    kernels: BTreeMap<(Structure, Target, Reports), Arc<Kernel>>,
    compiled: usize,
}

/// Where a graph's kernels come from.
#[derive(Clone, Copy, Debug)]
pub struct Kernels<'c> {
    /// Those of this process.
    pub cache: &'c KernelCache,
    /// What other processes left.
    pub kept: Option<&'c DiskCache>,
    /// Whether the device has buffers for what kernels report.
    pub reports: bool,
}

impl<'c> Kernels<'c> {
    /// Those of a device.
    pub(crate) fn of(cache: &'c KernelCache, device: &'c Device) -> Self {
        Self { cache, kept: device.backend().kept(), reports: device.has_report_buffers() }
    }

    /// What a kernel does with its buffers.
    pub(crate) fn facts(&self, kernel: &Kernel) -> Arc<Facts> {
        // Without the table they are only found again.
        let Ok(mut known) = self.cache.facts.lock() else { return facts(kernel) };
        known.entry(identity(kernel)).or_insert_with(|| facts(kernel)).clone()
    }

    /// The kernel of that structure, with or without its reports. If it is the first, it is what `module` gives, as another process left it or compiled now; `refused` tells why it does not compile.
    pub(crate) fn get(
        &self,
        structure: &Structure,
        target: Target,
        reports: Reports,
        module: impl FnOnce() -> Result<Module>,
        refused: impl FnOnce(&Module, &Diagnostics) -> Error,
    ) -> Result<Arc<Kernel>> {
        let mut known = self.cache.known.lock().map_err(|_| Error::Poisoned)?;
        let own = (structure.clone(), target, reports);
        if let Some(kernel) = known.kernels.get(&own) {
            return Ok(kernel.clone());
        }
        let module = module()?;
        let key = self.kept.and_then(|kept| Some((kept, key(&module, target, reports)?)));
        let found = key.as_ref().and_then(|(kept, key)| Kernel::from_bytes(&kept.load(KIND, key)?).ok());
        let kernel = match found {
            Some(kernel) => kernel,
            None => {
                let made = build_with(&module, &Instance::default(), &[target], reports);
                let made = made.map_err(|diagnostics| refused(&module, &diagnostics))?.kernel;
                known.compiled += 1;
                if let Some((kept, key)) = key
                    && let Ok(bytes) = made.to_bytes()
                {
                    // A kernel that cannot be kept costs time in the next process and nothing else.
                    kept.store(KIND, &key, &bytes);
                }
                made
            }
        };
        let kernel = Arc::new(kernel);
        known.kernels.insert(own, kernel.clone());
        Ok(kernel)
    }
}

/// All that decides what a kernel becomes for a target; none for a kernel whose IR cannot be written, which is reported where it is compiled.
fn key(module: &Module, target: Target, reports: Reports) -> Option<Vec<u8>> {
    let mut key = format!("{SOURCES} {} {reports:?} ", target.name()).into_bytes();
    key.extend(module.to_bytes().ok()?);
    Some(key)
}

impl KernelCache {
    /// How many kernels there are.
    ///
    /// # Errors
    /// Another thread panicked while it compiled one.
    pub fn count(&self) -> Result<usize> {
        Ok(self.known.lock().map_err(|_| Error::Poisoned)?.kernels.len())
    }

    /// How many of them were compiled here; the others were left by another process, in the folder with which their device was opened.
    ///
    /// # Errors
    /// Another thread panicked while it compiled one.
    pub fn compiled(&self) -> Result<usize> {
        Ok(self.known.lock().map_err(|_| Error::Poisoned)?.compiled)
    }
}
