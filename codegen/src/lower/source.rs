//! From the text of a library function to IR, for one scalar width and one target.

use super::library;
use super::table::{self, Cheaper};
use super::text::{self, Node};
use crate::hashing::HashMap;
use crate::ir::builder::FunctionBuilder;
use crate::ir::{
    BinaryOperator as B, Expression, ExpressionKind, Function, Handle, Literal, Local, MathFunction, Module, Precision,
    Scalar, Type, UnaryOperator,
};
use crate::names::FunctionNames;
use crate::target::Profile;

/// A library function for values of so many lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    pub name: &'static str,
    pub lanes: u8,
    /// Whether `u32` in the text stands for `usize`.
    pub index: bool,
    /// Whether `f32` in the text stands for `f64`.
    pub double: bool,
    /// How closely it is computed.
    pub precision: Precision,
}

/// Library functions of a module, each made when first wanted.
pub struct Library {
    profile: Profile,
    known: HashMap<Wanted, Handle<Function>>,
    names: FunctionNames,
}

type Value = Handle<Expression>;
type Scope = HashMap<String, Name>;

#[derive(Clone, Copy)]
enum Name {
    Argument(u32, Scalar),
    Local(Handle<Local>, Scalar),
}

impl Library {
    pub fn new(profile: Profile, names: FunctionNames) -> Self {
        Self { profile, known: HashMap::default(), names }
    }

    /// The names of the functions made so far, each once.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.known.keys().map(|wanted| wanted.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The function, which is added to the module if it is not there yet.
    ///
    /// # Errors
    /// The library's text is wrong, which its tests rule out.
    pub fn function(&mut self, module: &mut Module, wanted: Wanted) -> Result<Handle<Function>, String> {
        if let Some(known) = self.known.get(&wanted) {
            return Ok(*known);
        }
        let function = self
            .translate(module, wanted)
            .map_err(|error| format!("the library function `{}` cannot be made: {error}", wanted.name))?;
        self.known.insert(wanted, function);
        Ok(function)
    }

    fn translate(&mut self, module: &mut Module, wanted: Wanted) -> Result<Handle<Function>, String> {
        let text = library::entry(wanted.name).ok_or("there is no such function")?.1;
        let item = text::read(text)?;
        let mut name = item.name.to_owned();
        if wanted.index {
            name = name.replace("u32", "usize");
        }
        if wanted.double {
            name = format!("{name}_f64");
        }
        if wanted.lanes > 1 {
            name = format!("{name}_vec{}", wanted.lanes);
        } else if MathFunction::from_name(&name).is_some() {
            // The target's own function of that name means something else.
            let (_, first) = item.inputs.first().ok_or("it takes nothing")?;
            name = format!("{name}_{}", type_named(first, wanted)?.0.rust_name());
        }
        let name = self.names.fresh(&wanted.precision.suffixed(&name));
        let mut body = FunctionBuilder::new(module, &name);
        body.precision(wanted.precision);
        let mut scope = Scope::default();
        for (position, (name, ty)) in item.inputs.iter().enumerate() {
            let (scalar, lanes) = type_named(ty, wanted)?;
            let ty = body.module().intern(of(scalar, lanes));
            body.argument(name, ty);
            scope.insert((*name).to_owned(), Name::Argument(position as u32, scalar));
        }
        let (result, lanes) = type_named(item.result, wanted)?;
        let ty = body.module().intern(of(result, lanes));
        body.result(ty);
        let mut context = Context { library: self, wanted, scope, lanes: wanted.lanes };
        for (name, value) in &item.lets {
            let (value, scalar) = context.value(&mut body, value, None)?;
            let local = body.bind(name, value);
            context.scope.insert((*name).to_owned(), Name::Local(local, scalar));
        }
        let (value, scalar) = context.value(&mut body, &item.value, Some(result))?;
        if scalar != result {
            return Err(format!("it gives {}", scalar.rust_name()));
        }
        body.return_value(Some(value));
        Ok(body.finish())
    }
}

fn of(scalar: Scalar, lanes: u8) -> Type {
    if lanes == 1 { Type::Scalar(scalar) } else { Type::vector(lanes, scalar) }
}

/// A type by its name: as many lanes as are wanted, or one if it is called `one_f32` and so on.
fn type_named(name: &str, wanted: Wanted) -> Result<(Scalar, u8), String> {
    let (name, lanes) = match name.strip_prefix("one_") {
        Some(name) => (name, 1),
        None => (name, wanted.lanes),
    };
    match name {
        "f32" if wanted.double => Ok((Scalar::F64, lanes)),
        "u32" if wanted.index => Ok((Scalar::Index, lanes)),
        name => match Scalar::from_rust_name(name) {
            Some(scalar) => Ok((scalar, lanes)),
            None => Err("an unknown type".to_owned()),
        },
    }
}

struct Context<'l> {
    library: &'l mut Library,
    wanted: Wanted,
    scope: Scope,
    /// The lanes that a literal gets.
    lanes: u8,
}

