//! SPIR-V as text for people and for snapshots.
//!
//! Ids have the author's names, types and constants are called what they are, blocks are called after the construct that they belong
//! to, and what is left is numbered function by function: a change in one function leaves the text of the others as it is, and ids
//! that moved make no difference. `spirv-as` reads the text (`OpName`s are left out, since ids carry them).

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use rspirv::binary::Disassemble;
use rspirv::dr::{Function, Instruction, Module, Operand, load_words};
use rspirv::spirv::{Decoration, GlslStd450Op, MemorySemantics, Op, Word};

/// The text of a module; a comment that says why, if the words are no module.
pub fn disassemble(words: &[u32]) -> String {
    match load_words(words) {
        Ok(module) => Text::new(&module).write(),
        Err(error) => format!("; no SPIR-V module: {error}\n"),
    }
}

struct Text<'m> {
    module: &'m Module,
    /// What each id is called, without `%`.
    names: HashMap<Word, String>,
    taken: HashSet<String>,
    /// Values of 32-bit constants.
    constants: HashMap<Word, u32>,
    /// Ids of 32-bit float types.
    floats: HashSet<Word>,
}

impl<'m> Text<'m> {
    fn new(module: &'m Module) -> Self {
        let mut text = Self {
            module,
            names: HashMap::new(),
            taken: HashSet::new(),
            constants: HashMap::new(),
            floats: HashSet::new(),
        };
        text.name_authored();
        for instruction in &module.ext_inst_imports {
            text.give(instruction.result_id, "glsl".to_owned());
        }
        for instruction in &module.types_global_values {
            text.name_global(instruction);
        }
        for function in &module.functions {
            text.name_function(function);
        }
        text
    }

    /// Calls an id `wanted`, or `wanted_1` and so on if that is taken.
    fn give(&mut self, id: Option<Word>, wanted: String) {
        let Some(id) = id.filter(|id| !self.names.contains_key(id)) else { return };
        let mut name = wanted.clone();
        let mut count = 0;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        self.names.insert(id, name);
    }

