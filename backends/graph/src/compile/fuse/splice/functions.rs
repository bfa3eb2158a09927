//! A region as functions: of an element's index for what a kernel reads, of an index and a value for what it writes. One function computes one element, or two or four that lie side by side.

use trefoil_codegen::artefact::Features;
use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{
    BinaryOperator, Expression, ExpressionKind, Function, Handle, Literal, Local, Module, Param, Scalar, Size, Span,
    Type,
};
use trefoil_dsl::device::Properties;

use super::super::kernel::{Body, Names};
use super::super::plan::Plan;
use super::super::read::{Pattern, Wide};
use super::super::{Fills, Region};
use crate::compile::program::{Program, ValueId};
use crate::op::ParamValue;
use crate::types::ElementType;

/// A region as its functions read and write.
#[derive(Clone, Debug)]
pub(crate) struct Spliced {
    plan: Plan,
    /// How each read serves neighbours that are computed at once.
    wide: Vec<Wide>,
    /// What the functions read, each bound once.
    pub(crate) reads: Vec<ValueId>,
    /// The region.
    pub(crate) region: Region,
    /// The type of what the kernel reads or was about to write.
    pub(crate) element: ElementType,
    /// Whether the device computes with all types of the region.
    pub(crate) computes: bool,
    /// Bytes of each of the reads, at the upper bounds of the symbols.
    bytes: Vec<i64>,
    /// The binding whose elements are as many as the region's, if there is one: it tells how many there are.
    counted: Option<usize>,
}

impl Spliced {
    /// A region that computes what a kernel reads, or, `given` a value, one that goes on with what it writes.
    pub(crate) fn new(
        program: &Program,
        region: &Region,
        fills: &Fills,
        device: &Properties,
        given: Option<ValueId>,
    ) -> Self {
        let (mut plan, reads, computes) = Plan::of_reads(program, region, fills, device, given);
        let wide = plan.reads.iter().map(|read| match read.pattern.widened() {
            Some(Pattern::Strided(strided)) => strided.wide,
            Some(Pattern::Flat) => Wide::Vector,
            Some(Pattern::One { .. }) => Wide::Splat,
            None => Wide::No,
        });
        let wide = wide.collect();
        plan.count();
        let value = given.or_else(|| region.outputs.first().copied());
        let ty = value.and_then(|value| program.values[value].ty.as_ref());
        let element = ty.map_or(ElementType::U32, |ty| ty.element);
        let bytes = reads.iter().map(|read| program.values[*read].bytes.bounds().1).collect();
        // Of a longer one a region may read the beginning.
        let is_all =
            |value: ValueId| program.values[value].ty.as_ref().is_some_and(|ty| ty.elements() == region.elements);
        let mut flat = plan.reads.iter().filter(|read| read.pattern == Pattern::Flat);
        let counted = flat.find(|read| is_all(reads[read.binding])).map(|read| read.binding);
        Self { plan, wide, reads, region: region.clone(), element, computes, bytes, counted }
    }

    /// What its code depends on besides the kernel's.
    pub(crate) fn structure(&self) -> String {
        let reads = self.plan.reads.iter().map(|read| match &read.pattern {
            Pattern::Flat => format!("{} flat", read.binding),
            Pattern::One { offset } => format!("{} one {}", read.binding, offset.is(0)),
            Pattern::Strided(_) => format!("{} strided by {}", read.binding, read.extents),
        });
        let maps = self.region.maps.iter().zip(&self.plan.operands);
        let maps = maps.map(|(map, operands)| format!("{} {:?} of {operands:?}", map.op.name(), map.op.attributes()));
        let ranks: Vec<_> = self.plan.extents.iter().map(Vec::len).collect();
        format!(
            "bound {:?} counted {:?} reads {:?} {:?} ranks {ranks:?} written {:?} maps {:?} types {:?} of {:?} requires {:?}",
            self.plan.bound,
            self.counted,
            reads.collect::<Vec<_>>(),
            self.wide,
            self.plan.written,
            maps.collect::<Vec<_>>(),
            self.plan.types,
            self.element,
            self.plan.requires,
        )
    }

    /// The value that is read farther than its functions can count, if there is one.
    pub(crate) fn uncounted(&self) -> Option<ValueId> {
        self.plan.uncounted().map(|binding| self.reads[binding])
    }

