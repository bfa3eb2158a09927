//! Sorts along an axis, and the best few of it: their values, their places, or both. How the work is done stands in `plan`; on the CPU rows are sorted by `host`.
//!
//! Elements of up to 32 bits are sorted by ranks, which five numbers make of their bits (`order`). Those of 64 bits are sorted by the lower half of their ranks and then, since sorts are stable, by the
//! upper half.

#[cfg(feature = "cpu")]
mod host;
mod order;
mod plan;

use super::support::expect_inputs;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{Candidate, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, Operand, Request};
use crate::types::{ElementType, Layout, TensorType};
use trefoil_dsl::device::Properties;

/// What a sort gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gives {
    /// The elements in order.
    Values,
    /// Where they are, as `u32`.
    Places,
    /// Of the first so many both.
    Top(usize),
}

/// Which elements come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smaller ones, and NaN last.
    Ascending,
    /// NaN, and then larger ones.
    Descending,
}

/// Which elements [`Graph::top_k`] gives, and how it lists them. By default it is the largest, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Best {
    /// Whether they are the largest, or else the smallest.
    pub largest: bool,
    /// Whether they come in the order of [`Graph::sort`], the best first, or else in that of their places.
    pub sorted: bool,
}

impl Default for Best {
    fn default() -> Self {
        Self { largest: true, sorted: true }
    }
}

/// A sort along an axis, of elements of up to 32 bits. Of equal elements the one with the lower index comes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// What comes out.
    pub gives: Gives,
    /// The axis.
    pub axis: usize,
    /// Which elements come first.
    pub order: Order,
}

/// Errors of 64-bit types, which the graph's methods take apart.
fn narrow(x: &TensorType) -> Result<(), OpError> {
    if x.element.bytes() <= 4 {
        return Ok(());
    }
    let expected = format!(
        "{}; the graph's methods `sort`, `argsort` and `top_k` take all types",
        ElementType::list(|element| element.bytes() <= 4)
    );
    Err(OpError::ElementType { input: "x", given: x.element, expected })
}

impl Op for Sort {
    fn name(&self) -> &'static str {
        match self.gives {
            Gives::Values => "sort",
            Gives::Places => "argsort",
            Gives::Top(_) => "top_k",
        }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let mut attributes = vec![("axis", self.axis.to_string()), ("order", format!("{:?}", self.order))];
        if let Gives::Top(k) = self.gives {
            attributes.push(("k", k.to_string()));
        }
        attributes
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        narrow(x)?;
        let Some(extent) = x.shape.get(self.axis) else {
            let expected = format!("an axis of {x}");
            return Err(OpError::Attribute { attribute: "axis", given: self.axis.to_string(), expected });
        };
        let mut values = x.clone();
        if let Gives::Top(k) = self.gives {
            let Some(k) = i64::try_from(k).ok().filter(|k| (1..=extent.bounds().0).contains(k)) else {
                let expected = format!("1 to the extent of axis {} of {x}", self.axis);
                return Err(OpError::Attribute { attribute: "k", given: k.to_string(), expected });
            };
            values.shape[self.axis] = Dim::from(k);
        }
        let places = TensorType { element: ElementType::U32, shape: values.shape.clone() };
        Ok(match self.gives {
            Gives::Values => vec![values],
            Gives::Places => vec![places],
            Gives::Top(_) => vec![values, places],
        })
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        let (n, inner) = (x.shape[self.axis], x.shape[self.axis + 1..].iter().product::<usize>());
        let k = outputs[0][self.axis];
        let count: usize = outputs[0].iter().product();
        let (mut values, mut places) = (vec![0.0; count], vec![0.0; count]);
        for row in 0..x.values.len().checked_div(n).unwrap_or(0) {
            let (outer, beside) = (row / inner, row % inner);
            let element = |place: usize| x.values[(outer * n + place) * inner + beside];
            let mut order: Vec<usize> = (0..n).collect();
            // The library's sort is stable.
            order.sort_by(|a, b| {
                let (a, b) = (element(*a), element(*b));
                let ascending = match (a.is_nan(), b.is_nan()) {
                    (false, false) => a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
                    (a, b) => a.cmp(&b),
                };
                match self.order {
                    Order::Ascending => ascending,
                    Order::Descending => ascending.reverse(),
                }
            });
            for (at, place) in order.into_iter().take(k).enumerate() {
                let to = (outer * k + at) * inner + beside;
                values[to] = element(place);
                places[to] = f64::from(u32::try_from(place).unwrap_or(u32::MAX));
            }
        }
        let [values, places] = [values, places].map(|values| HostTensor { shape: outputs[0].clone(), values });
        match self.gives {
            Gives::Values => vec![values],
            Gives::Places => vec![places],
            Gives::Top(_) => vec![values, places],
        }
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        #[cfg_attr(not(feature = "cpu"), expect(unused_mut, reason = "nothing is added"))]
        let mut candidates: Vec<Box<dyn Candidate + '_>> = vec![
            Box::new(Way { sort: self, method: plan::held, name: "rows that a workgroup holds" }),
            Box::new(Way { sort: self, method: plan::top, name: "candidates of long rows" }),
            Box::new(Way { sort: self, method: plan::digits, name: "digit by digit" }),
        ];
        #[cfg(feature = "cpu")]
        candidates.push(Box::new(host::Rows(self)));
        OpKind::Kernels(candidates)
    }
}

