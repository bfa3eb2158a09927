//! `rope(x, cosines, sines, positions?)`: pairs of elements of queries or keys, turned by an angle that depends on the position; and the tables of the usual angles.

pub use trefoil_kernels::rope::Pairs;

use trefoil_kernels::rope::{rope, rope_f64};

use super::attention::AttentionLayout;
use super::support::{
    expect_element, expect_inputs, instance, kernel_time, one_kernel, shape_error, transfer_time, upper,
};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

use ElementType::{F32, F64, U32};

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rope {
    /// How x and the result are arranged.
    pub layout: AttentionLayout,
    /// Which elements are a pair.
    pub pairs: Pairs,
    /// How many of a head's elements are turned, the first ones; the others stay.
    pub turned: usize,
}

/// Numbers of a table, at most.
const MOST: i64 = i32::MAX as i64;

#[trefoil_graph_macros::eager]
impl Graph {
    /// Queries or keys with pairs of their elements turned: the first of a pair becomes `cos · first - sin · second`, the second `sin · first + cos · second`. It takes floats, and computes in
    /// `f32`, of `f64` in that.
    ///
    /// `x` is `[batch, heads, positions, elements]` or `[batch, positions, heads, elements]`, as the layout says. `cosines` and `sines` have one `f32` for each pair, of `f64` one of that: they are `[rows, turned / 2]`, or
    /// `[batch, rows, turned / 2]`, and position i of x has row i; there may be more rows than positions. With `positions`, `u32` of `[positions]` or `[batch, positions]`, they are
    /// `[rows, turned / 2]`, and each position has the row that they say; where there is no such row, what is turned becomes 0.
    ///
    /// ```
    /// use trefoil_graph::ops::{AttentionLayout, Pairs, Rope};
    /// use trefoil_graph::{Dim, ElementType, Graph};
    ///
    /// let mut g = Graph::new();
    /// let q = g.input("q", ElementType::F16, [1i64, 8, 100, 64])?;
    /// let (cosines, sines) = g.rope_tables(4096, 64, 10_000.0, ElementType::F32)?;
    /// let op = Rope { layout: AttentionLayout::Bhsd, pairs: Pairs::Halves, turned: 64 };
    /// let y = g.rope(q, cosines, sines, None, op)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f16[1, 8, 100, 64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An operand's elements or shape are others, or `turned` is odd or more than a head's elements.
    pub fn rope(
        &mut self,
        x: Tensor,
        cosines: Tensor,
        sines: Tensor,
        positions: Option<Tensor>,
        op: Rope,
    ) -> Result<Tensor, GraphError> {
        let inputs: Vec<_> = [Some(x), Some(cosines), Some(sines), positions].into_iter().flatten().collect();
        self.add_one(op, &inputs)
    }

    /// The tables of [`Graph::rope`] as constants, `[positions, turned / 2]`: the cosines and sines of position i times `base^(-2 j / turned)` for pair j, computed in `f64`.
    /// Their elements are `f32`, or `f64` for x of that.
    ///
    /// # Errors
    /// `turned` is odd, the base is no positive number, there are more than 2^31 - 1 angles, or the elements are others.
    pub fn rope_tables(
        &mut self,
        positions: usize,
        turned: usize,
        base: f64,
        element: ElementType,
    ) -> Result<(Tensor, Tensor), GraphError> {
        let refuse = |attribute, given: String, expected: &str| GraphError::Op {
            op: "rope_tables".to_owned(),
            error: OpError::Attribute { attribute, given, expected: expected.to_owned() },
        };
        if !turned.is_multiple_of(2) {
            return Err(refuse("turned", turned.to_string(), "an even number of elements"));
        }
        if !base.is_finite() || base <= 0.0 {
            return Err(refuse("base", base.to_string(), "a positive number"));
        }
        let pairs = turned / 2;
        let angle = |at: usize| (at / pairs) as f64 * base.powf(-2.0 * (at % pairs) as f64 / turned as f64);
        let is_counted = |count: &usize| i64::try_from(*count).is_ok_and(|count| count <= MOST);
        let Some(count) = positions.checked_mul(pairs).filter(is_counted) else {
            let expected = format!("at most {MOST} angles, {pairs} for each position");
            return Err(refuse("positions", positions.to_string(), &expected));
        };
        let angles: Vec<f64> = (0..count).map(angle).collect();
        let shape = vec![Dim::from(positions), Dim::from(pairs)];
        let mut table = |of: fn(f64) -> f64| {
            let values = angles.iter().map(|angle| of(*angle));
            match element {
                F32 => self.constant(F32, shape.clone(), &values.map(|value| value as f32).collect::<Vec<_>>()),
                F64 => self.constant(F64, shape.clone(), &values.collect::<Vec<_>>()),
                _ => Err(refuse("element", element.to_string(), "f32 or f64")),
            }
        };
        Ok((table(f64::cos)?, table(f64::sin)?))
    }

