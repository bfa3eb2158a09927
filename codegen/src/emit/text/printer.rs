//! What is known while a kernel is printed: names, surroundings, and the helper functions asked for so far.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use crate::artefact::{ParamField, ParamRole};
use crate::emit::EmitError;
use crate::emit::names::{Names, identifier};
use crate::emit::touched;
use crate::ir::{
    AtomicFunction, BinaryOperator, Expression, ExpressionKind, Function, Handle, Order, Precision, Root, Scalar, Size,
    Struct, Type, WorkgroupVariable,
};
use crate::lower::Lowered;

use super::usage::{self, Resources};
use super::{Code, Dialect, Position, apart, expr, infix};

type Result<T> = std::result::Result<T, EmitError>;

/// What accessors of a variable add to its name, beside the atomics' own; no local takes such a name.
const SUFFIXES: [&str; 6] = ["at", "set", "vec2", "vec3", "vec4", "splat"];

/// What an entry point may compute before the author's statements.
const ENTRY: [&str; 6] = ["group_index", "group_id", "group_counts", "group_count", "local_index", "global_index"];

/// Prints one kernel.
#[derive(Debug)]
pub struct Printer<'a, D> {
    /// The kernel.
    pub lowered: &'a Lowered,
    /// Its entry point: the kernel's own name, unless that has another meaning in the language.
    pub entry: String,
    /// Names of buffers.
    pub bindings: Vec<String>,
    /// Names of workgroup variables.
    pub workgroup: Vec<String>,
    /// Names of specialisation constants.
    pub constants: Vec<String>,
    /// Names of functions.
    pub functions: Vec<String>,
    /// Names of structs.
    pub structs: Vec<String>,
    /// Names of the fields of each.
    fields: Vec<Vec<String>>,
    /// Names of the parameter block's fields.
    params: Vec<String>,
    /// Surroundings of each function.
    pub resources: Vec<Resources>,
    /// Surroundings of the entry.
    pub entry_resources: Resources,
    /// Names of whole modules, to which helpers add theirs.
    names: Names,
    prelude: Vec<String>,
    helpers: Vec<String>,
    known: BTreeMap<String, String>,
    /// That of the function which is being printed.
    pub precision: Precision,
    /// Whether [`Dialect::given`] is asked: while the kernel itself is printed, if [`Dialect::hides_first_param`].
    pub(super) hides_first_param: bool,
    /// Whether a barrier comes behind an access to a buffer that the kernel writes, once that was asked.
    orders_buffers: OnceCell<bool>,
    dialect: PhantomData<D>,
}

/// A function that is being printed.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// It.
    pub function: &'a Function,
    /// Names of its locals.
    pub locals: Vec<String>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Names taken in it.
    pub names: Names,
    /// See [`apart::counters`].
    pub(super) counters: Vec<Option<u64>>,
    /// See [`expr::constants`].
    constants: Vec<bool>,
}

impl<'a> Scope<'a> {
    /// An expression of the function.
    pub fn expression(&self, handle: Handle<Expression>) -> &'a Expression {
        &self.function.expressions[handle]
    }

    /// The kind of an expression.
    pub fn kind(&self, handle: Handle<Expression>) -> &'a ExpressionKind {
        &self.function.expressions[handle].kind
    }

    /// Whether an expression is made of constants alone.
    pub(super) fn is_constant(&self, handle: Handle<Expression>) -> bool {
        self.constants[handle.index()]
    }
}

impl<'a, D: Dialect> Printer<'a, D> {
    /// A printer that has given names to everything that is global.
    pub fn new(lowered: &'a Lowered) -> Self {
        let module = &lowered.module;
        let (resources, entry_resources) = usage::of_module(lowered);
        let mut printer = Self {
            lowered,
            entry: String::new(),
            bindings: Vec::new(),
            workgroup: Vec::new(),
            constants: Vec::new(),
            functions: Vec::new(),
            structs: Vec::new(),
            fields: Vec::new(),
            params: Vec::new(),
            resources,
            entry_resources,
            names: Names::default(),
            prelude: Vec::new(),
            helpers: Vec::new(),
            known: BTreeMap::new(),
            precision: Precision::Usual,
            hides_first_param: false,
            orders_buffers: OnceCell::new(),
            dialect: PhantomData,
        };
        // The block of parameters, whose names no kernel may take either.
        printer.names.reserve("params");
        printer.names.reserve("Params");
        printer.entry = printer.names.claim(&module.name, |name| D::reserved(name, Position::Entry));
        let globals =
            |printer: &mut Self, names: Vec<&str>| names.into_iter().map(|name| printer.global(name)).collect();
        printer.bindings = globals(&mut printer, module.bindings.iter().map(|b| b.name.as_str()).collect());
        printer.workgroup = globals(&mut printer, module.workgroup.iter().map(|(_, w)| w.name.as_str()).collect());
        printer.constants =
            globals(&mut printer, module.constants().map(|(_, param, _)| param.name.as_str()).collect());
        printer.structs = globals(&mut printer, module.structs.iter().map(|(_, s)| s.name.as_str()).collect());
        printer.functions = globals(&mut printer, module.functions.iter().map(|(_, f)| f.name.as_str()).collect());
        let structs = printer.structs.iter().zip(module.structs.iter());
        let fields = structs.map(|(name, (_, s))| Self::fields(name, s.fields.iter().map(|(field, _)| field.as_str())));
        printer.fields = fields.collect();
        printer.params = Self::fields("Params", lowered.params.fields.iter().map(|field| &*field.name));
        printer
    }

