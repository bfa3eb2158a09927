//! Halves where the target cannot hold them: values are `f32` everywhere outside bindings, and bindings without 16-bit access are words.
//!
//! Every `f16` is an `f32` exactly, so a half that is moved about keeps its value; `f32` to `f16` rounds where it is written to a binding, or
//! by rounding to the nearest half where it is not written at once. SPIR-V with 16-bit storage reads and writes halves in bindings and nowhere else.
//!
//! Without 16-bit access a slice of halves is a slice of words, two halves in each (`packed` is 2), and each access is a call of a small
//! function with a guard of its own where one is needed, since the guard on words cannot see an odd length. A single half is
//! written by an atomic `and` and an atomic `or`, so that two invocations that write neighbours do not lose one; a binding with
//! such a store is atomic. A slice of `Vec2<f16>` or `Vec4<f16>` is a slice of one or two words an element.

mod words;

use std::collections::HashMap;

use self::words::Words;
use super::names::FunctionNames;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::FunctionBuilder;
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, BinaryOperator as B, BindingKind, Block, CallArgument, Expression, ExpressionKind, Function, Handle,
    Literal, MathFunction, Module, Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type,
};
use crate::target::{Feature, Profile, Target};
use crate::verify::KernelInfo;

/// Whether code for the profile holds halves as such.
fn is_native(profile: &Profile) -> bool {
    match profile.target {
        Target::Cuda | Target::Cpu => true,
        Target::Wgsl => profile.features.has(Feature::F16Storage),
        Target::Spirv => false,
    }
}

/// Replaces what the profile does not have, and names the forms that stand for it.
pub fn lower(module: &mut Module, info: &mut KernelInfo, profile: &Profile) -> Result<Vec<&'static str>, Diagnostics> {
    let any = module.types.iter().any(|(_, ty)| ty.scalar() == Some(Scalar::F16));
    if !any || is_native(profile) {
        return Ok(Vec::new());
    }
    let storage = profile.features.has(Feature::F16Storage);
    let old_types = module.types.clone();
    // Bindings keep their types or become words; everything else that is made of halves is made of f32.
    let elements: Vec<Type> = module.bindings.iter().map(|binding| old_types[binding.element].clone()).collect();
    let mut types = HashMap::new();
    for (handle, _) in old_types.iter() {
        widened(module, handle, &mut types);
    }
    for (_, item) in module.structs.iter_mut() {
        for (_, field) in &mut item.fields {
            *field = types[field];
        }
    }
    for (_, variable) in module.workgroup.iter_mut() {
        variable.element = types[&variable.element];
    }
    let mut bindings = Vec::new();
    let singles = single_stores(module);
    for (index, ty) in elements.into_iter().enumerate() {
        let form = match ty {
            Type::Scalar(Scalar::F16) if storage => Form::Halves,
            Type::Vector { scalar: Scalar::F16, .. } if storage => Form::Halves,
            Type::Scalar(Scalar::F16) => Form::Packed { atomic: singles[index] },
            Type::Vector { lanes: lanes @ (2 | 4), scalar: Scalar::F16 } => Form::Words { lanes },
            Type::Vector { scalar: Scalar::F16, .. } => {
                return Err(Diagnostic::new(
                    module.bindings[index].span,
                    format!(
                        "`{}` holds Vec3<f16>, whose elements do not start at whole words: devices without `Feature::F16Storage` cannot access them; use Vec4<f16> or f16",
                        module.bindings[index].name
                    ),
                )
                .into());
            }
            _ => Form::Other,
        };
        if let Form::Packed { atomic } = form {
            module.bindings[index].element = module.intern(Type::Scalar(Scalar::U32));
            module.bindings[index].packed = 2;
            // Four halves are two words.
            info.vector[index] = if atomic { 1 } else { (info.vector[index] / 2).max(1) };
            if atomic {
                module.bindings[index].kind = BindingKind::Atomic;
                info.access[index] = crate::artefact::Access::Atomic;
                info.disjoint[index] = false;
            }
        }
        if let Form::Words { lanes } = form {
            let word = if lanes == 2 { Type::Scalar(Scalar::U32) } else { Type::vector(2, Scalar::U32) };
            module.bindings[index].element = module.intern(word);
        }
        bindings.push(form);
    }
    let functions = std::mem::take(&mut module.functions);
    let entry = std::mem::take(&mut module.entry);
    let names = FunctionNames::new(functions.iter().map(|(_, function)| function));
    let mut pass = Halves { module, old_types, types, bindings, names, added: HashMap::new(), functions: Vec::new() };
    for (_, function) in functions.iter() {
        let new = rewrite(&mut pass, function)?;
        let new = pass.module.functions.add(new);
        pass.functions.push(new);
    }
    let entry = rewrite(&mut pass, &entry)?;
    let packed = pass.bindings.iter().any(|form| matches!(form, Form::Packed { .. } | Form::Words { .. }));
    module.entry = entry;
    Ok(if packed { vec!["halves packed in words"] } else { Vec::new() })
}

