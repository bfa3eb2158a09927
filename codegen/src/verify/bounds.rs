//! Bounds: which accesses are proved to be in range, so that they need no guard.
//!
//! One walk through each function keeps what is known at each point: what conditions that lead there say, the ranges of loops, what
//! locals were declared to be. Arithmetic wraps modulo 2^32: the form of a computed value equals the value only if the form is
//! proved to be in the range of the type, and stands for itself alone otherwise.

use std::collections::{HashMap, HashSet};

use super::KernelInfo;
use super::linear::{Form, Key, Knowledge};
use crate::ir::{
    BinaryOperator, Block, Builtin, CallArgument, Expression, ExpressionKind, Function, Handle, Local, LogicalOperator,
    MathFunction, Module, Place, Projection, Root, Scalar, Statement, StatementKind, Type, UnaryOperator, statements,
};

/// Takes the guard away from every place that is proved to be in range.
pub fn clear_guards(module: &mut Module, info: &KernelInfo) {
    let mut functions = std::mem::take(&mut module.functions);
    let mut entry = std::mem::take(&mut module.entry);
    for (_, function) in functions.iter_mut() {
        clear_in(module, info.workgroup_size, function);
    }
    clear_in(module, info.workgroup_size, &mut entry);
    module.functions = functions;
    module.entry = entry;
}

fn clear_in(module: &Module, workgroup_size: [u32; 3], function: &mut Function) {
    let mut body = std::mem::take(&mut function.body);
    let mut walk = Walk::new(module, function, workgroup_size);
    walk.block(&mut body);
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
    pub knowledge: &'k mut Knowledge,
}

/// Calls `visit` with each access of the kernel's own body to a binding, with what is known there.
pub fn touches(module: &Module, workgroup_size: [u32; 3], visit: &mut dyn FnMut(Touch<'_>)) {
    let mut body = module.entry.body.clone();
    let mut walk = Walk::new(module, &module.entry, workgroup_size);
    walk.visit = Some(visit);
    walk.block(&mut body);
}

struct Walk<'a> {
    module: &'a Module,
    function: &'a Function,
    workgroup_size: [u32; 3],
    knowledge: Knowledge,
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
}

const MAX: i128 = u32::MAX as i128;

/// The least and the greatest value of an integer type.
const fn limits(scalar: Scalar) -> Option<(i128, i128)> {
    match scalar {
        Scalar::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
        Scalar::U32 | Scalar::Index => Some((0, MAX)),
        Scalar::Bool | Scalar::F16 | Scalar::F32 | Scalar::Generic(_) => None,
    }
}

impl<'a> Walk<'a> {
    fn new(module: &'a Module, function: &'a Function, workgroup_size: [u32; 3]) -> Self {
        Self {
            module,
            function,
            workgroup_size,
            knowledge: Knowledge::default(),
            locals: HashMap::new(),
            names: HashMap::new(),
            conditions: HashMap::new(),
            versions: HashMap::new(),
            stores: 0,
            proved: HashSet::new(),
            visit: None,
        }
    }

