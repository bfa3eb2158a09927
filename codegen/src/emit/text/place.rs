//! Places: how they are read and written, and the accessors of those that need a guard.

use crate::artefact::ParamRole;
use crate::emit::EmitError;
use crate::emit::names::Names;
use crate::ir::{
    AtomicFunction, BinaryOperator, Ordering, Place, Projection, Root, Scalar, Scope as Reach, Type, WorkgroupVariable,
};

use super::code::{infix, logical};
use super::printer::{LANES, Scope};
use super::{Code, Dialect, Printer, Resources, Writer, apart};

type Result<T> = std::result::Result<T, EmitError>;

/// A place in printed form.
#[derive(Clone, Debug)]
pub enum Lvalue {
    /// Something that can stand left of an assignment.
    Plain(Code),
    /// Scalars that together are a vector.
    Parts(Vec<Code>, Type),
    /// A place that the language reaches by functions only.
    Calls {
        /// Reads it.
        read: Code,
        /// The call that writes it, up to the value: `set_lane(v, i, `.
        write: String,
    },
}

/// An index in printed form.
#[derive(Clone, Debug)]
pub struct Index {
    /// All of it.
    pub whole: Code,
    /// The sum that it is of a value and a number, literal or made of counters of loops that are left to unroll, where the place is known to be in a workgroup variable and [`Dialect::TELLS_APART`].
    pub apart: Option<(Code, Code)>,
}

/// An atomic operation with its operands printed.
#[derive(Clone, Debug)]
pub struct AtomicCall {
    /// What it does.
    pub function: AtomicFunction,
    /// What it orders, as the author says.
    pub ordering: Ordering,
    /// Among whom, where it is done.
    pub scope: Reach,
    /// With what.
    pub value: Option<Code>,
    /// What must be there.
    pub compare: Option<Code>,
}

/// How an atomic operation is said.
#[derive(Clone, Debug)]
pub enum AtomicForm {
    /// An expression that gives the value from before.
    Value(Code),
    /// Statements, of which the last returns the value: they must be the body of a function.
    Body(Vec<String>),
    /// A statement without a value.
    Statement(String),
}

/// One step into a variable, with its index printed.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    /// What the step is taken from; `None` for the elements of a buffer or workgroup variable.
    pub(super) from: Option<Type>,
}

#[derive(Clone, Debug)]
pub(super) enum StepKind {
    Index { code: Code, literal: Option<u32> },
    Member(u32),
    Vector { code: Code, lanes: u8, literal: Option<u32> },
}

/// A place with its indices printed.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) root: Root,
    pub(super) root_name: String,
    /// The type of the whole variable, if it is a local or an argument.
    root_type: Option<Type>,
    pub(super) steps: Vec<Step>,
    pub(super) ty: Type,
    guarded: bool,
    /// See [`Index::apart`].
    apart: Option<(Code, Code)>,
}

/// What is done with a place.
#[derive(Clone, Debug)]
enum Use {
    Read,
    Write(Code),
    Atomic(AtomicCall),
}

impl<'a, D: Dialect> Printer<'a, D> {
    /// Reads a place.
    ///
    /// # Errors
    /// The language cannot say it.
    pub fn read(&mut self, scope: &Scope<'a>, place: &Place) -> Result<Code> {
        let way = self.way(scope, place)?;
        if self.wants_accessor(&way)? {
            return self.accessor(&way, Use::Read);
        }
        self.read_way(&way)
    }

    /// The lines that write a place.
    ///
    /// # Errors
    /// The language cannot say it.
    pub fn write(&mut self, scope: &Scope<'a>, place: &Place, value: Code) -> Result<Vec<String>> {
        let way = self.way(scope, place)?;
        if self.wants_accessor(&way)? {
            return Ok(vec![format!("{};", self.accessor(&way, Use::Write(value))?.text)]);
        }
        self.write_way(&way, value)
    }

    /// The text of a place that can be named without an accessor.
    ///
    /// # Errors
    /// The language cannot say it.
    pub fn plain_place(&mut self, scope: &Scope<'a>, place: &Place) -> Result<Option<Code>> {
        let way = self.way(scope, place)?;
        if self.wants_accessor(&way)? || self.is_atomic(way.root) {
            return Ok(None);
        }
        Ok(match self.lvalue(&way)? {
            Lvalue::Plain(code) => Some(code),
            Lvalue::Parts(..) | Lvalue::Calls { .. } => None,
        })
    }

