//! 64-bit types where the device lacks them: a value is a vector of two words, the lower first, which is how memory holds it.
//!
//! The verifier leaves nothing here but what words can say: moves, conversions between integers, equality of integers, and the words themselves. Where there are
//! 64-bit types, a function takes them apart.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::FunctionBuilder;
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    Arena, BinaryOperator as B, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, MathFunction,
    Module, Scalar, Size, Span, Type, UnaryOperator,
};
use crate::names::FunctionNames;
use crate::target::{Feature, Profile};
use crate::verify::{is_split, splits};

/// Whether values of the scalar are two words for that profile.
fn is_words(scalar: Scalar, profile: &Profile) -> bool {
    let has = |feature: Feature| feature.always(profile.target) || profile.features.has(feature);
    match scalar {
        Scalar::I64 | Scalar::U64 => !has(Feature::Int64),
        Scalar::F64 => !has(Feature::Float64),
        _ => false,
    }
}

const PAIR: Type = Type::vector(2, Scalar::U32);

/// Replaces what the profile does not have, and names what stands for it.
pub fn lower(module: &mut Module, profile: &Profile) -> Result<Option<&'static str>, Diagnostics> {
    let lacking = module.types.iter().any(|(_, ty)| ty.scalar().is_some_and(|scalar| is_words(scalar, profile)));
    if !lacking && !splits(module, |_| true) {
        return Ok(None);
    }
    let old_types = module.types.clone();
    let mut types = HashMap::new();
    for (handle, _) in old_types.iter() {
        as_words(module, handle, profile, &mut types);
    }
    let becomes = |ty: &mut Handle<Type>| *ty = types.get(ty).copied().unwrap_or(*ty);
    for (_, item) in module.structs.iter_mut() {
        item.fields.iter_mut().for_each(|(_, field)| becomes(field));
    }
    module.workgroup.iter_mut().for_each(|(_, variable)| becomes(&mut variable.element));
    module.bindings.iter_mut().for_each(|binding| becomes(&mut binding.element));
    // An array of pairs is no parameter; twice as many words are.
    let mut doubled = Vec::new();
    let word = module.intern(Type::Scalar(Scalar::U32));
    for index in 0..module.params.len() {
        let ty = module.params[index].ty;
        let length = match &old_types[ty] {
            Type::Array { element, length } if types.get(element) != Some(element) => length.literal(),
            _ => None,
        };
        module.params[index].ty = match length {
            Some(length) => module.intern(Type::Array { element: word, length: Size::Literal(2 * length) }),
            None => types.get(&ty).copied().unwrap_or(ty),
        };
        doubled.push(length);
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Wide { module, profile, old_types, types, doubled, names, helpers: HashMap::new() };
    rewrite_all(&mut pass)?;
    Ok(lacking.then_some("64-bit types as two words"))
}

/// The type with pairs of words for 64-bit scalars. Vectors of such are left: nothing that is lowered has them.
fn as_words(
    module: &mut Module,
    ty: Handle<Type>,
    profile: &Profile,
    known: &mut HashMap<Handle<Type>, Handle<Type>>,
) -> Handle<Type> {
    if let Some(new) = known.get(&ty) {
        return *new;
    }
    let new = match module.types[ty].clone() {
        Type::Scalar(scalar) if is_words(scalar, profile) => module.intern(PAIR),
        Type::Array { element, length } => {
            let element = as_words(module, element, profile, known);
            module.intern(Type::Array { element, length })
        }
        _ => ty,
    };
    known.insert(ty, new);
    new
}

/// Functions on pairs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Helper {
    /// Whether two pairs are equal.
    Equal,
    /// The pair of an `i32`.
    Extend,
    /// The pair of a `u64`.
    Split,
}

struct Wide<'a> {
    module: &'a mut Module,
    profile: &'a Profile,
    old_types: Arena<Type>,
    types: HashMap<Handle<Type>, Handle<Type>>,
    /// The length of each parameter that is an array of pairs.
    doubled: Vec<Option<u32>>,
    names: FunctionNames,
    helpers: HashMap<Helper, Handle<Function>>,
}

type Value = Handle<Expression>;

