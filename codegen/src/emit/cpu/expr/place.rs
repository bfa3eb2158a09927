//! Places as addresses: where an access goes, what guards it, and whether it is plain or a relaxed atomic.

use std::fmt::Write;

use super::operators::{bits_to, to_bits};
use super::{Code, Printed, Scope};
use crate::emit::EmitError;
use crate::emit::cpu::types;
use crate::ir::{Expression, ExpressionKind, Handle, Place, Projection, Root, Scalar, Type};

/// How accesses to a binding are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emit::cpu) enum Class {
    /// Read only: a slice, so that loops know that writes elsewhere do not change it.
    Shared,
    /// A pointer that is read and written plainly: workgroups do not touch each other's elements.
    Plain,
    /// A pointer whose scalars are read and written by relaxed atomics.
    Relaxed,
}

/// Somewhere, ready to be read or written.
pub(in crate::emit::cpu) struct Address<'k> {
    /// Statements that compute indices.
    prelude: String,
    /// Conditions under which the place exists.
    guards: Vec<String>,
    /// A pointer to it, or for locals a Rust place.
    pub(super) place: String,
    pub(super) memory: Memory,
    pub(super) ty: PlaceType,
    kernel: std::marker::PhantomData<&'k ()>,
}

/// An index on the way to a place.
pub(super) struct Index {
    text: String,
    /// Whether it is a `usize`, not a `u32`.
    wide: bool,
    /// The largest that it can be, if that is known.
    largest: Option<u64>,
}

