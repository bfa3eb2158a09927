//! Buffers, parameters, structs, vectors, views and grids.

use super::*;

#[test]
fn elements_params_and_guards() {
    let mut module = ModuleBuilder::new("scaled", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let flag = module.scalar(Scalar::Bool);
    let four = module.vector(3, Scalar::F32);
    let table = module.array(float, 5);
    let (x, bias, y) = (module.shared("x", float), module.shared("bias", float), module.mutable("y", float));
    let (scale, negate) = (module.param("scale", float), module.param("negate", flag));
    let (shift, table) = (module.param("shift", four), module.param("table", table));
    let mut body = module.entry();
    let i = global(&mut body);
    // Neither read nor write is in range everywhere, and nothing asks.
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let factor = body.param(scale);
    let value = body.binary(Op::Multiply, value, factor);
    let index = body.local(i);
    let three = body.index(3);
    let index = body.binary(Op::Remainder, index, three);
    let more = read(&mut body, Root::Binding(bias), index);
    let value = body.binary(Op::Add, value, more);
    let lanes = body.param(shift);
    let lane = body.lane(lanes, 2);
    let value = body.binary(Op::Add, value, lane);
    let base = body.param(table);
    let index = body.local(i);
    let six = body.index(6);
    let index = body.binary(Op::Remainder, index, six);
    let entry = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
    let value = body.binary(Op::Add, value, entry);
    let value = body.bind("value", value);
    let (condition, accept, reject) = (body.param(negate), body.local(value), body.local(value));
    let accept = body.unary(UnaryOperator::Negate, accept);
    let value = body.select(condition, accept, reject);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, value);
    body.finish_entry();
    let module = module.build();
    for (n, negated) in [(0u32, true), (1, false), (190, true), (200, false)] {
        let buffers = [floats((0..n).map(|i| i as f32)), floats([10.0, 20.0]), floats((0..n + 5).map(|_| f32::NAN))];
        let params = [
            vec![2.0f32.to_bits()],
            vec![negated.into()],
            [1.0f32, 2.0, 0.5].map(f32::to_bits).to_vec(),
            [100.0f32, 200.0, 300.0, 400.0, 500.0].map(f32::to_bits).to_vec(),
        ];
        let run = Run { groups: [4, 1, 1], buffers: &buffers, params: &params, views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { return };
        let expected: Vec<f32> = (0..n + 5)
            .map(|i| {
                let x = if i < n { i as f32 } else { 0.0 };
                let bias = [10.0, 20.0, 0.0][i as usize % 3];
                let table = [100.0, 200.0, 300.0, 400.0, 500.0, 0.0][i as usize % 6];
                let value = x * 2.0 + bias + 0.5 + table;
                if negated { -value } else { value }
            })
            .collect();
        assert_eq!(as_floats(&got[2]), expected, "n = {n}");
    }
}

#[test]
fn structs_and_small_vectors() {
    let mut module = ModuleBuilder::new("particles", [16, 1, 1]);
    let (float, int) = (module.scalar(Scalar::F32), module.scalar(Scalar::I32));
    let (two, three, four) =
        (module.vector(2, Scalar::F32), module.vector(3, Scalar::F32), module.vector(4, Scalar::F32));
    let counts = module.array(int, 3);
    // Offsets 0, 12, 16, 28 -> 32, 40 -> 48; size 64: the vec3 is not aligned to 16 bytes.
    let particle = module.module().structs.add(Struct {
        name: "Particle".to_owned(),
        fields: vec![
            ("position".to_owned(), three),
            ("mass".to_owned(), float),
            ("counts".to_owned(), counts),
            ("uv".to_owned(), two),
            ("colour".to_owned(), four),
        ],
    });
    let particle = module.module().intern(Type::Struct(particle));
    let (x, y, z) = (module.shared("x", particle), module.mutable("y", particle), module.mutable("z", three));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let whole = read(&mut body, Root::Binding(x), index);
    let whole = body.bind("whole", whole);
    let (index, value) = (body.local(i), body.local(whole));
    write(&mut body, Root::Binding(y), index, value);
    let index = body.local(i);
    let place = |index, path: Vec<Projection>, binding| {
        let mut all = vec![Projection::Index(index)];
        all.extend(path);
        Place { root: Root::Binding(binding), path: all, guarded: true }
    };
    let mass = body.load(place(index, vec![Projection::Member(1)], x));
    let mass = body.bind("mass", mass);
    // y[i].position.y = mass; y[i].counts[i % 4] += 100
    let (index, value) = (body.local(i), body.local(mass));
    body.store(place(index, vec![Projection::Member(0), Projection::Member(1)], y), value);
    let (index, quarter) = (body.local(i), body.index(4));
    let part = body.binary(Op::Remainder, index, quarter);
    let part = body.bind("part", part);
    let (index, part_now) = (body.local(i), body.local(part));
    let count = body.load(place(index, vec![Projection::Member(2), Projection::Index(part_now)], x));
    let hundred = body.i32(100);
    let count = body.binary(Op::Add, count, hundred);
    let (index, part_now) = (body.local(i), body.local(part));
    body.store(place(index, vec![Projection::Member(2), Projection::Index(part_now)], y), count);
    // z[i] = whole.position + splat(whole.colour[i])
    let base = body.local(whole);
    let position = body.expression(ExpressionKind::Member { base, index: 0 }, Type::vector(3, Scalar::F32));
    let base = body.local(whole);
    let colour = body.expression(ExpressionKind::Member { base, index: 4 }, Type::vector(4, Scalar::F32));
    let index = body.local(i);
    let lane = body.expression(ExpressionKind::Element { base: colour, index }, Type::Scalar(Scalar::F32));
    let lanes = body.splat(lane, 3);
    let sum = body.binary(Op::Add, position, lanes);
    let index = body.local(i);
    write(&mut body, Root::Binding(z), index, sum);
    body.finish_entry();
    let module = module.build();
    let n = 13u32;
    let record = |i: u32| -> [u32; 16] {
        let f = |k: u32| ((i * 16 + k) as f32).to_bits();
        let mut record = [0; 16];
        for k in [0, 1, 2, 3, 8, 9, 12, 13, 14, 15] {
            record[k as usize] = f(k);
        }
        for k in 4..7 {
            record[k as usize] = i * 16 + k;
        }
        record
    };
    let poison = 0xa5a5_a5a5u32;
    let buffers =
        [words((0..n).flat_map(record)), words((0..n * 16).map(|_| poison)), words((0..(n + 2) * 3).map(|_| poison))];
    let run = Run { groups: [2, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for i in 0..n {
        let mut expected = record(i);
        // Padding is not written.
        for k in [7, 10, 11] {
            expected[k] = poison;
        }
        expected[1] = expected[3];
        if i % 4 < 3 {
            expected[4 + i as usize % 4] += 100;
        }
        assert_eq!(as_words(&got[1])[i as usize * 16..][..16], expected, "{i}");
    }
    for i in 0..n + 2 {
        let known = record(i).map(f32::from_bits);
        let add = if i < 4 { known[12 + i as usize] } else { 0.0 };
        let expected = if i < n { [known[0] + add, known[1] + add, known[2] + add] } else { [0.0; 3] };
        assert_eq!(as_floats(&got[2])[i as usize * 3..][..3], expected, "{i}");
    }
}

#[test]
fn vector_accesses_beside_scalar_ones() {
    let mut module = ModuleBuilder::new("wide", [32, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let (x, y) = (module.shared("x", float), module.mutable("y", float));
    let tile = module.workgroup("tile", float, 130, false);
    let mut body = module.entry();
    let i = body.builtin(Builtin::LocalIndex);
    let i = body.bind("i", i);
    let index = body.local(i);
    let four = body.load(vector(Root::Binding(x), index, 4));
    let index = body.local(i);
    body.store(vector(Root::Workgroup(tile), index, 4), four);
    body.barrier();
    let (index, one) = (body.local(i), body.index(1));
    let other = body.binary(Op::Add, index, one);
    let two = body.load(vector(Root::Workgroup(tile), other, 2));
    let index = body.local(i);
    let more = body.load(vector(Root::Binding(x), index, 2));
    let two = body.binary(Op::Add, two, more);
    let index = body.local(i);
    body.store(vector(Root::Binding(y), index, 2), two);
    let (index, base) = (body.local(i), body.index(64));
    let to = body.binary(Op::Add, index, base);
    let index = body.local(i);
    let one = read(&mut body, Root::Binding(x), index);
    write(&mut body, Root::Binding(y), to, one);
    body.finish_entry();
    let module = module.build();
    for n in [101u32, 128, 3, 0] {
        let buffers = [floats((0..n).map(|i| i as f32 + 1.0)), floats((0..95).map(|_| -1.0))];
        let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { return };
        let x = |i: u32| if i < n { i as f32 + 1.0 } else { 0.0 };
        let quad = |i: u32| if i / 4 * 4 + 4 <= n { x(i) } else { 0.0 };
        let pair = |i: u32| if i / 2 * 2 + 2 <= n { x(i) } else { 0.0 };
        let expected: Vec<f32> = (0..95u32).map(|i| if i < 64 { quad(i + 2) + pair(i) } else { x(i - 64) }).collect();
        assert_eq!(as_floats(&got[1]), expected, "n = {n}");
    }
}

#[test]
fn arrays_in_locals() {
    let mut module = ModuleBuilder::new("locals", [16, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let four = module.array(float, 4);
    let y = module.mutable("y", float);
    let mut body = module.entry();
    let i = global(&mut body);
    // An immutable table, a mutable array, a vector: each read past its end.
    let parts = [1.0, 2.0, 3.0, 4.0].map(|value| body.f32(value)).to_vec();
    let table = body.expression(
        ExpressionKind::Compose(parts),
        Type::Array { element: float, length: trefoil_codegen::ir::Size::Literal(4) },
    );
    let table = body.bind("table", table);
    let zero = body.f32(0.0);
    let kept = body.expression(
        ExpressionKind::Splat(zero),
        Type::Array { element: float, length: trefoil_codegen::ir::Size::Literal(4) },
    );
    let kept = body.variable("kept", four, Some(kept));
    let (index, value) = (body.local(i), body.f32(10.0));
    write(&mut body, Root::Local(kept), index, value);
    let (base, index) = (body.local(table), body.local(i));
    let first = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
    let (index, one) = (body.local(i), body.index(0));
    let index = body.binary(Op::Add, index, one);
    let second = read(&mut body, Root::Local(kept), index);
    let sum = body.binary(Op::Add, first, second);
    let lanes = [100.0, 200.0, 300.0].map(|value| body.f32(value)).to_vec();
    let base = body.compose(lanes);
    let index = body.local(i);
    let third = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::F32));
    let sum = body.binary(Op::Add, sum, third);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, sum);
    body.finish_entry();
    let module = module.build();
    let buffers = [floats([0.0; 9])];
    let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    assert_eq!(as_floats(&got[0]), [111.0, 212.0, 313.0, 14.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn grids_of_three_axes() {
    let mut module = ModuleBuilder::new("volume", [2, 3, 2]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let mut body = module.entry();
    let id = body.builtin(Builtin::GlobalId);
    let id = body.bind("id", id);
    let counts = body.builtin(Builtin::GroupCounts);
    let counts = body.bind("counts", counts);
    let axis = |body: &mut FunctionBuilder<'_>, of, axis| {
        let of = body.local(of);
        body.lane(of, axis)
    };
    let (x, y_, z) = (axis(&mut body, id, 0), axis(&mut body, id, 1), axis(&mut body, id, 2));
    let (wide, high) = (axis(&mut body, counts, 0), axis(&mut body, counts, 1));
    let (two, three) = (body.index(2), body.index(3));
    let (wide, high) = (body.binary(Op::Multiply, wide, two), body.binary(Op::Multiply, high, three));
    let row = body.binary(Op::Multiply, z, high);
    let row = body.binary(Op::Add, row, y_);
    let row = body.binary(Op::Multiply, row, wide);
    let to = body.binary(Op::Add, row, x);
    let value = body.builtin(Builtin::GlobalIndex);
    let value = body.convert(value, Scalar::U32);
    let thousand = body.u32(1000);
    let value = body.binary(Op::Multiply, value, thousand);
    let count = body.builtin(Builtin::GroupCount);
    let count = body.convert(count, Scalar::U32);
    let value = body.binary(Op::Add, value, count);
    write(&mut body, Root::Binding(y), to, value);
    body.finish_entry();
    let module = module.build();
    let (gx, gy, gz) = (3u32, 2u32, 4u32);
    let buffers = [words(vec![0; (gx * gy * gz * 12) as usize])];
    let run = Run { groups: [gx, gy, gz], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let got = as_words(&got[0]);
    for z in 0..gz * 2 {
        for y in 0..gy * 3 {
            for x in 0..gx * 2 {
                let group = x / 2 + gx * (y / 3 + gy * (z / 2));
                let local = x % 2 + 2 * (y % 3 + 3 * (z % 2));
                let at = x + gx * 2 * (y + gy * 3 * z);
                assert_eq!(got[at as usize], (group * 12 + local) * 1000 + gx * gy * gz);
            }
        }
    }
}

#[test]
fn views_carry_extents_and_strides() {
    let mut module = ModuleBuilder::new("transposed", [16, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let (x, y) = (module.shared("x", word), module.mutable("y", word));
    module.module().bindings[x as usize].view = Some(2);
    let mut body = module.entry();
    let i = global(&mut body);
    let index = Type::Scalar(Scalar::Index);
    let extent = body.expression(ExpressionKind::ViewExtent { binding: x, axis: 1 }, index.clone());
    let extent = body.bind("extent", extent);
    let (at, by) = (body.local(i), body.local(extent));
    let row = body.binary(Op::Divide, at, by);
    let (at, by) = (body.local(i), body.local(extent));
    let column = body.binary(Op::Remainder, at, by);
    let stride = body.expression(ExpressionKind::ViewStride { binding: x, axis: 0 }, index.clone());
    let row = body.binary(Op::Multiply, row, stride);
    let stride = body.expression(ExpressionKind::ViewStride { binding: x, axis: 1 }, index);
    let column = body.binary(Op::Multiply, column, stride);
    let from = body.binary(Op::Add, row, column);
    let value = read(&mut body, Root::Binding(x), from);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, value);
    body.finish_entry();
    let module = module.build();
    let (rows, columns) = (5u32, 7u32);
    let buffers = [words(0..rows * columns), words(vec![0; (rows * columns) as usize])];
    let views = [(vec![columns, rows], vec![1, columns]), (Vec::new(), Vec::new())];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &views };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..rows * columns).map(|i| i % rows * columns + i / rows).collect();
    assert_eq!(as_words(&got[1]), expected);
}
