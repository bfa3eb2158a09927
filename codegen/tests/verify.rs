//! What the verifier refuses, accepts and proves.

use trefoil_codegen::artefact::{Access, GridKind};
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator as B, Builtin, Expression, ExpressionKind, Handle, IndexWidth, Literal,
    LogicalOperator, MathFunction, Module, Place, Root, Scalar, StatementKind, SubgroupFunction, SubgroupOperator,
    Type, statements,
};
use trefoil_codegen::target::{Feature, Features, Profile, Target};
use trefoil_codegen::verify::{Verified, check_profile, verify};

type Value = Handle<Expression>;

/// A kernel over `x: &[f32]` (binding 0), `y: &mut [f32]` (1) and `n: usize` (param 0).
fn kernel(workgroup: [u32; 3], body: impl FnOnce(&mut FunctionBuilder<'_>)) -> Module {
    kernel_of_width(workgroup, IndexWidth::Bits32, body)
}

/// The same, with indices as wide as that.
fn kernel_of_width(workgroup: [u32; 3], width: IndexWidth, body: impl FnOnce(&mut FunctionBuilder<'_>)) -> Module {
    let mut module = ModuleBuilder::new("kernel", workgroup);
    if width.is_wide() {
        module.module().index = width;
        module.module().targets.retain(|target| *target != Target::Wgsl);
    }
    let float = module.scalar(Scalar::F32);
    let index = module.scalar(width.scalar());
    module.shared("x", float);
    module.mutable("y", float);
    module.param("n", index);
    let mut entry = module.entry();
    body(&mut entry);
    entry.finish_entry();
    module.build()
}

fn accepted(module: Module) -> Verified {
    verify(module).unwrap_or_else(|found| panic!("{found}"))
}

fn refused(module: Module, words: &[&str]) {
    let found = verify(module).expect_err("this must be refused").to_string();
    for word in words {
        assert!(found.contains(word), "{found:?} does not say {word:?}");
    }
}

/// `x[index]` stored to `y[index]`.
fn touch(body: &mut FunctionBuilder<'_>, mut index: impl FnMut(&mut FunctionBuilder<'_>) -> Value) {
    let i = index(body);
    let value = body.load(element(Root::Binding(0), i));
    let i = index(body);
    body.store(element(Root::Binding(1), i), value);
}

/// Whether each load, then each store or atomic, is guarded, in order.
fn guards(verified: &Verified) -> Vec<bool> {
    let entry = &verified.module.entry;
    let mut found = Vec::new();
    let mut add = |place: &Place| {
        if !place.path.is_empty() {
            found.push(place.guarded);
        }
    };
    entry.live(&entry.body, &mut |expression| {
        if let ExpressionKind::Load(place) = &entry.expressions[expression].kind {
            add(place);
        }
    });
    statements(&entry.body, &mut |statement| match &statement.kind {
        StatementKind::Store { place, .. }
        | StatementKind::Atomic { place, .. }
        | StatementKind::UniformLoad { place, .. } => add(place),
        _ => {}
    });
    found
}

#[test]
fn a_dominating_comparison_frees_the_access_that_it_speaks_of() {
    let module = kernel([64, 1, 1], |body| {
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (a, b) = (body.local(i), body.length(1));
        let inside = body.binary(B::Less, a, b);
        body.if_then(inside, |body| touch(body, |body| body.local(i)));
    });
    let verified = accepted(module);
    // x may be shorter than y.
    assert_eq!(guards(&verified), [true, false]);
    assert_eq!(verified.info.access, [Access::Read, Access::Write]);
    assert_eq!(verified.info.disjoint, [true, true]);
    assert_eq!(verified.info.grid, GridKind::Linear);
}

#[test]
fn an_early_return_counts_as_a_comparison() {
    let module = kernel([64, 1, 1], |body| {
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (a, b) = (body.local(i), body.length(0));
        let outside = body.binary(B::GreaterEqual, a, b);
        let (a, b) = (body.local(i), body.length(1));
        let beyond = body.binary(B::LessEqual, b, a);
        let either = body.logical(LogicalOperator::Or, outside, beyond);
        body.if_then(either, |body| body.return_value(None));
        touch(body, |body| body.local(i));
    });
    assert_eq!(guards(&accepted(module)), [false, false]);
}

#[test]
fn loops_free_their_counters() {
    let module = kernel([64, 1, 1], |body| {
        let n = body.length(0);
        let n = body.bind("n", n);
        let (start, end) = (body.builtin(Builtin::LocalIndex), body.local(n));
        body.for_range("i", start, end, |body, i| touch(body, |body| body.local(i)));
    });
    assert_eq!(guards(&accepted(module)), [false, true]);
}

#[test]
fn a_while_loop_over_a_variable_frees_it_until_it_changes() {
    let module = kernel([64, 1, 1], |body| {
        let index = body.module().intern(Type::Scalar(Scalar::Index));
        let start = body.builtin(Builtin::LocalIndex);
        let i = body.variable("i", index, Some(start));
        let (a, b) = (body.load(variable(i)), body.length(0));
        let inside = body.binary(B::Less, a, b);
        body.while_loop(inside, |body| {
            let a = body.load(variable(i));
            let value = body.load(element(Root::Binding(0), a));
            let value = body.bind("value", value);
            let (a, b) = (body.load(variable(i)), body.index(64));
            let next = body.binary(B::Add, a, b);
            body.store(variable(i), next);
            let a = body.load(variable(i));
            let other = body.load(element(Root::Binding(0), a));
            let value = body.local(value);
            let sum = body.binary(B::Add, value, other);
            let zero = body.index(0);
            body.store(element(Root::Binding(1), zero), sum);
        });
    });
    // The first load is the author's `x[i]`, the second comes after `i += 64`, the store is to y[0] of unknown length.
    assert_eq!(guards(&accepted(module)), [false, true, true]);
}

#[test]
fn vector_accesses_are_free_where_the_number_of_vectors_is_compared() {
    let module = kernel([64, 1, 1], |body| {
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        let (a, n, four) = (body.local(i), body.length(0), body.index(4));
        let vectors = body.binary(B::Divide, n, four);
        let inside = body.binary(B::Less, a, vectors);
        body.if_then(inside, |body| {
            let a = body.local(i);
            let value = body.load(vector(Root::Binding(0), a, 4));
            let a = body.local(i);
            body.store(vector(Root::Binding(1), a, 4), value);
        });
    });
    let verified = accepted(module);
    assert_eq!(guards(&verified), [false, true]);
    assert_eq!(verified.info.vector, [4, 4]);
    assert_eq!(verified.info.disjoint, [true, true]);
}

#[test]
fn an_index_that_may_wrap_keeps_its_guard() {
    let module = kernel([64, 1, 1], |body| {
        let i = body.builtin(Builtin::GlobalIndex);
        let i = body.bind("i", i);
        // i * 4 + 3 < x.len() holds for i = 2^30 too, where vector 2^30 is out of range.
        let (a, four, three) = (body.local(i), body.index(4), body.index(3));
        let first = body.binary(B::Multiply, a, four);
        let last = body.binary(B::Add, first, three);
        let n = body.length(0);
        let inside = body.binary(B::Less, last, n);
        body.if_then(inside, |body| {
            let a = body.local(i);
            let value = body.load(vector(Root::Binding(0), a, 4));
            // i + 1 <= n holds for i = 2^32 - 1 too.
            let a = body.local(i);
            body.store(vector(Root::Binding(1), a, 4), value);
        });
        let (a, one, n) = (body.local(i), body.index(1), body.length(0));
        let next = body.binary(B::Add, a, one);
        let inside = body.binary(B::LessEqual, next, n);
        body.if_then(inside, |body| touch(body, |body| body.local(i)));
    });
    assert_eq!(guards(&accepted(module)), [true, true, true, true]);
}

#[test]
fn rows_of_a_workgroups_own_are_disjoint() {
    let module = kernel([64, 1, 1], |body| {
        let row = body.builtin(Builtin::GroupIndex);
        let row = body.bind("row", row);
        let (start, end) = (body.builtin(Builtin::LocalIndex), body.param(0));
        body.for_range("c", start, end, |body, c| {
            let (r, n, c) = (body.local(row), body.param(0), body.local(c));
            let base = body.binary(B::Multiply, r, n);
            let at = body.binary(B::Add, base, c);
            let zero = body.f32(0.0);
            body.store(element(Root::Binding(1), at), zero);
        });
    });
    assert_eq!(accepted(module).info.disjoint, [true, true]);
    let module = kernel([64, 1, 1], |body| {
        let (row, n) = (body.builtin(Builtin::GroupIndex), body.param(0));
        let at = body.binary(B::Multiply, row, n);
        let lane = body.builtin(Builtin::LocalIndex);
        let at = body.binary(B::Add, at, lane);
        let zero = body.f32(0.0);
        body.store(element(Root::Binding(1), at), zero);
    });
    assert_eq!(accepted(module).info.disjoint, [true, false]);
}

// Uniformity.

fn less(body: &mut FunctionBuilder<'_>, a: Value, b: Value) -> Value {
    body.binary(B::Less, a, b)
}

#[test]
fn barriers_in_divergent_control_flow_are_refused() {
    refused(
        kernel([64, 1, 1], |body| {
            let (a, b) = (body.builtin(Builtin::LocalIndex), body.index(3));
            let condition = less(body, a, b);
            body.if_then(condition, FunctionBuilder::barrier);
        }),
        &["barrier() must be reached by every invocation", "inside an `if` whose condition depends on local_index()"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let (a, b) = (body.builtin(Builtin::GlobalIndex), body.length(1));
            let outside = body.binary(B::GreaterEqual, a, b);
            body.if_then(outside, |body| body.return_value(None));
            body.barrier();
        }),
        &["after a `return`", "global_index()"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let (a, b) = (body.index(0), body.builtin(Builtin::LocalIndex));
            body.for_range("i", a, b, |body, _| body.barrier());
        }),
        &["inside a loop whose range depends on local_index()"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            body.endless_loop(|body| {
                body.barrier();
                let (a, b) = (body.builtin(Builtin::LocalIndex), body.index(3));
                let condition = less(body, a, b);
                body.if_then(condition, |body| body.statement(StatementKind::Break));
            });
        }),
        &["`break`", "local_index()"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let zero = body.index(0);
            let value = body.load(element(Root::Binding(1), zero));
            let zero = body.f32(0.0);
            let condition = less(body, value, zero);
            body.if_then(condition, FunctionBuilder::barrier);
        }),
        &["what `y` holds, which the kernel writes"],
    );
}

