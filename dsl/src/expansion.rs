//! What the macros' expansions name. Not for use by hand: it changes without notice.

pub use trefoil_codegen::{artefact, fingerprint};
pub use trefoil_macros::{device_finish, device_type_finish, kernel_finish};

pub use crate::buffer::{Buffer, BufferSlice, BufferSliceMut, BufferView, BufferViewMut};
pub use crate::element::{Element, scalar_name};
pub use crate::error::{Error, Result};
pub use crate::launch::{Constants, Launch};
pub use crate::layout::Layout;
pub use crate::param::{Leaf, Param};
pub use crate::vector::{Align1, Lane};
pub use bytemuck;

/// The leaves of the next field of a struct that is a parameter, and the others.
pub fn leaves_of<P: Param>(leaves: &mut [Leaf]) -> (&mut [Leaf], &mut [Leaf]) {
    leaves.split_at_mut(P::LEAVES.min(leaves.len()))
}

/// The value of one generic of a listed instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericValue {
    /// A type, by name.
    Type(&'static str),
    /// A constant.
    Const(i64),
}

impl std::fmt::Display for GenericValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Type(name) => f.write_str(name),
            Self::Const(value) => value.fmt(f),
        }
    }
}

/// A listed instance of a generic kernel.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// The values of its generics.
    pub values: &'static [GenericValue],
    /// The kernel.
    pub kernel: &'static artefact::Kernel,
}

/// The listed instance with these values; `None` stands for a type that no kernel can have.
///
/// # Errors
/// There is none; the error names those that are listed.
pub fn instance(
    kernel: &str,
    listed: &'static [Instance],
    wanted: &[Option<GenericValue>],
) -> Result<&'static artefact::Kernel> {
    let fits = |instance: &&Instance| {
        instance.values.len() == wanted.len()
            && instance.values.iter().zip(wanted).all(|(listed, wanted)| Some(*listed) == *wanted)
    };
    listed.iter().find(fits).map(|instance| instance.kernel).ok_or_else(|| {
        let join = |values: &mut dyn Iterator<Item = String>| values.collect::<Vec<_>>().join(", ");
        Error::Instance {
            kernel: kernel.to_owned(),
            wanted: join(&mut wanted.iter().map(|value| match value {
                Some(value) => value.to_string(),
                None => "another type".to_owned(),
            })),
            listed: join(
                &mut listed
                    .iter()
                    .map(|instance| format!("<{}>", join(&mut instance.values.iter().map(ToString::to_string)))),
            ),
        }
    })
}

/// Bytes aligned as words are.
#[derive(Debug)]
#[repr(C, align(4))]
pub struct Words<const N: usize>(pub [u8; N]);