    /// An atomic operation: an expression with the old value, or a statement if it has none.
    ///
    /// # Errors
    /// The language cannot say it.
    pub fn atomic(&mut self, scope: &Scope<'a>, place: &Place, call: AtomicCall) -> Result<Code> {
        let way = self.way(scope, place)?;
        if !self.wants_accessor(&way)? {
            let place = self.atomic_place(&way)?;
            match D::atomic(self, place, self.scalar_of(&way)?, call.clone())? {
                AtomicForm::Value(code) => return Ok(code),
                AtomicForm::Statement(text) => return Ok(Code::atom(text)),
                AtomicForm::Body(_) => {}
            }
        }
        self.accessor(&way, Use::Atomic(call))
    }

    fn scalar_of(&self, way: &Way) -> Result<Scalar> {
        way.ty.scalar().ok_or_else(|| self.error(format!("`{}` is no scalar where an atomic is wanted", way.root_name)))
    }

    fn atomic_place(&mut self, way: &Way) -> Result<Code> {
        match self.lvalue(way)? {
            Lvalue::Plain(code) => Ok(code),
            Lvalue::Parts(..) | Lvalue::Calls { .. } => {
                Err(self.error(format!("an atomic of `{}` is not one scalar in memory", way.root_name)))
            }
        }
    }

    fn way(&mut self, scope: &Scope<'a>, place: &Place) -> Result<Way> {
        let root_type = match place.root {
            Root::Local(local) => Some(self.ty(scope.function.locals[local].ty).clone()),
            Root::Argument(argument) => Some(self.ty(scope.function.arguments[argument as usize].ty).clone()),
            Root::Binding(_) | Root::Workgroup(_) => None,
        };
        let mut at = root_type.clone();
        let mut steps = Vec::new();
        for projection in &place.path {
            let element = || self.element_type(place.root).cloned().ok_or_else(|| self.error("a variable has no type"));
            let (kind, next) = match projection {
                Projection::Index(index) => {
                    let next = match &at {
                        None => element()?,
                        Some(ty) => self.part_type(ty)?,
                    };
                    let (code, literal) = (self.expression(scope, *index)?, apart::literal(scope.kind(*index)));
                    (StepKind::Index { code, literal }, next)
                }
                Projection::Member(member) => {
                    let next = match &at {
                        Some(Type::Struct(handle)) => D::field_type(self, *handle, *member)?,
                        Some(ty) => self.part_type(ty)?,
                        None => return Err(self.error("a field is taken of a whole buffer")),
                    };
                    (StepKind::Member(*member), next)
                }
                Projection::Vector { index, lanes } => {
                    let part = match &at {
                        None => element()?,
                        Some(ty) => self.part_type(ty)?,
                    };
                    let scalar =
                        part.scalar().ok_or_else(|| self.error("a vector is loaded of what holds no scalars"))?;
                    let (code, literal) = (self.expression(scope, *index)?, apart::literal(scope.kind(*index)));
                    (StepKind::Vector { code, lanes: *lanes, literal }, Type::vector(*lanes, scalar))
                }
            };
            steps.push(Step { kind, from: at });
            at = Some(next);
        }
        let ty = at.ok_or_else(|| self.error("a whole buffer is used as a value"))?;
        let root_name = self.root_name(scope, place.root);
        let apart = self.apart(scope, place)?;
        Ok(Way { root: place.root, root_name, root_type, steps, ty, guarded: place.guarded, apart })
    }