    fn scalar_of(&self, ty: Handle<Type>) -> Option<Scalar> {
        match &self.module.types[ty] {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// The range of an integer expression's type.
    fn limits_of(&self, handle: Handle<Expression>) -> Option<(i128, i128)> {
        self.scalar_of(self.function.expressions[handle].ty).and_then(limits)
    }

    // Statements.

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
                self.place(place);
                let (root, whole, value) = (place.root, place.path.is_empty(), *value);
                self.assign(root, whole.then_some(value));
            }
            StatementKind::If { condition, accept, reject, .. } => {
                let [yes, no] = [self.says(*condition, true), self.says(*condition, false)];
                let before = self.versions.clone();
                self.scoped(&yes, accept);
                self.versions.clone_from(&before);
                self.scoped(&no, reject);
                self.touch_all([&*accept, &*reject]);
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
                self.touch_all(cases.iter().map(|case| &case.body).chain([&*default]));
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let (local, start, end, step) = (*local, *start, *end, *step);
                let facts = self.counts(local, start, end, step);
                self.touch_all([&*body]);
                self.scoped(&facts, body);
                self.touch_all([&*body]);
            }
            StatementKind::While { condition, body } => {
                let condition = *condition;
                self.touch_all([&*body]);
                self.accesses(condition);
                let yes = self.says(condition, true);
                self.scoped(&yes, body);
                self.touch_all([&*body]);
                if !super::structure::breaks(body) {
                    let no = self.says(condition, false);
                    self.learn_all(no);
                }
            }
            StatementKind::Loop { body } => {
                self.touch_all([&*body]);
                self.block(body);
                self.touch_all([&*body]);
            }
            StatementKind::UniformLoad { place, .. } | StatementKind::Atomic { place, .. } => self.place(place),
            StatementKind::Evaluate(_)
            | StatementKind::Return(_)
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Barrier
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
        if scalar.and_then(limits).is_some() {
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
        let form = match (value, self.scalar_of(ty).and_then(limits)) {
            (Some(value), Some(_)) => Some(self.exact(value)),
            _ => None,
        };
        self.touch(root);
        if let (Some(form), Some((low, high))) = (form, self.scalar_of(ty).and_then(limits)) {
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

    /// Every variable that the blocks store to has another value from here on.
    fn touch_all<'b>(&mut self, blocks: impl IntoIterator<Item = &'b Block>) {
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
        for root in roots {
            self.touch(root);
        }
    }

    /// The variables that calls in an expression may change.
    fn references(&self, handle: Handle<Expression>, roots: &mut Vec<Root>) {
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
        let Some((low, high)) = self.scalar_of(self.function.locals[local].ty).and_then(limits) else {
            return Vec::new();
        };
        let (start, end) = (self.exact(start), self.exact(end));
        let step = self.exact(step);
        let counter = self.knowledge.atom(Key::Local(local), low, high);
        let mut facts = vec![end.add(&counter, -1).plus(-1)];
        // A step that may lead beyond the type's range may wrap to below the start.
        let (least, most) = self.knowledge.range(&step);
        let beyond = end.times(-1).plus(high - most.max(1) + 1);
        if least >= 0 && self.knowledge.proves(&beyond) {
            facts.push(counter.add(&start, -1));
        }
        facts
    }

    // Accesses.

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
                if self.in_range(place) {
                    self.proved.insert(handle);
                }
            }
            kind => kind.operands(&mut |operand| self.accesses(*operand)),
        }
    }

    fn place(&mut self, place: &mut Place) {
        if self.in_range(place) {
            place.guarded = false;
        }
    }

    fn in_range(&mut self, place: &Place) -> bool {
        let mark = self.knowledge.mark();
        let proved = self.check_place(place);
        self.knowledge.forget(mark);
        proved
    }

    fn check_place(&mut self, place: &Place) -> bool {
        let module = self.module;
        let (root, mut length) = match place.root {
            Root::Binding(binding) => {
                let packed = i128::from(module.bindings[binding as usize].packed);
                let length = self.knowledge.atom(Key::Length(binding), 0, MAX);
                (module.bindings[binding as usize].element, (packed == 1).then_some(length))
            }
            Root::Workgroup(variable) => {
                let variable = &module.workgroup[variable];
                (variable.element, variable.length.literal().map(|length| Form::constant(length.into())))
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
                    _ => None,
                };
            }
            if let (Root::Binding(binding), 0, Some(_)) = (place.root, step, &self.visit) {
                self.report(binding, projection);
            }
            if let Projection::Index(index) | Projection::Vector { index, .. } = projection {
                let lanes = if let Projection::Vector { lanes, .. } = projection { i128::from(*lanes) } else { 1 };
                let fits = length.as_ref().is_some_and(|length| self.below(*index, lanes, length));
                proved &= fits;
            }
            ty = match (projection, ty) {
                (Projection::Index(_), ty) if step == 0 && is_element => ty,
                (Projection::Index(_) | Projection::Member(_), Type::Array { element, .. }) => {
                    module.types[element].clone()
                }
                (Projection::Index(_) | Projection::Member(_), Type::Vector { scalar, .. }) => Type::Scalar(scalar),
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
        let exact = self.exact(index);
        let congruent = self.congruent(index);
        [exact, congruent]
            .into_iter()
            .any(|form| self.knowledge.proves(&length.add(&form, -lanes).plus(-lanes)) && self.knowledge.proves(&form))
    }

    fn report(&mut self, binding: u32, projection: &Projection) {
        let (index, lanes) = match projection {
            Projection::Index(index) => (*index, 1),
            Projection::Vector { index, lanes } => (*index, u32::from(*lanes)),
            Projection::Member(_) => return,
        };
        let index = self.exact(index);
        if let Some(visit) = self.visit.as_mut() {
            visit(Touch { binding, index, lanes, knowledge: &mut self.knowledge });
        }
    }

    // Values.

    /// A form that equals the value.
    fn exact(&mut self, handle: Handle<Expression>) -> Form {
        let form = self.congruent(handle);
        match self.limits_of(handle) {
            Some((low, high)) if self.knowledge.within(&form, low, high) => form,
            Some((low, high)) => self.knowledge.atom(Key::Wrapped(form, low < 0), low, high),
            None => self.knowledge.fresh(0, MAX),
        }
    }

    /// A form that equals the value modulo 2^32.
    fn congruent(&mut self, handle: Handle<Expression>) -> Form {
        let function = self.function;
        let Some((low, high)) = self.limits_of(handle) else { return self.knowledge.fresh(0, MAX) };
        match &function.expressions[handle].kind {
            ExpressionKind::Literal(literal) => match literal.as_integer() {
                Some(value) => Form::constant(value.into()),
                None => self.knowledge.fresh(low, high),
            },
            ExpressionKind::Local(local) if self.locals.contains_key(local) => self.locals[local].clone(),
            ExpressionKind::Unary { operator: UnaryOperator::Negate, value } => self.congruent(*value).times(-1),
            // -x - 1, also without a sign.
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => self.congruent(*value).times(-1).plus(-1),
            ExpressionKind::Binary { operator, left, right } => self.binary(*operator, *left, *right, (low, high)),
            ExpressionKind::Math { function, arguments } => self.math(*function, arguments, (low, high)),
            ExpressionKind::Convert(value) | ExpressionKind::Bitcast(value) => {
                let from = self.scalar_of(function.expressions[*value].ty);
                match from {
                    Some(scalar) if limits(scalar).is_some() => self.congruent(*value),
                    Some(Scalar::Bool) => self.knowledge.fresh(0, 1),
                    _ => self.knowledge.fresh(low, high),
                }
            }
            ExpressionKind::Select { accept, reject, .. } => {
                let (accept, reject) = (self.exact(*accept), self.exact(*reject));
                let ((a, b), (c, d)) = (self.knowledge.range(&accept), self.knowledge.range(&reject));
                self.knowledge.fresh(a.min(c).max(low), b.max(d).min(high))
            }
            _ => match self.key(handle) {
                Some(key) => {
                    let (low, high) = self.key_range(&key, (low, high));
                    self.knowledge.atom(key, low, high)
                }
                None => self.knowledge.fresh(low, high),
            },
        }
    }

    /// What an expression that does not change is called.
    fn key(&self, handle: Handle<Expression>) -> Option<Key> {
        Some(match &self.function.expressions[handle].kind {
            ExpressionKind::Param(param) => Key::Param(*param),
            ExpressionKind::Length(binding) => Key::Length(*binding),
            ExpressionKind::ViewExtent { binding, axis } => Key::Extent(*binding, *axis),
            ExpressionKind::ViewStride { binding, axis } => Key::Stride(*binding, *axis),
            ExpressionKind::Builtin(builtin) => Key::Builtin(*builtin),
            ExpressionKind::Argument(argument) => Key::Argument(*argument),
            ExpressionKind::Local(local) => self.names.get(local).cloned().unwrap_or(Key::Local(*local)),
            ExpressionKind::Load(place) if place.path.is_empty() => self.version(place.root),
            ExpressionKind::Member { base, index } => Key::Part(Box::new(self.key(*base)?), *index),
            _ => return None,
        })
    }

    /// The range of an unknown, within its type's.
    fn key_range(&self, key: &Key, (low, high): (i128, i128)) -> (i128, i128) {
        let [x, y, z] = self.workgroup_size.map(i128::from);
        match key {
            Key::Builtin(Builtin::LocalIndex | Builtin::SubgroupIndex) => (0, x * y * z - 1),
            Key::Builtin(Builtin::SubgroupLane) => (0, 127),
            Key::Builtin(Builtin::SubgroupSize) => (1, 128),
            Key::Part(base, axis) if **base == Key::Builtin(Builtin::LocalId) => {
                (0, [x, y, z].get(*axis as usize).map_or(high, |size| size - 1))
            }
            _ => (low, high),
        }
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        (low, high): (i128, i128),
    ) -> Form {
        use BinaryOperator as B;
        match operator {
            B::Add => return self.congruent(left).add(&self.congruent(right), 1),
            B::Subtract => return self.congruent(left).add(&self.congruent(right), -1),
            _ => {}
        }
        let (a, b) = (self.exact(left), self.exact(right));
        let unsigned = low == 0;
        let (_, most_a) = self.knowledge.range(&a);
        let (least_b, most_b) = self.knowledge.range(&b);
        let atom = |walk: &mut Self, low: i128, high: i128| {
            walk.knowledge.atom(Key::Operation(operator, a.clone(), b.clone()), low, high)
        };
        match (operator, a.as_constant(), b.as_constant()) {
            (B::Divide, Some(number), Some(divisor)) if unsigned && divisor > 0 => Form::constant(number / divisor),
            (B::Remainder, Some(number), Some(divisor)) if unsigned && divisor > 0 => Form::constant(number % divisor),
            (B::Multiply, Some(factor), _) => b.times(factor),
            (B::Multiply, _, Some(factor)) => a.times(factor),
            (B::ShiftLeft, _, Some(amount)) => a.times(1 << (amount & 31)),
            (B::Multiply, ..) => {
                let product = atom(self, low, high);
                // Without wrapping, a product by at least 1 is no smaller than either side.
                if unsigned && most_a.saturating_mul(most_b) <= high {
                    self.knowledge.learn(product.times(-1).plus(most_a * most_b));
                }
                product
            }
            (B::Divide, _, Some(divisor)) if unsigned && divisor > 0 => self.quotient(&a, divisor),
            (B::ShiftRight, _, Some(amount)) if unsigned => self.quotient(&a, 1 << (amount & 31)),
            (B::Remainder, _, Some(divisor)) if unsigned && divisor > 0 => self.remainder(&a, divisor),
            (B::And, _, Some(mask)) if unsigned && (mask + 1).count_ones() == 1 => self.remainder(&a, mask + 1),
            (B::Divide, ..) if unsigned => {
                let quotient = atom(self, low, high);
                self.knowledge.learn(a.add(&quotient, -1));
                quotient
            }
            (B::Remainder, ..) if unsigned => {
                let rest = atom(self, low, high);
                self.knowledge.learn(a.add(&rest, -1));
                if self.knowledge.proves(&b.plus(-1)) {
                    self.knowledge.learn(b.add(&rest, -1).plus(-1));
                }
                rest
            }
            (B::And, ..) if unsigned => {
                let both = atom(self, low, high);
                self.knowledge.learn(a.add(&both, -1));
                self.knowledge.learn(b.add(&both, -1));
                both
            }
            (B::Or | B::Xor, ..) if unsigned => {
                let either = atom(self, low, high);
                let bits = 128 - most_a.max(most_b).max(0).leading_zeros();
                self.knowledge.learn(either.times(-1).plus((1 << bits) - 1));
                either
            }
            (B::ShiftRight, ..) if unsigned && least_b >= 0 => {
                let shifted = atom(self, low, high);
                self.knowledge.learn(a.add(&shifted, -1));
                shifted
            }
            _ => atom(self, low, high),
        }
    }

    /// `a / divisor` of a value without a sign.
    fn quotient(&mut self, a: &Form, divisor: i128) -> Form {
        let key = Key::Operation(BinaryOperator::Divide, a.clone(), Form::constant(divisor));
        let quotient = self.knowledge.atom(key, 0, MAX / divisor);
        self.knowledge.learn(a.add(&quotient, -divisor));
        self.knowledge.learn(quotient.times(divisor).plus(divisor - 1).add(a, -1));
        // Said of whole numbers, which the two lines above are not: 255 / 16 is at most 15, not 15.9.
        let (_, most) = self.knowledge.range(a);
        self.knowledge.learn(quotient.times(-1).plus(most.max(0) / divisor));
        quotient
    }

    /// `a % divisor` of a value without a sign.
    fn remainder(&mut self, a: &Form, divisor: i128) -> Form {
        let quotient = self.quotient(a, divisor);
        let key = Key::Operation(BinaryOperator::Remainder, a.clone(), Form::constant(divisor));
        let rest = self.knowledge.atom(key, 0, divisor - 1);
        self.knowledge.learn(a.add(&rest, -1));
        let difference = a.add(&quotient, -divisor).add(&rest, -1);
        self.knowledge.learn(difference.times(-1));
        self.knowledge.learn(difference);
        rest
    }

    fn math(&mut self, function: MathFunction, arguments: &[Handle<Expression>], (low, high): (i128, i128)) -> Form {
        use MathFunction as M;
        match function {
            M::Min | M::Max | M::Clamp => {
                let integers = arguments.iter().all(|argument| self.limits_of(*argument).is_some());
                if !integers {
                    return self.knowledge.fresh(low, high);
                }
                let forms: Vec<Form> = arguments.iter().map(|argument| self.exact(*argument)).collect();
                let result = self.knowledge.atom(Key::Math(function, forms.clone()), low, high);
                match function {
                    M::Min => {
                        self.learn_all(forms.iter().map(|form| form.add(&result, -1)).collect());
                        let least = forms.iter().map(|form| self.knowledge.range(form).0).min().unwrap_or(low);
                        self.knowledge.learn(result.plus(-least));
                    }
                    M::Max => {
                        self.learn_all(forms.iter().map(|form| result.add(form, -1)).collect());
                        let most = forms.iter().map(|form| self.knowledge.range(form).1).max().unwrap_or(high);
                        self.knowledge.learn(result.times(-1).plus(most));
                    }
                    // min(max(x, low), high): not above `high`, and not below the lesser of the two bounds.
                    _ => {
                        self.knowledge.learn(forms[2].add(&result, -1));
                        let least = self.knowledge.range(&forms[1]).0.min(self.knowledge.range(&forms[2]).0);
                        self.knowledge.learn(result.plus(-least));
                    }
                }
                result
            }
            M::CountOnes | M::LeadingZeros | M::TrailingZeros => self.knowledge.fresh(0, 32),
            _ => self.knowledge.fresh(low, high),
        }
    }

    // Conditions.

    /// What follows if a condition is `truth`.
    fn says(&mut self, handle: Handle<Expression>, truth: bool) -> Vec<Form> {
        let function = self.function;
        match &function.expressions[handle].kind {
            ExpressionKind::Logical { operator, left, right } => {
                self.both((*operator == LogicalOperator::And) == truth, *left, *right, truth)
            }
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => self.says(*value, !truth),
            ExpressionKind::Local(local) => match self.conditions.get(local) {
                Some(says) => says[usize::from(!truth)].clone(),
                None => Vec::new(),
            },
            ExpressionKind::Binary { operator, left, right } => {
                let compares = self.limits_of(*left).is_some() && self.limits_of(*right).is_some();
                match operator {
                    BinaryOperator::And if !compares => self.both(truth, *left, *right, truth),
                    BinaryOperator::Or if !compares => self.both(!truth, *left, *right, truth),
                    operator if compares && operator.is_comparison() => {
                        self.comparison(*operator, *left, *right, truth)
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn both(&mut self, both: bool, left: Handle<Expression>, right: Handle<Expression>, truth: bool) -> Vec<Form> {
        if !both {
            return Vec::new();
        }
        let mut facts = self.says(left, truth);
        facts.extend(self.says(right, truth));
        facts
    }

    fn comparison(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        truth: bool,
    ) -> Vec<Form> {
        use BinaryOperator as B;
        let (a, b) = (self.exact(left), self.exact(right));
        let operator = match (operator, truth) {
            (operator, true) => operator,
            (B::Less, false) => B::GreaterEqual,
            (B::LessEqual, false) => B::Greater,
            (B::Greater, false) => B::LessEqual,
            (B::GreaterEqual, false) => B::Less,
            (B::Equal, false) => B::NotEqual,
            (_, false) => B::Equal,
        };
        let (up, down) = (b.add(&a, -1), a.add(&b, -1));
        match operator {
            B::Less => vec![up.plus(-1)],
            B::LessEqual => vec![up],
            B::Greater => vec![down.plus(-1)],
            B::GreaterEqual => vec![down],
            B::Equal => vec![up, down],
            _ => [up, down]
                .into_iter()
                .filter(|difference| self.knowledge.proves(difference))
                .map(|difference| difference.plus(-1))
                .collect(),
        }
    }
}

/// Whether control never gets past the block.
fn leaves(block: &Block) -> bool {
    block.iter().any(|statement| match &statement.kind {
        StatementKind::Return(_) | StatementKind::Break | StatementKind::Continue => true,
        StatementKind::If { accept, reject, .. } => leaves(accept) && leaves(reject),
        _ => false,
    })
}
