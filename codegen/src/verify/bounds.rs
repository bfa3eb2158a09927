//! Bounds: which accesses are proved to be in range, so that they need no guard.
//!
//! One walk through each function keeps what is known at each point: what conditions that lead there say, the ranges of loops, what
//! locals were declared to be; and in a function the ranges of what its calls hand over. Arithmetic wraps modulo 2 to the power of its type's bits: the form of a computed value equals the value only if
//! the form is proved to be in the range of the type, and stands for itself alone otherwise. Values of 64 bits are followed where indices have as many.

mod calls;
mod forms;
mod matrix;
mod report;

#[cfg(feature = "lower")]
use super::KernelInfo;
use super::linear::{Form, Key, Knowledge};
use crate::hashing::{HashMap, HashSet};
use crate::ir::{
    Asynchronous, Block, CallArgument, Expression, ExpressionKind, Function, Handle, Local, LogicalOperator,
    MatrixOperation, Module, Place, Projection, Root, Scalar, Size, SizeOperator, Span, Statement, StatementKind,
    TileOperation, Type, leaves, statements,
};

/// Takes the guard away from every place that is proved to be in range.
#[cfg(feature = "lower")]
pub fn clear_guards(module: &mut Module, info: &KernelInfo) {
    clear(module, info.workgroup_size, None);
}

