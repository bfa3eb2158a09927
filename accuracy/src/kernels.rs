//! The kernels that are measured, as `build.rs` writes them.

use trefoil::prelude::*;
use trefoil::{Buffer, Device, Launch};
use trefoil_codegen::ir::MathFunction;

use crate::number::Number;

type Launches<T> = fn(&[Buffer<T>], &mut Buffer<T>, u32) -> trefoil::Result<Launch>;
type Run = Box<dyn Fn(&Device, &[Vec<f64>], u32) -> trefoil::Result<Vec<f64>>>;

/// The functions of one type and number of arguments.
pub struct Group {
    /// The type.
    pub scalar: &'static str,
    /// The functions, by their numbers.
    pub functions: &'static [MathFunction],
    /// Rounds a number to the type.
    pub round: fn(f64) -> f64,
    /// What the type can hold.
    pub format: crate::number::Format,
    /// Computes a function, by its number, of arguments that the type holds.
    pub run: Run,
}

impl Group {
    fn of<T: Number>(scalar: &'static str, functions: &'static [MathFunction], launch: Launches<T>) -> Self {
        let run = move |device: &Device, given: &[Vec<f64>], which: u32| {
            let count = given.first().map_or(0, Vec::len);
            let buffers = given
                .iter()
                .map(|values| device.buffer(&values.iter().map(|value| T::nearest(*value)).collect::<Vec<T>>()))
                .collect::<trefoil::Result<Vec<_>>>()?;
            let mut out = device.zeros::<T>(count)?;
            device.run(launch(&buffers, &mut out, which)?.over(count))?;
            Ok(out.read()?.into_iter().map(Number::wide).collect())
        };
        Self { scalar, functions, round: |x| T::nearest(x).wide(), format: T::FORMAT, run: Box::new(run) }
    }
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
