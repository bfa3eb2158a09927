//! Softmax and norms of rows: held in registers and longer, by any strides, of every element type, with every choice of optional operands and outputs.

use std::collections::BTreeSet;

use trefoil::artefact::Kernel;
use trefoil::dsl::element::Element;
use trefoil::{Buffer, Device, Launch, Result, bf16, f16};

use crate::case::{EPSILON, FLUSHED, is_close, kernel};
use crate::numbers::numbers;
use crate::stand::Stand;

/// Elements before and after a slice that belong to nobody; a multiple of what kernels move at once.
const GUARD: usize = 68;

/// A float that kernels take or give.
trait Value: Element + PartialEq {
    /// Half a unit in the last place of 1, beyond that of `f32`.
    const ROUNDING: f64;
    fn of(x: f32) -> Self;
    fn number(self) -> f64;
}

macro_rules! values {
    ($($ty:ty: $rounding:expr, $of:expr, $number:expr;)*) => {
        $(impl Value for $ty {
            const ROUNDING: f64 = $rounding;

            fn of(x: f32) -> Self {
                let of: fn(f32) -> Self = $of;
                of(x)
            }

            fn number(self) -> f64 {
                let number: fn(Self) -> f64 = $number;
                number(self)
            }
        })*
    };
}

values! {
    f32: 0.0, |x| x, f64::from;
    f16: 1.0 / 2048.0, f16::from_f32, f16::to_f64;
    bf16: 1.0 / 256.0, bf16::from_f32, bf16::to_f64;
    f64: 0.0, f64::from, |x| x;
}

/// Something written between guards of NaN.
struct Written<T: Element> {
    buffer: Buffer<T>,
    len: usize,
}

impl<T: Value> Written<T> {
    fn new(device: &Device, len: usize) -> Result<Self> {
        Ok(Self { buffer: device.buffer(&vec![T::of(f32::NAN); len + 2 * GUARD])?, len })
    }

    fn bind(&mut self, launch: Launch) -> Result<Launch> {
        launch.write(self.buffer.slice_mut(GUARD..GUARD + self.len)?)
    }

    fn numbers(&self) -> Result<Vec<f64>> {
        let all: Vec<f64> = self.buffer.read()?.into_iter().map(T::number).collect();
        let mut guards = all[..GUARD].iter().chain(&all[GUARD + self.len..]);
        assert!(guards.all(|x| x.is_nan()), "a guard was overwritten");
        Ok(all[GUARD..GUARD + self.len].to_vec())
    }
}

/// What is read, between guards of NaN.
fn read<T: Value>(device: &Device, values: &[T]) -> Result<Buffer<T>> {
    let guard = [T::of(f32::NAN); GUARD];
    device.buffer(&[&guard, values, &guard].concat())
}

/// A launch: rows of elements, `1 << bits` invocations for each, and how far apart the elements of a row are; rows are then neighbours.
#[derive(Clone, Copy, Debug)]
struct Work {
    rows: usize,
    elements: usize,
    bits: usize,
    apart: bool,
}

impl Work {
    const fn new(rows: usize, elements: usize, bits: usize) -> Self {
        Self { rows, elements, bits, apart: false }
    }

    fn groups(self, kernel: &Kernel) -> usize {
        self.rows.div_ceil(across(kernel) >> self.bits)
    }

    /// Where an element lies.
    fn place(self, row: usize, element: usize) -> usize {
        if self.apart { element * self.rows + row } else { row * self.elements + element }
    }

    /// The strides of rows and of elements as kernels of any strides take them.
    fn strides(self) -> [[usize; 5]; 2] {
        let [row, element] = if self.apart { [1, self.rows] } else { [self.elements, 1] };
        [[0, 0, 0, 0, row], [0, 0, 0, 0, element]]
    }

    /// Where rows lie, as those kernels take it, up to the strides in the result.
    fn of_any(self, launch: Launch) -> Result<Launch> {
        let [rows, elements] = self.strides();
        launch
            .value(1usize << self.bits)?
            .value(!self.apart)?
            .value([0usize, 0])?
            .value([1usize; 4])?
            .value([1usize; 4])?
            .value(rows)?
            .value(elements)?
            .value(rows)?
            .value(elements)
    }

