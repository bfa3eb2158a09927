//! Soundness of bounds: random index expressions, compared with all their values.

use super::*;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(below)) as u32
    }
}

/// An index expression, which can be built and evaluated.
#[derive(Clone, Debug)]
enum Index {
    Number(u64),
    Local,
    Lane,
    Counter,
    Length,
    Param,
    Binary(B, Box<Index>, Box<Index>),
    Math(MathFunction, Box<Index>, Box<Index>),
}

struct Values {
    width: IndexWidth,
    lane: u64,
    local: u64,
    counter: u64,
    length: u64,
    param: u64,
}

impl Index {
    fn random(random: &mut Random, width: IndexWidth, depth: u32) -> Self {
        if depth == 0 || random.next(5) == 0 {
            return match random.next(7) {
                0 => Self::Number(random.next(20).into()),
                1 => {
                    let most = width.largest();
                    let numbers = [0, 1, 2, 3, 4, 8, 16, 63, most, most / 2 + 1, most - 3, most / 4 + 1];
                    Self::Number(numbers[random.next(12) as usize])
                }
                2 => Self::Local,
                3 => Self::Lane,
                4 => Self::Counter,
                5 => Self::Length,
                _ => Self::Param,
            };
        }
        let (a, b) =
            (Box::new(Self::random(random, width, depth - 1)), Box::new(Self::random(random, width, depth - 1)));
        match random.next(12) {
            0 => Self::Math(MathFunction::Min, a, b),
            1 => Self::Math(MathFunction::Max, a, b),
            2 | 3 => Self::Binary(B::Add, a, b),
            4 => Self::Binary(B::Subtract, a, b),
            5 | 6 => Self::Binary(B::Multiply, a, b),
            7 => Self::Binary(B::Divide, a, b),
            8 | 9 => Self::Binary(B::Remainder, a, b),
            10 => Self::Binary(B::And, a, b),
            _ => Self::Binary(B::Or, a, b),
        }
    }

    fn build(&self, body: &mut FunctionBuilder<'_>, locals: &[Handle<trefoil_codegen::ir::Local>; 2]) -> Value {
        match self {
            Self::Number(value) => {
                let scalar = body.module().index.scalar();
                body.literal(Literal::integer(scalar, *value).expect("indices are integers"))
            }
            Self::Local => body.local(locals[0]),
            Self::Counter => body.local(locals[1]),
            Self::Lane => body.builtin(Builtin::LocalIndex),
            Self::Length => body.length(0),
            Self::Param => body.param(0),
            Self::Binary(operator, a, b) => {
                let (a, b) = (a.build(body, locals), b.build(body, locals));
                body.binary(*operator, a, b)
            }
            Self::Math(function, a, b) => {
                let arguments = vec![a.build(body, locals), b.build(body, locals)];
                body.math(*function, arguments)
            }
        }
    }

    fn value(&self, values: &Values) -> u64 {
        match self {
            Self::Number(value) => *value,
            Self::Local => values.local,
            Self::Counter => values.counter,
            Self::Lane => values.lane,
            Self::Length => values.length,
            Self::Param => values.param,
            Self::Binary(operator, a, b) => {
                let (a, b) = (a.value(values), b.value(values));
                let value = match operator {
                    B::Add => a.wrapping_add(b),
                    B::Subtract => a.wrapping_sub(b),
                    B::Multiply => a.wrapping_mul(b),
                    B::Divide => a.checked_div(b).unwrap_or(0),
                    B::Remainder => a.checked_rem(b).unwrap_or(0),
                    B::And => a & b,
                    _ => a | b,
                };
                value & values.width.largest()
            }
            Self::Math(function, a, b) => {
                let (a, b) = (a.value(values), b.value(values));
                if *function == MathFunction::Min { a.min(b) } else { a.max(b) }
            }
        }
    }
}

const COMPARISONS: [B; 6] = [B::Less, B::LessEqual, B::Greater, B::GreaterEqual, B::Equal, B::NotEqual];

fn compare(operator: B, a: u64, b: u64) -> bool {
    match operator {
        B::Less => a < b,
        B::LessEqual => a <= b,
        B::Greater => a > b,
        B::GreaterEqual => a >= b,
        B::Equal => a == b,
        _ => a != b,
    }
}

