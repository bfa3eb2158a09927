//! Device memory that is used again: buffers of tensors and of scratch memory, in classes of sizes.
//!
//! A buffer that nobody holds any more is free at once, also while submitted or gathered work still uses it. That is sound because everything runs in one order: what reuses it comes later
//! in the same batch, where the hazard gives a barrier ([`super::batch`]), or in a later one. Only the host is not in that order: [`Pool::take`] tells what writes from the host whether it must flush first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use trefoil_dsl::device::{Device, Memory};
use trefoil_dsl::support::state::lock;

use crate::error::{Error, Result};

/// The smallest class; every offset that a device wants is a divisor of it.
const SMALLEST: u64 = 256;
/// Classes up to this are powers of two; larger ones are eighths of them.
const COARSE: u64 = 1 << 20;

/// What a pool holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes of device memory that it holds, in use or free.
    pub held_bytes: u64,
    /// Bytes of it that are free.
    pub free_bytes: u64,
    /// The most bytes that it ever held.
    pub peak_bytes: u64,
    /// Pieces that the device made.
    pub allocations: u64,
    /// Times that a free piece served instead.
    pub reuses: u64,
}

/// Memory with what the batch knows of it.
#[derive(Debug)]
pub(super) struct Piece {
    pub memory: Arc<dyn Memory>,
    class: u64,
    /// The stretch between barriers in which it was last read, and last written.
    read: AtomicU64,
    written: AtomicU64,
}

impl Piece {
    /// Whether something that was added in this stretch or later reads or writes it.
    pub fn is_read_since(&self, stretch: u64) -> bool {
        self.read.load(Ordering::Relaxed) >= stretch
    }

    pub fn is_written_since(&self, stretch: u64) -> bool {
        self.written.load(Ordering::Relaxed) >= stretch
    }

    pub fn is_used_since(&self, stretch: u64) -> bool {
        self.is_read_since(stretch) || self.is_written_since(stretch)
    }

    pub fn reads(&self, stretch: u64) {
        self.read.store(stretch, Ordering::Relaxed);
    }

    pub fn writes(&self, stretch: u64) {
        self.written.store(stretch, Ordering::Relaxed);
    }
}

/// A piece in use; it is free when the last holder lets go.
#[derive(Debug)]
pub(super) struct Buffer {
    /// There until it is dropped.
    piece: Option<Piece>,
    pool: Arc<Pool>,
}

impl Buffer {
    /// The piece.
    pub fn piece(&self) -> Result<&Piece> {
        self.piece
            .as_ref()
            .ok_or_else(|| Error::Stage { stage: "eager", defect: "a buffer was used after its end".to_owned() })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.pool.give(piece);
        }
    }
}

#[derive(Debug, Default)]
struct Pieces {
    free: BTreeMap<u64, Vec<Piece>>,
    statistics: PoolStatistics,
}

/// The free memory of an [`super::Eager`].
#[derive(Debug)]
pub(super) struct Pool {
    device: Device,
    budget: Option<u64>,
    pieces: Mutex<Pieces>,
}

impl Pool {
    pub fn new(device: Device, budget: Option<u64>) -> Self {
        Self { device, budget, pieces: Mutex::default() }
    }

    /// Memory for so many bytes. A free piece that nothing since the stretch `idle_since` uses comes before others.
    ///
    /// # Errors
    /// [`Error::Budget`]; or the device has no such memory.
    pub fn take(self: &Arc<Self>, bytes: u64, idle_since: Option<u64>, label: &str) -> Result<Arc<Buffer>> {
        let class = class(bytes, self.device.limits().max_allocation_bytes);
        let mut pieces = lock(&self.pieces);
        let found = pieces.free.get_mut(&class).and_then(|free| {
            let idle = idle_since.and_then(|stretch| free.iter().rposition(|piece| !piece.is_used_since(stretch)));
            match idle {
                Some(at) => Some(free.swap_remove(at)),
                None => free.pop(),
            }
        });
        let piece = match found {
            Some(piece) => {
                pieces.statistics.free_bytes -= class;
                pieces.statistics.reuses += 1;
                piece
            }
            None => self.make(&mut pieces, class, label)?,
        };
        Ok(Arc::new(Buffer { piece: Some(piece), pool: self.clone() }))
    }

    fn make(&self, pieces: &mut Pieces, class: u64, label: &str) -> Result<Piece> {
        if let Some(budget) = self.budget
            && pieces.statistics.held_bytes + class > budget
        {
            pieces.trim();
            let held = pieces.statistics.held_bytes;
            if held + class > budget {
                return Err(Error::Budget { what: label.to_owned(), bytes: class, held, budget });
            }
        }
        let backend = self.device.backend();
        let memory = backend.allocate(class, label).or_else(|error| {
            if pieces.statistics.free_bytes == 0 {
                return Err(error);
            }
            pieces.trim();
            backend.allocate(class, label)
        })?;
        let statistics = &mut pieces.statistics;
        statistics.allocations += 1;
        statistics.held_bytes += class;
        statistics.peak_bytes = statistics.peak_bytes.max(statistics.held_bytes);
        Ok(Piece { memory, class, read: AtomicU64::new(0), written: AtomicU64::new(0) })
    }

    fn give(&self, piece: Piece) {
        let mut pieces = lock(&self.pieces);
        pieces.statistics.free_bytes += piece.class;
        pieces.free.entry(piece.class).or_default().push(piece);
    }

    pub fn trim(&self) {
        lock(&self.pieces).trim();
    }

    pub fn statistics(&self) -> PoolStatistics {
        lock(&self.pieces).statistics
    }
}

impl Pieces {
    /// Gives free pieces back to the device, which frees them when it is done with them.
    fn trim(&mut self) {
        self.free.clear();
        self.statistics.held_bytes -= std::mem::take(&mut self.statistics.free_bytes);
    }
}

/// The size of a piece for so many bytes: never less, and never over what one allocation may be if they are not.
fn class(bytes: u64, limit: u64) -> u64 {
    let bytes = bytes.max(SMALLEST);
    let class = if bytes <= COARSE {
        bytes.next_power_of_two()
    } else {
        // The power of two at or below it has 2^k bytes; an eighth of that is the step.
        bytes.checked_next_multiple_of((1 << bytes.ilog2()) / 8).unwrap_or(bytes)
    };
    if bytes <= limit { class.min(limit) } else { class }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_hold_what_is_asked_and_waste_little() {
        for bytes in [0, 1, 255, 256, 257, 4096, 1 << 20, (1 << 20) + 1, 3 << 20, (5 << 30) + 7] {
            let class = class(bytes, u64::MAX);
            assert!(class >= bytes && class.is_multiple_of(32), "{bytes}: {class}");
            assert!(bytes < 1 << 20 || class - bytes <= bytes / 8, "{bytes}: {class}");
        }
        assert_eq!(class(1000, 1000), 1000);
        assert_eq!(class(1001, 1000), 1024);
    }
}