    /// Additions one after the other, at most.
    fn depth(self) -> f64 {
        (self.elements.div_ceil(1 << self.bits) + 12) as f64
    }
}

/// The invocations of a kernel's workgroups.
fn across(kernel: &Kernel) -> usize {
    kernel.workgroup_size.iter().product::<u32>() as usize
}

/// Whether its workgroups are large and have a row each; without a residual, and `norm_widest` without `beta`.
fn is_large(kernel: &Kernel) -> bool {
    ["norm_widest", "norm_kept"].contains(&&*kernel.name)
}

/// The works of a kernel, by its name.
fn works(kernel: &Kernel) -> Vec<Work> {
    let name = &*kernel.name;
    if name.contains("strided") {
        let mut works = Vec::new();
        for (rows, elements, bits) in
            [(0, 5, 0), (2, 0, 3), (1, 1, 0), (3, 2, 1), (7, 17, 2), (3, 257, 5), (2, 4099, 8), (65, 40, 3)]
        {
            let work = Work::new(rows, elements, bits);
            works.extend([work, Work { apart: true, ..work }]);
        }
        return works;
    }
    if is_large(kernel) {
        let bits = across(kernel).ilog2() as usize;
        let sizes = [(0, 4), (1, 4), (300, 8), (3, 520), (2, 16_388), (3, 32_764), (2, 32_768)];
        return sizes.map(|(rows, elements)| Work::new(rows, elements, bits)).to_vec();
    }
    let held = name.split('_').filter_map(|part| part.parse::<usize>().ok()).next_back().unwrap();
    let mut works =
        vec![Work::new(0, 4, 0), Work::new(3, 4, 0), Work::new(300, 8, 1), Work::new(9, 28, 5), Work::new(3, 520, 8)];
    // As long as they may be, and a little shorter.
    for bits in [0, 3, 6, 8, 9].into_iter().filter(|bits| 1 << bits <= across(kernel)) {
        let most = (4 * held) << bits;
        works.extend([Work::new(2, most, bits), Work::new(3, most - 4, bits)]);
    }
    if held >= 16 || name.contains("half") {
        works.extend([Work::new(2, 16_388, 8), Work::new(1, 40_000, 8)]);
    }
    works
}

/// Those of a kernel that a device has time for.
fn affordable(stand: &Stand, kernel: &Kernel) -> impl Iterator<Item = Work> {
    // Of each element some dozens of steps.
    works(kernel).into_iter().filter(|work| stand.affords(work.rows * work.elements * 32))
}

fn check_close(place: &str, given: &[f64], expected: &[(f64, f64)]) {
    assert_eq!(given.len(), expected.len(), "{place}");
    for (index, (given, (value, tolerance))) in given.iter().zip(expected).enumerate() {
        let close = is_close(*given, *value, *tolerance);
        assert!(close, "{place}: element {index} is {given}, {value} within {tolerance:e} expected");
    }
}

/// The softmax of rows of numbers around 500, where exponentials overflow unless the largest is taken off first, with some that a mask took out.
fn softmax<T: Value>(stand: &Stand, kernel: &'static Kernel, place: &str) -> Result<()> {
    let device = &stand.device;
    for work in affordable(stand, kernel) {
        for logarithm in [false, true] {
            let place = format!("{place}, {work:?}, logarithm {logarithm}");
            let mut x: Vec<T> = numbers(work.rows * work.elements, 1, 20.0).iter().map(|x| T::of(x + 500.0)).collect();
            if work.elements > 2 {
                for row in 0..work.rows {
                    x[work.place(row, 1)] = T::of(f32::NEG_INFINITY);
                }
            }
            let input = read(device, &x)?;
            let mut y = Written::<T>::new(device, x.len())?;
            let launch = y.bind(Launch::of(kernel).read(input.slice(GUARD..GUARD + x.len())?)?)?;
            let launch = launch.value([work.rows, work.elements])?;
            let launch = if kernel.name.contains("strided") {
                work.of_any(launch)?
            } else {
                launch.value(work.bits)?.value(0usize)?.value([1usize; 4])?.value([0, 0, 0, 0, work.elements])?
            };
            device.run(launch.value(logarithm)?.groups(work.groups(kernel)))?;
            stand.ran([kernel], &place);
            let mut expected = vec![(0.0, 0.0); x.len()];
            for row in 0..work.rows {
                let places: Vec<usize> = (0..work.elements).map(|element| work.place(row, element)).collect();
                let row: Vec<f64> = places.iter().map(|at| x[*at].number()).collect();
                for (at, value) in places.into_iter().zip(of_softmax::<T>(&row, logarithm, work.depth())) {
                    expected[at] = value;
                }
            }
            check_close(&place, &y.numbers()?, &expected);
        }
    }
    Ok(())
}

