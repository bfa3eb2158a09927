//! What the builders of graphs refuse, and how they tell it.

#![allow(clippy::unwrap_used, reason = "tests unwrap too")]

use trefoil_graph::ops::scatter::Update;
use trefoil_graph::ops::{
    Activation, Attention, AttentionBlock, AttentionLayout, AttentionOperands, Linear, Projections,
};
use trefoil_graph::{Dim, ElementType, Graph, GraphError, Symbol, Tensor};

const FLOAT: ElementType = ElementType::F32;

fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

fn refused(result: Result<Tensor, GraphError>) -> String {
    result.unwrap_err().to_string()
}

/// Where symbols may reach past the end of an axis, the error says how far, and what bounds them.
#[test]
fn ranges_that_symbols_let_grow_past_an_axis_are_told_with_their_bounds() {
    let symbol = |name: &str, least, most| Dim::from(Symbol::new(name, least, most).unwrap());
    let (at, n, few) = (symbol("at", 0, 63), symbol("n", 1, 16), symbol("n", 0, 16) - 3);
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[64, 4])).unwrap();
    let y = g.input("y", FLOAT, vec![n.clone(), Dim::from(4)]).unwrap();
    let number = Dim::from(60);
    for (of, start, length, expected) in [
        (
            x,
            Dim::from(0),
            at.clone() + n.clone(),
            "axis 0 to hold n + at (up to 79) positions from 0 on; it has 64: bound them by `.minimum(&Dim::from(64))`",
        ),
        (
            x,
            number.clone(),
            n.clone(),
            "axis 0 to hold n (up to 16) positions from 60 on; it has 64: bound them by `.minimum(&Dim::from(4))`",
        ),
        (
            x,
            at.clone(),
            n.clone(),
            "axis 0 to hold n (up to 16) positions from at (up to 63) on; it has 64: bound the first position by `.minimum(&Dim::from(48))`",
        ),
        (x, Dim::from(0), few, "axis 0 to hold n - 3 (-3 to 13) positions from 0 on; it has 64"),
        (y, Dim::from(0), Dim::from(2), "axis 0 to hold 2 positions from 0 on; it has n (1 to 16)"),
        (x, number, Dim::from(5), "axis 0 to hold 5 positions from 60 on"),
    ] {
        let refused = g.narrow(of, 0, start, length).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("; expected {expected}")), "{refused}");
    }
    // What it tells to do is enough.
    for (start, length) in [
        (Dim::from(0), (at.clone() + n.clone()).minimum(&Dim::from(64))),
        (Dim::from(60), n.minimum(&Dim::from(4))),
        (at.minimum(&Dim::from(48)), n.clone()),
    ] {
        g.narrow(x, 0, start, length).unwrap();
    }
}

/// Symbols of one name and other bounds are other symbols: errors tell them apart.
#[test]
fn extents_that_are_written_alike_are_told_with_their_bounds() {
    let symbol = |most, multiple| Dim::from(Symbol::with_multiple("n", 0, most, multiple).unwrap());
    let (n, longer, even) = (symbol(8, 1), symbol(9, 1), symbol(8, 2));
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, vec![n.clone(), Dim::from(4)]).unwrap();
    let y = g.input("y", FLOAT, vec![longer.clone(), Dim::from(4)]).unwrap();
    let z = g.input("z", FLOAT, vec![even, Dim::from(4)]).unwrap();
    let w = g.input("w", FLOAT, vec![Dim::from(4), n.clone()]).unwrap();
    for (refused, expected) in [
        (
            refused(g.add(x, y)),
            "f32[n, 4]; expected an extent that broadcasts with n (0 to 8), not n (0 to 9), on axis -2",
        ),
        (
            refused(g.add(x, z)),
            "expected an extent that broadcasts with n (0 to 8), not n (0 to 8 in multiples of 2), on axis -2",
        ),
        (
            refused(g.matmul(w, y)),
            "input `b` is f32[n, 4]; expected n (0 to 8) rows, as many as f32[4, n] has columns, not n (0 to 9)",
        ),
        (
            refused(g.reshape(y, vec![Dim::from(4), n])),
            "input `x` is f32[n, 4]; expected 4 * n (0 to 32) elements, as [4, n] has, not 4 * n (0 to 36)",
        ),
        // What is written otherwise is told as it is written.
        (refused(g.reshape(y, vec![longer + 1])), "input `x` is f32[n, 4]; expected n + 1 elements, as [n + 1] has"),
    ] {
        assert!(refused.ends_with(expected), "{refused}");
    }
}

