//! The module as a whole: capabilities, globals, the parameter block, the entry point.

use std::sync::LazyLock;

use rspirv::dr::{Instruction, Module, ModuleHeader, Operand};
use rspirv::grammar;
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FPEncoding, MemoryModel, Op,
    StorageClass, Word,
};

use super::function::FunctionWriter;
use crate::artefact::{Access, GridKind, ParamField, ParamRole, ParamScalar, ParamTransport};
use crate::emit::EmitError;
use crate::emit::touched::{self, Touched};
use crate::hashing::{HashMap, HashSet};
use crate::ir::{
    Block, Builtin, ExpressionKind, Function, Handle, Module as Ir, Precision, Scalar, Statement, StatementKind, Type,
    statements,
};
use crate::lower::Lowered;
use crate::target::{Feature, Target};

/// An instruction. rspirv looks for what it knows of an operation in a list, which took an eighth of the time of writing a module.
pub(super) fn instruction(op: Op, ty: Option<Word>, id: Option<Word>, operands: Vec<Operand>) -> Instruction {
    static CLASSES: LazyLock<HashMap<Op, &grammar::Instruction<'static>>> =
        LazyLock::new(|| grammar::INSTRUCTION_TABLE.iter().map(|class| (class.opcode, class)).collect());
    match CLASSES.get(&op) {
        Some(class) => Instruction { class, result_type: ty, result_id: id, operands },
        None => Instruction::new(op, ty, id, operands),
    }
}

/// A module being written.
pub(super) struct Writer<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) module: Module,
    next: Word,
    /// Types and constants, which SPIR-V wants once each.
    known: HashMap<(Op, Option<Word>, Vec<Operand>), Word>,
    /// The `u32` constants among them, which are asked for most.
    pub(super) numbers: HashMap<u32, Word>,
    globals: HashSet<Word>,
    named: HashSet<Word>,
    pub(super) value_types: HashMap<Type, Word>,
    pub(super) memory_types: HashMap<Type, Word>,
    pub(super) strided: HashMap<(Word, u32, u32), Word>,
    /// The variables of storage buffers, in signature order.
    pub(super) bindings: Vec<Word>,
    /// The variables in workgroup memory, in arena order.
    pub(super) workgroup: Vec<Word>,
    /// The parameter block's variable and storage class.
    pub(super) params: (Word, StorageClass),
    builtins: Vec<(BuiltIn, Word)>,
    interface: Vec<Word>,
    /// The specialisation constants declared so far, by param.
    pub(super) constants: Vec<(u32, Word)>,
    /// The ids of functions, in arena order.
    pub(super) functions: Vec<Word>,
    /// Where buffers that the kernel writes have been accessed before.
    pub(super) touched: Touched,
    glsl: Option<Word>,
    /// Whether halves are made where they are stored in workgroup memory: the module asks for rounding to the nearest then.
    pub(super) rounds_halves: bool,
    /// Whether the kernel has a barrier, or orders memory otherwise, so that accesses to written buffers must be non-private.
    pub(super) shares: bool,
}

