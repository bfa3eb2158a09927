//! Rows that go to where indices say: set, and added up as the gradient of an embedding is.

use trefoil::graph::ops::scatter::Update;
use trefoil::graph::{Dim, ElementType};

use crate::cases::Case;
use crate::measure::Scale;

/// Numbers of updates and of slots, columns, and what an update does.
const ROWS: [(i64, i64, i64, Update); 5] = [
    (65_536, 32_768, 1024, Update::Add),
    (65_536, 32_768, 1024, Update::Set),
    (65_536, 32_768, 64, Update::Add),
    (8192, 100_000, 384, Update::Add),
    (8 << 20, 8 << 20, 1, Update::Add),
];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 16,
        Scale::Software => 128,
    };
    let case = |(count, slots, columns, update): (i64, i64, i64, Update)| {
        let (count, slots) = (count / less, slots / less);
        // Set rows are read from the one or the other; sums read both.
        let moved = if update == Update::Set { 2 * slots } else { 2 * slots + count };
        Case {
            name: format!("{} {count} of {columns} to {slots}", update.name()),
            inputs: vec![("x", vec![slots, columns]), ("updates", vec![count, columns])],
            build: Box::new(move |g, inputs| {
                // As tokens are: in no order, some often and some never.
                let place = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                let places = (0..count.unsigned_abs()).map(|i| (place(i) % slots.unsigned_abs()) as u32);
                let places: Vec<u32> = places.collect();
                let indices = g.constant(ElementType::U32, vec![Dim::from(places.len())], &places)?;
                let result = g.scatter(inputs[0], indices, inputs[1], 0, update)?;
                g.output("result", result)
            }),
            bytes: (4 * moved * columns + 4 * count).unsigned_abs(),
            flops: None,
        }
    };
    ROWS.into_iter().map(case).collect()
}