    /// The bytes of each read that is one access for each element, since neither four of them nor neighbours lie together.
    pub(crate) fn scattered(&self, by_vectors: bool) -> impl Iterator<Item = i64> + '_ {
        let reads = self.plan.reads.iter().zip(&self.wide);
        let apart = reads.filter(move |(read, wide)| match &read.pattern {
            Pattern::Flat | Pattern::One { .. } => false,
            Pattern::Strided(strided) => {
                let beside = strided.strides.last().is_none_or(|last| last.is(0) || last.is(1));
                !beside || by_vectors && **wide == Wide::No
            }
        });
        apart.map(|(read, _)| self.bytes[read.binding])
    }

    /// The element types of its reads, in their order.
    pub(super) fn bound(&self) -> &[ElementType] {
        &self.plan.bound
    }

    /// Whether a binding stands one for one for the elements of the region.
    pub(super) fn is_flat(&self, binding: usize) -> bool {
        self.plan.reads.iter().any(|read| read.binding == binding && read.pattern == Pattern::Flat)
    }

    /// The element types of its outputs, in their order.
    pub(super) fn written(&self) -> impl Iterator<Item = ElementType> + '_ {
        self.plan.written.iter().map(|map| self.plan.types[*map])
    }

    /// What the device must have for its types.
    pub(super) fn requires(&self) -> Features {
        self.plan.requires
    }

    /// The values of its parameters, in the order in which [`Spliced::declare`] adds them.
    pub(crate) fn params(&self, is_behind: bool) -> Vec<ParamValue> {
        let mut params = self.plan.params();
        if !is_behind && self.counted.is_none() {
            params.push(ParamValue::Dim(self.region.elements.clone()));
        }
        params
    }

    /// Declares its parameters at the end of `params`, where the module's constants follow, and knows its buffers, which the module has.
    pub(super) fn declare(
        &self,
        module: &mut Module,
        params: &mut Vec<Param>,
        prefix: &str,
        inputs: Vec<u32>,
        is_behind: bool,
    ) -> Declared {
        let index = module.intern(Type::Scalar(Scalar::Index));
        let mut add = |name: String, numbers: Option<u32>| {
            let ty = match numbers {
                Some(length) => module.intern(Type::Array { element: index, length: Size::Literal(length) }),
                None => index,
            };
            params.push(Param { name, ty, specialise: None, span: Span::NONE });
            params.len() as u32 - 1
        };
        let extents = self.plan.extents.iter().enumerate();
        let extents = extents.map(|(set, extents)| {
            let inner = extents.len() as u32 - 1;
            (inner > 0).then(|| add(format!("{prefix}_inner{set}"), Some(inner)))
        });
        let extents = extents.collect();
        let reads = self.plan.reads.iter().enumerate().map(|(position, read)| match &read.pattern {
            Pattern::Flat => None,
            Pattern::One { offset } if offset.is(0) => None,
            Pattern::One { .. } => Some(add(format!("{prefix}_at{position}"), None)),
            Pattern::Strided(strided) => {
                Some(add(format!("{prefix}_way{position}"), Some(strided.strides.len() as u32 + 1)))
            }
        });
        let reads = reads.collect();
        let length = match self.counted {
            _ if is_behind => Length::Unasked,
            Some(binding) => Length::Of(inputs[binding]),
            None => Length::Param(add(format!("{prefix}_len"), None)),
        };
        let names = Names { inputs, extents, reads, guarded: true, ..Names::default() };
        Declared { names, length }
    }

    /// Adds the function that computes `lanes` elements at a group's index, as the kernel's `scalar`: zeros past the end, as memory reads there.
    pub(super) fn read_function(
        &self,
        module: &mut Module,
        declared: &Declared,
        name: &str,
        scalar: Scalar,
        lanes: u8,
    ) -> Handle<Function> {
        let ty = module.intern(of_lanes(scalar, lanes));
        let mut builder = FunctionBuilder::new(module, name);
        builder.result(ty);
        let i = argument(&mut builder, "i", Scalar::Index, 1);
        let length = declared.length(&mut builder);
        let mut body =
            Body { builder: &mut builder, plan: &self.plan, names: &declared.names, maps: &self.region.maps };
        let read = self.read_all(&mut body, i, lanes);
        let mut made = None;
        body.compute_to(None, &read, lanes, &mut |_, _, result| made = Some(result));
        if let (Some(made), Some(mut length)) = (made, length) {
            if lanes > 1 {
                let group = body.builder.index(u32::from(lanes));
                length = body.op(BinaryOperator::Divide, length, group);
            }
            let at = body.builder.local(i);
            let inside = body.op(BinaryOperator::Less, at, length);
            let value = body.builder.local(made);
            let zero = zero(body.builder, self.element.computed(), lanes);
            let value = body.builder.select(inside, value, zero);
            let value = body.stored(self.element, value);
            let value = as_scalar(body.builder, value, self.element.stored(), scalar);
            body.builder.return_value(Some(value));
        }
        builder.finish()
    }

    /// Adds the function that makes of `lanes` elements at a group's index, as the kernel computed them in its `scalar`, those of an output.
    pub(super) fn write_function(
        &self,
        module: &mut Module,
        declared: &Declared,
        name: &str,
        scalar: Scalar,
        (output, lanes): (usize, u8),
    ) -> Handle<Function> {
        let element = self.plan.types[self.plan.written[output]];
        let ty = module.intern(of_lanes(element.stored(), lanes));
        let mut builder = FunctionBuilder::new(module, name);
        builder.result(ty);
        let i = argument(&mut builder, "i", Scalar::Index, 1);
        let value = argument(&mut builder, "value", scalar, lanes);
        let mut body =
            Body { builder: &mut builder, plan: &self.plan, names: &declared.names, maps: &self.region.maps };
        let value = body.builder.local(value);
        let value = as_scalar(body.builder, value, scalar, self.element.stored());
        let value = body.computed(self.element, value, lanes);
        let given = body.bound("given", value);
        let read = self.read_all(&mut body, i, lanes);
        let mut made = None;
        body.compute_to(Some(given), &read, lanes, &mut |_, written, result| {
            if written == output {
                made = Some(result);
            }
        });
        if let Some(made) = made {
            let value = body.builder.local(made);
            let value = body.stored(element, value);
            body.builder.return_value(Some(value));
        }
        builder.finish()
    }

    /// Everything that the region reads for the elements of a group.
    fn read_all(&self, body: &mut Body<'_, '_>, i: Handle<Local>, lanes: u8) -> Vec<Handle<Local>> {
        // The first element of the group, and where the others are computed one by one, these.
        let mut elements = vec![i];
        if lanes > 1 {
            elements.clear();
            for lane in 0..u32::from(lanes) {
                let (group, size) = (body.builder.local(i), body.builder.index(u32::from(lanes)));
                let mut at = body.op(BinaryOperator::Multiply, group, size);
                if lane > 0 {
                    let lane = body.builder.index(lane);
                    at = body.op(BinaryOperator::Add, at, lane);
                }
                elements.push(body.bound("at", at));
            }
        }
        let mut sets: Vec<Vec<Vec<Handle<Local>>>> = Vec::new();
        for (set, _) in self.plan.extents.iter().enumerate() {
            let by_lane = lanes > 1
                && self.plan.reads.iter().zip(&self.wide).any(|(read, wide)| {
                    matches!(read.pattern, Pattern::Strided(_)) && read.extents == set && *wide == Wide::No
                });
            let wanted = if by_lane { elements.len() } else { 1 };
            sets.push(elements[..wanted].iter().map(|at| body.coordinates(set, *at)).collect());
        }
        let firsts: Vec<Vec<Handle<Local>>> = sets.iter().map(|set| set[0].clone()).collect();
        let reads = self.plan.reads.iter().zip(&self.wide).enumerate();
        let reads = reads.map(|(position, (read, wide))| {
            let (Pattern::Strided(_), Some(way), 2..) = (&read.pattern, body.names.reads[position], lanes) else {
                return body.read(position, i, &firsts, lanes);
            };
            if *wide == Wide::No {
                let parts = sets[read.extents].iter().map(|coordinates| {
                    let index = body.strided(way, coordinates);
                    let one = body.load(read.binding, index, Wide::No, 1);
                    body.builder.local(one)
                });
                let parts = parts.collect();
                let all = body.builder.compose(parts);
                return body.bound("x", all);
            }
            let mut index = body.strided(way, &sets[read.extents][0]);
            if *wide == Wide::Vector {
                let group = body.builder.index(u32::from(lanes));
                index = body.op(BinaryOperator::Divide, index, group);
            }
            body.load(read.binding, index, *wide, lanes)
        });
        reads.collect()
    }
}