/// Writes the kernel.
pub(super) fn write(lowered: &Lowered) -> Result<Module, EmitError> {
    let module = &lowered.module;
    let functions = module.functions.iter().map(|(_, function)| function);
    let shares =
        module.orders_memory() || functions.chain([&module.entry]).any(|function| contains_barrier(&function.body));
    let mut writer = Writer {
        lowered,
        module: Module::new(),
        next: 1,
        known: HashMap::default(),
        numbers: HashMap::default(),
        globals: HashSet::default(),
        named: HashSet::default(),
        value_types: HashMap::default(),
        memory_types: HashMap::default(),
        strided: HashMap::default(),
        bindings: Vec::new(),
        workgroup: Vec::new(),
        params: (0, StorageClass::PushConstant),
        constants: Vec::new(),
        builtins: Vec::new(),
        interface: Vec::new(),
        functions: Vec::new(),
        touched: touched::find(lowered),
        glsl: None,
        rounds_halves: false,
        shares,
    };
    writer.capability(Capability::Shader);
    writer.capability(Capability::VulkanMemoryModel);
    for index in 0..module.bindings.len() {
        writer.declare_binding(index)?;
    }
    writer.declare_params()?;
    for (handle, _) in module.workgroup.iter() {
        writer.declare_workgroup(handle.index())?;
    }
    for (_, function) in module.functions.iter() {
        let id = writer.id();
        writer.name(id, &function.name);
        writer.functions.push(id);
    }
    let of_rounds = functions_of_rounds(module);
    for (handle, function) in module.functions.iter() {
        let id = writer.functions[handle.index()];
        let entered = writer.touched.entered[handle.index()];
        FunctionWriter::new(&mut writer, function, of_rounds.contains(&handle), entered).write(id)?;
    }
    let entry = writer.id();
    writer.name(entry, &module.name);
    FunctionWriter::new(&mut writer, &module.entry, false, false).write_entry(entry)?;
    writer.finish(entry)
}

/// The functions that a block of a function calls.
fn calls(function: &Function, block: &Block) -> Vec<Handle<Function>> {
    let mut calls = Vec::new();
    function.live(block, &mut |expression| {
        if let ExpressionKind::Call { function: called, .. } = &function.expressions[expression].kind {
            calls.push(*called);
        }
    });
    calls
}

/// The functions that are called in loops with a barrier, and those that they call.
fn functions_of_rounds(module: &Ir) -> HashSet<Handle<Function>> {
    let mut left = Vec::new();
    for function in module.functions.iter().map(|(_, function)| function).chain([&module.entry]) {
        statements(&function.body, &mut |statement| {
            if let StatementKind::For { body, .. } | StatementKind::While { body, .. } | StatementKind::Loop { body } =
                &statement.kind
                && contains_barrier(body)
            {
                left.extend(calls(function, body));
            }
        });
    }
    let mut known = HashSet::default();
    while let Some(called) = left.pop() {
        if known.insert(called) {
            let function = &module.functions[called];
            left.extend(calls(function, &function.body));
        }
    }
    known
}

/// Whether a barrier stands in the block itself.
pub(super) fn contains_barrier(block: &[Statement]) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::Barrier | StatementKind::UniformLoad { .. } => true,
        StatementKind::If { accept, reject, .. } => contains_barrier(accept) || contains_barrier(reject),
        StatementKind::Switch { cases, default, .. } => {
            contains_barrier(default) || cases.iter().any(|case| contains_barrier(&case.body))
        }
        StatementKind::For { body, .. } | StatementKind::While { body, .. } | StatementKind::Loop { body } => {
            contains_barrier(body)
        }
        StatementKind::Reporting(body) => contains_barrier(body),
        StatementKind::Let { .. }
        | StatementKind::Report(_)
        | StatementKind::Store { .. }
        | StatementKind::Evaluate(_)
        | StatementKind::Break
        | StatementKind::Continue
        | StatementKind::Return(_)
        | StatementKind::Fence(_)
        | StatementKind::Asynchronous(_)
        | StatementKind::Atomic { .. }
        | StatementKind::Subgroup { .. }
        | StatementKind::Matrix { .. }
        | StatementKind::Tile(_) => false,
    })
}

impl<'a> Writer<'a> {
    /// An error that names the kernel.
    pub(super) fn fail(&self, message: impl Into<String>) -> EmitError {
        EmitError { kernel: self.lowered.module.name.clone(), target: Target::Spirv, message: message.into() }
    }

