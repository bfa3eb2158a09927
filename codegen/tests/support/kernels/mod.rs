//! Small kernels, made by hand or of text, which together use every expression and statement of the IR.

mod memory;
mod scalars;
mod values;
mod workgroups;

use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::builder::{FunctionBuilder, element};
use trefoil_codegen::ir::{BinaryOperator as B, Builtin, Expression, Handle, Local, Module, Place, Root};

use self::memory::{halves, particles, private_arrays, triples, views, wide_copy, words};
use self::scalars::{longs, narrow};
pub use self::values::scaled_gelu;
use self::values::{constants, control, integers, parameters};
pub use self::workgroups::large_tile;
use self::workgroups::{histogram, lanes, odd_subgroups, row_sum, transpose};

type Value = Handle<Expression>;

/// Every kernel.
pub fn all() -> Vec<Module> {
    let by_hand = vec![
        scaled_gelu("i"),
        row_sum(),
        transpose(),
        wide_copy(),
        histogram(),
        halves(),
        parameters(),
        particles(),
        control(),
        lanes(),
        integers(),
        constants(),
        private_arrays(),
        words(),
        views(),
        triples(),
        odd_subgroups(),
        longs(),
        narrow(),
    ];
    by_hand.into_iter().chain(of_text(include_str!("functions.txt"))).collect()
}

/// Kernels in the language of authors.
fn of_text(source: &str) -> Vec<Module> {
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    outputs.into_iter().map(|output| output.module).collect()
}

/// The place without its guard, where the test's author has proved it.
fn proved(mut place: Place) -> Place {
    place.guarded = false;
    place
}

/// `let i = global_index(); if i < y.len() { body }`
fn for_each(
    body: &mut FunctionBuilder<'_>,
    y: u32,
    name: &str,
    inside: impl FnOnce(&mut FunctionBuilder<'_>, Handle<Local>),
) {
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind(name, index);
    let (index, length) = (body.local(i), body.length(y));
    let condition = body.binary(B::Less, index, length);
    body.if_then(condition, |body| inside(body, i));
}

fn store(body: &mut FunctionBuilder<'_>, y: u32, i: Handle<Local>, value: Value) {
    let index = body.local(i);
    body.store(proved(element(Root::Binding(y), index)), value);
}

fn load(body: &mut FunctionBuilder<'_>, x: u32, i: Handle<Local>) -> Value {
    let index = body.local(i);
    body.load(element(Root::Binding(x), index))
}
