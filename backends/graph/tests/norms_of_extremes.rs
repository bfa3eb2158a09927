//! Softmax and norms of what they find hard, on every device: numbers far from zero, means beyond the root of the largest number, infinities, what is not a number, rows of zeros or that do not deviate.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::cases::Case;
use common::{Values, computes, devices, numbers};
use trefoil_graph::ops::NormOperands;
use trefoil_graph::{ElementType, Extents};

#[test]
fn numbers_far_from_zero() {
    let mut case = Case::default();
    let columns = 20_000;
    let x: Vec<f32> = numbers(2 * columns, 8, 1.732).into_iter().map(|x| 1.0e4 + x).collect();
    // The second half lies elsewhere, so that what is held tells little of the rest.
    let moved = x.iter().enumerate().map(|(at, x)| if at % columns < columns / 2 { x - 1.0e4 } else { *x }).collect();
    let x = case.given("x", Values::F32(x), &[2, columns]);
    let moved = case.given("moved", Values::F32(moved), &[2, columns]);
    let short = case.graph.narrow(x, 1, 0, 300).unwrap();
    for (name, tensor) in [("x", x), ("moved", moved), ("short", short)] {
        let y = case.graph.layer_norm(tensor, &[-1], 1e-5, NormOperands::default()).unwrap();
        case.output(&format!("norm of {name}"), y);
        let y = case.graph.log_softmax(tensor, -1).unwrap();
        case.output(&format!("log_softmax of {name}"), y);
    }
    for device in devices() {
        // An element's distance from the mean is exact to half a unit of 1e4: 5e-4 of a deviation of 1.
        case.check(&device, 2e-3);
    }
}

/// The square of such a mean is more than the largest number; the variance is not.
#[test]
fn means_beyond_the_root_of_the_largest() {
    let mut case = Case::default();
    for columns in [7, 300] {
        let values: Vec<f32> = numbers(3 * columns, 6, 1.0).into_iter().map(|x| 1e20 + 3e17 * x).collect();
        let rows = case.given(&format!("rows of {columns}"), Values::F32(values.clone()), &[3, columns]);
        let turned = case.given(&format!("columns of {columns}"), Values::F32(values), &[columns, 3]);
        let turned = case.graph.transpose(turned, &[1, 0]).unwrap();
        for (about, x) in [("rows", rows), ("columns", turned)] {
            let y = case.graph.layer_norm(x, &[-1], 1e-5, NormOperands::default()).unwrap();
            case.output(&format!("norm of {about} of {columns}"), y);
        }
    }
    for device in devices() {
        // The mean is exact to some units of its last place, each 3e-5 of the deviation.
        case.check(&device, 1e-2);
    }
}

/// One behind what is held of a row makes all of it NaN, as one within does.
#[test]
fn an_infinity_behind_what_is_held() {
    let mut case = Case::default();
    let columns = 40_000;
    let mut values = numbers(columns, 4, 1.0);
    values[columns - 5] = f32::INFINITY;
    let x = case.given("x", Values::F32(values), &[1, columns]);
    let y = case.graph.layer_norm(x, &[-1], 1e-5, NormOperands::default()).unwrap();
    case.output("y", y);
    for device in devices() {
        case.check(&device, 0.0);
    }
}

#[test]
fn no_numbers_infinities_and_zeros() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: [[f32; 8]; 8] = [
        [1.0, nan, 3.0, nan, -2.0, 5.0, 0.0, 1.0],
        [-inf; 8],
        [-inf, 1.0, -inf, 2.0, 2.0, -inf, 0.0, -inf],
        [inf, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0; 8],
        [nan; 8],
        [500.0, 501.0, -500.0, 0.0, 0.0, 0.0, 0.0, 499.0],
        [3.0, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ];
    for columns in [8, 7] {
        let mut case = Case::default();
        let values: Vec<f32> = rows.iter().flat_map(|row| &row[..columns]).copied().collect();
        let x = case.given("x", Values::F32(values), &[8, columns]);
        let turned = case.graph.transpose(x, &[1, 0]).unwrap();
        for (about, tensor, axis) in [("rows", x, 1), ("columns", turned, 0)] {
            let y = case.graph.softmax(tensor, axis).unwrap();
            case.output(&format!("softmax of {about}"), y);
            let y = case.graph.log_softmax(tensor, axis).unwrap();
            case.output(&format!("log_softmax of {about}"), y);
        }
        // Where there is no infinity.
        let finite: Vec<f32> =
            [0, 4, 5, 6, 7].into_iter().flat_map(|row: usize| &rows[row][..columns]).copied().collect();
        let finite = case.given("finite", Values::F32(finite), &[5, columns]);
        for axes in [1, -1] {
            let y = case.graph.l2_normalise(finite, &[axes], if axes == 1 { 0.0 } else { 7.0 }).unwrap();
            case.output(&format!("length {axes}"), y);
            let y = case
                .graph
                .rms_norm(finite, &[axes], if axes == 1 { 0.1 } else { 7.0 }, NormOperands::default())
                .unwrap();
            case.output(&format!("rms {axes}"), y);
            let y = case.graph.l1_normalise(finite, &[axes], if axes == 1 { 1e-9 } else { 9.0 }).unwrap();
            case.output(&format!("sum {axes}"), y);
        }
        for device in devices() {
            case.check(&device, 1e-5);
        }
    }
}

