//! Generated kernels, each compiled once: equal structures share one, across the executables of a model, and equal IR across processes.
//!
//! In memory a kernel is known by its [`Structure`], which says all that a graph's ops decide of it. On disk it is known by its IR, its target and the compiler's sources: a name and attributes may belong to another op in
//! another program, and another state of the compiler may make something else of the same IR. The folder is the device's ([`Backend::kept`]).
//!
//! [`Backend::kept`]: trefoil_dsl::device::Backend::kept

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use trefoil_codegen::artefact::{Kernel, SOURCES, Target};
use trefoil_codegen::compile::{Reports, build_with};
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::{Instance, Module};
use trefoil_dsl::device::Device;
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::lock;

use super::fuse::kernel::Structure;
use super::fuse::splice::{Facts, facts, identity};
use crate::error::{Error, Result};

/// What files of kernels are called.
const KIND: &str = "kernel";

/// Kernels by structure and target.
#[derive(Debug, Default)]
pub struct KernelCache {
    /// Never held while a kernel is made.
    known: Mutex<Known>,
    /// What is known of kernels of candidates, by their identities.
    facts: Mutex<BTreeMap<u64, Arc<Facts>>>,
}

#[derive(Debug, Default)]
struct Known {
    kernels: BTreeMap<(Structure, Target, Reports), Arc<Slot>>,
    compiled: usize,
}

/// The place of a kernel, in the table before there is one: who wants that kernel waits for it, and nobody else.
#[derive(Debug, Default)]
struct Slot {
    /// Held while the kernel is made. Who fails or panics leaves the slot empty to the next.
    making: Mutex<()>,
    kernel: OnceLock<Arc<Kernel>>,
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
        let own = identity(kernel);
        if let Some(known) = lock(&self.cache.facts).get(&own) {
            return known.clone();
        }
        // Two threads may both find them; they find the same.
        let found = facts(kernel);
        lock(&self.cache.facts).entry(own).or_insert(found).clone()
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
        let own = (structure.clone(), target, reports);
        let slot = self.cache.known.lock().map_err(|_| Error::Poisoned)?.kernels.entry(own).or_default().clone();
        if let Some(kernel) = slot.kernel.get() {
            return Ok(kernel.clone());
        }
        let _making = lock(&slot.making);
        if let Some(kernel) = slot.kernel.get() {
            return Ok(kernel.clone());
        }
        let module = module()?;
        let key = self.kept.and_then(|kept| Some((kept, key(&module, target, reports)?)));
        let found = key.as_ref().and_then(|(kept, key)| Kernel::from_bytes(&kept.load(KIND, key)?).ok());
        let (kernel, compiled) = match found {
            Some(kernel) => (kernel, 0),
            None => {
                let made = build_with(&module, &Instance::default(), &[target], reports);
                let made = made.map_err(|diagnostics| refused(&module, &diagnostics))?.kernel;
                if let Some((kept, key)) = key
                    && let Ok(bytes) = made.to_bytes()
                {
                    // A kernel that cannot be kept costs time in the next process and nothing else.
                    kept.store(KIND, &key, &bytes);
                }
                (made, 1)
            }
        };
        let kernel = slot.kernel.get_or_init(|| Arc::new(kernel)).clone();
        self.cache.known.lock().map_err(|_| Error::Poisoned)?.compiled += compiled;
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
    /// Another thread panicked while it looked for one.
    pub fn count(&self) -> Result<usize> {
        let known = self.known.lock().map_err(|_| Error::Poisoned)?;
        Ok(known.kernels.values().filter(|slot| slot.kernel.get().is_some()).count())
    }

    /// How many of them were compiled here; the others were left by another process, in the folder with which their device was opened.
    ///
    /// # Errors
    /// Another thread panicked while it looked for one.
    pub fn compiled(&self) -> Result<usize> {
        Ok(self.known.lock().map_err(|_| Error::Poisoned)?.compiled)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use trefoil_codegen::ir::builder::{ModuleBuilder, element};
    use trefoil_codegen::ir::{BinaryOperator, Builtin, Root, Scalar};

    use super::*;

    /// A kernel that writes zeros.
    fn zeros() -> Module {
        let mut module = ModuleBuilder::new("zeros", [64, 1, 1]);
        let float = module.scalar(Scalar::F32);
        let y = module.mutable("y", float);
        let mut body = module.entry();
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (index, length) = (body.local(i), body.length(y));
        let inside = body.binary(BinaryOperator::Less, index, length);
        body.if_then(inside, |body| {
            let (zero, index) = (body.f32(0.0), body.local(i));
            body.store(element(Root::Binding(y), index), zero);
        });
        body.finish_entry();
        module.build()
    }

    fn get(cache: &KernelCache, name: &str, module: impl FnOnce() -> Result<Module>) -> Result<Arc<Kernel>> {
        let kernels = Kernels { cache, kept: None, reports: false };
        let structure = Structure::new(name.to_owned(), Vec::new());
        kernels.get(&structure, Target::Wgsl, Reports::Dropped, module, |module, diagnostics| Error::Kernel {
            kernel: module.name.clone(),
            message: diagnostics.to_string(),
        })
    }

    /// Whoever made a kernel held up all others.
    #[test]
    fn kernels_are_made_beside_each_other() {
        let cache = KernelCache::default();
        let within = || -> Result<Module> {
            // Another thread makes another one meanwhile.
            thread::scope(|scope| scope.spawn(|| get(&cache, "other", || Ok(zeros())).unwrap()).join()).unwrap();
            assert_eq!((cache.count()?, cache.compiled()?), (1, 1));
            Ok(zeros())
        };
        get(&cache, "one", within).unwrap();
        assert_eq!((cache.count().unwrap(), cache.compiled().unwrap()), (2, 2));
    }

    #[test]
    fn a_kernel_is_made_once_however_many_ask_at_once() {
        const THREADS: usize = 8;
        let (cache, made, begun) = (KernelCache::default(), AtomicUsize::new(0), Barrier::new(THREADS));
        let ask = || {
            begun.wait();
            get(&cache, "one", || {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(zeros())
            })
            .unwrap()
        };
        thread::scope(|scope| {
            let asking: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            let kernels: Vec<_> = asking.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(kernels.iter().all(|kernel| Arc::ptr_eq(kernel, &kernels[0])));
        });
        assert_eq!(made.into_inner(), 1);
        assert_eq!((cache.count().unwrap(), cache.compiled().unwrap()), (1, 1));
    }

    /// A panic in one compilation made every later one fail.
    #[test]
    fn what_failed_is_made_by_the_next_who_asks() {
        let cache = KernelCache::default();
        get(&cache, "one", || Err(Error::Poisoned)).unwrap_err();
        let panicked = catch_unwind(AssertUnwindSafe(|| get(&cache, "one", || panic!("as it is made"))));
        assert!(panicked.is_err());
        assert_eq!((cache.count().unwrap(), cache.compiled().unwrap()), (0, 0));
        get(&cache, "one", || Ok(zeros())).unwrap();
        get(&cache, "other", || Ok(zeros())).unwrap();
        assert_eq!((cache.count().unwrap(), cache.compiled().unwrap()), (2, 2));
    }
}
