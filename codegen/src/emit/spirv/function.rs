//! A function being written: its blocks, its variables, and what is read once at its top.

use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{BuiltIn, FunctionControl, MemoryAccess, Op, StorageClass, Word};

use super::module::{Writer, builtin_name, instruction};
use crate::artefact::{ParamRole, ParamScalar};
use crate::emit::EmitError;
use crate::hashing::HashMap;
use crate::ir::{Builtin, Function, Handle, Local, Type};
use crate::target::Feature;

/// Where `break` and `continue` of a loop go.
pub(super) struct Loop {
    pub(super) merge: Word,
    pub(super) next: Word,
}

/// Writes one function.
///
/// The first block holds the variables, then the prologue, then the body's first statements. The prologue is grown while the body is
/// written; what it computes depends on nothing but the launch and the invocation, so it may stand before everything.
pub(super) struct FunctionWriter<'w, 'a> {
    pub(super) writer: &'w mut Writer<'a>,
    pub(super) function: &'a Function,
    variables: Vec<Instruction>,
    prologue: Vec<Instruction>,
    prologue_known: HashMap<(Op, Word, Vec<Operand>), Word>,
    blocks: Vec<dr::Block>,
    /// Whether the last block still lacks its terminator.
    open: bool,
    /// Immutable locals.
    pub(super) values: HashMap<Handle<Local>, Word>,
    /// Variables of mutable locals, and of immutable arrays, which may be indexed.
    places: HashMap<Handle<Local>, Word>,
    /// Parameters: values, or pointers for those by reference.
    pub(super) arguments: Vec<Word>,
    pub(super) loops: Vec<Loop>,
    /// Whether a buffer that the kernel writes has been accessed so far.
    pub(super) touched: bool,
    /// Barriers inside the outermost loop, by block and position: later accesses come before them in the next round.
    pub(super) pending_barriers: Vec<(usize, usize)>,
    /// Whether what is written is in a loop with a barrier. Reads of buffers that nothing writes stay there where the author put them: drivers move them behind the barrier, to where
    /// their values are used, and then wait for memory. The half products of two matrices of 4096 by 4096 took a third longer on one.
    pub(super) in_rounds: bool,
}

impl<'w, 'a> FunctionWriter<'w, 'a> {
    pub(super) fn new(writer: &'w mut Writer<'a>, function: &'a Function, in_rounds: bool, touched: bool) -> Self {
        Self {
            writer,
            function,
            variables: Vec::new(),
            prologue: Vec::new(),
            prologue_known: HashMap::default(),
            blocks: Vec::new(),
            open: false,
            values: HashMap::default(),
            places: HashMap::default(),
            arguments: Vec::new(),
            loops: Vec::new(),
            touched,
            pending_barriers: Vec::new(),
            in_rounds,
        }
    }

    /// Writes a function that the kernel calls.
    pub(super) fn write(mut self, id: Word) -> Result<(), EmitError> {
        let function = self.function;
        let result = match function.result {
            Some(ty) => self.value_type(ty)?,
            None => self.void(),
        };
        let mut signature = vec![Operand::IdRef(result)];
        let mut parameters = Vec::new();
        for argument in &function.arguments {
            let mut ty = self.value_type(argument.ty)?;
            if argument.by_reference {
                ty = self.writer.pointer(StorageClass::Function, ty);
            }
            signature.push(Operand::IdRef(ty));
            let parameter = self.writer.id();
            self.writer.name(parameter, &argument.name);
            parameters.push(instruction(Op::FunctionParameter, Some(ty), Some(parameter), Vec::new()));
            self.arguments.push(parameter);
        }
        let entry = self.writer.id();
        self.begin(entry);
        self.block(&function.body)?;
        if self.open {
            if function.result.is_some() {
                self.terminate(Op::Unreachable, Vec::new());
            } else {
                self.terminate(Op::Return, Vec::new());
            }
        }
        self.finish(id, result, signature, parameters);
        Ok(())
    }

