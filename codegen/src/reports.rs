//! What becomes of reports (`assert!`, `println!`): in most builds nothing, in others words in a buffer.
//!
//! Both are done to an instance before it is verified for good, so that nothing behind knows of reports: `without` leaves out each [`StatementKind::Reporting`] as a whole, and
//! `with_buffer` gives the kernel one more binding and makes each [`StatementKind::Report`] writes to it. The checker runs kernels as they are written, and reads reports itself. How the
//! buffer is laid out is said in [`crate::site`].

use std::borrow::Cow;

use crate::artefact::{GridKind, List, ParamScalar, Site, SiteValue};
use crate::ir::builder::{FunctionBuilder, element, variable};
use crate::ir::{
    AtomicFunction, BinaryOperator, Binding, BindingKind, Block, Builtin, Expression, ExpressionKind, Function, Handle,
    Local, Module, Ordering, Place, Report, Root, Scalar, Span, Statement, StatementKind, Type, statements,
};
use crate::site::{BEGIN, HEAD};
use crate::verify::{self, function_facts};

/// The name of the report buffer; the author's own names are told apart from it when code is written.
const BUFFER: &str = "report";

/// Whether a kernel reports anything.
pub fn has_reports(module: &Module) -> bool {
    let reports = |function: &Function| {
        let mut found = false;
        statements(&function.body, &mut |statement| found |= matches!(statement.kind, StatementKind::Report(_)));
        found
    };
    verify::functions(module).any(reports)
}

/// Leaves out all that is done for reports; says whether there was any.
pub(crate) fn without(module: &mut Module) -> bool {
    if !has_reports(module) {
        return false;
    }
    let effects = function_facts(module).1;
    for function in functions_mut(module) {
        edit(&mut function.body, &mut |statement, out| match statement.kind {
            StatementKind::Reporting(_) => {}
            _ => out.push(statement),
        });
    }
    // A function that did nothing but report is called for nothing.
    let now = function_facts(module).1;
    let idle: Vec<bool> = effects.iter().zip(&now).map(|(before, now)| *before && !now).collect();
    for function in functions_mut(module) {
        let Function { body, expressions, .. } = function;
        edit(body, &mut |statement, out| {
            let callee = match &statement.kind {
                StatementKind::Evaluate(value) => match &expressions[*value].kind {
                    ExpressionKind::Call { function, .. } => Some(*function),
                    _ => None,
                },
                _ => None,
            };
            if callee.is_none_or(|callee| idle.get(callee.index()) != Some(&true)) {
                out.push(statement);
            }
        });
    }
    true
}

/// Gives an instance the report buffer, and has it write its reports there.
pub(crate) fn with_buffer(module: &mut Module) {
    let word = module.intern(Type::Scalar(Scalar::U32));
    let binding = module.bindings.len() as u32;
    module.bindings.push(Binding {
        name: BUFFER.to_owned(),
        element: word,
        kind: BindingKind::Atomic,
        view: None,
        packed: 1,
        volatile: Vec::new(),
        span: Span::NONE,
    });
    let by_axis = verify::grid(module) == GridKind::Volume;
    let mut site = 0;
    let mut with_writes = |module: &mut Module, function: Function| {
        let mut builder = FunctionBuilder::continuing(module, function);
        let mut body = builder.open();
        edit(&mut body, &mut |statement, out| match statement.kind {
            StatementKind::Reporting(body) => out.extend(body),
            StatementKind::Report(report) => {
                site += 1;
                builder.at(statement.span);
                out.extend(builder.nested(|builder| Writer { builder, binding }.report(site, &report, by_axis)));
            }
            _ => out.push(statement),
        });
        builder.close(body);
        builder.into_function()
    };
    let callees: Vec<_> = module.functions.iter().map(|(function, _)| function).collect();
    for callee in callees {
        let function = std::mem::take(&mut module.functions[callee]);
        module.functions[callee] = with_writes(module, function);
    }
    let entry = std::mem::take(&mut module.entry);
    module.entry = with_writes(module, entry);
}

/// The sites of an instance's reports, in the order in which [`with_buffer`] counts them.
pub(crate) fn sites(module: &Module) -> Vec<Site> {
    let mut sites = Vec::new();
    for function in verify::functions(module) {
        inner_first(&function.body, &mut |statement| {
            if let StatementKind::Report(report) = &statement.kind {
                sites.push(site(module, function, report, statement.span));
            }
        });
    }
    sites
}

