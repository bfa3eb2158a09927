//! The IR as text, for `trefoil emit --target ir`, for test failures and for people who read a pass's result.
//!
//! The text looks like Rust where Rust has the notion. It says what the verifier found out too: a guarded access reads `x[?i]`.

use std::fmt::{self, Write};

use super::{
    Asynchronous, Block, CallArgument, Expression, ExpressionKind, Function, GenericKind, GenericValue, Handle,
    Instance, Literal, LogicalOperator, MatrixOperation, Module, Ordering, Piece, Place, Projection, Report, Root,
    Scope, Size, StatementKind, TileOperation, Type, UnaryOperator, WorkgroupVariable,
};
use crate::ir::Builtin;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { module: self, function: &self.entry, out: String::new(), depth: 0, plain: false };
        printer.module()?;
        f.write_str(&printer.out)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, value) in self.values.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            match value {
                GenericValue::Type(scalar) => f.write_str(scalar.rust_name())?,
                GenericValue::Const(literal) => write!(f, "{literal}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::I32(value) => write!(f, "{value}i32"),
            Self::U32(value) => write!(f, "{value}u32"),
            Self::Index(value) => write!(f, "{value}"),
            Self::I8(value) => write!(f, "{value}i8"),
            Self::U8(value) => write!(f, "{value}u8"),
            Self::I16(value) => write!(f, "{value}i16"),
            Self::U16(value) => write!(f, "{value}u16"),
            Self::BF16(bits) => write!(f, "bf16({bits:#06x})"),
            Self::F16(bits) => write!(f, "f16({bits:#06x})"),
            Self::F32(value) => write!(f, "{value:?}"),
            Self::I64(value) => write!(f, "{value}i64"),
            Self::U64(value) => write!(f, "{value}u64"),
            Self::F64(value) => write!(f, "{value:?}f64"),
            Self::Generic { value, .. } => write!(f, "lit({value:?})"),
        }
    }
}

/// A place in the author's names, as they were written: `x[i + 1]`.
pub(crate) fn place_text(module: &Module, function: &Function, place: &Place) -> String {
    Printer { module, function, out: String::new(), depth: 0, plain: true }.place(place)
}