#[test]
fn a_variable_assigned_in_divergent_control_flow_differs() {
    refused(
        kernel([64, 1, 1], |body| {
            let index = body.module().intern(Type::Scalar(Scalar::Index));
            let zero = body.index(0);
            let v = body.variable("v", index, Some(zero));
            let (a, b) = (body.builtin(Builtin::LocalIndex), body.index(3));
            let condition = less(body, a, b);
            body.if_then(condition, |body| {
                let one = body.index(1);
                body.store(variable(v), one);
            });
            let (a, b) = (body.load(variable(v)), body.index(1));
            let condition = less(body, a, b);
            body.if_then(condition, FunctionBuilder::barrier);
        }),
        &["depends on local_index()"],
    );
}

#[test]
fn uniform_control_flow_is_accepted() {
    accepted(kernel([64, 1, 1], |body| {
        let (a, b) = (body.builtin(Builtin::GroupIndex), body.param(0));
        let outside = body.binary(B::GreaterEqual, a, b);
        body.if_then(outside, |body| body.return_value(None));
        let (a, b) = (body.index(0), body.param(0));
        body.for_range("i", a, b, |body, i| {
            body.barrier();
            // What x holds is the same for all at one index.
            let at = body.local(i);
            let value = body.load(element(Root::Binding(0), at));
            let zero = body.f32(0.0);
            let condition = less(body, value, zero);
            body.if_then(condition, |body| {
                body.barrier();
                body.statement(StatementKind::Continue);
            });
            body.barrier();
        });
        // Invocations that leave a loop apart are together again after it.
        let (a, b) = (body.builtin(Builtin::LocalIndex), body.param(0));
        body.for_range("j", a, b, |body, _| {
            let (a, b) = (body.builtin(Builtin::LocalIndex), body.index(3));
            let condition = less(body, a, b);
            body.if_then(condition, |body| body.statement(StatementKind::Break));
        });
        body.barrier();
    }));
}