    /// Writes the kernel's own body; workgroups beyond those asked for return at once.
    pub(super) fn write_entry(mut self, id: Word) -> Result<(), EmitError> {
        let function = self.function;
        let entry = self.writer.id();
        self.begin(entry);
        if self.writer.is_linear() {
            let group = self.builtin(Builtin::GroupIndex)?;
            let count = self.param_scalar(ParamRole::GroupCount)?;
            let flag = self.writer.bool_type();
            let beyond = self.op(Op::UGreaterThanEqual, flag, &[group, count]);
            let (leave, merge) = (self.writer.id(), self.writer.id());
            self.select_branch(beyond, leave, merge, merge);
            self.begin(leave);
            self.terminate(Op::Return, Vec::new());
            self.begin(merge);
        }
        self.block(&function.body)?;
        if self.open {
            self.terminate(Op::Return, Vec::new());
        }
        let void = self.void();
        self.finish(id, void, vec![Operand::IdRef(void)], Vec::new());
        Ok(())
    }

    /// Adds the function to the module: variables and prologue go to the top of its first block.
    pub(super) fn finish(mut self, id: Word, result: Word, signature: Vec<Operand>, parameters: Vec<Instruction>) {
        let ty = self.writer.global(Op::TypeFunction, None, signature);
        if let Some(first) = self.blocks.first_mut() {
            let body = std::mem::take(&mut first.instructions);
            first.instructions = self.variables;
            first.instructions.append(&mut self.prologue);
            first.instructions.extend(body);
        }
        let operands = vec![Operand::FunctionControl(FunctionControl::NONE), Operand::IdRef(ty)];
        self.writer.module.functions.push(dr::Function {
            def: Some(instruction(Op::Function, Some(result), Some(id), operands)),
            end: Some(instruction(Op::FunctionEnd, None, None, Vec::new())),
            parameters,
            blocks: self.blocks,
        });
    }

    /// `OpTypeVoid`
    pub(super) fn void(&mut self) -> Word {
        self.writer.global(Op::TypeVoid, None, Vec::new())
    }

    /// The type of values of that IR type.
    pub(super) fn value_type(&mut self, ty: Handle<Type>) -> Result<Word, EmitError> {
        let ty = self.writer.ir(ty);
        self.writer.value_type(ty)
    }

    /// Starts a block.
    pub(super) fn begin(&mut self, label: Word) {
        let label = instruction(Op::Label, None, Some(label), Vec::new());
        self.blocks.push(dr::Block { label: Some(label), instructions: Vec::new() });
        self.open = true;
    }

    /// Whether statements are still reached.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// The label of the block being written.
    pub(super) fn label(&self) -> Word {
        self.blocks.last().and_then(dr::Block::label_id).unwrap_or_default()
    }

    /// The position of the instruction that comes next.
    pub(super) fn position(&self) -> (usize, usize) {
        let instructions = self.blocks.last().map_or(0, |block| block.instructions.len());
        (self.blocks.len().saturating_sub(1), instructions)
    }

    /// The instruction at a position.
    pub(super) fn instruction_at(&mut self, (block, index): (usize, usize)) -> Option<&mut Instruction> {
        self.blocks.get_mut(block)?.instructions.get_mut(index)
    }

    fn push(&mut self, instruction: Instruction) {
        if let Some(block) = self.blocks.last_mut() {
            block.instructions.push(instruction);
        }
    }

    /// An instruction with ids as operands.
    pub(super) fn op(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        self.op_with(op, ty, operands.iter().map(|id| Operand::IdRef(*id)).collect())
    }

    /// An instruction with any operands.
    pub(super) fn op_with(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.writer.id();
        self.push(instruction(op, Some(ty), Some(id), operands));
        id
    }

    /// An instruction whose id is known before.
    pub(super) fn op_as(&mut self, op: Op, ty: Word, id: Word, operands: &[Word]) {
        let operands = operands.iter().map(|id| Operand::IdRef(*id)).collect();
        self.push(instruction(op, Some(ty), Some(id), operands));
    }

    /// An instruction without a result.
    pub(super) fn effect(&mut self, op: Op, operands: Vec<Operand>) {
        self.push(instruction(op, None, None, operands));
    }

    /// Ends the block.
    pub(super) fn terminate(&mut self, op: Op, operands: Vec<Operand>) {
        self.effect(op, operands);
        self.open = false;
    }

    /// Ends the block with a jump.
    pub(super) fn branch(&mut self, to: Word) {
        self.terminate(Op::Branch, vec![Operand::IdRef(to)]);
    }

    /// Ends the block with a jump, if statements reach its end.
    pub(super) fn branch_if_open(&mut self, to: Word) {
        if self.open {
            self.branch(to);
        }
    }

