//! Functions of elements, choices and casts.

use candle_core::{DType, Result, Tensor};
use trefoil::graph::ElementType;
use trefoil::graph::ops::map::Function;

use crate::case::Input::{self, Mask, Numbers, Positive, Wide};
use crate::case::{Allowed, Case, FLOATS, NUMBERS, SIGNED};

use ElementType::{BF16, F16, F32, F64, I16, I32, I64, U8, U32};

/// A function as candle has it.
type Theirs = fn(&[Tensor]) -> Result<Tensor>;
/// Its name, its attributes, and what kind its inputs are.
type Row = (&'static str, &'static [f32], &'static [fn(Vec<usize>) -> Input], Theirs);

/// Functions of floats.
const OF_FLOATS: &[Row] = &[
    ("exp", &[], &[Numbers], |x| x[0].exp()),
    ("log", &[], &[Positive], |x| x[0].log()),
    ("sin", &[], &[Numbers], |x| x[0].sin()),
    ("cos", &[], &[Numbers], |x| x[0].cos()),
    ("tanh", &[], &[Numbers], |x| x[0].tanh()),
    ("neg", &[], &[Numbers], |x| x[0].neg()),
    ("sqr", &[], &[Numbers], |x| x[0].sqr()),
    ("sqrt", &[], &[Positive], |x| x[0].sqrt()),
    ("recip", &[], &[Positive], |x| x[0].recip()),
    ("ceil", &[], &[Numbers], |x| x[0].ceil()),
    ("floor", &[], &[Numbers], |x| x[0].floor()),
    // Candle rounds halves of odd integers away from zero, we to the even one, as the op list and IEEE 754 have it.
    ("round", &[], &[Numbers], |x| x[0].round()),
    ("sign", &[], &[Numbers], |x| x[0].sign()),
    ("relu", &[], &[Numbers], |x| x[0].relu()),
    ("silu", &[], &[Numbers], |x| x[0].silu()),
    ("gelu", &[], &[Numbers], |x| x[0].gelu_erf()),
    ("gelu_tanh", &[], &[Numbers], |x| x[0].gelu()),
    ("erf", &[], &[Numbers], |x| x[0].erf()),
    ("elu", &[0.75], &[Numbers], |x| x[0].elu(0.75)),
    ("powf", &[2.5], &[Positive], |x| x[0].powf(2.5)),
    ("affine", &[2.5, -0.75], &[Numbers], |x| x[0].affine(2.5, -0.75)),
    ("clamp", &[-0.5, 1.25], &[Numbers], |x| x[0].clamp(-0.5, 1.25)),
    ("pow", &[], &[Positive, Numbers], |x| x[0].broadcast_pow(&x[1])),
];

/// Functions of numbers with a sign.
const OF_SIGNED: &[Row] =
    &[("abs", &[], &[Numbers], |x| x[0].abs()), ("sub", &[], &[Numbers, Numbers], |x| x[0].broadcast_sub(&x[1]))];

/// Functions of all numbers.
const OF_NUMBERS: &[Row] = &[
    ("add", &[], &[Numbers, Numbers], |x| x[0].broadcast_add(&x[1])),
    ("mul", &[], &[Numbers, Numbers], |x| x[0].broadcast_mul(&x[1])),
    ("div", &[], &[Numbers, Positive], |x| x[0].broadcast_div(&x[1])),
    ("minimum", &[], &[Numbers, Numbers], |x| x[0].broadcast_minimum(&x[1])),
    ("maximum", &[], &[Numbers, Numbers], |x| x[0].broadcast_maximum(&x[1])),
    ("eq", &[], &[Numbers, Numbers], |x| x[0].broadcast_eq(&x[1])),
    ("ne", &[], &[Numbers, Numbers], |x| x[0].broadcast_ne(&x[1])),
    ("lt", &[], &[Numbers, Numbers], |x| x[0].broadcast_lt(&x[1])),
    ("le", &[], &[Numbers, Numbers], |x| x[0].broadcast_le(&x[1])),
    ("gt", &[], &[Numbers, Numbers], |x| x[0].broadcast_gt(&x[1])),
    ("ge", &[], &[Numbers, Numbers], |x| x[0].broadcast_ge(&x[1])),
];

/// Shapes of one input.
const ALONE: [&[usize]; 4] = [&[], &[1], &[0, 3], &[13, 131]];
/// Shapes of two that broadcast.
const TOGETHER: [[&[usize]; 2]; 5] =
    [[&[7, 13], &[7, 13]], [&[3, 1, 5], &[7, 1]], [&[], &[11]], [&[2, 0, 3], &[1, 3]], [&[1], &[1]]];

/// Every function and `where`.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, types) in [(OF_FLOATS, FLOATS), (OF_SIGNED, SIGNED), (OF_NUMBERS, NUMBERS)] {
        for row in rows {
            let count = row.2.len();
            let shapes: Vec<Vec<&[usize]>> = match count {
                1 => ALONE.iter().map(|shape| vec![*shape]).collect(),
                _ => TOGETHER.iter().map(|shapes| shapes.to_vec()).collect(),
            };
            cases.extend(shapes.iter().map(|shapes| function(row, types, shapes)));
        }
    }
    for shape in ALONE {
        let numbers = || Numbers(shape.to_vec());
        cases.push(Case::new(
            format!("where {shape:?}"),
            NUMBERS,
            [Mask(shape.to_vec()), numbers(), numbers()],
            Allowed::Exact,
            |g, x| g.where_(x[0], x[1], x[2]),
            |x| x[0].where_cond(&x[1], &x[2]),
        ));
    }
    cases
}

