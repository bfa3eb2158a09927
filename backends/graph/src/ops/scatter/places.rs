//! Which slots updates go to: for kernels, for references, and as an op that finds the last update of each slot.

use trefoil_kernels::scatter::kernels;
use trefoil_kernels::scatter::places::LEVELS;

use super::super::support::{expect_inputs, instance, kernel_time, shape_error, transfer_time, upper};
use crate::dim::Dim;
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, Operand, ParamValue,
    Request, Slot, Step,
};
use crate::types::{ElementType, Layout, TensorType};

/// What indices name of the extents over which slots are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// The last axis of the indices holds a coordinate for each extent.
    Coordinates,
    /// An index is the coordinate along that extent; those along the others are its own.
    Along(usize),
}

impl Named {
    /// How many updates there are.
    pub(super) fn count(self, indices: &TensorType) -> Dim {
        let axes = if self == Self::Coordinates { indices.rank().saturating_sub(1) } else { indices.rank() };
        indices.shape[..axes].iter().cloned().product()
    }

    /// Checks indices against the extents over which slots are counted.
    ///
    /// # Errors
    /// They do not fit.
    pub(super) fn check(self, indices: &TensorType, extents: &[Dim]) -> Result<(), OpError> {
        if !indices.element.is_integer() || indices.element.bytes() < 4 {
            let expected = "an integer (i32, u32, i64 or u64; `cast` converts)".to_owned();
            return Err(OpError::ElementType { input: "indices", given: indices.element, expected });
        }
        let fits = match self {
            Self::Coordinates => indices.shape.last().and_then(Dim::constant) == Dim::from(extents.len()).constant(),
            Self::Along(axis) => axis < extents.len() && indices.rank() == extents.len(),
        };
        if !fits {
            let expected = format!("indices for {} axes", extents.len());
            return Err(shape_error("indices", indices, expected));
        }
        // Of the graph's methods, indices that name many axes alone come here.
        if extents.len() > LEVELS {
            return Err(shape_error("indices", indices, format!("indices for at most {LEVELS} axes")));
        }
        // Slots and updates are counted in words, and moved by numbers with a sign.
        let slots: Dim = extents.iter().cloned().product();
        if [slots.bounds().1, self.count(indices).bounds().1].into_iter().any(|most| most >= i64::from(i32::MAX)) {
            let expected = format!("fewer than 2^31 - 1 of them, for as many places as {extents:?} have");
            return Err(shape_error("indices", indices, expected));
        }
        Ok(())
    }

    /// The slot of each update, for references; `None` where it goes nowhere.
    pub(super) fn slots(self, indices: &HostTensor, extents: &[usize]) -> Vec<Option<usize>> {
        let depth = if self == Self::Coordinates { extents.len() } else { 1 };
        let slot = |update: usize| {
            let mut place: Vec<f64> = indices.values[update * depth..(update + 1) * depth].to_vec();
            if let Self::Along(axis) = self {
                let mut own = vec![0.0; extents.len()];
                let mut rest = update;
                for (at, extent) in indices.shape.iter().enumerate().rev() {
                    own[at] = (rest % extent) as f64;
                    rest /= extent;
                }
                own[axis] = place[0];
                place = own;
            }
            let inside = place.iter().zip(extents).all(|(at, extent)| *at >= 0.0 && *at < *extent as f64);
            inside.then(|| place.iter().zip(extents).fold(0, |slot, (at, extent)| slot * extent + *at as usize))
        };
        (0..indices.values.len() / depth.max(1)).map(slot).collect()
    }

