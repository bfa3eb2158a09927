//! Expressions and places of the IR as Rust expressions over raw pointers.
//!
//! Every expression comes out as a value of the type that [`types::rust`] gives, evaluated as often as it is written, which is once.
//! Guards are printed exactly where a place has one: a read past the end gives zero.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write;

use super::module::Names;
use super::{SUBGROUP_SIZE, types};
use crate::artefact::{Access, ParamRole};
use crate::emit::EmitError;
use crate::ir::{
    BinaryOperator, BindingKind, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Literal,
    LogicalOperator, MathFunction, Module, Place, Projection, Root, Scalar, Type, UnaryOperator,
};
use crate::lower::Lowered;
use crate::target::Target;

/// A Rust expression; `atom` if a method call or operator can follow it without parentheses.
#[derive(Clone, Debug)]
pub(super) struct Code {
    text: String,
    atom: bool,
}

impl Code {
    pub(super) fn atom(text: impl Into<String>) -> Self {
        Self { text: text.into(), atom: true }
    }

    pub(super) fn loose(text: impl Into<String>) -> Self {
        Self { text: text.into(), atom: false }
    }

    /// As it is, where nothing stands around it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// As an operand.
    pub(super) fn operand(&self) -> String {
        if self.atom { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// What is the same for all functions of a kernel.
pub(super) struct Kernel<'a> {
    pub(super) lowered: &'a Lowered,
    pub(super) module: &'a Module,
    pub(super) names: Names,
    /// Helper functions that were printed, by name.
    pub(super) helpers: RefCell<BTreeSet<&'static str>>,
}

impl Kernel<'_> {
    pub(super) fn helper(&self, name: &'static str) -> &'static str {
        self.helpers.borrow_mut().insert(name);
        name
    }

    pub(super) fn error(&self, message: impl Into<String>) -> EmitError {
        EmitError { kernel: self.module.name.clone(), target: Target::Cpu, message: message.into() }
    }

    /// How accesses to a binding are printed.
    pub(super) fn class(&self, binding: u32) -> Class {
        let index = binding as usize;
        let info = &self.lowered.info;
        let atomic = self.module.bindings[index].kind == BindingKind::Atomic;
        match info.access.get(index) {
            Some(Access::Read) if !atomic => Class::Shared,
            _ if !atomic && info.disjoint.get(index).copied().unwrap_or(false) => Class::Plain,
            _ => Class::Relaxed,
        }
    }

    /// The name of a field of the parameter block.
    pub(super) fn field(&self, role: ParamRole) -> Result<String, EmitError> {
        let fields = &self.lowered.params.fields;
        let position = fields.iter().position(|field| field.role == role);
        position
            .map(|position| format!("p.{}", self.names.params[position]))
            .ok_or_else(|| self.error(format!("the parameter block has no field for {role:?}")))
    }

    /// The number of elements that an index into a binding may reach.
    pub(super) fn reach(&self, binding: u32) -> Result<String, EmitError> {
        let length = self.field(ParamRole::Length(binding))?;
        let packed = self.module.bindings[binding as usize].packed;
        Ok(if packed > 1 { format!("{length}.div_ceil({packed}u32)") } else { length })
    }
}

/// How accesses to a binding are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Read only: a slice, so that loops know that writes elsewhere do not change it.
    Shared,
    /// A pointer that is read and written plainly: workgroups do not touch each other's elements.
    Plain,
    /// A pointer whose scalars are read and written by relaxed atomics.
    Relaxed,
}

/// Somewhere, ready to be read or written.
pub(super) struct Address<'k> {
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
struct Index {
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
pub(super) enum Memory {
    Local,
    Pointer,
    Relaxed,
}

/// The type of a place: one of the module's, or a vector that a projection makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceType {
    Known(Handle<Type>),
    Vector(u8, Scalar),
    Lane(Scalar),
}

/// A function while it is printed.
pub(super) struct Scope<'a> {
    pub(super) kernel: &'a Kernel<'a>,
    pub(super) function: &'a Function,
    /// The name of each local.
    pub(super) locals: Vec<String>,
    /// The name of each argument.
    pub(super) arguments: Vec<String>,
    /// The largest value of each local, where it is known.
    pub(super) ranges: Vec<Option<u64>>,
}

type Printed = Result<Code, EmitError>;

