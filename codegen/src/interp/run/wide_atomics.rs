//! Atomics of 64 bits, lane after lane.

use std::sync::atomic::AtomicU64;

use super::Batch;
use crate::interp::program::{Address, AtomicOperation, Register, Where};
use crate::ir::Order;

/// What is there after an operation.
fn after(operation: AtomicOperation, old: u64, value: u64, compare: u64) -> u64 {
    let signed = |f: fn(i64, i64) -> i64| f(old.cast_signed(), value.cast_signed()).cast_unsigned();
    match operation {
        // There are none of 64-bit floats.
        AtomicOperation::Load | AtomicOperation::AddFloat => old,
        AtomicOperation::Store | AtomicOperation::Exchange => value,
        AtomicOperation::Add => old.wrapping_add(value),
        AtomicOperation::Subtract => old.wrapping_sub(value),
        AtomicOperation::MinUnsigned => old.min(value),
        AtomicOperation::MaxUnsigned => old.max(value),
        AtomicOperation::MinSigned => signed(i64::min),
        AtomicOperation::MaxSigned => signed(i64::max),
        AtomicOperation::And => old & value,
        AtomicOperation::Or => old | value,
        AtomicOperation::Xor => old ^ value,
        AtomicOperation::CompareExchange if old == compare => value,
        AtomicOperation::CompareExchange => old,
    }
}

impl Batch<'_> {
    pub(super) unsafe fn wide_atomic(
        &self,
        (operation, order): (AtomicOperation, Order),
        address: &Address,
        to: Option<[Register; 2]>,
        value: [Register; 2],
        compare: [Register; 2],
    ) {
        let pointer = self.pointer(address);
        let (order, seen) = (order.host(), order.of_load().host());
        for to in to.into_iter().flatten() {
            // SAFETY: as in `own`.
            unsafe { self.target(to) };
        }
        for lane in 0..self.lanes {
            // SAFETY: as in `load`; atomics in buffers are aligned to their 8 bytes, and workgroup memory is this thread's alone.
            unsafe {
                if !self.is_active(lane) {
                    continue;
                }
                let given = |[low, high]: [Register; 2]| {
                    let word = |register: Register| u64::from(self.word(register, lane));
                    word(low) | word(high) << 32
                };
                let (value, compare) = (given(value), given(compare));
                let new = |old: u64| after(operation, old, value, compare);
                let old = match (self.offset(&address.terms, lane), address.memory) {
                    (None, _) => 0,
                    (Some(offset), Where::Workgroup(_)) => {
                        let at = pointer.add(offset).cast::<u64>();
                        let old = at.read_unaligned();
                        at.write_unaligned(new(old));
                        old
                    }
                    (Some(offset), Where::Binding { .. }) => {
                        let atomic = AtomicU64::from_ptr(pointer.add(offset).cast());
                        if operation == AtomicOperation::Load {
                            atomic.load(seen)
                        } else {
                            atomic.fetch_update(order, seen, |old| Some(new(old))).unwrap_or_else(|old| old)
                        }
                    }
                };
                if let Some([low, high]) = to {
                    self.own(low).add(lane).write(old as u32);
                    self.own(high).add(lane).write((old >> 32) as u32);
                }
            }
        }
    }
}