    /// Ends the block with a choice; without a merge block of its own, as the exit of a loop.
    pub(super) fn branch_conditional(&mut self, condition: Word, accept: Word, reject: Word) {
        let operands = [condition, accept, reject].map(Operand::IdRef).to_vec();
        self.terminate(Op::BranchConditional, operands);
    }

    /// Ends the block with a choice whose arms meet again at `merge`.
    pub(super) fn select_branch(&mut self, condition: Word, accept: Word, reject: Word, merge: Word) {
        self.selection_merge(merge);
        self.branch_conditional(condition, accept, reject);
    }

    /// Declares the merge block of the selection that follows.
    pub(super) fn selection_merge(&mut self, merge: Word) {
        let control = Operand::SelectionControl(rspirv::spirv::SelectionControl::NONE);
        self.effect(Op::SelectionMerge, vec![Operand::IdRef(merge), control]);
    }

    /// A choice between two values by the block that control came from.
    pub(super) fn phi(&mut self, ty: Word, sources: [(Word, Word); 2]) -> Word {
        let [(first, first_block), (second, second_block)] = sources;
        self.op(Op::Phi, ty, &[first, first_block, second, second_block])
    }

    /// A variable of the function.
    pub(super) fn variable(&mut self, to: Word, name: Option<&str>) -> Word {
        let pointer = self.writer.pointer(StorageClass::Function, to);
        let id = self.writer.id();
        let operands = vec![Operand::StorageClass(StorageClass::Function)];
        self.variables.push(instruction(Op::Variable, Some(pointer), Some(id), operands));
        if let Some(name) = name {
            self.writer.name(id, name);
        }
        id
    }

    /// The variable of a local that is held in memory.
    pub(super) fn local_variable(&mut self, local: Handle<Local>) -> Result<Word, EmitError> {
        if let Some(known) = self.places.get(&local) {
            return Ok(*known);
        }
        let function = self.function;
        let known = &function.locals[local];
        let ty = self.value_type(known.ty)?;
        let id = self.variable(ty, Some(&known.name));
        self.places.insert(local, id);
        Ok(id)
    }

    /// Whether a local is held in memory: mutable ones, and arrays, which may be indexed at run time.
    pub(super) fn is_variable(&self, local: Handle<Local>) -> bool {
        let local = &self.function.locals[local];
        local.mutable || matches!(self.writer.ir(local.ty), Type::Array { .. })
    }

    /// An instruction of the prologue, made once for the same operands.
    pub(super) fn prologue(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let key = (op, ty, operands);
        if let Some(known) = self.prologue_known.get(&key) {
            return *known;
        }
        let id = self.writer.id();
        self.prologue.push(instruction(op, Some(ty), Some(id), key.2.clone()));
        self.prologue_known.insert(key, id);
        id
    }

    fn prologue_op(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        self.prologue(op, ty, operands.iter().map(|id| Operand::IdRef(*id)).collect())
    }

    /// A pointer into the parameter block, made in the prologue.
    fn param_pointer(&mut self, member: u32, element: Option<u32>, to: Word) -> Word {
        let (params, class) = self.writer.params;
        let pointer = self.writer.pointer(class, to);
        let mut operands = vec![params, self.writer.u32(member)];
        if let Some(element) = element {
            operands.push(self.writer.u32(element));
        }
        self.prologue_op(Op::AccessChain, pointer, &operands)
    }

    /// A parameter that is no array: a scalar or a vector.
    pub(super) fn param_scalar(&mut self, role: ParamRole) -> Result<Word, EmitError> {
        let (member, field) = self.writer.param(role)?;
        if field.ty.array {
            return Err(self.writer.fail(format!("the array `{}` is read as one value", field.name)));
        }
        let scalar = self.writer.param_scalar(field.ty.scalar)?;
        let lanes = field.ty.count as u8;
        let ty = self.writer.vector_of(scalar, lanes);
        let pointer = self.param_pointer(member, None, ty);
        let mut value = self.prologue_op(Op::Load, ty, &[pointer]);
        if field.ty.scalar == ParamScalar::Bool {
            let flag = self.writer.bool_type();
            let flags = self.writer.vector_of(flag, lanes);
            let zero = self.writer.zero(ty);
            value = self.prologue_op(Op::INotEqual, flags, &[value, zero]);
        }
        self.writer.name(value, &field.name);
        Ok(value)
    }