impl Scope<'_> {
    fn module(&self) -> &Module {
        self.kernel.module
    }

    pub(super) fn expression(&self, handle: Handle<Expression>) -> Printed {
        let expression = &self.function.expressions[handle];
        let module = self.module();
        let ty = &module.types[expression.ty];
        Ok(match &expression.kind {
            ExpressionKind::Literal(value) => literal(*value),
            ExpressionKind::GenericConstant(_) | ExpressionKind::TargetHas(_) => {
                return Err(self.kernel.error("a generic constant or target::has is left after lowering"));
            }
            ExpressionKind::Param(index) => Code::atom(self.kernel.field(ParamRole::User(*index))?),
            ExpressionKind::Length(binding) => Code::atom(self.kernel.field(ParamRole::Length(*binding))?),
            ExpressionKind::ViewExtent { binding, axis } => {
                Code::atom(format!("{}[{axis}]", self.kernel.field(ParamRole::Extents(*binding))?))
            }
            ExpressionKind::ViewStride { binding, axis } => {
                Code::atom(format!("{}[{axis}]", self.kernel.field(ParamRole::Strides(*binding))?))
            }
            ExpressionKind::Builtin(which) => builtin(*which),
            ExpressionKind::Argument(index) => Code::atom(self.arguments[*index as usize].clone()),
            ExpressionKind::Local(local) => Code::atom(self.locals[local.index()].clone()),
            ExpressionKind::Load(place) => self.load(place, expression.ty)?,
            ExpressionKind::Member { base, index } => {
                let value = self.expression(*base)?.operand();
                match &module.types[self.function.expressions[*base].ty] {
                    Type::Struct(_) => Code::atom(format!("{value}.f{index}")),
                    _ => Code::atom(format!("{value}[{index}]")),
                }
            }
            ExpressionKind::Element { base, index } => {
                let length = self.length_of(self.function.expressions[*base].ty)?;
                Code::loose(format!(
                    "{{ let v = {}; let j = {}; if j < {length}u32 {{ v[j as usize] }} else {{ {} }} }}",
                    self.expression(*base)?.text(),
                    self.expression(*index)?.text(),
                    types::zero(module, expression.ty)
                ))
            }
            ExpressionKind::Compose(parts) => {
                let parts = parts.iter().map(|part| self.expression(*part)).collect::<Result<Vec<_>, _>>()?;
                match ty {
                    Type::Struct(handle) => {
                        let fields: Vec<String> =
                            parts.iter().enumerate().map(|(i, part)| format!("f{i}: {}", part.text())).collect();
                        // In parentheses, since a struct literal may not stand in a condition.
                        Code::atom(format!("(Struct{} {{ {} }})", handle.index(), fields.join(", ")))
                    }
                    _ => Code::atom(format!("[{}]", parts.iter().map(Code::text).collect::<Vec<_>>().join(", "))),
                }
            }
            ExpressionKind::Splat(value) => {
                Code::atom(format!("[{}; {}]", self.expression(*value)?.text(), self.length_of(expression.ty)?))
            }
            ExpressionKind::Swizzle { base, lanes } => {
                let parts: Vec<String> = lanes.iter().map(|lane| format!("v[{lane}]")).collect();
                Code::loose(format!("{{ let v = {}; [{}] }}", self.expression(*base)?.text(), parts.join(", ")))
            }
            ExpressionKind::Unary { operator, value } => {
                let scalar = self.scalar_of(*value)?;
                self.lanewise(expression, &[*value], &|_, operands| unary(*operator, scalar, &operands[0]))?
            }
            ExpressionKind::Binary { operator, left, right } => {
                let scalar = self.scalar_of(*left)?;
                let divisor = match &self.function.expressions[*right].kind {
                    ExpressionKind::Literal(value) => Some(*value),
                    _ => None,
                };
                self.lanewise(expression, &[*left, *right], &|kernel, operands| {
                    binary(kernel, *operator, scalar, &operands[0], &operands[1], divisor)
                })?
            }
            ExpressionKind::Logical { operator, left, right } => {
                let sign = match operator {
                    LogicalOperator::And => "&&",
                    LogicalOperator::Or => "||",
                };
                let (left, right) = (self.expression(*left)?.operand(), self.expression(*right)?.operand());
                Code::loose(format!("{left} {sign} {right}"))
            }
            ExpressionKind::Math { function: MathFunction::Dot, arguments } => {
                let lanes = self.length_of(self.function.expressions[arguments[0]].ty)?;
                let terms: Vec<String> = (0..lanes).map(|i| format!("a[{i}] * b[{i}]")).collect();
                Code::loose(format!(
                    "{{ let (a, b) = ({}, {}); {} }}",
                    self.expression(arguments[0])?.text(),
                    self.expression(arguments[1])?.text(),
                    terms.join(" + ")
                ))
            }
            ExpressionKind::Math { function, arguments } => {
                let scalar = self.scalar_of(arguments[0])?;
                self.lanewise(expression, arguments, &|kernel, operands| math(kernel, *function, scalar, operands))?
            }
            ExpressionKind::Select { condition, accept, reject } => {
                let scalar_condition =
                    matches!(module.types[self.function.expressions[*condition].ty], Type::Scalar(_));
                let print = |operands: &[Code]| {
                    Code::loose(format!(
                        "if {} {{ {} }} else {{ {} }}",
                        operands[0].operand(),
                        operands[1].text(),
                        operands[2].text()
                    ))
                };
                if scalar_condition {
                    print(&[self.expression(*condition)?, self.expression(*accept)?, self.expression(*reject)?])
                } else {
                    self.lanewise(expression, &[*condition, *accept, *reject], &|_, operands| Ok(print(operands)))?
                }
            }
            ExpressionKind::Convert(value) => {
                let from = self.scalar_of(*value)?;
                let to = self.scalar_of(handle)?;
                self.lanewise(expression, &[*value], &|kernel, operands| Ok(convert(kernel, from, to, &operands[0])))?
            }
            ExpressionKind::Bitcast(value) => self.bitcast(expression, *value)?,
            ExpressionKind::Call { function, arguments } => self.call(*function, arguments)?,
        })
    }

    pub(super) fn call(&self, function: Handle<Function>, arguments: &[CallArgument]) -> Printed {
        let callee = &self.kernel.names.functions[function.index()];
        let mut values = Vec::new();
        if callee.context {
            values.push(self.kernel.names.context());
        }
        for argument in arguments {
            values.push(match argument {
                CallArgument::Value(value) => self.expression(*value)?.text,
                CallArgument::Reference(Root::Local(local)) => format!("&mut {}", self.locals[local.index()]),
                CallArgument::Reference(Root::Argument(index)) => {
                    format!("&mut *{}", self.arguments[*index as usize])
                }
                CallArgument::Reference(Root::Binding(_) | Root::Workgroup(_)) => {
                    return Err(self.kernel.error("a buffer is passed by reference"));
                }
            });
        }
        Ok(Code::atom(format!("{}::<FMA>({})", callee.name, values.join(", "))))
    }

    /// Prints an operation on each lane of its operands, or once if they are scalars.
    fn lanewise(
        &self,
        expression: &Expression,
        operands: &[Handle<Expression>],
        print: &dyn Fn(&Kernel<'_>, &[Code]) -> Printed,
    ) -> Printed {
        let values = operands.iter().map(|operand| self.expression(*operand)).collect::<Result<Vec<_>, _>>()?;
        let Type::Vector { lanes, .. } = self.module().types[expression.ty] else {
            return print(self.kernel, &values);
        };
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let names = NAMES.get(..operands.len()).unwrap_or(&NAMES);
        let mut parts = Vec::new();
        for lane in 0..lanes {
            let mut of_lane = Vec::new();
            for (name, operand) in names.iter().zip(operands) {
                let vector = matches!(self.module().types[self.function.expressions[*operand].ty], Type::Vector { .. });
                of_lane.push(Code::atom(if vector { format!("{name}[{lane}]") } else { (*name).to_owned() }));
            }
            parts.push(print(self.kernel, &of_lane)?.text);
        }
        let bound = if let [value] = values.as_slice() {
            format!("let a = {};", value.text())
        } else {
            let texts: Vec<&str> = values.iter().map(Code::text).collect();
            format!("let ({}) = ({});", names.join(", "), texts.join(", "))
        };
        Ok(Code::loose(format!("{{ {bound} [{}] }}", parts.join(", "))))
    }

    fn bitcast(&self, expression: &Expression, value: Handle<Expression>) -> Printed {
        let module = self.module();
        let (from, to) = (&module.types[self.function.expressions[value].ty], &module.types[expression.ty]);
        let pair = |ty: &Type| matches!(ty, Type::Vector { lanes: 2, scalar: Scalar::F16 });
        let code = self.expression(value)?;
        Ok(match (from, to) {
            (from, to) if pair(from) && !pair(to) => {
                let bits =
                    Code::loose(format!("{{ let v = {}; u32::from(v[0]) | (u32::from(v[1]) << 16) }}", code.text()));
                bits_to(&bits, to.scalar().unwrap_or(Scalar::U32))
            }
            (from, to) if pair(to) && !pair(from) => Code::loose(format!(
                "{{ let v = {}; [v as u16, (v >> 16) as u16] }}",
                to_bits(&code, from.scalar().unwrap_or(Scalar::U32)).text()
            )),
            (from, to) => {
                let from = from.scalar().unwrap_or(Scalar::U32);
                let to = to.scalar().unwrap_or(Scalar::U32);
                self.lanewise(expression, &[value], &|_, operands| Ok(bits_to(&to_bits(&operands[0], from), to)))?
            }
        })
    }

    /// The scalar of a value; enums are `u32`.
    fn scalar_of(&self, value: Handle<Expression>) -> Result<Scalar, EmitError> {
        match &self.module().types[self.function.expressions[value].ty] {
            Type::Scalar(scalar) | Type::Vector { scalar, .. } => Ok(*scalar),
            Type::Enum(_) => Ok(Scalar::U32),
            Type::Array { .. } | Type::Struct(_) => {
                Err(self.kernel.error("an operation on an array or struct as a whole"))
            }
        }
    }

    fn length_of(&self, ty: Handle<Type>) -> Result<u32, EmitError> {
        match &self.module().types[ty] {
            Type::Vector { lanes, .. } => Ok(u32::from(*lanes)),
            Type::Array { length, .. } => {
                length.literal().ok_or_else(|| self.kernel.error("an array whose length is not known"))
            }
            Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) => {
                Err(self.kernel.error("an index into something that has no elements"))
            }
        }
    }

    /// Finds out where a place is.
    pub(super) fn target(&self, place: &Place) -> Result<Address<'_>, EmitError> {
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
                        let length = module.workgroup[variable].length.literal();
                        let length =
                            length.ok_or_else(|| self.kernel.error("workgroup memory whose length is not known"))?;
                        (
                            self.kernel.names.workgroup[variable.index()].clone(),
                            module.workgroup[variable].element,
                            format!("{length}u32"),
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
                        Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) => {
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

    pub(super) fn type_name(&self, ty: PlaceType) -> String {
        match ty {
            PlaceType::Known(ty) => types::rust(self.module(), ty),
            PlaceType::Vector(lanes, scalar) => format!("[{}; {lanes}]", types::scalar(scalar)),
            PlaceType::Lane(scalar) => types::scalar(scalar).to_owned(),
        }
    }

    fn load(&self, place: &Place, ty: Handle<Type>) -> Printed {
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
    pub(super) fn store(&self, place: &Place, value: &Code) -> Result<String, EmitError> {
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
    pub(super) fn with_pointer(
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

    fn scalars(&self, ty: PlaceType) -> Result<(u32, Option<Scalar>), EmitError> {
        match ty {
            PlaceType::Lane(scalar) => Ok((1, Some(scalar))),
            PlaceType::Vector(lanes, scalar) => Ok((u32::from(lanes), Some(scalar))),
            PlaceType::Known(ty) => match &self.module().types[ty] {
                Type::Scalar(scalar) => Ok((1, Some(*scalar))),
                Type::Vector { lanes, scalar } => Ok((u32::from(*lanes), Some(*scalar))),
                Type::Enum(_) => Ok((1, Some(Scalar::U32))),
                Type::Array { .. } | Type::Struct(_) => Ok((0, None)),
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
            if scalar == Scalar::F16 {
                format!("{}({at})", self.kernel.helper("read_half"))
            } else {
                bits_to(&Code::atom(format!("{}({at}.cast())", self.kernel.helper("read_word"))), scalar).text
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
            if scalar == Scalar::F16 {
                format!("{}({at}, {part});", self.kernel.helper("write_half"))
            } else {
                let bits = to_bits(&Code::atom(part), scalar);
                format!("{}({at}.cast(), {});", self.kernel.helper("write_word"), bits.text())
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

/// A constant.
pub(super) fn literal(value: Literal) -> Code {
    match value {
        Literal::Bool(value) => Code::atom(value.to_string()),
        Literal::I32(value) if value < 0 => Code::loose(format!("{value}i32")),
        Literal::I32(value) => Code::atom(format!("{value}i32")),
        Literal::U32(value) | Literal::Index(value) => Code::atom(format!("{value}u32")),
        Literal::F16(bits) => Code::atom(format!("{bits}u16")),
        Literal::F32(value) => float(value),
        Literal::Generic { value, .. } => float(value as f32),
    }
}

fn float(value: f32) -> Code {
    if value.is_finite() {
        let text = format!("{value:?}f32");
        if value.is_sign_negative() { Code::loose(text) } else { Code::atom(text) }
    } else {
        Code::atom(format!("f32::from_bits({:#x}u32)", value.to_bits()))
    }
}

fn builtin(which: Builtin) -> Code {
    match which {
        Builtin::GlobalIndex => Code::atom("global"),
        Builtin::LocalIndex => Code::atom("lane"),
        Builtin::GroupIndex => Code::atom("group"),
        Builtin::GroupCount => Code::atom("group_count"),
        Builtin::GlobalId => Code::atom("global_id"),
        Builtin::LocalId => Code::atom("local_id"),
        Builtin::GroupId => Code::atom("group_id"),
        Builtin::GroupCounts => Code::atom("groups"),
        Builtin::SubgroupSize => Code::atom(format!("{SUBGROUP_SIZE}u32")),
        Builtin::SubgroupLane => Code::loose(format!("lane % {SUBGROUP_SIZE}u32")),
        Builtin::SubgroupIndex => Code::loose(format!("lane / {SUBGROUP_SIZE}u32")),
    }
}

fn unary(operator: UnaryOperator, scalar: Scalar, value: &Code) -> Printed {
    Ok(match (operator, scalar) {
        (UnaryOperator::Negate, Scalar::F32) => Code::loose(format!("-{}", value.operand())),
        (UnaryOperator::Negate, _) => Code::atom(format!("{}.wrapping_neg()", value.operand())),
        (UnaryOperator::Not, _) => Code::loose(format!("!{}", value.operand())),
    })
}

fn binary(
    kernel: &Kernel<'_>,
    operator: BinaryOperator,
    scalar: Scalar,
    left: &Code,
    right: &Code,
    divisor: Option<Literal>,
) -> Printed {
    let (l, r) = (left.operand(), right.operand());
    let plain = |sign: &str| Code::loose(format!("{l} {sign} {r}"));
    let float = scalar == Scalar::F32;
    // A divisor of 0 or -1 needs care; any other literal does not.
    let careless = divisor.is_some_and(|d| d.bits() != 0 && d != Literal::I32(-1));
    Ok(match operator {
        BinaryOperator::Add if float => plain("+"),
        BinaryOperator::Subtract if float => plain("-"),
        BinaryOperator::Multiply if float => plain("*"),
        BinaryOperator::Divide if float || careless => plain("/"),
        BinaryOperator::Remainder if float || careless => plain("%"),
        BinaryOperator::Add => Code::atom(format!("{l}.wrapping_add({})", right.text())),
        BinaryOperator::Subtract => Code::atom(format!("{l}.wrapping_sub({})", right.text())),
        BinaryOperator::Multiply => Code::atom(format!("{l}.wrapping_mul({})", right.text())),
        BinaryOperator::Divide | BinaryOperator::Remainder => {
            let name = match (operator, scalar) {
                (BinaryOperator::Divide, Scalar::I32) => "divide_i32",
                (BinaryOperator::Divide, _) => "divide_u32",
                (_, Scalar::I32) => "remainder_i32",
                _ => "remainder_u32",
            };
            Code::atom(format!("{}({}, {})", kernel.helper(name), left.text(), right.text()))
        }
        BinaryOperator::And => plain("&"),
        BinaryOperator::Or => plain("|"),
        BinaryOperator::Xor => plain("^"),
        BinaryOperator::ShiftLeft => Code::atom(format!("{l}.wrapping_shl({})", right.text())),
        BinaryOperator::ShiftRight => Code::atom(format!("{l}.wrapping_shr({})", right.text())),
        BinaryOperator::Equal => plain("=="),
        BinaryOperator::NotEqual => plain("!="),
        // `a as u32 < b` would be read as the start of generics.
        BinaryOperator::Less => plain("<"),
        BinaryOperator::LessEqual => plain("<="),
        BinaryOperator::Greater => plain(">"),
        BinaryOperator::GreaterEqual => plain(">="),
    })
}

fn math(kernel: &Kernel<'_>, function: MathFunction, scalar: Scalar, operands: &[Code]) -> Printed {
    let x = operands[0].operand();
    let call = |name: &str| {
        let rest: Vec<&str> = operands.iter().skip(1).map(Code::text).collect();
        Code::atom(format!("{x}.{name}({})", rest.join(", ")))
    };
    Ok(match function {
        MathFunction::Abs if scalar == Scalar::I32 => call("wrapping_abs"),
        MathFunction::Abs if scalar == Scalar::F32 => call("abs"),
        MathFunction::Abs => operands[0].clone(),
        MathFunction::Min => call("min"),
        MathFunction::Max => call("max"),
        MathFunction::Clamp => Code::atom(format!("{x}.max({}).min({})", operands[1].text(), operands[2].text())),
        MathFunction::Signum => call("signum"),
        MathFunction::Floor => call("floor"),
        MathFunction::Ceil => call("ceil"),
        MathFunction::RoundTiesEven => call("round_ties_even"),
        MathFunction::Trunc => call("trunc"),
        MathFunction::Sqrt => call("sqrt"),
        MathFunction::InverseSqrt => Code::loose(format!("1f32 / {x}.sqrt()")),
        MathFunction::Exp => call("exp"),
        MathFunction::Exp2 => call("exp2"),
        MathFunction::Ln => call("ln"),
        MathFunction::Log2 => call("log2"),
        MathFunction::Powf => call("powf"),
        MathFunction::Sin => call("sin"),
        MathFunction::Cos => call("cos"),
        MathFunction::Tan => call("tan"),
        MathFunction::Tanh => call("tanh"),
        MathFunction::Atan => call("atan"),
        MathFunction::Atan2 => call("atan2"),
        MathFunction::Erf => {
            return Err(kernel.error("`erf` is left after lowering; Rust has no such function"));
        }
        MathFunction::MulAdd => {
            let texts: Vec<&str> = operands.iter().map(Code::text).collect();
            Code::atom(format!("{}::<FMA>({})", kernel.helper("mul_add"), texts.join(", ")))
        }
        MathFunction::Dot => return Err(kernel.error("`dot` of scalars")),
        MathFunction::IsNan => call("is_nan"),
        MathFunction::IsInfinite => call("is_infinite"),
        MathFunction::CountOnes => call("count_ones"),
        MathFunction::LeadingZeros => call("leading_zeros"),
        MathFunction::TrailingZeros => call("trailing_zeros"),
        MathFunction::UnpackHalf => Code::atom(format!("{}({x} as u16)", kernel.helper("half_to_f32"))),
        MathFunction::PackHalf => {
            Code::loose(format!("{}({}) as u32", kernel.helper("f32_to_half"), operands[0].text()))
        }
    })
}

fn convert(kernel: &Kernel<'_>, from: Scalar, to: Scalar, value: &Code) -> Code {
    let x = value.operand();
    let as_type = |ty: &str| Code::loose(format!("{x} as {ty}"));
    match (from, to) {
        (Scalar::Bool, Scalar::F32) => Code::loose(format!("{x} as u32 as f32")),
        (Scalar::F16, Scalar::F16) | (Scalar::Bool, Scalar::Bool) => value.clone(),
        (Scalar::F16, Scalar::F32) => Code::atom(format!("{}({})", kernel.helper("half_to_f32"), value.text())),
        (Scalar::F32, Scalar::F16) => Code::atom(format!("{}({})", kernel.helper("f32_to_half"), value.text())),
        (Scalar::F16, to) => {
            Code::loose(format!("{}({}) as {}", kernel.helper("half_to_f32"), value.text(), types::scalar(to)))
        }
        (_, Scalar::F16) => Code::atom(format!("{}({x} as f32)", kernel.helper("f32_to_half"))),
        (_, Scalar::Bool) => Code::loose(format!("{x} != {}", types::zero_scalar(from))),
        (_, to) => as_type(types::scalar(to)),
    }
}

/// A scalar's bits as a `u32`.
pub(super) fn to_bits(value: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 => Code::atom(format!("{}.to_bits()", value.operand())),
        Scalar::I32 | Scalar::Bool | Scalar::F16 => Code::loose(format!("{} as u32", value.operand())),
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => value.clone(),
    }
}

/// The scalar of those bits.
pub(super) fn bits_to(bits: &Code, scalar: Scalar) -> Code {
    match scalar {
        Scalar::F32 => Code::atom(format!("f32::from_bits({})", bits.text())),
        Scalar::I32 => Code::loose(format!("{} as i32", bits.operand())),
        Scalar::F16 => Code::loose(format!("{} as u16", bits.operand())),
        Scalar::Bool => Code::loose(format!("{} != 0", bits.operand())),
        Scalar::U32 | Scalar::Index | Scalar::Generic(_) => bits.clone(),
    }
}