impl Index {
    /// Adds the guard that keeps the index below `reach`, unless it is below by itself.
    fn guard(&self, reach: &str, guards: &mut Vec<String>) {
        let known = reach.strip_suffix("u32").and_then(|number| number.parse::<u64>().ok());
        if let (Some(largest), Some(known)) = (self.largest, known)
            && largest < known
        {
            return;
        }
        guards.push(if self.wide {
            format!("{} < ({reach}) as usize", self.text)
        } else {
            format!("{} < {reach}", self.text)
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emit::cpu) enum Memory {
    Local,
    Pointer,
    Relaxed,
}

/// The type of a place: one of the module's, or a vector that a projection makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::emit::cpu) enum PlaceType {
    Known(Handle<Type>),
    Vector(u8, Scalar),
    Lane(Scalar),
}

/// What makes a pointer to a narrow scalar one to its bits.
const fn cast(scalar: Scalar) -> &'static str {
    if scalar.is_signed() { ".cast()" } else { "" }
}

impl Scope<'_> {
    /// Finds out where a place is.
    pub(in crate::emit::cpu) fn target(&self, place: &Place) -> Result<Address<'_>, EmitError> {
        let module = self.module();
        let mut found = Address {
            prelude: String::new(),
            guards: Vec::new(),
            place: String::new(),
            memory: Memory::Pointer,
            ty: PlaceType::Lane(Scalar::U32),
            kernel: std::marker::PhantomData,
        };
        let mut path = place.path.iter();
        let mut count = 0;
        // An index is a `usize` if it is computed without wrapping, else a `u32`; either may be cast to `usize`.
        let mut index_of = |found: &mut Address<'_>, index: Handle<Expression>| -> Result<Index, EmitError> {
            let largest = self.largest(index);
            let code = match self.wide(index) {
                Some(wide) => Code::atom(wide),
                None => self.expression(index)?,
            };
            let simple = matches!(
                self.function.expressions[index].kind,
                ExpressionKind::Literal(_) | ExpressionKind::Local(_) | ExpressionKind::Argument(_)
            );
            if simple {
                return Ok(Index { text: self.expression(index)?.text, wide: false, largest });
            }
            let name = format!("i{count}");
            count += 1;
            let _ = write!(found.prelude, "let {name} = {}; ", code.text());
            Ok(Index { text: name, wide: largest.is_some(), largest })
        };
        match place.root {
            Root::Local(local) => {
                found.memory = Memory::Local;
                found.place = self.locals[local.index()].clone();
                found.ty = PlaceType::Known(self.function.locals[local].ty);
            }
            Root::Argument(index) => {
                found.memory = Memory::Local;
                found.place = format!("(*{})", self.arguments[index as usize]);
                found.ty = PlaceType::Known(self.function.arguments[index as usize].ty);
            }
            Root::Binding(_) | Root::Workgroup(_) => {
                let (pointer, element, reach) = match place.root {
                    Root::Binding(binding) => {
                        let name = &self.kernel.names.bindings[binding as usize];
                        let class = self.kernel.class(binding);
                        if class == Class::Relaxed {
                            found.memory = Memory::Relaxed;
                        }
                        let pointer = if class == Class::Shared { format!("{name}.as_ptr()") } else { name.clone() };
                        (pointer, module.bindings[binding as usize].element, self.kernel.reach(binding)?)
                    }
                    Root::Workgroup(variable) => {
                        let length = self.kernel.length(&module.workgroup[variable])?;
                        (
                            self.kernel.names.workgroup[variable.index()].clone(),
                            module.workgroup[variable].element,
                            length,
                        )
                    }
                    Root::Local(_) | Root::Argument(_) => return Err(self.kernel.error("an unexpected place")),
                };
                match path.next() {
                    Some(Projection::Index(index)) => {
                        let index = index_of(&mut found, *index)?;
                        if place.guarded {
                            index.guard(&reach, &mut found.guards);
                        }
                        found.place = format!("{pointer}.add({} as usize)", index.text);
                        found.ty = PlaceType::Known(element);
                    }
                    Some(Projection::Vector { index, lanes }) => {
                        let index = index_of(&mut found, *index)?;
                        if place.guarded {
                            index.guard(&format!("{reach} / {lanes}"), &mut found.guards);
                        }
                        let scalar = module.types[element]
                            .scalar()
                            .ok_or_else(|| self.kernel.error("a vector access to a buffer of structs"))?;
                        found.place = format!(
                            "{pointer}.cast::<[{}; {lanes}]>().add({} as usize)",
                            types::scalar(scalar),
                            index.text
                        );
                        found.ty = PlaceType::Vector(*lanes, scalar);
                    }
                    Some(Projection::Member(_)) | None => {
                        return Err(self.kernel.error("an access to a buffer without an index"));
                    }
                }
            }
        }
        for projection in path {
            let known = match found.ty {
                PlaceType::Known(ty) => module.types[ty].clone(),
                PlaceType::Vector(lanes, scalar) => Type::vector(lanes, scalar),
                PlaceType::Lane(_) => return Err(self.kernel.error("a path that goes into a scalar")),
            };
            match (projection, known) {
                (Projection::Member(member), Type::Struct(handle)) => {
                    found.place = match found.memory {
                        Memory::Local => format!("{}.f{member}", found.place),
                        Memory::Pointer | Memory::Relaxed => {
                            // A projection of a raw pointer makes no reference.
                            format!("(&raw const (*{}).f{member}).cast_mut()", found.place)
                        }
                    };
                    let field = module.structs[handle].fields.get(*member as usize);
                    let field = field.ok_or_else(|| self.kernel.error("a struct has no such field"))?;
                    found.ty = PlaceType::Known(field.1);
                }
                (Projection::Member(_) | Projection::Index(_), known @ (Type::Vector { .. } | Type::Array { .. })) => {
                    let (length, ty) = match known {
                        Type::Vector { lanes, scalar } => (u32::from(lanes), PlaceType::Lane(scalar)),
                        Type::Array { element, length } => (length.literal().unwrap_or(0), PlaceType::Known(element)),
                        Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) | Type::Matrix(_) => {
                            return Err(self.kernel.error("an unexpected path"));
                        }
                    };
                    let index = match projection {
                        Projection::Index(index) => {
                            let index = index_of(&mut found, *index)?;
                            if place.guarded {
                                index.guard(&format!("{length}u32"), &mut found.guards);
                            }
                            format!("{} as usize", index.text)
                        }
                        Projection::Member(member) => member.to_string(),
                        Projection::Vector { .. } => return Err(self.kernel.error("an unexpected path")),
                    };
                    found.place = match found.memory {
                        Memory::Local => format!("{}[{index}]", found.place),
                        Memory::Pointer | Memory::Relaxed => {
                            let name = self.type_name(ty);
                            format!("{}.cast::<{name}>().add({index})", found.place)
                        }
                    };
                    found.ty = ty;
                }
                (Projection::Vector { index, lanes }, Type::Array { element, length }) => {
                    let scalar = module.types[element]
                        .scalar()
                        .ok_or_else(|| self.kernel.error("a vector access to an array of structs"))?;
                    let index = index_of(&mut found, *index)?;
                    if place.guarded {
                        let groups = length.literal().unwrap_or(0) / u32::from(*lanes);
                        index.guard(&format!("{groups}u32"), &mut found.guards);
                    }
                    let index = index.text;
                    let vector = format!("[{}; {lanes}]", types::scalar(scalar));
                    found.place = match found.memory {
                        Memory::Local => {
                            format!("(*(&raw mut {}).cast::<{vector}>().add({index} as usize))", found.place)
                        }
                        Memory::Pointer | Memory::Relaxed => {
                            format!("{}.cast::<{vector}>().add({index} as usize)", found.place)
                        }
                    };
                    found.ty = PlaceType::Vector(*lanes, scalar);
                }
                _ => return Err(self.kernel.error("a path that does not fit its type")),
            }
        }
        Ok(found)
    }

    pub(in crate::emit::cpu) fn type_name(&self, ty: PlaceType) -> String {
        match ty {
            PlaceType::Known(ty) => types::rust(self.module(), ty),
            PlaceType::Vector(lanes, scalar) => format!("[{}; {lanes}]", types::scalar(scalar)),
            PlaceType::Lane(scalar) => types::scalar(scalar).to_owned(),
        }
    }

    pub(super) fn load(&self, place: &Place, ty: Handle<Type>) -> Printed {
        let found = self.target(place)?;
        let read = match found.memory {
            Memory::Local => found.place.clone(),
            Memory::Pointer => format!("{}.read()", found.place),
            Memory::Relaxed => self.relaxed_read(&found.place, found.ty)?,
        };
        Ok(if !found.guards.is_empty() {
            Code::loose(format!(
                "{{ {}if {} {{ {read} }} else {{ {} }} }}",
                found.prelude,
                found.guards.join(" && "),
                types::zero(self.module(), ty)
            ))
        } else if !found.prelude.is_empty() {
            Code::loose(format!("{{ {}{read} }}", found.prelude))
        } else {
            Code::atom(read)
        })
    }

    /// The statement that writes `value` to a place.
    pub(in crate::emit::cpu) fn store(&self, place: &Place, value: &Code) -> Result<String, EmitError> {
        let found = self.target(place)?;
        let write = |value: &str| -> Result<String, EmitError> {
            Ok(match found.memory {
                Memory::Local => format!("{} = {value};", found.place),
                Memory::Pointer => format!("{}.write({value});", found.place),
                Memory::Relaxed => self.relaxed_write(&found.place, found.ty, value)?,
            })
        };
        Ok(if !found.guards.is_empty() {
            format!(
                "{{ {}let value = {}; if {} {{ {} }} }}",
                found.prelude,
                value.text(),
                found.guards.join(" && "),
                write("value")?
            )
        } else if !found.prelude.is_empty() {
            format!("{{ {}let value = {}; {} }}", found.prelude, value.text(), write("value")?)
        } else {
            write(value.text())?
        })
    }

    /// Wraps the code that uses a place's pointer: `use_it` gets the pointer, `otherwise` is the value past the end.
    pub(in crate::emit::cpu) fn with_pointer(
        &self,
        place: &Place,
        otherwise: &str,
        use_it: &dyn Fn(&str, Memory) -> String,
    ) -> Printed {
        let found = self.target(place)?;
        let used = use_it(&found.place, found.memory);
        Ok(if !found.guards.is_empty() {
            Code::loose(format!(
                "{{ {}if {} {{ {used} }} else {{ {otherwise} }} }}",
                found.prelude,
                found.guards.join(" && ")
            ))
        } else {
            Code::loose(format!("{{ {}{used} }}", found.prelude))
        })
    }

    pub(super) fn scalars(&self, ty: PlaceType) -> Result<(u32, Option<Scalar>), EmitError> {
        match ty {
            PlaceType::Lane(scalar) => Ok((1, Some(scalar))),
            PlaceType::Vector(lanes, scalar) => Ok((u32::from(lanes), Some(scalar))),
            PlaceType::Known(ty) => match &self.module().types[ty] {
                Type::Scalar(scalar) => Ok((1, Some(*scalar))),
                Type::Vector { lanes, scalar } => Ok((u32::from(*lanes), Some(*scalar))),
                Type::Enum(_) => Ok((1, Some(Scalar::U32))),
                Type::Array { .. } | Type::Struct(_) | Type::Matrix(_) => Ok((0, None)),
            },
        }
    }

    fn relaxed_read(&self, pointer: &str, ty: PlaceType) -> Result<String, EmitError> {
        let (count, scalar) = self.scalars(ty)?;
        let Some(scalar) = scalar else {
            // A struct is read word by word.
            let helper = self.kernel.helper("read_words");
            return Ok(format!("{helper}::<{}>({pointer})", self.type_name(ty)));
        };
        let vector = !matches!(ty, PlaceType::Lane(_)) && self.is_vector(ty);
        let read = |i: u32| {
            let at = if vector {
                format!("{pointer}.cast::<{}>().add({i})", types::scalar(scalar))
            } else {
                pointer.to_owned()
            };
            if scalar.is_narrow() {
                let name = if scalar.bits() == 8 { "read_byte" } else { "read_half" };
                let signed = if scalar.is_signed() { format!(" as {}", types::scalar(scalar)) } else { String::new() };
                format!("{}({at}{}){signed}", self.kernel.helper(name), cast(scalar))
            } else {
                let name = if scalar.is_wide() { "read_long" } else { "read_word" };
                bits_to(&Code::atom(format!("{}({at}.cast())", self.kernel.helper(name))), scalar).text
            }
        };
        Ok(if vector { format!("[{}]", (0..count).map(read).collect::<Vec<_>>().join(", ")) } else { read(0) })
    }

    fn relaxed_write(&self, pointer: &str, ty: PlaceType, value: &str) -> Result<String, EmitError> {
        let (count, scalar) = self.scalars(ty)?;
        let Some(scalar) = scalar else {
            let helper = self.kernel.helper("write_words");
            return Ok(format!("{helper}::<{}>({pointer}, {value});", self.type_name(ty)));
        };
        let vector = self.is_vector(ty);
        let write = |i: u32| {
            let (at, part) = if vector {
                (format!("{pointer}.cast::<{}>().add({i})", types::scalar(scalar)), format!("v[{i}]"))
            } else {
                (pointer.to_owned(), format!("({value})"))
            };
            if scalar.is_narrow() {
                let name = if scalar.bits() == 8 { "write_byte" } else { "write_half" };
                let unsigned = match scalar {
                    Scalar::I8 => " as u8",
                    Scalar::I16 => " as u16",
                    _ => "",
                };
                format!("{}({at}{}, {part}{unsigned});", self.kernel.helper(name), cast(scalar))
            } else {
                let bits = to_bits(&Code::atom(part), scalar);
                let name = if scalar.is_wide() { "write_long" } else { "write_word" };
                format!("{}({at}.cast(), {});", self.kernel.helper(name), bits.text())
            }
        };
        Ok(if vector {
            format!("{{ let v = {value}; {} }}", (0..count).map(write).collect::<String>())
        } else {
            write(0)
        })
    }

    fn is_vector(&self, ty: PlaceType) -> bool {
        match ty {
            PlaceType::Vector(..) => true,
            PlaceType::Lane(_) => false,
            PlaceType::Known(ty) => matches!(self.module().types[ty], Type::Vector { .. }),
        }
    }
}
