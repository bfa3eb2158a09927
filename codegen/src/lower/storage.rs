//! Narrow types where the target cannot hold them: values are of the 32-bit type that holds each of theirs ([`Scalar::widened`]) everywhere
//! outside bindings, and bindings without 8- and 16-bit access are words.
//!
//! Every narrow value is one of its 32-bit type exactly, so one that is moved about keeps its value; what is converted to a narrow type is
//! rounded or wrapped where it is written to a binding, or at once where it is not. CUDA and the CPU read and write narrow integers in
//! bindings and nowhere else, as SPIR-V with 16-bit storage does halves, and `bf16` in kernels with matrices of them; halves are values of CUDA, of the CPU and of WGSL with `f16`. A `bf16` is
//! the upper half of an `f32`, which integers make.
//!
//! Elsewhere a slice of narrow scalars is a slice of words, two or four elements in each (`packed`), and each access is a call of a small
//! function with a guard of its own where one is needed, since the guard on words cannot see an odd length. What is smaller than a word is
//! written by an atomic `and` and an atomic `or`, so that two invocations that write neighbours do not lose one; a binding with
//! such a store is atomic. A slice of vectors that fill words is a slice of one or two words an element, which a function reads too.

mod access;
mod values;
mod words;

use std::collections::HashMap;

use self::words::Words;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::FunctionBuilder;
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    Arena, BinaryOperator as B, BindingKind, Block, Expression, ExpressionKind, Function, Handle, Literal, Module,
    Place, Projection, Root, Scalar, Statement, StatementKind, Type,
};
use crate::names::FunctionNames;
use crate::target::{Feature, Profile, Target};
use crate::verify::{KernelInfo, workgroup_of_matrices};

/// Whether code for the profile has values of a narrow type, in workgroup memory too.
pub(super) fn is_native(scalar: Scalar, profile: &Profile) -> bool {
    scalar == Scalar::F16
        && match profile.target {
            Target::Cuda | Target::Cpu => true,
            Target::Wgsl => profile.features.has(Feature::F16Storage),
            Target::Spirv => false,
        }
}

/// Whether it reads and writes them in bindings.
fn is_accessed(scalar: Scalar, profile: &Profile) -> bool {
    match profile.target {
        Target::Cuda | Target::Cpu => true,
        Target::Wgsl | Target::Spirv => match scalar {
            Scalar::F16 => profile.features.has(Feature::F16Storage),
            Scalar::BF16 => profile.features.has(Feature::Bf16Matrices),
            _ => false,
        },
    }
}

/// What memory holds of a narrow type that is accessed there: of a `bf16` its bits, where there is no such type.
fn in_memory(scalar: Scalar, profile: &Profile) -> Scalar {
    if scalar == Scalar::BF16 && profile.target != Target::Spirv { Scalar::U16 } else { scalar }
}

