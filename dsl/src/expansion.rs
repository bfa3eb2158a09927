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

/// A text of parts that it shares with others.
#[derive(Debug)]
pub struct Joined<const N: usize>([u8; N]);

impl<const N: usize> Joined<N> {
    /// The parts one after the other, which have `N` bytes together.
    ///
    /// # Panics
    /// They have not.
    pub const fn new(parts: &[&str]) -> Self {
        let mut bytes = [0; N];
        let (mut part, mut at) = (0, 0);
        while part < parts.len() {
            let text = parts[part].as_bytes();
            let (_, rest) = bytes.split_at_mut(at);
            let (place, _) = rest.split_at_mut(text.len());
            place.copy_from_slice(text);
            at += text.len();
            part += 1;
        }
        assert!(at == N, "the parts of a text are shorter than the text");
        Self(bytes)
    }

    /// The text.
    pub const fn text(&self) -> &str {
        // SAFETY: the bytes are those of whole strings, one after the other: whoever makes a value fills all of it with such.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::Joined;

    #[test]
    fn a_joined_text_is_its_parts() {
        static TEXT: Joined<7> = Joined::new(&["a", "", "\u{e4}b", "cde"]);
        assert_eq!(TEXT.text(), "a\u{e4}bcde");
        assert_eq!(Joined::<0>::new(&[]).text(), "");
    }
}
