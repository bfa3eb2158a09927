//! What authors get wrong.

use std::fmt;

/// A mistake that authors make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mistake {
    /// A barrier, a fence or the waiting for a copy is not there, or a load that a workgroup agrees on is one of each invocation.
    BarrierDropped,
    /// An index into a buffer or workgroup memory is one too large.
    IndexShifted,
    /// What a condition guards is done always, and what it leaves by it does not.
    GuardDropped,
    /// Workgroup memory is not written, or a variable has no first value.
    InitialisationSkipped,
    /// A condition does not hold for the first invocation of a workgroup.
    BranchDiverges,
}

impl Mistake {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::BarrierDropped,
        Self::IndexShifted,
        Self::GuardDropped,
        Self::InitialisationSkipped,
        Self::BranchDiverges,
    ];
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BarrierDropped => "barrier dropped",
            Self::IndexShifted => "index shifted",
            Self::GuardDropped => "guard dropped",
            Self::InitialisationSkipped => "initialisation skipped",
            Self::BranchDiverges => "branch diverges",
        })
    }
}
