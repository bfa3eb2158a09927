//! What invocations of a workgroup do together: workgroup memory, atomics, subgroups.

use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator as B, Builtin, ExpressionKind, Handle, Local, MathFunction as M, Module, Ordering,
    Place, Projection, Root, Scalar, StatementKind, SubgroupFunction, SubgroupOperator, Type, UnaryOperator,
};
use trefoil_codegen::target::{Feature, Features};

use super::{for_each, load, proved, store};

/// A sum over a row by one workgroup: workgroup memory, barriers, subgroups, loops.
pub(super) fn row_sum() -> Module {
    let mut module = ModuleBuilder::new("row_sum", [64, 1, 1]);
    module.module().requires = Features::of(&[Feature::Subgroups]);
    let float = module.scalar(Scalar::F32);
    let word = module.scalar(Scalar::U32);
    let index_type = module.scalar(Scalar::Index);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let width = module.param("width", index_type);
    let partial = module.workgroup("partial", float, 64, false);
    let mut body = module.entry();
    let zero = body.f32(0.0);
    let sum = body.variable("sum", float, Some(zero));
    let best = body.f32(f32::NEG_INFINITY);
    let best = body.variable("best", float, Some(best));
    let start = body.builtin(Builtin::LocalIndex);
    let end = body.param(width);
    let step = body.index(64);
    let k = body.new_local("k", index_type, false);
    let inner = body.nested(|body| {
        let (group, width, column) = (body.builtin(Builtin::GroupIndex), body.param(width), body.local(k));
        let row = body.binary(B::Multiply, group, width);
        let at = body.binary(B::Add, row, column);
        let value = body.load(element(Root::Binding(x), at));
        let value = body.bind("value", value);
        let (old, new) = (body.load(variable(sum)), body.local(value));
        let total = body.binary(B::Add, old, new);
        body.store(variable(sum), total);
        let (old, new) = (body.load(variable(best)), body.local(value));
        let larger = body.binary(B::Greater, new, old);
        let new = body.local(value);
        let old = body.load(variable(best));
        let chosen = body.select(larger, new, old);
        body.store(variable(best), chosen);
    });
    body.statement(StatementKind::For { local: k, start, end, step, body: inner, unroll: false });
    let value = body.load(variable(sum));
    let summed = body.subgroup("summed", SubgroupFunction::Reduce(SubgroupOperator::Add), value, None);
    let value = body.load(variable(best));
    let highest = body.subgroup("highest", SubgroupFunction::Reduce(SubgroupOperator::Max), value, None);
    let lane = body.u32(0);
    let value = body.local(highest);
    let first = body.subgroup("first", SubgroupFunction::Broadcast, value, Some(lane));
    let mask = body.u32(1);
    let value = body.local(first);
    let swapped = body.subgroup("swapped", SubgroupFunction::ShuffleXor, value, Some(mask));
    let lane = body.builtin(Builtin::SubgroupLane);
    let zero = body.index(0);
    let is_first = body.binary(B::Equal, lane, zero);
    body.if_then(is_first, |body| {
        let at = body.builtin(Builtin::SubgroupIndex);
        let (summed, swapped) = (body.local(summed), body.local(swapped));
        let both = body.binary(B::Add, summed, swapped);
        body.store(element(Root::Workgroup(partial), at), both);
    });
    body.barrier();
    let zero = body.index(0);
    let total = body.new_local("total", float, false);
    body.statement(StatementKind::UniformLoad {
        result: total,
        place: proved(element(Root::Workgroup(partial), zero)),
    });
    let local = body.builtin(Builtin::LocalIndex);
    let zero = body.index(0);
    let is_first = body.binary(B::Equal, local, zero);
    body.if_then(is_first, |body| {
        let (at, total) = (body.builtin(Builtin::GroupIndex), body.local(total));
        body.store(element(Root::Binding(y), at), total);
    });
    let _ = word;
    body.finish_entry();
    module.build()
}

