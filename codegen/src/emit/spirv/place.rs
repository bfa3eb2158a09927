//! Places: pointers into memory, guards, loads and stores.
//!
//! A guarded place carries a condition, true if every index on its way is in range. A read of a scalar or vector then clamps each
//! index to 0 and selects between what it read and zero; that is safe for a buffer as long as an element has no more than 16 bytes,
//! since at least that much is always bound. Everything else is a branch.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, FPRoundingMode, MemoryAccess, Op, StorageClass, Word};

use super::function::FunctionWriter;
use crate::emit::EmitError;
use crate::ir::{Expression, ExpressionKind, Handle, Place, Projection, Root, Scalar, Type};
use crate::target::Target;

/// One step of an access chain.
enum Step {
    /// A part known by number.
    Known(u32),
    /// A part known at run time.
    At(Index),
    /// A scalar, counted from the variable's start, of an array declared in elements of `width` scalars.
    Scalar { index: Index, width: u32 },
}

/// An index, which has 64 bits where a buffer's do.
#[derive(Clone, Copy)]
struct Index {
    value: Word,
    wide: bool,
}

/// A place whose indices are evaluated.
struct Reached {
    base: Word,
    class: StorageClass,
    non_private: bool,
    /// Whether it is in a buffer that the kernel does not write.
    read_only: bool,
    /// Whether its reads stay where they are written.
    volatile: bool,
    steps: Vec<Step>,
    /// The type of what is there.
    ty: Type,
    /// More than 1: the place is that many scalars from the last step on.
    lanes: u8,
    /// Whether all indices are in range, unless that is known.
    inside: Option<Word>,
    /// Whether a read may be made with indices clamped to 0.
    clampable: bool,
    /// Whether it is a part of a matrix.
    in_matrix: bool,
}

impl FunctionWriter<'_, '_> {
    /// What a place holds.
    pub(super) fn load(&mut self, place: &Place) -> Result<Word, EmitError> {
        let reached = self.reach(place)?;
        let Some(inside) = reached.inside else {
            return self.load_reached(&reached, None);
        };
        let ty = self.writer.value_type(&reached.ty)?;
        let zero = self.writer.zero(ty);
        if reached.clampable {
            let value = self.load_reached(&reached, Some(inside))?;
            return Ok(self.op(Op::Select, ty, &[inside, value, zero]));
        }
        let from = self.label();
        let (read, merge) = (self.writer.id(), self.writer.id());
        self.select_branch(inside, read, merge, merge);
        self.begin(read);
        let value = self.load_reached(&reached, None)?;
        let then = self.label();
        self.branch(merge);
        self.begin(merge);
        Ok(self.phi(ty, [(zero, from), (value, then)]))
    }

    /// Writes the value of an expression to a place.
    pub(super) fn store(&mut self, place: &Place, value: Handle<Expression>) -> Result<(), EmitError> {
        let reached = self.reach(place)?;
        let is_buffer = reached.class == StorageClass::StorageBuffer;
        let value = match self.function.expressions[value].kind {
            // The store itself rounds to the nearest half.
            ExpressionKind::Convert(wide)
                if is_buffer
                    && reached.ty.scalar() == Some(Scalar::F16)
                    && self.type_of(wide).scalar() == Some(Scalar::F32) =>
            {
                self.value(wide)?
            }
            _ => self.value(value)?,
        };
        let Some(inside) = reached.inside else {
            return self.store_reached(&reached, value);
        };
        let (write, merge) = (self.writer.id(), self.writer.id());
        self.select_branch(inside, write, merge, merge);
        self.begin(write);
        self.store_reached(&reached, value)?;
        self.branch(merge);
        self.begin(merge);
        Ok(())
    }

