//! What the tests share: devices, numbers, and the comparison with the references.
#![allow(dead_code, reason = "each test binary uses a part of this")]

pub mod cases;
mod eager;
#[path = "../../../../tests/common/numbers.rs"]
mod numbers;
pub mod ops;
pub mod states;
#[path = "../../../../tests/common/mod.rs"]
mod subjects;
pub mod transformer;

use std::collections::BTreeMap;

use half::{bf16, f16};
pub use numbers::numbers;
use trefoil_codegen::artefact::Feature;
use trefoil_dsl::device::{Device, DeviceKind};
#[allow(unused_imports, reason = "what no kind of test here needs all of")]
pub use trefoil_graph::reference::tolerance;
use trefoil_graph::{Data, ElementType, Executable, Extents, Graph, HostTensor, Model, Options, reference};

/// Every device that opens here, as for the tests of the whole system.
pub fn devices() -> Vec<Device> {
    subjects::devices().into_iter().map(|subject| subject.device).collect()
}

/// The same, opened for one test that counts what happens on them.
pub fn devices_of_its_own() -> Vec<Device> {
    subjects::devices_of_its_own().into_iter().map(|subject| subject.device).collect()
}

macro_rules! values {
    ($($variant:ident = $host:ty, $of:expr;)*) => {
        /// Host values of some element type.
        #[derive(Clone, Debug)]
        pub enum Values {
            $($variant(Vec<$host>),)*
        }

        impl Values {
            /// Values of that type without a pattern: floats up to `range`, integers up to eight times that.
            pub fn of(element: ElementType, count: usize, seed: u32, range: f32) -> Self {
                let floats = numbers(count, seed, range);
                match element {
                    $(ElementType::$variant => {
                        let of: fn(f32) -> $host = $of;
                        Self::$variant(floats.into_iter().map(of).collect())
                    })*
                    _ => panic!("no values of {element}"),
                }
            }

            pub fn element(&self) -> ElementType {
                match self {
                    $(Self::$variant(_) => ElementType::$variant,)*
                }
            }

            pub fn data(&self) -> Data<'_> {
                match self {
                    $(Self::$variant(values) => values.as_slice().into(),)*
                }
            }
        }
    };
}

values! {
    F32 = f32, |x| x;
    F16 = f16, f16::from_f32;
    BF16 = bf16, bf16::from_f32;
    F64 = f64, |x| f64::from(x) + 1e-11;
    I8 = i8, |x| (x * 8.0) as i8;
    U8 = u8, |x| (x.abs() * 8.0) as u8;
    I16 = i16, |x| (x * 8.0) as i16;
    U16 = u16, |x| (x.abs() * 8.0) as u16;
    I32 = i32, |x| (x * 8.0) as i32;
    U32 = u32, |x| (x.abs() * 8.0) as u32;
    I64 = i64, |x| (x * 8.0) as i64;
    U64 = u64, |x| (x.abs() * 8.0) as u64;
    Bool = bool, |x| x > 0.0;
}

impl Values {
    /// The same values but for floats, which become positive.
    pub fn positive(self) -> Self {
        match self {
            Self::F32(values) => Self::F32(values.into_iter().map(|x| x.abs() + 0.01).collect()),
            Self::F16(values) => {
                Self::F16(values.into_iter().map(|x| f16::from_f32(x.to_f32().abs() + 0.01)).collect())
            }
            Self::BF16(values) => {
                Self::BF16(values.into_iter().map(|x| bf16::from_f32(x.to_f32().abs() + 0.01)).collect())
            }
            Self::F64(values) => Self::F64(values.into_iter().map(|x| x.abs() + 0.01).collect()),
            other => other,
        }
    }