    /// What the kernels that find slots want to know after the number of updates.
    ///
    /// # Errors
    /// The indices are spread over too many axes that do not follow on each other.
    pub(super) fn params(self, indices: &Operand, extents: &[Dim]) -> Result<Vec<ParamValue>, Ineligible> {
        let slot_strides = Layout::contiguous(extents).strides;
        let rank = indices.ty.rank();
        let none = Dim::from(0i64);
        let (axes, step, named) = match self {
            Self::Coordinates => {
                (rank - 1, indices.layout.strides[rank - 1].clone(), (0..extents.len()).collect::<Vec<_>>())
            }
            Self::Along(axis) => (rank, none.clone(), vec![axis]),
        };
        let mut levels: Vec<(Dim, [Dim; 2])> = Vec::new();
        for (at, extent) in indices.ty.shape.iter().enumerate().take(axes) {
            if extent.is(1) {
                continue;
            }
            let own = if matches!(self, Self::Along(axis) if axis != at) { &slot_strides[at] } else { &none };
            let strides = [indices.layout.strides[at].clone(), own.clone()];
            match levels.last_mut() {
                Some((last, outer))
                    if outer.iter().zip(&strides).all(|(outer, own)| *outer == own.clone() * extent.clone()) =>
                {
                    (*last, *outer) = (last.clone() * extent.clone(), strides);
                }
                _ => levels.push((extent.clone(), strides)),
            }
        }
        if levels.len() > LEVELS {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let padded = |values: &mut dyn Iterator<Item = Dim>| {
            let mut values: Vec<Dim> = values.collect();
            values.resize(LEVELS, Dim::from(1i64));
            ParamValue::Dims(values)
        };
        let level = |of: fn(&(Dim, [Dim; 2])) -> &Dim| padded(&mut levels.iter().rev().map(of).cloned());
        Ok(vec![
            ParamValue::Dim(Dim::from(if indices.ty.element.bytes() == 8 { 2 } else { 1 })),
            ParamValue::Dim(Dim::from(levels.len())),
            level(|level| &level.0),
            level(|level| &level.1[0]),
            level(|level| &level.1[1]),
            ParamValue::Dim(Dim::from(named.len())),
            ParamValue::Dim(step),
            padded(&mut named.iter().map(|at| extents[*at].clone())),
            padded(&mut named.iter().map(|at| slot_strides[*at].clone())),
        ])
    }
}

/// For each slot, the number of its last update from 1 up, or 0 for none: what sets elements without an order among those that write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LastUpdates {
    /// Over which slots are counted.
    pub extents: Vec<Dim>,
    /// What indices name of them.
    pub named: Named,
}

impl Op for LastUpdates {
    fn name(&self) -> &'static str {
        "last_updates"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("extents", format!("{:?}", self.extents)), ("named", format!("{:?}", self.named))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        self.named.check(&inputs[0], &self.extents)?;
        Ok(vec![TensorType { element: ElementType::U32, shape: self.extents.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let mut values = vec![0.0; outputs[0].iter().product()];
        for (update, slot) in self.named.slots(&inputs[0], &outputs[0]).into_iter().enumerate() {
            if let Some(slot) = slot {
                values[slot] = (update + 1) as f64;
            }
        }
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Latest(self))])
    }
}

/// Each slot keeps the largest number.
#[derive(Debug)]
struct Latest<'a>(&'a LastUpdates);

impl Candidate for Latest<'_> {
    fn name(&self) -> &'static str {
        "largest numbers of updates"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let indices = &request.inputs[0];
        let count = self.0.named.count(&indices.ty);
        let mut params = vec![ParamValue::Dim(count.clone())];
        params.extend(self.0.named.params(indices, &self.0.extents)?);
        let step = |name: &str, bindings: Vec<Slot>, params: Vec<ParamValue>, invocations: Dim| {
            let kernel = instance(&kernels(), name)?;
            Ok(Step::Kernel(KernelStep { kernel, bindings, params, grid: Grid::Invocations(invocations) }))
        };
        let slots = request.outputs[0].elements();
        let bytes = 2.0 * upper(&request.outputs[0].bytes()) + upper(&indices.ty.bytes());
        let steps = vec![
            step("scatter_clear", vec![Slot::Output(0)], Vec::new(), slots)?,
            step("scatter_last", vec![Slot::Input(0), Slot::Output(0)], params, count)?,
        ];
        let cost = kernel_time(request.device, transfer_time(bytes));
        Ok(Implementation { steps, scratch: Vec::new(), cost })
    }
}
