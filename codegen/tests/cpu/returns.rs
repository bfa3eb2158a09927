//! Launches of kernels whose functions a workgroup leaves early, and what a workgroup that does all in step leaves.

use super::Case;

/// What the other end of a workgroup has.
fn across(x: &[u32]) -> Vec<u32> {
    x.iter().rev().copied().collect()
}

/// `a + times * b + more`, invocation by invocation.
fn sum(a: &[u32], times: u32, b: &[u32], more: u32) -> Vec<u32> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(times.wrapping_mul(*b)).wrapping_add(more)).collect()
}

fn plus(a: &[u32], more: u32) -> Vec<u32> {
    sum(a, 0, a, more)
}

fn from_branches(x: &[u32], n: u32) -> Vec<u32> {
    if n > 8 {
        return plus(x, 1000);
    }
    let first = plus(x, if n > 4 { 10 } else { 0 });
    let second = sum(&first, 2, &across(&first), 0);
    let third = match n {
        0..=2 => second,
        3 => return plus(&second, 3000),
        4..=6 => plus(&second, 1),
        7 => plus(&second, 21),
        _ => return plus(&second, 2000),
    };
    sum(&third, 3, &across(&third), 0)
}

fn from_cases(x: &[u32], kind: u32) -> Vec<u32> {
    let first = match kind {
        0 => return vec![7; x.len()],
        1 => plus(x, 5),
        2 | 3 => return sum(x, 1, &across(x), 0),
        _ => plus(x, 6),
    };
    sum(&first, 2, &across(&first), 0)
}

fn from_loops(x: &[u32], n: u32) -> Vec<u32> {
    let mut all = x.to_vec();
    for i in 0..3 {
        for j in 0..4 {
            all = sum(&all, 1, &across(&all), j);
            if i * 4 + j == n {
                return plus(&all, 100);
            }
            if j > i {
                break;
            }
        }
        if i + 20 == n {
            return plus(&all, 200);
        }
        all = plus(&all, 1);
    }
    for k in 1..5 {
        if k + 30 == n {
            return plus(&all, 400);
        }
        all = sum(&all, 2, &across(&plus(&all, k)), 0);
    }
    plus(&all, 300)
}

fn marked(tile: &[u32], n: u32) -> Vec<u32> {
    if n < 8 {
        return plus(tile, n);
    }
    let all = plus(tile, 8);
    sum(&all, 100, &across(&all), 0)
}

fn found(x: &[u32]) -> Vec<u32> {
    let of_one = |l: usize| {
        if let Some(i) = (0..l).find(|i| x[*i] % 7 == 3) {
            return x[i] + i as u32;
        }
        match x[l] {
            x if x % 6 == 0 => 500,
            x if x % 2 == 0 => x + 1010,
            x => x + 1000,
        }
    };
    (0..x.len()).map(of_one).collect()
}

fn itself(x: &[u32], before: &[u32], n: u32) -> Vec<u32> {
    if n > 6 {
        return vec![1; x.len()];
    }
    let first = plus(x, if n > 4 { 10 } else { 0 });
    let second = sum(&first, n.min(3), &across(&first), 0);
    match n {
        0..=2 => second,
        3 => before.to_vec(),
        _ => sum(&second, 3, &across(&second), 0),
    }
}

/// Two workgroups, each of which a reference is given.
fn case(kernel: &'static str, params: Vec<u32>, reference: impl Fn(&[u32], &[u32]) -> Vec<u32>) -> Case {
    let x: Vec<u32> = (0..128u32).map(|i| i * 37 % 101).collect();
    let y: Vec<u32> = (0..128u32).map(|i| 5000 + i).collect();
    let expected = x.chunks(64).zip(y.chunks(64)).flat_map(|(x, y)| reference(x, y)).collect();
    Case {
        kernel,
        buffers: vec![(x, 128), (y, 128)],
        params,
        groups: [2, 1, 1],
        expected: vec![(1, expected)],
        tolerance: 0.0,
    }
}

/// Launches of every kernel of `kernels/returns.rs`, so that each of their returns is the one that is taken, and none.
pub(super) fn cases() -> Vec<Case> {
    let twice = |x: &[u32], n: u32, of: fn(&[u32], u32) -> Vec<u32>| {
        let first = of(x, n);
        sum(&first, 7, &of(&first, n / 2), 0)
    };
    let mut cases = Vec::new();
    for n in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 20] {
        cases.push(case("branches", vec![n], |x, _| twice(x, n, from_branches)));
        cases.push(case("choices", vec![n], |x, _| twice(x, n, from_cases)));
        cases.push(case("itself", vec![n], |x, y| itself(x, y, n)));
        cases.push(case("marks", vec![n], |x, _| (n..n + 3).fold(x.to_vec(), |tile, n| marked(&tile, n))));
    }
    for n in [0, 1, 2, 4, 5, 6, 8, 10, 11, 20, 21, 22, 31, 32, 34, 35, 40, 42, 62, 68, 99] {
        cases.push(case("rounds", vec![n], |x, _| twice(x, n, from_loops)));
    }
    cases.push(case("finds", vec![], |x, _| {
        let first = found(x);
        let second = found(&first);
        sum(&first, 3, &across(&sum(&first, 7, &second, 0)), 0)
    }));
    cases
}
