//! From the grid asked for to the workgroups that a device launches.

use trefoil_codegen::artefact::{GridKind, Kernel};

use super::Grid;
use crate::error::{Error, Result};

/// A grid, folded to a device's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folded {
    /// Workgroups to launch, by axis.
    pub groups: [u32; 3],
    /// Workgroups asked for.
    pub count: u32,
}

/// The workgroups that a grid is, by axis.
fn asked(kernel: &Kernel, grid: &Grid) -> [u64; 3] {
    let size = kernel.workgroup_size.map(u64::from);
    match *grid {
        // How many there are is for the device to read; one at least, for all that is known.
        Grid::Indirect(..) => [1; 3],
        Grid::Invocations(n) if kernel.grid == GridKind::Linear => [n.div_ceil(size[0] * size[1] * size[2]), 1, 1],
        Grid::Invocations(n) => [n.div_ceil(size[0]), 1, 1],
        Grid::Count(n) => [n, 1, 1],
        Grid::Over(n) => [0, 1, 2].map(|axis: usize| n[axis].div_ceil(size[axis])),
        Grid::Groups(groups) => groups,
    }
}

/// Whether 32 bits hold the index of every invocation.
pub(super) fn fits(kernel: &Kernel, grid: &Grid) -> bool {
    let size = kernel.workgroup_size.map(u64::from);
    let all = asked(kernel, grid).into_iter().chain(size).try_fold(1u64, u64::checked_mul);
    all.is_some_and(|all| all <= 1 << 32)
}

/// Folds `grid`: the linear workgroups of a kernel that does not look at axes are spread over x and y where x cannot hold them.
pub(super) fn fold(kernel: &Kernel, grid: &Grid, limit: [u32; 3], device: &str) -> Result<Folded> {
    let linear = kernel.grid == GridKind::Linear;
    let asked = asked(kernel, grid);
    let refused = || Error::Grid {
        kernel: kernel.name.to_string(),
        groups: asked,
        limit,
        device: device.to_owned(),
        by_axes: !linear,
    };
    // The last workgroup's index has 32 bits, and the last invocation's must fit the kernel's own.
    let count = asked
        .iter()
        .try_fold(1u64, |product, n| product.checked_mul(*n))
        .filter(|_| kernel.index.is_wide() || fits(kernel, grid))
        .and_then(|count| u32::try_from(count).ok())
        .ok_or_else(refused)?;
    if !linear {
        let fits = (0..3).all(|axis| asked[axis] <= u64::from(limit[axis]));
        let groups = asked.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        return if fits { Ok(Folded { groups, count }) } else { Err(refused()) };
    }
    if limit[0] == 0 {
        return Err(refused());
    }
    // As few rows as possible, and rows as short as possible, so that few workgroups are too many.
    let rows = count.div_ceil(limit[0]).max(1);
    if rows > limit[1] {
        return Err(refused());
    }
    Ok(Folded { groups: [count.div_ceil(rows), rows, 1], count })
}
