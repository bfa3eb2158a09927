//! The kernel of a region, made in IR.
//!
//! What depends on shapes travels in parameters, so that regions of equal [`Structure`] share one kernel: for each set of extents by which elements are read, those of all
//! axes but the outermost; for each strided read, its offset and its strides.

use std::any::{Any, TypeId};
use std::fmt::Write as _;

use trefoil_codegen::artefact::Features;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, vector};
use trefoil_codegen::ir::{
    BinaryOperator, Builtin, Expression, ExpressionKind, Handle, Local, Module, Place, Root, Scalar, Span, Type,
};
use trefoil_dsl::device::Properties;

pub use super::features::{computes, feature, lacking, there};
use super::plan::{Plan, Source};
use super::read::{Pattern, Wide};
use super::{Fills, Region};
use crate::compile::program::{MapWork, Program, ValueId};
use crate::op::{Grid, OpKind, ParamValue};
use crate::types::ElementType;

/// Invocations in a workgroup of a generated kernel.
pub(super) const WORKGROUP: u32 = 256;
/// Elements that an invocation of a wide kernel computes at once.
pub(super) const LANES: u8 = 4;
type Value = Handle<Expression>;

/// Everything that decides the code of a region's kernel, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Structure {
    text: String,
    /// The types of the maps whose names and attributes the text tells: two types may have one name. They hold in this process alone, so that neither a kernel's name nor what is kept on disk depends on them.
    types: Vec<TypeId>,
}

impl Structure {
    pub(crate) fn new(text: String, types: Vec<TypeId>) -> Self {
        Self { text, types }
    }

    /// What other processes say of it too.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The types of maps.
pub(super) fn types_of(maps: &[MapWork]) -> impl Iterator<Item = TypeId> {
    maps.iter().map(|map| {
        let op: &dyn Any = &*map.op;
        op.type_id()
    })
}

/// A region ready to become a step.
#[derive(Debug)]
pub struct Generated {
    /// Equal structures have one kernel.
    pub structure: Structure,
    /// The kernel's name.
    pub name: String,
    /// The values that its bindings read, then those that they write.
    pub reads: Vec<ValueId>,
    /// What its parameters are.
    pub params: Vec<ParamValue>,
    /// The invocations or workgroups.
    pub grid: Grid,
    plan: Plan,
}

impl Generated {
    /// The value that is read farther than the kernel can count, if there is one.
    pub fn uncounted(&self) -> Option<ValueId> {
        self.plan.uncounted().map(|binding| self.reads[binding])
    }

    /// What an invocation does at once, for `explain`.
    pub fn ways(&self) -> &'static str {
        match &self.plan {
            Plan { turn: Some(_), .. } => ", four by four elements at once",
            Plan { wide: true, .. } => ", four elements at once",
            _ => "",
        }
    }
}

/// Works out the kernel of a region, without making it.
pub fn generate(program: &Program, region: &Region, fills: &Fills, device: &Properties) -> Generated {
    let (plan, reads) = Plan::new(program, region, fills, device);
    let mut text = format!("wide {} rounds {} tail {} bound {:?}", plan.wide, plan.rounds, plan.tail, plan.bound);
    if let Some(turn) = &plan.turn {
        // Writing to a string does not fail.
        let _ = write!(text, " turned {:?}", turn.structure());
    }
    if plan.requires != Features::NONE {
        let _ = write!(text, " requires {:?}", plan.requires);
    }
    for read in &plan.reads {
        let kind = match &read.pattern {
            Pattern::Flat => "flat".to_owned(),
            Pattern::One { offset } => format!("one {}", offset.is(0)),
            Pattern::Strided(strided) => format!("strided {:?} by {}", strided.wide, read.extents),
        };
        let _ = write!(text, "; {} {kind}", read.binding);
    }
    let ranks: Vec<_> = plan.extents.iter().map(Vec::len).collect();
    let _ = write!(text, "; ranks {ranks:?} written {:?}", plan.written);
    for (map, operands) in region.maps.iter().zip(&plan.operands) {
        let _ = write!(text, "; {} {:?} of {operands:?}", map.op.name(), map.op.attributes());
    }
    let _ = write!(text, "; types {:?}", plan.types);
    let name = name(&region.maps, &text);
    let each = if plan.wide { i64::from(LANES) * i64::from(plan.rounds) } else { 1 };
    let grid = match &plan.turn {
        Some(turn) => turn.grid(),
        None => Grid::Invocations(region.elements.quotient_up(each)),
    };
    let params = plan.params();
    let structure = Structure::new(text, types_of(&region.maps).collect());
    Generated { structure, name, reads, params, grid, plan }
}