/// `let local = ..; for counter in start..end { if c { if d { return } else { x[index] } } }`, with random parts: wherever the guard
/// is gone, the index is in range for every invocation, length and parameter tried.
#[test]
fn guards_are_dropped_only_where_the_index_is_in_range() {
    IndexWidth::ALL.into_iter().for_each(guards_are_dropped_rightly);
}

fn guards_are_dropped_rightly(width: IndexWidth) {
    let most = width.largest();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut dropped, mut kept) = (0, 0);
    for _ in 0..12000 {
        let local = Index::random(&mut random, width, 2);
        let uses = |index: &Index, wanted: fn(&Index) -> bool| {
            fn any(index: &Index, wanted: fn(&Index) -> bool) -> bool {
                match index {
                    Index::Binary(_, a, b) | Index::Math(_, a, b) => any(a, wanted) || any(b, wanted),
                    other => wanted(other),
                }
            }
            any(index, wanted)
        };
        // The local is computed before the loop, and not from itself.
        if uses(&local, |part| matches!(part, Index::Local | Index::Counter)) {
            continue;
        }
        let ends = [Index::Length, Index::Param, Index::Number(9), Index::Lane, Index::Local];
        let end = ends[random.next(5) as usize].clone();
        let conditions: Vec<(B, Index, Index)> = (0..2)
            .map(|_| {
                let operator = COMPARISONS[random.next(6) as usize];
                let right = if random.next(2) == 0 { Index::Length } else { Index::random(&mut random, width, 2) };
                (operator, Index::random(&mut random, width, 2), right)
            })
            .collect();
        let index = if random.next(2) == 0 { conditions[0].1.clone() } else { Index::random(&mut random, width, 2) };
        let lanes = [1, 2, 4][random.next(3) as usize];
        let module = kernel_of_width([64, 1, 1], width, |body| {
            let placeholder = Handle::from_index(0);
            let value = local.build(body, &[placeholder, placeholder]);
            let known = body.bind("local", value);
            let start = body.index(0);
            let last = end.build(body, &[known, known]);
            body.for_range("counter", start, last, |body, counter| {
                let locals = [known, counter];
                let [first, second] = [0, 1].map(|which| {
                    let (operator, a, b) = &conditions[which];
                    let (a, b) = (a.build(body, &locals), b.build(body, &locals));
                    body.binary(*operator, a, b)
                });
                body.if_then(first, |body| {
                    body.if_then(second, |body| body.return_value(None));
                    let at = index.build(body, &locals);
                    let place = match lanes {
                        1 => element(Root::Binding(0), at),
                        lanes => vector(Root::Binding(0), at, lanes),
                    };
                    let value = body.load(place);
                    body.bind("value", value);
                });
            });
        });
        let verified = accepted(module);
        let guarded = guards(&verified)[0];
        if guarded {
            kept += 1;
            continue;
        }
        dropped += 1;
        for length in [0, 1, 2, 5, 17, 64, 100, most] {
            for param in [0, 1, 3, 4, 63, 64, 1000, most] {
                for lane in [0, 1, 2, 3, 7, 31, 62, 63] {
                    let mut values = Values { width, lane, local: 0, counter: 0, length, param };
                    values.local = local.value(&values);
                    let last = end.value(&values);
                    for counter in (0..last.min(40)).chain((last > 40).then(|| last - 1)) {
                        values.counter = counter;
                        let holds = |(operator, a, b): &(B, Index, Index)| {
                            compare(*operator, a.value(&values), b.value(&values))
                        };
                        if holds(&conditions[0]) && !holds(&conditions[1]) {
                            let at = u128::from(index.value(&values));
                            let last = at * u128::from(lanes) + u128::from(lanes) - 1;
                            assert!(
                                last < u128::from(length),
                                "x.vec{lanes}({index:?}) = {at} of {length} with local = {local:?}, end = {end:?}, {conditions:?}, lane {lane}, n {param}, counter {counter}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(dropped > 150 && kept > 1000, "dropped {dropped}, kept {kept}: the test tells little");
}