impl Wide<'_> {
    /// Whether a type is one scalar that is two words.
    fn is_pair(&self, ty: Handle<Type>) -> bool {
        matches!(&self.old_types[ty], Type::Scalar(scalar) if is_words(*scalar, self.profile))
    }

    fn intern(&mut self, ty: Type) -> Handle<Type> {
        self.module.intern(ty)
    }

    fn word(&mut self, copy: &mut Copy<'_>, value: u32, span: Span) -> Value {
        let ty = self.intern(Type::Scalar(Scalar::U32));
        copy.add(ExpressionKind::Literal(Literal::U32(value)), ty, span)
    }

    fn pair(&mut self, copy: &mut Copy<'_>, low: Value, high: Value, span: Span) -> Value {
        let ty = self.intern(PAIR);
        copy.add(ExpressionKind::Compose(vec![low, high]), ty, span)
    }

    fn helper(&mut self, helper: Helper) -> Handle<Function> {
        if let Some(known) = self.helpers.get(&helper) {
            return *known;
        }
        let name = self.names.fresh(match helper {
            Helper::Equal => "same_words",
            Helper::Extend => "extended",
            Helper::Split => "words",
        });
        let pair = self.module.intern(PAIR);
        // A target that lacks a type has no name for it.
        let number = if helper == Helper::Split { Scalar::U64 } else { Scalar::I32 };
        let (number, flag) = (self.module.intern(Type::Scalar(number)), self.module.intern(Type::Scalar(Scalar::Bool)));
        let mut body = FunctionBuilder::new(self.module, &name);
        let result = match helper {
            Helper::Equal => {
                body.argument("a", pair);
                body.argument("b", pair);
                body.result(flag);
                let [low, high] = [0, 1].map(|lane| {
                    let (a, b) = (body.get_argument(0), body.get_argument(1));
                    let (a, b) = (body.lane(a, lane), body.lane(b, lane));
                    body.binary(B::Equal, a, b)
                });
                body.binary(B::And, low, high)
            }
            Helper::Extend | Helper::Split => {
                body.argument("x", number);
                body.result(pair);
                let x = body.get_argument(0);
                let low = body.convert(x, Scalar::U32);
                // The upper word of a number of 64 bits; of one of 32 its sign.
                let (x, by) = (body.get_argument(0), body.u32(if helper == Helper::Split { 32 } else { 31 }));
                let high = body.binary(B::ShiftRight, x, by);
                let high = body.convert(high, Scalar::U32);
                body.compose(vec![low, high])
            }
        };
        body.return_value(Some(result));
        let function = body.finish();
        self.helpers.insert(helper, function);
        function
    }

    fn call(&mut self, copy: &mut Copy<'_>, helper: Helper, arguments: Vec<Value>, span: Span) -> Value {
        let ty = self.intern(match helper {
            Helper::Equal => Type::Scalar(Scalar::Bool),
            Helper::Extend | Helper::Split => PAIR,
        });
        let function = self.helper(helper);
        let arguments = arguments.into_iter().map(CallArgument::Value).collect();
        copy.add(ExpressionKind::Call { function, arguments }, ty, span)
    }

    fn convert(&mut self, copy: &mut Copy<'_>, value: Value, handle: Value) -> Result<Value, Diagnostic> {
        let Expression { ty, span, .. } = copy.old.expressions[handle];
        let from = copy.old.expressions[value].ty;
        let inner = self.expression(copy, value)?;
        match (self.is_pair(from), self.is_pair(ty)) {
            (true, true) => Ok(inner),
            (true, false) => {
                let word = self.intern(Type::Scalar(Scalar::U32));
                let low = copy.add(ExpressionKind::Member { base: inner, index: 0 }, word, span);
                Ok(if ty == word { low } else { copy.add(ExpressionKind::Convert(low), ty, span) })
            }
            (false, true) if self.old_types[from] == Type::Scalar(Scalar::I32) => {
                Ok(self.call(copy, Helper::Extend, vec![inner], span))
            }
            (false, true) => {
                let word = self.intern(Type::Scalar(Scalar::U32));
                let low = if from == word { inner } else { copy.add(ExpressionKind::Convert(inner), word, span) };
                let high = self.word(copy, 0, span);
                Ok(self.pair(copy, low, high, span))
            }
            (false, false) => Ok(copy.add(ExpressionKind::Convert(inner), ty, span)),
        }
    }

    /// An element of an array parameter, from its two words; `at` makes the index of one of them.
    fn element(
        &mut self,
        copy: &mut Copy<'_>,
        param: u32,
        span: Span,
        at: &mut dyn FnMut(&mut Self, &mut Copy<'_>, u32) -> Result<Value, Diagnostic>,
    ) -> Result<Value, Diagnostic> {
        let array = self.module.params[param as usize].ty;
        let word = self.intern(Type::Scalar(Scalar::U32));
        let mut words = Vec::new();
        for which in 0..2 {
            let index = at(self, copy, which)?;
            let base = copy.add(ExpressionKind::Param(param), array, span);
            words.push(copy.add(ExpressionKind::Element { base, index }, word, span));
        }
        let ty = self.intern(PAIR);
        Ok(copy.add(ExpressionKind::Compose(words), ty, span))
    }

    /// The parameter of that expression, if it is an array of pairs, and its length.
    fn doubled_param(&self, copy: &Copy<'_>, base: Value) -> Option<(u32, u32)> {
        match copy.old.expressions[base].kind {
            ExpressionKind::Param(param) => Some((param, self.doubled[param as usize]?)),
            _ => None,
        }
    }

    fn known_element(&mut self, copy: &mut Copy<'_>, param: u32, index: u32, span: Span) -> Result<Value, Diagnostic> {
        self.element(copy, param, span, &mut |this, copy, which| Ok(this.word(copy, 2 * index + which, span)))
    }
}

