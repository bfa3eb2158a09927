//! The largest elements of rows, against a sort of the whole row.

use trefoil_example_kernels::top_k::{MOST, top_k};

use crate::common::{Subject, devices};
use crate::held::{Held, large, repeat};
use crate::numbers::numbers;

/// Rows, columns, k.
const SIZES: [(usize, usize, usize); 12] = [
    (0, 5, 1),
    (1, 1, 1),
    (3, 2, 2),
    (5, 127, 127),
    (2, 128, MOST),
    (3, 255, 7),
    (2, 257, 64),
    (2, 1023, 5),
    (2, 1024, MOST),
    (3, 1025, 33),
    (1, 4099, 100),
    (1, 65_537, 50),
];

/// Numbers with many equal ones, zeros of both signs and what is no number.
fn awkward(count: usize) -> Vec<f32> {
    let mut x: Vec<f32> = numbers(count, 41, 50.0).iter().map(|x| x.round()).collect();
    for i in (3..count).step_by(31) {
        x[i] = [f32::INFINITY, -0.0, f32::NEG_INFINITY, f32::NAN, 0.0, 1e-30][i % 6];
    }
    x
}

fn check(subject: &Subject, x: &[f32], rows: usize, columns: usize, k: usize) {
    let about = format!("top {k} of {rows} rows of {columns} on {}", subject.name);
    let device = &subject.device;
    let there = Held::new(device, x);
    let (mut values, mut places) = (Held::output(device, rows * k), Held::<u32>::output(device, rows * k));
    let launches = top_k(there.slice(), values.slice_mut(), places.slice_mut(), [rows, columns], k).unwrap();
    device.run_all(launches).unwrap();
    let (values, places) = (values.read(&about), places.read(&about));
    for row in 0..rows {
        let of = &x[row * columns..][..columns];
        let mut order: Vec<u32> = (0..columns as u32).collect();
        // Stable, so that of equals the first stays first.
        order.sort_by(|a, b| of[*b as usize].total_cmp(&of[*a as usize]));
        assert_eq!(places[row * k..][..k], order[..k], "places in row {row} of {about}");
        let given = values[row * k..][..k].iter().map(|x| x.to_bits());
        assert!(given.eq(order[..k].iter().map(|i| of[*i as usize].to_bits())), "values of row {row} of {about}");
    }
}

#[test]
fn the_largest() {
    for subject in devices() {
        for (rows, columns, k) in SIZES {
            check(&subject, &awkward(rows * columns), rows, columns, k);
        }
        // Rising, so that every element is a candidate; falling; and all equal.
        let rising: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        check(&subject, &rising, 1, 5000, 70);
        check(&subject, &rising.iter().map(|x| -x).collect::<Vec<_>>(), 2, 2500, 70);
        check(&subject, &[2.5; 3000], 1, 3000, MOST);
        let rows = large(&subject) / 4096;
        check(&subject, &numbers(rows * 4096, 42, 1.0), rows, 4096, 50);
    }
}

#[test]
fn the_largest_are_the_same_each_time() {
    for subject in devices() {
        let device = &subject.device;
        let x = Held::new(device, &awkward(5 * 3001));
        let (mut values, mut places) = (Held::output(device, 5 * 40), Held::<u32>::output(device, 5 * 40));
        let launches = top_k(x.slice(), values.slice_mut(), places.slice_mut(), [5, 3001], 40).unwrap();
        repeat(device, &launches, &places, &subject.name);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for subject in devices() {
        let device = &subject.device;
        let x = Held::new(device, &[1.0f32; 200]);
        let (mut values, mut places) = (Held::output(device, 6), Held::<u32>::output(device, 6));
        for (size, k, argument) in
            [([2, 100], 0, "k"), ([1, 200], 129, "k"), ([100, 2], 3, "k"), ([2, 99], 3, "x"), ([1, 200], 5, "values")]
        {
            let error = top_k(x.slice(), values.slice_mut(), places.slice_mut(), size, k).unwrap_err().to_string();
            assert!(error.contains(&format!("argument `{argument}`")), "{error}");
        }
    }
}
