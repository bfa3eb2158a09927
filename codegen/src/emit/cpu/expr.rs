//! Expressions of the IR as Rust expressions over raw pointers; `place` has the places, `operators` what one lane computes.
//!
//! Every expression comes out as a value of the type that [`types::rust`] gives, evaluated as often as it is written, which is once.
//! Guards are printed exactly where a place has one: a read past the end gives zero.

mod operators;
mod place;

use std::cell::RefCell;
use std::collections::BTreeSet;

use self::operators::{binary, bits_to, builtin, convert, literal, math, to_bits, unary};
pub(super) use self::place::{Class, Memory};
use super::module::Names;
use super::types;
use crate::artefact::{Access, ParamRole};
use crate::emit::EmitError;
use crate::ir::{
    BindingKind, CallArgument, Expression, ExpressionKind, Function, Handle, LogicalOperator, MathFunction, Module,
    Root, Scalar, Size, Type, WorkgroupVariable,
};
use crate::layout;
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

    /// The length of workgroup memory.
    pub(super) fn length(&self, variable: &WorkgroupVariable) -> Result<String, EmitError> {
        let exact = variable.exact.as_ref().unwrap_or(&variable.length);
        self.size(exact)
    }

    fn size(&self, size: &Size) -> Result<String, EmitError> {
        Ok(match size {
            Size::Literal(value) => format!("{value}u32"),
            Size::Generic(_) => return Err(self.error("workgroup memory whose length is not known")),
            Size::Param(index) => format!("({} as u32)", self.field(layout::param_role(self.module, *index))?),
            Size::Binary(operator, left, right) => {
                format!("({} {} {})", self.size(left)?, operator.sign(), self.size(right)?)
            }
        })
    }

    /// The number of elements that an index into a binding may reach.
    pub(super) fn reach(&self, binding: u32) -> Result<String, EmitError> {
        let length = self.field(ParamRole::Length(binding))?;
        let packed = self.module.bindings[binding as usize].packed;
        Ok(if packed > 1 { format!("{length}.div_ceil({packed}u32)") } else { length })
    }
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
            ExpressionKind::GenericConstant(_) | ExpressionKind::TargetHas(_) | ExpressionKind::MatrixLength(_) => {
                return Err(self.kernel.error("a generic constant, target::has or a matrix is left after lowering"));
            }
            ExpressionKind::Param(index) => {
                Code::atom(self.kernel.field(layout::param_role(self.kernel.module, *index))?)
            }
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
            Type::Array { .. } | Type::Struct(_) | Type::Matrix(_) => {
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
            Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) | Type::Matrix(_) => {
                Err(self.kernel.error("an index into something that has no elements"))
            }
        }
    }
}
