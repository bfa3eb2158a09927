//! A text means to the front end what it means to rustc: in which order places and values are evaluated, and which types literals have. Each function here is compiled by both, and run by the evaluator
//! and by itself.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(
    clippy::needless_range_loop,
    clippy::unnecessary_cast,
    reason = "kernels have ranges, and what a conversion does to a literal is looked at"
)]

#[path = "support/evaluated.rs"]
mod evaluated;

use std::ops::{AddAssign, MulAssign, SubAssign};

use evaluated::evaluated;
use trefoil_codegen::front;
use trefoil_codegen::ir::{Instance, instantiate};

/// As much of the language's bound as is used here.
trait Number: Copy + AddAssign + SubAssign + MulAssign {}

impl Number for f32 {}
impl Number for i32 {}

/// Functions, and their text for the front end.
macro_rules! device {
    ($text:ident: $($item:item)*) => {
        $($item)*

        const $text: &str = concat!($("#[device] ", stringify!($item), "\n"),*);
    };
}

device! { ORDERS:
    fn next(i: &mut usize) -> usize {
        *i += 1;
        *i
    }

    fn past<T: Number>(i: &mut usize, x: T) -> T {
        *i += 1;
        x
    }

    fn once<T: Number>(x: T, f: impl Fn(T) -> T) -> T {
        f(x)
    }

    fn generic<T: Number>(x: &mut [T], v: &[T]) {
        let mut i = 0;
        x[i] += {
            i += 1;
            v[i]
        };
        x[next(&mut i)] -= v[next(&mut i)];
        let mut l = [v[0]; 6];
        l[next(&mut i)] *= v[next(&mut i)];
        x[4] = l[4];
        x[5] = l[5];
        x[6] = once(v[1], |w| {
            let mut k = 0;
            let mut held = [w; 4];
            held[next(&mut k)] += past(&mut k, w);
            held[1]
        });
    }

    fn plain(x: &mut [f32], v: &[f32]) {
        let mut i = 0;
        x[i] += {
            i += 1;
            v[i]
        };
        x[next(&mut i)] -= v[next(&mut i)];
        let mut l = [v[0]; 6];
        l[next(&mut i)] *= v[next(&mut i)];
        x[4] = l[4];
        x[5] = l[5];
        x[6] = once(v[1], |w| {
            let mut k = 0;
            let mut held = [w; 4];
            held[next(&mut k)] += past(&mut k, w);
            held[1]
        });
    }
}

device! { CONVERSIONS:
    fn of_integers(u: &mut [u32], i: usize, c: bool) {
        for a in 0..3 {
            let word = (100 * a + 10 * i) as u32;
            u[a] = word;
        }
        let m = 7;
        u[3] = ((1 - m) / 2) as u32;
        u[4] = ((1 << 31) >> 3) as u32;
        u[5] = -(m - 5) as u32;
        u[6] = (if c { -1 } else { 1 }) as u32;
        u[7] = (((3 - m) / 2) as u64 >> 32) as u32;
        u[8] = !0 as u32;
        u[9] = 4000000000 as u32;
        u[10] = (!0 as u64 >> 32) as u32;
        u[11] = -3000000000 as i64 as u32;
    }

    fn of_floats(y: &mut [f32], d: &mut [f64], a: f32) {
        let s = 0.7;
        d[0] = (3.0 * s) as f64;
        y[0] = s * a;
        d[1] = (0.1 * 3.0) as f64;
        let t = 0.1;
        d[2] = (t * 3.0) as f64;
        d[3] = -0.1 as f64;
        y[1] = 0.1 as f32;
    }
}

/// What a kernel that calls these functions leaves in its bindings.
fn run(functions: &str, kernel: &str, bindings: Vec<(Vec<u32>, u32)>) -> Vec<Vec<u32>> {
    let source = format!("{functions}#[kernel(workgroup(1), targets(cpu))] {kernel}");
    let outputs = front::parse_source(&source).unwrap_or_else(|errors| panic!("{errors}\n{source}"));
    let module = instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"));
    evaluated(&module, bindings)
}

/// As a binding of so many elements of a word each.
fn words(words: impl IntoIterator<Item = u32>) -> (Vec<u32>, u32) {
    let words: Vec<u32> = words.into_iter().collect();
    let elements = words.len() as u32;
    (words, elements)
}

#[test]
fn places_and_values_are_evaluated_in_rusts_order() {
    let floats = |numbers: &[f32]| words(numbers.iter().map(|number| number.to_bits()));
    let integers = |numbers: &[i32]| words(numbers.iter().map(|number| number.cast_unsigned()));
    let (mut x, v) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [0.5, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0]);
    let mut y = x;
    let kernel = "fn k(x: &mut [f32], y: &mut [f32], v: &[f32]) { generic(x, v); plain(y, v); }";
    let given = run(ORDERS, kernel, vec![floats(&x), floats(&y), floats(&v)]);
    generic(&mut x, &v);
    plain(&mut y, &v);
    assert_ne!(x, y, "both have one order");
    assert_eq!(given, [floats(&x).0, floats(&y).0, floats(&v).0]);

    let (mut x, v) = ([1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 5, 7, 11, 13, 17, 19]);
    let kernel = "fn k(x: &mut [i32], v: &[i32]) { generic(x, v); }";
    let given = run(ORDERS, kernel, vec![integers(&x), integers(&v)]);
    generic(&mut x, &v);
    assert_eq!(given, [integers(&x).0, integers(&v).0]);
}

#[test]
fn what_is_converted_has_rusts_types() {
    let mut u = [9; 12];
    let given = run(CONVERSIONS, "fn k(u: &mut [u32]) { of_integers(u, 4, true); }", vec![words(u)]);
    of_integers(&mut u, 4, true);
    assert_eq!(given, [u]);

    let (mut y, mut d) = ([0.0f32; 2], [0.0f64; 4]);
    let kernel = "fn k(y: &mut [f32], d: &mut [f64]) { of_floats(y, d, 1.25); }";
    let given = run(CONVERSIONS, kernel, vec![words([0; 2]), (vec![0; 8], 4)]);
    of_floats(&mut y, &mut d, 1.25);
    let halves = |number: &f64| [number.to_bits() as u32, (number.to_bits() >> 32) as u32];
    assert_eq!(given[0], y.map(f32::to_bits));
    assert_eq!(given[1], d.iter().flat_map(halves).collect::<Vec<_>>());
}
