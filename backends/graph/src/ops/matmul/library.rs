//! The product by the library that comes with a device.

use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::DeviceKind;
use trefoil_dsl::product::{LibraryProduct, MatrixLayout};
use trefoil_kernels::activation::Activation;

use super::MatMul;
use super::candidates::{contiguous_bias, lines_of, types};
use super::product::Product;
use crate::dim::Dim;
use crate::op::{CallStep, Callee, Candidate, Implementation, Ineligible, Request, Slot, Step};
use crate::ops::support::{FLOPS_PER_MICROSECOND, LAUNCH};

/// What a large GPU's library multiplies and adds in a microsecond, of halves and of `f32`, measured on an H200 with cuBLASLt.
const HALF_FLOPS: f64 = 600.0e6;
const SINGLE_FLOPS: f64 = 50.0e6;
/// Bytes that it moves in a microsecond: less than kernels for few rows do.
const BYTES: f64 = 2.0e6;
/// Microseconds for the first tiles and the result, and for what the library does besides.
const ENDS: f64 = 4.0;
/// Tiles of 128 by 256, each as deep as `DEPTH`, that keep a large GPU busy.
const BUSY: f64 = 132.0;
const DEPTH: f64 = 1024.0;

/// How many times as fast a processor's library is as the products of `trefoil_host`, and as those of a single row or column, of which it reads the matrix more slowly.
const CORES_FASTER: f64 = 1.4;
const CORES_FASTER_OF_ONE: f64 = 0.7;
/// Single elements of a matrix that it turns in a microsecond, and bytes of a matrix that stay in a core's cache.
const TURNED: f64 = 1000.0;
const CACHED: f64 = 1_048_576.0;
/// Microseconds until it multiplies.
const CALL: f64 = 0.5;

/// By the device's library.
#[derive(Debug)]
pub(super) struct Library(pub(super) MatMul);

/// A size, which the library must know when the product is recorded.
///
/// # Errors
/// It depends on symbols.
fn known(size: &Dim) -> Result<u64, Ineligible> {
    let known = size.constant().and_then(|size| u64::try_from(size).ok());
    known.ok_or_else(|| Ineligible::Other(format!("a size of {size}, which only a run tells")))
}

impl Candidate for Library {
    fn name(&self) -> &'static str {
        "matmul by the device's library"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let no = |reason: String| Err(Ineligible::Other(reason));
        types(&self.0, request)?;
        let library = request.device.library().map_err(Ineligible::Other)?;
        let name = library.name;
        let (of_a, of_b) = (request.inputs[0].ty.element, request.inputs[1].ty.element);
        if of_a != of_b {
            return no(format!("elements of {of_a} and {of_b}, which {name} does not multiply with each other"));
        }
        // What it calls an activation is another function where a NaN or an infinity comes.
        if self.0.activation != Activation::Identity {
            return no(format!("an activation, which {name} does not apply"));
        }
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        let Product { batch, m, n, k, a_batch, b_batch, .. } = &product;
        let [(a_along, a_line), (b_along, b_line)] = lines_of(&product)?;
        let (rows, columns, depth) = (known(m)?, known(n)?, known(k)?);
        // One line may lie any distance from the next, which is not there.
        let layout = |in_rows: bool, line: &Dim, [lines, length]: [u64; 2], batch: &Dim| {
            let line = if lines == 1 { length } else { known(line)? };
            Ok::<_, Ineligible>(MatrixLayout { in_rows, line, batch: known(batch)? })
        };
        let of = |along: bool, across: u64| if along { [across, depth] } else { [depth, across] };
        let asked = LibraryProduct {
            operands: of_a.stored(),
            result: self.0.out.stored(),
            batch: known(batch)?,
            rows,
            columns,
            depth,
            a: layout(a_along, &a_line, of(a_along, rows), a_batch)?,
            b: layout(!b_along, &b_line, of(b_along, columns), b_batch)?,
            bias: self.0.bias,
        };
        if let Some(refusal) = library.refusal(&asked) {
            return no(refusal);
        }
        let mut reads = vec![Slot::Input(0), Slot::Input(1)];
        reads.extend(self.0.bias.then_some(Slot::Input(2)));
        let step =
            CallStep { name, callee: Callee::Product(asked), reads, writes: vec![Slot::Output(0)], params: Vec::new() };
        let cost = if request.device.kind == DeviceKind::Cpu { cost_on_cores(&asked) } else { cost(&asked) };
        Ok(Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost })
    }
}

/// What it takes on a large GPU, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "a cost is a guess")]
fn cost(product: &LibraryProduct) -> f64 {
    let [batch, rows, columns, depth] =
        [product.batch, product.rows, product.columns, product.depth].map(|extent| extent as f64);
    let rate = if product.operands == Scalar::F32 { SINGLE_FLOPS } else { HALF_FLOPS };
    let tiles = batch * (rows / 128.0).ceil() * (columns / 256.0).ceil() * (depth / DEPTH).max(1.0);
    let multiplying = 2.0 * batch * rows * columns * depth / rate / (tiles / BUSY).min(1.0);
    let bytes = product.bytes().map_or(0, |(operands, result)| operands.iter().sum::<u64>() + result);
    LAUNCH + ENDS + multiplying.max(bytes as f64 / BYTES)
}

/// What it takes on a processor's cores, in microseconds, measured beside the products of `trefoil_host`, whose estimate is the unit.
#[expect(clippy::cast_precision_loss, reason = "a cost is a guess")]
fn cost_on_cores(product: &LibraryProduct) -> f64 {
    let [batch, rows, columns, depth] =
        [product.batch, product.rows, product.columns, product.depth].map(|extent| extent as f64);
    let wide = f64::from(product.operands.bits()) / 32.0;
    let faster = if rows.min(columns) > 1.0 { CORES_FASTER } else { CORES_FASTER_OF_ONE };
    let multiplying = 2.0 * batch * rows * columns * depth / (faster * FLOPS_PER_MICROSECOND) * wide;
    // It turns a matrix `b` that lies column by column, unless it is read once; where that comes from memory, this takes longer than a product of few rows.
    let elements = depth * columns;
    let turns = !product.b.in_rows && rows > 1.0 && columns > 1.0 && 4.0 * elements * wide > CACHED;
    let turning = if turns { batch * elements * wide / TURNED } else { 0.0 };
    CALL + multiplying + turning
}
