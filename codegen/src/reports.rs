//! What becomes of reports (`assert!`, `println!`): in most builds nothing, in others words in a buffer.
//!
//! Both are done to an instance before it is verified for good, so that nothing behind knows of reports: `without` leaves out each [`StatementKind::Reporting`] as a whole, and
//! `with_buffer` gives the kernel one more binding and makes each [`StatementKind::Report`] writes to it. The checker runs kernels as they are written, and reads reports itself. How the
//! buffer is laid out is said in [`crate::site`].

use std::borrow::Cow;

use crate::artefact::{GridKind, List, ParamScalar, Site, SiteValue};
use crate::ir::{
    Arena, AtomicFunction, BinaryOperator, Binding, BindingKind, Block, Builtin, Expression, ExpressionKind, Function,
    Handle, Literal, Local, Module, Ordering, Place, Projection, Report, Root, Scalar, Span, Statement, StatementKind,
    Type, statements,
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
    let Module { types, functions, entry, .. } = module;
    for function in functions.iter_mut().map(|(_, function)| function).chain([entry]) {
        let mut body = std::mem::take(&mut function.body);
        edit(&mut body, &mut |statement, out| match statement.kind {
            StatementKind::Reporting(body) => out.extend(body),
            StatementKind::Report(report) => {
                site += 1;
                let mut writer = Writer { types, function, binding, span: statement.span, block: Vec::new() };
                writer.report(site, &report, by_axis);
                out.extend(writer.block);
            }
            _ => out.push(statement),
        });
        function.body = body;
    }
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
struct Writer<'f> {
    types: &'f mut Arena<Type>,
    function: &'f mut Function,
    binding: u32,
    span: Span,
    block: Block,
}

