//! Copies from buffers to workgroup memory that go on while the invocation does something else.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::{Expression, Place};

/// What an invocation does with such copies. See the module's essay for the meaning of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Asynchronous {
    /// Begins to copy `count` consecutive elements, which are 4, 8 or 16 bytes together.
    Copy {
        /// The first element to write, in a workgroup variable.
        to: Place,
        /// The first element to read, in a binding.
        from: Place,
        /// How many: an `Index`, a constant of the instance.
        count: Handle<Expression>,
    },
    /// What was begun since the last commit is a group.
    Commit,
    /// Waits until no more than so many groups of this invocation, the last ones, are on their way: an `Index`, a constant of the instance.
    Wait(Handle<Expression>),
}

impl Asynchronous {
    /// The name of its function.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } => "copy_async",
            Self::Commit => "async_commit",
            Self::Wait(_) => "async_wait",
        }
    }
}