/// An exponential is off by 3 + 2 |x| ulp and by the rounding of its argument, the sum by its terms' errors and its own depth, the reciprocal by 3 ulp, the logarithm by as many of its size.
fn of_softmax<T: Value>(x: &[f64], logarithm: bool, depth: f64) -> Vec<(f64, f64)> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let distances: Vec<f64> = x.iter().map(|x| x - largest).collect();
    let sum: f64 = distances.iter().map(|d| d.exp()).sum();
    // Where the exponential is zero in f64 there is nothing to be off by.
    let ulps = |d: f64| if d.exp() == 0.0 { 0.0 } else { 3.0 + 2.5 * d.abs() };
    // What is not held is rescaled, by another exponential for each round.
    let of_sum = distances.iter().map(|d| d.exp() * (2.0 * ulps(*d) + 8.0)).sum::<f64>() / sum + depth;
    let element = |d: &f64| {
        if logarithm {
            let value = d - sum.ln();
            let tolerance = EPSILON * (of_sum + 4.0 * sum.ln().abs() + 2.0 * value.abs() + 4.0);
            return (value, tolerance + T::ROUNDING * value.abs());
        }
        let value = d.exp() / sum;
        (value, value * ((ulps(*d) + of_sum + 4.0) * EPSILON + T::ROUNDING) + FLUSHED.max(T::ROUNDING * 1e-4))
    };
    distances.iter().map(element).collect()
}

/// Which there are: a residual, a bias, gamma, beta, the sum, moments; and whether the mean is taken off.
const CHOICES: [[bool; 7]; 8] = [
    [false, false, false, false, false, false, true],
    [true, true, true, true, true, true, true],
    [true, false, true, false, true, false, false],
    [false, false, true, true, false, true, true],
    [false, false, false, true, false, true, false],
    [true, true, false, false, false, false, false],
    [false, false, true, false, false, true, false],
    [false, false, true, false, false, false, true],
];