/// A way to sort.
struct Way<'a> {
    sort: &'a Sort,
    method: plan::Method,
    name: &'static str,
}

impl std::fmt::Debug for Way<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Candidate for Way<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let work = plan::Work::new(&request.inputs[0], self.sort, &request.outputs[0])?;
        (self.method)(work, request.device)
    }
}

/// Where `count` numbers of a type are in ascending order, equal ones in their own: input 0 to output 0, `u32`, both of which are contiguous. Steps for a scatter.
///
/// # Errors
/// The kernels do not take them.
pub(in crate::ops) fn places_in_order(
    element: ElementType,
    count: Dim,
    device: &Properties,
) -> Result<Implementation, Ineligible> {
    let sort = Sort { gives: Gives::Places, axis: 0, order: Order::Ascending };
    let ty = TensorType { element, shape: vec![count] };
    let places = TensorType { element: ElementType::U32, shape: ty.shape.clone() };
    let x = Operand { layout: Layout::contiguous(&ty.shape), ty, is_param: false, kept: None };
    let by = |method: plan::Method| method(plan::Work::new(&x, &sort, &places)?, device);
    by(plan::held).or_else(|_| by(plan::digits))
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// The elements of each row along `axis` in order, a negative axis counted from the last; NaN is larger than all others. Of floats -0 is smaller than 0, but of `f64`, of which the two keep their
    /// order; and a NaN may come out with other bits.
    ///
    /// ```
    /// use trefoil_graph::ops::Order;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", ElementType::F16, [32, 1000])?;
    /// let sorted = graph.sort(x, -1, Order::Ascending)?;
    /// # assert_eq!(graph.type_of(sorted)?, graph.type_of(x)?);
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The tensor has no such axis.
    pub fn sort(&mut self, x: Tensor, axis: isize, order: Order) -> Result<Tensor, GraphError> {
        let at = self.axes("sort", x, &[axis])?[0];
        if self.type_of(x)?.element.bytes() > 4 {
            let places = self.argsort(x, axis, order)?;
            return self.gather_elements(x, places, axis);
        }
        self.add_one(Sort { gives: Gives::Values, axis: at, order }, &[x])
    }

    /// Where the elements that [`Graph::sort`] gives are, as `u32` indices along the axis. Of equal elements, as -0 and 0 are, the one with the lower index comes first.
    ///
    /// # Errors
    /// The tensor has no such axis.
    pub fn argsort(&mut self, x: Tensor, axis: isize, order: Order) -> Result<Tensor, GraphError> {
        let at = self.axes("argsort", x, &[axis])?[0];
        let places = Sort { gives: Gives::Places, axis: at, order };
        if self.type_of(x)?.element.bytes() <= 4 {
            return self.add_one(places, &[x]);
        }
        let [low, high] = self.halves_of_ranks(x)?;
        let by_low = self.add_one(places.clone(), &[low])?;
        let high = self.gather_elements(high, by_low, axis)?;
        let by_high = self.add_one(places, &[high])?;
        self.gather_elements(by_low, by_high, axis)
    }

    /// The `k` largest elements of each row along `axis`, or the smallest, with their places as `u32`, listed as [`Best`] says. NaN is larger than all others, and of equal elements those with the lower
    /// indices are taken.
    ///
    /// ```
    /// use trefoil_graph::ops::Best;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut graph = Graph::new();
    /// let x = graph.input("x", ElementType::F32, [4, 32_000])?;
    /// let (values, places) = graph.top_k(x, 50, -1, Best::default())?;
    /// assert_eq!(graph.type_of(places)?.to_string(), "u32[4, 50]");
    /// # assert_eq!(graph.type_of(values)?.to_string(), "f32[4, 50]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The tensor has no such axis, or `k` is not 1 to its extent.
    pub fn top_k(&mut self, x: Tensor, k: usize, axis: isize, best: Best) -> Result<(Tensor, Tensor), GraphError> {
        let at = self.axes("top_k", x, &[axis])?[0];
        let ty = self.type_of(x)?.clone();
        let order = if best.largest { Order::Descending } else { Order::Ascending };
        let op = Sort { gives: Gives::Top(k), axis: at, order };
        let mut places = if ty.element.bytes() > 4 {
            let narrow = TensorType { element: ElementType::U32, shape: ty.shape };
            // Refuses what is no k.
            let places = op.infer(&[narrow]).map_err(|error| GraphError::Op { op: "top_k".to_owned(), error })?;
            let all = self.argsort(x, axis, order)?;
            self.narrow(all, axis, 0i64, places[0].shape[at].clone())?
        } else {
            let outputs = self.add_op(op, &[x])?;
            if best.sorted {
                return Ok((outputs[0], outputs[1]));
            }
            outputs[1]
        };
        if !best.sorted {
            places = self.sort(places, axis, Order::Ascending)?;
        }
        Ok((self.gather_elements(x, places, axis)?, places))
    }
}