/// The names of a region's buffers and parameters in a module, and how many elements it has.
pub(super) struct Declared {
    names: Names,
    length: Length,
}

/// Where the number of a region's elements is found.
#[derive(Clone, Copy)]
enum Length {
    /// It is a buffer's.
    Of(u32),
    /// It is a parameter.
    Param(u32),
    /// Nobody asks.
    Unasked,
}

impl Declared {
    /// The number of elements of what the kernel read.
    pub(super) fn length(&self, builder: &mut FunctionBuilder<'_>) -> Option<Handle<Expression>> {
        match self.length {
            Length::Of(binding) => Some(builder.length(binding)),
            Length::Param(param) => Some(builder.param(param)),
            Length::Unasked => None,
        }
    }

    /// As [`Declared::length`], as an expression's kind.
    pub(super) fn length_kind(&self) -> ExpressionKind {
        match self.length {
            Length::Of(binding) => ExpressionKind::Length(binding),
            Length::Param(param) => ExpressionKind::Param(param),
            Length::Unasked => ExpressionKind::Literal(Literal::Index(0)),
        }
    }
}

pub(super) fn of_lanes(scalar: Scalar, lanes: u8) -> Type {
    if lanes > 1 { Type::vector(lanes, scalar) } else { Type::Scalar(scalar) }
}

fn argument(builder: &mut FunctionBuilder<'_>, name: &str, scalar: Scalar, lanes: u8) -> Handle<Local> {
    let ty = builder.module().intern(of_lanes(scalar, lanes));
    let argument = builder.argument(name, ty);
    let value = builder.get_argument(argument);
    builder.bind(name, value)
}

/// The same bits as another scalar: integers that a kernel takes for words, whatever their sign.
fn as_scalar(
    builder: &mut FunctionBuilder<'_>,
    value: Handle<Expression>,
    from: Scalar,
    to: Scalar,
) -> Handle<Expression> {
    if from == to { value } else { builder.bitcast(value, to) }
}

/// Zero bits.
fn zero(builder: &mut FunctionBuilder<'_>, scalar: Scalar, lanes: u8) -> Handle<Expression> {
    let zero = super::zero_of(scalar);
    let zero = builder.literal(zero);
    if lanes > 1 { builder.splat(zero, lanes) } else { zero }
}