/// The type with `f32` for halves.
fn widened(module: &mut Module, ty: Handle<Type>, known: &mut HashMap<Handle<Type>, Handle<Type>>) -> Handle<Type> {
    if let Some(new) = known.get(&ty) {
        return *new;
    }
    let new = match module.types[ty].clone() {
        Type::Scalar(Scalar::F16) => module.intern(Type::Scalar(Scalar::F32)),
        Type::Vector { lanes, scalar: Scalar::F16 } => module.intern(Type::vector(lanes, Scalar::F32)),
        Type::Array { element, length } => {
            let element = widened(module, element, known);
            module.intern(Type::Array { element, length })
        }
        _ => ty,
    };
    known.insert(ty, new);
    new
}

/// For each binding, whether a single element of it is stored.
fn single_stores(module: &Module) -> Vec<bool> {
    let mut found = vec![false; module.bindings.len()];
    for function in module.functions.iter().map(|(_, function)| function).chain([&module.entry]) {
        crate::ir::statements(&function.body, &mut |statement| {
            if let StatementKind::Store { place: Place { root: Root::Binding(binding), path, .. }, .. } =
                &statement.kind
                && matches!(path.first(), Some(Projection::Index(_)))
            {
                found[*binding as usize] = true;
            }
        });
    }
    found
}

/// How a binding holds its elements.
#[derive(Clone, Copy)]
enum Form {
    /// It holds no halves.
    Other,
    /// Halves that are read and written as such.
    Halves,
    /// Two halves in a word.
    Packed {
        /// Whether words are accessed by atomic operations alone.
        atomic: bool,
    },
    /// Vectors of 2 or 4 halves in one or two words.
    Words {
        /// 2 or 4.
        lanes: u8,
    },
}

/// A function that accesses packed halves.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Accessor {
    binding: u32,
    /// 1, 2 or 4.
    lanes: u8,
    stores: bool,
    guarded: bool,
}

struct Halves<'a> {
    module: &'a mut Module,
    old_types: Arena<Type>,
    types: HashMap<Handle<Type>, Handle<Type>>,
    bindings: Vec<Form>,
    names: FunctionNames,
    added: HashMap<Accessor, Handle<Function>>,
    functions: Vec<Handle<Function>>,
}