    /// The bias of ALiBi for causal attention, `[heads, 1, keys]`: it falls with a slope of each head's own from the last key on, where it is 0. What is the same for all keys of a
    /// query does not count, so that one row serves every query. Slopes are those of the paper: a geometric series from `2^(-8 / n)` for n heads, n a power of two; between two such, the smaller's and every
    /// other one of the larger's.
    ///
    /// # Errors
    /// The elements are no floats, or the heads are too many, or the keys may be too many for a table.
    pub fn alibi(&mut self, heads: usize, keys: impl Into<Dim>, element: ElementType) -> Result<Tensor, GraphError> {
        let keys = keys.into();
        let most = keys.bounds().1.max(0);
        let refuse = |attribute, given, expected| GraphError::Op {
            op: "alibi".to_owned(),
            error: OpError::Attribute { attribute, given, expected },
        };
        // Each head has a slope, also where there are no keys.
        let Some(counted) = i64::try_from(heads).ok().filter(|heads| *heads <= MOST) else {
            return Err(refuse("heads", heads.to_string(), format!("at most {MOST} heads")));
        };
        if counted.checked_mul(most).is_none_or(|all| all > MOST) {
            let expected =
                format!("at most {MOST} numbers for {heads} heads, which are written down for the most keys");
            return Err(refuse("keys", keys.to_string(), expected));
        }
        let slopes = slopes(heads);
        if !element.is_float() {
            return Err(refuse("element", element.to_string(), ElementType::list(ElementType::is_float)));
        }
        let values = slopes.iter().flat_map(|slope| (1 - most..=0).map(move |behind| slope * behind as f64));
        let shape = [counted, 1, most].map(Dim::from).to_vec();
        let all = match element {
            F64 => self.constant(F64, shape, &values.collect::<Vec<_>>())?,
            _ => self.constant(F32, shape, &values.map(|value| value as f32).collect::<Vec<_>>())?,
        };
        let last = self.narrow(all, 2, Dim::from(most) - keys.clone(), keys)?;
        self.as_element(last, element)
    }
}

/// The slopes of ALiBi.
fn slopes(heads: usize) -> Vec<f64> {
    let series = |count: usize| (1..=count).map(move |head| (-8.0 * head as f64 / count as f64).exp2());
    let whole = if heads == 0 { 0 } else { 1 << heads.ilog2() };
    series(whole).chain(series(2 * whole).step_by(2).take(heads - whole)).collect()
}

impl Rope {
    /// The axis of positions.
    const fn axis(self) -> usize {
        match self.layout {
            AttentionLayout::Bhsd => 2,
            AttentionLayout::Bshd => 1,
        }
    }

    /// An operand's strides along the first three axes of x, from those of its own first axes: positions, or batch and positions.
    fn along(self, strides: &[Dim]) -> [Dim; 3] {
        let mut along = [0i64; 3].map(Dim::from);
        match strides {
            [batch, position, ..] => {
                along[0] = batch.clone();
                along[self.axis()] = position.clone();
            }
            [position] => along[self.axis()] = position.clone(),
            [] => {}
        }
        along
    }
}

impl Op for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("layout", format!("{:?}", self.layout)),
            ("pairs", format!("{:?}", self.pairs)),
            ("turned", self.turned.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=4)?;
        let x = &inputs[0];
        if !x.element.is_float() {
            let expected = ElementType::list(ElementType::is_float);
            return Err(OpError::ElementType { input: "x", given: x.element, expected });
        }
        if x.rank() != 4 {
            return Err(shape_error("x", x, "batch, heads, positions and elements".to_owned()));
        }
        if !self.turned.is_multiple_of(2) || x.shape[3].bounds().0 < self.turned as i64 {
            let expected = format!("an even number of at most {} elements", x.shape[3]);
            return Err(OpError::Attribute { attribute: "turned", given: self.turned.to_string(), expected });
        }
        let (batch, positions) = (&x.shape[0], &x.shape[self.axis()]);
        let pairs = Dim::from(self.turned / 2);
        let by_position = inputs.get(3);
        for (name, table) in [("cosines", &inputs[1]), ("sines", &inputs[2])] {
            expect_element(name, table, if x.element == F64 { F64 } else { F32 })?;
            let rows = |rows: &Dim| rows == positions || rows.bounds().0 >= positions.bounds().1;
            let fits = match table.shape.as_slice() {
                [count, columns] => *columns == pairs && (by_position.is_some() || rows(count)),
                [of, count, columns] => by_position.is_none() && of == batch && *columns == pairs && rows(count),
                _ => false,
            };
            if !fits {
                let rows = if by_position.is_some() { "rows".to_owned() } else { format!("at least {positions} rows") };
                return Err(shape_error(name, table, format!("{rows} of {pairs}, for each batch or for all")));
            }
        }
        if inputs[2] != inputs[1] {
            return Err(shape_error("sines", &inputs[2], format!("{}, as the cosines", inputs[1])));
        }
        if let Some(given) = by_position {
            expect_element("positions", given, U32)?;
            let fits = match given.shape.as_slice() {
                [count] => count == positions,
                [of, count] => of == batch && count == positions,
                _ => false,
            };
            if !fits {
                return Err(shape_error(
                    "positions",
                    given,
                    format!("{positions} positions, for each batch or for all"),
                ));
            }
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, shape) = (&inputs[0], &outputs[0]);
        let (elements, half) = (shape[3], self.turned / 2);
        let value = |linear: usize| {
            let e = linear % elements;
            let index = [
                linear / elements / shape[2] / shape[1],
                linear / elements / shape[2] % shape[1],
                linear / elements % shape[2],
            ];
            let (batch, position) = (index[0], index[self.axis()]);
            if e >= self.turned {
                return x.values[linear];
            }
            let table = &inputs[1].shape;
            let rows = table[table.len() - 2];
            let row = match inputs.get(3) {
                Some(given) if given.shape.len() == 2 => given.values[batch * given.shape[1] + position] as usize,
                Some(given) => given.values[position] as usize,
                None => position,
            };
            if row >= rows {
                return 0.0;
            }
            let row = if table.len() == 3 { batch * rows + row } else { row };
            let (pair, second, apart) = match self.pairs {
                Pairs::Halves => (e % half, e >= half, half),
                Pairs::Neighbours => (e / 2, e % 2 == 1, 1),
            };
            let (cosine, sine) = (inputs[1].values[row * half + pair], inputs[2].values[row * half + pair]);
            if second {
                sine * x.values[linear - apart] + cosine * x.values[linear]
            } else {
                cosine * x.values[linear] - sine * x.values[linear + apart]
            }
        };
        let values = (0..x.values.len()).map(value).collect();
        vec![HostTensor { shape: shape.clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 3
    }

    fn kind(&self) -> OpKind<'_> {
        let of = |width| Box::new(Turn { op: *self, width }) as Box<dyn Candidate>;
        OpKind::Kernels(vec![of(4), of(1)])
    }
}

