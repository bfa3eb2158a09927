//! What lies in memory: vectors, packed halves, structs, views, private arrays, and buffers whose elements are words.

use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, vector};
use trefoil_codegen::ir::{
    BinaryOperator as B, Builtin, CallArgument, ExpressionKind, Literal, MathFunction as M, Module, Place, Projection,
    Root, Scalar, StatementKind, Struct, Type,
};

use super::{Value, for_each, load, proved, store};

/// Vector loads and stores beside scalar ones of the same buffers.
pub(super) fn wide_copy() -> Module {
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

/// Halves in buffers, one by one and four at a time.
pub(super) fn halves() -> Module {
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

/// Structs in buffers: fields, arrays in fields, whole elements.
pub(super) fn particles() -> Module {
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

/// Arrays of an invocation's own.
pub(super) fn private_arrays() -> Module {
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
pub(super) fn words() -> Module {
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
pub(super) fn views() -> Module {
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
pub(super) fn triples() -> Module {
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
