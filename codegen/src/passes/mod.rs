//! Passes that make an instance's code less without changing what it means.
//!
//! A driver's compiler does such things too, each its own: one shares an index that is computed forty times and another does not, none sees through the
//! functions that stand for guards and for division by zero, and what is printed has to be parsed, validated and shipped as often as it is
//! written. So what can be decided once for every target is decided here, on the IR:
//!
//! * `fold` computes what is known, drops operations that do nothing, and what is never run.
//! * `reuse` makes workgroup arrays that are never alive together one, which decides what the kernel needs of a device.
//! * `share` gives a name to what is computed again and again (`common`) and moves out of loops what they do not change (`invariant`).
//!
//! The verifier ends with `reuse`, so that limits are checked with what is left. The others run for each set of features after `if const` is decided, loops are written out and guards are cleared, and before anything that depends on a target, so that
//! they cost once what all variants gain. The verifier's facts hold after them as before: none adds an access, and none moves one over a write, a barrier or an atomic.
//! What authors read about their accesses (`trefoil guards`) is told before them, in the words of the source.

#[cfg(feature = "lower")]
mod apply;
#[cfg(feature = "lower")]
mod common;
#[cfg(feature = "lower")]
mod fold;
#[cfg(feature = "lower")]
mod invariant;
#[cfg(feature = "lower")]
mod numbers;
mod reuse;
#[cfg(feature = "lower")]
mod values;

#[cfg(feature = "lower")]
use crate::ir::{Function, Handle, Module};

#[cfg(feature = "lower")]
pub use self::fold::fold;
pub use self::reuse::reuse;

/// What [`share`] does.
#[cfg(feature = "lower")]
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Whether equal computations get one name.
    pub common: bool,
    /// Whether loops lose what they do not change.
    pub invariant: bool,
}

#[cfg(feature = "lower")]
impl Sharing {
    /// Both.
    pub const ALL: Self = Self { common: true, invariant: true };
}

/// Computes once what is computed several times, in every function of the module.
#[cfg(feature = "lower")]
pub fn share(module: &mut Module, sharing: Sharing) {
    let callees = values::Callees::of(module);
    each(module, |module, function| {
        let mut values = values::number(module, &callees, function, sharing.invariant);
        let groups = common::groups(module, function, &mut values, sharing.common);
        apply::apply(module, function, &values, groups);
    });
}

/// Runs a pass on every function, with the module that holds its types and all other functions.
#[cfg(feature = "lower")]
fn each(module: &mut Module, mut pass: impl FnMut(&Module, &mut Function)) {
    for index in 0..module.functions.len() {
        let handle = Handle::from_index(index);
        let mut function = std::mem::take(&mut module.functions[handle]);
        pass(module, &mut function);
        module.functions[handle] = function;
    }
    let mut entry = std::mem::take(&mut module.entry);
    pass(module, &mut entry);
    module.entry = entry;
}