/// Replaces what the profile does not have, and names the forms that stand for it.
pub fn lower(module: &mut Module, info: &mut KernelInfo, profile: &Profile) -> Result<Vec<&'static str>, Diagnostics> {
    let replaced = |ty: &Type| ty.scalar().filter(|scalar| scalar.is_narrow() && !is_native(*scalar, profile));
    if !module.types.iter().any(|(_, ty)| replaced(ty).is_some()) {
        return Ok(Vec::new());
    }
    let old_types = module.types.clone();
    // Bindings keep their types or become words; everything else that is made of narrow scalars is made of wide ones.
    let elements: Vec<Type> = module.bindings.iter().map(|binding| old_types[binding.element].clone()).collect();
    let mut types = HashMap::new();
    for (handle, _) in old_types.iter() {
        widened(module, handle, profile, &mut types);
    }
    for (_, item) in module.structs.iter_mut() {
        for (_, field) in &mut item.fields {
            *field = types[field];
        }
    }
    // Where matrices lie in workgroup memory, their elements do.
    let held = workgroup_of_matrices(module);
    let mut workgroup = Vec::new();
    for handle in module.workgroup.iter().map(|(handle, _)| handle).collect::<Vec<_>>() {
        let element = module.workgroup[handle].element;
        let scalar = replaced(&old_types[element]).filter(|_| held[handle.index()]);
        workgroup.push(if scalar.is_some() { Form::Own } else { Form::Other });
        module.workgroup[handle].element = match scalar {
            Some(scalar) => module.intern(old_types[element].with_scalar(in_memory(scalar, profile))),
            None => types[&element],
        };
    }
    let mut bindings = Vec::new();
    for (index, ty) in elements.into_iter().enumerate() {
        let form = match (replaced(&ty), ty.lanes()) {
            (Some(scalar), Some(_)) if is_accessed(scalar, profile) => Form::Own,
            (Some(scalar), Some(lanes)) => match (scalar.bits() * u32::from(lanes), lanes) {
                (8 | 16, 1 | 2) => {
                    Form::Packed { scalar, unit: lanes, atomic: is_stored_within_words(module, index as u32, scalar) }
                }
                (32 | 64, 2 | 4) => Form::Words { scalar, lanes },
                _ => return Err(no_words(&module.bindings[index], scalar, lanes).into()),
            },
            _ => Form::Other,
        };
        match form {
            Form::Packed { scalar, unit, atomic } => {
                let packed = 32 / (scalar.bits() * u32::from(unit));
                module.bindings[index].element = module.intern(Type::Scalar(Scalar::U32));
                module.bindings[index].packed = packed;
                // Four halves are two words.
                info.vector[index] = if atomic { 1 } else { (info.vector[index] / packed).max(1) };
                if atomic {
                    module.bindings[index].kind = BindingKind::Atomic;
                    info.access[index] = crate::artefact::Access::Atomic;
                    info.disjoint[index] = false;
                }
            }
            Form::Words { scalar, lanes } => {
                let one = scalar.bits() * u32::from(lanes) == 32;
                let word = if one { Type::Scalar(Scalar::U32) } else { Type::vector(2, Scalar::U32) };
                module.bindings[index].element = module.intern(word);
            }
            Form::Own => {
                if let Some(scalar) = replaced(&ty) {
                    module.bindings[index].element = module.intern(ty.with_scalar(in_memory(scalar, profile)));
                }
            }
            Form::Other => {}
        }
        bindings.push(form);
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Storage { module, profile, old_types, types, bindings, workgroup, names, added: HashMap::new() };
    rewrite_all(&mut pass)?;
    let mut forms: Vec<&'static str> = pass.bindings.iter().filter_map(|form| form.name()).collect();
    forms.sort_unstable();
    forms.dedup();
    Ok(forms)
}

/// Why a slice of vectors cannot be words.
fn no_words(binding: &crate::ir::Binding, scalar: Scalar, lanes: u8) -> Diagnostic {
    let (name, scalar_name) = (&binding.name, scalar.rust_name());
    let without = if scalar == Scalar::F16 { "devices without `Feature::F16Storage`" } else { "wgsl and spirv" };
    Diagnostic::new(
        binding.span,
        format!(
            "`{name}` holds Vec{lanes}<{scalar_name}>, whose elements do not start at whole words: {without} cannot access them; use Vec4<{scalar_name}> or {scalar_name}"
        ),
    )
}

/// The type with wide scalars for narrow ones that the profile has no values of.
fn widened(
    module: &mut Module,
    ty: Handle<Type>,
    profile: &Profile,
    known: &mut HashMap<Handle<Type>, Handle<Type>>,
) -> Handle<Type> {
    if let Some(new) = known.get(&ty) {
        return *new;
    }
    let new = match module.types[ty].clone() {
        Type::Array { element, length } => {
            let element = widened(module, element, profile, known);
            module.intern(Type::Array { element, length })
        }
        old => match old.scalar() {
            Some(scalar) if scalar.is_narrow() && !is_native(scalar, profile) => {
                module.intern(old.with_scalar(scalar.widened()))
            }
            _ => ty,
        },
    };
    known.insert(ty, new);
    new
}

