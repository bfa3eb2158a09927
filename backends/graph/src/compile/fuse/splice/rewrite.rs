//! A kernel's IR with regions in it: where it read a buffer it calls the function of a region, and where it wrote one it writes what another function makes of the value.

use std::collections::BTreeMap;

use trefoil_codegen::diagnostic::Diagnostic;
use trefoil_codegen::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use trefoil_codegen::ir::{
    Binding, BindingKind, Block, CallArgument, Expression, ExpressionKind, Function, Handle, Literal, Local, Module,
    Place, Projection, Root, Scalar, Size, Span, Statement, StatementKind, Type,
};

use super::functions::{Declared, Spliced};
use super::{Held, Joint, zero_of};

type Value = Handle<Expression>;

/// A region in the place of what a kernel read.
struct Before<'a> {
    binding: u32,
    name: String,
    scalar: Scalar,
    spliced: &'a Spliced,
    declared: Declared,
    /// By the elements that are computed at once.
    functions: BTreeMap<u8, Handle<Function>>,
}

/// A region behind what a kernel wrote.
struct Behind<'a> {
    binding: u32,
    name: String,
    scalar: Scalar,
    spliced: &'a Spliced,
    declared: Declared,
    /// Whether what the kernel computed is written too.
    keeps: bool,
    /// The bindings of its outputs.
    outputs: Vec<u32>,
    /// By output and by the elements that are computed at once.
    functions: BTreeMap<(usize, u8), Handle<Function>>,
}

struct Splice<'a> {
    module: Module,
    before: Vec<Before<'a>>,
    behind: Option<Behind<'a>>,
    empty: &'a [u32],
    index: Handle<Type>,
    /// The first of the params that stand behind the regions' now, and how many these are.
    moved: (u32, u32),
}