    /// Whether barriers have buffers to order: one that the kernel writes was accessed before one of them.
    pub(in crate::emit) fn orders_buffers(&self) -> bool {
        *self.orders_buffers.get_or_init(|| touched::find(self.lowered).before_a_barrier)
    }

    /// An error about this kernel.
    pub fn error(&self, message: impl Into<String>) -> EmitError {
        EmitError { kernel: self.lowered.module.name.clone(), target: D::TARGET, message: message.into() }
    }

    fn global(&mut self, wanted: &str) -> String {
        self.names.claim(wanted, |name| D::reserved(name, Position::Global))
    }

    /// The names of a struct's fields. C++ keeps the struct's own for itself.
    fn fields<'n>(structure: &str, wanted: impl Iterator<Item = &'n str>) -> Vec<String> {
        let mut names = Names::default();
        names.reserve(structure);
        wanted.map(|name| names.claim(name, |name| D::reserved(name, Position::Field))).collect()
    }

    /// The type that a handle names.
    pub fn ty(&self, handle: Handle<Type>) -> &'a Type {
        &self.lowered.module.types[handle]
    }

    /// The type of an expression.
    pub fn type_of(&self, scope: &Scope<'a>, expression: Handle<Expression>) -> &'a Type {
        self.ty(scope.expression(expression).ty)
    }

    /// The name of a struct's field in the text.
    pub fn field_name(&self, handle: Handle<Struct>, field: u32) -> Result<String> {
        let name = self.fields.get(handle.index()).and_then(|names| names.get(field as usize));
        name.cloned().ok_or_else(|| {
            let structure = &self.lowered.module.structs[handle];
            self.error(format!("struct `{}` has no field {field}", structure.name))
        })
    }

    /// The name of a parameter in the text.
    pub fn param_name(&self, field: &ParamField) -> String {
        let mut fields = self.lowered.params.fields.iter().zip(&self.params);
        let known = fields.find(|(known, _)| known.role == field.role);
        known.map_or_else(|| identifier(&field.name), |(_, name)| name.clone())
    }

    /// The name of the block's next padding, of which there were so many; no parameter has it.
    pub fn padding_name(&self, before: &mut u32) -> String {
        loop {
            let name = format!("pad_{before}");
            *before += 1;
            if !self.params.contains(&name) {
                return name;
            }
        }
    }

    /// The field of the parameter block with that role.
    pub fn param_field(&self, role: ParamRole) -> Result<&'a ParamField> {
        match self.lowered.params.fields.iter().find(|field| field.role == role) {
            Some(field) => Ok(field),
            None => Err(self.error(format!("the parameter block has no {role:?}"))),
        }
    }

    /// A parameter of the block as it lies there: `params.name`.
    pub fn param_word(&self, role: ParamRole) -> Result<super::Code> {
        let field = self.param_field(role)?;
        Ok(super::Code::atom(format!("params.{}", self.param_name(field))))
    }

    /// The value of a parameter where an expression reads it.
    pub(super) fn param_value(&mut self, role: ParamRole) -> Result<Code> {
        let field = self.param_field(role)?;
        let value = self.param_word(role)?;
        Ok(self.hidden(field, value))
    }

    /// The value of a field of the parameter block, so that the language's compiler does not see that it is the first one, if it must not.
    pub(super) fn hidden(&mut self, field: &ParamField, value: Code) -> Code {
        if self.hides_first_param && field.offset == 0 { D::given(self, value) } else { value }
    }

    /// The scope of a function, with names for its arguments and locals.
    pub fn scope(&self, function: &'a Function, resources: &Resources) -> Scope<'a> {
        let mut names = self.names.clone();
        // A local may hide a buffer that its function does not touch.
        for (index, name) in self.bindings.iter().enumerate() {
            if !resources.bindings.contains(&(index as u32)) {
                names.release(name);
            }
        }
        for (index, name) in self.workgroup.iter().enumerate() {
            if !resources.workgroup.contains(&index) {
                names.release(name);
            }
        }
        names.release(&self.entry);
        for (_, name) in resources.builtins() {
            names.reserve(name);
        }
        if std::ptr::eq(function, &self.lowered.module.entry) {
            for name in ENTRY {
                names.reserve(name);
            }
        }
        let refused = |name: &str| D::reserved(name, Position::Local);
        // A number after it would not tell it from an accessor, which may be numbered too.
        let mut claim = |name: &str| {
            let name = identifier(name);
            match self.is_accessor_name(function, &name) || D::is_helper_name(&name) {
                true => names.claim(&format!("{name}_local"), refused),
                false => names.claim(&name, refused),
            }
        };
        let arguments = function.arguments.iter().map(|argument| claim(&argument.name)).collect();
        let locals = function.locals.iter().map(|(_, local)| claim(&local.name)).collect();
        let (counters, constants) = (apart::counters(function), expr::constants(function));
        Scope { function, locals, arguments, names, counters, constants }
    }

    /// Whether an accessor might be given that name, which is one of the text.
    fn is_accessor_name(&self, function: &Function, name: &str) -> bool {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
        // Few names do, and a function has many places.
        if !ends_as_accessor(name) {
            return false;
        }
        let places = function.locals.iter().filter(|(_, local)| local.mutable).map(|(_, local)| local.name.as_str());
        let fields = self.lowered.params.fields.iter().filter(|field| field.ty.array).map(|field| &*field.name);
        let arguments = function.arguments.iter().map(|argument| argument.name.as_str());
        let others = places.chain(fields).chain(arguments).map(identifier);
        let roots = self.bindings.iter().chain(&self.workgroup).cloned().chain(others);
        roots.map(|root| root + "_").any(|root| name.strip_prefix(root.as_str()).is_some_and(ends_as_accessor))
    }

    /// The name of a root variable.
    pub fn root_name(&self, scope: &Scope<'a>, root: Root) -> String {
        match root {
            Root::Binding(binding) => self.bindings[binding as usize].clone(),
            Root::Workgroup(variable) => self.workgroup[variable.index()].clone(),
            Root::Local(local) => scope.locals[local.index()].clone(),
            Root::Argument(argument) => scope.arguments[argument as usize].clone(),
        }
    }

    /// A helper function: `key` says what it does, `make` prints it under the name that it gets. It is made once.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn helper(
        &mut self,
        key: &str,
        wanted: &str,
        make: impl FnOnce(&mut Self, &str) -> Result<String>,
    ) -> Result<String> {
        if let Some(name) = self.known.get(key) {
            return Ok(name.clone());
        }
        let name = self.global(wanted);
        self.known.insert(key.to_owned(), name.clone());
        let text = make(self, &name)?;
        self.helpers.push(text);
        Ok(name)
    }

    /// A piece of text that stands before everything else; it depends on no type of the kernel, and its names are reserved words of
    /// the dialect. It is printed once.
    pub fn prelude(&mut self, key: &str, make: impl FnOnce() -> String) {
        if !self.known.contains_key(key) {
            self.known.insert(key.to_owned(), String::new());
            self.prelude.push(make());
        }
    }

    /// Whether a piece of the prelude was asked for.
    pub fn has_prelude(&self, key: &str) -> bool {
        self.known.contains_key(key)
    }

    /// The prelude and the helpers, each once, in an order in which each stands after what it uses.
    pub fn take_helpers(&mut self) -> (Vec<String>, Vec<String>) {
        (std::mem::take(&mut self.prelude), std::mem::take(&mut self.helpers))
    }

    /// The type of a binding's or workgroup variable's elements.
    pub fn element_type(&self, root: Root) -> Option<&'a Type> {
        match root {
            Root::Binding(binding) => Some(self.ty(self.lowered.module.bindings[binding as usize].element)),
            Root::Workgroup(variable) => Some(self.ty(self.lowered.module.workgroup[variable].element)),
            Root::Local(_) | Root::Argument(_) => None,
        }
    }

    /// Whether the elements of a root are declared as atomics.
    pub fn is_atomic(&self, root: Root) -> bool {
        match root {
            Root::Binding(binding) => self.lowered.info.access[binding as usize] == crate::artefact::Access::Atomic,
            Root::Workgroup(variable) => self.lowered.module.workgroup[variable].atomic,
            Root::Local(_) | Root::Argument(_) => false,
        }
    }

    /// The length of workgroup memory in whole groups of `lanes`, as text.
    ///
    /// # Errors
    /// It depends on what should be known.
    pub fn workgroup_length(&self, variable: Handle<WorkgroupVariable>, lanes: u32) -> Result<Code> {
        let variable = &self.lowered.module.workgroup[variable];
        let Some(exact) = &variable.exact else {
            return Ok(Code::atom(format!("{}u", self.size(&variable.length)? / lanes.max(1))));
        };
        let length = self.exact_size(exact)?;
        Ok(if lanes > 1 { infix(BinaryOperator::Divide, length, Code::atom(format!("{lanes}u"))) } else { length })
    }

    /// The same, a last group that is not whole included, if a specialisation constant decides it.
    ///
    /// # Errors
    /// As [`Printer::workgroup_length`].
    pub fn declared_length(&self, variable: Handle<WorkgroupVariable>, lanes: u32) -> Result<String> {
        let variable = &self.lowered.module.workgroup[variable];
        let Some(exact) = &variable.exact else {
            return Ok(self.size(&variable.length)?.div_ceil(lanes.max(1)).to_string());
        };
        let length = self.exact_size(exact)?;
        if lanes <= 1 {
            return Ok(length.text);
        }
        let rounded = infix(BinaryOperator::Add, length, Code::atom(format!("{}u", lanes - 1)));
        Ok(infix(BinaryOperator::Divide, rounded, Code::atom(format!("{lanes}u"))).text)
    }

    /// A size that may depend on specialisation constants.
    ///
    /// # Errors
    /// It depends on something else.
    pub fn exact_size(&self, size: &Size) -> Result<Code> {
        match size {
            Size::Literal(value) => Ok(Code::atom(format!("{value}u"))),
            Size::Generic(_) => Err(self.error("a size depends on a generic parameter")),
            Size::Param(param) => {
                let position = self.lowered.module.constants().position(|(index, ..)| index == *param);
                match position.and_then(|position| self.constants.get(position)) {
                    Some(name) => Ok(Code::atom(name.clone())),
                    None => Err(self.error("a size depends on a parameter")),
                }
            }
            Size::Binary(operator, left, right) => {
                Ok(infix(operator.binary(), self.exact_size(left)?, self.exact_size(right)?))
            }
        }
    }

    /// The number of a size that must be one by now.
    pub fn size(&self, size: &crate::ir::Size) -> Result<u32> {
        size.literal().ok_or_else(|| self.error("a size depends on a generic parameter"))
    }

    /// The number of parts of a vector or array type.
    pub fn parts(&self, ty: &Type) -> Result<u32> {
        match ty {
            Type::Vector { lanes, .. } => Ok(u32::from(*lanes)),
            Type::Array { length, .. } => self.size(length),
            Type::Matrix(matrix) => D::matrix_parts(self, matrix),
            Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) => Err(self.error("a value without parts is indexed")),
        }
    }

    /// The type of the parts of a vector or array type.
    pub fn part_type(&self, ty: &Type) -> Result<Type> {
        match ty {
            Type::Vector { scalar, .. } => Ok(Type::Scalar(*scalar)),
            Type::Array { element, .. } => Ok(self.ty(*element).clone()),
            Type::Matrix(matrix) => Ok(Type::Scalar(matrix.scalar)),
            Type::Scalar(_) | Type::Struct(_) | Type::Enum(_) => Err(self.error("a value without parts is indexed")),
        }
    }

    /// A type as a part of a helper's name: `f32`, `vec4_f32`, `array_8_f32`.
    pub fn type_tag(&self, ty: &Type) -> Result<String> {
        let scalar_tag = |scalar: &Scalar| match scalar {
            Scalar::Index => "u32",
            other => other.rust_name(),
        };
        Ok(match ty {
            Type::Scalar(scalar) => scalar_tag(scalar).to_owned(),
            Type::Vector { lanes, scalar } => format!("vec{lanes}_{}", scalar_tag(scalar)),
            Type::Array { element, length } => {
                format!("array_{}_{}", self.size(length)?, self.type_tag(self.ty(*element))?)
            }
            Type::Struct(handle) => self.structs[handle.index()].clone(),
            Type::Enum(_) => "u32".to_owned(),
            Type::Matrix(matrix) => {
                let [rows, columns] = matrix.shape();
                let role = matrix.role.name().to_lowercase();
                format!("{role}_{}_{rows}x{columns}", matrix.scalar.rust_name())
            }
        })
    }
}

/// Whether a name ends in words that an accessor's name has behind that of its root.
fn ends_as_accessor(name: &str) -> bool {
    let is = |name: &str, suffix: &str| {
        name.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let atomic = |name: &str| AtomicFunction::ALL.into_iter().any(|(_, suffix)| is(name, suffix));
    SUFFIXES.iter().any(|suffix| is(name, suffix))
        || Order::ALL.into_iter().any(|(_, order)| name.strip_suffix(order).is_some_and(atomic))
}

/// The names of lanes.
pub const LANES: [&str; 4] = ["x", "y", "z", "w"];
