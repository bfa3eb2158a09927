//! Running sums.

use trefoil::DeviceKind;
use trefoil_example_kernels::scan::look_back::{SMALL_TILE, TILE};
use trefoil_example_kernels::scan::{Method, inclusive, scan};
use trefoil_example_kernels::workload::words;

use crate::common::{Subject, devices};
use crate::held::{EPSILON, Held, large, repeat};
use crate::numbers::numbers;

const LENGTHS: [usize; 18] = [
    0,
    1,
    2,
    3,
    5,
    255,
    256,
    257,
    1021,
    SMALL_TILE - 1,
    SMALL_TILE,
    SMALL_TILE + 1,
    TILE - 1,
    TILE,
    TILE + 1,
    2 * TILE + 3,
    30_011,
    // More than a tile of tiles is left to hardware: see `large`.
    65_537,
];

fn check_words(subject: &Subject, x: &[u32], method: Method) {
    let about = format!("{} words by {method:?} on {}", x.len(), subject.name);
    let device = &subject.device;
    let there = Held::new(device, x);
    let mut y = Held::output(device, x.len());
    let mut sum = 0u32;
    let with: Vec<u32> = x
        .iter()
        .map(|x| {
            sum = sum.wrapping_add(*x);
            sum
        })
        .collect();
    device.run_all(scan::<_, false>(device, there.slice(), y.slice_mut(), method).unwrap()).unwrap();
    assert!(y.read(&about) == with, "inclusive, {about}");
    let without: Vec<u32> = with.iter().zip(x).map(|(with, x)| with.wrapping_sub(*x)).collect();
    device.run_all(scan::<_, true>(device, there.slice(), y.slice_mut(), method).unwrap()).unwrap();
    assert!(y.read(&about) == without, "exclusive, {about}");
}

/// Additions one after the other, a level: within a group of four and among the four of an invocation, over a subgroup's lanes or by doubling, over up to 128
/// subgroups, and of the start. Looking back takes no more than three levels, of up to 2^24 elements: 4097 tiles, 256 at a time.
const DEPTH: f64 = (4 + 4 + 8 + 128 + 2) as f64;

fn check_floats(subject: &Subject, x: &[f32], method: Method) {
    let about = format!("{} floats by {method:?} on {}", x.len(), subject.name);
    let device = &subject.device;
    let there = Held::new(device, x);
    let (mut with, mut without) = (Held::output(device, x.len()), Held::output(device, x.len()));
    device.run_all(scan::<_, false>(device, there.slice(), with.slice_mut(), method).unwrap()).unwrap();
    device.run_all(scan::<_, true>(device, there.slice(), without.slice_mut(), method).unwrap()).unwrap();
    let (mut sum, mut sizes) = (0.0, 0.0);
    for (i, ((with, without), x)) in with.read(&about).iter().zip(without.read(&about)).zip(x).enumerate() {
        let near = |given: f32, sum: f64, sizes: f64| (f64::from(given) - sum).abs() <= sizes * EPSILON * 3.0 * DEPTH;
        assert!(near(without, sum, sizes), "exclusive, {about}: element {i} is {without}, {sum} expected");
        sum += f64::from(*x);
        sizes += f64::from(x.abs());
        assert!(near(*with, sum, sizes), "inclusive, {about}: element {i} is {with}, {sum} expected");
    }
}

/// The ways of a device.
fn methods(subject: &Subject) -> Vec<Method> {
    let mut methods = vec![Method::Levels, Method::of(&subject.device)];
    methods.dedup();
    methods
}

#[test]
fn running_sums() {
    for subject in devices() {
        if subject.device.kind() == DeviceKind::Vulkan {
            // One tile waits for nobody, whatever the driver.
            check_words(&subject, &words(TILE - 1, 11), Method::LookBack);
            check_floats(&subject, &numbers(TILE, 12, 5.0), Method::LookBack);
        }
        for method in methods(&subject) {
            for length in LENGTHS {
                check_words(&subject, &words(length, 11), method);
                check_floats(&subject, &numbers(length, 12, 5.0), method);
            }
            let length = large(&subject) + 1;
            check_words(&subject, &words(length, 11), method);
            check_floats(&subject, &numbers(length, 12, 5.0), method);
        }
    }
}

#[test]
fn running_sums_are_the_same_each_time() {
    for subject in devices() {
        let device = &subject.device;
        // Hardware has room for more workgroups at a time than a processor.
        let length = if device.properties().software || device.kind() == DeviceKind::Cpu { 70_001 } else { 3_000_001 };
        let x = Held::new(device, &words(length, 13));
        let mut y = Held::output(device, length);
        repeat(device, &inclusive(device, x.slice(), y.slice_mut()).unwrap(), &y, &subject.name);
        // By looking back, floats are rounded in the order in which workgroups come.
        let x = Held::new(device, &numbers(70_001, 14, 5.0));
        let mut y = Held::output(device, 70_001);
        let launches = scan::<_, true>(device, x.slice(), y.slice_mut(), Method::Levels).unwrap();
        repeat(device, &launches, &y, &subject.name);
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for subject in devices() {
        let (x, mut y) = (Held::new(&subject.device, &[1u32; 3]), Held::output(&subject.device, 2));
        let error = inclusive(&subject.device, x.slice(), y.slice_mut()).unwrap_err().to_string();
        assert_eq!(error, "kernel `scan`, argument `y`: 2 elements given, 3 expected");
    }
}
