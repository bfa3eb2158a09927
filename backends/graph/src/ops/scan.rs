//! Scans along an axis: running sums and products, and the largest and smallest so far. How the work is cut stands in `plan`.

mod plan;

use trefoil_kernels::scan::kernels;

use super::support::{expect_element, expect_inputs, instance};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{Candidate, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, Operand, Request};
use crate::types::{ElementType, Layout, TensorType};
use trefoil_dsl::device::Properties;

use ElementType::{BF16, F16, F32, F64, I32, I64, U32, U64};

/// What a scan is made of, for one type of elements: the kernel for these, and the one for what it leaves of pieces.
type Kernels = (ElementType, &'static str, &'static str);

/// What an operator is.
struct Definition {
    /// The op's name in the op table.
    name: &'static str,
    kernels: &'static [Kernels],
    /// Its neutral value for elements of a type.
    start: fn(ElementType) -> f64,
    join: fn(f64, f64) -> f64,
    /// How whole numbers are joined, if that may go beyond their type; of what goes beyond this one too, the lowest bits are right.
    wraps: Option<fn(i128, i128) -> i128>,
}

/// The least and the greatest value of a type.
fn ends(element: ElementType) -> [f64; 2] {
    match element.is_float() {
        true => [f64::NEG_INFINITY, f64::INFINITY],
        false => element.scalar().limits().map(|limit| limit as f64),
    }
}

/// One of two by `better`; a NaN wins.
fn extreme(a: f64, b: f64, better: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { better(a, b) }
}

macro_rules! operators {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident $method:ident {
            kernels: [$($element:ident $kernel:literal $parts:literal),*],
            start: $start:expr,
            join: $join:expr,
            wraps: $wraps:expr,
        }
    )*) => {
        /// What a scan makes of elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operator {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Operator {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$variant => &Definition {
                        name: stringify!($method),
                        kernels: &[$(($element, $kernel, $parts)),*],
                        start: $start,
                        join: $join,
                        wraps: $wraps,
                    },)*
                }
            }
        }

        #[trefoil_graph_macros::eager]
        impl Graph {
            $(
                $(#[doc = $doc])*
                ///
                /// Along `axis`, a negative one counted from the last; the result has the type of `x`. Integers of 8 and 16 bits are widened for it. Where it begins and whether an element's own is in its result says [`Sweep`].
                ///
                /// # Errors
                /// The element type is not one of those that it takes, or the tensor has no such axis.
                pub fn $method(&mut self, x: Tensor, axis: isize, sweep: Sweep) -> Result<Tensor, GraphError> {
                    self.scan(Operator::$variant, x, axis, sweep)
                }
            )*
        }
    };
}

operators! {
    /// Running sums, yᵢ = Σ xⱼ for j ≤ i; 0 of none. Integers wrap; 16-bit floats are summed in `f32`. The order of additions is always the same.
    ///
    /// ```
    /// use trefoil_graph::ops::Sweep;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.constant(ElementType::F32, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// // [[1, 3, 6], [4, 9, 15]]
    /// let sums = graph.cumsum(x, -1, Sweep::default())?;
    /// // [[4, 5, 6], [0, 0, 0]]
    /// let below = graph.cumsum(x, 0, Sweep { exclusive: true, reverse: true })?;
    /// # assert_eq!(graph.type_of(sums)?, graph.type_of(below)?);
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    Sum cumsum {
        kernels: [
            F32 "scan_sum_f32" "scan_sum_f32", F16 "scan_sum_f16" "scan_sum_f32", BF16 "scan_sum_bf16" "scan_sum_f32",
            F64 "scan_sum_f64" "scan_sum_f64", I32 "scan_sum_words" "scan_sum_words",
            U32 "scan_sum_words" "scan_sum_words", I64 "scan_sum_longs" "scan_sum_longs",
            U64 "scan_sum_longs" "scan_sum_longs"
        ],
        start: |_| 0.0,
        join: |a, b| a + b,
        wraps: Some(|a, b| a + b),
    }
    /// Running products, yᵢ = Π xⱼ for j ≤ i; 1 of none. Integers wrap; 16-bit floats are multiplied in `f32`. The order of multiplications is always the same.
    Prod cumprod {
        kernels: [
            F32 "scan_product_f32" "scan_product_f32", F16 "scan_product_f16" "scan_product_f32",
            BF16 "scan_product_bf16" "scan_product_f32", F64 "scan_product_f64" "scan_product_f64",
            I32 "scan_product_words" "scan_product_words", U32 "scan_product_words" "scan_product_words",
            I64 "scan_product_longs" "scan_product_longs", U64 "scan_product_longs" "scan_product_longs"
        ],
        start: |_| 1.0,
        join: |a, b| a * b,
        wraps: Some(i128::wrapping_mul),
    }
    /// The largest so far, yᵢ = max xⱼ for j ≤ i; NaN from the first NaN on. Of none it is the least value of the type: -∞ of floats.
    Max cummax {
        kernels: [
            F32 "scan_max_f32" "scan_max_f32", F16 "scan_max_f16" "scan_max_f32", BF16 "scan_max_bf16" "scan_max_f32",
            F64 "scan_max_f64" "scan_max_f64", I32 "scan_max_i32" "scan_max_i32", U32 "scan_max_u32" "scan_max_u32",
            I64 "scan_max_i64" "scan_max_i64", U64 "scan_max_u64" "scan_max_u64"
        ],
        start: |element| ends(element)[0],
        join: |a, b| extreme(a, b, f64::max),
        wraps: None,
    }
    /// The smallest so far, yᵢ = min xⱼ for j ≤ i; NaN from the first NaN on. Of none it is the greatest value of the type: ∞ of floats.
    Min cummin {
        kernels: [
            F32 "scan_min_f32" "scan_min_f32", F16 "scan_min_f16" "scan_min_f32", BF16 "scan_min_bf16" "scan_min_f32",
            F64 "scan_min_f64" "scan_min_f64", I32 "scan_min_i32" "scan_min_i32", U32 "scan_min_u32" "scan_min_u32",
            I64 "scan_min_i64" "scan_min_i64", U64 "scan_min_u64" "scan_min_u64"
        ],
        start: |element| ends(element)[1],
        join: |a, b| extreme(a, b, f64::min),
        wraps: None,
    }
}