/// The site of a report.
pub(crate) fn site(module: &Module, function: &Function, report: &Report, span: Span) -> Site {
    let (file, line, column) = module.locations.position(span).unwrap_or((&module.locations.file, 0, 0));
    let values = report.values.iter().map(|value| site_value(module, function.expressions[*value].ty));
    Site {
        file: Cow::Owned(file.to_owned()),
        line,
        column,
        fails: report.fails,
        text: Cow::Owned(report.text.clone()),
        values: Cow::Owned(values.collect()),
    }
}

fn site_value(module: &Module, ty: Handle<Type>) -> SiteValue {
    let ty = &module.types[ty];
    let names = match ty {
        Type::Enum(item) => {
            let variants = module.enums[*item].variants.iter();
            variants.map(|(name, number)| (*number, Cow::Owned(name.clone()))).collect()
        }
        _ => Vec::new(),
    };
    let scalar = ty.scalar().map_or(ParamScalar::U32, reported);
    SiteValue { scalar, lanes: ty.lanes().unwrap_or(1).into(), names: List::Owned(names) }
}

/// As what a scalar is reported.
const fn reported(scalar: Scalar) -> ParamScalar {
    match scalar {
        Scalar::Bool => ParamScalar::Bool,
        Scalar::I8 | Scalar::I16 | Scalar::I32 => ParamScalar::I32,
        Scalar::F16 | Scalar::BF16 | Scalar::F32 => ParamScalar::F32,
        Scalar::I64 => ParamScalar::I64,
        Scalar::U64 => ParamScalar::U64,
        Scalar::F64 => ParamScalar::F64,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::Index | Scalar::Generic(_) => ParamScalar::U32,
    }
}

fn functions_mut(module: &mut Module) -> impl Iterator<Item = &mut Function> {
    let Module { functions, entry, .. } = module;
    functions.iter_mut().map(|(_, function)| function).chain([entry])
}

/// Goes through the statements of a block and of those inside, inner ones first; `keep` puts into the block what is to stand in the place of each.
fn edit(block: &mut Block, keep: &mut dyn FnMut(Statement, &mut Block)) {
    for mut statement in std::mem::take(block) {
        statement.kind.blocks_mut().into_iter().for_each(|inner| edit(inner, keep));
        keep(statement, block);
    }
}

/// Visits statements in the order of [`edit`].
fn inner_first(block: &Block, visit: &mut dyn FnMut(&Statement)) {
    for statement in block {
        statement.kind.blocks().into_iter().for_each(|inner| inner_first(inner, visit));
        visit(statement);
    }
}

/// Writes what a report becomes.
struct Writer<'b, 'm> {
    builder: &'b mut FunctionBuilder<'m>,
    binding: u32,
}

type Value = Handle<Expression>;

impl Writer<'_, '_> {
    /// Takes room in the buffer, and writes the report if there is some; else counts it. Who finds the buffer full takes none, so that the count of words stays within reach.
    fn report(&mut self, site: u32, report: &Report, by_axis: bool) {
        let mut words = vec![Word::Literal(site)];
        if by_axis {
            let ty = Type::Vector { lanes: 3, scalar: Scalar::Index };
            let position = self.builder.expression(ExpressionKind::Builtin(Builtin::GroupId), ty);
            let position = self.builder.bind("workgroup", position);
            words.extend((0..3).map(|axis| Word::Lane(position, Scalar::Index, Some(axis))));
        } else {
            words.extend([Word::Builtin(Builtin::GroupIndex), Word::Literal(0), Word::Literal(0)]);
        }
        words.push(Word::Builtin(Builtin::LocalIndex));
        debug_assert_eq!(words.len(), HEAD);
        for value in &report.values {
            let ty = self.builder.type_of(*value);
            let (scalar, lanes) = (ty.scalar().unwrap_or(Scalar::U32), u32::from(ty.lanes().unwrap_or(1)));
            let local = self.builder.bind("value", *value);
            for lane in 0..lanes {
                let lane = (lanes > 1).then_some(lane);
                if reported(scalar).bytes() == 8 {
                    let halves = self.halves(local, lane);
                    words.extend([0, 1].map(|half| Word::Lane(halves, Scalar::U32, Some(half))));
                } else {
                    words.push(Word::Lane(local, scalar, lane));
                }
            }
        }
        let (binding, count) = (self.binding, words.len() as u32);
        let room = self.builder.u32(0);
        let room = self.builder.atomic("room", AtomicFunction::Load, word(binding, room), None);
        let room = self.builder.local(room);
        let ty = self.builder.module().intern(Type::Scalar(Scalar::U32));
        let at = self.builder.variable("at", ty, Some(room));
        let fits = self.fits(at, count);
        self.builder.if_then(fits, |builder| {
            let (count, asked) = (builder.u32(count), builder.u32(0));
            let got = builder.atomic("got", AtomicFunction::Add, word(binding, asked), Some(count));
            let got = builder.local(got);
            builder.store(variable(at), got);
        });
        let fits = self.fits(at, count);
        self.builder.if_else(
            fits,
            |builder| {
                for (position, of) in words.into_iter().enumerate() {
                    let value = Writer { builder, binding }.value(of);
                    let (at, offset) = (builder.load(variable(at)), builder.u32((BEGIN + position) as u32));
                    let index = builder.binary(BinaryOperator::Add, at, offset);
                    builder.statement(StatementKind::Atomic {
                        result: None,
                        place: word(binding, index),
                        function: AtomicFunction::Store,
                        value: Some(value),
                        compare: None,
                        ordering: Ordering::RELAXED,
                    });
                }
            },
            |builder| {
                let (one, lost) = (builder.u32(1), builder.u32(1));
                builder.atomic("lost", AtomicFunction::Add, word(binding, lost), Some(one));
            },
        );
    }