    /// An element of a parameter that is an array, by a known number.
    pub(super) fn param_element(&mut self, role: ParamRole, element: u32) -> Result<Word, EmitError> {
        let (member, field) = self.writer.param(role)?;
        if !field.ty.array || element >= field.ty.count {
            return Err(self.writer.fail(format!("`{}` has no element {element}", field.name)));
        }
        let ty = self.writer.param_scalar(field.ty.scalar)?;
        let pointer = self.param_pointer(member, Some(element), ty);
        let mut value = self.prologue_op(Op::Load, ty, &[pointer]);
        if field.ty.scalar == ParamScalar::Bool {
            let flag = self.writer.bool_type();
            let zero = self.writer.zero(ty);
            value = self.prologue_op(Op::INotEqual, flag, &[value, zero]);
        }
        self.writer.name(value, &format!("{}_{element}", field.name));
        Ok(value)
    }

    /// An element of a parameter that is an array, by a number known at run time; out of range it is zero.
    pub(super) fn param_element_at(&mut self, role: ParamRole, index: Word) -> Result<Word, EmitError> {
        let (member, field) = self.writer.param(role)?;
        if !field.ty.array {
            return Err(self.writer.fail(format!("`{}` is indexed and no array", field.name)));
        }
        let (flag, word) = (self.writer.bool_type(), self.writer.u32_type());
        let (count, nought) = (self.writer.u32(field.ty.count), self.writer.u32(0));
        let inside = self.op(Op::ULessThan, flag, &[index, count]);
        let clamped = self.op(Op::Select, word, &[inside, index, nought]);
        let ty = self.writer.param_scalar(field.ty.scalar)?;
        let (params, class) = self.writer.params;
        let pointer = self.writer.pointer(class, ty);
        let member = self.writer.u32(member);
        let pointer = self.op(Op::AccessChain, pointer, &[params, member, clamped]);
        let value = self.op(Op::Load, ty, &[pointer]);
        let zero = self.writer.zero(ty);
        let value = self.op(Op::Select, ty, &[inside, value, zero]);
        if field.ty.scalar == ParamScalar::Bool {
            return Ok(self.op(Op::INotEqual, flag, &[value, zero]));
        }
        Ok(value)
    }

    /// How many groups of `lanes` scalars a buffer holds, in elements of its declared type: the limit of a guard.
    pub(super) fn binding_limit(&mut self, binding: u32, lanes: u32) -> Result<Word, EmitError> {
        let wide = self.writer.lowered.module.index.is_wide();
        let index = self.writer.index_type(wide)?;
        let mut limit = self.param_scalar(ParamRole::Length(binding))?;
        let declared = &self.writer.lowered.module.bindings[binding as usize];
        if declared.packed > 1 {
            // Rounded up without overflow: len - len / 2 for two.
            let packed = self.writer.index_number(declared.packed, wide)?;
            let whole = self.prologue_op(Op::UDiv, index, &[limit, packed]);
            let rest = self.prologue_op(Op::UMod, index, &[limit, packed]);
            let one = self.writer.index_number(1, wide)?;
            let extra = self.writer.glsl();
            let min = rspirv::spirv::GlslStd450Op::UMin as u32;
            let operands = vec![
                Operand::IdRef(extra),
                Operand::LiteralExtInstInteger(min),
                Operand::IdRef(rest),
                Operand::IdRef(one),
            ];
            let extra = self.prologue(Op::ExtInst, index, operands);
            limit = self.prologue_op(Op::IAdd, index, &[whole, extra]);
            self.writer.name(limit, &format!("{}_words", declared.name));
        }
        if lanes > 1 {
            let lanes_id = self.writer.index_number(lanes, wide)?;
            limit = self.prologue_op(Op::UDiv, index, &[limit, lanes_id]);
            self.writer.name(limit, &format!("{}_len_by_{lanes}", declared.name));
        }
        Ok(limit)
    }

    /// Where the slice starts in its buffer, counted in groups of `lanes` elements of the declared type.
    pub(super) fn binding_offset(&mut self, binding: u32, lanes: u32) -> Result<Word, EmitError> {
        let wide = self.writer.lowered.module.index.is_wide();
        let index = self.writer.index_type(wide)?;
        let offset = self.param_scalar(ParamRole::Offset(binding))?;
        let declared = &self.writer.lowered.module.bindings[binding as usize];
        let by = declared.packed * lanes;
        if by <= 1 {
            return Ok(offset);
        }
        let by_id = self.writer.index_number(by, wide)?;
        let offset = self.prologue_op(Op::UDiv, index, &[offset, by_id]);
        self.writer.name(offset, &format!("{}_offset_by_{by}", declared.name));
        Ok(offset)
    }