type Translated = Result<(Value, Scalar), String>;

impl Context<'_> {
    /// Translates an expression; a literal without a suffix takes the type that is hoped for.
    fn value(&mut self, body: &mut FunctionBuilder<'_>, node: &Node<'_>, hoped: Option<Scalar>) -> Translated {
        match node {
            Node::Float(_) | Node::Integer { .. } => self.literal(body, node, false, hoped),
            Node::Unary(UnaryOperator::Negate, number) if number.is_number() => self.literal(body, number, true, hoped),
            Node::Name(name) => match self.scope.get(*name) {
                Some(Name::Argument(position, scalar)) => Ok((body.get_argument(*position), *scalar)),
                Some(Name::Local(local, scalar)) => Ok((body.local(*local), *scalar)),
                None => Err(format!("`{name}` is unknown")),
            },
            Node::Unary(operator, value) => {
                let (value, scalar) = self.value(body, value, hoped)?;
                Ok((body.unary(*operator, value), scalar))
            }
            Node::Binary(operator, left, right) => self.binary(body, *operator, left, right, hoped),
            Node::Convert(value, ty) => {
                let (to, _) = type_named(ty, self.wanted)?;
                let (value, _) = self.value(body, value, None)?;
                Ok((body.convert(value, to), to))
            }
            Node::Call(name, arguments) => self.call(body, name, arguments),
        }
    }

    fn literal(
        &self,
        body: &mut FunctionBuilder<'_>,
        number: &Node<'_>,
        negative: bool,
        hoped: Option<Scalar>,
    ) -> Translated {
        let literal = match *number {
            Node::Float(value) => {
                let value = if negative { -value } else { value };
                if self.wanted.double { Literal::F64(value) } else { Literal::F32(value as f32) }
            }
            Node::Integer { value, suffix } => {
                let value = if negative { value.wrapping_neg() } else { value };
                let scalar = match (Scalar::from_rust_name(suffix), hoped) {
                    (Some(scalar), _) => scalar,
                    (None, Some(scalar)) if scalar.is_integer() => scalar,
                    _ => Scalar::I32,
                };
                Literal::integer(scalar, value).ok_or("an integer of an unknown type")?
            }
            _ => return Err("a literal is a number".to_owned()),
        };
        let value = body.literal(literal);
        let value = if self.lanes > 1 { body.splat(value, self.lanes) } else { value };
        Ok((value, literal.scalar()))
    }

    fn binary(
        &mut self,
        body: &mut FunctionBuilder<'_>,
        operator: B,
        left: &Node<'_>,
        right: &Node<'_>,
        hoped: Option<Scalar>,
    ) -> Translated {
        let hoped = if operator.is_comparison() { None } else { hoped };
        let (left, scalar) = self.value(body, left, hoped)?;
        let wanted = if matches!(operator, B::ShiftLeft | B::ShiftRight) { Scalar::U32 } else { scalar };
        let (right, other) = self.beside(body, left, right, Some(wanted))?;
        if other != wanted {
            return Err(format!("{} beside {}", other.rust_name(), wanted.rust_name()));
        }
        let result = if operator.is_comparison() { Scalar::Bool } else { scalar };
        Ok((body.binary(operator, left, right), result))
    }

    /// An operand beside another: literals in it have as many lanes.
    fn beside(
        &mut self,
        body: &mut FunctionBuilder<'_>,
        other: Value,
        node: &Node<'_>,
        hoped: Option<Scalar>,
    ) -> Translated {
        let lanes = body.type_of(other).lanes().unwrap_or(1);
        let outside = std::mem::replace(&mut self.lanes, lanes);
        let value = self.value(body, node, hoped);
        self.lanes = outside;
        value
    }

    /// Whether a function that may be less accurate has the target's own.
    fn is_cheaper_native(&self, function: MathFunction) -> bool {
        let cheaper = table::cheaper(self.library.profile.target, function);
        let may_be = self.wanted.precision == Precision::Fast && !self.wanted.double;
        may_be && matches!(cheaper, Some(Cheaper::Native))
    }

    /// Scalars, all of one type.
    fn scalars(&mut self, body: &mut FunctionBuilder<'_>, list: &[Node<'_>]) -> Result<(Vec<Value>, Scalar), String> {
        let outside = std::mem::replace(&mut self.lanes, 1);
        let values = list.iter().map(|node| self.value(body, node, None)).collect::<Result<Vec<_>, _>>();
        self.lanes = outside;
        let values = values?;
        let (_, scalar) = *values.first().ok_or("no scalars")?;
        Ok((values.into_iter().map(|(value, _)| value).collect(), scalar))
    }

    fn call(&mut self, body: &mut FunctionBuilder<'_>, name: &str, arguments: &[Node<'_>]) -> Translated {
        let is_number = arguments.last().is_some_and(Node::is_number);
        match (name, arguments) {
            ("to_bits", [value]) => {
                let (value, _) = self.value(body, value, None)?;
                let word = if self.wanted.double { Scalar::U64 } else { Scalar::U32 };
                return Ok((body.bitcast(value, word), word));
            }
            ("from_bits", [value]) => {
                let (word, float) =
                    if self.wanted.double { (Scalar::U64, Scalar::F64) } else { (Scalar::U32, Scalar::F32) };
                let (value, _) = self.value(body, value, Some(word))?;
                return Ok((body.bitcast(value, float), float));
            }
            ("select", [condition, accept, reject]) => {
                let (condition, _) = self.value(body, condition, None)?;
                let outside = std::mem::replace(&mut self.lanes, body.type_of(condition).lanes().unwrap_or(1));
                // A literal takes the type of the other side.
                let (accept, reject, scalar) = if accept.is_number() {
                    let (reject, scalar) = self.value(body, reject, None)?;
                    (self.value(body, accept, Some(scalar))?.0, reject, scalar)
                } else {
                    let (accept, scalar) = self.value(body, accept, None)?;
                    (accept, self.value(body, reject, Some(scalar))?.0, scalar)
                };
                self.lanes = outside;
                return Ok((body.select(condition, accept, reject), scalar));
            }
            ("one", [_]) => {
                let (values, scalar) = self.scalars(body, arguments)?;
                return Ok((values[0], scalar));
            }
            ("spread", [_]) => {
                let (values, scalar) = self.scalars(body, arguments)?;
                let value = if self.wanted.lanes > 1 { body.splat(values[0], self.wanted.lanes) } else { values[0] };
                return Ok((value, scalar));
            }
            ("vector", parts) => {
                let (values, scalar) = self.scalars(body, parts)?;
                return Ok((body.compose(values), scalar));
            }
            ("lane0" | "lane1" | "lane2" | "lane3", [value]) => {
                let lane = name.as_bytes().last().map_or(0, |digit| u32::from(digit - b'0'));
                let (value, scalar) = self.value(body, value, None)?;
                return Ok((body.lane(value, lane), scalar));
            }
            ("yzx" | "zxy", [value]) => {
                let (value, scalar) = self.value(body, value, None)?;
                let lanes = if name == "yzx" { vec![1, 2, 0] } else { vec![2, 0, 1] };
                return Ok((body.swizzle(value, lanes), scalar));
            }
            _ => {}
        }
        let mut values: Vec<Value> = Vec::new();
        let mut scalar = None;
        for argument in arguments {
            let (value, found) = match values.first() {
                Some(first) => self.beside(body, *first, argument, scalar)?,
                None => self.value(body, argument, scalar)?,
            };
            scalar.get_or_insert(found);
            values.push(value);
        }
        let scalar = scalar.ok_or("a call without arguments")?;
        let name = match (name, values.as_slice()) {
            ("remainder", [left, right]) => {
                match library::remainder(self.library.profile.target, scalar, self.wanted.precision) {
                    Some(name) => name,
                    None => return Ok((body.binary(B::Remainder, *left, *right), scalar)),
                }
            }
            _ => name,
        };
        // The target's own, or ours, whatever the table says.
        let (name, native, own) = match (name.strip_prefix("native_"), name.strip_prefix("own_")) {
            (Some(name), _) => (name, true, false),
            (_, Some(name)) => (name, false, true),
            _ => (name, false, false),
        };
        let function = function_named(name);
        if let Some(function) = function
            && !own
            && (native || self.is_cheaper_native(function) || table::math(&self.library.profile, function, scalar))
        {
            let value = body.math(function, values);
            let scalar = body.type_of(value).scalar().ok_or("it gives no number")?;
            return Ok((value, scalar));
        }
        let known = match function {
            Some(function) if is_number => library::with_number(self.library.profile.target, function, scalar),
            Some(function) => library::name_for(self.library.profile.target, function, scalar),
            None => library::entry(name).ok_or(format!("`{name}` is unknown"))?.0,
        };
        let mut lanes = values.iter().filter_map(|value| body.type_of(*value).lanes()).max().unwrap_or(1);
        if let (Some(function), Some(first)) = (function, values.first()) {
            // What takes one number may give several.
            lanes = lanes.max(function.gives().of(body.type_of(*first)).lanes().unwrap_or(1));
        }
        let function = self.library.function(body.module(), Wanted { name: known, lanes, ..self.wanted })?;
        let result = body.module().functions[function].result.ok_or("it gives nothing")?;
        let ty = body.module().types[result].clone();
        let scalar = ty.scalar().ok_or("it gives no number")?;
        Ok((body.call(function, values, ty), scalar))
    }
}

/// The mathematical function that a text names; those that lowering alone makes have names of several words.
fn function_named(name: &str) -> Option<MathFunction> {
    MathFunction::from_name(name).or_else(|| MathFunction::from_name(&name.replace('_', " ")))
}

/// The kind of a call of a library function.
pub fn call(function: Handle<Function>, arguments: Vec<Value>) -> ExpressionKind {
    let arguments = arguments.into_iter().map(crate::ir::CallArgument::Value).collect();
    ExpressionKind::Call { function, arguments }
}
