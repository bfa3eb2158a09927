//! Workgroup memory, barriers, atomics and subgroups.

use super::*;

#[test]
fn tiled_product_through_workgroup_memory() {
    const TILE: u32 = 8;
    let mut module = ModuleBuilder::new("product", [TILE, TILE, 1]);
    let float = module.scalar(Scalar::F32);
    let index_type = module.scalar(Scalar::Index);
    let (a, b, c) = (module.shared("a", float), module.shared("b", float), module.mutable("c", float));
    let n = module.param("n", index_type);
    let left = module.workgroup("left", float, TILE * TILE, false);
    let right = module.workgroup("right", float, TILE * TILE, false);
    let mut body = module.entry();
    let (group, local) = (body.builtin(Builtin::GroupId), body.builtin(Builtin::LocalId));
    let (group, local) = (body.bind("group", group), body.bind("local", local));
    let axis = |body: &mut FunctionBuilder<'_>, of, axis| {
        let of = body.local(of);
        body.lane(of, axis)
    };
    let position = |body: &mut FunctionBuilder<'_>, a| {
        let (group, tile, local) = (axis(body, group, a), body.index(TILE), axis(body, local, a));
        let start = body.binary(Op::Multiply, group, tile);
        body.binary(Op::Add, start, local)
    };
    let column = position(&mut body, 0);
    let column = body.bind("column", column);
    let row = position(&mut body, 1);
    let row = body.bind("row", row);
    let zero = body.f32(0.0);
    let sum = body.variable("sum", float, Some(zero));
    let at = |body: &mut FunctionBuilder<'_>, row, width, column| {
        let start = body.binary(Op::Multiply, row, width);
        body.binary(Op::Add, start, column)
    };
    let (start, end, tile) = (body.index(0), body.param(n), body.index(TILE));
    let end = body.binary(Op::Add, end, tile);
    let one = body.index(1);
    let end = body.binary(Op::Subtract, end, one);
    let tile = body.index(TILE);
    let end = body.binary(Op::Divide, end, tile);
    body.for_range("step", start, end, |body, step| {
        let base = |body: &mut FunctionBuilder<'_>| {
            let (step, tile) = (body.local(step), body.index(TILE));
            body.binary(Op::Multiply, step, tile)
        };
        // Out of range in a column reads the next row, which the other operand's zeros make harmless: b's rows are past the end.
        let k = base(body);
        let x = axis(body, local, 0);
        let k = body.binary(Op::Add, k, x);
        let k = body.bind("k", k);
        let (r, width, kk) = (body.local(row), body.param(n), body.local(k));
        let from = at(body, r, width, kk);
        let value = read(body, Root::Binding(a), from);
        let (kk, width) = (body.local(k), body.param(n));
        let inside = body.binary(Op::Less, kk, width);
        let zero = body.f32(0.0);
        let value = body.select(inside, value, zero);
        let (y, tile, x) = (axis(body, local, 1), body.index(TILE), axis(body, local, 0));
        let to = at(body, y, tile, x);
        write(body, Root::Workgroup(left), to, value);
        let k = base(body);
        let y = axis(body, local, 1);
        let k = body.binary(Op::Add, k, y);
        let (width, column) = (body.param(n), body.local(column));
        let from = at(body, k, width, column);
        let value = read(body, Root::Binding(b), from);
        let (y, tile, x) = (axis(body, local, 1), body.index(TILE), axis(body, local, 0));
        let to = at(body, y, tile, x);
        write(body, Root::Workgroup(right), to, value);
        body.barrier();
        let (start, end) = (body.index(0), body.index(TILE));
        body.for_range("inner", start, end, |body, inner| {
            let (y, tile, k) = (axis(body, local, 1), body.index(TILE), body.local(inner));
            let from = at(body, y, tile, k);
            let l = read(body, Root::Workgroup(left), from);
            let (k, tile, x) = (body.local(inner), body.index(TILE), axis(body, local, 0));
            let from = at(body, k, tile, x);
            let r = read(body, Root::Workgroup(right), from);
            let now = body.load(variable(sum));
            let next = body.math(Math::MulAdd, vec![l, r, now]);
            body.store(variable(sum), next);
        });
        body.barrier();
    });
    let (r, c_, width, width2) = (body.local(row), body.local(column), body.param(n), body.param(n));
    let first = body.binary(Op::Less, r, width);
    let second = body.binary(Op::Less, c_, width2);
    let inside = body.logical(LogicalOperator::And, first, second);
    body.if_then(inside, |body| {
        let (r, width, column) = (body.local(row), body.param(n), body.local(column));
        let to = at(body, r, width, column);
        let value = body.load(variable(sum));
        write(body, Root::Binding(c), to, value);
    });
    body.finish_entry();
    let module = module.build();
    let text = spirv::disassemble(&spirv::emit(&lowered(&module, Features::NONE, ParamTransport::Value)).unwrap());
    // Nothing that the kernel writes is touched before its barriers: they leave buffers alone.
    assert_eq!(text.matches("WorkgroupMemory").count(), 2, "{text}");
    assert!(!text.contains("UniformMemory"), "{text}");
    let n = 37u32;
    let value = |i: u32, seed: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 29) as f32 - 3.0;
    let a: Vec<f32> = (0..n * n).map(|i| value(i, 1)).collect();
    let b: Vec<f32> = (0..n * n).map(|i| value(i, 99)).collect();
    let buffers = [floats(a.clone()), floats(b.clone()), floats(vec![f32::NAN; (n * n) as usize])];
    let groups = n.div_ceil(TILE);
    let run = Run { groups: [groups, groups, 1], buffers: &buffers, params: &[vec![n]], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let n = n as usize;
    let expected: Vec<f32> = (0..n * n).map(|i| (0..n).map(|k| a[i / n * n + k] * b[k * n + i % n]).sum()).collect();
    assert_eq!(as_floats(&got[2]), expected);
}