    fn input(&mut self, builtin: BuiltIn) -> Word {
        let word = self.writer.u32_type();
        let ty = match builtin {
            BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups | BuiltIn::LocalInvocationId => {
                self.writer.vector_of(word, 3)
            }
            _ => word,
        };
        let variable = self.writer.builtin(builtin);
        self.prologue_op(Op::Load, ty, &[variable])
    }

    fn axis(&mut self, vector: Word, axis: u32) -> Word {
        let word = self.writer.u32_type();
        self.prologue(Op::CompositeExtract, word, vec![Operand::IdRef(vector), Operand::LiteralBit32(axis)])
    }

    /// A builtin of the IR, computed in the prologue.
    pub(super) fn builtin(&mut self, builtin: Builtin) -> Result<Word, EmitError> {
        let word = self.writer.u32_type();
        let words = self.writer.vector_of(word, 3);
        let value = match builtin {
            Builtin::LocalIndex => self.input(BuiltIn::LocalInvocationIndex),
            Builtin::LocalId => self.input(BuiltIn::LocalInvocationId),
            Builtin::GroupId => self.input(BuiltIn::WorkgroupId),
            Builtin::GroupCounts => self.input(BuiltIn::NumWorkgroups),
            Builtin::SubgroupSize => self.subgroup_input(BuiltIn::SubgroupSize)?,
            Builtin::SubgroupLane => self.subgroup_input(BuiltIn::SubgroupLocalInvocationId)?,
            Builtin::SubgroupIndex => self.subgroup_input(BuiltIn::SubgroupId)?,
            Builtin::GroupCount if self.writer.is_linear() => return self.param_scalar(ParamRole::GroupCount),
            Builtin::GroupCount => {
                let counts = self.input(BuiltIn::NumWorkgroups);
                let [x, y, z] = [0, 1, 2].map(|axis| self.axis(counts, axis));
                let plane = self.prologue_op(Op::IMul, word, &[x, y]);
                self.prologue_op(Op::IMul, word, &[plane, z])
            }
            Builtin::GroupIndex => {
                let group = self.input(BuiltIn::WorkgroupId);
                let counts = self.input(BuiltIn::NumWorkgroups);
                let (x, y, along_x) = (self.axis(group, 0), self.axis(group, 1), self.axis(counts, 0));
                let mut rows = y;
                if !self.writer.is_linear() {
                    let (z, along_y) = (self.axis(group, 2), self.axis(counts, 1));
                    let planes = self.prologue_op(Op::IMul, word, &[z, along_y]);
                    rows = self.prologue_op(Op::IAdd, word, &[y, planes]);
                }
                let before = self.prologue_op(Op::IMul, word, &[rows, along_x]);
                self.prologue_op(Op::IAdd, word, &[x, before])
            }
            Builtin::GlobalIndex => {
                let group = self.builtin(Builtin::GroupIndex)?;
                let local = self.builtin(Builtin::LocalIndex)?;
                let invocations = self.writer.invocations();
                let invocations = self.writer.u32(invocations);
                let before = self.prologue_op(Op::IMul, word, &[group, invocations]);
                self.prologue_op(Op::IAdd, word, &[before, local])
            }
            Builtin::GlobalId => {
                let group = self.input(BuiltIn::WorkgroupId);
                let local = self.input(BuiltIn::LocalInvocationId);
                let size = self.writer.lowered.info.workgroup_size.map(|extent| self.writer.u32(extent));
                let operands = size.map(Operand::IdRef).to_vec();
                let size = self.writer.global(Op::ConstantComposite, Some(words), operands);
                let before = self.prologue_op(Op::IMul, words, &[group, size]);
                self.prologue_op(Op::IAdd, words, &[before, local])
            }
        };
        self.writer.name(value, builtin_name(builtin));
        Ok(value)
    }

    fn subgroup_input(&mut self, builtin: BuiltIn) -> Result<Word, EmitError> {
        self.writer.require(Feature::Subgroups, "a builtin of subgroups is used")?;
        self.writer.capability(rspirv::spirv::Capability::GroupNonUniform);
        Ok(self.input(builtin))
    }

    /// The memory operand of an access: non-private where barriers must order it.
    pub(super) fn memory_access(&self, non_private: bool) -> Vec<Operand> {
        if non_private { vec![Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER)] } else { Vec::new() }
    }
}