    /// Whether a way must go through an accessor: it is guarded, or its pieces are not what the language sees in memory.
    fn wants_accessor(&mut self, way: &Way) -> Result<bool> {
        if D::declared_words(self, way.root) || (way.guarded && !self.guards(way)?.is_empty()) {
            return Ok(true);
        }
        for step in &way.steps {
            match (&step.kind, &step.from) {
                (StepKind::Index { .. }, None) if D::declared_lanes(self, way.root) > 1 => return Ok(true),
                (StepKind::Vector { .. }, Some(_)) => return Ok(true),
                (StepKind::Vector { lanes, .. }, None) => {
                    // Wider declarations take a vector apart; CUDA reads it through another pointer.
                    let declared = D::declared_lanes(self, way.root);
                    if declared != 0 && declared != u32::from(*lanes) {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// The conditions under which a way stays within its variables.
    fn guards(&mut self, way: &Way) -> Result<Vec<Code>> {
        let mut guards = Vec::new();
        for step in &way.steps {
            let (code, literal, lanes) = match &step.kind {
                StepKind::Index { code, literal } => (code, *literal, 1),
                StepKind::Vector { code, lanes, literal } => (code, *literal, u32::from(*lanes)),
                StepKind::Member(_) => continue,
            };
            let known = match (&step.from, way.root) {
                (Some(ty), _) => Some(self.parts(ty)?),
                (None, Root::Workgroup(variable)) => match &self.lowered.module.workgroup[variable] {
                    WorkgroupVariable { exact: None, length, .. } => Some(self.size(length)?),
                    _ => None,
                },
                (None, _) => None,
            };
            let end = match known {
                Some(length) if literal.is_some_and(|index| index < length / lanes) => continue,
                Some(length) => Code::atom(format!("{}u", length / lanes)),
                None => self.length_guard(way.root, lanes)?,
            };
            guards.push(infix(BinaryOperator::Less, code.clone(), end));
        }
        Ok(guards)
    }

    /// How many elements, or groups of lanes, a binding has.
    pub(super) fn length_guard(&mut self, root: Root, lanes: u32) -> Result<Code> {
        let binding = match root {
            Root::Binding(binding) => binding,
            Root::Workgroup(variable) => return self.workgroup_length(variable, lanes),
            Root::Local(_) | Root::Argument(_) => return Err(self.error("a length is unknown")),
        };
        let packed = self.lowered.module.bindings[binding as usize].packed;
        let mut end = self.param_word(ParamRole::Length(binding))?;
        if packed > 1 {
            let rounded = infix(BinaryOperator::Add, end, Code::atom(format!("{}u", packed - 1)));
            end = infix(BinaryOperator::Divide, rounded, Code::atom(format!("{packed}u")));
        }
        if lanes > 1 {
            end = infix(BinaryOperator::Divide, end, Code::atom(format!("{lanes}u")));
        }
        Ok(end)
    }

    /// The place itself, whatever its guards.
    fn lvalue(&mut self, way: &Way) -> Result<Lvalue> {
        let mut at = match way.root {
            Root::Argument(_) => D::dereference(&way.root_name),
            Root::Binding(_) | Root::Workgroup(_) | Root::Local(_) => Code::atom(way.root_name.clone()),
        };
        for (position, step) in way.steps.iter().enumerate() {
            let last = position + 1 == way.steps.len();
            at = match (&step.kind, &step.from) {
                (StepKind::Index { code, .. }, None) => {
                    D::element(self, way.root, Index { whole: code.clone(), apart: way.apart.clone() })?
                }
                (StepKind::Vector { code, lanes, .. }, None) => {
                    let scalar = way.ty.scalar().unwrap_or(Scalar::U32);
                    let index = Index { whole: code.clone(), apart: way.apart.clone() };
                    return D::vector_element(self, way.root, scalar, *lanes, index);
                }
                (StepKind::Vector { code, lanes, .. }, Some(_)) => {
                    let parts =
                        (0..u32::from(*lanes)).map(|lane| at.clone().index(lane_index(code, u32::from(*lanes), lane)));
                    return Ok(Lvalue::Parts(parts.collect(), way.ty.clone()));
                }
                (StepKind::Index { literal: Some(index), .. }, Some(Type::Vector { lanes, .. }))
                    if *index < u32::from(*lanes) =>
                {
                    at.member(LANES[*index as usize])
                }
                (StepKind::Index { code, .. }, Some(vector @ Type::Vector { .. })) => {
                    let lane = D::lane_place(self, way.root, vector, at, code.clone())?;
                    match lane {
                        Lvalue::Plain(code) if !last => code,
                        lane => return Ok(lane),
                    }
                }
                (StepKind::Index { code, .. }, Some(_)) => at.index(code.clone()),
                (StepKind::Member(member), Some(Type::Struct(handle))) => {
                    at.member(&self.field_name(*handle, *member)?)
                }
                (StepKind::Member(member), Some(Type::Vector { .. })) => match LANES.get(*member as usize) {
                    Some(lane) => at.member(lane),
                    None => return Err(self.error(format!("a vector has no lane {member}"))),
                },
                (StepKind::Member(member), _) => at.index(Code::atom(member.to_string())),
            };
        }
        Ok(Lvalue::Plain(at))
    }

    fn read_way(&mut self, way: &Way) -> Result<Code> {
        let atomic = self.is_atomic(way.root);
        match self.lvalue(way)? {
            Lvalue::Plain(code) if atomic => Ok(D::atomic_load(code, self.scalar_of(way)?)),
            Lvalue::Plain(code) => Ok(code),
            Lvalue::Parts(parts, ty) => D::compose(self, &ty, parts),
            Lvalue::Calls { read, .. } => Ok(read),
        }
    }

    fn write_way(&mut self, way: &Way, value: Code) -> Result<Vec<String>> {
        let atomic = self.is_atomic(way.root);
        Ok(match self.lvalue(way)? {
            Lvalue::Plain(code) if atomic => vec![D::atomic_store(code, self.scalar_of(way)?, value)],
            Lvalue::Plain(code) => vec![format!("{} = {};", code.text, value.text)],
            Lvalue::Parts(parts, _) => parts
                .into_iter()
                .zip(LANES)
                .map(|(part, lane)| format!("{} = {};", part.text, value.clone().member(lane).text))
                .collect(),
            Lvalue::Calls { write, .. } => vec![format!("{write}{});", value.argument())],
        })
    }

    /// A call of the accessor for a way, which is made if it is new.
    fn accessor(&mut self, way: &Way, usage: Use) -> Result<Code> {
        let resources = Resources::of_root(way.root);
        let word = Type::Scalar(Scalar::U32);
        let index = super::expr::word(&Type::Scalar(self.lowered.module.index.scalar()));
        let mut names = Names::default();
        names.reserve(&way.root_name);
        names.reserve("params");
        let mut claim = |wanted: &str| names.claim(wanted, |name| D::reserved(name, super::Position::Local));

        // The accessor's own view of the way: the same steps with its arguments as indices.
        let mut inner = Way { apart: None, ..way.clone() };
        let (mut parameters, mut arguments) = (Vec::new(), D::pass(self, &resources));
        if let Some(ty) = &way.root_type {
            let forwarded = matches!(way.root, Root::Argument(_));
            parameters.push((way.root_name.clone(), ty.clone(), true));
            arguments.push(D::reference(&way.root_name, forwarded));
            inner.root = Root::Argument(0);
        }
        let mut letters = ["i", "j", "k", "l"].into_iter();
        let (mut base, mut key) = (way.root_name.clone(), format!("{:?}", resources.bindings));
        key.push_str(&format!("{:?}{:?}", resources.workgroup, way.root_type));
        let mut suffix = String::new();
        for (step, outer) in inner.steps.iter_mut().zip(&way.steps) {
            match (&mut step.kind, &outer.kind) {
                (StepKind::Index { code: name, literal }, StepKind::Index { code, .. })
                | (StepKind::Vector { code: name, literal, .. }, StepKind::Vector { code, .. }) => {
                    let letter = letters.next().ok_or_else(|| self.error("a place has more than four indices"))?;
                    let letter = claim(letter);
                    let is_large = step.from.is_none() && matches!(way.root, Root::Binding(_));
                    let ty = if is_large { &index } else { &word };
                    parameters.push((letter.clone(), ty.clone(), false));
                    arguments.push(code.clone());
                    *name = Code::atom(letter);
                    *literal = None;
                }
                _ => {}
            }
            match &step.kind {
                StepKind::Index { .. } => key.push_str("[]"),
                StepKind::Vector { lanes, .. } => {
                    key.push_str(&format!("<{lanes}>"));
                    suffix = format!("_vec{lanes}");
                }
                StepKind::Member(member) => {
                    key.push_str(&format!(".{member}"));
                    match &step.from {
                        Some(Type::Struct(handle)) => {
                            base.push('_');
                            base.push_str(&self.field_name(*handle, *member)?);
                        }
                        _ => base.push_str(&format!("_{member}")),
                    }
                }
            }
        }
        key.push_str(if way.guarded { "guarded" } else { "plain" });
        key.push_str(&way.root_name);

        let ty = way.ty.clone();
        match usage {
            Use::Read => {
                let inside = claim("inside");
                let wanted = if suffix.is_empty() { format!("{base}_at") } else { format!("{base}{suffix}") };
                let name = self.helper(&format!("read {key}"), &wanted, |p, name| {
                    let mut out = Writer::default();
                    out.open(D::function(p, name, &parameters, &resources, Some(&ty))?);
                    if let Some(lines) = p.clamped_read(&inner, &inside)? {
                        lines.into_iter().for_each(|line| out.line(line));
                        out.close("}");
                        return Ok(out.finish());
                    }
                    let lines = if D::declared_words(p, inner.root) {
                        let value = p.read_words(&inner)?;
                        vec![p.first_word(&inner)?, format!("return {};", value.text)]
                    } else {
                        vec![format!("return {};", p.read_way(&inner)?.text)]
                    };
                    if p.guarded_lines(&mut out, &inner, lines)? {
                        out.line(format!("return {};", D::zero(p, &ty)?.text));
                    }
                    out.close("}");
                    Ok(out.finish())
                })?;
                Ok(Code::call(&name, arguments))
            }
            Use::Write(value) => {
                let argument = claim("value");
                parameters.push((argument.clone(), ty, false));
                arguments.push(value);
                let name = self.helper(&format!("write {key}"), &format!("{base}_set{suffix}"), |p, name| {
                    let mut out = Writer::default();
                    out.open(D::function(p, name, &parameters, &resources, None)?);
                    let value = Code::atom(argument);
                    let lines = if D::declared_words(p, inner.root) {
                        let mut lines = vec![p.first_word(&inner)?];
                        p.write_words(&inner, value, &mut lines)?;
                        lines
                    } else {
                        p.write_way(&inner, value)?
                    };
                    p.guarded_lines(&mut out, &inner, lines)?;
                    out.close("}");
                    Ok(out.finish())
                })?;
                Ok(Code::call(&name, arguments))
            }
            Use::Atomic(AtomicCall { function, ordering, scope, value, compare }) => {
                let mut operand = |wanted: &str, given: Option<Code>| {
                    given.map(|given| {
                        let name = claim(wanted);
                        parameters.push((name.clone(), ty.clone(), false));
                        arguments.push(given);
                        Code::atom(name)
                    })
                };
                let compare = operand("expected", compare);
                let value = operand("value", value);
                let wanted = format!("{base}_{}{}", function.name(), ordering.order.suffix());
                let result = (function != AtomicFunction::Store).then(|| ty.clone());
                let name = self.helper(&format!("{function:?} {ordering:?} {key}"), &wanted, |p, name| {
                    let mut out = Writer::default();
                    out.open(D::function(p, name, &parameters, &resources, result.as_ref())?);
                    let place = p.atomic_place(&inner)?;
                    let scalar = p.scalar_of(&inner)?;
                    // What follows an endless loop is never reached, but languages want it.
                    let (lines, open) =
                        match D::atomic(p, place, scalar, AtomicCall { function, ordering, scope, value, compare })? {
                            AtomicForm::Value(code) => (vec![format!("return {};", code.text)], false),
                            AtomicForm::Statement(text) => (vec![format!("{text};")], false),
                            AtomicForm::Body(lines) => (lines, true),
                        };
                    let guarded = p.guarded_lines(&mut out, &inner, lines)?;
                    if let (true, Some(ty)) = (guarded || open, &result) {
                        out.line(format!("return {};", D::zero(p, ty)?.text));
                    }
                    out.close("}");
                    Ok(out.finish())
                })?;
                Ok(Code::call(&name, arguments))
            }
        }
    }

    /// The lines that read a guarded element of a buffer without a branch, where the language wants it so.
    fn clamped_read(&mut self, way: &Way, inside: &str) -> Result<Option<Vec<String>>> {
        let [Step { kind: StepKind::Index { code, .. } | StepKind::Vector { code, .. }, from: None }] = &way.steps[..]
        else {
            return Ok(None);
        };
        if !matches!(way.root, Root::Binding(_)) || self.is_atomic(way.root) || D::declared_words(self, way.root) {
            return Ok(None);
        }
        match self.guard(way)? {
            Some(condition) => D::clamped_read(self, way.root, &way.ty, code, (inside, &condition)),
            None => Ok(None),
        }
    }

    /// The condition for a guarded way, if there is one.
    fn guard(&mut self, way: &Way) -> Result<Option<String>> {
        if !way.guarded {
            return Ok(None);
        }
        let guards = self.guards(way)?;
        Ok(guards
            .into_iter()
            .reduce(|all, next| logical(crate::ir::LogicalOperator::And, all, next))
            .map(|code| code.text))
    }

    /// Writes lines, inside the guard if there is one, and says whether there is.
    fn guarded_lines(&mut self, out: &mut Writer, way: &Way, lines: Vec<String>) -> Result<bool> {
        let guard = self.guard(way)?;
        if let Some(condition) = &guard {
            out.open(format!("if ({condition}) {{"));
        }
        for line in lines {
            out.line(line);
        }
        if guard.is_some() {
            out.close("}");
        }
        Ok(guard.is_some())
    }
}

/// `index * lanes + lane`
pub fn lane_index(index: &Code, lanes: u32, lane: u32) -> Code {
    let first = infix(BinaryOperator::Multiply, index.clone(), Code::atom(format!("{lanes}u")));
    if lane == 0 { first } else { infix(BinaryOperator::Add, first, Code::atom(format!("{lane}u"))) }
}