#[test]
fn barriers_order_buffers() {
    // Every round adds the neighbour's value, through the buffer itself.
    let mut module = ModuleBuilder::new("neighbours", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let mut body = module.entry();
    let i = body.builtin(Builtin::LocalIndex);
    let i = body.bind("i", i);
    let (start, end) = (body.index(0), body.index(9));
    body.for_range("round", start, end, |body, _| {
        body.barrier();
        let (index, one, size) = (body.local(i), body.index(1), body.index(64));
        let next = body.binary(Op::Add, index, one);
        let next = body.binary(Op::Remainder, next, size);
        let theirs = read(body, Root::Binding(y), next);
        let index = body.local(i);
        let mine = read(body, Root::Binding(y), index);
        let sum = body.binary(Op::Add, mine, theirs);
        let sum = body.bind("sum", sum);
        body.barrier();
        let (index, sum) = (body.local(i), body.local(sum));
        write(body, Root::Binding(y), index, sum);
    });
    body.finish_entry();
    let module = module.build();
    let text = spirv::disassemble(&spirv::emit(&lowered(&module, Features::NONE, ParamTransport::Value)).unwrap());
    // The first barrier of the body comes after the write of the round before.
    assert_eq!(text.matches("UniformMemory").count(), 2, "{text}");
    assert!(text.contains("NonPrivatePointer"), "{text}");
    let buffers = [words((0..64).map(|i| i * i))];
    let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let mut expected: Vec<u32> = (0..64).map(|i| i * i).collect();
    for _ in 0..9 {
        expected = (0..64).map(|i| expected[i] + expected[(i + 1) % 64]).collect();
    }
    assert_eq!(as_words(&got[0]), expected);
}

#[test]
fn atomics_in_buffers_and_workgroup_memory() {
    let mut module = ModuleBuilder::new("counts", [64, 1, 1]);
    let (word, int) = (module.scalar(Scalar::U32), module.scalar(Scalar::I32));
    let (x, counts, extremes) =
        (module.shared("x", word), module.atomic("counts", word), module.atomic("extremes", int));
    let shared = module.workgroup("shared", word, 4, true);
    let mut body = module.entry();
    let i = global(&mut body);
    let lane = body.builtin(Builtin::LocalIndex);
    let lane = body.bind("lane", lane);
    let (l, four) = (body.local(lane), body.index(4));
    let few = body.binary(Op::Less, l, four);
    body.if_then(few, |body| {
        let (index, zero) = (body.local(lane), body.u32(0));
        body.statement(trefoil_codegen::ir::StatementKind::Atomic {
            result: None,
            place: element(Root::Workgroup(shared), index),
            function: Atomic::Store,
            value: Some(zero),
            compare: None,
            ordering: trefoil_codegen::ir::Ordering::RELAXED,
        });
    });
    body.barrier();
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.bind("value", value);
    // Values from 4 on are out of range: nothing is counted.
    let (index, one) = (body.local(value), body.u32(1));
    let before = body.atomic("before", Atomic::Add, element(Root::Workgroup(shared), index), Some(one));
    let signed = body.local(value);
    let signed = body.convert(signed, Scalar::I32);
    let two = body.i32(2);
    let signed = body.binary(Op::Subtract, signed, two);
    let signed = body.bind("signed", signed);
    let (index, least) = (body.index(0), body.local(signed));
    body.atomic("least", Atomic::Min, element(Root::Binding(extremes), index), Some(least));
    let (index, most) = (body.index(1), body.local(signed));
    body.atomic("most", Atomic::Max, element(Root::Binding(extremes), index), Some(most));
    // The third is claimed by one invocation alone; those that fail count in the fourth.
    let (index, value_now, compare) = (body.index(2), body.local(signed), body.i32(-1000));
    let claimed = body.new_local("claimed", int, false);
    body.statement(trefoil_codegen::ir::StatementKind::Atomic {
        result: Some(claimed),
        place: element(Root::Binding(extremes), index),
        function: Atomic::CompareExchange,
        value: Some(value_now),
        compare: Some(compare),
        ordering: trefoil_codegen::ir::Ordering::RELAXED,
    });
    let (was, free) = (body.local(claimed), body.i32(-1000));
    let lost = body.binary(Op::NotEqual, was, free);
    body.if_then(lost, |body| {
        let (index, one) = (body.index(3), body.i32(1));
        body.atomic("lost", Atomic::Add, element(Root::Binding(extremes), index), Some(one));
    });
    let _ = before;
    body.barrier();
    let (l, four) = (body.local(lane), body.index(4));
    let few = body.binary(Op::Less, l, four);
    body.if_then(few, |body| {
        let index = body.local(lane);
        let count = body.atomic("count", Atomic::Load, element(Root::Workgroup(shared), index), None);
        let (index, count) = (body.local(lane), body.local(count));
        body.atomic("total", Atomic::Add, element(Root::Binding(counts), index), Some(count));
    });
    body.finish_entry();
    let module = module.build();
    let value = |i: u32| i.wrapping_mul(2_654_435_761) >> 29;
    let n = 64 * 5;
    let buffers = [words((0..n).map(value)), words([0; 4]), words([1000, -1000i32 as u32, -1000i32 as u32, 0])];
    let run = Run { groups: [5, 1, 1], buffers: &buffers, params: &[], views: &[] };
    // Which invocation claims differs from run to run: let only the rest be compared.
    let kernel = kernel(&module, Features::NONE);
    let Some(device) = device() else { return };
    let got = run_once(device, &kernel, ParamTransport::Value, 12, &run);
    let expected: Vec<u32> = (0..4).map(|v| (0..n).filter(|i| value(*i) == v).count() as u32).collect();
    assert_eq!(as_words(&got[1]), expected);
    let extremes = as_words(&got[2]);
    assert_eq!([extremes[0], extremes[1], extremes[3]].map(u32::cast_signed), [-2, 5, n as i32 - 1]);
    assert!((-2..=5).contains(&extremes[2].cast_signed()));
}

#[test]
fn subgroup_operations() {
    let mut module = ModuleBuilder::new("subgroups", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    module.module().requires = Features::of(&[Feature::Subgroups]);
    let mut body = module.entry();
    let i = body.builtin(Builtin::LocalIndex);
    let i = body.bind("i", i);
    let own = |body: &mut FunctionBuilder<'_>| {
        let value = body.local(i);
        body.convert(value, Scalar::U32)
    };
    let lane = body.builtin(Builtin::SubgroupLane);
    let size = body.builtin(Builtin::SubgroupSize);
    let group = body.builtin(Builtin::SubgroupIndex);
    let start = body.binary(Op::Multiply, size, group);
    let place = body.binary(Op::Add, start, lane);
    let place = body.bind("place", place);
    let mut results = Vec::new();
    for (name, function) in [
        ("sum", SubgroupFunction::Reduce(SubgroupOperator::Add)),
        ("most", SubgroupFunction::Reduce(SubgroupOperator::Max)),
        ("least", SubgroupFunction::Reduce(SubgroupOperator::Min)),
    ] {
        let value = own(&mut body);
        results.push(body.subgroup(name, function, value, None));
    }
    let (value, lane) = (own(&mut body), body.u32(0));
    results.push(body.subgroup("first", SubgroupFunction::Broadcast, value, Some(lane)));
    let value = own(&mut body);
    let lane = body.builtin(Builtin::SubgroupSize);
    let lane = body.convert(lane, Scalar::U32);
    let one = body.u32(1);
    let lane = body.binary(Op::Subtract, lane, one);
    results.push(body.subgroup("last", SubgroupFunction::Broadcast, value, Some(lane)));
    let (value, mask) = (own(&mut body), body.u32(1));
    results.push(body.subgroup("other", SubgroupFunction::ShuffleXor, value, Some(mask)));
    let value = own(&mut body);
    let lane = body.builtin(Builtin::SubgroupLane);
    let lane = body.convert(lane, Scalar::U32);
    let one = body.u32(1);
    let lane = body.binary(Op::Xor, lane, one);
    results.push(body.subgroup("shuffled", SubgroupFunction::Shuffle, value, Some(lane)));
    let size = body.builtin(Builtin::SubgroupSize);
    let size = body.convert(size, Scalar::U32);
    let size = body.bind("size", size);
    results.push(size);
    for (k, result) in results.into_iter().enumerate() {
        let (place, eight, k) = (body.local(place), body.index(8), body.index(k as u32));
        let to = body.binary(Op::Multiply, place, eight);
        let to = body.binary(Op::Add, to, k);
        let value = body.local(result);
        write(&mut body, Root::Binding(y), to, value);
    }
    body.finish_entry();
    let module = module.build();
    let buffers = [words(vec![0; 64 * 8])];
    let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::of(&[Feature::Subgroups]), &run) else { return };
    let got = as_words(&got[0]);
    // Rows are in the order of places; which invocations form a subgroup is the device's affair, but each is in one.
    let size = got[7] as usize;
    assert!(size >= 2 && 64 % size == 0, "{size}");
    let mut total = 0;
    for group in got.chunks_exact(8 * size) {
        let row = |i: usize| &group[8 * i..8 * i + 8];
        let own: Vec<u32> = (0..size).map(|i| row(i ^ 1)[5]).collect();
        total += own.iter().sum::<u32>();
        for (i, mine) in own.iter().enumerate() {
            let expected = [
                own.iter().sum(),
                *own.iter().max().unwrap(),
                *own.iter().min().unwrap(),
                own[0],
                own[size - 1],
                own[i ^ 1],
                own[i ^ 1],
                size as u32,
            ];
            assert_eq!(row(i), expected, "{mine}");
        }
    }
    assert_eq!(total, 64 * 63 / 2);
}

#[test]
fn uniform_loads() {
    let mut module = ModuleBuilder::new("uniform", [64, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let total = module.workgroup("total", word, 1, false);
    let mut body = module.entry();
    let i = global(&mut body);
    let lane = body.builtin(Builtin::LocalIndex);
    let last = body.index(63);
    let is_last = body.binary(Op::Equal, lane, last);
    body.if_then(is_last, |body| {
        let value = body.local(i);
        let value = body.convert(value, Scalar::U32);
        let index = body.index(0);
        write(body, Root::Workgroup(total), index, value);
    });
    let index = body.index(0);
    let result = body.new_local("everyones", word, false);
    body.statement(trefoil_codegen::ir::StatementKind::UniformLoad {
        result,
        place: element(Root::Workgroup(total), index),
    });
    let (index, value) = (body.local(i), body.local(result));
    write(&mut body, Root::Binding(y), index, value);
    body.finish_entry();
    let module = module.build();
    let buffers = [words([0; 192])];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..192).map(|i| i / 64 * 64 + 63).collect();
    assert_eq!(as_words(&got[0]), expected);
}