    /// Runs `access` with a pointer to a scalar, the pointer's storage class and the scalar's type; where the place is out of range
    /// it is not run, and the result is zero. An access without a result gives 0, which is no id.
    pub(super) fn with_pointer(
        &mut self,
        place: &Place,
        access: impl FnOnce(&mut Self, Word, StorageClass, Word) -> Word,
    ) -> Result<Word, EmitError> {
        let reached = self.reach(place)?;
        if reached.lanes > 1 || !matches!(reached.ty, Type::Scalar(_)) {
            return Err(self.writer.fail("an atomic operation on something that is no scalar"));
        }
        let ty = self.writer.value_type(&reached.ty)?;
        let Some(inside) = reached.inside else {
            let pointer = self.pointer_to(&reached)?;
            return Ok(access(self, pointer, reached.class, ty));
        };
        let zero = self.writer.zero(ty);
        let from = self.label();
        let (run, merge) = (self.writer.id(), self.writer.id());
        self.select_branch(inside, run, merge, merge);
        self.begin(run);
        let pointer = self.pointer_to(&reached)?;
        let value = access(self, pointer, reached.class, ty);
        self.branch(merge);
        self.begin(merge);
        if value == 0 {
            return Ok(zero);
        }
        Ok(self.phi(ty, [(zero, from), (value, run)]))
    }

    fn pointer_to(&mut self, reached: &Reached) -> Result<Word, EmitError> {
        let chain = self.chain(reached, 0, None)?;
        let ty = self.held_type(&reached.ty, reached)?;
        Ok(self.access_chain(reached, ty, &chain))
    }

    /// The type of a piece of what was reached.
    fn held_type(&mut self, ty: &Type, reached: &Reached) -> Result<Word, EmitError> {
        match (reached.class, ty) {
            (StorageClass::StorageBuffer, _) => self.writer.memory_type(ty),
            (StorageClass::Workgroup, _) => self.writer.workgroup_type(ty),
            (_, Type::Scalar(scalar)) if reached.in_matrix => self.writer.component(*scalar),
            _ => self.writer.value_type(ty),
        }
    }

    fn access_chain(&mut self, reached: &Reached, to: Word, chain: &[Word]) -> Word {
        if chain.is_empty() {
            return reached.base;
        }
        let pointer = self.writer.pointer(reached.class, to);
        let mut operands = vec![reached.base];
        operands.extend_from_slice(chain);
        self.op(Op::AccessChain, pointer, &operands)
    }