    pub fn host(&self) -> HostTensor {
        let values: Vec<f64> = match self {
            Self::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::F16(values) => values.iter().map(|x| x.to_f64()).collect(),
            Self::BF16(values) => values.iter().map(|x| x.to_f64()).collect(),
            Self::F64(values) => values.clone(),
            Self::I8(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::U8(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::I16(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::U16(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::I32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::U32(values) => values.iter().map(|x| f64::from(*x)).collect(),
            Self::I64(values) => values.iter().map(|x| *x as f64).collect(),
            Self::U64(values) => values.iter().map(|x| *x as f64).collect(),
            Self::Bool(values) => values.iter().map(|x| f64::from(u8::from(*x))).collect(),
        };
        HostTensor { shape: vec![values.len()], values }
    }
}

/// Whether a device computes with elements of a type: 64-bit ones are optional.
pub fn computes(device: &Device, element: ElementType) -> bool {
    let feature = match element {
        ElementType::F64 => Feature::Float64,
        ElementType::I64 | ElementType::U64 => Feature::Int64,
        _ => return true,
    };
    device.properties().features.has(feature)
}

/// Whether a way to do an op is none by kernels: a function of the host, or a call of a library.
#[allow(dead_code, reason = "few programs name ways")]
pub fn is_no_kernel(way: &str) -> bool {
    way.ends_with("on the host") || way.ends_with("library")
}

/// Whether a device tries kernels of such elements in every way, and not in the chosen one alone. A processor that plays a GPU takes a second to compile a kernel: there Vulkan tries them all, and wgpu, with and without
/// WebGPU's limits, those of `f32`; `tests/kernels` runs every kernel on each of them.
#[allow(dead_code, reason = "few programs try every way")]
pub fn tries_every_way(device: &Device, element: ElementType) -> bool {
    let slow = device.properties().software && device.kind() == DeviceKind::Wgpu;
    element == ElementType::F32 || !slow || !devices().iter().any(|device| device.kind() == DeviceKind::Vulkan)
}

/// Compiles and runs a graph and compares every output with the reference; and, where the graph has no symbols, runs its nodes one by one and compares again.
pub fn check(
    graph: &Graph,
    device: &Device,
    inputs: &[(&str, Values)],
    extents: &Extents,
    tolerance: f64,
) -> Executable {
    let executable = Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap();
    let expected = expected(graph, inputs, extents);
    compare_to(&expected, &executable, inputs, extents, tolerance);
    // Drivers would compile every kernel once more for it; what GPUs do one by one is in the tests of ops and of eager.
    if *extents == Extents::new() && device.kind() == DeviceKind::Cpu {
        one_by_one_to(&expected, graph, device, inputs, tolerance);
    }
    executable
}

/// Runs the nodes of a graph without symbols one by one and compares every output with the reference.
pub fn compare_one_by_one(graph: &Graph, device: &Device, inputs: &[(&str, Values)], tolerance: f64) {
    one_by_one_to(&expected(graph, inputs, &Extents::new()), graph, device, inputs, tolerance);
}

fn one_by_one_to(expected: &Expected, graph: &Graph, device: &Device, inputs: &[(&str, Values)], tolerance: f64) {
    for (name, got) in eager::one_by_one(graph, device, inputs) {
        let wanted = &expected.iter().find(|(known, _)| *known == name).unwrap().1;
        close(&name, &got, wanted, tolerance, || format!("one by one on {}", device.properties().name));
    }
}

/// What the reference makes of each output.
type Expected = Vec<(String, HostTensor)>;

fn expected(graph: &Graph, inputs: &[(&str, Values)], extents: &Extents) -> Expected {
    let leaves: BTreeMap<_, _> = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
    reference::evaluate(graph, &leaves, extents).unwrap().into_iter().collect()
}

/// Whether a number is what is wanted, within a tolerance that is relative, and absolute below 1.
pub fn is_close(got: f64, wanted: f64, tolerance: f64) -> bool {
    // Relative to an infinity, it would take any number.
    let near = wanted.is_finite() && (got - wanted).abs() <= tolerance * wanted.abs().max(1.0);
    near || got == wanted || got.is_nan() && wanted.is_nan()
}

fn close(name: &str, got: &HostTensor, wanted: &HostTensor, tolerance: f64, about: impl Fn() -> String) {
    assert_eq!(got.shape, wanted.shape, "shape of `{name}`");
    for (index, (got, wanted)) in got.values.iter().zip(&wanted.values).enumerate() {
        assert!(is_close(*got, *wanted, tolerance), "`{name}`[{index}]: {got}, not {wanted}\n{}", about());
    }
}

/// Runs an executable and compares every output with the reference. The tolerance is relative, and absolute below 1.
pub fn compare(graph: &Graph, executable: &Executable, inputs: &[(&str, Values)], extents: &Extents, tolerance: f64) {
    compare_to(&expected(graph, inputs, extents), executable, inputs, extents, tolerance);
}

fn compare_to(
    expected: &Expected,
    executable: &Executable,
    inputs: &[(&str, Values)],
    extents: &Extents,
    tolerance: f64,
) {
    let data: Vec<_> = inputs.iter().map(|(name, values)| (*name, values.data())).collect();
    let outputs = executable.run(&data, extents).unwrap_or_else(|error| panic!("{error}\n{}", executable.explain()));
    for (name, wanted) in expected {
        close(name, &outputs.host(name).unwrap(), wanted, tolerance, || executable.explain().to_string());
    }
}