    /// The type behind a handle.
    pub(super) fn ir(&self, ty: Handle<Type>) -> &'a Type {
        &self.lowered.module.types[ty]
    }

    /// An unused id.
    pub(super) fn id(&mut self) -> Word {
        let id = self.next;
        self.next += 1;
        id
    }

    /// A type or constant, made once.
    pub(super) fn global(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let key = (op, ty, operands);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let id = self.unique(op, ty, key.2.clone());
        self.known.insert(key, id);
        id
    }

    /// A type, constant or variable of its own.
    pub(super) fn unique(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let id = self.id();
        self.module.types_global_values.push(instruction(op, ty, Some(id), operands));
        self.globals.insert(id);
        id
    }

    /// Gives an id the author's name, unless it has one.
    pub(super) fn name(&mut self, id: Word, name: &str) {
        if self.named.insert(id) {
            let operands = vec![Operand::IdRef(id), Operand::LiteralString(name.to_owned())];
            self.module.debug_names.push(instruction(Op::Name, None, None, operands));
        }
    }

    /// Like [`Writer::name`], for values of functions: constants keep none, since many things share them.
    pub(super) fn name_value(&mut self, id: Word, name: &str) {
        if !self.globals.contains(&id) {
            self.name(id, name);
        }
    }

    /// Names a member of a struct.
    pub(super) fn name_member(&mut self, id: Word, member: u32, name: &str) {
        let operands = vec![Operand::IdRef(id), Operand::LiteralBit32(member), Operand::LiteralString(name.to_owned())];
        self.module.debug_names.push(instruction(Op::MemberName, None, None, operands));
    }

    /// Decorates an id.
    pub(super) fn decorate(&mut self, id: Word, decoration: Decoration, rest: &[Operand]) {
        let mut operands = vec![Operand::IdRef(id), Operand::Decoration(decoration)];
        operands.extend_from_slice(rest);
        self.module.annotations.push(instruction(Op::Decorate, None, None, operands));
    }

    fn decorate_member(&mut self, id: Word, member: u32, decoration: Decoration, rest: &[Operand]) {
        let mut operands = vec![Operand::IdRef(id), Operand::LiteralBit32(member), Operand::Decoration(decoration)];
        operands.extend_from_slice(rest);
        self.module.annotations.push(instruction(Op::MemberDecorate, None, None, operands));
    }

    /// Says at which byte a struct's member lies.
    pub(super) fn decorate_offset(&mut self, id: Word, member: u32, offset: u32) {
        self.decorate_member(id, member, Decoration::Offset, &[Operand::LiteralBit32(offset)]);
    }

    /// Declares a capability, once.
    pub(super) fn capability(&mut self, capability: Capability) {
        let instruction = instruction(Op::Capability, None, None, vec![Operand::Capability(capability)]);
        if !self.module.capabilities.contains(&instruction) {
            self.module.capabilities.push(instruction);
        }
    }

    /// Declares an extension, once.
    pub(super) fn extension(&mut self, name: &str) {
        let instruction = instruction(Op::Extension, None, None, vec![Operand::LiteralString(name.to_owned())]);
        if !self.module.extensions.contains(&instruction) {
            self.module.extensions.push(instruction);
        }
    }

    /// A 16-bit float type, for loads and stores of buffers.
    pub(super) fn stored_float(&mut self, scalar: Scalar) -> Result<Word, EmitError> {
        self.capability(Capability::StorageBuffer16BitAccess);
        if scalar == Scalar::BF16 {
            return self.brain_type();
        }
        self.require(Feature::F16Storage, "a buffer holds halves")?;
        Ok(self.half_type())
    }

    /// `f16`.
    pub(super) fn half_type(&mut self) -> Word {
        self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(16)])
    }

    /// `bf16`, which is stored, converted and multiplied in matrices.
    pub(super) fn brain_type(&mut self) -> Result<Word, EmitError> {
        self.require(Feature::Bf16Matrices, "it has matrices of bf16")?;
        self.capability(Capability::BFloat16TypeKHR);
        self.extension("SPV_KHR_bfloat16");
        let encoding = Operand::FPEncoding(FPEncoding::BFloat16KHR);
        Ok(self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(16), encoding]))
    }

    /// Fails unless the profile has a feature.
    pub(super) fn require(&self, feature: Feature, why: &str) -> Result<(), EmitError> {
        if self.lowered.profile.features.has(feature) {
            return Ok(());
        }
        Err(self.fail(format!("{why}, and the profile lacks the feature {}", feature.name())))
    }

    /// The extended instruction set GLSL.std.450.
    pub(super) fn glsl(&mut self) -> Word {
        if let Some(known) = self.glsl {
            return known;
        }
        let id = self.id();
        let operands = vec![Operand::LiteralString("GLSL.std.450".to_owned())];
        self.module.ext_inst_imports.push(instruction(Op::ExtInstImport, None, Some(id), operands));
        self.glsl = Some(id);
        id
    }

    /// A variable of the module.
    fn variable(&mut self, class: StorageClass, to: Word) -> Word {
        let pointer = self.pointer(class, to);
        let id = self.unique(Op::Variable, Some(pointer), vec![Operand::StorageClass(class)]);
        self.interface.push(id);
        id
    }

    /// Whether the kernel changes that buffer.
    pub(super) fn is_written(&self, binding: u32) -> bool {
        touched::is_written(self.lowered, binding)
    }

    /// How many scalars one element of a buffer's declared array holds.
    pub(super) fn binding_width(&self, binding: u32) -> u32 {
        let declared = &self.lowered.module.bindings[binding as usize];
        let widest = self.lowered.info.vector.get(binding as usize).copied().unwrap_or(1);
        width(self.ir(declared.element), widest)
    }

    /// How many scalars one element of a workgroup variable's declared array holds.
    pub(super) fn workgroup_width(&self, variable: usize) -> u32 {
        let element = self.ir(self.lowered.module.workgroup[Handle::from_index(variable)].element);
        width(element, self.lowered.info.workgroup_vector.get(variable).copied().unwrap_or(1))
    }

    fn declare_binding(&mut self, index: usize) -> Result<(), EmitError> {
        let lowered = self.lowered;
        let binding = &lowered.module.bindings[index];
        let element = self.ir(binding.element);
        let width = self.binding_width(index as u32);
        let stride = self.size_of(element)? * width;
        let element = self.memory_type(element)?;
        let element = self.vector_of(element, width as u8);
        let array = self.unique(Op::TypeRuntimeArray, None, vec![Operand::IdRef(element)]);
        self.decorate(array, Decoration::ArrayStride, &[Operand::LiteralBit32(stride)]);
        let block = self.unique(Op::TypeStruct, None, vec![Operand::IdRef(array)]);
        self.name(block, &format!("{}_block", binding.name));
        self.name_member(block, 0, "elements");
        self.decorate(block, Decoration::Block, &[]);
        self.decorate_offset(block, 0, 0);
        let access = lowered.info.access.get(index);
        if access == Some(&Access::Read) {
            self.decorate_member(block, 0, Decoration::NonWritable, &[]);
        }
        let variable = self.variable(StorageClass::StorageBuffer, block);
        // What a kernel writes is in no other binding of a launch. Where others' writes are waited for, what was read before may not be taken for what is there.
        if !(access.is_some_and(|access| access.writes()) && lowered.module.orders_memory()) {
            self.decorate(variable, Decoration::Restrict, &[]);
        }
        self.name(variable, &binding.name);
        self.bind(variable, index as u32);
        self.bindings.push(variable);
        Ok(())
    }

    fn bind(&mut self, variable: Word, binding: u32) {
        self.decorate(variable, Decoration::DescriptorSet, &[Operand::LiteralBit32(0)]);
        self.decorate(variable, Decoration::Binding, &[Operand::LiteralBit32(binding)]);
    }

    /// The parameter block: elements of arrays are tight.
    fn declare_params(&mut self) -> Result<(), EmitError> {
        let lowered = self.lowered;
        if lowered.params.fields.is_empty() {
            return Ok(());
        }
        let mut members = Vec::new();
        for field in lowered.params.fields.iter() {
            let scalar = self.param_scalar(field.ty.scalar)?;
            members.push(Operand::IdRef(if field.ty.array {
                self.strided_array(scalar, field.ty.count, field.ty.scalar.bytes())?
            } else {
                self.vector_of(scalar, field.ty.count as u8)
            }));
        }
        let block = self.unique(Op::TypeStruct, None, members);
        self.name(block, "Params");
        self.decorate(block, Decoration::Block, &[]);
        let class = match lowered.transport {
            ParamTransport::Value => StorageClass::PushConstant,
            ParamTransport::Buffer => StorageClass::StorageBuffer,
        };
        for (index, field) in lowered.params.fields.iter().enumerate() {
            let index = index as u32;
            self.name_member(block, index, &field.name);
            self.decorate_offset(block, index, field.offset);
            if class == StorageClass::StorageBuffer {
                self.decorate_member(block, index, Decoration::NonWritable, &[]);
            }
        }
        let variable = self.variable(class, block);
        self.name(variable, "params");
        if class == StorageClass::StorageBuffer {
            self.decorate(variable, Decoration::Restrict, &[]);
            self.bind(variable, lowered.module.bindings.len() as u32);
        }
        self.params = (variable, class);
        Ok(())
    }

    /// The type of a parameter's scalars in the block.
    pub(super) fn param_scalar(&mut self, scalar: ParamScalar) -> Result<Word, EmitError> {
        self.scalar_type(match scalar {
            ParamScalar::F32 => Scalar::F32,
            ParamScalar::I32 => Scalar::I32,
            ParamScalar::U32 | ParamScalar::Index | ParamScalar::Bool => Scalar::U32,
            ParamScalar::I64 => Scalar::I64,
            ParamScalar::U64 => Scalar::U64,
            ParamScalar::F64 => Scalar::F64,
        })
    }

    /// The position and description of the parameter with that role.
    pub(super) fn param(&self, role: ParamRole) -> Result<(u32, &'a ParamField), EmitError> {
        let fields = &self.lowered.params.fields;
        fields
            .iter()
            .enumerate()
            .find(|(_, field)| field.role == role)
            .map(|(index, field)| (index as u32, field))
            .ok_or_else(|| self.fail(format!("the parameter block lacks {role:?}")))
    }

    fn declare_workgroup(&mut self, index: usize) -> Result<(), EmitError> {
        let lowered = self.lowered;
        let variable = &lowered.module.workgroup[Handle::from_index(index)];
        let width = self.workgroup_width(index);
        let element = self.workgroup_type(self.ir(variable.element))?;
        let element = self.vector_of(element, width as u8);
        let array = match &variable.exact {
            None => self.array_of(element, variable.length.literal().unwrap_or(0).div_ceil(width))?,
            Some(exact) => {
                let length = self.declared_length(exact, width)?;
                self.global(Op::TypeArray, None, vec![Operand::IdRef(element), Operand::IdRef(length)])
            }
        };
        let id = self.variable(StorageClass::Workgroup, array);
        self.name(id, &variable.name);
        self.workgroup.push(id);
        Ok(())
    }

    /// The input variable of a builtin of SPIR-V, declared when it is first wanted.
    pub(super) fn builtin(&mut self, builtin: BuiltIn) -> Word {
        if let Some((_, known)) = self.builtins.iter().find(|(known, _)| *known == builtin) {
            return *known;
        }
        let scalar = self.u32_type();
        let ty = match builtin {
            BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups | BuiltIn::LocalInvocationId => self.vector_of(scalar, 3),
            _ => scalar,
        };
        let id = self.variable(StorageClass::Input, ty);
        self.name(id, &format!("{builtin:?}"));
        self.decorate(id, Decoration::BuiltIn, &[Operand::BuiltIn(builtin)]);
        self.builtins.push((builtin, id));
        id
    }

    /// Invocations of a workgroup.
    pub(super) fn invocations(&self) -> u32 {
        self.lowered.info.workgroup_size.iter().product()
    }

    /// Whether workgroups are numbered linearly.
    pub(super) fn is_linear(&self) -> bool {
        self.lowered.info.grid == GridKind::Linear
    }

    fn finish(mut self, entry: Word) -> Result<Module, EmitError> {
        let name = self.lowered.module.name.clone();
        let mut operands = vec![
            Operand::ExecutionModel(ExecutionModel::GLCompute),
            Operand::IdRef(entry),
            Operand::LiteralString(name),
        ];
        operands.extend(self.interface.iter().map(|id| Operand::IdRef(*id)));
        self.module.entry_points.push(instruction(Op::EntryPoint, None, None, operands));
        let mut operands = vec![Operand::IdRef(entry), Operand::ExecutionMode(ExecutionMode::LocalSize)];
        operands.extend(self.lowered.info.workgroup_size.map(Operand::LiteralBit32));
        self.module.execution_modes.push(instruction(Op::ExecutionMode, None, None, operands));
        self.keep_what_is_no_number(entry);
        if self.rounds_halves {
            self.capability(Capability::RoundingModeRTE);
            let mode = Operand::ExecutionMode(ExecutionMode::RoundingModeRTE);
            let operands = vec![Operand::IdRef(entry), mode, Operand::LiteralBit32(16)];
            self.module.execution_modes.push(instruction(Op::ExecutionMode, None, None, operands));
        }
        let operands =
            vec![Operand::AddressingModel(AddressingModel::Logical), Operand::MemoryModel(MemoryModel::Vulkan)];
        self.module.memory_model = Some(instruction(Op::MemoryModel, None, None, operands));
        let mut header = ModuleHeader::new(self.next);
        header.set_version(1, 5);
        self.module.header = Some(header);
        Ok(self.module)
    }
}

