//! Dispatches as data: with all that the checker needs to run them once more, in another process or with another kernel.

use serde::{Deserialize, Serialize};

use super::{CheckError, Program};
use crate::artefact::Kernel;
use crate::ir::{Instance, Module};

/// A dispatch before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel's instance.
    pub kernel: String,
    /// The generic IR, as [`Kernel::ir`].
    pub ir: Vec<u8>,
    /// The values of its generics, as [`Kernel::instance`].
    pub instance: Vec<u8>,
    /// The values of its specialisation constants.
    pub constants: Vec<i64>,
    /// The bytes of its bindings, in order.
    pub buffers: Vec<Vec<u8>>,
    /// Its parameter block.
    pub params: Vec<u8>,
    /// Its workgroups, which all lie along x for a kernel that does not look at axes.
    pub groups: [u32; 3],
}

impl Launch {
    /// Of a kernel with what it is given.
    pub fn new(kernel: &Kernel, buffers: &[Vec<u8>], params: &[u8], groups: [u32; 3]) -> Self {
        Self {
            kernel: kernel.name.to_string(),
            ir: kernel.ir.to_vec(),
            instance: kernel.instance.to_vec(),
            constants: kernel.constants.iter().map(|constant| constant.value).collect(),
            buffers: buffers.to_vec(),
            params: params.to_vec(),
            groups,
        }
    }

    /// The kernel's generic IR and its instance.
    ///
    /// # Errors
    /// They are damaged.
    pub fn source(&self) -> Result<(Module, Instance), CheckError> {
        let failed = |what: &str, error| CheckError {
            kernel: self.kernel.clone(),
            reason: format!("its {what} is damaged: {error}"),
        };
        let module = Module::from_bytes(&self.ir).map_err(|error| failed("IR", error))?;
        let instance = Instance::from_bytes(&self.instance).map_err(|error| failed("instance", error))?;
        Ok((module, instance))
    }

    /// The kernel as [`Program::run`] takes it, with this launch's buffers, params and workgroups.
    ///
    /// # Errors
    /// It is damaged, or holds something that is not run in the checker.
    pub fn program(&self) -> Result<Program, CheckError> {
        let (module, instance) = self.source()?;
        Program::new(&module, &instance, &self.constants)
    }

    /// The launch as bytes, for [`Launch::from_bytes`] of the same version of trefoil.
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// Reads what [`Launch::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}