impl Writer<'_> {
    /// Takes room in the buffer, and writes the report if there is some; else counts it. Who finds the buffer full takes none, so that the count of words stays within reach.
    fn report(&mut self, site: u32, report: &Report, by_axis: bool) {
        let mut words = vec![Word::Literal(site)];
        if by_axis {
            let ty = self.types.intern(Type::Vector { lanes: 3, scalar: Scalar::Index });
            let position = self.add(ExpressionKind::Builtin(Builtin::GroupId), ty);
            let position = self.bind("workgroup", position);
            words.extend((0..3).map(|axis| Word::Lane(position, Scalar::Index, Some(axis))));
        } else {
            words.extend([Word::Builtin(Builtin::GroupIndex), Word::Literal(0), Word::Literal(0)]);
        }
        words.push(Word::Builtin(Builtin::LocalIndex));
        debug_assert_eq!(words.len(), HEAD);
        for value in &report.values {
            let ty = self.types[self.function.expressions[*value].ty].clone();
            let local = self.bind("value", *value);
            let scalar = ty.scalar().unwrap_or(Scalar::U32);
            let lanes = u32::from(ty.lanes().unwrap_or(1));
            for lane in 0..lanes {
                let lane = (lanes > 1).then_some(lane);
                words.push(Word::Lane(local, scalar, lane));
                if reported(scalar).bytes() == 8 {
                    words.push(Word::High(local, scalar, lane));
                }
            }
        }
        let count = words.len() as u32;
        let room = self.atomic("room", AtomicFunction::Load, 0, None);
        let room = self.local(room);
        let ty = self.word();
        let at = self.function.locals.add(Local { name: "at".to_owned(), ty, mutable: true, span: self.span });
        self.push(StatementKind::Let { local: at, value: Some(room) });
        let fits = self.fits(at, count);
        let accept = self.nested(|this| {
            let count = this.literal(count);
            let got = this.atomic("got", AtomicFunction::Add, 0, Some(count));
            let value = this.local(got);
            this.push(StatementKind::Store { place: variable(at), value });
        });
        self.push(StatementKind::If { condition: fits, accept, reject: Vec::new(), constant: false });
        let fits = self.fits(at, count);
        let accept = self.nested(|this| {
            for (position, word) in words.into_iter().enumerate() {
                let value = this.value(word);
                let (at, offset) = (this.load(at), this.literal((BEGIN + position) as u32));
                let index = this.binary(BinaryOperator::Add, at, offset);
                this.atomic_at(None, AtomicFunction::Store, index, Some(value));
            }
        });
        let reject = self.nested(|this| {
            let one = this.literal(1);
            this.atomic("lost", AtomicFunction::Add, 1, Some(one));
        });
        self.push(StatementKind::If { condition: fits, accept, reject, constant: false });
    }

    /// Whether so many words from there on are within the buffer.
    fn fits(&mut self, at: Handle<Local>, count: u32) -> Handle<Expression> {
        let (at, count) = (self.load(at), self.literal(count + BEGIN as u32));
        let end = self.binary(BinaryOperator::Add, at, count);
        let ty = self.types.intern(Type::Scalar(Scalar::Index));
        let length = self.add(ExpressionKind::Length(self.binding), ty);
        let length = self.convert(length, Scalar::U32);
        self.binary(BinaryOperator::LessEqual, end, length)
    }

    /// A word of a report.
    fn value(&mut self, word: Word) -> Handle<Expression> {
        match word {
            Word::Literal(value) => self.literal(value),
            Word::Builtin(builtin) => {
                let ty = self.types.intern(Type::Scalar(Scalar::Index));
                let value = self.add(ExpressionKind::Builtin(builtin), ty);
                self.convert(value, Scalar::U32)
            }
            Word::Lane(local, scalar, lane) => {
                let value = self.lane(local, scalar, lane);
                self.low(value, scalar)
            }
            Word::High(local, scalar, lane) => {
                let value = self.lane(local, scalar, lane);
                let bits = self.long(value, scalar);
                let amount = self.literal(32);
                let high = self.binary(BinaryOperator::ShiftRight, bits, amount);
                self.convert(high, Scalar::U32)
            }
        }
    }

    fn lane(&mut self, local: Handle<Local>, scalar: Scalar, lane: Option<u32>) -> Handle<Expression> {
        let base = self.local(local);
        let Some(index) = lane else { return base };
        let ty = self.types.intern(Type::Scalar(scalar));
        self.add(ExpressionKind::Member { base, index }, ty)
    }

    /// The low word of a scalar's bits, widened to what it is reported as.
    fn low(&mut self, value: Handle<Expression>, scalar: Scalar) -> Handle<Expression> {
        match reported(scalar) {
            ParamScalar::F32 => {
                let single = if scalar == Scalar::F32 { value } else { self.convert(value, Scalar::F32) };
                self.bits(single, Scalar::U32)
            }
            ParamScalar::I32 => {
                let wide = if scalar == Scalar::I32 { value } else { self.convert(value, Scalar::I32) };
                self.bits(wide, Scalar::U32)
            }
            ParamScalar::I64 | ParamScalar::U64 | ParamScalar::F64 => {
                let bits = self.long(value, scalar);
                self.convert(bits, Scalar::U32)
            }
            // Those of enums are converted too, whatever stands for their scalar.
            ParamScalar::U32 | ParamScalar::Index | ParamScalar::Bool => {
                let is_word = self.types[self.function.expressions[value].ty] == Type::Scalar(Scalar::U32);
                if is_word { value } else { self.convert(value, Scalar::U32) }
            }
        }
    }

    /// The bits of a scalar of 64.
    fn long(&mut self, value: Handle<Expression>, scalar: Scalar) -> Handle<Expression> {
        if scalar == Scalar::U64 { value } else { self.bits(value, Scalar::U64) }
    }

    fn word(&mut self) -> Handle<Type> {
        self.types.intern(Type::Scalar(Scalar::U32))
    }

    fn add(&mut self, kind: ExpressionKind, ty: Handle<Type>) -> Handle<Expression> {
        self.function.expressions.add(Expression { kind, ty, span: self.span })
    }

    fn push(&mut self, kind: StatementKind) {
        self.block.push(Statement { kind, span: self.span });
    }

    fn nested(&mut self, write: impl FnOnce(&mut Self)) -> Block {
        let outer = std::mem::take(&mut self.block);
        write(self);
        std::mem::replace(&mut self.block, outer)
    }

    fn literal(&mut self, value: u32) -> Handle<Expression> {
        let ty = self.word();
        self.add(ExpressionKind::Literal(Literal::U32(value)), ty)
    }

    fn convert(&mut self, value: Handle<Expression>, scalar: Scalar) -> Handle<Expression> {
        let ty = self.types.intern(Type::Scalar(scalar));
        self.add(ExpressionKind::Convert(value), ty)
    }

    fn bits(&mut self, value: Handle<Expression>, scalar: Scalar) -> Handle<Expression> {
        let ty = self.types.intern(Type::Scalar(scalar));
        self.add(ExpressionKind::Bitcast(value), ty)
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        let ty = if operator.is_comparison() {
            self.types.intern(Type::Scalar(Scalar::Bool))
        } else {
            self.function.expressions[left].ty
        };
        self.add(ExpressionKind::Binary { operator, left, right }, ty)
    }

    fn bind(&mut self, name: &str, value: Handle<Expression>) -> Handle<Local> {
        let ty = self.function.expressions[value].ty;
        let local = self.function.locals.add(Local { name: name.to_owned(), ty, mutable: false, span: self.span });
        self.push(StatementKind::Let { local, value: Some(value) });
        local
    }

    fn local(&mut self, local: Handle<Local>) -> Handle<Expression> {
        let ty = self.function.locals[local].ty;
        self.add(ExpressionKind::Local(local), ty)
    }

    fn load(&mut self, local: Handle<Local>) -> Handle<Expression> {
        let ty = self.function.locals[local].ty;
        self.add(ExpressionKind::Load(variable(local)), ty)
    }

    fn atomic(
        &mut self,
        name: &str,
        function: AtomicFunction,
        index: u32,
        value: Option<Handle<Expression>>,
    ) -> Handle<Local> {
        let ty = self.word();
        let result = self.function.locals.add(Local { name: name.to_owned(), ty, mutable: false, span: self.span });
        let index = self.literal(index);
        self.atomic_at(Some(result), function, index, value);
        result
    }

    fn atomic_at(
        &mut self,
        result: Option<Handle<Local>>,
        function: AtomicFunction,
        index: Handle<Expression>,
        value: Option<Handle<Expression>>,
    ) {
        let place = Place { root: Root::Binding(self.binding), path: vec![Projection::Index(index)], guarded: true };
        self.push(StatementKind::Atomic { result, place, function, value, compare: None, ordering: Ordering::RELAXED });
    }
}

/// A mutable local as a place.
fn variable(local: Handle<Local>) -> Place {
    Place { root: Root::Local(local), path: Vec::new(), guarded: false }
}

/// A word of a report: of a value, its low or high one, of a lane of a vector or of all of a scalar.
enum Word {
    Literal(u32),
    Builtin(Builtin),
    Lane(Handle<Local>, Scalar, Option<u32>),
    High(Handle<Local>, Scalar, Option<u32>),
}