impl Operator {
    /// The element types that the methods of [`Graph`] take: those that [`Scan`] takes, and the narrower integers that are widened for it.
    pub fn takes(self) -> impl Iterator<Item = ElementType> {
        ElementType::ALL.into_iter().filter(move |element| self.has_kernels(element.widened()))
    }

    /// Whether there are kernels for elements of a type.
    fn has_kernels(self, element: ElementType) -> bool {
        self.definition().kernels.iter().any(|(known, ..)| *known == element)
    }

    /// The kernels for elements of a type.
    fn kernels(self, x: &TensorType) -> Result<&'static Kernels, OpError> {
        let known = self.definition().kernels.iter().find(|(element, ..)| *element == x.element);
        known.ok_or_else(|| OpError::ElementType {
            input: "x",
            given: x.element,
            expected: format!("{} (`cast` converts)", ElementType::list(|element| self.has_kernels(element))),
        })
    }
}

/// How a scan goes along its axis. By default it begins at the first element, and an element's own is in its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// Whether an element's own is left out, so that the first result is that of no elements.
    pub exclusive: bool,
    /// Whether it begins at the axis's end.
    pub reverse: bool,
}

/// A scan along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// Of what.
    pub operator: Operator,
    /// What the elements are, which decides whether sums and products wrap.
    pub element: ElementType,
    /// The axis.
    pub axis: usize,
    /// How it goes along the axis.
    pub sweep: Sweep,
}

impl Graph {
    fn scan(&mut self, operator: Operator, x: Tensor, axis: isize, sweep: Sweep) -> Result<Tensor, GraphError> {
        let axis = self.axes(operator.definition().name, x, &[axis])?[0];
        let given = self.type_of(x)?.element;
        let add = |graph: &mut Self, element, x| graph.add_one(Scan { operator, element, axis, sweep }, &[x]);
        let element = given.widened();
        if element == given || !operator.takes().any(|taken| taken == given) {
            // The op says what it takes.
            return add(self, given, x);
        }
        // The lowest bits of a sum or product are those of the sum or product of the lowest bits, and an extreme fits where its elements do.
        let wide = self.cast(x, element)?;
        let mut y = add(self, element, wide)?;
        if sweep.exclusive && operator.definition().wraps.is_none() {
            // The extreme of none is the end of the wider type.
            let end = self.scalar((operator.definition().start)(given), element)?;
            y = if operator == Operator::Max { self.maximum(y, end)? } else { self.minimum(y, end)? };
        }
        self.cast(y, given)
    }
}

impl Op for Scan {
    fn name(&self) -> &'static str {
        self.operator.definition().name
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("axis", self.axis.to_string()),
            ("exclusive", self.sweep.exclusive.to_string()),
            ("reverse", self.sweep.reverse.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        self.operator.kernels(x)?;
        expect_element("x", x, self.element)?;
        if self.axis >= x.rank() {
            let expected = format!("an axis of {x}");
            return Err(OpError::Attribute { attribute: "axis", given: self.axis.to_string(), expected });
        }
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let Definition { start, join, wraps, .. } = self.operator.definition();
        let (n, inner) = (x.shape[self.axis], x.shape[self.axis + 1..].iter().product::<usize>());
        let mut values = x.values.clone();
        for sequence in 0..x.values.len().checked_div(n).unwrap_or(0) {
            let first = sequence / inner * n * inner + sequence % inner;
            let mut held = start(self.element);
            for step in 0..n {
                let position = if self.sweep.reverse { n - 1 - step } else { step };
                let at = first + position * inner;
                let next = match wraps.filter(|_| !self.element.is_float()) {
                    Some(join) => self.element.wrapped(join(held as i128, x.values[at] as i128)),
                    None => join(held, x.values[at]),
                };
                values[at] = if self.sweep.exclusive { held } else { next };
                held = next;
            }
        }
        vec![HostTensor { shape: x.shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Way(self))])
    }
}

/// The family's kernels.
#[derive(Debug)]
struct Way<'a>(&'a Scan);

impl Candidate for Way<'_> {
    fn name(&self) -> &'static str {
        "scan by rows, columns and pieces"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let x = &request.inputs[0];
        let (_, scan, parts) = self.0.operator.kernels(&x.ty).map_err(|error| Ineligible::Other(error.to_string()))?;
        let known = kernels();
        let kernels = plan::Kernels { scan: instance(&known, scan)?, parts: instance(&known, parts)? };
        plan::implement(x, self.0, &kernels, request.device)
    }
}

/// What sums all numbers before each one in rows of `u32`, input 0 to output 0, both of which are contiguous: steps for a sort.
pub(super) fn running_counts(shape: Vec<Dim>, device: &Properties) -> Result<Implementation, Ineligible> {
    let axis = shape.len().saturating_sub(1);
    let sweep = Sweep { exclusive: true, reverse: false };
    let scan = Scan { operator: Operator::Sum, element: U32, axis, sweep };
    let ty = TensorType { element: U32, shape };
    let layout = Layout::contiguous(&ty.shape);
    let counts = Operand { ty: ty.clone(), layout, is_param: false, kept: None };
    Way(&scan).implement(&Request { inputs: &[counts], outputs: &[ty], device, deterministic: true })
}