impl Halves<'_> {
    fn is_half(&self, ty: Handle<Type>) -> bool {
        self.old_types[ty].scalar() == Some(Scalar::F16)
    }

    fn form(&self, root: Root) -> Form {
        match root {
            Root::Binding(binding) => self.bindings[binding as usize],
            Root::Workgroup(_) | Root::Local(_) | Root::Argument(_) => Form::Other,
        }
    }

    /// The function that does that, made when first wanted.
    fn accessor(&mut self, accessor: Accessor) -> Handle<Function> {
        if let Some(known) = self.added.get(&accessor) {
            return *known;
        }
        let Accessor { binding, lanes, stores, guarded } = accessor;
        let known = &self.module.bindings[binding as usize];
        let name = self.names.fresh(&format!(
            "{}_{}{}{}",
            known.name,
            if stores { "set_" } else { "" },
            match lanes {
                1 => "half".to_owned(),
                lanes => format!("half{lanes}"),
            },
            if guarded { "" } else { "_inside" }
        ));
        let atomic = known.kind == BindingKind::Atomic;
        let span = known.span;
        let index = self.module.intern(Type::Scalar(Scalar::Index));
        let float = Type::Scalar(Scalar::F32);
        let value = self.module.intern(if lanes == 1 { float } else { Type::vector(lanes, Scalar::F32) });
        let mut body = FunctionBuilder::new(self.module, &name);
        body.at(span);
        body.argument("i", index);
        if stores {
            body.argument("value", value);
        } else {
            body.result(value);
        }
        if guarded {
            // i * lanes + lanes - 1 < length, without wrapping.
            let (i, mut end) = (body.get_argument(0), body.length(binding));
            if lanes > 1 {
                let lanes = body.index(lanes.into());
                end = body.binary(B::Divide, end, lanes);
            }
            let beyond = body.binary(B::GreaterEqual, i, end);
            body.if_then(beyond, |body| {
                let zero = (!stores).then(|| {
                    let zero = body.f32(0.0);
                    if lanes == 1 { zero } else { body.splat(zero, lanes) }
                });
                body.return_value(zero);
            });
        }
        let words = Words { binding, atomic };
        match (lanes, stores) {
            (1, false) => words.load_one(&mut body),
            (1, true) => words.store_one(&mut body),
            (lanes, false) => words.load_pairs(&mut body, lanes),
            (lanes, true) => words.store_pairs(&mut body, lanes),
        }
        let function = body.finish();
        self.added.insert(accessor, function);
        function
    }

    fn scalar(&mut self, scalar: Scalar) -> Handle<Type> {
        self.module.intern(Type::Scalar(scalar))
    }

    /// A function of the mathematical library on a value, lane by lane.
    fn math(
        &mut self,
        copy: &mut Copy<'_>,
        function: MathFunction,
        value: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        let ty = match self.module.types[copy.new.expressions[value].ty] {
            Type::Vector { lanes, .. } => Type::vector(lanes, scalar),
            _ => Type::Scalar(scalar),
        };
        let ty = self.module.intern(ty);
        copy.add(ExpressionKind::Math { function, arguments: vec![value] }, ty, span)
    }

    /// The index of the first step into a packed binding, as a `usize`, and how many halves it moves.
    fn step(&mut self, copy: &mut Copy<'_>, place: &Place, span: Span) -> Result<(Handle<Expression>, u8), Diagnostic> {
        let (index, lanes) = match place.path.first() {
            Some(Projection::Index(index)) => (*index, 1),
            Some(Projection::Vector { index, lanes }) => (*index, *lanes),
            _ => return Err(Diagnostic::new(span, "a slice is read and written element by element")),
        };
        let index = self.expression(copy, index)?;
        let wanted = self.scalar(Scalar::Index);
        if copy.new.expressions[index].ty == wanted {
            return Ok((index, lanes));
        }
        Ok((copy.add(ExpressionKind::Convert(index), wanted, span), lanes))
    }

    fn load(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        handle: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let Expression { ty: old, span, .. } = copy.old.expressions[handle];
        let wide = self.types[&old];
        let Root::Binding(binding) = place.root else { return copy.expression(self, handle) };
        match self.form(place.root) {
            Form::Other => copy.expression(self, handle),
            Form::Halves => {
                let place = copy.place(self, place, span)?;
                let halves = copy.add(ExpressionKind::Load(place), old, span);
                Ok(copy.add(ExpressionKind::Convert(halves), wide, span))
            }
            Form::Packed { .. } => {
                let (index, lanes) = self.step(copy, place, span)?;
                let function = self.accessor(Accessor { binding, lanes, stores: false, guarded: place.guarded });
                let arguments = vec![CallArgument::Value(index)];
                Ok(copy.add(ExpressionKind::Call { function, arguments }, wide, span))
            }
            Form::Words { lanes } => self.load_words(copy, place, lanes, wide, span),
        }
    }

    /// An element, or a lane of it, of a slice of vectors of halves.
    fn load_words(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        lanes: u8,
        wide: Handle<Type>,
        span: Span,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let element = |this: &mut Self, copy: &mut Copy<'_>, lane: u32| {
            let mut place = copy.place(this, place, span)?;
            place.path.truncate(1);
            let word = this.scalar(Scalar::U32);
            if lanes == 4 {
                place.path.push(Projection::Member(lane / 2));
            }
            let mut bits = copy.add(ExpressionKind::Load(place), word, span);
            if lane % 2 == 1 {
                let sixteen = copy.add(ExpressionKind::Literal(Literal::U32(16)), word, span);
                let kind = ExpressionKind::Binary { operator: B::ShiftRight, left: bits, right: sixteen };
                bits = copy.add(kind, word, span);
            }
            Ok::<_, Diagnostic>(this.math(copy, MathFunction::UnpackHalf, bits, Scalar::F32, span))
        };
        let whole = |this: &mut Self, copy: &mut Copy<'_>| {
            let mut parts = Vec::new();
            for lane in 0..u32::from(lanes) {
                parts.push(element(this, copy, lane)?);
            }
            let ty = this.module.intern(Type::vector(lanes, Scalar::F32));
            Ok::<_, Diagnostic>(copy.add(ExpressionKind::Compose(parts), ty, span))
        };
        match place.path.get(1).copied() {
            None => whole(self, copy),
            Some(Projection::Member(lane)) => element(self, copy, lane),
            Some(Projection::Index(index)) => {
                let base = whole(self, copy)?;
                let index = self.expression(copy, index)?;
                Ok(copy.add(ExpressionKind::Element { base, index }, wide, span))
            }
            Some(Projection::Vector { .. }) => Err(Diagnostic::new(span, "a vector has no vectors of elements")),
        }
    }

    fn store(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        value: Handle<Expression>,
        span: Span,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let Root::Binding(binding) = place.root else { return Ok(()) };
        // Rounding happens when it is written; `f16::from_f32(x)` need not do it before.
        let value = match copy.old.expressions[value].kind {
            ExpressionKind::Convert(inner) if self.is_half(copy.old.expressions[value].ty) => inner,
            _ => value,
        };
        let kind = match self.form(place.root) {
            Form::Other => return Err(Diagnostic::new(span, "this binding holds no halves")),
            Form::Halves => {
                let value = self.expression(copy, value)?;
                let ty = match self.module.types[copy.new.expressions[value].ty] {
                    Type::Vector { lanes, .. } => Type::vector(lanes, Scalar::F16),
                    _ => Type::Scalar(Scalar::F16),
                };
                let ty = self.module.intern(ty);
                let value = copy.add(ExpressionKind::Convert(value), ty, span);
                StatementKind::Store { place: copy.place(self, place, span)?, value }
            }
            Form::Packed { .. } => {
                let (index, lanes) = self.step(copy, place, span)?;
                let value = self.expression(copy, value)?;
                let function = self.accessor(Accessor { binding, lanes, stores: true, guarded: place.guarded });
                let arguments = vec![CallArgument::Value(index), CallArgument::Value(value)];
                let ty = copy.new.expressions[value].ty;
                StatementKind::Evaluate(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
            }
            Form::Words { .. } if place.path.len() > 1 => {
                return Err(Diagnostic::new(
                    span,
                    format!(
                        "`{}` holds vectors of f16: where a device has no `Feature::F16Storage`, an element is written as a whole, not lane by lane",
                        self.module.bindings[binding as usize].name
                    ),
                ));
            }
            Form::Words { lanes } => {
                let value = self.expression(copy, value)?;
                let ty = copy.new.expressions[value].ty;
                let name =
                    copy.new.locals.add(crate::ir::Local { name: "halves".to_owned(), ty, mutable: false, span });
                out.push(Statement { kind: StatementKind::Let { local: name, value: Some(value) }, span });
                let word = self.scalar(Scalar::U32);
                let mut words = Vec::new();
                for pair in 0..u32::from(lanes) / 2 {
                    let [low, high] = [0, 1].map(|half| {
                        let base = copy.add(ExpressionKind::Local(name), ty, span);
                        let float = self.scalar(Scalar::F32);
                        let lane = copy.add(ExpressionKind::Member { base, index: 2 * pair + half }, float, span);
                        self.math(copy, MathFunction::PackHalf, lane, Scalar::U32, span)
                    });
                    let sixteen = copy.add(ExpressionKind::Literal(Literal::U32(16)), word, span);
                    let kind = ExpressionKind::Binary { operator: B::ShiftLeft, left: high, right: sixteen };
                    let high = copy.add(kind, word, span);
                    words.push(copy.add(
                        ExpressionKind::Binary { operator: B::Or, left: low, right: high },
                        word,
                        span,
                    ));
                }
                let value = match (words.pop(), words.pop()) {
                    (Some(only), None) => only,
                    (Some(second), Some(first)) => {
                        let ty = self.module.intern(Type::vector(2, Scalar::U32));
                        copy.add(ExpressionKind::Compose(vec![first, second]), ty, span)
                    }
                    (None, _) => return Err(Diagnostic::new(span, "a vector has lanes")),
                };
                StatementKind::Store { place: copy.place(self, place, span)?, value }
            }
        };
        out.push(Statement { kind, span });
        Ok(())
    }
}

impl Rewrite for Halves<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(self.types.get(&ty).copied().unwrap_or(ty))
    }

    fn function(&mut self, function: Handle<Function>) -> Handle<Function> {
        self.functions.get(function.index()).copied().unwrap_or(function)
    }

    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        handle: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        match kind {
            ExpressionKind::Load(place) => self.load(copy, place, handle),
            ExpressionKind::Literal(Literal::F16(bits)) => {
                let literal = Literal::F32(half::f16::from_bits(*bits).to_f32());
                let ty = self.scalar(Scalar::F32);
                Ok(copy.add(ExpressionKind::Literal(literal), ty, *span))
            }
            ExpressionKind::Convert(value) if self.is_half(old.expressions[*value].ty) => self.expression(copy, *value),
            ExpressionKind::Convert(value) if self.is_half(*ty) => {
                let value = self.expression(copy, *value)?;
                Ok(self.math(copy, MathFunction::NearestHalf, value, Scalar::F32, *span))
            }
            _ => copy.expression(self, handle),
        }
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        match &statement.kind {
            StatementKind::Store { place, value } if !matches!(self.form(place.root), Form::Other) => {
                self.store(copy, place, *value, statement.span, out)
            }
            _ => copy.statement(self, statement, out),
        }
    }
}