    /// Evaluates the indices of a place and finds the guard.
    fn reach(&mut self, place: &Place) -> Result<Reached, EmitError> {
        let lowered = self.writer.lowered;
        let mut reached = Reached {
            base: 0,
            class: StorageClass::Function,
            non_private: false,
            read_only: false,
            volatile: false,
            steps: Vec::new(),
            ty: Type::Scalar(Scalar::U32),
            lanes: 1,
            inside: None,
            clampable: true,
            in_matrix: false,
        };
        let mut path = place.path.iter();
        match place.root {
            Root::Local(local) => {
                reached.base = self.local_variable(local)?;
                reached.ty = self.writer.ir(self.function.locals[local].ty).clone();
            }
            Root::Argument(index) => {
                let Some(argument) = self.function.arguments.get(index as usize) else {
                    return Err(self.writer.fail(format!("`{}` has no argument {index}", self.function.name)));
                };
                reached.base = self.arguments.get(index as usize).copied().unwrap_or_default();
                reached.ty = self.writer.ir(argument.ty).clone();
            }
            Root::Binding(binding) => {
                let Some(declared) = lowered.module.bindings.get(binding as usize) else {
                    return Err(self.writer.fail(format!("there is no binding {binding}")));
                };
                let written = self.writer.is_written(binding);
                self.touched |= written;
                reached.base = self.writer.bindings[binding as usize];
                reached.class = StorageClass::StorageBuffer;
                reached.non_private = written && self.writer.shares;
                reached.read_only = !written;
                reached.volatile = declared.volatile.contains(&Target::Spirv);
                reached.ty = self.writer.ir(declared.element).clone();
                reached.steps.push(Step::Known(0));
                let width = self.writer.binding_width(binding);
                let Some((index, lanes)) = path.next().and_then(root_index) else {
                    return Err(self.writer.fail(format!("the buffer `{}` is used as one value", declared.name)));
                };
                let index = self.value(index)?;
                if place.guarded {
                    let limit = self.binding_limit(binding, lanes)?;
                    self.require(&mut reached, index, limit);
                    reached.clampable = self.writer.size_of(&reached.ty)? <= 16;
                }
                let wide = lowered.module.index.is_wide();
                let ty = self.writer.index_type(wide)?;
                // A vector as wide as the declared elements is one of them; else count in scalars.
                let index = if lanes > 1 && lanes != width {
                    let lanes = self.writer.index_number(lanes, wide)?;
                    self.op(Op::IMul, ty, &[index, lanes])
                } else {
                    index
                };
                let unit = if lanes == width { width } else { 1 };
                let offset = self.binding_offset(binding, unit)?;
                let value = self.op(Op::IAdd, ty, &[index, offset]);
                self.root_step(&mut reached, Index { value, wide }, lanes, width);
            }
            Root::Workgroup(variable) => {
                let declared = &lowered.module.workgroup[variable];
                reached.base = self.writer.workgroup[variable.index()];
                reached.class = StorageClass::Workgroup;
                reached.non_private = true;
                reached.ty = self.writer.ir(declared.element).clone();
                let width = self.writer.workgroup_width(variable.index());
                let length = declared.length.literal().unwrap_or(0);
                let Some((index, lanes)) = path.next().and_then(root_index) else {
                    return Err(self.writer.fail(format!("`{}` is used as one value", declared.name)));
                };
                let known = self.known_number(index);
                let index = self.value(index)?;
                if let (Some(exact), true) = (&declared.exact, place.guarded) {
                    let limit = self.writer.exact_length(exact, lanes)?;
                    self.require(&mut reached, index, limit);
                } else if place.guarded && known.is_none_or(|known| known >= length / lanes) {
                    let limit = self.writer.u32(length / lanes);
                    self.require(&mut reached, index, limit);
                }
                let word = self.writer.u32_type();
                let value = if lanes > 1 && lanes != width {
                    let lanes = self.writer.u32(lanes);
                    self.op(Op::IMul, word, &[index, lanes])
                } else {
                    index
                };
                self.root_step(&mut reached, Index { value, wide: false }, lanes, width);
            }
        }
        for projection in path {
            self.project(&mut reached, projection, place.guarded)?;
        }
        reached.clampable &= matches!(reached.ty, Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_));
        Ok(reached)
    }

    /// The first step into a buffer or workgroup variable.
    fn root_step(&mut self, reached: &mut Reached, index: Index, lanes: u32, width: u32) {
        if lanes > 1 {
            reached.ty = Type::vector(lanes as u8, reached.ty.scalar().unwrap_or(Scalar::U32));
        }
        reached.steps.push(if lanes == width { Step::At(index) } else { Step::Scalar { index, width } });
        reached.lanes = if lanes == width { 1 } else { lanes as u8 };
    }

    /// Adds `index < limit` to the guard.
    fn require(&mut self, reached: &mut Reached, index: Word, limit: Word) {
        let flag = self.writer.bool_type();
        let inside = self.op(Op::ULessThan, flag, &[index, limit]);
        reached.inside = Some(match reached.inside {
            Some(before) => self.op(Op::LogicalAnd, flag, &[before, inside]),
            None => inside,
        });
    }

    fn project(&mut self, reached: &mut Reached, projection: &Projection, guarded: bool) -> Result<(), EmitError> {
        let lowered = self.writer.lowered;
        let (part, length) = match &reached.ty {
            Type::Vector { lanes, scalar } => (Type::Scalar(*scalar), u32::from(*lanes)),
            Type::Array { element, length } => (self.writer.ir(*element).clone(), length.literal().unwrap_or(0)),
            Type::Struct(handle) => {
                let fields = &lowered.module.structs[*handle].fields;
                let field = match projection {
                    Projection::Member(field) => fields.get(*field as usize).map(|(_, ty)| (*field, *ty)),
                    Projection::Index(_) | Projection::Vector { .. } => None,
                };
                let Some((index, ty)) = field else {
                    return Err(self.writer.fail("a place goes into a struct by no field of it"));
                };
                reached.ty = self.writer.ir(ty).clone();
                reached.steps.push(Step::Known(index));
                return Ok(());
            }
            Type::Matrix(matrix) => {
                let (Projection::Index(index), false) = (projection, guarded) else {
                    return Err(self.writer.fail("a part of a matrix is one that the invocation holds"));
                };
                let scalar = matrix.scalar;
                let index = self.value(*index)?;
                let parts = self.matrix_part(matrix, index)?;
                reached.steps.extend(parts.into_iter().map(|value| Step::At(Index { value, wide: false })));
                reached.ty = Type::Scalar(scalar);
                reached.in_matrix = true;
                return Ok(());
            }
            Type::Scalar(_) | Type::Enum(_) => return Err(self.writer.fail("a place goes into a scalar")),
        };
        match projection {
            Projection::Member(index) => reached.steps.push(Step::Known(*index)),
            Projection::Index(index) => {
                let known = self.known_number(*index).filter(|known| *known < length);
                let step = match known {
                    Some(known) => Step::Known(known),
                    None => {
                        let value = self.value(*index)?;
                        if guarded {
                            let limit = self.writer.u32(length);
                            self.require(reached, value, limit);
                        }
                        Step::At(Index { value, wide: false })
                    }
                };
                reached.steps.push(step);
            }
            Projection::Vector { index, lanes } => {
                let scalar = part.scalar().unwrap_or(Scalar::U32);
                let index = self.value(*index)?;
                let lanes_id = self.writer.u32((*lanes).into());
                if guarded {
                    let limit = self.writer.u32(length / u32::from(*lanes));
                    self.require(reached, index, limit);
                }
                let word = self.writer.u32_type();
                let value = self.op(Op::IMul, word, &[index, lanes_id]);
                reached.steps.push(Step::Scalar { index: Index { value, wide: false }, width: 1 });
                reached.ty = Type::vector(*lanes, scalar);
                reached.lanes = *lanes;
                return Ok(());
            }
        }
        reached.ty = part;
        Ok(())
    }

    /// The indices of the access chain, for one lane; with `clamp`, those known at run time are 0 unless it is true.
    fn chain(&mut self, reached: &Reached, lane: u32, clamp: Option<Word>) -> Result<Vec<Word>, EmitError> {
        let mut chain = Vec::new();
        for step in &reached.steps {
            let (Step::At(index) | Step::Scalar { index, .. }) = step else {
                if let Step::Known(number) = step {
                    chain.push(self.writer.u32(*number));
                }
                continue;
            };
            let Index { mut value, wide } = *index;
            let ty = self.writer.index_type(wide)?;
            if let Some(inside) = clamp {
                let nought = self.writer.index_number(0, wide)?;
                value = self.op(Op::Select, ty, &[inside, value, nought]);
            }
            let Step::Scalar { width, .. } = step else {
                chain.push(value);
                continue;
            };
            if lane > 0 {
                let lane = self.writer.index_number(lane, wide)?;
                value = self.op(Op::IAdd, ty, &[value, lane]);
            }
            if *width == 1 {
                chain.push(value);
            } else {
                let (shift, mask) =
                    (self.writer.u32(width.trailing_zeros()), self.writer.index_number(width - 1, wide)?);
                chain.push(self.op(Op::ShiftRightLogical, ty, &[value, shift]));
                chain.push(self.op(Op::BitwiseAnd, ty, &[value, mask]));
            }
        }
        Ok(chain)
    }

    fn load_reached(&mut self, reached: &Reached, clamp: Option<Word>) -> Result<Word, EmitError> {
        if reached.lanes == 1 {
            let mut chain = self.chain(reached, 0, clamp)?;
            return self.load_part(reached, &reached.ty, &mut chain);
        }
        let scalar = Type::Scalar(reached.ty.scalar().unwrap_or(Scalar::U32));
        let mut parts = Vec::new();
        for lane in 0..reached.lanes {
            let mut chain = self.chain(reached, lane.into(), clamp)?;
            parts.push(self.load_part(reached, &scalar, &mut chain)?);
        }
        let ty = self.writer.value_type(&reached.ty)?;
        Ok(self.op(Op::CompositeConstruct, ty, &parts))
    }

    /// Loads what lies at the end of a chain. What a buffer holds in another form than values have is loaded part by part.
    fn load_part(&mut self, reached: &Reached, ty: &Type, chain: &mut Vec<Word>) -> Result<Word, EmitError> {
        let value_type = self.writer.value_type(ty)?;
        let held = self.held_type(ty, reached)?;
        if let Some(parts) = self.parts(reached, ty) {
            let mut values = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                chain.push(self.writer.u32(index as u32));
                values.push(self.load_part(reached, part, chain)?);
                chain.pop();
            }
            return Ok(self.op(Op::CompositeConstruct, value_type, &values));
        }
        let pointer = self.access_chain(reached, held, chain);
        let mut operands = vec![Operand::IdRef(pointer)];
        if reached.volatile || self.in_rounds && reached.read_only && matches!(ty, Type::Vector { .. }) {
            operands.push(Operand::MemoryAccess(MemoryAccess::VOLATILE));
        } else {
            operands.extend(self.memory_access(reached.non_private));
        }
        let value = self.op_with(Op::Load, held, operands);
        if held == value_type {
            return Ok(value);
        }
        Ok(self.op(Op::FConvert, value_type, &[value]))
    }

    fn store_reached(&mut self, reached: &Reached, value: Word) -> Result<(), EmitError> {
        if reached.lanes == 1 {
            let mut chain = self.chain(reached, 0, None)?;
            return self.store_part(reached, &reached.ty, &mut chain, value);
        }
        let scalar = Type::Scalar(reached.ty.scalar().unwrap_or(Scalar::U32));
        for lane in 0..u32::from(reached.lanes) {
            let part = self.extract(&scalar, value, lane)?;
            let mut chain = self.chain(reached, lane, None)?;
            self.store_part(reached, &scalar, &mut chain, part)?;
        }
        Ok(())
    }

    fn extract(&mut self, ty: &Type, value: Word, part: u32) -> Result<Word, EmitError> {
        let ty = self.writer.value_type(ty)?;
        Ok(self.op_with(Op::CompositeExtract, ty, vec![Operand::IdRef(value), Operand::LiteralBit32(part)]))
    }

    fn store_part(
        &mut self,
        reached: &Reached,
        ty: &Type,
        chain: &mut Vec<Word>,
        value: Word,
    ) -> Result<(), EmitError> {
        if let Some(parts) = self.parts(reached, ty) {
            for (index, part) in parts.iter().enumerate() {
                let value = self.extract(part, value, index as u32)?;
                chain.push(self.writer.u32(index as u32));
                self.store_part(reached, part, chain, value)?;
                chain.pop();
            }
            return Ok(());
        }
        let value_type = self.writer.value_type(ty)?;
        let held = self.held_type(ty, reached)?;
        let pointer = self.access_chain(reached, held, chain);
        let mut stored = value;
        if held != value_type {
            stored = self.op(Op::FConvert, held, &[value]);
            match reached.class {
                // Lowering has rounded it, since drivers convert to it as they like.
                _ if ty.scalar() == Some(Scalar::BF16) => {}
                StorageClass::StorageBuffer => {
                    let nearest = Operand::FPRoundingMode(FPRoundingMode::RTE);
                    self.writer.decorate(stored, Decoration::FPRoundingMode, &[nearest]);
                }
                // The decoration is for stores to buffers alone.
                StorageClass::Workgroup => self.writer.rounds_halves = true,
                // The value is a half already, and nothing is rounded.
                _ => {}
            }
        }
        let mut operands = vec![Operand::IdRef(pointer), Operand::IdRef(stored)];
        operands.extend(self.memory_access(reached.non_private));
        self.effect(Op::Store, operands);
        Ok(())
    }

    /// The parts by which a type moves between a buffer and values; `None` if it moves as a whole.
    fn parts(&self, reached: &Reached, ty: &Type) -> Option<Vec<Type>> {
        if reached.class != StorageClass::StorageBuffer {
            return None;
        }
        match ty {
            Type::Vector { lanes: 3, scalar } => Some(vec![Type::Scalar(*scalar); 3]),
            Type::Array { element, length } => {
                let element = self.writer.ir(*element).clone();
                Some(vec![element; length.literal().unwrap_or(0) as usize])
            }
            Type::Struct(handle) => {
                let fields = &self.writer.lowered.module.structs[*handle].fields;
                Some(fields.iter().map(|(_, ty)| self.writer.ir(*ty).clone()).collect())
            }
            Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) | Type::Matrix(_) => None,
        }
    }
}

/// The index of the first step into a buffer or workgroup variable, and how many scalars it covers.
fn root_index(projection: &Projection) -> Option<(Handle<Expression>, u32)> {
    match projection {
        Projection::Index(index) => Some((*index, 1)),
        Projection::Vector { index, lanes } => Some((*index, u32::from(*lanes))),
        Projection::Member(_) => None,
    }
}