/// Two axes: tiles in workgroup memory.
pub(super) fn transpose() -> Module {
    let mut module = ModuleBuilder::new("transpose", [16, 16, 1]);
    let float = module.scalar(Scalar::F32);
    let index_type = module.scalar(Scalar::Index);
    let sizes = module.array(index_type, 2);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let sizes = module.param("sizes", sizes);
    let tile = module.workgroup("tile", float, 16 * 17, false);
    let mut body = module.entry();
    let id = body.builtin(Builtin::GlobalId);
    let id = body.bind("id", id);
    let local = body.builtin(Builtin::LocalId);
    let local = body.bind("local", local);
    let lane = |body: &mut FunctionBuilder<'_>, of: Handle<Local>, lane: u32| {
        let of = body.local(of);
        body.lane(of, lane)
    };
    let size = |body: &mut FunctionBuilder<'_>, index: u32| {
        let base = body.param(sizes);
        body.expression(ExpressionKind::Member { base, index }, Type::Scalar(Scalar::Index))
    };
    let at = |body: &mut FunctionBuilder<'_>, row: u32, column: u32| {
        let (row, column, stride) = (lane(body, local, row), lane(body, local, column), body.index(17));
        let row = body.binary(B::Multiply, row, stride);
        let at = body.binary(B::Add, row, column);
        proved(element(Root::Workgroup(tile), at))
    };
    let (row, columns, column) = (lane(&mut body, id, 1), size(&mut body, 1), lane(&mut body, id, 0));
    let row = body.binary(B::Multiply, row, columns);
    let from = body.binary(B::Add, row, column);
    let value = body.load(element(Root::Binding(x), from));
    let place = at(&mut body, 1, 0);
    body.store(place, value);
    body.barrier();
    let group = body.builtin(Builtin::GroupId);
    let group = body.bind("group", group);
    let corner = |body: &mut FunctionBuilder<'_>, axis: u32, other: u32| {
        let (group, width, inside) = (lane(body, group, axis), body.index(16), lane(body, local, other));
        let corner = body.binary(B::Multiply, group, width);
        body.binary(B::Add, corner, inside)
    };
    let (row, rows) = (corner(&mut body, 0, 1), size(&mut body, 0));
    let row = body.binary(B::Multiply, row, rows);
    let column = corner(&mut body, 1, 0);
    let to = body.binary(B::Add, row, column);
    let place = at(&mut body, 0, 1);
    let value = body.load(place);
    body.store(element(Root::Binding(y), to), value);
    body.finish_entry();
    module.build()
}

/// Every atomic, in a buffer and in workgroup memory.
pub(super) fn histogram() -> Module {
    let mut module = ModuleBuilder::new("histogram", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let signed = module.scalar(Scalar::I32);
    let x = module.shared("x", word);
    let counts = module.atomic("counts", word);
    let extremes = module.atomic("extremes", signed);
    let seen = module.workgroup("seen", word, 64, true);
    let mut body = module.entry();
    let index = body.builtin(Builtin::LocalIndex);
    let i = body.bind("i", index);
    let (at, zero) = (body.local(i), body.u32(0));
    let place = proved(element(Root::Workgroup(seen), at));
    let function = AtomicFunction::Store;
    body.statement(StatementKind::Atomic {
        result: None,
        place,
        function,
        value: Some(zero),
        compare: None,
        ordering: Ordering::RELAXED,
    });
    body.barrier();
    let value = load(&mut body, x, i);
    let value = body.bind("value", value);
    for (name, function) in [
        ("before", AtomicFunction::Add),
        ("b", AtomicFunction::Subtract),
        ("c", AtomicFunction::And),
        ("d", AtomicFunction::Or),
        ("e", AtomicFunction::Xor),
        ("f", AtomicFunction::Exchange),
    ] {
        let (at, one) = (body.local(value), body.u32(1));
        body.atomic(name, function, element(Root::Binding(counts), at), Some(one));
    }
    let (at, one) = (body.local(i), body.u32(1));
    body.atomic("ours", AtomicFunction::Max, proved(element(Root::Workgroup(seen), at)), Some(one));
    let (at, one, two) = (body.local(i), body.u32(1), body.u32(2));
    let result = body.new_local("swapped", word, false);
    body.statement(StatementKind::Atomic {
        result: Some(result),
        place: element(Root::Workgroup(seen), at),
        function: AtomicFunction::CompareExchange,
        value: Some(two),
        compare: Some(one),
        ordering: Ordering::RELAXED,
    });
    let at = body.local(i);
    let now = body.atomic("now", AtomicFunction::Load, element(Root::Workgroup(seen), at), None);
    for function in [AtomicFunction::Min, AtomicFunction::Max] {
        let (at, now) = (body.local(i), body.local(now));
        let now = body.convert(now, Scalar::I32);
        let place = element(Root::Binding(extremes), at);
        body.statement(StatementKind::Atomic {
            result: None,
            place,
            function,
            value: Some(now),
            compare: None,
            ordering: Ordering::RELAXED,
        });
    }
    body.finish_entry();
    module.build()
}

/// Vectors lane by lane.
pub(super) fn lanes() -> Module {
    let mut module = ModuleBuilder::new("lanes", [64, 1, 1]);
    let four = module.vector(4, Scalar::F32);
    let signed = module.vector(4, Scalar::I32);
    let x = module.shared("x", four);
    let y = module.mutable("y", four);
    let z = module.mutable("z", signed);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let v = load(body, x, i);
        let v = body.bind("v", v);
        let value = |body: &mut FunctionBuilder<'_>| body.local(v);
        let mut sum = value(body);
        for operator in [B::Add, B::Subtract, B::Multiply, B::Divide] {
            let right = value(body);
            sum = body.binary(operator, sum, right);
        }
        let negative = value(body);
        let negative = body.unary(UnaryOperator::Negate, negative);
        for function in [M::Abs, M::Floor, M::Exp, M::Sqrt, M::InverseSqrt, M::Ln, M::Tanh, M::Trunc, M::RoundTiesEven]
        {
            let argument = value(body);
            let result = body.math(function, vec![argument]);
            sum = body.binary(B::Add, sum, result);
        }
        let (a, b, c) = (value(body), value(body), value(body));
        let fused = body.math(M::MulAdd, vec![a, b, c]);
        let (a, b) = (value(body), value(body));
        let larger = body.math(M::Max, vec![a, b]);
        let less = {
            let right = value(body);
            body.binary(B::Less, negative, right)
        };
        let chosen = body.select(less, fused, larger);
        let base = value(body);
        let turned =
            body.expression(ExpressionKind::Swizzle { base, lanes: vec![3, 2, 1, 0] }, Type::vector(4, Scalar::F32));
        let base = value(body);
        let two = body.expression(ExpressionKind::Swizzle { base, lanes: vec![1, 1] }, Type::vector(2, Scalar::F32));
        let base = value(body);
        let other = body.expression(ExpressionKind::Swizzle { base, lanes: vec![0, 2] }, Type::vector(2, Scalar::F32));
        let dot = body.math(M::Dot, vec![two, other]);
        let dot = body.splat(dot, 4);
        sum = body.binary(B::Add, sum, chosen);
        sum = body.binary(B::Multiply, sum, turned);
        sum = body.binary(B::Subtract, sum, dot);
        let out = body.variable("out", four, Some(sum));
        let (base, index) = (value(body), body.local(i));
        let lane = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
        let index = body.local(i);
        body.store(element(Root::Local(out), index), lane);
        let (base, index) = (value(body), body.local(i));
        let lane = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
        let place = Place { root: Root::Local(out), path: vec![Projection::Member(2)], guarded: false };
        body.store(place, lane);
        let nan = value(body);
        let nan = body.math(M::IsNan, vec![nan]);
        let (zeros, result) = (body.f32(0.0), body.load(variable(out)));
        let zeros = body.splat(zeros, 4);
        let result = body.select(nan, zeros, result);
        store(body, y, i, result);
        let integers = value(body);
        let integers = body.convert(integers, Scalar::I32);
        let ones = body.i32(1);
        let ones = body.splat(ones, 4);
        let integers = body.binary(B::Multiply, integers, ones);
        let amounts = body.u32(3);
        let amounts = body.splat(amounts, 4);
        let integers = body.binary(B::ShiftLeft, integers, amounts);
        store(body, z, i, integers);
    });
    body.finish_entry();
    module.build()
}

