//! Launches, and what references of their own say that they leave.

use super::Case;

fn bits(values: impl IntoIterator<Item = f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| {
            ((i.wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(40_503)) >> 8) as f32 / 8_388_608.0) - 1.0
        })
        .collect()
}

fn buffer(values: &[f32]) -> (Vec<u32>, u32) {
    (bits(values.iter().copied()), values.len() as u32)
}

fn empty(count: usize) -> (Vec<u32>, u32) {
    (vec![0x7fc0_1234; count], count as u32)
}

/// Launches of every kernel of `kernels/cpu.rs`.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [1usize, 255, 256, 1000, 4099] {
        let x = numbers(n, 1);
        cases.push(Case {
            kernel: "scaled",
            buffers: vec![buffer(&x), empty(n)],
            params: vec![2.5f32.to_bits()],
            groups: [n.div_ceil(256) as u32 + 1, 1, 1],
            expected: vec![(1, bits(x.iter().map(|x| x * 2.5 + 1.0)))],
            tolerance: 0.0,
        });
    }
    // A source that is shorter than the destination reads as zero.
    let x = numbers(100, 2);
    cases.push(Case {
        kernel: "scaled",
        buffers: vec![buffer(&x), empty(300)],
        params: vec![1.0f32.to_bits()],
        groups: [2, 1, 1],
        expected: vec![(1, bits((0..300).map(|i| x.get(i).copied().unwrap_or(0.0) + 1.0)))],
        tolerance: 0.0,
    });
    let x: Vec<f32> = (0..5000u32).map(|i| (i % 17) as f32).collect();
    let groups = 3;
    let sums: Vec<f32> = (0..groups)
        .map(|group| x.iter().enumerate().filter(|(i, _)| i / 64 % groups == group).map(|(_, x)| x).sum())
        .collect();
    cases.push(Case {
        kernel: "sum",
        buffers: vec![buffer(&x), empty(groups)],
        params: vec![],
        groups: [groups as u32, 1, 1],
        expected: vec![(1, bits(sums))],
        tolerance: 0.0,
    });
    for (m, n, k) in [(8, 8, 8), (17, 23, 31), (40, 9, 64)] {
        let (a, b) = (numbers(m * k, 3), numbers(k * n, 4));
        let mut c = vec![0f32; m * n];
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>() as f32;
            }
        }
        cases.push(Case {
            kernel: "blocked",
            buffers: vec![buffer(&a), buffer(&b), empty(m * n)],
            params: vec![m as u32, n as u32, k as u32],
            groups: [(m.div_ceil(32) * n.div_ceil(64)) as u32, 1, 1],
            expected: vec![(2, bits(c.iter().copied()))],
            tolerance: 1e-3,
        });
        cases.push(Case {
            kernel: "tiled",
            buffers: vec![buffer(&a), buffer(&b), empty(m * n)],
            params: vec![m as u32, n as u32, k as u32],
            groups: [n.div_ceil(8) as u32, m.div_ceil(8) as u32, 1],
            expected: vec![(2, bits(c))],
            tolerance: 1e-3,
        });
    }
    let x: Vec<u32> = (0..1001u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    let mut bins = vec![0u32; 16];
    x.iter().for_each(|x| bins[(x % 16) as usize] += 1);
    cases.push(Case {
        kernel: "histogram",
        buffers: vec![(x, 1001), (vec![0; 16], 16)],
        params: vec![],
        groups: [16, 1, 1],
        expected: vec![(1, bins)],
        tolerance: 0.0,
    });
    let x: Vec<u32> = (0..333).collect();
    let wound = x
        .iter()
        .map(|x| {
            let (mut n, mut steps) = (*x, 0);
            if n == 0 {
                return 4_000_000_000;
            }
            while n != 1 && steps <= 100 {
                let odd = n % 2 == 1;
                n = if odd { n * 3 + 1 } else { n / 2 };
                steps += 1;
                if !odd && steps > 100 && n != 1 {
                    // The kernel looks at the count after odd steps alone.
                    while n % 2 == 0 && n != 1 {
                        n /= 2;
                        steps += 1;
                    }
                    if n != 1 {
                        steps += 1;
                    }
                    break;
                }
            }
            match steps {
                0 => 1000,
                1 | 2 => 2000 + steps,
                steps => steps,
            }
        })
        .collect();
    cases.push(Case {
        kernel: "winding",
        buffers: vec![(x, 333), (vec![9; 333], 333)],
        params: vec![],
        groups: [12, 1, 1],
        expected: vec![(1, wound)],
        tolerance: 0.0,
    });
    let x: Vec<f32> = (0..96u32).map(|i| (i * 7 % 32) as f32).collect();
    let y = (0..96)
        .map(|i| {
            let group = &x[i / 8 * 8..i / 8 * 8 + 8];
            let most = group.iter().copied().fold(0.0, f32::max);
            group.iter().sum::<f32>() + most * 2.0 + group[0] * 4.0 + x[i ^ 1] * 8.0 + (i % 8) as f32
        })
        .collect::<Vec<f32>>();
    cases.push(Case {
        kernel: "lanes",
        buffers: vec![buffer(&x), empty(96)],
        params: vec![],
        groups: [3, 1, 1],
        expected: vec![(1, bits(y))],
        tolerance: 0.0,
    });
    for n in [1usize, 63, 64, 200] {
        let rows = 5;
        let x: Vec<f32> = numbers(rows * n, 9).iter().map(|x| x * 6.0).collect();
        let mut y = Vec::new();
        for row in x.chunks(n) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = row.iter().map(|x| f64::from(x - most).exp()).sum();
            y.extend(row.iter().map(|x| (f64::from(x - most).exp() / total) as f32));
        }
        cases.push(Case {
            kernel: "softmax",
            buffers: vec![buffer(&x), empty(rows * n)],
            params: vec![n as u32],
            groups: [rows as u32, 1, 1],
            expected: vec![(1, bits(y))],
            tolerance: 1e-5,
        });
    }
    let pairs: Vec<(f32, u32)> = (0..77u32).map(|i| (i as f32 * 0.5, i)).collect();
    let (mut y, mut z) = (Vec::new(), Vec::new());
    for (mut a, mut b) in pairs.iter().copied() {
        let by = b % 6;
        let mut result = if by == 0 { Some(-1.0) } else { None };
        for i in 0..by {
            if i == 3 {
                result = Some(a);
                break;
            }
            a += 1.0;
            b += i;
        }
        z.push(result.unwrap_or(a * 2.0));
        y.extend([a.to_bits(), b]);
    }
    cases.push(Case {
        kernel: "pairs",
        buffers: vec![(pairs.iter().flat_map(|(a, b)| [a.to_bits(), *b]).collect(), 77), (vec![1; 154], 77), empty(77)],
        params: vec![],
        groups: [3, 1, 1],
        expected: vec![(1, y), (2, bits(z))],
        tolerance: 0.0,
    });
    // Halves: 1, 2, 3 .. as bits, times three; an odd count, so that the last word is half the kernel's.
    let half = |value: u32| {
        let exponent = 31 - value.leading_zeros();
        ((15 + exponent) << 10 | (value << 10 >> exponent & 0x3ff)) & 0xffff
    };
    let words = |values: Vec<u32>| {
        values.chunks(2).map(|two| two[0] | two.get(1).unwrap_or(&0xabcd) << 16).collect::<Vec<u32>>()
    };
    let z = numbers(22, 12);
    let mut doubled = z.clone();
    for four in doubled.chunks_exact_mut(4) {
        let dot: f32 = four[0] * four[0] + four[1] * four[1] + four[2] * four[2] + four[3] * four[3];
        four.iter_mut().for_each(|x| *x = *x * 2.0 + dot);
    }
    cases.push(Case {
        kernel: "halves",
        buffers: vec![(words((1..52).map(half).collect()), 51), (vec![0xabcd_abcd; 26], 51), buffer(&z)],
        params: vec![],
        groups: [2, 1, 1],
        expected: vec![(1, words((1..52).map(|i| half(i * 3)).collect())), (2, bits(doubled))],
        tolerance: 1e-6,
    });
    let x: Vec<u32> = (0..40u32).map(|i| i % 11).collect();
    let y = x
        .iter()
        .map(|j| {
            let at = |k: u32| if k < 8 { if k == *j { 7 } else { k * 10 } } else { 0 };
            at(*j) + at(*j + 1) + x[*j as usize]
        })
        .collect();
    cases.push(Case {
        kernel: "tables",
        buffers: vec![(x, 40), (vec![5; 40], 40)],
        params: vec![],
        groups: [2, 1, 1],
        expected: vec![(1, y)],
        tolerance: 0.0,
    });
    let x: Vec<u32> = (1..=100).collect();
    let y = (0..64usize).map(|lane| {
        let mut sum = 0;
        for r in 0..=lane {
            let row: u32 = x.iter().skip(lane).step_by(64).sum();
            let goes_on = r < lane && r % 2 != lane % 2;
            sum += if goes_on { 1001 * row } else { row };
        }
        sum
    });
    cases.push(Case {
        kernel: "rounds",
        expected: vec![(1, y.collect())],
        buffers: vec![(x, 100), (vec![5; 64], 64)],
        params: vec![],
        groups: [1, 1, 1],
        tolerance: 0.0,
    });
    cases
}