/// The same, and calls `visit` with each access of the kernel's own body to a binding, with what is known there.
pub fn clear_guards_telling(module: &mut Module, workgroup_size: [u32; 3], visit: &mut dyn FnMut(Touch<'_>)) {
    clear(module, workgroup_size, Some(visit));
}

fn clear(module: &mut Module, workgroup_size: [u32; 3], visit: Option<&mut dyn FnMut(Touch<'_>)>) {
    let mut functions = std::mem::take(&mut module.functions);
    let mut entry = std::mem::take(&mut module.entry);
    let order = calls::callers_first(&functions, &entry);
    let guarded = calls::reaching(&functions, &order, is_guarded);
    let mut ranges = Ranges::default();
    if visit.is_some() || is_guarded(&entry) || guarded.contains(&true) {
        clear_in(module, workgroup_size, &mut entry, None, &mut ranges, visit);
    }
    for handle in order {
        if guarded[handle.index()] {
            clear_in(module, workgroup_size, &mut functions[handle], Some(handle), &mut ranges, None);
        }
    }
    module.functions = functions;
    module.entry = entry;
}

fn clear_in(
    module: &Module,
    workgroup_size: [u32; 3],
    function: &mut Function,
    handle: Option<Handle<Function>>,
    ranges: &mut Ranges,
    mut visit: Option<&mut dyn FnMut(Touch<'_>)>,
) {
    let mut body = std::mem::take(&mut function.body);
    let mut walk = Walk::new(module, function, workgroup_size);
    walk.follow(handle, ranges);
    let mut tell = visit.as_mut().map(|visit| |touch: Touch<'_>| visit(touch));
    walk.visit = tell.as_mut().map(|tell| tell as &mut dyn FnMut(Touch<'_>));
    walk.block(&mut body);
    *ranges = std::mem::take(&mut walk.calls);
    let proved = walk.proved;
    for load in proved {
        if let ExpressionKind::Load(place) = &mut function.expressions[load].kind {
            place.guarded = false;
        }
    }
    function.body = body;
}

/// An access to a binding, for [`super::disjoint`].
pub struct Touch<'k> {
    pub binding: u32,
    /// The scalar or vector index as it is.
    pub index: Form,
    pub lanes: u32,
    /// The module without its functions.
    pub module: &'k Module,
    pub knowledge: &'k mut Knowledge,
}

/// Whether a guard is left in a function.
fn is_guarded(function: &Function) -> bool {
    let mut guarded = false;
    super::access::places(function, &mut |place, _| guarded |= place.guarded);
    guarded
}

use calls::Ranges;
pub use report::AccessReport;
#[cfg(feature = "lower")]
pub use report::accesses;

struct Walk<'a> {
    module: &'a Module,
    function: &'a Function,
    workgroup_size: [u32; 3],
    knowledge: Knowledge,
    /// Whether any call of the function is given a variable.
    hands_on: bool,
    /// What immutable integer locals were declared to be.
    locals: HashMap<Handle<Local>, Form>,
    /// What immutable locals of other types are another name of.
    names: HashMap<Handle<Local>, Key>,
    /// What immutable `bool` locals say if they are true, and if they are false.
    conditions: HashMap<Handle<Local>, [Vec<Form>; 2]>,
    /// How often each variable was stored to.
    versions: HashMap<Root, u32>,
    stores: u32,
    /// Loads that need no guard.
    proved: HashSet<Handle<Expression>>,
    visit: Option<&'a mut dyn FnMut(Touch<'_>)>,
    /// What was found of each access, if somebody asks.
    reports: Option<Vec<AccessReport>>,
    /// The ranges of the function's own arguments, as far as they are known.
    arguments: Vec<Option<(i128, i128)>>,
    /// What calls were seen to hand over.
    calls: Ranges,
    /// How many elements behind its index the access at hand touches too.
    behind: i128,
    /// Of the access at hand, why it is in range.
    because: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(module: &'a Module, function: &'a Function, workgroup_size: [u32; 3]) -> Self {
        let is_reference = |argument: &CallArgument| matches!(argument, CallArgument::Reference(_));
        let hands_on = function.expressions.iter().any(|(_, expression)| match &expression.kind {
            ExpressionKind::Call { arguments, .. } => arguments.iter().any(is_reference),
            _ => false,
        });
        Self {
            module,
            function,
            workgroup_size,
            hands_on,
            knowledge: Knowledge::new(module.index.is_wide()),
            locals: HashMap::default(),
            names: HashMap::default(),
            conditions: HashMap::default(),
            versions: HashMap::default(),
            stores: 0,
            proved: HashSet::default(),
            visit: None,
            reports: None,
            arguments: Vec::new(),
            calls: Ranges::default(),
            behind: 0,
            because: Vec::new(),
        }
    }

    /// Goes on from what the calls in other functions said, of this one among others.
    fn follow(&mut self, own: Option<Handle<Function>>, calls: &mut Ranges) {
        self.arguments = own.and_then(|own| calls.get(&own)).cloned().unwrap_or_default();
        self.calls = std::mem::take(calls);
    }

    /// The largest index.
    fn most(&self) -> i128 {
        self.module.index.largest().into()
    }

    /// The least and the greatest value of an integer type that is followed: those of 32 bits, and the type of indices.
    fn limits(&self, scalar: Scalar) -> Option<(i128, i128)> {
        match scalar {
            Scalar::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            Scalar::U32 | Scalar::Index => Some((0, u32::MAX.into())),
            scalar if scalar == self.module.index.scalar() => Some((0, self.most())),
            _ => None,
        }
    }

    /// The range of a type that is followed.
    fn limits_of_type(&self, ty: Handle<Type>) -> Option<(i128, i128)> {
        self.scalar_of(ty).and_then(|scalar| self.limits(scalar))
    }

    fn scalar_of(&self, ty: Handle<Type>) -> Option<Scalar> {
        match &self.module.types[ty] {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// The range of an integer expression's type.
    fn limits_of(&self, handle: Handle<Expression>) -> Option<(i128, i128)> {
        self.limits_of_type(self.function.expressions[handle].ty)
    }

    fn block(&mut self, block: &mut Block) {
        let mark = self.knowledge.mark();
        for statement in block {
            self.statement(statement);
        }
        self.knowledge.forget(mark);
    }

    fn scoped(&mut self, facts: &[Form], block: &mut Block) {
        let mark = self.knowledge.mark();
        for fact in facts {
            self.knowledge.learn(fact.clone());
        }
        self.block(block);
        self.knowledge.forget(mark);
    }

    fn statement(&mut self, statement: &mut Statement) {
        // A `while`'s condition is evaluated in every round: what holds before the first says nothing about the others.
        if !matches!(statement.kind, StatementKind::While { .. }) {
            statement.kind.operands(&mut |operand| self.accesses(*operand));
        }
        match &mut statement.kind {
            StatementKind::Let { local, value } => self.declare(*local, *value),
            StatementKind::Store { place, value } => {
                self.place(place, statement.span);
                let (root, whole, value) = (place.root, place.path.is_empty(), *value);
                self.assign(root, whole.then_some(value));
            }
            StatementKind::If { condition, accept, reject, .. } => {
                let [yes, no] = [self.says(*condition, true), self.says(*condition, false)];
                let before = self.versions.clone();
                self.scoped(&yes, accept);
                self.versions.clone_from(&before);
                self.scoped(&no, reject);
                let changed = self.changed([&*accept, &*reject]);
                self.touch_each(&changed);
                // Where one side leaves, the other's condition holds from here on.
                if leaves(accept) {
                    self.learn_all(no);
                } else if leaves(reject) {
                    self.learn_all(yes);
                }
            }
            StatementKind::Switch { cases, default, .. } => {
                let before = self.versions.clone();
                for case in &mut *cases {
                    self.block(&mut case.body);
                    self.versions.clone_from(&before);
                }
                self.block(default);
                let changed = self.changed(cases.iter().map(|case| &case.body).chain([&*default]));
                self.touch_each(&changed);
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let (local, start, end, step) = (*local, *start, *end, *step);
                let facts = self.counts(local, start, end, step);
                let changed = self.changed([&*body]);
                self.touch_each(&changed);
                self.scoped(&facts, body);
                self.touch_each(&changed);
            }
            StatementKind::While { condition, body } => {
                let condition = *condition;
                let changed = self.changed([&*body]);
                self.touch_each(&changed);
                self.accesses(condition);
                let yes = self.says(condition, true);
                self.scoped(&yes, body);
                self.touch_each(&changed);
                if !crate::ir::breaks(body) {
                    let no = self.says(condition, false);
                    self.learn_all(no);
                }
            }
            StatementKind::Loop { body } => {
                let changed = self.changed([&*body]);
                self.touch_each(&changed);
                self.block(body);
                self.touch_each(&changed);
            }
            StatementKind::UniformLoad { place, .. } | StatementKind::Atomic { place, .. } => {
                self.place(place, statement.span);
            }
            StatementKind::Matrix { operation, .. } => match operation {
                MatrixOperation::Load { .. } | MatrixOperation::Store { .. } => self.matrix(statement),
                MatrixOperation::MultiplyAdd { .. } => {}
            },
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }) => {
                let count = crate::copies::number(self.module, self.function, *count).unwrap_or(1);
                self.behind = i128::from(count) - 1;
                self.place(to, statement.span);
                self.place(from, statement.span);
                self.behind = 0;
            }
            StatementKind::Tile(operation) => {
                if let (TileOperation::Copy { from: Root::Binding(binding), .. }, true) =
                    (operation, self.visit.is_some())
                {
                    self.touched_anywhere(*binding);
                }
            }
            StatementKind::Reporting(body) => self.block(body),
            StatementKind::Asynchronous(Asynchronous::Commit | Asynchronous::Wait(_))
            | StatementKind::Report(_)
            | StatementKind::Evaluate(_)
            | StatementKind::Return(_)
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Barrier
            | StatementKind::Fence(_)
            | StatementKind::Subgroup { .. } => {}
        }
        let mut called = Vec::new();
        statement.kind.operands(&mut |operand| self.references(*operand, &mut called));
        for root in called {
            self.touch(root);
        }
    }

    fn learn_all(&mut self, facts: Vec<Form>) {
        for fact in facts {
            self.knowledge.learn(fact);
        }
    }

    fn declare(&mut self, local: Handle<Local>, value: Option<Handle<Expression>>) {
        let item = &self.function.locals[local];
        let scalar = self.scalar_of(item.ty);
        if item.mutable {
            return self.assign(Root::Local(local), value);
        }
        let Some(value) = value else { return };
        if self.limits_of_type(item.ty).is_some() {
            let form = self.exact(value);
            self.locals.insert(local, form);
        } else if scalar == Some(Scalar::Bool) {
            let says = [self.says(value, true), self.says(value, false)];
            self.conditions.insert(local, says);
        } else if let Some(key) = self.key(value) {
            self.names.insert(local, key);
        }
    }

    /// A variable has a new value from here on, which is known if all of it is stored.
    fn assign(&mut self, root: Root, value: Option<Handle<Expression>>) {
        let ty = match root {
            Root::Local(local) => self.function.locals[local].ty,
            Root::Argument(argument) => self.function.arguments[argument as usize].ty,
            Root::Binding(_) | Root::Workgroup(_) => return,
        };
        let form = match (value, self.limits_of_type(ty)) {
            (Some(value), Some(_)) => Some(self.exact(value)),
            _ => None,
        };
        self.touch(root);
        if let (Some(form), Some((low, high))) = (form, self.limits_of_type(ty)) {
            let variable = self.knowledge.atom(self.version(root), low, high);
            self.knowledge.learn(variable.add(&form, -1));
            self.knowledge.learn(form.add(&variable, -1));
        }
    }

    /// The variable's value is another from here on.
    fn touch(&mut self, root: Root) {
        if matches!(root, Root::Local(_) | Root::Argument(_)) {
            self.stores += 1;
            self.versions.insert(root, self.stores);
        }
    }

    fn version(&self, root: Root) -> Key {
        Key::Variable(root, self.versions.get(&root).copied().unwrap_or(0))
    }

    /// The variables that the blocks store to.
    fn changed<'b>(&self, blocks: impl IntoIterator<Item = &'b Block>) -> Vec<Root> {
        let mut roots = Vec::new();
        for block in blocks {
            statements(block, &mut |statement| {
                match &statement.kind {
                    StatementKind::Store { place, .. } => roots.push(place.root),
                    StatementKind::Let { local, .. } => roots.push(Root::Local(*local)),
                    _ => {}
                }
                statement.kind.operands(&mut |operand| self.references(*operand, &mut roots));
            });
        }
        roots
    }

    /// Each of the variables has another value from here on.
    fn touch_each(&mut self, roots: &[Root]) {
        for root in roots {
            self.touch(*root);
        }
    }

    /// The variables that calls in an expression may change.
    fn references(&self, handle: Handle<Expression>, roots: &mut Vec<Root>) {
        if !self.hands_on {
            return;
        }
        self.function.tree(handle, &mut |part| {
            if let ExpressionKind::Call { arguments, .. } = &self.function.expressions[part].kind {
                for argument in arguments {
                    if let CallArgument::Reference(root) = argument {
                        roots.push(*root);
                    }
                }
            }
        });
    }

    /// What is known of a loop's counter inside the loop.
    fn counts(
        &mut self,
        local: Handle<Local>,
        start: Handle<Expression>,
        end: Handle<Expression>,
        step: Handle<Expression>,
    ) -> Vec<Form> {
        let Some((low, high)) = self.limits_of_type(self.function.locals[local].ty) else {
            return Vec::new();
        };
        let (start, end) = (self.exact(start), self.exact(end));
        let step = self.exact(step);
        // A step that may lead beyond the type's range may wrap to below the start.
        let (least, most) = self.knowledge.range(&step);
        let beyond = end.times(-1).plus(high - most.max(1) + 1);
        let rises = least >= 0 && self.knowledge.proves(&beyond);
        // What runs never may start beyond the type's range: ranges stay upright there too.
        let first = if rises { self.knowledge.range(&start).0.clamp(low, high) } else { low };
        let last = (self.knowledge.range(&end).1 - 1).clamp(first, high);
        let counter = self.knowledge.atom(Key::Local(local), first, last);
        let mut facts = vec![end.add(&counter, -1).plus(-1)];
        if rises {
            facts.push(counter.add(&start, -1));
        }
        facts
    }

    /// Looks at every place that an expression reads.
    fn accesses(&mut self, handle: Handle<Expression>) {
        let function = self.function;
        match &function.expressions[handle].kind {
            ExpressionKind::Logical { operator, left, right } => {
                self.accesses(*left);
                let mark = self.knowledge.mark();
                let facts = self.says(*left, *operator == LogicalOperator::And);
                self.learn_all(facts);
                self.accesses(*right);
                self.knowledge.forget(mark);
            }
            ExpressionKind::Load(place) => {
                place.indices(&mut |index| self.accesses(*index));
                if self.in_range(place, function.expressions[handle].span) {
                    self.proved.insert(handle);
                }
            }
            kind => {
                if let ExpressionKind::Call { function, arguments } = kind {
                    self.call(*function, arguments);
                }
                kind.operands(&mut |operand| self.accesses(*operand));
            }
        }
    }

    fn place(&mut self, place: &mut Place, span: Span) {
        if self.in_range(place, span) {
            place.guarded = false;
        }
    }

    fn in_range(&mut self, place: &Place, span: Span) -> bool {
        // What was proved once holds: only somebody who asks wants to hear it again.
        if !place.guarded && self.visit.is_none() && self.reports.is_none() {
            return true;
        }
        let mark = self.knowledge.mark();
        let proved = self.check_place(place);
        self.knowledge.forget(mark);
        if self.reports.is_some() {
            self.report_access(place, span, proved);
        }
        proved
    }

    /// The length of workgroup memory: a number, or a sum of specialisation constants; products of them are not spoken of.
    fn length(&mut self, size: &Size) -> Option<Form> {
        match size {
            Size::Literal(value) => Some(Form::constant((*value).into())),
            Size::Generic(_) => None,
            Size::Param(index) => {
                let range = self.module.params.get(*index as usize)?.specialise?;
                Some(self.knowledge.atom(Key::Param(*index), range.low.into(), range.high.into()))
            }
            Size::Binary(operator, left, right) => {
                let (left, right) = (self.length(left)?, self.length(right)?);
                match (operator, left.as_constant(), right.as_constant()) {
                    (SizeOperator::Add, ..) => Some(left.add(&right, 1)),
                    (SizeOperator::Subtract, ..) => Some(left.add(&right, -1)),
                    (SizeOperator::Multiply, Some(factor), _) => Some(Form::constant(0).add(&right, factor)),
                    (SizeOperator::Multiply, _, Some(factor)) => Some(Form::constant(0).add(&left, factor)),
                    _ => None,
                }
            }
        }
    }

    fn check_place(&mut self, place: &Place) -> bool {
        let module = self.module;
        let (root, mut length) = match place.root {
            Root::Binding(binding) => {
                let packed = i128::from(module.bindings[binding as usize].packed);
                let length = self.knowledge.atom(Key::Length(binding), 0, self.most());
                (module.bindings[binding as usize].element, (packed == 1).then_some(length))
            }
            Root::Workgroup(variable) => {
                let variable = &module.workgroup[variable];
                let exact = variable.exact.as_ref().unwrap_or(&variable.length);
                (variable.element, self.length(exact))
            }
            Root::Local(local) => (self.function.locals[local].ty, None),
            Root::Argument(argument) => (self.function.arguments[argument as usize].ty, None),
        };
        let is_element = matches!(place.root, Root::Binding(_) | Root::Workgroup(_));
        let mut ty = module.types[root].clone();
        let mut proved = true;
        for (step, projection) in place.path.iter().enumerate() {
            if step > 0 || !is_element {
                length = match &ty {
                    Type::Array { length, .. } => length.literal().map(|length| Form::constant(length.into())),
                    Type::Vector { lanes, .. } => Some(Form::constant((*lanes).into())),
                    Type::Matrix(matrix) => Some(self.matrix_length(matrix)),
                    _ => None,
                };
            }
            if let (Root::Binding(binding), 0, Some(_)) = (place.root, step, &self.visit) {
                self.report(binding, projection);
            }
            if let Projection::Index(index) | Projection::Vector { index, .. } = projection {
                let lanes = if let Projection::Vector { lanes, .. } = projection { i128::from(*lanes) } else { 1 };
                let end = length.clone().map(|length| length.plus(-self.behind));
                let fits = end.is_some_and(|end| self.below(*index, lanes, &end));
                proved &= fits;
            }
            ty = match (projection, ty) {
                (Projection::Index(_), ty) if step == 0 && is_element => ty,
                (Projection::Index(_) | Projection::Member(_), Type::Array { element, .. }) => {
                    module.types[element].clone()
                }
                (Projection::Index(_) | Projection::Member(_), Type::Vector { scalar, .. }) => Type::Scalar(scalar),
                (Projection::Index(_), Type::Matrix(matrix)) => Type::Scalar(matrix.scalar),
                (Projection::Member(field), Type::Struct(item)) => {
                    match module.structs[item].fields.get(*field as usize) {
                        Some((_, field)) => module.types[*field].clone(),
                        None => return false,
                    }
                }
                (_, ty) => ty,
            };
        }
        proved
    }

    /// Whether `index * lanes + lanes - 1 < length`.
    fn below(&mut self, index: Handle<Expression>, lanes: i128, length: &Form) -> bool {
        let congruent = self.congruent(index);
        let exact = self.exact_of(index, &congruent);
        let others = (congruent != exact).then_some(congruent);
        for form in [exact].into_iter().chain(others) {
            let below = length.add(&form, -lanes).plus(-lanes);
            if self.reports.is_none() {
                if self.knowledge.proves(&below) && self.knowledge.proves(&form) {
                    return true;
                }
            } else if let (Some(below), Some(above)) = (self.knowledge.proof(&below), self.knowledge.proof(&form)) {
                self.explain([below, above]);
                return true;
            }
        }
        false
    }

    fn report(&mut self, binding: u32, projection: &Projection) {
        let (index, lanes) = match projection {
            Projection::Index(index) => (*index, 1),
            Projection::Vector { index, lanes } => (*index, u32::from(*lanes)),
            Projection::Member(_) => return,
        };
        let index = self.exact(index);
        if let Some(visit) = self.visit.as_mut() {
            visit(Touch { binding, index, lanes, module: self.module, knowledge: &mut self.knowledge });
        }
    }
}
