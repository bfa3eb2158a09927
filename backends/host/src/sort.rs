//! Rows in order, and the best few of each.

use rayon::prelude::*;
use trefoil_kernels::sort::order::rank_of;

use crate::rows::BLOCK;

/// Keys that are worth being sorted by several threads.
const LONG: usize = 1 << 16;

/// What is sorted.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Rows of elements, one after the other.
    pub x: &'a [u8],
    /// Bytes of an element: 1, 2 or 4.
    pub width: usize,
    /// Elements of a row.
    pub columns: usize,
    /// How many of them are wanted, the first in order.
    pub wanted: usize,
    /// The order of elements, for [`rank_of`].
    pub order: [u32; 5],
}

/// The first elements of each row in order, and their indices in the row; whichever is asked for. Of equal elements the one with the lower index comes first.
///
/// # Errors
/// An operand is too short, a row cannot be counted in `u32`, or there are no elements of that width.
pub fn sort(
    rows: &Rows<'_>,
    count: usize,
    values: Option<&mut [u8]>,
    places: Option<&mut [u32]>,
) -> Result<(), String> {
    let Rows { x, width, columns, wanted, .. } = *rows;
    if !matches!(width, 1 | 2 | 4) || wanted > columns || u32::try_from(columns).is_err() {
        return Err(format!("{wanted} of {columns} elements of {width} bytes cannot be sorted"));
    }
    let bytes = |of_row: usize| count.checked_mul(of_row).and_then(|all| all.checked_mul(width));
    let (all, results) = (bytes(columns), bytes(wanted));
    let short = |operand: &str, given: usize| format!("`{operand}`: {given} bytes given for {count} rows");
    let x = all.and_then(|all| x.get(..all)).ok_or_else(|| short("x", x.len()))?;
    let values = match values {
        Some(values) => {
            let given = values.len();
            Some(results.and_then(|all| values.get_mut(..all)).ok_or_else(|| short("values", given))?)
        }
        None => None,
    };
    let places = match places {
        Some(places) => {
            let given = 4 * places.len();
            Some(places.get_mut(..count * wanted).ok_or_else(|| short("places", given))?)
        }
        None => None,
    };
    if wanted == 0 || count == 0 {
        return Ok(());
    }
    // Enough rows to be worth a thread.
    let together = (BLOCK / columns).max(1);
    let mut values = values.map(|values| values.chunks_mut(together * wanted * width));
    let mut places = places.map(|places| places.chunks_mut(together * wanted));
    let blocks = x.chunks(together * columns * width).map(|x| Block {
        rows: Rows { x, ..*rows },
        values: values.as_mut().and_then(Iterator::next),
        places: places.as_mut().and_then(Iterator::next),
    });
    let blocks: Vec<_> = blocks.collect();
    blocks.into_par_iter().for_each(Block::sort);
    Ok(())
}

/// Some of the rows, with their results.
struct Block<'a, 'o> {
    rows: Rows<'a>,
    values: Option<&'o mut [u8]>,
    places: Option<&'o mut [u32]>,
}

impl Block<'_, '_> {
    fn sort(mut self) {
        let Rows { x, width, columns, wanted, order } = self.rows;
        let mut keys = Vec::with_capacity(columns);
        for (number, row) in x.chunks_exact(columns * width).enumerate() {
            keys.clear();
            // Ranks, and behind them the indices, so that no two are equal.
            let key = |(at, word): (usize, u32)| u64::from(rank_of(word, order)) << 32 | at as u64;
            match width {
                1 => keys.extend(row.iter().map(|byte| u32::from(*byte) << 24).enumerate().map(key)),
                2 => {
                    let (halves, _) = row.as_chunks::<2>();
                    keys.extend(
                        halves.iter().map(|half| u32::from(u16::from_le_bytes(*half)) << 16).enumerate().map(key),
                    );
                }
                _ => {
                    let (words, _) = row.as_chunks::<4>();
                    keys.extend(words.iter().map(|word| u32::from_le_bytes(*word)).enumerate().map(key));
                }
            }
            if wanted < columns {
                keys.select_nth_unstable(wanted - 1);
                keys.truncate(wanted);
            }
            if keys.len() < LONG {
                keys.sort_unstable()
            } else {
                keys.par_sort_unstable()
            }
            let index = |key: &u64| *key as u32;
            if let Some(places) = &mut self.places {
                let to = &mut places[number * wanted..][..wanted];
                to.iter_mut().zip(&keys).for_each(|(place, key)| *place = index(key));
            }
            if let Some(values) = &mut self.values {
                let to = &mut values[number * wanted * width..][..wanted * width];
                match width {
                    1 => to.iter_mut().zip(&keys).for_each(|(to, key)| *to = row[index(key) as usize]),
                    2 => take::<2>(row, &keys, to),
                    _ => take::<4>(row, &keys, to),
                }
            }
        }
    }
}

/// Elements of a width in the order of keys.
fn take<const WIDTH: usize>(row: &[u8], keys: &[u64], to: &mut [u8]) {
    let ((row, _), (to, _)) = (row.as_chunks::<WIDTH>(), to.as_chunks_mut::<WIDTH>());
    to.iter_mut().zip(keys).for_each(|(to, key)| *to = row[*key as u32 as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unsigned words, smaller ones first.
    const WORDS: [u32; 5] = [0, u32::MAX, 0, 0, 0];

    #[test]
    fn rows_of_every_width() {
        for (count, columns, wanted) in
            [(0, 3, 3), (3, 0, 0), (5, 1, 1), (70, 300, 300), (33, 1000, 7), (1, 100_000, 100_000)]
        {
            for width in [1, 2, 4] {
                let x: Vec<u8> = (0..count * columns * width)
                    .map(|i| (i as u32).wrapping_mul(2_654_435_761).to_le_bytes()[2])
                    .collect();
                let rows = Rows { x: &x, width, columns, wanted, order: WORDS };
                let (mut values, mut places) = (vec![0; count * wanted * width], vec![0; count * wanted]);
                sort(&rows, count, Some(&mut values), Some(&mut places)).unwrap();
                for row in 0..count {
                    let element = |at: usize| {
                        let bytes = &x[(row * columns + at) * width..][..width];
                        bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte))
                    };
                    let mut order: Vec<usize> = (0..columns).collect();
                    order.sort_by_key(|at| element(*at));
                    let found: Vec<usize> = places[row * wanted..][..wanted].iter().map(|at| *at as usize).collect();
                    assert_eq!(found, order[..wanted], "{count} {columns} {wanted} {width}");
                    let value = |at: usize| &values[(row * wanted + at) * width..][..width];
                    let is_there = |at: usize| value(at) == &x[(row * columns + found[at]) * width..][..width];
                    assert!((0..wanted).all(is_there), "{count} {columns} {wanted} {width}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let rows = Rows { x: &[0; 15], width: 4, columns: 4, wanted: 4, order: WORDS };
        assert!(sort(&rows, 1, None, Some(&mut [0; 4])).unwrap_err().starts_with("`x`"));
        let rows = Rows { x: &[0; 16], ..rows };
        assert!(sort(&rows, 1, None, Some(&mut [0; 3])).unwrap_err().starts_with("`places`"));
        assert!(sort(&rows, 1, Some(&mut [0; 15]), None).unwrap_err().starts_with("`values`"));
        assert!(sort(&Rows { wanted: 5, ..rows }, 1, None, None).is_err());
    }
}