fn function(row: &'static Row, types: &[ElementType], shapes: &[&[usize]]) -> Case {
    let (name, attributes, inputs, theirs) = *row;
    let function = Function::all().find(|function| function.name == name).unwrap();
    // Of `bf16` some of the numbers are halves of odd integers.
    let settled = |element: ElementType| name != "round" || element != BF16;
    let types: Vec<_> = types.iter().copied().filter(|element| function.takes(*element) && settled(*element)).collect();
    Case::new(
        format!("{name} {shapes:?}"),
        &types,
        inputs.iter().zip(shapes).map(|(input, shape)| input(shape.to_vec())),
        Allowed::Function(function),
        |g, x| g.elementwise(function, x, attributes),
        theirs,
    )
}

/// Elements of every type as every other.
pub fn casts() -> Vec<Case> {
    let kinds = [
        (F32, DType::F32),
        (F16, DType::F16),
        (BF16, DType::BF16),
        (F64, DType::F64),
        (U8, DType::U8),
        (U32, DType::U32),
        (I16, DType::I16),
        (I32, DType::I32),
        (I64, DType::I64),
    ];
    let mut cases: Vec<Case> = kinds.into_iter().map(|(to, theirs)| cast(to, theirs)).collect();
    cases.push(Case::new(
        "cast of bools",
        &[F32],
        [Mask(vec![7, 5])],
        Allowed::Exact,
        |g, x| g.cast(x[0], F32),
        |x| x[0].to_dtype(DType::F32),
    ));
    cases
}

fn cast(to: ElementType, theirs: DType) -> Case {
    // Doubles become halves by way of `f32`, as the definition of the cast says: rounded twice, where candle rounds once.
    let takes = |from: &ElementType| *from != to && (*from != F64 || !matches!(to, F16 | BF16));
    let from: Vec<_> = NUMBERS.iter().copied().filter(takes).collect();
    Case::new(
        format!("cast to {to}"),
        &from,
        [Wide(vec![13, 31])],
        Allowed::Exact,
        move |g, x| g.cast(x[0], to),
        move |x| x[0].to_dtype(theirs),
    )
    .gives(to)
}