    fn name_authored(&mut self) {
        for instruction in &self.module.debug_names {
            if let (Op::Name, [Operand::IdRef(id), Operand::LiteralString(name)]) =
                (instruction.class.opcode, instruction.operands.as_slice())
            {
                let mut name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
                if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                    name.insert(0, '_');
                }
                self.give(Some(*id), name);
            }
        }
    }

    fn called(&self, id: Word) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    fn name_global(&mut self, instruction: &Instruction) {
        let part = |index: usize| match instruction.operands.get(index) {
            Some(Operand::IdRef(id)) => self.called(*id),
            Some(Operand::LiteralBit32(value)) => value.to_string(),
            Some(Operand::StorageClass(class)) => format!("{class:?}"),
            _ => String::new(),
        };
        let ty = instruction.result_type.map(|ty| self.called(ty)).unwrap_or_default();
        let name = match instruction.class.opcode {
            Op::TypeVoid => "void".to_owned(),
            Op::TypeBool => "bool".to_owned(),
            Op::TypeInt => format!("{}{}", if part(1) == "0" { 'u' } else { 'i' }, part(0)),
            Op::TypeFloat if instruction.operands.len() > 1 => format!("bf{}", part(0)),
            Op::TypeFloat => format!("f{}", part(0)),
            Op::TypeVector => format!("{}x{}", part(0), part(1)),
            Op::TypeArray => match instruction.operands.get(1) {
                Some(Operand::IdRef(length)) => {
                    let length = self.constants.get(length).copied().unwrap_or_default();
                    format!("array_{}_{length}", part(0))
                }
                _ => "array".to_owned(),
            },
            Op::TypeRuntimeArray => format!("runtime_array_{}", part(0)),
            Op::TypePointer => format!("ptr_{}_{}", part(0), part(1)),
            Op::TypeStruct => "struct".to_owned(),
            Op::TypeFunction => {
                let parts: Vec<String> = (0..instruction.operands.len()).map(part).collect();
                format!("fn_{}", parts.join("_"))
            }
            Op::ConstantTrue => "true".to_owned(),
            Op::ConstantFalse => "false".to_owned(),
            Op::ConstantNull => format!("{ty}_null"),
            Op::Constant => format!("{ty}_{}", identifier(&self.constant_text(instruction))),
            Op::ConstantComposite => {
                let first = part(0);
                if instruction.operands.iter().all(|operand| Some(operand) == instruction.operands.first()) {
                    format!("{ty}_splat_{first}")
                } else {
                    format!("{ty}_const")
                }
            }
            _ => "global".to_owned(),
        };
        if let (Op::TypeFloat, Some(id)) = (instruction.class.opcode, instruction.result_id) {
            self.floats.insert(id);
        }
        if let (Op::Constant, Some(id), Some(Operand::LiteralBit32(value))) =
            (instruction.class.opcode, instruction.result_id, instruction.operands.first())
        {
            self.constants.insert(id, *value);
        }
        self.give(instruction.result_id, name);
    }

    /// The value of a 64-bit constant as `spirv-as` reads it.
    fn wide_text(&self, instruction: &Instruction, bits: u64) -> String {
        match instruction.result_type {
            Some(ty) if self.floats.contains(&ty) => {
                let value = f64::from_bits(bits);
                if value.is_finite() { format!("{value:?}") } else { format!("!{bits:#018x}") }
            }
            Some(ty) if self.names.get(&ty).is_some_and(|name| name == "i64") => bits.cast_signed().to_string(),
            _ => bits.to_string(),
        }
    }

    /// The value of a constant as `spirv-as` reads it.
    fn constant_text(&self, instruction: &Instruction) -> String {
        let bits = match instruction.operands.first() {
            Some(Operand::LiteralBit32(bits)) => bits,
            Some(Operand::LiteralBit64(bits)) => return self.wide_text(instruction, *bits),
            _ => return String::new(),
        };
        match instruction.result_type {
            Some(ty) if self.floats.contains(&ty) => {
                let value = f32::from_bits(*bits);
                if value.is_finite() { format!("{value:?}") } else { format!("!{bits:#010x}") }
            }
            Some(ty) if self.names.get(&ty).is_some_and(|name| name == "i32") => bits.cast_signed().to_string(),
            _ => bits.to_string(),
        }
    }

    fn name_function(&mut self, function: &Function) {
        let id = function.def.as_ref().and_then(|def| def.result_id);
        self.give(id, "function".to_owned());
        let is_entry = self.module.entry_points.iter().any(|entry| {
            entry.operands.iter().any(|operand| matches!(operand, Operand::IdRef(target) if Some(*target) == id))
        });
        let prefix = match id {
            Some(id) if !is_entry => format!("{}_", self.called(id)),
            _ => String::new(),
        };
        for parameter in &function.parameters {
            self.give(parameter.result_id, format!("{prefix}argument"));
        }
        self.name_blocks(function, &prefix);
        let mut count = 0;
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            if instruction.result_id.is_some_and(|id| !self.names.contains_key(&id)) {
                count += 1;
                self.give(instruction.result_id, format!("{prefix}{count}"));
            }
        }
    }

    /// Names blocks after the loop or choice that they belong to.
    fn name_blocks(&mut self, function: &Function, prefix: &str) {
        let first = function.blocks.first().and_then(|block| block.label_id());
        self.give(first, format!("{prefix}entry"));
        let (mut loops, mut choices) = (0, 0);
        for block in &function.blocks {
            let merge = block.instructions.iter().rev().nth(1);
            let last = block.instructions.last();
            let targets: Vec<Word> = last.map(|last| ids(last).collect()).unwrap_or_default();
            match merge.map(|merge| (merge.class.opcode, ids(merge).collect::<Vec<_>>())) {
                Some((Op::LoopMerge, ends)) => {
                    loops += 1;
                    let name = format!("{prefix}loop_{loops}");
                    self.give(block.label_id(), name.clone());
                    self.give(ends.first().copied(), format!("{name}_end"));
                    self.give(ends.get(1).copied(), format!("{name}_next"));
                    let inside = targets.iter().find(|target| !self.names.contains_key(target)).copied();
                    self.give(inside, format!("{name}_body"));
                }
                Some((Op::SelectionMerge, ends)) => {
                    choices += 1;
                    let is_switch = last.is_some_and(|last| last.class.opcode == Op::Switch);
                    let name = format!("{prefix}{}_{choices}", if is_switch { "switch" } else { "if" });
                    self.give(ends.first().copied(), format!("{name}_end"));
                    // The first id is the condition.
                    for (index, target) in targets.iter().skip(1).enumerate() {
                        let role = match (is_switch, index) {
                            (true, 0) => "default".to_owned(),
                            (true, case) => format!("case_{case}"),
                            (false, 0) => "true".to_owned(),
                            (false, _) => "false".to_owned(),
                        };
                        self.give(Some(*target), format!("{name}_{role}"));
                    }
                }
                _ => {}
            }
        }
        let mut count = 0;
        for block in &function.blocks {
            if block.label_id().is_some_and(|id| !self.names.contains_key(&id)) {
                count += 1;
                self.give(block.label_id(), format!("{prefix}block_{count}"));
            }
        }
    }

    fn write(&self) -> String {
        let module = self.module;
        let mut text = String::new();
        if let Some(header) = &module.header {
            let (major, minor) = header.version();
            let _ = writeln!(text, "; SPIR-V {major}.{minor}");
        }
        let head = module.capabilities.iter().chain(&module.extensions).chain(&module.ext_inst_imports);
        let head = head.chain(&module.memory_model).chain(&module.entry_points).chain(&module.execution_modes);
        head.for_each(|instruction| self.line(&mut text, "", instruction));
        text.push('\n');
        let members = module.debug_names.iter().filter(|name| name.class.opcode == Op::MemberName);
        members.chain(&module.annotations).for_each(|instruction| self.line(&mut text, "", instruction));
        text.push('\n');
        module.types_global_values.iter().for_each(|instruction| self.line(&mut text, "", instruction));
        for function in &module.functions {
            text.push('\n');
            function.def.iter().chain(&function.parameters).for_each(|line| self.line(&mut text, "", line));
            for block in &function.blocks {
                block.label.iter().for_each(|line| self.line(&mut text, "", line));
                block.instructions.iter().for_each(|line| self.line(&mut text, "  ", line));
            }
            function.end.iter().for_each(|line| self.line(&mut text, "", line));
        }
        text
    }

    fn line(&self, text: &mut String, indent: &str, instruction: &Instruction) {
        text.push_str(indent);
        if let Some(id) = instruction.result_id {
            let _ = write!(text, "%{} = ", self.called(id));
        }
        let _ = write!(text, "Op{}", instruction.class.opname);
        if let Some(ty) = instruction.result_type {
            let _ = write!(text, " %{}", self.called(ty));
        }
        if instruction.class.opcode == Op::Constant {
            let _ = write!(text, " {}", self.constant_text(instruction));
        } else {
            for operand in &instruction.operands {
                let _ = write!(text, " {}", self.operand(operand));
            }
        }
        if instruction.class.opcode == Op::ControlBarrier
            && let Some(Operand::IdMemorySemantics(id)) = instruction.operands.last()
            && let Some(bits) = self.constants.get(id)
        {
            let _ = write!(text, " ; {}", MemorySemantics::from_bits_truncate(*bits).disassemble());
        }
        text.push('\n');
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id) => {
                format!("%{}", self.called(*id))
            }
            Operand::LiteralBit32(value) => value.to_string(),
            Operand::LiteralBit64(value) => value.to_string(),
            Operand::LiteralString(value) => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            Operand::LiteralExtInstInteger(number) => {
                GlslStd450Op::from_u32(*number).map_or_else(|| number.to_string(), |function| format!("{function:?}"))
            }
            Operand::Decoration(decoration) => {
                let decoration: &Decoration = decoration;
                format!("{decoration:?}")
            }
            other => other.disassemble(),
        }
    }
}

