//! What the tests share: devices, numbers, and the comparison with the references.
#![allow(dead_code, reason = "each test binary uses a part of this")]

#[path = "../../../../tests/common/numbers.rs"]
mod numbers;
pub mod ops;
#[path = "../../../../tests/common/mod.rs"]
mod subjects;

use std::collections::BTreeMap;

use half::f16;
pub use numbers::numbers;
use trefoil_dsl::device::Device;
use trefoil_graph::op::HostTensor;
use trefoil_graph::{Data, ElementType, Executable, Extents, Graph, Model, Options, reference};

/// Every device that opens here, as for the tests of the whole system.
pub fn devices() -> Vec<Device> {
    subjects::devices().into_iter().map(|subject| subject.device).collect()
}

/// Host values of some element type.
#[derive(Clone, Debug)]
pub enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    Bool(Vec<bool>),
}

impl Values {
    /// Values of that type without a pattern.
    pub fn of(element: ElementType, count: usize, seed: u32, range: f32) -> Self {
        let floats = numbers(count, seed, range);
        match element {
            ElementType::F32 => Self::F32(floats),
            ElementType::F16 => Self::F16(floats.into_iter().map(f16::from_f32).collect()),
            ElementType::I32 => Self::I32(floats.into_iter().map(|x| (x * 8.0) as i32).collect()),
            ElementType::U32 => Self::U32(floats.into_iter().map(|x| (x.abs() * 8.0) as u32).collect()),
            ElementType::Bool => Self::Bool(floats.into_iter().map(|x| x > 0.0).collect()),
        }
    }

    pub fn data(&self) -> Data<'_> {
        match self {
            Self::F32(values) => values.into(),
            Self::F16(values) => values.into(),
            Self::I32(values) => values.into(),
            Self::U32(values) => values.into(),
            Self::Bool(values) => values.as_slice().into(),
        }
    }

    pub fn host(&self) -> HostTensor {
        let values: Vec<f64> = match self {
            Self::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::F16(values) => values.iter().map(|x| x.to_f64()).collect(),
            Self::I32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::U32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::Bool(values) => values.iter().map(|x| f64::from(u8::from(*x))).collect(),
        };
        HostTensor { shape: vec![values.len()], values }
    }
}

/// Compiles and runs a graph and compares every output with the reference.
pub fn check(
    graph: &Graph,
    device: &Device,
    inputs: &[(&str, Values)],
    extents: &Extents,
    tolerance: f64,
) -> Executable {
    let executable = Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap();
    compare(graph, &executable, inputs, extents, tolerance);
    executable
}

/// Runs an executable and compares every output with the reference. The tolerance is relative, and absolute below 1.
pub fn compare(graph: &Graph, executable: &Executable, inputs: &[(&str, Values)], extents: &Extents, tolerance: f64) {
    let leaves: BTreeMap<_, _> = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
    let expected = reference::evaluate(graph, &leaves, extents).unwrap();
    let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
    let outputs = executable.run(&data, extents).unwrap_or_else(|error| panic!("{error}\n{}", executable.explain()));
    for (name, wanted) in expected {
        let got = outputs.host(&name).unwrap();
        assert_eq!(got.shape, wanted.shape, "shape of `{name}`");
        for (index, (got, wanted)) in got.values.iter().zip(&wanted.values).enumerate() {
            let close = (got - wanted).abs() <= tolerance * wanted.abs().max(1.0)
                || got == wanted
                || got.is_nan() && wanted.is_nan();
            assert!(close, "`{name}`[{index}]: {got}, not {wanted}\n{}", executable.explain());
        }
    }
}
