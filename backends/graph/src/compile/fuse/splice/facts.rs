//! What a kernel of a candidate does with each of its buffers, as far as a splice must know: read from its IR, so that no kernel says of itself that it may be spliced.

use std::sync::Arc;

use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::ir::{
    Asynchronous, BindingKind, ExpressionKind, Function, Instance, MatrixOperation, Module, Place, Projection, Root,
    Scalar, StatementKind, TileOperation, Type, instantiate, statements,
};

use super::super::kernel::fingerprint_of;

/// What is done with a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Scalars are read, one or as many as an entry says at once, each by its index; nothing else is done.
    Read(Vec<u8>),
    /// Likewise they are written, and nothing is read back.
    Written(Vec<u8>),
    /// Something else.
    Otherwise,
}

/// What is known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// For each binding.
    pub(crate) touched: Vec<Touched>,
}

/// Names the IR of a kernel's instance, whatever the values of its specialisation constants.
pub(crate) fn identity(kernel: &Kernel) -> u64 {
    fingerprint_of(kernel.name.bytes().chain(kernel.ir.iter().copied()).chain(kernel.instance.iter().copied()))
}

/// The instance that a kernel was made of; `None` of one that has none, or indices of 64 bits.
pub(super) fn module_of(kernel: &Kernel) -> Option<Module> {
    let generic = Module::from_bytes(&kernel.ir).ok()?;
    let instance = Instance::from_bytes(&kernel.instance).ok()?;
    let module = instantiate(&generic, &instance).ok()?;
    (module.index.scalar() == Scalar::Index).then_some(module)
}

/// What a kernel does with its buffers; of one that cannot be read, nothing that is any good.
pub(crate) fn facts(kernel: &Kernel) -> Arc<Facts> {
    let touched = match module_of(kernel) {
        Some(module) => touched(&module),
        None => vec![Touched::Otherwise; kernel.bindings.len()],
    };
    Arc::new(Facts { touched })
}

/// Notes of a binding.
#[derive(Clone, Default)]
struct Notes {
    read: Vec<u8>,
    written: Vec<u8>,
    otherwise: bool,
}

/// The scalars that a place of a buffer is at once; `None` if it is a part of an element.
fn lanes(place: &Place) -> Option<u8> {
    match place.path.as_slice() {
        [Projection::Index(_)] => Some(1),
        [Projection::Vector { lanes, .. }] => Some(*lanes),
        _ => None,
    }
}

fn touched(module: &Module) -> Vec<Touched> {
    let mut notes = vec![Notes::default(); module.bindings.len()];
    let functions = module.functions.iter().map(|(_, function)| function).chain([&module.entry]);
    for function in functions {
        note(function, &mut notes);
    }
    let told = notes.into_iter().zip(&module.bindings).map(|(mut notes, binding)| {
        let whole = binding.view.is_none()
            && binding.packed == 1
            && binding.kind != BindingKind::Atomic
            && matches!(module.types[binding.element], Type::Scalar(_));
        for lanes in [&mut notes.read, &mut notes.written] {
            lanes.sort_unstable();
            lanes.dedup();
        }
        match (whole && !notes.otherwise, notes.written.is_empty(), notes.read.is_empty()) {
            (true, true, _) => Touched::Read(notes.read),
            (true, false, true) => Touched::Written(notes.written),
            _ => Touched::Otherwise,
        }
    });
    told.collect()
}

fn note(function: &Function, notes: &mut [Notes]) {
    let mut of = |root: Root, how: &dyn Fn(&mut Notes)| {
        if let Root::Binding(binding) = root
            && let Some(notes) = notes.get_mut(binding as usize)
        {
            how(notes);
        }
    };
    function.live(&function.body, &mut |expression| match &function.expressions[expression].kind {
        ExpressionKind::Load(place) => of(place.root, &|notes| match lanes(place) {
            Some(lanes) => notes.read.push(lanes),
            None => notes.otherwise = true,
        }),
        ExpressionKind::ViewExtent { binding, .. } | ExpressionKind::ViewStride { binding, .. } => {
            of(Root::Binding(*binding), &|notes| notes.otherwise = true);
        }
        _ => {}
    });
    statements(&function.body, &mut |statement| {
        let mut otherwise = |root: Root| of(root, &|notes| notes.otherwise = true);
        match &statement.kind {
            StatementKind::Store { place, .. } => of(place.root, &|notes| match lanes(place) {
                Some(lanes) => notes.written.push(lanes),
                None => notes.otherwise = true,
            }),
            StatementKind::UniformLoad { place, .. } | StatementKind::Atomic { place, .. } => otherwise(place.root),
            StatementKind::Matrix { operation, .. } => match operation {
                MatrixOperation::Load { place, .. } | MatrixOperation::Store { place, .. } => otherwise(place.root),
                MatrixOperation::MultiplyAdd { .. } => {}
            },
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, .. }) => {
                otherwise(to.root);
                otherwise(from.root);
            }
            StatementKind::Tile(TileOperation::Copy { from, .. }) => otherwise(*from),
            _ => {}
        }
    });
}