/// The ids among an instruction's operands.
fn ids(instruction: &Instruction) -> impl Iterator<Item = Word> {
    instruction.operands.iter().filter_map(|operand| match operand {
        Operand::IdRef(id) => Some(*id),
        _ => None,
    })
}

/// A number as a part of an id.
fn identifier(number: &str) -> String {
    number.replace('-', "minus_").replace('.', "_").replace(['!', '+'], "")
}

#[cfg(test)]
mod tests {
    use rspirv::binary::Assemble;
    use rspirv::dr::{Instruction, Operand, load_words};

    use crate::artefact::ParamTransport;
    use crate::emit::{EmitError, spirv};
    use crate::ir::builder::{ModuleBuilder, element};
    use crate::ir::{BinaryOperator, Builtin, Module, Root, Scalar};
    use crate::lower::lower;
    use crate::target::{Feature, Features, Profile, Target};
    use crate::verify::verify;

    /// `y[i] = x[i] * 2`, for `i < y.len()`.
    fn double(of: Scalar) -> Module {
        let mut module = ModuleBuilder::new("double", [64, 1, 1]);
        let (given, float) = (module.scalar(of), module.scalar(Scalar::F32));
        let (x, y) = (module.shared("x", given), module.mutable("y", float));
        let mut body = module.entry();
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (index, length) = (body.local(i), body.length(y));
        let inside = body.binary(BinaryOperator::Less, index, length);
        body.if_then(inside, |body| {
            let index = body.local(i);
            let value = body.load(element(Root::Binding(x), index));
            let value = body.convert(value, Scalar::F32);
            let two = body.f32(2.0);
            let value = body.binary(BinaryOperator::Multiply, value, two);
            let value = body.bind("twice", value);
            let (index, value) = (body.local(i), body.local(value));
            body.store(element(Root::Binding(y), index), value);
        });
        body.finish_entry();
        module.build()
    }