impl RewriteAll for Wide<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Wide<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(self.types.get(&ty).copied().unwrap_or(ty))
    }

    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        let span = *span;
        match kind {
            ExpressionKind::Literal(literal) if self.is_pair(*ty) => {
                let bits = literal.bits();
                let (low, high) = (self.word(copy, bits as u32, span), self.word(copy, (bits >> 32) as u32, span));
                Ok(self.pair(copy, low, high, span))
            }
            ExpressionKind::Convert(value) => self.convert(copy, *value, handle),
            ExpressionKind::Bitcast(value) if self.is_pair(*ty) => self.expression(copy, *value),
            ExpressionKind::Bitcast(value)
                if is_split(&self.old_types[old.expressions[*value].ty], &self.old_types[*ty]) =>
            {
                let from = old.expressions[*value].ty;
                let mut inner = self.expression(copy, *value)?;
                if self.is_pair(from) {
                    return Ok(inner);
                }
                let long = self.intern(Type::Scalar(Scalar::U64));
                if from != long {
                    inner = copy.add(ExpressionKind::Bitcast(inner), long, span);
                }
                Ok(self.call(copy, Helper::Split, vec![inner], span))
            }
            ExpressionKind::Binary { operator: operator @ (B::Equal | B::NotEqual), left, right }
                if self.is_pair(old.expressions[*left].ty) =>
            {
                let sides = vec![self.expression(copy, *left)?, self.expression(copy, *right)?];
                let same = self.call(copy, Helper::Equal, sides, span);
                if *operator == B::Equal {
                    return Ok(same);
                }
                Ok(copy.add(ExpressionKind::Unary { operator: UnaryOperator::Not, value: same }, *ty, span))
            }
            ExpressionKind::Param(param) => match self.doubled[*param as usize] {
                None => copy.expression(self, handle),
                Some(length) => {
                    let parts = (0..length).map(|index| self.known_element(copy, *param, index, span));
                    let parts = parts.collect::<Result<Vec<_>, _>>()?;
                    let ty = self.ty(*ty)?;
                    Ok(copy.add(ExpressionKind::Compose(parts), ty, span))
                }
            },
            ExpressionKind::Member { base, index } => match self.doubled_param(copy, *base) {
                Some((param, _)) => self.known_element(copy, param, *index, span),
                None => copy.expression(self, handle),
            },
            ExpressionKind::Element { base, index } => match self.doubled_param(copy, *base) {
                None => copy.expression(self, handle),
                // Past the end is past the end of the words, whatever the index.
                Some((param, length)) => self.element(copy, param, span, &mut |this, copy, which| {
                    let word = this.intern(Type::Scalar(Scalar::U32));
                    let mut index = this.expression(copy, *index)?;
                    if copy.new.expressions[index].ty != word {
                        index = copy.add(ExpressionKind::Convert(index), word, span);
                    }
                    let most = this.word(copy, length, span);
                    let arguments = vec![index, most];
                    let least = ExpressionKind::Math { function: MathFunction::Min, arguments };
                    let left = copy.add(least, word, span);
                    let right = this.word(copy, 2, span);
                    let left = copy.add(ExpressionKind::Binary { operator: B::Multiply, left, right }, word, span);
                    let right = this.word(copy, which, span);
                    Ok(copy.add(ExpressionKind::Binary { operator: B::Add, left, right }, word, span))
                }),
            },
            _ => copy.expression(self, handle),
        }
    }
}
