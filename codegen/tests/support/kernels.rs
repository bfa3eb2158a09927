//! Small kernels, made by hand, which together use every expression and statement of the IR.

use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator as B, Builtin, CallArgument, Case, Enum, Expression, ExpressionKind, Handle,
    Literal, Local, LogicalOperator, MathFunction as M, Module, Place, Projection, Root, Scalar, StatementKind, Struct,
    SubgroupFunction, Type, UnaryOperator,
};

use trefoil_codegen::target::{Feature, Features};

type Value = Handle<Expression>;

/// Every kernel.
pub fn all() -> Vec<Module> {
    vec![
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
    ]
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

/// Elementwise, with a function, a guarded buffer and a parameter.
pub fn scaled_gelu(local: &str) -> Module {
    let mut module = ModuleBuilder::new("scaled_gelu", [256, 1, 1]);
    module.module().doc = " y = gelu(x * scale), element by element.".to_owned();
    let float = module.scalar(Scalar::F32);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let scale = module.param("scale", float);
    let mut gelu = module.function("gelu");
    let argument = gelu.argument("x", float);
    gelu.result(float);
    let x_value = gelu.get_argument(argument);
    let half = gelu.f32(0.5);
    let left = gelu.binary(B::Multiply, half, x_value);
    let (one, x_value, inner) = (gelu.f32(1.0), gelu.get_argument(argument), gelu.f32(0.797_884_6));
    let inner = gelu.binary(B::Multiply, x_value, inner);
    let inner = gelu.math(M::Tanh, vec![inner]);
    let right = gelu.binary(B::Add, one, inner);
    let value = gelu.binary(B::Multiply, left, right);
    gelu.return_value(Some(value));
    let gelu = gelu.finish();
    let mut body = module.entry();
    for_each(&mut body, y, local, |body, i| {
        let value = load(body, x, i);
        let scale = body.param(scale);
        let value = body.binary(B::Multiply, value, scale);
        let value = body.call(gelu, vec![value], Type::Scalar(Scalar::F32));
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// A sum over a row by one workgroup: workgroup memory, barriers, subgroups, loops.
fn row_sum() -> Module {
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
    let summed = body.subgroup("summed", SubgroupFunction::Add, value, None);
    let value = body.load(variable(best));
    let highest = body.subgroup("highest", SubgroupFunction::Max, value, None);
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
fn transpose() -> Module {
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

/// Vector loads and stores beside scalar ones of the same buffers.
fn wide_copy() -> Module {
    let mut module = ModuleBuilder::new("wide_copy", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    let tile = module.workgroup("tile", float, 256, false);
    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let at = body.local(i);
    let four = body.load(vector(Root::Binding(x), at, 4));
    let four = body.bind("four", four);
    let at = body.builtin(Builtin::LocalIndex);
    let value = body.local(four);
    body.store(proved(vector(Root::Workgroup(tile), at, 4)), value);
    body.barrier();
    let at = body.builtin(Builtin::LocalIndex);
    let value = body.load(element(Root::Workgroup(tile), at));
    let single = body.bind("single", value);
    let at = body.local(i);
    let two = body.load(vector(Root::Binding(x), at, 2));
    let two = body.bind("two", two);
    let (at, wide, scalar) = (body.local(i), body.local(four), body.local(single));
    let scalar = body.splat(scalar, 4);
    let sum = body.binary(B::Add, wide, scalar);
    body.store(vector(Root::Binding(y), at, 4), sum);
    let (at, value) = (body.local(i), body.local(two));
    body.store(vector(Root::Binding(y), at, 2), value);
    let (at, value) = (body.local(i), body.local(single));
    body.store(element(Root::Binding(y), at), value);
    body.finish_entry();
    module.build()
}

/// Every atomic, in a buffer and in workgroup memory.
fn histogram() -> Module {
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
    body.statement(StatementKind::Atomic { result: None, place, function, value: Some(zero), compare: None });
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
    });
    let at = body.local(i);
    let now = body.atomic("now", AtomicFunction::Load, element(Root::Workgroup(seen), at), None);
    for function in [AtomicFunction::Min, AtomicFunction::Max] {
        let (at, now) = (body.local(i), body.local(now));
        let now = body.convert(now, Scalar::I32);
        let place = element(Root::Binding(extremes), at);
        body.statement(StatementKind::Atomic { result: None, place, function, value: Some(now), compare: None });
    }
    body.finish_entry();
    module.build()
}

/// Halves in buffers, one by one and four at a time.
fn halves() -> Module {
    let mut module = ModuleBuilder::new("halves", [64, 1, 1]);
    let half = module.scalar(Scalar::F16);
    let x = module.shared("x", half);
    let y = module.mutable("y", half);
    let z = module.mutable("z", half);
    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let at = body.local(i);
    let four = body.load(vector(Root::Binding(x), at, 4));
    let four = body.convert(four, Scalar::F32);
    let two = body.f32(2.0);
    let two = body.splat(two, 4);
    let four = body.binary(B::Multiply, four, two);
    let four = body.convert(four, Scalar::F16);
    let at = body.local(i);
    body.store(vector(Root::Binding(y), at, 4), four);
    let value = load(&mut body, x, i);
    let value = body.convert(value, Scalar::F32);
    let one = body.literal(Literal::F16(0x3c00));
    let one = body.convert(one, Scalar::F32);
    let value = body.binary(B::Add, value, one);
    let value = body.convert(value, Scalar::F16);
    let at = body.local(i);
    body.store(element(Root::Binding(z), at), value);
    body.finish_entry();
    module.build()
}

/// Every kind of parameter.
fn parameters() -> Module {
    let mut module = ModuleBuilder::new("parameters", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let word = module.scalar(Scalar::U32);
    let signed = module.scalar(Scalar::I32);
    let boolean = module.scalar(Scalar::Bool);
    let three = module.vector(3, Scalar::F32);
    let two = module.vector(2, Scalar::U32);
    let dims = module.array(word, 6);
    let flags = module.array(boolean, 3);
    let activation = Enum {
        name: "Activation".to_owned(),
        variants: vec![("None".to_owned(), 0), ("Relu".to_owned(), 1), ("Tanh".to_owned(), 7)],
    };
    let activation = module.module().enums.add(activation);
    let activation = module.module().intern(Type::Enum(activation));
    let y = module.mutable("y", float);
    let bias = module.param("bias", float);
    let direction = module.param("direction", three);
    let shift = module.param("shift", signed);
    let pair = module.param("pair", two);
    let dims = module.param("dims", dims);
    let enabled = module.param("enabled", boolean);
    let flags = module.param("flags", flags);
    let act = module.param("act", activation);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let (a, b) = (body.param(direction), body.param(direction));
        let dot = body.math(M::Dot, vec![a, b]);
        let bias = body.param(bias);
        let value = body.binary(B::Add, dot, bias);
        let shift = body.param(shift);
        let shift = body.convert(shift, Scalar::F32);
        let value = body.binary(B::Subtract, value, shift);
        let pair = body.param(pair);
        let first = body.lane(pair, 1);
        let first = body.convert(first, Scalar::F32);
        let value = body.binary(B::Multiply, value, first);
        let value = body.variable("value", float, Some(value));
        let (base, index) = (body.param(dims), body.local(i));
        let extent = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::U32));
        let base = body.param(dims);
        let last = body.expression(ExpressionKind::Member { base, index: 5 }, Type::Scalar(Scalar::U32));
        let extent = body.binary(B::Add, extent, last);
        let extent = body.convert(extent, Scalar::F32);
        let base = body.param(flags);
        let flag = body.expression(ExpressionKind::Member { base, index: 1 }, Type::Scalar(Scalar::Bool));
        let enabled = body.param(enabled);
        let both = body.logical(LogicalOperator::And, enabled, flag);
        body.if_then(both, |body| {
            let old = body.load(variable(value));
            let sum = body.binary(B::Add, old, extent);
            body.store(variable(value), sum);
        });
        let relu = body.nested(|body| {
            let (old, zero) = (body.load(variable(value)), body.f32(0.0));
            let new = body.math(M::Max, vec![old, zero]);
            body.store(variable(value), new);
        });
        let tanh = body.nested(|body| {
            let old = body.load(variable(value));
            let new = body.math(M::Tanh, vec![old]);
            body.store(variable(value), new);
        });
        let act = body.param(act);
        body.switch(act, vec![Case { values: vec![1], body: relu }, Case { values: vec![7], body: tanh }], vec![]);
        let all = body.param(dims);
        let all = body.bind("all", all);
        let (base, index) = (body.local(all), body.local(i));
        let one = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::U32));
        let one = body.convert(one, Scalar::F32);
        let value = body.load(variable(value));
        let value = body.binary(B::Add, value, one);
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// Structs in buffers: fields, arrays in fields, whole elements.
fn particles() -> Module {
    let mut module = ModuleBuilder::new("particles", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let four = module.vector(4, Scalar::F32);
    let two = module.vector(2, Scalar::F32);
    let weights = module.array(float, 6);
    let inner = module.module().structs.add(Struct {
        name: "Weights".to_owned(),
        fields: vec![("scale".to_owned(), two), ("values".to_owned(), weights)],
    });
    let inner_type = module.module().intern(Type::Struct(inner));
    let particle = module.module().structs.add(Struct {
        name: "Particle".to_owned(),
        fields: vec![("position".to_owned(), four), ("override".to_owned(), inner_type)],
    });
    let particle_type = module.module().intern(Type::Struct(particle));
    let particle_kind = Type::Struct(particle);
    let inner_kind = Type::Struct(inner);
    let particles = module.mutable("particles", particle_type);
    let mut body = module.entry();
    for_each(&mut body, particles, "i", |body, i| {
        let at = body.local(i);
        let whole = body.load(proved(element(Root::Binding(particles), at)));
        let whole = body.bind("whole", whole);
        let base = body.local(whole);
        let position = body.expression(ExpressionKind::Member { base, index: 0 }, Type::vector(4, Scalar::F32));
        let (outer, step) = (body.local(i), body.local(i));
        let inside = Place {
            root: Root::Binding(particles),
            path: vec![Projection::Index(outer), Projection::Member(1), Projection::Member(1), Projection::Index(step)],
            guarded: true,
        };
        let weight = body.load(inside.clone());
        let weight = body.splat(weight, 4);
        let position = body.binary(B::Multiply, position, weight);
        let at = body.local(i);
        let place = Place {
            root: Root::Binding(particles),
            path: vec![Projection::Index(at), Projection::Member(0)],
            guarded: false,
        };
        body.store(place, position);
        let (outer, step, lane) = (body.local(i), body.index(3), body.local(i));
        let place = Place {
            root: Root::Binding(particles),
            path: vec![Projection::Index(outer), Projection::Member(1), Projection::Member(1), Projection::Index(step)],
            guarded: true,
        };
        let one = body.f32(1.0);
        body.store(place, one);
        let outer = body.local(i);
        let place = Place {
            root: Root::Binding(particles),
            path: vec![Projection::Index(outer), Projection::Member(0), Projection::Index(lane)],
            guarded: true,
        };
        let two = body.f32(2.0);
        body.store(place, two);
        let zero = body.f32(0.0);
        let scale = body.splat(zero, 2);
        let one = body.f32(1.0);
        let values = body.expression(
            ExpressionKind::Splat(one),
            Type::Array { element: float, length: trefoil_codegen::ir::Size::Literal(6) },
        );
        let inner = body.expression(ExpressionKind::Compose(vec![scale, values]), inner_kind);
        let one = body.f32(1.0);
        let position = body.splat(one, 4);
        let whole = body.expression(ExpressionKind::Compose(vec![position, inner]), particle_kind);
        let (at, one) = (body.local(i), body.index(1));
        let next = body.binary(B::Add, at, one);
        body.store(element(Root::Binding(particles), next), whole);
    });
    body.finish_entry();
    module.build()
}

/// Control flow, and references to locals.
fn control() -> Module {
    let mut module = ModuleBuilder::new("control", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let signed = module.scalar(Scalar::I32);
    let index_type = module.scalar(Scalar::Index);
    let x = module.shared("x", word);
    let y = module.mutable("y", word);
    let mut halve = module.function("halve");
    halve.module();
    let argument = halve.argument("value", word);
    let step = halve.argument("amount", word);
    let place = Place { root: Root::Argument(argument), path: vec![], guarded: false };
    let (old, amount) = (halve.load(place.clone()), halve.get_argument(step));
    let new = halve.binary(B::ShiftRight, old, amount);
    halve.store(place, new);
    let halve = halve.finish();
    module.module().functions[halve].arguments[0].by_reference = true;
    let mut twice = module.function("twice");
    let argument = twice.argument("value", word);
    let two = twice.u32(2);
    let arguments = vec![CallArgument::Reference(Root::Argument(argument)), CallArgument::Value(two)];
    let call = twice.expression(ExpressionKind::Call { function: halve, arguments }, Type::Scalar(Scalar::U32));
    twice.statement(StatementKind::Evaluate(call));
    let twice = twice.finish();
    module.module().functions[twice].arguments[0].by_reference = true;
    let mut search = module.function("search");
    search.result(word);
    search.argument("limit", word);
    let zero = search.u32(1);
    let found = search.variable("found", word, Some(zero));
    search.endless_loop(|body| {
        let (old, two) = (body.load(variable(found)), body.u32(2));
        let new = body.binary(B::Multiply, old, two);
        body.store(variable(found), new);
        let (found_now, limit) = (body.load(variable(found)), body.get_argument(0));
        let over = body.binary(B::Greater, found_now, limit);
        body.if_then(over, |body| {
            let value = body.load(variable(found));
            body.return_value(Some(value));
        });
    });
    let search = search.finish();

    let mut body = module.entry();
    let index = body.builtin(Builtin::GlobalIndex);
    let i = body.bind("i", index);
    let (index, length) = (body.local(i), body.length(y));
    let beyond = body.binary(B::GreaterEqual, index, length);
    body.if_then(beyond, |body| body.return_value(None));
    let value = load(&mut body, x, i);
    let value = body.variable("value", word, Some(value));
    let (now, thousand) = (body.load(variable(value)), body.u32(1000));
    let condition = body.binary(B::Greater, now, thousand);
    body.while_loop(condition, |body| {
        let arguments = vec![CallArgument::Reference(Root::Local(value))];
        let call = body.expression(ExpressionKind::Call { function: twice, arguments }, Type::Scalar(Scalar::U32));
        body.statement(StatementKind::Evaluate(call));
    });
    // A choice that leaves the loop around it, and one that does not.
    let (start, end, step) = (body.index(0), body.length(x), body.builtin(Builtin::GroupCount));
    let k = body.new_local("k", index_type, false);
    let inner = body.nested(|body| {
        let leave = body.nested(|body| body.statement(StatementKind::Break));
        let skip = body.nested(|body| body.statement(StatementKind::Continue));
        let (element_value, three) = (load(body, x, k), body.u32(3));
        let selector = body.binary(B::And, element_value, three);
        body.switch(
            selector,
            vec![Case { values: vec![0, 1], body: leave }, Case { values: vec![2], body: skip }],
            vec![],
        );
        let (old, one) = (body.load(variable(value)), body.u32(1));
        let new = body.binary(B::Add, old, one);
        body.store(variable(value), new);
    });
    body.statement(StatementKind::For { local: k, start, end, step, body: inner, unroll: false });
    let (start, end, step) = (body.i32(-8), body.i32(8), body.i32(4));
    let k = body.new_local("k", signed, false);
    let inner = body.nested(|body| {
        let selector = body.local(k);
        let up = body.nested(|body| {
            let (old, one) = (body.load(variable(value)), body.u32(1));
            let new = body.binary(B::Add, old, one);
            body.store(variable(value), new);
        });
        let leave = body.nested(|body| body.statement(StatementKind::Continue));
        body.switch(selector, vec![Case { values: vec![0xffff_fff8], body: up }], leave);
        let (now, zero) = (body.load(variable(value)), body.u32(0));
        let is_zero = body.binary(B::Equal, now, zero);
        body.if_else(
            is_zero,
            |body| body.statement(StatementKind::Break),
            |body| {
                let (now, one) = (body.load(variable(value)), body.u32(1));
                let is_one = body.binary(B::Equal, now, one);
                body.if_else(
                    is_one,
                    |body| body.statement(StatementKind::Continue),
                    |body| {
                        let seven = body.u32(7);
                        body.store(variable(value), seven);
                    },
                );
            },
        );
    });
    body.statement(StatementKind::For { local: k, start, end, step, body: inner, unroll: false });
    let limit = body.load(variable(value));
    let found = body.call(search, vec![limit], Type::Scalar(Scalar::U32));
    let found = body.bind("found", found);
    let value = body.local(found);
    store(&mut body, y, i, value);
    body.finish_entry();
    module.build()
}

/// Vectors lane by lane.
fn lanes() -> Module {
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

/// Integers and bits.
fn integers() -> Module {
    let mut module = ModuleBuilder::new("integers", [64, 1, 1]);
    let signed = module.scalar(Scalar::I32);
    let word = module.scalar(Scalar::U32);
    let x = module.shared("x", signed);
    let y = module.mutable("y", signed);
    let bits = module.mutable("bits", word);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let a = load(body, x, i);
        let a = body.bind("a", a);
        let get = |body: &mut FunctionBuilder<'_>| body.local(a);
        let mut all = get(body);
        for operator in [B::Add, B::Subtract, B::Multiply, B::And, B::Or, B::Xor] {
            let right = get(body);
            all = body.binary(operator, all, right);
        }
        for operator in [B::Divide, B::Remainder] {
            let seven = body.i32(-7);
            all = body.binary(operator, all, seven);
        }
        for operator in [B::ShiftLeft, B::ShiftRight] {
            let five = body.u32(5);
            all = body.binary(operator, all, five);
        }
        let least = body.i32(i32::MIN);
        all = body.binary(B::Add, all, least);
        all = body.unary(UnaryOperator::Negate, all);
        all = body.unary(UnaryOperator::Not, all);
        all = body.math(M::Abs, vec![all]);
        all = body.math(M::Signum, vec![all]);
        let (low, high) = (body.i32(-5), body.i32(5));
        all = body.math(M::Clamp, vec![all, low, high]);
        store(body, y, i, all);
        let mut count = body.u32(0);
        for function in [M::CountOnes, M::LeadingZeros, M::TrailingZeros] {
            let argument = get(body);
            let one = body.math(function, vec![argument]);
            count = body.binary(B::Add, count, one);
        }
        let raw = get(body);
        let raw = body.bitcast(raw, Scalar::F32);
        let raw = body.convert(raw, Scalar::U32);
        count = body.binary(B::Xor, count, raw);
        let (left, right) = (get(body), get(body));
        let less = body.binary(B::Less, left, right);
        let zero = body.i32(0);
        let left = get(body);
        let positive = body.binary(B::Greater, left, zero);
        let both = body.binary(B::Xor, less, positive);
        let both = body.convert(both, Scalar::U32);
        count = body.binary(B::Or, count, both);
        store(body, bits, i, count);
    });
    body.finish_entry();
    module.build()
}

/// Constants that languages are particular about.
fn constants() -> Module {
    let mut module = ModuleBuilder::new("constants", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", float);
    let z = module.mutable("z", word);
    let mut body = module.entry();
    let values = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        -0.0,
        0.1,
        16_777_216.0,
        1e20,
        -1.0,
    ];
    let constant = |position: usize| move |body: &mut FunctionBuilder<'_>| body.index(position as u32);
    for (position, value) in values.into_iter().enumerate() {
        let at = constant(position)(&mut body);
        let value = body.f32(value);
        body.store(element(Root::Binding(y), at), value);
    }
    // Computed at compile time, these are errors in WGSL.
    let (one, zero) = (body.f32(1.0), body.f32(0.0));
    let infinite = body.binary(B::Divide, one, zero);
    let at = body.index(20);
    body.store(element(Root::Binding(y), at), infinite);
    let (a, b) = (body.f32(f32::MAX), body.f32(f32::MAX));
    let large = body.binary(B::Multiply, a, b);
    let large = body.unary(UnaryOperator::Negate, large);
    let at = body.index(21);
    body.store(element(Root::Binding(y), at), large);
    let minus = body.f32(-1.0);
    let root = body.math(M::Sqrt, vec![minus]);
    let at = body.index(22);
    body.store(element(Root::Binding(y), at), root);
    let bits = body.u32(0x7fc0_0000);
    let nan = body.bitcast(bits, Scalar::F32);
    let at = body.index(23);
    body.store(element(Root::Binding(y), at), nan);
    let (a, b) = (body.f32(1.5), body.f32(2.0));
    let fine = body.binary(B::Multiply, a, b);
    let at = body.index(24);
    body.store(element(Root::Binding(y), at), fine);
    let (a, b) = (body.u32(0), body.u32(1));
    let wrapped = body.binary(B::Subtract, a, b);
    let at = body.index(0);
    body.store(element(Root::Binding(z), at), wrapped);
    let (a, b) = (body.i32(i32::MAX), body.i32(1));
    let wrapped = body.binary(B::Add, a, b);
    let wrapped = body.bitcast(wrapped, Scalar::U32);
    let at = body.index(1);
    body.store(element(Root::Binding(z), at), wrapped);
    let large = body.f32(1e30);
    let large = body.convert(large, Scalar::U32);
    let at = body.index(2);
    body.store(element(Root::Binding(z), at), large);
    let not = body.u32(5);
    let not = body.unary(UnaryOperator::Not, not);
    let at = body.index(3);
    body.store(element(Root::Binding(z), at), not);
    body.finish_entry();
    module.build()
}

/// Arrays of an invocation's own.
fn private_arrays() -> Module {
    let mut module = ModuleBuilder::new("private_arrays", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let index_type = module.scalar(Scalar::Index);
    let eight = module.array(float, 8);
    let eight_type = module.module().types[eight].clone();
    let grid = module.array(eight, 2);
    let y = module.mutable("y", float);
    let mut fill = module.function("fill");
    let argument = fill.argument("sums", eight);
    let at = fill.argument("at", index_type);
    let (index, value) = (fill.get_argument(at), fill.f32(3.0));
    fill.store(element(Root::Argument(argument), index), value);
    let fill = fill.finish();
    module.module().functions[fill].arguments[0].by_reference = true;
    let mut made = module.function("made");
    made.result(eight);
    let parts: Vec<Value> = (0..8).map(|part| made.f32(part as f32)).collect();
    let all = made.expression(ExpressionKind::Compose(parts), eight_type.clone());
    made.return_value(Some(all));
    let made = made.finish();
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let zero = body.f32(0.0);
        let zeros = body.expression(ExpressionKind::Splat(zero), eight_type.clone());
        let sums = body.variable("sums", eight, Some(zeros));
        let (start, end) = (body.index(0), body.index(8));
        body.for_range("k", start, end, |body, k| {
            let (from, to) = (body.local(k), body.local(k));
            let old = body.load(proved(element(Root::Local(sums), from)));
            let step = body.local(k);
            let step = body.convert(step, Scalar::F32);
            let new = body.binary(B::Add, old, step);
            body.store(proved(element(Root::Local(sums), to)), new);
        });
        let at = body.local(i);
        let arguments = vec![CallArgument::Reference(Root::Local(sums)), CallArgument::Value(at)];
        let call = body.expression(ExpressionKind::Call { function: fill, arguments }, Type::Scalar(Scalar::F32));
        body.statement(StatementKind::Evaluate(call));
        let fixed = body.call(made, vec![], eight_type.clone());
        let fixed = body.bind("fixed", fixed);
        let (base, index) = (body.local(fixed), body.local(i));
        let one = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
        let index = body.local(i);
        let two = body.load(element(Root::Local(sums), index));
        let sum = body.binary(B::Add, one, two);
        let rows = body.variable("rows", grid, None);
        let (row, column) = (body.index(1), body.local(i));
        let path = vec![Projection::Index(row), Projection::Index(column)];
        body.store(Place { root: Root::Local(rows), path, guarded: true }, sum);
        let (row, column) = (body.local(i), body.index(9));
        let path = vec![Projection::Index(row), Projection::Index(column)];
        let value = body.load(Place { root: Root::Local(rows), path, guarded: true });
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// The languages' own words as the author's names, and shadowing.
fn words() -> Module {
    let mut module = ModuleBuilder::new("words", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let texture = module.shared("texture", float);
    let params = module.mutable("params", float);
    let mut function = module.function("template");
    function.argument("float", float);
    function.result(float);
    let value = function.get_argument(0);
    function.return_value(Some(value));
    let function = function.finish();
    let mut body = module.entry();
    for_each(&mut body, params, "i", |body, i| {
        let value = load(body, texture, i);
        let mut last = body.bind("x", value);
        for name in ["x", "x", "var", "vec4", "max", "double", "params_at", "group_index", "__value", "_"] {
            let (left, right) = (body.local(last), body.f32(1.0));
            let next = body.binary(B::Add, left, right);
            last = body.bind(name, next);
        }
        let value = body.local(last);
        let value = body.call(function, vec![value], Type::Scalar(Scalar::F32));
        let zero = body.f32(0.0);
        let value = body.math(M::Max, vec![value, zero]);
        let at = body.local(i);
        body.store(element(Root::Binding(params), at), value);
    });
    body.finish_entry();
    module.build()
}

/// A view: extents and strides.
fn views() -> Module {
    let mut module = ModuleBuilder::new("views", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let x = module.shared("x", float);
    let y = module.mutable("y", float);
    module.module().bindings[x as usize].view = Some(5);
    let mut body = module.entry();
    for_each(&mut body, y, "i", |body, i| {
        let index =
            |body: &mut FunctionBuilder<'_>, kind: ExpressionKind| body.expression(kind, Type::Scalar(Scalar::Index));
        let stride = index(body, ExpressionKind::ViewStride { binding: x, axis: 4 });
        let extent = index(body, ExpressionKind::ViewExtent { binding: x, axis: 0 });
        let at = body.local(i);
        let at = body.binary(B::Multiply, at, stride);
        let at = body.binary(B::Add, at, extent);
        let value = body.load(element(Root::Binding(x), at));
        store(body, y, i, value);
    });
    body.finish_entry();
    module.build()
}

/// Three lanes, which WGSL would give the room of four: alone, and in structs.
fn triples() -> Module {
    let mut module = ModuleBuilder::new("triples", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let signed = module.scalar(Scalar::I32);
    let three = module.vector(3, Scalar::F32);
    let pair = module.array(three, 2);
    let body_kind = module.module().structs.add(Struct {
        name: "Body".to_owned(),
        fields: vec![("ends".to_owned(), pair), ("mass".to_owned(), float), ("kind".to_owned(), signed)],
    });
    let body_type = module.module().intern(Type::Struct(body_kind));
    let x = module.shared("x", three);
    let bodies = module.mutable("bodies", body_type);
    let mut body = module.entry();
    for_each(&mut body, bodies, "i", |body, i| {
        let value = load(body, x, i);
        let (at, end) = (body.local(i), body.local(i));
        let path = vec![Projection::Index(at), Projection::Member(0), Projection::Index(end)];
        body.store(Place { root: Root::Binding(bodies), path, guarded: true }, value);
        let at = body.local(i);
        let path = vec![Projection::Index(at), Projection::Member(2)];
        let kind = body.i32(-3);
        body.store(Place { root: Root::Binding(bodies), path, guarded: false }, kind);
        let at = body.local(i);
        let whole = body.load(proved(element(Root::Binding(bodies), at)));
        let (at, one) = (body.local(i), body.index(1));
        let next = body.binary(B::Add, at, one);
        body.store(element(Root::Binding(bodies), next), whole);
        let (at, lane) = (body.local(i), body.local(i));
        let path = vec![Projection::Index(at), Projection::Index(lane)];
        let lane = body.load(Place { root: Root::Binding(x), path, guarded: true });
        let at = body.local(i);
        let path = vec![Projection::Index(at), Projection::Member(1)];
        body.store(Place { root: Root::Binding(bodies), path, guarded: false }, lane);
    });
    body.finish_entry();
    module.build()
}

/// Subgroup operations on every type, in a workgroup whose last subgroup is not full.
fn odd_subgroups() -> Module {
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
    for function in [SubgroupFunction::Add, SubgroupFunction::Max, SubgroupFunction::Min] {
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