impl Writer<'_> {
    /// Otherwise compilers may take it that there are neither infinities nor NaNs, and make 1 of `x / x`. Devices without it are given modules without it. A module has one word for all of its functions.
    fn keep_what_is_no_number(&mut self, entry: Word) {
        let Ir { entry: kernel, functions, .. } = &self.lowered.module;
        // Functions of the compiler's own are of the usual precision wherever they are called.
        let is_strict = functions.iter().any(|(_, function)| function.precision == Precision::Strict);
        if kernel.precision == Precision::Fast && !is_strict {
            return;
        }
        let floats = self.module.types_global_values.iter().filter(|value| value.class.opcode == Op::TypeFloat);
        let widths: Vec<_> = floats.filter_map(|float| float.operands.first()).cloned().collect();
        for width in widths {
            // 16-bit floats are stored and converted, never computed with.
            if width == Operand::LiteralBit32(16) {
                continue;
            }
            self.capability(Capability::SignedZeroInfNanPreserve);
            let operands =
                vec![Operand::IdRef(entry), Operand::ExecutionMode(ExecutionMode::SignedZeroInfNanPreserve), width];
            self.module.execution_modes.push(instruction(Op::ExecutionMode, None, None, operands));
        }
    }
}

/// The width of a declared array: that of the widest access if the elements are scalars.
fn width(element: &Type, widest: u32) -> u32 {
    match (element, widest) {
        (Type::Scalar(scalar), 2 | 4) if *scalar != Scalar::Bool => widest,
        _ => 1,
    }
}

/// The name by which kernels call a builtin.
pub(super) fn builtin_name(builtin: Builtin) -> &'static str {
    Builtin::ALL.iter().find(|(known, _)| *known == builtin).map_or("builtin", |(_, name)| name)
}
