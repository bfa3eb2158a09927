//! Products of matrices in each type: large ones, few rows, rows of a weight as models store it, and shapes drawn from a seed.

use trefoil::graph::ElementType;

use crate::cases::Case;
use crate::measure::Scale;

/// Batch, M, N, K, and whether B is given as `[N, K]` and A as `[K, M]`.
type Row = ([i64; 4], bool, bool);

/// What is measured of every type.
const ROWS: [Row; 13] = [
    ([1, 4096, 4096, 4096], false, false),
    ([1, 4096, 4096, 4096], true, false),
    ([1, 1024, 1024, 1024], true, false),
    ([1, 128, 4096, 4096], true, false),
    ([1, 64, 4096, 4096], true, false),
    ([1, 32, 4096, 4096], true, false),
    ([1, 16, 4096, 4096], true, false),
    ([1, 8, 11_008, 4096], true, false),
    ([1, 1, 11_008, 4096], true, false),
    ([1, 1, 11_008, 4096], false, false),
    ([1, 1, 4096, 11_008], true, false),
    ([12, 384, 384, 64], true, false),
    ([1, 4096, 4096, 4096], false, true),
];

/// What shapes are drawn from, and how: printed with the cases' names, so that others can draw them too.
const SEED: u64 = 20_261_122;
const DRAWN: usize = 40;
const EXTENTS: [i64; 9] = [1, 7, 16, 64, 100, 384, 1536, 4096, 11_008];
const BATCHES: [i64; 3] = [1, 12, 32];
/// More multiply-adds than that, or more elements of a tensor, are drawn again.
const MOST: i64 = 1 << 38;
const MOST_ELEMENTS: i64 = 1 << 26;

/// The drawn shapes: of a linear congruential generator, whose upper bits choose batch, M, N, K and one of NN, NT, TN.
fn drawn() -> Vec<Row> {
    let mut state = SEED;
    let mut next = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let mut rows = Vec::with_capacity(DRAWN);
    while rows.len() < DRAWN {
        let batch = BATCHES[next(BATCHES.len())];
        let [m, n, k] = [0; 3].map(|_| EXTENTS[next(EXTENTS.len())]);
        let way = next(3);
        let largest = batch * (m * n).max(m * k).max(k * n);
        if batch * m * n * k <= MOST && largest <= MOST_ELEMENTS {
            rows.push(([batch, m, n, k], way == 1, way == 2));
        }
    }
    rows
}

/// The cases of elements of a type, in sizes that a device can do in reasonable time.
pub fn all(scale: Scale, element: ElementType) -> Vec<Case> {
    let less = match scale {
        Scale::Gpu => 1,
        Scale::Cpu => 4,
        Scale::Software => 16,
    };
    let case = |about: String, (extents, b_along, a_across): Row| {
        let [batch, m, n, k] = extents;
        let [m, n, k] = [m, n, k].map(|extent| if extent > 256 { extent / less } else { extent });
        let a = if a_across { vec![batch, k, m] } else { vec![batch, m, k] };
        let b = if b_along { vec![batch, n, k] } else { vec![batch, k, n] };
        let layout = format!("{}{}", if a_across { 'T' } else { 'N' }, if b_along { 'T' } else { 'N' });
        let elements = batch * (m * k + k * n + m * n);
        Case {
            name: format!("product{about} {element} {layout} {batch}x{m}x{n}x{k}"),
            inputs: vec![("a", a), ("b", b)],
            build: Box::new(move |g, inputs| {
                let turned =
                    |g: &mut trefoil::graph::Graph, x, turns| if turns { g.transpose(x, &[0, 2, 1]) } else { Ok(x) };
                let a = turned(g, inputs[0], a_across)?;
                let b = turned(g, inputs[1], b_along)?;
                let result = g.matmul(a, b)?;
                g.output("result", result)
            }),
            bytes: elements.unsigned_abs() * element.bytes(),
            // Few rows are bound by reading B.
            flops: (m > 8 && n > 8).then_some(2 * (batch * m * n * k).unsigned_abs()),
        }
    };
    let rows = ROWS.into_iter().map(|row| case(String::new(), row));
    let draw = drawn().into_iter().filter(|_| element == ElementType::F32);
    rows.chain(draw.map(|row| case(format!(" of seed {SEED}"), row))).collect()
}