/// The kernel, of some elements at a time.
#[derive(Debug)]
struct Turn {
    op: Rope,
    width: i64,
}

impl Candidate for Turn {
    fn name(&self) -> &'static str {
        if self.width == 4 { "rope of four elements at a time" } else { "rope of any strides" }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.op, &request.inputs[0]);
        let tables = &request.inputs[1..3];
        // One stride serves both tables, whose rows lie one after the other.
        let strided: Vec<_> = (1..3)
            .filter(|at| !request.inputs[*at].layout.has_contiguous_strides(&request.inputs[*at].ty.shape))
            .collect();
        if !strided.is_empty() {
            return Err(Ineligible::NeedsContiguous(strided));
        }
        let is_double = x.ty.element == F64;
        if self.width == 4 {
            if is_double {
                return Err(Ineligible::Other("elements of f64".to_owned()));
            }
            let four = |dim: &Dim| dim.divides_evenly(4);
            if !four(&x.ty.shape[3]) || !op.turned.is_multiple_of(8) {
                return Err(Ineligible::Other(format!("{} of {} elements are turned", op.turned, x.ty.shape[3])));
            }
            let [outer @ .., element] = x.layout.strides.as_slice() else {
                return Err(Ineligible::Other("x has no axes".to_owned()));
            };
            if !element.is(1) || !outer.iter().chain([&x.layout.offset]).all(four) {
                return Err(Ineligible::NeedsContiguous(vec![0]));
            }
            let strided: Vec<_> = (1..3).filter(|at| !four(&request.inputs[*at].layout.offset)).collect();
            if !strided.is_empty() {
                return Err(Ineligible::NeedsContiguous(strided));
            }
        }
        let mut sizes = x.ty.shape.clone();
        sizes.push(Dim::from(op.turned));
        let positions = request.inputs.get(3);
        let of_positions = positions.map_or_else(|| op.along(&[]), |given| op.along(&given.layout.strides));
        let of_table = &tables[0].layout.strides;
        let units = request.outputs[0].elements().quotient(&Dim::from(self.width));
        let kernel = if is_double {
            instance(rope_f64::KERNELS, "rope_f64")?
        } else {
            instance(rope::KERNELS, &format!("rope_{}_{}", x.ty.element, self.width))?
        };
        let bytes = 2.0 * upper(&x.ty.bytes()) * if self.width == 4 { 1.0 } else { 3.0 };
        Ok(one_kernel(
            kernel,
            vec![
                Slot::Input(0),
                Slot::Input(1),
                Slot::Input(2),
                if positions.is_some() { Slot::Input(3) } else { Slot::Empty },
                Slot::Output(0),
            ],
            vec![
                ParamValue::Dims(sizes),
                ParamValue::Dims(x.layout.strides.clone()),
                ParamValue::Dims(op.along(&of_table[..of_table.len() - 1]).to_vec()),
                ParamValue::Dims(of_positions.to_vec()),
                ParamValue::Enum(op.pairs as u32),
            ],
            Grid::Invocations(units),
            kernel_time(request.device, transfer_time(bytes)),
        ))
    }
}