    fn emit(module: Module, features: Features) -> Result<Vec<u32>, EmitError> {
        let verified = verify(module).unwrap();
        let mut lowered =
            lower(&verified, &Profile::portable(Target::Spirv).with(features), ParamTransport::Value).unwrap();
        lowered.profile.features = features;
        // Only the emitter is asked here what a profile without native halves means.
        lowered.module = verified.module;
        spirv::emit(&lowered)
    }

    #[test]
    fn the_author_finds_the_names_and_the_structure() {
        let text = super::disassemble(&emit(double(Scalar::F32), Features::NONE).unwrap());
        for line in [
            "OpEntryPoint GLCompute %double \"double\" ",
            "OpExecutionMode %double LocalSize 64 1 1",
            "OpMemberName %Params 2 \"y_len\"",
            "%x = OpVariable %ptr_StorageBuffer_x_block StorageBuffer",
            "%f32_2_0 = OpConstant %f32 2.0",
            "  %y_len = OpLoad %u32 ",
            " %if_2_true %if_2_end",
            "%if_2_true = OpLabel",
            "  %twice = OpFMul %f32 %",
        ] {
            assert!(text.contains(line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn ids_make_no_difference() {
        let words = emit(double(Scalar::F32), Features::NONE).unwrap();
        let mut module = load_words(&words).unwrap();
        let moved = |id: u32| 1000 - id;
        let shift = |instruction: &mut Instruction| {
            instruction.result_id = instruction.result_id.map(moved);
            instruction.result_type = instruction.result_type.map(moved);
            for operand in &mut instruction.operands {
                if let Operand::IdRef(id) | Operand::IdScope(id) | Operand::IdMemorySemantics(id) = operand {
                    *id = moved(*id);
                }
            }
        };
        module.all_inst_iter_mut().for_each(shift);
        if let Some(header) = &mut module.header {
            header.bound = 1000;
        }
        let moved = module.assemble();
        assert_ne!(moved, words);
        assert_eq!(super::disassemble(&moved), super::disassemble(&words));
    }

    #[test]
    fn halves_need_their_feature() {
        let error = emit(double(Scalar::F16), Features::NONE).unwrap_err().to_string();
        assert!(error.contains("double") && error.contains("halves") && error.contains("f16"), "{error}");
        let text = super::disassemble(&emit(double(Scalar::F16), Features::of(&[Feature::F16Storage])).unwrap());
        assert!(text.contains("OpCapability StorageBuffer16BitAccess"), "{text}");
        assert!(!text.contains("Float16"), "{text}");
    }

    #[test]
    fn other_words_are_no_module() {
        assert!(super::disassemble(&[1, 2, 3]).starts_with("; no SPIR-V module"));
    }
}