/// Doubles are bounded as doubles: by the epsilon itself, and without one far beyond what `f32` holds.
#[test]
fn bounds_of_doubles() {
    let mut case = Case::default();
    let x = case.given("x", Values::F64(vec![1e-3, 0.0]), &[1, 2]);
    let rows = case.given("rows", Values::F64(vec![3e-40, 4e-40, 0.0, 0.0]), &[2, 2]);
    let y = case.graph.l2_normalise(x, &[1], 0.3).unwrap();
    case.output("less than epsilon", y);
    let y = case.graph.l2_normalise(rows, &[1], 0.0).unwrap();
    case.output("length", y);
    let y = case.graph.rms_norm(rows, &[1], 0.0, NormOperands::default()).unwrap();
    case.output("rms", y);
    let y = case.graph.layer_norm(rows, &[1], 0.0, NormOperands::default()).unwrap();
    case.output("layer", y);
    for device in devices().iter().filter(|device| computes(device, ElementType::F64)) {
        let executable = case.check(device, 1e-13);
        let data: Vec<_> = case.inputs.iter().map(|(name, values)| (name.as_str(), values.data())).collect();
        let outputs = executable.run(&data, &Extents::new()).unwrap();
        let close = |name: &str, wanted: &[f64]| {
            let found = outputs.host(name).unwrap().values;
            assert!(
                found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-13),
                "{name}: {found:?}"
            );
        };
        close("less than epsilon", &[1e-3 / f64::from(0.3f32), 0.0]);
        close("length", &[0.6, 0.8, 0.0, 0.0]);
    }
}

#[test]
fn rows_that_do_not_deviate() {
    let mut case = Case::default();
    let values = [[2.0f32; 8], [0.0; 8]].concat();
    let x = case.given("x", Values::F32(values), &[2, 8]);
    let turned = case.graph.transpose(x, &[1, 0]).unwrap();
    let beta = case.input("beta", ElementType::F32, &[1, 1]);
    let shifted = NormOperands { beta: Some(beta), ..NormOperands::default() };
    for (about, tensor, axis) in [("rows", x, 1), ("columns", turned, 0)] {
        let y = case.graph.layer_norm(tensor, &[axis], 0.0, shifted).unwrap();
        case.output(&format!("layer of {about}"), y);
        let y = case.graph.rms_norm(tensor, &[axis], 0.0, shifted).unwrap();
        case.output(&format!("rms of {about}"), y);
    }
    for device in devices() {
        case.check(&device, 1e-5);
    }
}

/// Whatever the scale is, and however it lies: the factor of such a row is large, and times a scale may be infinite.
#[test]
fn scales_of_rows_that_do_not_deviate() {
    let mut case = Case::default();
    for columns in [8, 20_000, 40_000] {
        let x = case.given(&format!("x of {columns}"), Values::F32(vec![0.0; 2 * columns]), &[2, columns]);
        let one = case.given(&format!("one of {columns}"), Values::F32(vec![2.0]), &[1, 1]);
        let each = case.given(&format!("each of {columns}"), Values::F32(vec![-3.0; columns]), &[columns]);
        for (about, gamma) in [("one", one), ("each", each)] {
            let operands = NormOperands { gamma: Some(gamma), ..NormOperands::default() };
            let y = case.graph.layer_norm(x, &[-1], 0.0, operands).unwrap();
            case.output(&format!("layer of {columns} by {about}"), y);
            let y = case.graph.rms_norm(x, &[-1], 0.0, operands).unwrap();
            case.output(&format!("rms of {columns} by {about}"), y);
        }
    }
    let x = case.given("channels", Values::F32(vec![0.0; 64]), &[1, 4, 4, 4]);
    let gamma = case.given("scales", Values::F32(vec![2.0; 4]), &[4]);
    let y = case.graph.group_norm(x, 2, 0.0, Some(gamma), None).unwrap();
    case.output("groups", y);
    for device in devices() {
        case.check(&device, 0.0);
    }
}