struct Printer<'a> {
    module: &'a Module,
    function: &'a Function,
    out: String,
    depth: usize,
    /// Whether names and places are as the author wrote them, without the numbers of locals and the marks of guards.
    plain: bool,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) -> fmt::Result {
        for _ in 0..self.depth {
            self.out.write_str("    ")?;
        }
        writeln!(self.out, "{text}")
    }

    fn module(&mut self) -> fmt::Result {
        let module = self.module;
        for line in module.doc.lines() {
            self.line(format!("/// {}", line.trim()).trim_end())?;
        }
        for (_, item) in module.structs.iter() {
            let fields: Vec<_> = item.fields.iter().map(|(name, ty)| format!("{name}: {}", self.ty(*ty))).collect();
            self.line(&format!("struct {} {{ {} }}", item.name, fields.join(", ")))?;
        }
        for (_, item) in module.enums.iter() {
            let variants: Vec<_> = item.variants.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            self.line(&format!("enum {} {{ {} }}", item.name, variants.join(", ")))?;
        }
        for (_, variable) in module.workgroup.iter() {
            let element = self.ty(variable.element);
            let element = if variable.atomic { format!("Atomic<{element}>") } else { element };
            let tile = variable.tile.as_ref().map_or_else(String::new, |tile| {
                let (rows, columns) = (self.size(&tile.rows), self.size(&tile.columns));
                format!(" of tiles of {rows} by {columns} {}", tile.scalar.rust_name())
            });
            self.line(&format!("workgroup {}: [{element}; {}]{tile}", variable.name, self.size(&variable.length)))?;
        }
        for (_, function) in module.functions.iter() {
            self.function = function;
            let arguments: Vec<_> = function
                .arguments
                .iter()
                .map(|a| format!("{}: {}{}", a.name, if a.by_reference { "&mut " } else { "" }, self.ty(a.ty)))
                .collect();
            let result = function.result.map_or_else(String::new, |ty| format!(" -> {}", self.ty(ty)));
            self.line(&format!("fn {}({}){result} {{", function.name, arguments.join(", ")))?;
            self.block(&function.body)?;
            self.line("}")?;
        }
        self.function = &module.entry;
        let size: Vec<_> = module.workgroup_size.iter().map(|size| self.size(size)).collect();
        let generics: Vec<_> = module
            .generics
            .iter()
            .map(|generic| match generic.kind {
                GenericKind::Type(bound) => format!("{}: {bound:?}", generic.name),
                GenericKind::Const(scalar) => format!("const {}: {}", generic.name, scalar.rust_name()),
            })
            .collect();
        let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
        let subgroup = module
            .subgroup
            .as_ref()
            .map_or_else(String::new, |stated| format!("; subgroup {}", self.size(&stated.size)));
        let resident =
            module.resident.as_ref().map_or_else(String::new, |resident| format!("; resident {}", self.size(resident)));
        let indirect = if module.indirect { "; indirect" } else { "" };
        let robust = if module.no_robustness { "; no_robustness" } else { "" };
        self.line(&format!(
            "kernel({}{subgroup}{resident}{indirect}{robust}) fn {}{generics}(",
            size.join(", "),
            module.name
        ))?;
        for binding in &module.bindings {
            let element = self.ty(binding.element);
            let rank = binding.view.map_or_else(String::new, |rank| format!(" view of rank {rank}"));
            let volatile: Vec<_> = binding.volatile.iter().map(|target| target.name()).collect();
            let volatile =
                if volatile.is_empty() { String::new() } else { format!("volatile({}) ", volatile.join(", ")) };
            let text = match binding.kind {
                super::BindingKind::Shared => format!("{volatile}{}: &[{element}]{rank},", binding.name),
                super::BindingKind::Mutable => format!("{}: &mut [{element}]{rank},", binding.name),
                super::BindingKind::Atomic => format!("{}: &[Atomic<{element}>],", binding.name),
            };
            self.line(&format!("    {text}"))?;
        }
        for param in &module.params {
            self.line(&format!("    {}: {},", param.name, self.ty(param.ty)))?;
        }
        self.line(") {")?;
        self.block(&module.entry.body)?;
        self.line("}")
    }

    fn size(&self, size: &Size) -> String {
        match size {
            Size::Literal(value) => value.to_string(),
            Size::Generic(index) => self.generic(*index),
            Size::Param(index) => match self.module.params.get(*index as usize) {
                Some(param) => param.name.clone(),
                None => format!("param {index}"),
            },
            Size::Binary(operator, left, right) => {
                let sign = operator.sign();
                format!("({} {sign} {})", self.size(left), self.size(right))
            }
        }
    }

    fn generic(&self, index: u32) -> String {
        self.module
            .generics
            .get(index as usize)
            .map_or_else(|| format!("generic {index}"), |generic| generic.name.clone())
    }

    fn ty(&self, ty: Handle<Type>) -> String {
        let scalar = |scalar: super::Scalar| match scalar {
            super::Scalar::Generic(index) => self.generic(index),
            plain => plain.rust_name().to_owned(),
        };
        match &self.module.types[ty] {
            Type::Scalar(plain) => scalar(*plain),
            Type::Vector { lanes, scalar: lane } => format!("Vec{lanes}<{}>", scalar(*lane)),
            Type::Array { element, length } => format!("[{}; {}]", self.ty(*element), self.size(length)),
            Type::Struct(handle) => self.module.structs[*handle].name.clone(),
            Type::Enum(handle) => self.module.enums[*handle].name.clone(),
            Type::Matrix(matrix) => {
                let (rows, columns) = (self.size(&matrix.rows), self.size(&matrix.columns));
                format!("{}<{}, {rows}, {columns}>", matrix.role.name(), scalar(matrix.scalar))
            }
        }
    }

    fn block(&mut self, block: &Block) -> fmt::Result {
        self.depth += 1;
        for statement in block {
            self.statement(&statement.kind)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn local(&self, local: Handle<super::Local>) -> String {
        if self.plain {
            return self.function.locals[local].name.clone();
        }
        // The number tells locals of one name apart.
        format!("{}.{}", self.function.locals[local].name, local.index())
    }

    fn statement(&mut self, statement: &StatementKind) -> fmt::Result {
        match statement {
            StatementKind::Let { local, value } => {
                let known = &self.function.locals[*local];
                let mutable = if known.mutable { "mut " } else { "" };
                let value = value.map_or_else(String::new, |value| format!(" = {}", self.expression(value)));
                self.line(&format!("let {mutable}{}: {}{value};", self.local(*local), self.ty(known.ty)))
            }
            StatementKind::Store { place, value } => {
                let text = format!("{} = {};", self.place(place), self.expression(*value));
                self.line(&text)
            }
            StatementKind::Evaluate(call) => {
                let text = format!("{};", self.expression(*call));
                self.line(&text)
            }
            StatementKind::If { condition, accept, reject, constant } => {
                let keyword = if *constant { "if const" } else { "if" };
                self.line(&format!("{keyword} {} {{", self.expression(*condition)))?;
                self.block(accept)?;
                if !reject.is_empty() {
                    self.line("} else {")?;
                    self.block(reject)?;
                }
                self.line("}")
            }
            StatementKind::Switch { selector, cases, default } => {
                self.line(&format!("match {} {{", self.expression(*selector)))?;
                self.depth += 1;
                for case in cases {
                    let values: Vec<_> = case.values.iter().map(u32::to_string).collect();
                    self.line(&format!("{} => {{", values.join(" | ")))?;
                    self.block(&case.body)?;
                    self.line("}")?;
                }
                self.line("_ => {")?;
                self.block(default)?;
                self.line("}")?;
                self.depth -= 1;
                self.line("}")
            }
            StatementKind::For { local, start, end, step, body, unroll } => {
                let range = format!("{}..{}", self.expression(*start), self.expression(*end));
                let range = if *unroll { format!("unroll({range})") } else { range };
                self.line(&format!("for {} in {range} step {} {{", self.local(*local), self.expression(*step)))?;
                self.block(body)?;
                self.line("}")
            }
            StatementKind::While { condition, body } => {
                self.line(&format!("while {} {{", self.expression(*condition)))?;
                self.block(body)?;
                self.line("}")
            }
            StatementKind::Loop { body } => {
                self.line("loop {")?;
                self.block(body)?;
                self.line("}")
            }
            StatementKind::Break => self.line("break;"),
            StatementKind::Continue => self.line("continue;"),
            StatementKind::Return(None) => self.line("return;"),
            StatementKind::Return(Some(value)) => {
                let text = format!("return {};", self.expression(*value));
                self.line(&text)
            }
            StatementKind::Barrier => self.line("barrier();"),
            StatementKind::Reporting(body) => {
                self.line("reporting {")?;
                self.block(body)?;
                self.line("}")
            }
            StatementKind::Report(Report { fails, text, values }) => {
                let what = if *fails { "fail" } else { "print" };
                let pieces: String = text
                    .iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
                        Piece::Value(value, _) => format!("{{{value}}}"),
                    })
                    .collect();
                let values: String = values.iter().map(|value| format!(", {}", self.expression(*value))).collect();
                self.line(&format!("{what}({pieces:?}{values});"))
            }
            StatementKind::Asynchronous(kind) => {
                let arguments = match kind {
                    Asynchronous::Copy { to, from, count } => {
                        format!("{}, {}, {}", self.place(to), self.place(from), self.expression(*count))
                    }
                    Asynchronous::Commit => String::new(),
                    Asynchronous::Wait(pending) => self.expression(*pending),
                };
                self.line(&format!("{}({arguments});", kind.name()))
            }
            StatementKind::Fence(scope) => self.line(&format!("{}();", scope.fence())),
            StatementKind::UniformLoad { result, place } => {
                let text = format!("let {} = workgroup_uniform_load(&{});", self.local(*result), self.place(place));
                self.line(&text)
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let result = result.map_or_else(String::new, |local| format!("let {} = ", self.local(local)));
                let arguments: Vec<_> = compare.iter().chain(value).map(|value| self.expression(*value)).collect();
                let Ordering { order, scope } = ordering;
                let scope = if *scope == Scope::Workgroup { " workgroup" } else { "" };
                let text = format!(
                    "{result}atomic {function:?}{}{scope} {}({});",
                    order.suffix(),
                    self.place(place),
                    arguments.join(", ")
                );
                self.line(&text)
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let arguments: Vec<_> =
                    std::iter::once(value).chain(lane).map(|value| self.expression(*value)).collect();
                let text = format!("let {} = {}({});", self.local(*result), function.name(), arguments.join(", "));
                self.line(&text)
            }
            StatementKind::Matrix { result, operation } => {
                let result = result.map_or_else(String::new, |local| format!("let {} = ", self.local(local)));
                let operands = match operation {
                    MatrixOperation::Load { place, stride, .. } => {
                        vec![self.place(place), self.expression(*stride)]
                    }
                    MatrixOperation::Store { place, stride, value, .. } => {
                        vec![self.expression(*value), self.place(place), self.expression(*stride)]
                    }
                    MatrixOperation::MultiplyAdd { a, b, c } => {
                        [a, b, c].into_iter().map(|side| self.expression(*side)).collect()
                    }
                };
                let text = format!("{result}matrix {}({});", operation.name(), operands.join(", "));
                self.line(&text)
            }
            StatementKind::Tile(operation) => {
                let tile = |handle: Handle<WorkgroupVariable>| self.module.workgroup[handle].name.clone();
                let whole = |root: Root| self.place(&Place { root, path: Vec::new(), guarded: false });
                let mut operands = match operation {
                    TileOperation::Copy { tile: to, from, .. } => vec![tile(*to), whole(*from)],
                    TileOperation::BulkCopy { tile: to, map, .. } => {
                        vec![tile(*to), whole(Root::Binding(map.binding))]
                    }
                    TileOperation::Multiply { sums, a, b, .. } => vec![self.place(sums), tile(*a), tile(*b)],
                    TileOperation::Finish { sums } => sums.iter().map(|place| self.place(place)).collect(),
                };
                statement.operands(&mut |value| operands.push(self.expression(*value)));
                self.line(&format!("{}({});", operation.name(), operands.join(", ")))
            }
        }
    }

    fn place(&self, place: &Place) -> String {
        let mut text = match place.root {
            Root::Binding(binding) => self
                .module
                .bindings
                .get(binding as usize)
                .map_or_else(|| format!("binding {binding}"), |known| known.name.clone()),
            Root::Workgroup(variable) => self.module.workgroup[variable].name.clone(),
            Root::Local(local) => self.local(local),
            Root::Argument(argument) => self.argument(argument),
        };
        let guard = if place.guarded && !self.plain { "?" } else { "" };
        let index = |index: &Handle<Expression>| {
            let text = self.expression(*index);
            // An operation's own parentheses say nothing inside of brackets.
            let bare = matches!(self.function.expressions[*index].kind, ExpressionKind::Binary { .. }) && self.plain;
            let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            match inner {
                Some(inner) if bare => inner.to_owned(),
                _ => text,
            }
        };
        for step in &place.path {
            let step = match step {
                Projection::Index(at) => format!("[{guard}{}]", index(at)),
                Projection::Member(member) => format!(".{member}"),
                Projection::Vector { index: at, lanes } => format!(".vec{lanes}({guard}{})", index(at)),
            };
            text.push_str(&step);
        }
        text
    }

    fn argument(&self, argument: u32) -> String {
        let known = self.function.arguments.get(argument as usize);
        known.map_or_else(|| format!("argument {argument}"), |known| known.name.clone())
    }

    fn list(&self, values: &[Handle<Expression>]) -> String {
        values.iter().map(|value| self.expression(*value)).collect::<Vec<_>>().join(", ")
    }

    fn binding_name(&self, binding: u32) -> String {
        self.module
            .bindings
            .get(binding as usize)
            .map_or_else(|| format!("binding {binding}"), |known| known.name.clone())
    }

    fn expression(&self, handle: Handle<Expression>) -> String {
        let expression = &self.function.expressions[handle];
        let ty = || self.ty(expression.ty);
        match &expression.kind {
            ExpressionKind::Literal(literal) => literal.to_string(),
            ExpressionKind::GenericConstant(index) => self.generic(*index),
            ExpressionKind::Param(param) => {
                let known = self.module.params.get(*param as usize);
                known.map_or_else(|| format!("param {param}"), |known| known.name.clone())
            }
            ExpressionKind::Length(binding) => format!("{}.len()", self.binding_name(*binding)),
            ExpressionKind::ViewExtent { binding, axis } => format!("{}.extent({axis})", self.binding_name(*binding)),
            ExpressionKind::ViewStride { binding, axis } => format!("{}.stride({axis})", self.binding_name(*binding)),
            ExpressionKind::Builtin(builtin) => {
                let name =
                    Builtin::ALL.into_iter().find(|(known, _)| known == builtin).map_or("builtin", |(_, name)| name);
                format!("{name}()")
            }
            ExpressionKind::Argument(argument) => self.argument(*argument),
            ExpressionKind::Local(local) => self.local(*local),
            ExpressionKind::Load(place) => self.place(place),
            ExpressionKind::Member { base, index } => format!("{}.{index}", self.expression(*base)),
            ExpressionKind::Element { base, index } => {
                format!("{}[{}]", self.expression(*base), self.expression(*index))
            }
            ExpressionKind::Compose(parts) => format!("{}({})", ty(), self.list(parts)),
            ExpressionKind::Splat(value) => format!("{}::splat({})", ty(), self.expression(*value)),
            ExpressionKind::Swizzle { base, lanes } => {
                let names: String = lanes.iter().filter_map(|lane| "xyzw".chars().nth(usize::from(*lane))).collect();
                format!("{}.{names}", self.expression(*base))
            }
            ExpressionKind::Unary { operator, value } => {
                let sign = match operator {
                    UnaryOperator::Negate => "-",
                    UnaryOperator::Not => "!",
                };
                format!("{sign}{}", self.expression(*value))
            }
            ExpressionKind::Binary { operator, left, right } => {
                format!("({} {} {})", self.expression(*left), operator.sign(), self.expression(*right))
            }
            ExpressionKind::Logical { operator, left, right } => {
                let sign = match operator {
                    LogicalOperator::And => "&&",
                    LogicalOperator::Or => "||",
                };
                format!("({} {sign} {})", self.expression(*left), self.expression(*right))
            }
            ExpressionKind::Math { function, arguments } => format!("{}({})", function.name(), self.list(arguments)),
            ExpressionKind::Select { condition, accept, reject } => {
                format!("select({})", self.list(&[*condition, *accept, *reject]))
            }
            ExpressionKind::Convert(value) => format!("({} as {})", self.expression(*value), ty()),
            ExpressionKind::Bitcast(value) => format!("bitcast::<{}>({})", ty(), self.expression(*value)),
            ExpressionKind::Call { function, arguments } => {
                let arguments: Vec<_> = arguments
                    .iter()
                    .map(|argument| match argument {
                        CallArgument::Value(value) => self.expression(*value),
                        CallArgument::Reference(root) => {
                            format!("&mut {}", self.place(&Place { root: *root, path: Vec::new(), guarded: false }))
                        }
                    })
                    .collect();
                format!("{}({})", self.module.functions[*function].name, arguments.join(", "))
            }
            ExpressionKind::MatrixLength(ty) => format!("parts of {}", self.ty(*ty)),
            ExpressionKind::TargetHas(feature) => format!("target::has({})", feature.variant_name()),
        }
    }
}