#[test]
fn functions_are_looked_at_with_what_they_are_called_with() {
    let build = |builtin: Builtin| {
        let mut module = ModuleBuilder::new("kernel", [64, 1, 1]);
        let index = module.scalar(Scalar::Index);
        let float = module.scalar(Scalar::F32);
        module.mutable("y", float);
        let mut wait = module.function("wait");
        wait.argument("limit", index);
        let (a, b) = (wait.get_argument(0), wait.index(3));
        let condition = less(&mut wait, a, b);
        wait.if_then(condition, FunctionBuilder::barrier);
        let wait = wait.finish();
        let mut entry = module.entry();
        let value = entry.builtin(builtin);
        let call = entry.call(wait, vec![value], Type::Scalar(Scalar::Index));
        entry.statement(StatementKind::Evaluate(call));
        entry.finish_entry();
        module.build()
    };
    accepted(build(Builtin::GroupIndex));
    refused(build(Builtin::LocalIndex), &["depends on local_index()"]);
}

// Features and profiles.

#[test]
fn subgroup_operations_are_required_or_asked_for() {
    let build = |requires: Features, guarded: bool| {
        let mut module = kernel([64, 1, 1], |body| {
            let sum = |body: &mut FunctionBuilder<'_>| {
                let one = body.f32(1.0);
                body.subgroup("sum", SubgroupFunction::Reduce(SubgroupOperator::Add), one, None);
            };
            if guarded {
                let has = body.expression(ExpressionKind::TargetHas(Feature::Subgroups), Type::Scalar(Scalar::Bool));
                let accept = body.nested(sum);
                body.statement(StatementKind::If { condition: has, accept, reject: Vec::new(), constant: true });
            } else {
                sum(body);
            }
        });
        module.requires = requires;
        module
    };
    let subgroups = Features::of(&[Feature::Subgroups]);
    refused(build(Features::NONE, false), &["`subgroup_add` needs `Feature::Subgroups`", "requires(Subgroups)"]);
    let required = accepted(build(subgroups, false));
    assert_eq!((required.info.required, required.info.relevant), (subgroups, subgroups));
    let portable = Profile::portable(Target::Wgsl);
    let error = check_profile(&required, &portable).expect_err("the portable profile has no subgroups");
    assert!(error.to_string().contains("Feature::Subgroups"), "{error}");
    check_profile(&required, &portable.clone().with(subgroups)).unwrap();
    let asked = accepted(build(Features::NONE, true));
    assert_eq!((asked.info.required, asked.info.relevant), (Features::NONE, subgroups));
    check_profile(&asked, &portable).unwrap();
}