/// Subgroup operations on every type, in a workgroup whose last subgroup is not full.
pub(super) fn odd_subgroups() -> Module {
    let mut module = ModuleBuilder::new("odd_subgroups", [40, 1, 1]);
    module.module().requires = Features::of(&[Feature::Subgroups]);
    let float = module.scalar(Scalar::F32);
    let four = module.vector(4, Scalar::F32);
    let x = module.shared("x", four);
    let y = module.mutable("y", float);
    let mut body = module.entry();
    let at = body.builtin(Builtin::GlobalIndex);
    let value = body.load(element(Root::Binding(x), at));
    let value = body.bind("value", value);
    let mut sum = body.f32(0.0);
    for function in [SubgroupOperator::Add, SubgroupOperator::Max, SubgroupOperator::Min].map(SubgroupFunction::Reduce)
    {
        let wide = body.local(value);
        let wide = body.subgroup("wide", function, wide, None);
        let wide = body.local(wide);
        let first = body.lane(wide, 0);
        sum = body.binary(B::Add, sum, first);
        for scalar in [Scalar::I32, Scalar::U32] {
            let whole = body.local(value);
            let whole = body.lane(whole, 1);
            let whole = body.convert(whole, scalar);
            let whole = body.subgroup("whole", function, whole, None);
            let whole = body.local(whole);
            let whole = body.convert(whole, Scalar::F32);
            sum = body.binary(B::Add, sum, whole);
        }
    }
    let (wide, lane) = (body.local(value), body.builtin(Builtin::SubgroupSize));
    let lane = body.convert(lane, Scalar::U32);
    let turned = body.subgroup("turned", SubgroupFunction::Shuffle, wide, Some(lane));
    let turned = body.local(turned);
    let last = body.lane(turned, 3);
    sum = body.binary(B::Add, sum, last);
    let at = body.builtin(Builtin::GlobalIndex);
    body.store(element(Root::Binding(y), at), sum);
    body.finish_entry();
    module.build()
}

/// More workgroup memory than a CUDA kernel may declare.
pub fn large_tile() -> Module {
    let mut module = ModuleBuilder::new("large_tile", [256, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let odd = module.workgroup("odd", float, 33, false);
    let tile = module.workgroup("tile", float, 16 * 1024, false);
    let mut body = module.entry();
    let index = body.builtin(Builtin::LocalIndex);
    let i = body.bind("i", index);
    let at = body.local(i);
    let four = body.load(vector(Root::Binding(x), at, 4));
    let at = body.local(i);
    body.store(vector(Root::Workgroup(tile), at, 4), four);
    let (at, one) = (body.local(i), body.f32(1.0));
    body.store(element(Root::Workgroup(odd), at), one);
    body.barrier();
    let at = body.index(7);
    let value = body.load(element(Root::Workgroup(tile), at));
    let at = body.local(i);
    body.store(element(Root::Binding(y), at), value);
    body.finish_entry();
    module.build()
}