/// The maps' names, and a few digits that tell kernels of equal names apart.
fn name(maps: &[MapWork], structure: &str) -> String {
    const NAMED: usize = 3;
    let mut name = String::from("map");
    for map in maps.iter().take(NAMED) {
        name.push('_');
        name.extend(map.op.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    }
    if maps.len() > NAMED {
        let _ = write!(name, "_and_{}", maps.len() - NAMED);
    }
    let _ = write!(name, "_{:08x}", fingerprint(structure) >> 32);
    name
}

/// FNV-1a.
pub(crate) fn fingerprint(text: &str) -> u64 {
    fingerprint_of(text.bytes())
}

/// FNV-1a of any bytes.
pub(crate) fn fingerprint_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The module's bindings and parameters.
#[derive(Default)]
pub(super) struct Names {
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<u32>,
    pub(super) turn: Option<u32>,
    pub(super) extents: Vec<Option<u32>>,
    pub(super) reads: Vec<Option<u32>>,
    /// Whether reads may be asked for past the end.
    pub(super) guarded: bool,
}

/// Makes the kernel of a region.
pub fn module(region: &Region, generated: &Generated) -> Module {
    let plan = &generated.plan;
    let mut module = ModuleBuilder::new(&generated.name, [WORKGROUP, 1, 1]);
    let names = declare(&mut module, plan);
    let mut builder = module.entry();
    let mut body = Body { builder: &mut builder, plan, names: &names, maps: &region.maps };
    body.all();
    builder.finish_entry();
    module.module().requires = plan.requires;
    module.module().doc = format!("Generated by fusion: {}.", describe(&region.maps));
    module.build()
}

/// Marks the code of a map, so that messages of the compiler lead to its node.
fn span(map: usize) -> Span {
    Span(map as u32 + 1)
}

/// The map that a message of the compiler is about.
pub fn map_at(region: &Region, at: Span) -> Option<&MapWork> {
    region.maps.iter().enumerate().find(|(index, _)| span(*index) == at).map(|(_, map)| map)
}

/// The maps of a region, for people.
pub fn describe(maps: &[MapWork]) -> String {
    let names: Vec<_> = maps.iter().map(|map| map.op.name()).collect();
    names.join(", ")
}

pub(super) fn declare(module: &mut ModuleBuilder, plan: &Plan) -> Names {
    let inputs = plan
        .bound
        .iter()
        .enumerate()
        .map(|(index, element)| {
            let ty = module.scalar(element.stored());
            module.shared(&format!("x{index}"), ty)
        })
        .collect();
    let outputs = plan
        .written
        .iter()
        .enumerate()
        .map(|(index, map)| {
            let ty = module.scalar(plan.types[*map].stored());
            module.mutable(&format!("y{index}"), ty)
        })
        .collect();
    let index = module.scalar(Scalar::Index);
    let turn = plan.turn.as_ref().map(|turn| {
        let ty = module.array(index, turn.numbers());
        module.param("turn", ty)
    });
    let extents = plan
        .extents
        .iter()
        .enumerate()
        .map(|(position, extents)| {
            (extents.len() > 1).then(|| {
                let ty = module.array(index, extents.len() as u32 - 1);
                module.param(&format!("inner{position}"), ty)
            })
        })
        .collect();
    let reads = plan
        .reads
        .iter()
        .enumerate()
        .map(|(position, read)| match &read.pattern {
            Pattern::Flat => None,
            Pattern::One { offset } if offset.is(0) => None,
            Pattern::One { .. } => Some(module.param(&format!("at{position}"), index)),
            Pattern::Strided(strided) => {
                let ty = module.array(index, strided.strides.len() as u32 + 1);
                Some(module.param(&format!("way{position}"), ty))
            }
        })
        .collect();
    Names { inputs, outputs, turn, extents, reads, guarded: false }
}

pub(super) struct Body<'a, 'm> {
    pub(super) builder: &'a mut FunctionBuilder<'m>,
    pub(super) plan: &'a Plan,
    pub(super) names: &'a Names,
    pub(super) maps: &'a [MapWork],
}

impl Body<'_, '_> {
    pub(super) fn op(&mut self, operator: BinaryOperator, left: Value, right: Value) -> Value {
        self.builder.binary(operator, left, right)
    }

    pub(super) fn bound(&mut self, name: &str, value: Value) -> Handle<Local> {
        self.builder.bind(name, value)
    }

    /// An element of an array parameter.
    pub(super) fn number(&mut self, param: u32, index: u32) -> Value {
        let base = self.builder.param(param);
        self.builder.expression(ExpressionKind::Member { base, index }, Type::Scalar(Scalar::Index))
    }

    /// The whole body: each invocation has one element, or four and the last one what is left over, or a block of four by four.
    fn all(&mut self) {
        if let (Some(turn), Some(param)) = (&self.plan.turn, self.names.turn) {
            self.turned(turn, param);
            return;
        }
        let index = self.builder.builtin(Builtin::GlobalIndex);
        let i = self.bound("i", index);
        let length = self.builder.length(self.names.outputs[0]);
        if !self.plan.wide {
            let index = self.builder.local(i);
            let inside = self.op(BinaryOperator::Less, index, length);
            self.nested_if(inside, |body| body.elements(i, 1));
            return;
        }
        let each = self.builder.index(u32::from(LANES) * self.plan.rounds);
        let groups = self.op(BinaryOperator::Divide, length, each);
        let groups = self.bound("groups", groups);
        let (index, end) = (self.builder.local(i), self.builder.local(groups));
        let inside = self.op(BinaryOperator::Less, index, end);
        if !self.plan.tail {
            self.nested_if(inside, |body| body.rounds(i, groups));
            return;
        }
        let (plan, names, maps) = (self.plan, self.names, self.maps);
        self.builder.if_else(
            inside,
            |builder| Body { builder, plan, names, maps }.elements(i, LANES),
            |builder| {
                let mut body = Body { builder, plan, names, maps };
                let (index, four) = (body.builder.local(i), body.builder.index(u32::from(LANES)));
                let start = body.op(BinaryOperator::Multiply, index, four);
                let end = body.builder.length(names.outputs[0]);
                body.builder
                    .for_range("j", start, end, |builder, j| Body { builder, plan, names, maps }.elements(j, 1));
            },
        );
    }

    pub(super) fn nested_if(&mut self, condition: Value, inner: impl FnOnce(&mut Body<'_, '_>)) {
        let (plan, names, maps) = (self.plan, self.names, self.maps);
        self.builder.if_then(condition, |builder| inner(&mut Body { builder, plan, names, maps }));
    }

    /// Computes and writes four elements in each round, `groups` times four apart; all is read before anything is computed.
    fn rounds(&mut self, i: Handle<Local>, groups: Handle<Local>) {
        let mut places = vec![i];
        for _ in 1..self.plan.rounds {
            let (last, groups) = (self.builder.local(places[places.len() - 1]), self.builder.local(groups));
            let next = self.op(BinaryOperator::Add, last, groups);
            places.push(self.bound("i", next));
        }
        let read: Vec<_> = places.iter().map(|place| self.read_all(*place, LANES)).collect();
        for (place, read) in places.into_iter().zip(read) {
            self.compute(place, &read, LANES);
        }
    }

    /// Computes and writes element `i`, or the four elements from `4 i` on.
    pub(super) fn elements(&mut self, i: Handle<Local>, lanes: u8) {
        let read = self.read_all(i, lanes);
        self.compute(i, &read, lanes);
    }

    fn read_all(&mut self, i: Handle<Local>, lanes: u8) -> Vec<Handle<Local>> {
        let coordinates: Vec<_> = (0..self.plan.extents.len()).map(|set| self.coordinates(set, i)).collect();
        (0..self.plan.reads.len()).map(|read| self.read(read, i, &coordinates, lanes)).collect()
    }

    pub(super) fn compute(&mut self, i: Handle<Local>, read: &[Handle<Local>], lanes: u8) {
        self.compute_to(None, read, lanes, &mut |body, output, result| {
            let value = body.builder.local(result);
            // Rounded where it is written: a device may do that by itself.
            let value = body.stored(body.plan.types[body.plan.written[output]], value);
            body.store(output, i, value, lanes);
        });
    }

    /// Computes all maps, and hands what is written of them to `write`, as they compute with it. `given` is what the kernel before computed.
    pub(super) fn compute_to(
        &mut self,
        given: Option<Handle<Local>>,
        read: &[Handle<Local>],
        lanes: u8,
        write: &mut dyn FnMut(&mut Self, usize, Handle<Local>),
    ) {
        let mut made: Vec<Handle<Local>> = Vec::new();
        for (index, map) in self.maps.iter().enumerate() {
            self.builder.at(span(index));
            let operands: Vec<_> = self.plan.operands[index]
                .iter()
                .filter_map(|source| match source {
                    Source::Map(producer) => Some(made[*producer]),
                    Source::Given => given,
                    Source::Read(position) => Some(read[*position]),
                    Source::Fill(bits, element) => Some(self.fill(*bits, *element, lanes)),
                })
                .collect();
            let result = self.map(map, &operands, lanes);
            let element = self.plan.types[index];
            let mut result = self.bound(map.op.name(), result);
            if let Some(output) = self.plan.written.iter().position(|written| *written == index) {
                write(self, output, result);
            }
            if element.is_half() && self.plan.operands.iter().flatten().any(|source| *source == Source::Map(index)) {
                // A 16-bit float is rounded whether or not it goes through memory, so that fusion changes no result.
                let value = self.builder.local(result);
                let narrow = self.builder.convert(value, element.stored());
                let narrow = self.bound(if element == ElementType::F16 { "half" } else { "brain" }, narrow);
                let value = self.builder.local(narrow);
                let rounded = self.builder.convert(value, element.computed());
                result = self.bound("rounded", rounded);
            }
            made.push(result);
        }
        self.builder.at(Span::NONE);
    }

    /// What maps compute with, as memory holds it.
    pub(super) fn stored(&mut self, element: ElementType, value: Value) -> Value {
        if element.stored() == element.computed() { value } else { self.builder.convert(value, element.stored()) }
    }

    /// What memory holds, as maps compute with it.
    pub(super) fn computed(&mut self, element: ElementType, value: Value, lanes: u8) -> Value {
        if element == ElementType::Bool {
            let zero = self.builder.u32(0);
            let zero = if lanes > 1 { self.builder.splat(zero, lanes) } else { zero };
            self.op(BinaryOperator::NotEqual, value, zero)
        } else if element.stored() != element.computed() {
            self.builder.convert(value, element.computed())
        } else {
            value
        }
    }

    /// What a map computes, as one expression of one element or of four.
    fn map(&mut self, map: &MapWork, operands: &[Handle<Local>], lanes: u8) -> Value {
        let OpKind::Map(body) = map.op.kind() else {
            // Regions hold maps alone; this is a place that cannot be reached.
            return self.builder.f32(f32::NAN);
        };
        if lanes == 1 || body.lanewise() {
            return body.body(self.builder, operands);
        }
        let parts = (0..u32::from(lanes))
            .map(|lane| {
                let scalars: Vec<_> = operands
                    .iter()
                    .map(|operand| {
                        let whole = self.builder.local(*operand);
                        let part = self.builder.lane(whole, lane);
                        self.bound("lane", part)
                    })
                    .collect();
                let part = body.body(self.builder, &scalars);
                let part = self.bound("part", part);
                self.builder.local(part)
            })
            .collect();
        self.builder.compose(parts)
    }

    fn fill(&mut self, bits: u64, element: ElementType, lanes: u8) -> Handle<Local> {
        let literal = self.builder.literal(element.literal(bits));
        let value = if lanes > 1 { self.builder.splat(literal, lanes) } else { literal };
        self.bound("fill", value)
    }

    /// The coordinates of element `i` in a set of extents.
    pub(super) fn coordinates(&mut self, set: usize, i: Handle<Local>) -> Vec<Handle<Local>> {
        let rank = self.plan.extents[set].len();
        let (mut rest, mut coordinates) = (i, Vec::new());
        if let Some(param) = self.names.extents[set] {
            for axis in (1..rank).rev() {
                let extent = self.number(param, axis as u32 - 1);
                let value = self.builder.local(rest);
                let coordinate = self.op(BinaryOperator::Remainder, value, extent);
                coordinates.push(self.bound("c", coordinate));
                let extent = self.number(param, axis as u32 - 1);
                let value = self.builder.local(rest);
                let outer = self.op(BinaryOperator::Divide, value, extent);
                rest = self.bound("rest", outer);
            }
        }
        coordinates.push(rest);
        coordinates.reverse();
        coordinates
    }

    /// Reads memory, and converts what it holds to what maps compute with.
    pub(super) fn read(
        &mut self,
        position: usize,
        i: Handle<Local>,
        sets: &[Vec<Handle<Local>>],
        lanes: u8,
    ) -> Handle<Local> {
        let read = &self.plan.reads[position];
        let (index, wide) = match &read.pattern {
            Pattern::Flat => (self.builder.local(i), Wide::Vector),
            Pattern::One { .. } => {
                let param = self.names.reads[position];
                let index = match param {
                    Some(param) => self.builder.param(param),
                    None => self.builder.index(0),
                };
                (index, Wide::Splat)
            }
            Pattern::Strided(strided) => {
                let index = match self.names.reads[position] {
                    Some(param) => self.strided(param, &sets[read.extents]),
                    None => self.builder.index(0),
                };
                (index, strided.wide)
            }
        };
        self.load(read.binding, index, wide, lanes)
    }

    /// What memory holds at an index, as what maps compute with.
    pub(super) fn load(&mut self, binding: usize, index: Value, wide: Wide, lanes: u8) -> Handle<Local> {
        let root = Root::Binding(self.names.inputs[binding]);
        // The layout was checked against the memory when the graph was legalised.
        let guarded = self.names.guarded;
        let inside = |place: Place| Place { guarded, ..place };
        let value = match (lanes, wide) {
            (2.., Wide::Vector) => self.builder.load(inside(vector(root, index, lanes))),
            (2.., _) => {
                let one = self.builder.load(inside(element(root, index)));
                self.builder.splat(one, lanes)
            }
            _ => self.builder.load(inside(element(root, index))),
        };
        let value = self.computed(self.plan.bound[binding], value, lanes);
        self.bound("x", value)
    }

    /// offset + sum of coordinate * stride
    pub(super) fn strided(&mut self, param: u32, coordinates: &[Handle<Local>]) -> Value {
        let mut sum = self.number(param, 0);
        for (axis, coordinate) in coordinates.iter().enumerate() {
            let coordinate = self.builder.local(*coordinate);
            let stride = self.number(param, axis as u32 + 1);
            let distance = self.op(BinaryOperator::Multiply, coordinate, stride);
            sum = self.op(BinaryOperator::Add, sum, distance);
        }
        sum
    }

    fn store(&mut self, output: usize, i: Handle<Local>, value: Value, lanes: u8) {
        let root = Root::Binding(self.names.outputs[output]);
        let index = self.builder.local(i);
        // All outputs have as many elements as the first, which the index was held against.
        let place = if lanes > 1 { vector(root, index, lanes) } else { element(root, index) };
        self.builder.store(Place { guarded: false, ..place }, value);
    }
}