    /// Whether so many words from there on are within the buffer.
    fn fits(&mut self, at: Handle<Local>, count: u32) -> Value {
        let Self { builder, binding } = self;
        let (at, count) = (builder.load(variable(at)), builder.u32(count + BEGIN as u32));
        let end = builder.binary(BinaryOperator::Add, at, count);
        // The buffer is short, whatever the width of indices.
        let length = builder.length(*binding);
        let length = builder.convert(length, Scalar::U32);
        builder.binary(BinaryOperator::LessEqual, end, length)
    }

    /// A word of a report.
    fn value(&mut self, word: Word) -> Value {
        match word {
            Word::Literal(value) => self.builder.u32(value),
            Word::Builtin(builtin) => {
                let value = self.builder.expression(ExpressionKind::Builtin(builtin), Type::Scalar(Scalar::Index));
                self.builder.convert(value, Scalar::U32)
            }
            Word::Lane(local, scalar, lane) => {
                let value = self.lane(local, lane);
                self.word(value, scalar)
            }
        }
    }

    fn lane(&mut self, local: Handle<Local>, lane: Option<u32>) -> Value {
        let base = self.builder.local(local);
        lane.map_or(base, |index| self.builder.lane(base, index))
    }

    /// The two words of a scalar of 64 bits, the low one first, which devices without arithmetic of such have too.
    fn halves(&mut self, local: Handle<Local>, lane: Option<u32>) -> Handle<Local> {
        let value = self.lane(local, lane);
        let halves = self.builder.expression(ExpressionKind::Bitcast(value), Type::vector(2, Scalar::U32));
        self.builder.bind("halves", halves)
    }

    /// A scalar of up to 32 bits as what it is reported as, in a word.
    fn word(&mut self, value: Value, scalar: Scalar) -> Value {
        let as_word = |builder: &mut FunctionBuilder<'_>, wide: Scalar| {
            let value = if scalar == wide { value } else { builder.convert(value, wide) };
            builder.bitcast(value, Scalar::U32)
        };
        match reported(scalar) {
            ParamScalar::F32 => as_word(self.builder, Scalar::F32),
            ParamScalar::I32 => as_word(self.builder, Scalar::I32),
            // Those of enums are converted too, whatever stands for their scalar; those of 64 bits are words by now.
            ParamScalar::U32
            | ParamScalar::Index
            | ParamScalar::Bool
            | ParamScalar::I64
            | ParamScalar::U64
            | ParamScalar::F64 => {
                let is_word = *self.builder.type_of(value) == Type::Scalar(Scalar::U32);
                if is_word { value } else { self.builder.convert(value, Scalar::U32) }
            }
        }
    }
}

/// A word of the buffer.
fn word(binding: u32, index: Value) -> Place {
    element(Root::Binding(binding), index)
}

/// A word of a report: of a value, a lane of a vector or all of a scalar.
enum Word {
    Literal(u32),
    Builtin(Builtin),
    Lane(Handle<Local>, Scalar, Option<u32>),
}
