//! Barriers, only where the byte ranges of steps need them.

use std::fmt;

/// A range of bytes that a step touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The piece of memory.
    pub buffer: usize,
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Whether the step may look at it.
    pub reads: bool,
    /// Whether the step may change it.
    pub writes: bool,
    /// What the step knows it as.
    pub name: String,
}

/// Why two steps must not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hazard {
    /// The later one reads what the earlier one writes.
    ReadAfterWrite,
    /// The later one writes where the earlier one reads.
    WriteAfterRead,
    /// Both write.
    WriteAfterWrite,
}

/// Why a barrier stands where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The hazard.
    pub hazard: Hazard,
    /// The earlier step.
    pub earlier: usize,
    /// The later step, before which the barrier stands.
    pub later: usize,
    /// What the earlier step knows the bytes as.
    pub from: String,
    /// What the later step knows the bytes as.
    pub to: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { earlier, later, from, to, .. } = self;
        match self.hazard {
            Hazard::ReadAfterWrite => write!(f, "step {later} reads `{to}`, which step {earlier} writes"),
            Hazard::WriteAfterRead => {
                write!(f, "step {later} writes `{to}` where step {earlier} reads `{from}`")
            }
            Hazard::WriteAfterWrite => {
                write!(f, "step {later} writes `{to}` where step {earlier} writes `{from}`")
            }
        }
    }
}

/// For each step, why a barrier stands before it; empty where none does.
pub fn barriers(steps: &[Vec<Touch>]) -> Vec<Vec<Reason>> {
    // What steps touched since the last barrier.
    let mut open: Vec<(usize, &Touch)> = Vec::new();
    let mut barriers = Vec::with_capacity(steps.len());
    for (later, touches) in steps.iter().enumerate() {
        let mut reasons = Vec::new();
        for touch in touches {
            for (earlier, other) in &open {
                let hazard = match (other.writes, touch.writes) {
                    (true, _) if touch.reads => Hazard::ReadAfterWrite,
                    (true, true) => Hazard::WriteAfterWrite,
                    (false, true) => Hazard::WriteAfterRead,
                    _ => continue,
                };
                if other.buffer == touch.buffer && other.start < touch.end && touch.start < other.end {
                    let (from, to) = (other.name.clone(), touch.name.clone());
                    reasons.push(Reason { hazard, earlier: *earlier, later, from, to });
                }
            }
        }
        if !reasons.is_empty() {
            open.clear();
        }
        open.extend(touches.iter().map(|touch| (later, touch)));
        barriers.push(reasons);
    }
    barriers
}
