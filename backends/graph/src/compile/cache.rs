//! Generated kernels, each compiled once: equal structures share one, across the executables of a model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Kernel, Target};
use trefoil_codegen::compile::compile_for;
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::{Instance, Module};

use super::fuse::kernel::Structure;
use crate::error::{Error, Result};

/// Kernels by structure and target.
#[derive(Debug, Default)]
pub struct KernelCache {
    kernels: Mutex<BTreeMap<(Structure, Target), Arc<Kernel>>>,
}

impl KernelCache {
    /// The kernel of that structure, compiled from what `module` gives if it is the first; `refused` tells why it does not compile.
    pub(crate) fn get(
        &self,
        structure: &Structure,
        target: Target,
        module: impl FnOnce() -> Module,
        refused: impl FnOnce(&Module, &Diagnostics) -> Error,
    ) -> Result<Arc<Kernel>> {
        let mut kernels = self.kernels.lock().map_err(|_| Error::Poisoned)?;
        if let Some(kernel) = kernels.get(&(structure.clone(), target)) {
            return Ok(kernel.clone());
        }
        let module = module();
        let kernel = compile_for(&module, &Instance::default(), &[target]).map_err(|error| refused(&module, &error))?;
        let kernel = Arc::new(kernel);
        kernels.insert((structure.clone(), target), kernel.clone());
        Ok(kernel)
    }

    /// How many kernels there are.
    ///
    /// # Errors
    /// Another thread panicked while it compiled one.
    pub fn count(&self) -> Result<usize> {
        Ok(self.kernels.lock().map_err(|_| Error::Poisoned)?.len())
    }
}