/// Which ops a builder is made of is its own affair: errors name what was called, and its operands.
#[test]
fn builders_name_their_own_operands() {
    let n = Symbol::new("n", 1, 8).unwrap();
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, (&n, 4)).unwrap();
    let wide = g.input("wide", FLOAT, shape(&[5, 6])).unwrap();
    let weight = g.input("weight", FLOAT, shape(&[5, 4])).unwrap();
    let row = g.input("row", FLOAT, shape(&[4])).unwrap();
    let plain = Activation::Identity;
    for (refused, expected) in [
        (
            refused(g.linear(x, wide, None, plain)),
            "linear: input `weight` is f32[5, 6]; expected [N, 4], with as many columns as `x`, which is f32[n, 4], has",
        ),
        (
            refused(g.linear_split(x, wide, None, &[2, 3]).map(|parts| parts[0])),
            "linear_split: input `weight` is f32[5, 6]; expected [N, 4], with as many columns as `x`, which is f32[n, 4], has",
        ),
        (refused(g.linear(x, row, None, plain)), "linear: input `weight` is f32[4]; expected a matrix, [N, K]"),
        (
            refused(g.linear(row, weight, None, plain)),
            "linear: input `x` is f32[4]; expected a matrix, or a batch of them",
        ),
        (refused(g.linear(x, weight, Some(row), plain)), "linear: input `bias` is f32[4]; expected f32[5]"),
        (refused(g.embedding(row, x)), "embedding: input `table` is f32[4]; expected a matrix of rows"),
    ] {
        assert_eq!(refused, expected);
    }
    let refused = refused(g.embedding(weight, x));
    assert!(refused.starts_with("embedding: input `indices` is f32; expected an integer ("), "{refused}");
}

#[test]
fn tensors_of_another_graph_are_told_with_the_op_that_was_to_read_them() {
    let mut first = Graph::new();
    let x = first.input("x", FLOAT, shape(&[4, 4])).unwrap();
    let mut g = Graph::new();
    let own = g.input("own", FLOAT, shape(&[4, 4])).unwrap();
    let at = g.input("at", ElementType::U32, shape(&[4])).unwrap();
    let places = g.input("places", ElementType::U32, shape(&[4, 4])).unwrap();
    let sequence = g.input("sequence", FLOAT, shape(&[1, 2, 4])).unwrap();
    let linear = || Linear { weight: own, bias: None };
    let block = AttentionBlock {
        heads: 1,
        key_heads: 1,
        elements: 4,
        attention: Attention::new(AttentionLayout::Bshd, 0.5),
        operands: AttentionOperands::default(),
        projections: Projections::Each { queries: linear(), keys: linear(), values: linear(), from: Some(x) },
        head_norms: None,
        turns: None,
        past: None,
        output: linear(),
    };
    for (op, refused) in [
        ("scatter_add", refused(g.scatter(own, at, x, 0, Update::Add))),
        ("scatter_set", refused(g.scatter_elements(own, places, x, 0, Update::Set))),
        ("attention_block", refused(g.attention_block(sequence, &block).map(|attended| attended.y))),
        ("relu", refused(g.relu(x))),
        ("add", refused(g.add(x, x))),
        ("cast", refused(g.cast(x, ElementType::F16))),
        ("matmul", refused(g.matmul(x, x))),
        ("linear", refused(g.linear(x, x, None, Activation::Identity))),
        ("embedding", refused(g.embedding(x, x))),
        ("sum", refused(g.sum(x, &[0], false))),
        ("narrow", refused(g.narrow(x, 0, 0, 1))),
        ("transpose", refused(g.transpose(x, &[1, 0]))),
    ] {
        assert_eq!(refused, format!("{op}: the tensor belongs to another graph"));
    }
}

#[test]
fn names_that_are_taken_are_told_with_what_has_them() {
    let mut g = Graph::new();
    let x = g.input("x", FLOAT, shape(&[4])).unwrap();
    g.output("y", x).unwrap();
    assert_eq!(g.output("y", x).unwrap_err().to_string(), "there is already an output called `y`");
    assert_eq!(refused(g.param("x", FLOAT, shape(&[4]))), "there is already a leaf called `x`");
}