/// Norms of rows whose mean is large against their deviation, where it is taken off. `M` is what moments are.
fn norm<T: Value, W: Value, M: Value>(stand: &Stand, kernel: &'static Kernel, place: &str) -> Result<()> {
    let device = &stand.device;
    let strided = kernel.name.contains("strided");
    let wants_residual = kernel.name.ends_with("true");
    for (index, work) in affordable(stand, kernel).enumerate() {
        for choice in CHOICES.into_iter().skip(index % 2).step_by(2) {
            let [residual, bias, gamma, beta, sum, moments, centred] = choice;
            let large = is_large(kernel);
            if !strided && residual != wants_residual || large && (bias || sum || beta && kernel.name == "norm_widest")
            {
                continue;
            }
            let place = format!("{place}, {work:?}, {choice:?}");
            let Work { rows, elements, .. } = work;
            let count = rows * elements;
            let x: Vec<T> = numbers(count, 2, 2.0).iter().map(|x| T::of(x + 4.0)).collect();
            let optional = |there: bool, count: usize, seed| if there { numbers(count, seed, 1.5) } else { Vec::new() };
            let residual: Vec<T> = optional(residual, count, 3).into_iter().map(T::of).collect();
            let bias: Vec<T> = optional(bias, elements, 6).into_iter().map(T::of).collect();
            let gamma: Vec<W> = optional(gamma, elements, 4).into_iter().map(W::of).collect();
            let beta: Vec<W> = optional(beta, elements, 5).into_iter().map(W::of).collect();
            let (x_read, residual_read, bias_read) =
                (read(device, &x)?, read(device, &residual)?, read(device, &bias)?);
            let (gamma_read, beta_read) = (read(device, &gamma)?, read(device, &beta)?);
            let mut y = Written::<T>::new(device, count)?;
            let mut sums = Written::<T>::new(device, if sum { count } else { 4 })?;
            let mut parts = Written::<M>::new(device, if moments { 2 * rows } else { 2 })?;
            let launch = Launch::of(kernel).read(x_read.slice(GUARD..GUARD + count)?)?;
            let launch = if large {
                let launch = launch.read(gamma_read.slice(GUARD..GUARD + gamma.len())?)?;
                let shifts = kernel.name == "norm_kept";
                let beta = || beta_read.slice(GUARD..GUARD + beta.len());
                let launch = if shifts { launch.read(beta()?)? } else { launch };
                parts.bind(y.bind(launch)?)?
            } else {
                let launch = launch
                    .read(residual_read.slice(GUARD..GUARD + residual.len())?)?
                    .read(bias_read.slice(GUARD..GUARD + bias.len())?)?
                    .read(gamma_read.slice(GUARD..GUARD + gamma.len())?)?
                    .read(beta_read.slice(GUARD..GUARD + beta.len())?)?;
                parts.bind(sums.bind(y.bind(launch)?)?)?
            };
            let launch = launch.value([rows, elements, elements])?;
            let epsilon = if index % 3 == 0 { 0.25 } else { 1e-5 };
            let launch = if strided {
                work.of_any(launch)?.value([0usize; 5])?.value([0, 0, 0, 0, 1usize])?
            } else {
                let launch = if large { launch } else { launch.value(work.bits)? };
                let launch =
                    launch.value(0usize)?.value([1usize; 4])?.value([0, 0, 0, 0, elements])?.value([0usize; 5])?;
                if large { launch } else { launch.value([1usize, 1])? }
            };
            // The kernel of doubles takes what a root may be at least, and the others what its inverse may be at most.
            let bound = if kernel.name.ends_with("f64") { 0.0 } else { f32::MAX };
            let launch = launch.value([epsilon, bound])?.value(centred)?;
            let launch = if large { launch } else { launch.value(sum)? }.value(moments)?;
            device.run(launch.groups(work.groups(kernel)))?;
            stand.ran([kernel], &place);

            let of = |vector: &[f64], at: usize, otherwise: f64| vector.get(at).copied().unwrap_or(otherwise);
            let as_numbers = |values: &[T]| values.iter().map(|x| x.number()).collect::<Vec<f64>>();
            let as_weights = |values: &[W]| values.iter().map(|x| x.number()).collect::<Vec<f64>>();
            let (x, residual, bias) = (as_numbers(&x), as_numbers(&residual), as_numbers(&bias));
            let (gamma, beta) = (as_weights(&gamma), as_weights(&beta));
            let mut expected = vec![(0.0, 0.0); count];
            let mut expected_sums = expected.clone();
            let mut expected_parts = Vec::new();
            for row in 0..rows {
                let places: Vec<usize> = (0..elements).map(|element| work.place(row, element)).collect();
                let v: Vec<f64> = places
                    .iter()
                    .enumerate()
                    .map(|(element, at)| x[*at] + of(&residual, *at, 0.0) + of(&bias, element, 0.0))
                    .collect();
                // What the terms are, since their sum may be less than what rounds.
                let sizes: Vec<f64> = places
                    .iter()
                    .enumerate()
                    .map(|(element, at)| x[*at].abs() + of(&residual, *at, 0.0).abs() + of(&bias, element, 0.0).abs())
                    .collect();
                let (mean, factor, off) = moments_of(&v, &sizes, epsilon.into(), centred, work.depth());
                expected_parts.extend([(mean, off[0]), (factor, off[1])]);
                for (element, (at, v)) in places.into_iter().zip(&v).enumerate() {
                    expected_sums[at] = (*v, 4.0 * EPSILON * sizes[element] + T::ROUNDING * v.abs());
                    let (gamma, beta) = (of(&gamma, element, 1.0), of(&beta, element, 0.0));
                    let scaled = (v - mean) * factor * gamma;
                    let off_centred = EPSILON * (4.0 * sizes[element] + (v - mean).abs()) + off[0];
                    let off_scaled = gamma.abs() * (off_centred * (factor + off[1]) + (v - mean).abs() * off[1]);
                    let value = scaled + beta;
                    let rounding = EPSILON * (2.0 * scaled.abs() + value.abs()) + T::ROUNDING * value.abs();
                    expected[at] = (value, off_scaled + rounding + T::ROUNDING * 1e-3);
                }
            }
            check_close(&place, &y.numbers()?, &expected);
            if sum {
                check_close(&format!("{place}, sum"), &sums.numbers()?, &expected_sums);
            } else {
                assert!(sums.numbers()?.iter().all(|x| x.is_nan()), "{place}: the sum was written");
            }
            if moments {
                check_close(&format!("{place}, moments"), &parts.numbers()?, &expected_parts);
            } else {
                assert!(parts.numbers()?.iter().all(|x| x.is_nan()), "{place}: moments were written");
            }
        }
    }
    Ok(())
}