/// Puts regions into the instance of a kernel; its bindings become those of `held`.
///
/// # Errors
/// The IR is none that a region can be put into, which its facts rule out.
pub(super) fn spliced(mut module: Module, joint: &Joint<'_>, held: &[Held]) -> Result<Module, Diagnostic> {
    let index = module.intern(Type::Scalar(Scalar::Index));
    let constants = module.params.iter().position(|param| param.specialise.is_some()).unwrap_or(module.params.len());
    let tail = module.params.split_off(constants);
    let mut params = std::mem::take(&mut module.params);
    let own = module.bindings.clone();
    let bound = |held: &[Held], wanted: &dyn Fn(&Held) -> Option<usize>| -> Vec<u32> {
        let mut found: Vec<(usize, u32)> =
            held.iter().zip(0..).filter_map(|(held, at)| Some((wanted(held)?, at))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    };
    let scalar_of = |module: &Module, binding: usize| module.types[own[binding].element].scalar();
    let mut before = Vec::new();
    for (number, (binding, region)) in joint.before.iter().enumerate() {
        let inputs = bound(held, &|held| match held {
            Held::Read { region: Some(of), read } if *of == number => Some(*read),
            _ => None,
        });
        let name = own[*binding].name.clone();
        let declared = region.declare(&mut module, &mut params, &name, inputs, false);
        let scalar = scalar_of(&module, *binding).unwrap_or(Scalar::U32);
        let functions = BTreeMap::new();
        before.push(Before { binding: *binding as u32, name, scalar, spliced: region, declared, functions });
    }
    let mut behind = None;
    if let Some((binding, region, keeps)) = joint.behind {
        let inputs = bound(held, &|held| match held {
            Held::Read { region: None, read } => Some(*read),
            _ => None,
        });
        let outputs = bound(held, &|held| match held {
            Held::Output(output) => Some(*output),
            _ => None,
        });
        let name = own[binding].name.clone();
        let declared = region.declare(&mut module, &mut params, &name, inputs, true);
        let scalar = scalar_of(&module, binding).unwrap_or(Scalar::U32);
        let (binding, functions) = (binding as u32, BTreeMap::new());
        behind = Some(Behind { binding, name, scalar, spliced: region, declared, keeps, outputs, functions });
    }
    let added = params.len() - constants;
    params.extend(tail);
    rebind(&mut module, &own, joint, held);
    module.params = params;
    let moved = (constants as u32, added as u32);
    for (_, variable) in module.workgroup.iter_mut() {
        // What depends on specialisation constants is told anew when the instance is made.
        if let Some(exact) = variable.exact.take() {
            variable.length = renumbered(exact, moved);
        }
    }
    module.resident = module.resident.map(|resident| renumbered(resident, moved));
    for region in joint.regions() {
        module.requires = module.requires.union(region.requires());
    }
    let mut splice = Splice { module, before, behind, empty: &joint.empty, index, moved };
    rewrite_all(&mut splice)?;
    Ok(splice.module)
}

/// Declares the buffers as they are held now.
fn rebind(module: &mut Module, own: &[Binding], joint: &Joint<'_>, held: &[Held]) {
    let mut bindings = Vec::with_capacity(held.len());
    for held in held {
        let (name, scalar, kind, volatile) = match *held {
            Held::Own(binding) => {
                bindings.push(own[binding].clone());
                continue;
            }
            Held::Read { region: Some(number), read } => {
                let (binding, region) = joint.before[number];
                // What the compiler was told of the reads that were there holds for those in their place.
                let volatile = if region.is_flat(read) { own[binding].volatile.clone() } else { Vec::new() };
                let name = format!("{}_of{read}", own[binding].name);
                (name, region.bound()[read].stored(), BindingKind::Shared, volatile)
            }
            Held::Read { region: None, read } => match joint.behind {
                Some((binding, region, _)) => {
                    let name = format!("{}_with{read}", own[binding].name);
                    (name, region.bound()[read].stored(), BindingKind::Shared, Vec::new())
                }
                None => continue,
            },
            Held::Output(output) => match joint.behind {
                Some((binding, region, _)) => {
                    let element = region.written().nth(output);
                    let scalar = element.map_or(Scalar::U32, crate::types::ElementType::stored);
                    (format!("{}_to{output}", own[binding].name), scalar, BindingKind::Mutable, Vec::new())
                }
                None => continue,
            },
        };
        let element = module.intern(Type::Scalar(scalar));
        bindings.push(Binding { name, element, kind, view: None, packed: 1, volatile, span: Span::NONE });
    }
    module.bindings = bindings;
}

/// A size whose params stand where they do now.
fn renumbered(size: Size, moved: (u32, u32)) -> Size {
    match size {
        Size::Param(param) if param >= moved.0 => Size::Param(param + moved.1),
        Size::Binary(operator, left, right) => {
            Size::Binary(operator, Box::new(renumbered(*left, moved)), Box::new(renumbered(*right, moved)))
        }
        size => size,
    }
}

/// The index of a place of a buffer, and how many scalars it is.
fn group_of(place: &Place, span: Span) -> Result<(Value, u8), Diagnostic> {
    match place.path.as_slice() {
        [Projection::Index(index)] => Ok((*index, 1)),
        [Projection::Vector { index, lanes }] => Ok((*index, *lanes)),
        _ => Err(Diagnostic::new(span, "a part of an element, where a kernel was told to touch whole ones")),
    }
}

impl Splice<'_> {
    /// A group's index in the copy, as functions take it.
    fn at(&mut self, copy: &mut Copy<'_>, index: Value, span: Span) -> Result<Value, Diagnostic> {
        let index = self.expression(copy, index)?;
        let is_index = copy.new.expressions[index].ty == self.index;
        Ok(if is_index { index } else { copy.add(ExpressionKind::Convert(index), self.index, span) })
    }

    fn read(&mut self, copy: &mut Copy<'_>, at: usize, place: &Place, span: Span) -> Result<Value, Diagnostic> {
        let (index, lanes) = group_of(place, span)?;
        let index = self.at(copy, index, span)?;
        let before = &mut self.before[at];
        let function = match before.functions.get(&lanes) {
            Some(known) => *known,
            None => {
                let name = fresh(&self.module, &format!("{}_made_{lanes}", before.name));
                let made =
                    before.spliced.read_function(&mut self.module, &before.declared, &name, before.scalar, lanes);
                before.functions.insert(lanes, made);
                made
            }
        };
        let ty = self.module.functions[function].result;
        let ty = ty.ok_or_else(|| Diagnostic::new(span, "a region that gives nothing"))?;
        let arguments = vec![CallArgument::Value(index)];
        Ok(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
    }

    /// Zero bits of a type.
    fn zero(&mut self, copy: &mut Copy<'_>, ty: Handle<Type>, span: Span) -> Value {
        let kind = |scalar| ExpressionKind::Literal(zero_of(scalar));
        match self.module.types[ty] {
            Type::Vector { scalar, .. } => {
                let part = self.module.intern(Type::Scalar(scalar));
                let part = copy.add(kind(scalar), part, span);
                copy.add(ExpressionKind::Splat(part), ty, span)
            }
            ref other => copy.add(kind(other.scalar().unwrap_or(Scalar::U32)), ty, span),
        }
    }

    fn write(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        value: Value,
        span: Span,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let (index, lanes) = group_of(place, span)?;
        let index = self.at(copy, index, span)?;
        let value = self.expression(copy, value)?;
        let [at, value] = [("at", index), ("value", value)].map(|(name, value)| {
            let ty = copy.new.expressions[value].ty;
            let local = copy.new.locals.add(Local { name: name.to_owned(), ty, mutable: false, span });
            out.push(Statement { kind: StatementKind::Let { local, value: Some(value) }, span });
            (local, ty)
        });
        let read = |copy: &mut Copy<'_>, (local, ty): (Handle<Local>, Handle<Type>)| {
            copy.add(ExpressionKind::Local(local), ty, span)
        };
        let Some(behind) = &mut self.behind else { return Ok(()) };
        let mut store = |copy: &mut Copy<'_>, binding: u32, value: Value| {
            let index = read(copy, at);
            let step = if lanes > 1 { Projection::Vector { index, lanes } } else { Projection::Index(index) };
            let place = Place { root: Root::Binding(binding), path: vec![step], guarded: place.guarded };
            out.push(Statement { kind: StatementKind::Store { place, value }, span });
        };
        if behind.keeps {
            let value = read(copy, value);
            store(copy, behind.binding, value);
        }
        for (output, binding) in behind.outputs.iter().enumerate() {
            let function = match behind.functions.get(&(output, lanes)) {
                Some(known) => *known,
                None => {
                    let name = fresh(&self.module, &format!("{}_made_{output}_{lanes}", behind.name));
                    let made = behind.spliced.write_function(
                        &mut self.module,
                        &behind.declared,
                        &name,
                        behind.scalar,
                        (output, lanes),
                    );
                    behind.functions.insert((output, lanes), made);
                    made
                }
            };
            let ty = self.module.functions[function].result;
            let ty = ty.ok_or_else(|| Diagnostic::new(span, "a region that gives nothing"))?;
            let arguments = [at, value].map(|local| CallArgument::Value(read(copy, local))).to_vec();
            let made = copy.add(ExpressionKind::Call { function, arguments }, ty, span);
            store(copy, *binding, made);
        }
        Ok(())
    }
}

