//! What the verifier refuses, accepts and proves.

mod drawn;
mod share;

use trefoil_codegen::artefact::{Access, GridKind};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator as B, Builtin, Expression, ExpressionKind, Handle, IndexWidth, Instance, Literal,
    LogicalOperator, MathFunction, Module, Place, Root, Scalar, StatementKind, SubgroupFunction, SubgroupOperator,
    Type, instantiate, statements,
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

#[test]
fn indices_that_outgrow_their_forms_are_given_up() {
    let disjoint = |statements: &str| {
        let source = format!("#[kernel(workgroup(64))] fn k(y: &mut [f32], n: usize) {{ {statements} }}");
        let outputs = parse_source(&source).unwrap_or_else(|errors| panic!("{errors}"));
        let module = instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|found| panic!("{found}"));
        accepted(module).info.disjoint
    };
    let products = "let a = global_index() * 2654435761; let b = a * 2654435761; let c = b * 2654435761;
        let d = c * 2654435761; y[d] = 1.0;";
    assert_eq!(disjoint(products), [false]);
    // Each is a sum of the two before it, which are looked into once.
    let mut sums = "let a0 = global_index() * 3; let b0 = global_index() * 5;".to_owned();
    for i in 0..40 {
        let next = i + 1;
        sums += &format!("let a{next} = a{i} * 3 + b{i} * 5; let b{next} = a{i} * 5 + b{i} * 3;");
    }
    assert_eq!(disjoint(&format!("{sums} y[a40] = 1.0;")), [false]);
    let width = sums.replace("global_index()", "n");
    assert_eq!(disjoint(&format!("{width} y[group_index() * a40 + local_index()] = 1.0;")), [false]);
    assert_eq!(disjoint("let a = global_index() * 3; y[a] = 1.0; y[a + 2] = 1.0;"), [true]);
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

/// What a function gives differs for what it was called with there, not for what it was called with first.
#[test]
fn a_call_is_blamed_for_its_own_arguments() {
    let mut module = ModuleBuilder::new("kernel", [64, 1, 1]);
    let index = module.scalar(Scalar::Index);
    let float = module.scalar(Scalar::F32);
    module.mutable("y", float);
    let mut next = module.function("next");
    next.argument("i", index);
    next.result(index);
    let (a, b) = (next.get_argument(0), next.index(1));
    let sum = next.binary(B::Add, a, b);
    next.return_value(Some(sum));
    let next = next.finish();
    let mut entry = module.entry();
    let mut of = |builtin| {
        let value = entry.builtin(builtin);
        let call = entry.call(next, vec![value], Type::Scalar(Scalar::Index));
        entry.bind("value", call)
    };
    of(Builtin::LocalIndex);
    let second = of(Builtin::GlobalIndex);
    let (a, b) = (entry.local(second), entry.index(3));
    let condition = less(&mut entry, a, b);
    entry.if_then(condition, FunctionBuilder::barrier);
    entry.finish_entry();
    refused(module.build(), &["inside an `if` whose condition depends on global_index()"]);
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
    for word in
        ["20000 bytes", "`tile`", "16384", "1024 invocations", "256", "9 slices", "have 8 on every device: take fewer"]
    {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
    check_profile(&verified, &Profile::portable(Target::Cuda)).unwrap();
    let large = Profile::portable(Target::Wgsl).with(Features::of(&[Feature::LargeWorkgroups]));
    let error = check_profile(&verified, &large).unwrap_err().to_string();
    assert!(error.contains("9 slices") && !error.contains("invocations") && !error.contains("bytes"), "{error:?}");
}

#[test]
fn large_workgroups_have_more_memory() {
    let large = Features::of(&[Feature::LargeWorkgroups]);
    let mut module = ModuleBuilder::new("large", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    module.mutable("y", float);
    // 64,000 bytes.
    module.workgroup("tile", float, 16_000, false);
    module.entry().finish_entry();
    let mut module = module.build();
    module.targets = vec![Target::Cuda, Target::Cpu];
    let verified = accepted(module);
    for target in [Target::Cuda, Target::Cpu] {
        let error = check_profile(&verified, &Profile::portable(target)).unwrap_err().to_string();
        let advice = "write `requires(LargeWorkgroups)` on the kernel for devices that have 232448";
        assert!(error.contains("cuda has 49152, cpu has 32768 on every device") && error.contains(advice), "{error}");
        check_profile(&verified, &Profile::portable(target).with(large)).unwrap();
    }
    let error = check_profile(&verified, &Profile::portable(Target::Spirv).with(large)).unwrap_err().to_string();
    assert!(error.contains("spirv has 32768"), "{error}");
}

#[test]
fn what_several_targets_lack_is_told_once() {
    let told = |size: [u32; 3]| {
        let mut module = ModuleBuilder::new("large", size);
        let float = module.scalar(Scalar::F32);
        module.mutable("y", float);
        module.entry().finish_entry();
        let mut module = module.build();
        module.targets = Target::ALL.to_vec();
        let verified = accepted(module);
        let mut all = Vec::new();
        for target in Target::ALL {
            let found = check_profile(&verified, &Profile::portable(target)).err().map(|found| found.to_string());
            all.extend(found);
        }
        all.dedup();
        all.join("\n")
    };
    assert_eq!(
        told([1024, 1, 1]),
        "a workgroup of `large` has 1024 invocations (1024 x 1 x 1); wgsl and spirv have 256 on every device: make it smaller, write `requires(LargeWorkgroups)` on the kernel for devices that have 1024, or list `targets(cuda, cpu)`"
    );
    assert_eq!(
        told([1, 2048, 1]),
        "a workgroup of `large` has 2048 invocations (1 x 2048 x 1); wgsl and spirv have 256, cuda and cpu have 1024 on every device: make it smaller"
    );
    assert_eq!(
        told([1, 1, 128]),
        "a workgroup of `large` has 128 invocations along z; wgsl, spirv, cuda and cpu have 64 on every device: make it smaller"
    );
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