/// Mean and factor, and how far off they may be, of numbers that are sums of terms of such sizes.
fn moments_of(v: &[f64], sizes: &[f64], epsilon: f64, centred: bool, depth: f64) -> (f64, f64, [f64; 2]) {
    let count = v.len() as f64;
    let mean = if centred { v.iter().sum::<f64>() / count } else { 0.0 };
    let mean_size = sizes.iter().sum::<f64>() / count;
    let off_mean = if centred { (depth + 6.0) * EPSILON * mean_size } else { 0.0 };
    let off_centred = |at: usize| EPSILON * (4.0 * sizes[at] + (v[at] - mean).abs()) + off_mean;
    let squared = v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    let off_squares: f64 =
        (0..v.len()).map(|at| 2.0 * (v[at] - mean).abs() * off_centred(at) + off_centred(at).powi(2)).sum();
    let off_squared = off_squares / count + (depth + 6.0) * EPSILON * (squared + epsilon);
    let factor = 1.0 / (squared + epsilon).sqrt();
    // The derivative of 1 / sqrt, and 3 ulp of its own; all of it where the deviation is no more than what rounding makes.
    let relative = 0.5 * off_squared / (squared + epsilon);
    let off_factor = if relative < 0.25 { factor * (2.0 * relative + 3.0 * EPSILON) } else { f64::INFINITY };
    (mean, factor, [off_mean, off_factor])
}

/// A kernel by its name, and the test of it.
type Test = (&'static str, fn(&Stand, &'static Kernel, &str) -> Result<()>);

fn tests() -> Vec<Test> {
    let of = |name: &'static str| -> fn(&Stand, &'static Kernel, &str) -> Result<()> {
        let is = |part: &str| name.split('_').any(|known| known == part);
        match (name.starts_with("softmax"), is("bf16"), is("f16"), is("f64")) {
            (true, true, ..) => softmax::<bf16>,
            (true, _, true, _) => softmax::<f16>,
            (true, .., true) => softmax::<f64>,
            (true, ..) => softmax::<f32>,
            (false, true, ..) if is("f32") => norm::<bf16, f32, f32>,
            (false, true, ..) => norm::<bf16, bf16, f32>,
            (false, _, true, _) if is("f32") => norm::<f16, f32, f32>,
            (false, _, true, _) => norm::<f16, f16, f32>,
            (false, _, _, true) => norm::<f64, f64, f64>,
            (false, ..) => norm::<f32, f32, f32>,
        }
    };
    trefoil::kernels::norm::kernels().into_iter().map(|kernel| (&*kernel.name, of(&kernel.name))).collect()
}

/// The kernels that are tested here.
pub fn tested() -> BTreeSet<&'static str> {
    tests().into_iter().map(|(name, _)| name).collect()
}

/// Runs every kernel that the device can.
pub fn check(stand: &Stand) {
    let offered = stand.device.properties().features;
    for (name, test) in tests() {
        if name.ends_with("f64") && !offered.has(trefoil::artefact::Feature::Float64) {
            continue;
        }
        let kernel = kernel(name);
        if !stand.runs(kernel) {
            continue;
        }
        let place = format!("{name}, on {}", stand.name);
        test(stand, kernel, &place).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
}