/// A name that no function of the module has.
fn fresh(module: &Module, wanted: &str) -> String {
    let mut name = wanted.to_owned();
    while module.functions.iter().any(|(_, function)| function.name == name) {
        name.push('_');
    }
    name
}

impl RewriteAll for Splice<'_> {
    fn module(&mut self) -> &mut Module {
        &mut self.module
    }
}

impl Rewrite for Splice<'_> {
    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        match kind {
            ExpressionKind::Load(place) => {
                if let Root::Binding(binding) = place.root {
                    if let Some(at) = self.before.iter().position(|before| before.binding == binding) {
                        return self.read(copy, at, place, *span);
                    }
                    if self.empty.contains(&binding) {
                        return Ok(self.zero(copy, *ty, *span));
                    }
                }
            }
            ExpressionKind::Length(binding) => {
                if let Some(before) = self.before.iter().find(|before| before.binding == *binding) {
                    return Ok(copy.add(before.declared.length_kind(), *ty, *span));
                }
                if self.empty.contains(binding) {
                    return Ok(copy.add(ExpressionKind::Literal(Literal::Index(0)), *ty, *span));
                }
                if let Some(behind) = self.behind.as_ref().filter(|behind| behind.binding == *binding) {
                    // All outputs have as many elements as what the kernel wrote.
                    let binding = behind.outputs.first().copied().unwrap_or(*binding);
                    return Ok(copy.add(ExpressionKind::Length(binding), *ty, *span));
                }
            }
            ExpressionKind::Param(param) if *param >= self.moved.0 => {
                return Ok(copy.add(ExpressionKind::Param(*param + self.moved.1), *ty, *span));
            }
            _ => {}
        }
        copy.expression(self, handle)
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        if let StatementKind::Store { place, value } = &statement.kind
            && let Some(behind) = &self.behind
            && place.root == Root::Binding(behind.binding)
        {
            return self.write(copy, place, *value, statement.span, out);
        }
        copy.statement(self, statement, out)
    }
}
