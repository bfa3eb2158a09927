//! Places: loads and stores of registers, of private memory, and of addresses in buffers and workgroup memory.

use super::{Builder, Frame, Result, Value, parts_of, words_of};
use crate::artefact::{Access, ParamRole};
use crate::interp::program::{Address, Bound, Held, Instruction, Part, Register, Term, Where};
use crate::ir::{BindingKind, Handle, Place, Projection, Root, Scalar, Type};
use crate::layout;

/// The type of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Walked {
    Known(Handle<Type>),
    Lanes(u32, Scalar),
}

/// The parts of a value of scalars; each is held so, if that is given, rather than as its type says.
pub(super) fn parts(registers: &[Register], scalars: &[(u32, Held)], so: Option<Held>) -> Vec<Part> {
    registers
        .iter()
        .zip(scalars)
        .map(|(register, (offset, held))| Part { register: *register, offset: *offset, held: so.unwrap_or(*held) })
        .collect()
}

/// Whether a place is in memory, not in registers.
pub(super) const fn is_memory(root: Root) -> bool {
    matches!(root, Root::Binding(_) | Root::Workgroup(_))
}

impl<'a> Builder<'a> {
    pub(super) fn load(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        if let Root::Local(_) | Root::Argument(_) = place.root {
            let (registers, terms) = self.private(frame, place, out)?;
            if terms.is_empty() {
                return Ok(Value { registers, stable: false });
            }
            let to = self.target(want, registers.len() as u32);
            out.push(Instruction::Pick { to: to.clone(), base: registers[0], terms });
            return Ok(Value { registers: to, stable: true });
        }
        self.load_held(frame, place, None, want, out)
    }

    /// Loads what is not private; each of its words is held so, if that is given, rather than as its type says.
    pub(super) fn load_held(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        held: Option<Held>,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let (address, ty) = self.address(frame, place, out)?;
        let scalars = self.scalars_of(ty)?;
        let to = self.target(want, scalars.len() as u32);
        let parts = parts(&to, &scalars, held);
        out.push(Instruction::Load { address, parts });
        Ok(Value { registers: to, stable: true })
    }

    pub(super) fn store(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        value: &[Register],
        held: Option<Held>,
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        if let Root::Local(_) | Root::Argument(_) = place.root {
            let (registers, terms) = self.private(frame, place, out)?;
            if terms.is_empty() {
                // A value that is a part of the place (`v.x = v.y`, a swizzle) is read whole before any of it is written.
                let overlap = value.iter().any(|from| registers.contains(from));
                let from = if overlap {
                    let copied = self.take(value.len() as u32);
                    self.copy(value, &copied, out);
                    copied
                } else {
                    value.to_vec()
                };
                for (to, from) in registers.iter().zip(from) {
                    out.push(Instruction::Assign { to: *to, from });
                }
            } else {
                out.push(Instruction::Put { from: value.to_vec(), base: registers[0], terms });
            }
            return Ok(());
        }
        let (address, ty) = self.address(frame, place, out)?;
        let parts = parts(value, &self.scalars_of(ty)?, held);
        out.push(Instruction::Store { address, parts });
        Ok(())
    }

    fn scalars_of(&self, ty: Walked) -> Result<Vec<(u32, Held)>> {
        let mut scalars = Vec::new();
        match ty {
            Walked::Known(ty) => self.scalars(ty, 0, &mut scalars)?,
            Walked::Lanes(lanes, scalar) => scalars.extend(parts_of(scalar, lanes, 0)),
        }
        Ok(scalars)
    }

