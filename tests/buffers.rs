//! Buffers on every device: copies within a device, and buffers in memory that is there already.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::devices;
use trefoil::Error;
use trefoil::prelude::*;

/// Twice as much of all.
#[kernel(workgroup(64))]
fn twice(x: &mut [u32]) {
    let i = global_index();
    if i < x.len() {
        x[i] = 2 * x[i];
    }
}

/// All bits but the sign.
#[kernel(workgroup(64))]
fn without_sign(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = x[i] & 0x7fff_ffff;
    }
}

#[test]
fn copies_take_their_turn_among_kernels() {
    for subject in devices() {
        let device = &subject.device;
        let numbers: Vec<u32> = (0..1000).collect();
        let mut x = device.buffer(&numbers).unwrap();
        let mut y = device.zeros::<u32>(1000).unwrap();
        device.run(twice(&mut x).unwrap().over(1000)).unwrap();
        y.copy_from(&x).unwrap();
        device.run(twice(&mut x).unwrap().over(1000)).unwrap();
        device.run(twice(&mut y).unwrap().over(1000)).unwrap();
        y.slice_mut(10..20).unwrap().copy_from(x.slice(990..).unwrap()).unwrap();
        y.slice_mut(1000..).unwrap().copy_from(x.slice(..0).unwrap()).unwrap();
        let mut expected: Vec<u32> = numbers.iter().map(|number| 4 * number).collect();
        assert_eq!(x.read().unwrap(), expected, "{}", subject.name);
        expected.copy_within(990.., 10);
        assert_eq!(y.read().unwrap(), expected, "{}", subject.name);
    }
}

#[test]
fn small_elements_are_copied_up_to_the_end() {
    for subject in devices() {
        let device = &subject.device;
        let x = device.buffer(&[1u16, 2, 3, 4, 5, 6, 7]).unwrap();
        let mut y = device.zeros::<u16>(7).unwrap();
        y.copy_from(&x).unwrap();
        assert_eq!(y.read().unwrap(), [1, 2, 3, 4, 5, 6, 7], "{}", subject.name);
        y.slice_mut(4..).unwrap().copy_from(x.slice(..3).unwrap()).unwrap();
        y.slice_mut(..2).unwrap().copy_from(x.slice(2..4).unwrap()).unwrap();
        assert_eq!(y.read().unwrap(), [3, 4, 3, 4, 1, 2, 3], "{}", subject.name);
        let bytes = device.buffer(&[1u8, 2, 3]).unwrap();
        let mut others = device.zeros::<u8>(3).unwrap();
        others.copy_from(&bytes).unwrap();
        assert_eq!(others.read().unwrap(), [1, 2, 3], "{}", subject.name);
    }
}

#[test]
fn copies_within_one_buffer_are_for_devices_that_do_so() {
    for subject in devices() {
        let device = &subject.device;
        let mut x = device.buffer(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let (mut low, high) = x.slice_mut(..).unwrap().split_at(2).unwrap();
        let copied = low.copy_from(high.shared());
        if device.limits().shares_memory_within_dispatch {
            copied.unwrap();
            assert_eq!(x.read().unwrap(), [3.0, 4.0, 3.0, 4.0], "{}", subject.name);
        } else {
            let error = copied.unwrap_err().to_string();
            assert!(error.contains("are one piece of memory"), "{}: {error}", subject.name);
            assert_eq!(x.read().unwrap(), [1.0, 2.0, 3.0, 4.0], "{}", subject.name);
        }
    }
}

#[test]
fn memory_is_seen_as_elements_of_another_type() {
    for subject in devices() {
        let device = &subject.device;
        let numbers = device.buffer(&[1.5f32, -2.5, -0.0]).unwrap();
        let bits = device.buffer_of::<u32>(numbers.memory(), 3).unwrap();
        assert_eq!(bits.read().unwrap(), [1.5f32, -2.5, -0.0].map(f32::to_bits), "{}", subject.name);
        let sizes = device.zeros::<f32>(3).unwrap();
        let mut of_sizes = device.buffer_of::<u32>(sizes.memory(), 3).unwrap();
        device.run(without_sign(&bits, &mut of_sizes).unwrap().over(3)).unwrap();
        // The memory is one, whichever buffer it is read through, and stays as long as one of them.
        drop(of_sizes);
        assert_eq!(sizes.read().unwrap(), [1.5, 2.5, 0.0], "{}", subject.name);
        drop(numbers);
        assert_eq!(bits.slice(1..2).unwrap().read().unwrap(), [(-2.5f32).to_bits()], "{}", subject.name);
        // What is written is bound once, though by two buffers.
        let mut again = device.buffer_of::<u32>(bits.memory(), 2).unwrap();
        let error = without_sign(&bits, &mut again).unwrap_err();
        assert!(matches!(&error, Error::Argument { argument, .. } if argument == "y"), "{}: {error}", subject.name);
    }
}
