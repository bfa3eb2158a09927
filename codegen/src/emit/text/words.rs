//! Buffers that are declared as words: their elements are put together from words, at the offsets that the host uses.

use crate::emit::EmitError;
use crate::ir::{BinaryOperator, Root, Scalar, Type};
use crate::layout;

use super::code::infix;
use super::place::{StepKind, Way};
use super::printer::LANES;
use super::{Code, Dialect, Printer};

type Result<T> = std::result::Result<T, EmitError>;

const WORD: Type = Type::Scalar(Scalar::U32);

fn number(value: u32) -> Code {
    Code::atom(format!("{value}u"))
}

impl<D: Dialect> Printer<'_, D> {
    /// The variable of an accessor that holds the position of the place's first word.
    fn word_name(way: &Way) -> &'static str {
        if way.root_name == "first" { "first_word" } else { "first" }
    }

    /// The line that computes the position of the place's first word.
    pub(super) fn first_word(&mut self, way: &Way) -> Result<String> {
        let times = |code: &Code, words: u32| {
            if words == 1 { code.clone() } else { infix(BinaryOperator::Multiply, code.clone(), number(words)) }
        };
        let (mut at, mut fixed): (Option<Code>, u32) = (None, 0);
        for step in &way.steps {
            let next = match (&step.kind, &step.from) {
                (StepKind::Index { code, .. }, None) => {
                    let Root::Binding(binding) = way.root else {
                        return Err(self.error("only buffers are declared as words"));
                    };
                    let element = self.ty(self.lowered.module.bindings[binding as usize].element);
                    let index = D::bound_index(self, way.root, code.clone())?;
                    times(&index, self.words(element)?)
                }
                (StepKind::Index { code, .. }, Some(from)) => {
                    let part = self.part_type(from)?;
                    times(code, self.words(&part)?)
                }
                (StepKind::Member(member), Some(Type::Struct(handle))) => {
                    let offsets = layout::field_offsets(&self.lowered.module, *handle);
                    match offsets.and_then(|offsets| offsets.get(*member as usize).copied()) {
                        Some(offset) => fixed += offset / 4,
                        None => return Err(self.error("a field has no place in memory")),
                    }
                    continue;
                }
                (StepKind::Member(member), Some(from)) => {
                    fixed += member * self.words(&self.part_type(from)?)?;
                    continue;
                }
                (StepKind::Vector { code, lanes, .. }, Some(_)) => times(code, u32::from(*lanes)),
                (StepKind::Vector { .. } | StepKind::Member(_), None) => {
                    return Err(self.error("a buffer of scalars is declared as words"));
                }
            };
            at = Some(match at {
                Some(at) => infix(BinaryOperator::Add, at, next),
                None => next,
            });
        }
        let mut at = at.ok_or_else(|| self.error("a whole buffer is used as a value"))?;
        if fixed > 0 {
            at = infix(BinaryOperator::Add, at, number(fixed));
        }
        let name = Self::word_name(way);
        Ok(format!("{};", D::declare_value(self, name, &WORD, at)?))
    }

    /// The value of the place, from its words.
    pub(super) fn read_words(&mut self, way: &Way) -> Result<Code> {
        self.read_part(way, &way.ty, 0)
    }

    fn read_part(&mut self, way: &Way, ty: &Type, offset: u32) -> Result<Code> {
        if let Type::Scalar(_) | Type::Enum(_) = ty {
            let word = Self::word(way, offset);
            if let Some(scalar) = ty.scalar().filter(|scalar| scalar.is_wide()) {
                return D::from_words(self, scalar, word, Self::word(way, offset + 1));
            }
            let target = super::expr::word(ty);
            return if target == WORD { Ok(word) } else { D::bitcast(self, &WORD, &target, word) };
        }
        let mut parts = Vec::new();
        for (_, part, at) in self.layout_of_parts(ty)? {
            parts.push(self.read_part(way, &part, offset + at)?);
        }
        D::compose(self, ty, parts)
    }

    /// The lines that write the place's words.
    pub(super) fn write_words(&mut self, way: &Way, value: Code, lines: &mut Vec<String>) -> Result<()> {
        self.write_part(way, &way.ty, 0, value, lines)
    }

    fn write_part(&mut self, way: &Way, ty: &Type, offset: u32, value: Code, lines: &mut Vec<String>) -> Result<()> {
        if let Type::Scalar(_) | Type::Enum(_) = ty {
            if let Some(scalar) = ty.scalar().filter(|scalar| scalar.is_wide()) {
                for (at, word) in (offset..).zip(D::to_words(self, scalar, value)?) {
                    lines.push(format!("{} = {};", Self::word(way, at).text, word.text));
                }
                return Ok(());
            }
            let source = super::expr::word(ty);
            let value = if source == WORD { value } else { D::bitcast(self, &source, &WORD, value)? };
            lines.push(format!("{} = {};", Self::word(way, offset).text, value.text));
            return Ok(());
        }
        for (name, part, at) in self.layout_of_parts(ty)? {
            let part_value = match ty {
                Type::Array { .. } => value.clone().index(Code::atom(name)),
                _ => value.clone().member(&name),
            };
            self.write_part(way, &part, offset + at, part_value, lines)?;
        }
        Ok(())
    }

    fn word(way: &Way, offset: u32) -> Code {
        let first = Code::atom(Self::word_name(way));
        let at = if offset == 0 { first } else { infix(BinaryOperator::Add, first, number(offset)) };
        Code::atom(way.root_name.clone()).index(at)
    }

    /// Name, type and first word of each part of a value that has parts.
    fn layout_of_parts(&self, ty: &Type) -> Result<Vec<(String, Type, u32)>> {
        Ok(match ty {
            Type::Vector { lanes, scalar } => {
                let part = Type::Scalar(*scalar);
                let words = self.words(&part)?;
                let lanes = LANES.iter().take(usize::from(*lanes)).zip(0u32..);
                lanes.map(|(name, lane)| ((*name).to_owned(), part.clone(), lane * words)).collect()
            }
            Type::Array { .. } => {
                let part = self.part_type(ty)?;
                let words = self.words(&part)?;
                (0..self.parts(ty)?).map(|index| (index.to_string(), part.clone(), index * words)).collect()
            }
            Type::Struct(handle) => {
                let offsets = layout::field_offsets(&self.lowered.module, *handle)
                    .ok_or_else(|| self.error("a struct has no place in memory"))?;
                let mut parts = Vec::new();
                for (index, offset) in (0u32..).zip(offsets) {
                    parts.push((self.field_name(*handle, index)?, D::field_type(self, *handle, index)?, offset / 4));
                }
                parts
            }
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => Vec::new(),
        })
    }

    /// How many words a type takes in memory.
    fn words(&self, ty: &Type) -> Result<u32> {
        let bytes = match ty {
            Type::Scalar(scalar) => scalar.bytes(),
            other => {
                let module = &self.lowered.module;
                let handle = module.types.iter().find(|(_, known)| *known == other).map(|(handle, _)| handle);
                handle.and_then(|handle| layout::of(module, handle)).map(|layout| layout.size)
            }
        };
        match bytes {
            Some(bytes) if bytes % 4 == 0 => Ok(bytes / 4),
            _ => Err(self.error(
                "elements with vectors of three lanes beside halves cannot be put together from words; use lanes of two or four",
            )),
        }
    }
}