/// Whether something smaller than a word of a binding is stored.
fn is_stored_within_words(module: &Module, wanted: u32, scalar: Scalar) -> bool {
    let mut found = false;
    for function in module.functions.iter().map(|(_, function)| function).chain([&module.entry]) {
        crate::ir::statements(&function.body, &mut |statement| {
            if let StatementKind::Store { place: Place { root: Root::Binding(binding), path, .. }, .. } =
                &statement.kind
                && *binding == wanted
            {
                found |= match path.first() {
                    Some(Projection::Vector { lanes, .. }) => scalar.bits() * u32::from(*lanes) < 32,
                    // An element of a packed binding is always smaller.
                    _ => true,
                };
            }
        });
    }
    found
}

/// How a binding holds its elements.
#[derive(Clone, Copy)]
enum Form {
    /// It holds nothing narrow, or what values are too.
    Other,
    /// Elements that are read and written as such.
    Own,
    /// Several elements in a word.
    Packed {
        /// What they are made of.
        scalar: Scalar,
        /// How many of it: 1, or 2 of 8 bits.
        unit: u8,
        /// Whether words are accessed by atomic operations alone.
        atomic: bool,
    },
    /// Vectors that fill one or two words.
    Words {
        /// What they are made of.
        scalar: Scalar,
        /// 2 or 4.
        lanes: u8,
    },
}

impl Form {
    /// What it is called where people ask what stands for memory that a target lacks.
    const fn name(&self) -> Option<&'static str> {
        match self {
            Self::Other | Self::Own => None,
            Self::Packed { scalar: Scalar::F16, .. } | Self::Words { scalar: Scalar::F16, .. } => {
                Some("halves packed in words")
            }
            Self::Packed { .. } | Self::Words { .. } => Some("narrow types packed in words"),
        }
    }
}

/// A function that accesses packed scalars, or reads a vector that fills words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Accessor {
    binding: u32,
    scalar: Scalar,
    /// 1, 2 or 4 scalars.
    lanes: u8,
    /// How many of these make an element.
    unit: u8,
    stores: bool,
    guarded: bool,
}

struct Storage<'a> {
    module: &'a mut Module,
    profile: &'a Profile,
    old_types: Arena<Type>,
    types: HashMap<Handle<Type>, Handle<Type>>,
    bindings: Vec<Form>,
    workgroup: Vec<Form>,
    names: FunctionNames,
    added: HashMap<Accessor, Handle<Function>>,
}

