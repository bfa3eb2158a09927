//! How a region reads memory: by the element's own index, by strides, or one element for all.

use crate::dim::Dim;
use crate::types::Layout;

/// How one operand lies, axes that behave as one put together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pattern {
    /// Element `i` of the memory for element `i` of the region.
    Flat,
    /// The same element for all.
    One { offset: Dim },
    /// By strides.
    Strided(Strided),
}

/// Extents, outermost first, with the distance of each in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Strided {
    pub offset: Dim,
    pub extents: Vec<Dim>,
    pub strides: Vec<Dim>,
    /// How four neighbours are read together.
    pub wide: Wide,
}

/// How a read serves four neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wide {
    /// It cannot, or it is not asked to.
    No,
    /// They lie side by side, from a multiple of four on.
    Vector,
    /// They are one element.
    Splat,
    /// They lie apart, and those side by side are neighbours along another axis: as [`super::turn`] reads them.
    Turned,
}

impl Pattern {
    /// The pattern of a layout read over `shape`.
    pub(super) fn of(shape: &[Dim], layout: &Layout) -> Self {
        let mut axes: Vec<(Dim, Dim)> = Vec::new();
        for (extent, stride) in shape.iter().zip(&layout.strides).filter(|(extent, _)| !extent.is(1)) {
            match axes.last_mut() {
                // The outer axis goes on where the inner one ends.
                Some((outer, outer_stride)) if *outer_stride == stride.clone() * extent.clone() => {
                    *outer = outer.clone() * extent.clone();
                    *outer_stride = stride.clone();
                }
                _ => axes.push((extent.clone(), stride.clone())),
            }
        }
        let offset = layout.offset.clone();
        match axes.as_slice() {
            [] => Self::One { offset },
            [(_, stride)] if stride.is(0) => Self::One { offset },
            [(_, stride)] if stride.is(1) && offset.is(0) => Self::Flat,
            _ => {
                let (extents, strides) = axes.into_iter().unzip();
                Self::Strided(Strided { offset, extents, strides, wide: Wide::No })
            }
        }
    }

    /// The largest index that is read, at the upper bounds of the symbols, but for elements that are read by their own index.
    pub(super) fn farthest(&self) -> i64 {
        match self {
            Self::Flat => 0,
            Self::One { offset } => offset.bounds().1,
            Self::Strided(Strided { offset, extents, strides, .. }) => {
                extents.iter().zip(strides).fold(offset.bounds().1, |sum, (extent, stride)| {
                    let last = (extent.bounds().1 - 1).max(0);
                    sum.saturating_add(last.saturating_mul(stride.bounds().1))
                })
            }
        }
    }

    /// The same pattern counted in groups of four elements; `None` if groups cannot be read so.
    pub(super) fn widened(&self) -> Option<Self> {
        let Self::Strided(read) = self else {
            return Some(self.clone());
        };
        let four = Dim::from(4i64);
        let mut wide = read.clone();
        let (extent, stride) = (wide.extents.last_mut()?, wide.strides.last()?.clone());
        if !extent.divides_evenly(4) {
            return None;
        }
        *extent = extent.quotient(&four);
        if stride.is(0) {
            wide.wide = Wide::Splat;
            return Some(Self::Strided(wide));
        }
        let outer = wide.strides.len() - 1;
        let aligned =
            stride.is(1) && wide.offset.divides_evenly(4) && wide.strides[..outer].iter().all(|s| s.divides_evenly(4));
        if !aligned {
            return None;
        }
        wide.offset = wide.offset.quotient(&four);
        for stride in &mut wide.strides[..outer] {
            *stride = stride.quotient(&four);
        }
        wide.wide = Wide::Vector;
        Some(Self::Strided(wide))
    }
}