#[test]
fn profiles_limit_memory_invocations_and_bindings() {
    let mut module = ModuleBuilder::new("large", [1024, 1, 1]);
    let float = module.scalar(Scalar::F32);
    for binding in 0..9 {
        module.mutable(&format!("b{binding}"), float);
    }
    module.workgroup("tile", float, 5000, false);
    let entry = module.entry();
    entry.finish_entry();
    let verified = accepted(module.build());
    let error = check_profile(&verified, &Profile::portable(Target::Wgsl)).unwrap_err().to_string();
    for word in ["20000 bytes", "`tile`", "16384", "1024 invocations", "256", "9 slices", "8 buffers"] {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
    check_profile(&verified, &Profile::portable(Target::Cuda)).unwrap();
}

// Types and structure.

#[test]
fn types_must_fit() {
    refused(
        kernel([64, 1, 1], |body| {
            let (i, zero) = (body.index(0), body.i32(0));
            body.store(element(Root::Binding(1), i), zero);
        }),
        &["expected f32, found i32"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let (i, zero) = (body.index(0), body.f32(0.0));
            body.store(element(Root::Binding(0), i), zero);
        }),
        &["`x` is a shared slice", "&mut"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let half = body.literal(Literal::F16(0));
            let other = body.literal(Literal::F16(0));
            let bits = body.binary(B::And, half, other);
            body.bind("bits", bits);
        }),
        &["there is no `&` for f16"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let place = {
                let zero = body.index(0);
                element(Root::Binding(1), zero)
            };
            let one = body.u32(1);
            body.atomic("old", AtomicFunction::Add, place, Some(one));
        }),
        &["atomics"],
    );
    refused(
        kernel([64, 1, 1], |body| {
            let i = body.index(0);
            let value = body.bind("i", i);
            let (a, b) = (body.local(value), body.local(value));
            body.binary(B::Add, a, b);
            let shared = body.index(1);
            let sum = body.binary(B::Add, shared, shared);
            body.bind("sum", sum);
        }),
        &["used twice"],
    );
    refused(kernel([64, 1, 1], |body| body.statement(StatementKind::Break)), &["inside a loop"]);
}

// Soundness of bounds: random index expressions, compared with all their values.

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