impl Storage<'_> {
    /// The narrow scalar of a type of old that has become a wide one.
    fn replaced(&self, ty: Handle<Type>) -> Option<Scalar> {
        self.old_types[ty].scalar().filter(|scalar| scalar.is_narrow() && !is_native(*scalar, self.profile))
    }

    fn form(&self, root: Root) -> Form {
        match root {
            Root::Binding(binding) => self.bindings[binding as usize],
            Root::Workgroup(variable) => self.workgroup[variable.index()],
            Root::Local(_) | Root::Argument(_) => Form::Other,
        }
    }

    /// The function that does that, made when first wanted.
    fn accessor(&mut self, accessor: Accessor) -> Handle<Function> {
        if let Some(known) = self.added.get(&accessor) {
            return *known;
        }
        let Accessor { binding, scalar, lanes, unit, stores, guarded } = accessor;
        let known = &self.module.bindings[binding as usize];
        let name = self.names.fresh(&format!(
            "{}_{}{}{}",
            known.name,
            if stores { "set_" } else { "" },
            match (scalar, lanes) {
                (Scalar::F16, 1) => "half".to_owned(),
                (Scalar::F16, lanes) => format!("half{lanes}"),
                (scalar, 1) => scalar.rust_name().to_owned(),
                (scalar, lanes) => format!("{}x{lanes}", scalar.rust_name()),
            },
            if guarded { "" } else { "_inside" }
        ));
        let atomic = known.kind == BindingKind::Atomic;
        let is_packed = !matches!(self.bindings[binding as usize], Form::Words { .. });
        let span = known.span;
        let index = self.module.intern(Type::Scalar(self.module.index.scalar()));
        let wide = scalar.widened();
        let value = self.module.intern(if lanes == 1 { Type::Scalar(wide) } else { Type::vector(lanes, wide) });
        let mut body = FunctionBuilder::new(self.module, &name);
        body.at(span);
        body.argument("i", index);
        if stores {
            body.argument("value", value);
        } else {
            body.result(value);
        }
        if guarded && is_packed {
            // i * lanes + lanes - 1 < length, without wrapping.
            let (i, mut end) = (body.get_argument(0), body.length(binding));
            if lanes > unit {
                let lanes = body.index((lanes / unit).into());
                end = body.binary(B::Divide, end, lanes);
            }
            let beyond = body.binary(B::GreaterEqual, i, end);
            body.if_then(beyond, |body| {
                let zero = Literal::zero(wide).filter(|_| !stores).map(|zero| {
                    let zero = body.literal(zero);
                    if lanes == 1 { zero } else { body.splat(zero, lanes) }
                });
                body.return_value(zero);
            });
        }
        let words = Words { binding, atomic, scalar, lanes };
        match (words.group_bits() < 32, stores) {
            (true, false) => words.load_within(&mut body),
            (true, true) => words.store_within(&mut body),
            (false, false) if !is_packed => words.load_element(&mut body, guarded),
            (false, false) => words.load_whole(&mut body),
            (false, true) => words.store_whole(&mut body),
        }
        let function = body.finish();
        self.added.insert(accessor, function);
        function
    }
}

impl RewriteAll for Storage<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Storage<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(self.types.get(&ty).copied().unwrap_or(ty))
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
            ExpressionKind::Literal(literal) if self.replaced(*ty).is_some() => {
                let wide = literal.scalar().widened();
                let value = match literal.as_integer() {
                    Some(number) => Literal::exact_integer(wide, number),
                    None => literal.as_float().and_then(|number| Literal::float(wide, number)),
                };
                let value = value.ok_or_else(|| Diagnostic::new(*span, "a constant that is no number"))?;
                let ty = self.scalar(wide);
                Ok(copy.add(ExpressionKind::Literal(value), ty, *span))
            }
            ExpressionKind::Convert(value) if self.replaced(old.expressions[*value].ty).is_some() => {
                self.expression(copy, *value)
            }
            ExpressionKind::Convert(value) if let Some(scalar) = self.replaced(*ty) => {
                let value = self.expression(copy, *value)?;
                Ok(self.narrowed(copy, value, scalar, *span))
            }
            ExpressionKind::Bitcast(value)
                if self.replaced(*ty).or(self.replaced(old.expressions[*value].ty)).is_some() =>
            {
                match self.old_types[old.expressions[*value].ty].scalar() {
                    Some(from) => self.bitcast(copy, *value, from, handle),
                    None => copy.expression(self, handle),
                }
            }
            _ => copy.expression(self, handle),
        }
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        match &statement.kind {
            StatementKind::UniformLoad { place, .. }
                if !matches!(self.form(place.root), Form::Other) && matches!(place.root, Root::Workgroup(_)) =>
            {
                Err(Diagnostic::new(
                    statement.span,
                    "`workgroup_uniform_load` does not read what matrices of narrow elements lie in: hand the value on through another workgroup array",
                ))
            }
            StatementKind::Store { place, value } if !matches!(self.form(place.root), Form::Other) => {
                self.store(copy, place, *value, statement.span, out)
            }
            _ => copy.statement(self, statement, out),
        }
    }
}