    /// The registers of a place in private memory, before its indices known at run time are added.
    fn private(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        out: &mut Vec<Instruction>,
    ) -> Result<(Vec<Register>, Vec<Term>)> {
        let (mut registers, ty) = match place.root {
            Root::Local(local) => (frame.locals[local.index()].clone(), frame.function.locals[local].ty),
            Root::Argument(index) => {
                (frame.arguments[index as usize].clone(), frame.function.arguments[index as usize].ty)
            }
            Root::Binding(_) | Root::Workgroup(_) => return Err(self.error("not a private place")),
        };
        let mut ty = Walked::Known(ty);
        let mut terms = Vec::new();
        for projection in &place.path {
            let (first, count, next) = match projection {
                Projection::Member(member) => self.step(ty, *member)?,
                Projection::Index(index) => {
                    let (_, count, next) = self.step(ty, 0)?;
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let length = registers.len() as u32 / count.max(1);
                    let bound = if place.guarded { Bound::Count(length) } else { Bound::None };
                    terms.push(Term { index, upper: None, stride: count, bound });
                    (0, count, next)
                }
                Projection::Vector { index, lanes } => {
                    let (_, _, element) = self.step(ty, 0)?;
                    let scalar = match element {
                        Walked::Known(ty) => self.module.types[ty].scalar(),
                        Walked::Lanes(..) => None,
                    };
                    let scalar = scalar.ok_or_else(|| self.error("a vector access to an array of structs"))?;
                    let lanes = u32::from(*lanes);
                    let words = lanes * words_of(scalar);
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(registers.len() as u32 / words) } else { Bound::None };
                    terms.push(Term { index, upper: None, stride: words, bound });
                    (0, words, Walked::Lanes(lanes, scalar))
                }
            };
            registers = registers[first as usize..(first + count) as usize].to_vec();
            ty = next;
        }
        Ok((registers, terms))
    }

    /// A part of a type known by number: its first word, its words, and its type.
    pub(super) fn step(&self, ty: Walked, index: u32) -> Result<(u32, u32, Walked)> {
        let Walked::Known(ty) = ty else {
            let Walked::Lanes(_, scalar) = ty else { return Err(self.error("an unexpected path")) };
            let words = words_of(scalar);
            return Ok((index * words, words, Walked::Lanes(1, scalar)));
        };
        let (first, count) = self.part(ty, index)?;
        let next = match &self.module.types[ty] {
            Type::Vector { scalar, .. } => Walked::Lanes(1, *scalar),
            Type::Array { element, .. } => Walked::Known(*element),
            Type::Struct(handle) => {
                let field = self.module.structs[*handle].fields.get(index as usize);
                Walked::Known(field.ok_or_else(|| self.error("a struct has no such field"))?.1)
            }
            Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => return Err(self.error("a part of a scalar")),
        };
        Ok((first, count, next))
    }

    /// The address of a place in memory, and its type.
    pub(super) fn address(
        &mut self,
        frame: &mut Frame<'_>,
        place: &Place,
        out: &mut Vec<Instruction>,
    ) -> Result<(Address, Walked)> {
        let (memory, element, reach) = match place.root {
            Root::Binding(binding) => {
                let index = binding as usize;
                let info = &self.verified.info;
                let atomic = self.module.bindings[index].kind == BindingKind::Atomic;
                let read_only = !atomic && info.access.get(index) == Some(&Access::Read);
                let disjoint = !atomic && info.disjoint.get(index).copied().unwrap_or(false);
                let relaxed = !(read_only || disjoint);
                // Checks that the length is there, so that running need not.
                self.field(ParamRole::Length(binding))?;
                let packed = self.module.bindings[index].packed;
                (Where::Binding { binding, relaxed }, self.module.bindings[index].element, Err((binding, packed)))
            }
            Root::Workgroup(variable) => {
                let length = self.module.workgroup[variable].length.literal().unwrap_or(0);
                let at = self.workgroup[variable.index()];
                (Where::Workgroup(at), self.module.workgroup[variable].element, Ok(length))
            }
            Root::Local(_) | Root::Argument(_) => return Err(self.error("not a place in memory")),
        };
        let bound = |groups: u32| match reach {
            Ok(length) => Bound::Count(length / groups),
            Err((binding, packed)) => Bound::Length { binding, divisor: packed * groups },
        };
        let size = |builder: &Self, ty| {
            layout::of(builder.module, ty)
                .map(|layout| layout.size)
                .ok_or_else(|| builder.error("a type that memory does not hold"))
        };
        let scalar_bytes = |scalar: Scalar| scalar.bytes().unwrap_or(4);
        let mut address = Address { memory, terms: Vec::new(), constant: 0 };
        let mut path = place.path.iter();
        let mut ty = match path.next() {
            Some(Projection::Index(index)) => {
                let index = self.expression(frame, *index, None, out)?.registers;
                let (index, upper) = (index[0], index.get(1).copied());
                let bound = if place.guarded { bound(1) } else { Bound::None };
                address.terms.push(Term { index, upper, stride: size(self, element)?, bound });
                Walked::Known(element)
            }
            Some(Projection::Vector { index, lanes }) => {
                let scalar = self.module.types[element]
                    .scalar()
                    .ok_or_else(|| self.error("a vector access to a buffer of structs"))?;
                let lanes = u32::from(*lanes);
                let index = self.expression(frame, *index, None, out)?.registers;
                let (index, upper) = (index[0], index.get(1).copied());
                let bound = if place.guarded { bound(lanes) } else { Bound::None };
                address.terms.push(Term { index, upper, stride: lanes * scalar_bytes(scalar), bound });
                Walked::Lanes(lanes, scalar)
            }
            Some(Projection::Member(_)) | None => return Err(self.error("an access to a buffer without an index")),
        };
        for projection in path {
            // Memory's steps, in bytes.
            let (length, stride, next) = match ty {
                Walked::Lanes(lanes, scalar) => (lanes, scalar_bytes(scalar), Walked::Lanes(1, scalar)),
                Walked::Known(known) => match &self.module.types[known] {
                    Type::Vector { lanes, scalar } => {
                        (u32::from(*lanes), scalar_bytes(*scalar), Walked::Lanes(1, *scalar))
                    }
                    Type::Array { element, length } => {
                        (length.literal().unwrap_or(0), size(self, *element)?, Walked::Known(*element))
                    }
                    Type::Struct(handle) => {
                        let Projection::Member(member) = projection else {
                            return Err(self.error("an index into a struct"));
                        };
                        let offsets = layout::field_offsets(self.module, *handle)
                            .ok_or_else(|| self.error("a struct that memory does not hold"))?;
                        let field = self.module.structs[*handle].fields.get(*member as usize);
                        let (Some(offset), Some(field)) = (offsets.get(*member as usize), field) else {
                            return Err(self.error("a struct has no such field"));
                        };
                        address.constant += offset;
                        ty = Walked::Known(field.1);
                        continue;
                    }
                    Type::Scalar(_) | Type::Enum(_) | Type::Matrix(_) => {
                        return Err(self.error("a part of a scalar"));
                    }
                },
            };
            ty = match projection {
                Projection::Member(member) => {
                    address.constant += member * stride;
                    next
                }
                Projection::Index(index) => {
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(length) } else { Bound::None };
                    address.terms.push(Term { index, upper: None, stride, bound });
                    next
                }
                Projection::Vector { index, lanes } => {
                    let lanes = u32::from(*lanes);
                    let scalar = match next {
                        Walked::Known(ty) => self.module.types[ty].scalar(),
                        Walked::Lanes(_, scalar) => Some(scalar),
                    };
                    let scalar = scalar.ok_or_else(|| self.error("a vector access to an array of structs"))?;
                    let index = self.expression(frame, *index, None, out)?.registers[0];
                    let bound = if place.guarded { Bound::Count(length / lanes) } else { Bound::None };
                    address.terms.push(Term { index, upper: None, stride: lanes * scalar_bytes(scalar), bound });
                    Walked::Lanes(lanes, scalar)
                }
            };
        }
        Ok((address, ty))
    }
}
