//! The kernels of this crate, run on every device against plain Rust.

// What the tests share knows the facade by its own name.
extern crate gpu as trefoil;

#[path = "../../../common/mod.rs"]
mod common;

use common::{Subject, devices, devices_of_its_own};
use gpu::Result;
use gpu::prelude::*;
use trefoil_test_helpers::{Body, LANES, deep};
use trefoil_test_user::glob::Shape;
use trefoil_test_user::{advance, advance as motion, bend_rows, weighed_sum};

#[test]
fn a_device_function_of_another_crate_sums_through_workgroup_memory() -> Result<()> {
    for Subject { device, name } in devices() {
        for length in [0usize, 1, 63, 64, 65, 1000, 4099] {
            let values: Vec<f32> = (0..length).map(|i| (i % 17) as f32 - 5.0).collect();
            // What lies before the slice is poison.
            let x = device.buffer(&[vec![f32::NAN; 4], values.clone()].concat())?;
            let mut y = device.buffer(&[f32::NAN; 3])?;
            device.run(weighed_sum(x.slice(4..)?, y.slice_mut(..2)?)?.groups(2))?;
            let sum: f32 = values.iter().map(|x| x * deep::FACTOR).sum();
            let got = y.read()?;
            assert_eq!(got[..2], [sum + 1.0; 2], "{length} elements on {name}");
            assert!(got[2].is_nan(), "what lies after the slice is untouched on {name}");
        }
    }
    Ok(())
}

#[test]
fn structs_of_another_crate_travel_in_buffers() -> Result<()> {
    let body =
        |i: u32| Body { place: Vec4::new(i as f32, 1.0, 2.0, 9.0), velocity: Vec3::new(1.0, 0.5, -(i as f32)), id: i };
    let bodies: Vec<Body> = (0..LANES as u32 + 7).map(body).collect();
    let moved: Vec<Body> = bodies.iter().map(|body| deep::moved(*body, 2.0)).collect();
    for Subject { device, name } in devices() {
        let mut buffer = device.buffer(&bodies)?;
        device.run(motion(&mut buffer, 2.0)?.over(buffer.len()))?;
        assert_eq!(buffer.read()?, moved, "on {name}");
    }
    assert_eq!(advance::KERNEL.bindings[0].element.size, 32);
    Ok(())
}

#[test]
fn instances_are_picked_by_type_and_constant() -> Result<()> {
    assert_eq!(bend_rows::KERNELS.len(), 4);
    let halves: Vec<f16> = (0..99).map(|i| f16::from_f32(i as f32 - 50.0)).collect();
    let expected: Vec<f32> = halves.iter().map(|x| x.to_f32().max(0.0) * 2.0 + 0.5).collect();
    for Subject { device, name } in devices_of_its_own() {
        let x = device.buffer(&halves)?;
        let mut y = device.zeros::<f32>(99)?;
        for _ in 0..2 {
            device.run(bend_rows::<f16, 32>(&x, &mut y, Shape::Bent, [2.0, 0.5])?.over(99))?;
        }
        assert_eq!(y.read()?, expected, "on {name}");
        assert_eq!(device.backend().counters().pipelines, 1, "the second run compiles nothing on {name}");

        let x = device.zeros::<f32>(99)?;
        let error = bend_rows::<f32, 16>(&x, &mut y, Shape::Straight, [1.0, 0.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `bend_rows` has no instance <f32, 16>; its instances are <f32, 32>, <f32, 64>, <f16, 32>, <f16, 64>"
        );
    }
    Ok(())
}
