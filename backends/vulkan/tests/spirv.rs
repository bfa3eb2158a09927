//! Emitted SPIR-V, judged by `spirv-val` and run: each kernel's results are held against a computation of their own.
//!
//! Kernels run with both transports and with slices that start inside their buffers; `spirv-val` is that of `.tools/bin`, or else the
//! system's.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;
use std::process::Command as Process;
use std::sync::{Arc, OnceLock};

use trefoil_codegen::artefact::{
    Access, Binding, Code, Element, Features, Kernel, ParamRole, ParamTransport, Target, Variant,
};
use trefoil_codegen::emit::spirv;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    Argument, AtomicFunction as Atomic, BinaryOperator as Op, Builtin, CallArgument, Case, Expression, ExpressionKind,
    Handle, LogicalOperator, MathFunction as Math, Module, Place, Projection, Root, Scalar, Struct, SubgroupFunction,
    Type, UnaryOperator,
};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Feature, Profile};
use trefoil_codegen::{layout, verify};
use trefoil_dsl::device::{
    Command, Device, DeviceKind, DeviceOptions, DispatchCommand, GroupSource, MemoryRange, ParamSource, RunIo,
};
use trefoil_dsl::error::Error;

type Value = Handle<Expression>;

fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
            let required = required.split(',').any(|name| name.trim() == DeviceKind::Vulkan.name());
            let validated = DeviceOptions { validate: true, ..DeviceOptions::default() };
            let opened = trefoil_vulkan::open(&validated).or_else(|_| trefoil_vulkan::open(&DeviceOptions::default()));
            match opened {
                Ok(device) => Some(device),
                Err(error @ Error::Unavailable { .. }) if !required => {
                    eprintln!("skipped: {error}");
                    None
                }
                Err(error) => panic!("{error}"),
            }
        })
        .as_ref()
}

/// Asks `spirv-val`.
fn validate(name: &str, words: &[u32]) {
    let folder = std::env::temp_dir().join(format!("trefoil-spirv-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.spv"));
    std::fs::write(&file, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/bin/spirv-val");
    let tool = if own.exists() { own } else { "spirv-val".into() };
    match Process::new(&tool).args(["--target-env", "vulkan1.3"]).arg(&file).output() {
        Ok(output) => assert!(
            output.status.success(),
            "{name}: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            spirv::disassemble(words)
        ),
        Err(error) => eprintln!("not validated: {}: {error}", tool.display()),
    }
    let _ = std::fs::remove_file(file);
}

fn lowered(module: &Module, features: Features, transport: ParamTransport) -> Lowered {
    let verified = verify::verify(module.clone()).unwrap();
    lower(&verified, &Profile::portable(Target::Spirv).with(features), transport).unwrap()
}

fn kernel(module: &Module, features: Features) -> Arc<Kernel> {
    let mut variants = Vec::new();
    let mut facts = None;
    for transport in [ParamTransport::Value, ParamTransport::Buffer] {
        let lowered = lowered(module, features, transport);
        let words = spirv::emit(&lowered).unwrap();
        if std::env::var_os("TREFOIL_SHOW_SPIRV").is_some() {
            println!("{}", spirv::disassemble(&words));
        }
        validate(&format!("{}-{transport:?}", module.name), &words);
        variants.push(Variant {
            target: Target::Spirv,
            profile: lowered.profile.name().into(),
            features,
            transport,
            code: Code::Spirv(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into()),
        });
        facts = Some(lowered);
    }
    let facts = facts.unwrap();
    let mut hash = [0; 16];
    for (byte, value) in hash.iter_mut().zip(module.name.bytes()) {
        *byte = value;
    }
    let binding = |index: usize, binding: &trefoil_codegen::ir::Binding| {
        let layout = layout::of(module, binding.element).unwrap();
        Binding {
            name: binding.name.clone().into(),
            element: Element { name: "T".into(), size: layout.size, align: layout.align },
            access: facts.info.access[index],
            vector: facts.info.vector[index],
            view: binding.view,
        }
    };
    Arc::new(Kernel {
        name: module.name.clone().into(),
        doc: "".into(),
        bindings: module.bindings.iter().enumerate().map(|(index, known)| binding(index, known)).collect(),
        params: facts.params,
        workgroup_size: facts.info.workgroup_size,
        workgroup_bytes: facts.info.workgroup_bytes,
        grid: facts.info.grid,
        variants: variants.into(),
        cpu: None,
        ir: Vec::new().into(),
        instance: Vec::new().into(),
        hash,
    })
}

/// A run: what lies in the buffers (bytes), how many elements each slice has, and the author's parameters.
struct Run<'a> {
    groups: [u32; 3],
    buffers: &'a [Vec<u8>],
    params: &'a [Vec<u32>],
    views: &'a [(Vec<u32>, Vec<u32>)],
}

/// Runs a kernel in every way and gives the contents of the buffers, which must be the same each time.
fn run(module: &Module, features: Features, run: &Run<'_>) -> Option<Vec<Vec<u8>>> {
    let kernel = kernel(module, features);
    let device = device()?;
    if !device.properties().features.contains(features) {
        eprintln!("skipped: {} lacks a feature of `{}`", device.properties().name, module.name);
        return None;
    }
    let mut first: Option<Vec<Vec<u8>>> = None;
    for (transport, skipped) in [(ParamTransport::Value, 0), (ParamTransport::Value, 12), (ParamTransport::Buffer, 4)] {
        let contents = run_once(device, &kernel, transport, skipped, run);
        match &first {
            None => first = Some(contents),
            Some(first) => assert_eq!(*first, contents, "{} {transport:?} from {skipped}", module.name),
        }
    }
    first
}

/// Poison before and after what a kernel may touch.
const POISON: u8 = 0xa5;

fn run_once(
    device: &Device,
    kernel: &Arc<Kernel>,
    transport: ParamTransport,
    skipped: u32,
    run: &Run<'_>,
) -> Vec<Vec<u8>> {
    let backend = device.backend();
    let mut memory = Vec::new();
    for (buffer, binding) in run.buffers.iter().zip(kernel.bindings.iter()) {
        let before = (skipped * binding.element.size) as usize;
        let mut bytes = vec![POISON; before];
        bytes.extend(buffer);
        bytes.resize(bytes.len() + 64, POISON);
        bytes.resize(bytes.len().next_multiple_of(16), POISON);
        let held = backend.allocate(bytes.len() as u64, "test").unwrap();
        let range = MemoryRange { memory: held, offset: 0, bytes: bytes.len() as u64 };
        backend.write(&range, &bytes).unwrap();
        memory.push((range, before, bytes));
    }
    let mut block = vec![0u32; kernel.params.size as usize / 4];
    for field in kernel.params.fields.iter() {
        let words = match field.role {
            ParamRole::User(index) => run.params[index as usize].clone(),
            ParamRole::Length(index) => {
                vec![run.buffers[index as usize].len() as u32 / kernel.bindings[index as usize].element.size]
            }
            ParamRole::Offset(_) => vec![skipped],
            ParamRole::Extents(index) => run.views[index as usize].0.clone(),
            ParamRole::Strides(index) => run.views[index as usize].1.clone(),
            ParamRole::GroupCount => vec![run.groups.iter().product()],
        };
        block[field.offset as usize / 4..][..words.len()].copy_from_slice(&words);
    }
    let block: Vec<u8> = block.iter().flat_map(|word| word.to_le_bytes()).collect();
    // A folded grid overshoots.
    let groups = match kernel.grid {
        trefoil_codegen::artefact::GridKind::Linear => [run.groups[0].div_ceil(2), 3, 1],
        trefoil_codegen::artefact::GridKind::Volume => run.groups,
    };
    let pipeline = backend.load(std::slice::from_ref(kernel), transport).unwrap().remove(0);
    let dispatch = |params| {
        Command::Dispatch(DispatchCommand {
            pipeline: pipeline.clone(),
            bindings: memory.iter().map(|(range, ..)| range.clone()).collect(),
            params,
            groups: GroupSource::Value(groups),
            label: Arc::from(&*kernel.name),
        })
    };
    match transport {
        ParamTransport::Value => backend.execute(&[dispatch(ParamSource::Value(block))]).unwrap(),
        ParamTransport::Buffer => {
            let recording = backend.record(&[dispatch(ParamSource::RunWords(0))], block.len()).unwrap();
            backend.run(&*recording, RunIo { run_words: Some(&block), ..RunIo::default() }).unwrap();
        }
    }
    let mut contents = Vec::new();
    for (((range, before, mut bytes), buffer), binding) in
        memory.into_iter().zip(run.buffers).zip(kernel.bindings.iter())
    {
        let was = bytes.clone();
        backend.read(&range, &mut bytes).unwrap();
        let end = before + buffer.len();
        assert_eq!(bytes[..before], was[..before], "{}: something wrote before `{}`", kernel.name, binding.name);
        assert_eq!(bytes[end..], was[end..], "{}: something wrote past `{}`", kernel.name, binding.name);
        if binding.access == Access::Read {
            assert_eq!(bytes, was, "{}: `{}` changed", kernel.name, binding.name);
        }
        contents.push(bytes[before..end].to_vec());
    }
    contents
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn as_floats(bytes: &[u8]) -> Vec<f32> {
    as_words(bytes).into_iter().map(f32::from_bits).collect()
}

/// Declares `i`, the global index, and gives a way to use it again and again.
fn global(body: &mut FunctionBuilder<'_>) -> Handle<trefoil_codegen::ir::Local> {
    let index = body.builtin(Builtin::GlobalIndex);
    body.bind("i", index)
}

fn read(body: &mut FunctionBuilder<'_>, root: Root, index: Value) -> Value {
    body.load(element(root, index))
}

fn write(body: &mut FunctionBuilder<'_>, root: Root, index: Value, value: Value) {
    body.store(element(root, index), value);
}

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
        let buffers = [
            floats((0..n).map(|i| i as f32)),
            floats([10.0, 20.0]),
            floats((0..n + 5).map(|_| f32::NAN)),
        ];
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
fn control_flow() {
    // collatz-like, with break, continue and early return in loops, switches and choices.
    let mut module = ModuleBuilder::new("control", [32, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let mut helper = module.function("classify");
    let n = helper.argument("n", word);
    helper.result(word);
    let selector = helper.get_argument(n);
    let seven = helper.u32(7);
    let selector = helper.binary(Op::Remainder, selector, seven);
    let one = helper.nested(|body| {
        let value = body.u32(11);
        body.return_value(Some(value));
    });
    let two = helper.nested(|body| {
        body.endless_loop(|body| {
            let value = body.u32(22);
            body.return_value(Some(value));
        });
    });
    let default = helper.nested(|body| {
        let value = body.get_argument(n);
        let value = body.convert(value, Scalar::U32);
        body.return_value(Some(value));
    });
    let cases = vec![Case { values: vec![1, 4], body: one }, Case { values: vec![2], body: two }];
    helper.switch(selector, cases, default);
    let classify = helper.finish();

    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let beyond = body.length(y);
    let beyond = body.binary(Op::GreaterEqual, index, beyond);
    body.if_then(beyond, |body| body.return_value(None));
    let zero = body.u32(0);
    let sum = body.variable("sum", word, Some(zero));
    let (start, end) = (body.index(0), body.local(i));
    body.for_range("j", start, end, |body, j| {
        let value = body.local(j);
        let three = body.index(3);
        let rest = body.binary(Op::Remainder, value, three);
        let zero = body.index(0);
        let skip = body.binary(Op::Equal, rest, zero);
        body.if_then(skip, |body| body.statement(trefoil_codegen::ir::StatementKind::Continue));
        let value = body.local(j);
        let limit = body.index(20);
        let stop = body.binary(Op::Greater, value, limit);
        // A break out of a switch in a loop.
        let selector = body.convert(stop, Scalar::U32);
        let leave = body.nested(|body| body.statement(trefoil_codegen::ir::StatementKind::Break));
        body.switch(selector, vec![Case { values: vec![1], body: leave }], Vec::new());
        let count = body.u32(0);
        let k = body.variable("k", word, Some(count));
        let (now, most) = (body.load(variable(k)), body.local(j));
        let most = body.convert(most, Scalar::U32);
        let more = body.binary(Op::Less, now, most);
        body.while_loop(more, |body| {
            let (now, one) = (body.load(variable(k)), body.u32(1));
            let next = body.binary(Op::Add, now, one);
            body.store(variable(k), next);
            let (now, five) = (body.load(variable(k)), body.u32(5));
            let enough = body.binary(Op::Greater, now, five);
            body.if_else(
                enough,
                |body| body.statement(trefoil_codegen::ir::StatementKind::Break),
                |body| {
                    let (sum_now, one) = (body.load(variable(sum)), body.u32(1));
                    let next = body.binary(Op::Add, sum_now, one);
                    body.store(variable(sum), next);
                },
            );
        });
    });
    let argument = body.local(i);
    let argument = body.convert(argument, Scalar::U32);
    let class = body.call(classify, vec![argument], Type::Scalar(Scalar::U32));
    let class = body.bind("class", class);
    let (total, class) = (body.load(variable(sum)), body.local(class));
    let thousand = body.u32(1000);
    let class = body.binary(Op::Multiply, class, thousand);
    let total = body.binary(Op::Add, total, class);
    // `i > 10 && y[i - 10] > 0` must not depend on what it reads when it need not.
    let (index, ten) = (body.local(i), body.index(10));
    let left = body.binary(Op::Greater, index, ten);
    let index = body.local(i);
    let read_back = read(&mut body, Root::Binding(y), index);
    let seven = body.u32(7);
    let right = body.binary(Op::Equal, read_back, seven);
    let both = body.logical(LogicalOperator::And, left, right);
    let extra = body.convert(both, Scalar::U32);
    let total = body.binary(Op::Add, total, extra);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, total);
    body.finish_entry();
    let module = module.build();

    let buffers = [words((0..77).map(|_| 7))];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..77u32)
        .map(|i| {
            let mut sum = 0;
            for j in 0..i {
                if j % 3 == 0 {
                    continue;
                }
                if j > 20 {
                    break;
                }
                sum += j.min(5);
            }
            let class = match i % 7 {
                1 | 4 => 11,
                2 => 22,
                _ => i,
            };
            sum + class * 1000 + u32::from(i > 10)
        })
        .collect();
    assert_eq!(as_words(&got[0]), expected);
}

#[test]
fn ranges_do_not_wrap() {
    let mut module = ModuleBuilder::new("ranges", [1, 1, 1]);
    let (word, int) = (module.scalar(Scalar::U32), module.scalar(Scalar::I32));
    let y = module.mutable("y", word);
    let (end, step, low) = (module.param("end", word), module.param("step", word), module.param("low", int));
    let mut body = module.entry();
    let zero = body.u32(0);
    let count = body.variable("count", word, Some(zero));
    let bump = |body: &mut FunctionBuilder<'_>| {
        let (now, one) = (body.load(variable(count)), body.u32(1));
        let next = body.binary(Op::Add, now, one);
        body.store(variable(count), next);
    };
    let ten = body.u32(10);
    let (start, stop) = (body.param(end), body.param(end));
    let start = body.binary(Op::Subtract, start, ten);
    let by = body.param(step);
    let local = body.new_local("j", word, false);
    let inner = body.nested(bump);
    body.statement(trefoil_codegen::ir::StatementKind::For {
        local,
        start,
        end: stop,
        step: by,
        body: inner,
        unroll: false,
    });
    let (start, stop, by) = (body.param(low), body.i32(i32::MAX), body.i32(0x6000_0000));
    let local = body.new_local("k", int, false);
    let inner = body.nested(bump);
    body.statement(trefoil_codegen::ir::StatementKind::For {
        local,
        start,
        end: stop,
        step: by,
        body: inner,
        unroll: false,
    });
    let (index, value) = (body.index(0), body.load(variable(count)));
    write(&mut body, Root::Binding(y), index, value);
    body.finish_entry();
    let module = module.build();
    // From u32::MAX - 10 by 7: two rounds; by 0 is by 1: ten. From i32::MIN by 0x60000000: three; from 0: two.
    for (step, low, rounds) in [(7u32, i32::MIN, 2 + 3), (0, 0, 10 + 2), (1, i32::MAX, 10)] {
        let params = [vec![u32::MAX], vec![step], vec![low.cast_unsigned()]];
        let buffers = [words([0])];
        let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &params, views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { return };
        assert_eq!(as_words(&got[0]), [rounds], "step {step} low {low}");
    }
}

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
    assert_eq!(text.matches("WORKGROUP_MEMORY").count(), 2, "{text}");
    assert!(!text.contains("UNIFORM_MEMORY"), "{text}");
    let n = 37u32;
    let value = |i: u32, seed: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 29) as f32 - 3.0;
    let a: Vec<f32> = (0..n * n).map(|i| value(i, 1)).collect();
    let b: Vec<f32> = (0..n * n).map(|i| value(i, 99)).collect();
    let buffers = [floats(a.clone()), floats(b.clone()), floats(vec![f32::NAN; (n * n) as usize])];
    let groups = n.div_ceil(TILE);
    let run = Run { groups: [groups, groups, 1], buffers: &buffers, params: &[vec![n]], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let n = n as usize;
    let expected: Vec<f32> =
        (0..n * n).map(|i| (0..n).map(|k| a[i / n * n + k] * b[k * n + i % n]).sum()).collect();
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
    assert_eq!(text.matches("UNIFORM_MEMORY").count(), 2, "{text}");
    assert!(text.contains("NON_PRIVATE_POINTER"), "{text}");
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
    let (x, y, z) =
        (module.shared("x", particle), module.mutable("y", particle), module.mutable("z", three));
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
    let buffers = [
        words((0..n).flat_map(record)),
        words((0..n * 16).map(|_| poison)),
        words((0..(n + 2) * 3).map(|_| poison)),
    ];
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
        let expected: Vec<f32> =
            (0..95u32).map(|i| if i < 64 { quad(i + 2) + pair(i) } else { x(i - 64) }).collect();
        assert_eq!(as_floats(&got[1]), expected, "n = {n}");
    }
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
    let buffers =
        [words((0..n).map(value)), words([0; 4]), words([1000, -1000i32 as u32, -1000i32 as u32, 0])];
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
fn functions_with_references() {
    let mut module = ModuleBuilder::new("swaps", [8, 1, 1]);
    let word = module.scalar(Scalar::U32);
    let y = module.mutable("y", word);
    let reference =
        |name: &str| Argument { name: name.to_owned(), ty: Handle::from_index(0), by_reference: true };
    assert_eq!(word, Handle::from_index(0));
    let mut swap = module.function("swap");
    swap.argument("a", word);
    swap.argument("b", word);
    let from = |argument| Place { root: Root::Argument(argument), path: Vec::new(), guarded: false };
    let old = swap.load(from(0));
    let old = swap.bind("old", old);
    let other = swap.load(from(1));
    swap.store(from(0), other);
    let value = swap.local(old);
    swap.store(from(1), value);
    let swap = swap.finish();
    module.module().functions[swap].arguments = vec![reference("a"), reference("b")];
    // Hands its own references on.
    let mut again = module.function("swap_if");
    again.argument("a", word);
    again.argument("b", word);
    let (left, right) = (again.load(from(0)), again.load(from(1)));
    let order = again.binary(Op::GreaterEqual, left, right);
    again.if_then(order, |body| body.return_value(None));
    let references = vec![CallArgument::Reference(Root::Argument(0)), CallArgument::Reference(Root::Argument(1))];
    let call = ExpressionKind::Call { function: swap, arguments: references };
    let call = again.expression(call, Type::Scalar(Scalar::U32));
    again.statement(trefoil_codegen::ir::StatementKind::Evaluate(call));
    let again = again.finish();
    module.module().functions[again].arguments = vec![reference("a"), reference("b")];
    let mut body = module.entry();
    let i = global(&mut body);
    let first = body.local(i);
    let first = body.convert(first, Scalar::U32);
    let a = body.variable("a", word, Some(first));
    let index = body.local(i);
    let second = read(&mut body, Root::Binding(y), index);
    let b = body.variable("b", word, Some(second));
    let references = vec![CallArgument::Reference(Root::Local(a)), CallArgument::Reference(Root::Local(b))];
    let call = ExpressionKind::Call { function: again, arguments: references };
    let call = body.expression(call, Type::Scalar(Scalar::U32));
    body.statement(trefoil_codegen::ir::StatementKind::Evaluate(call));
    let (a, b, thousand) = (body.load(variable(a)), body.load(variable(b)), body.u32(1000));
    let high = body.binary(Op::Multiply, a, thousand);
    let both = body.binary(Op::Add, high, b);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, both);
    body.finish_entry();
    let module = module.build();
    let buffers = [words((0..20).map(|i| 10 + i % 3))];
    let run = Run { groups: [3, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    let expected: Vec<u32> = (0..20u32)
        .map(|i| {
            let (a, b) = (i, 10 + i % 3);
            a.max(b) * 1000 + a.min(b)
        })
        .collect();
    assert_eq!(as_words(&got[0]), expected);
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
fn halves_in_buffers() {
    let mut module = ModuleBuilder::new("halves", [32, 1, 1]);
    let (half, float) = (module.scalar(Scalar::F16), module.scalar(Scalar::F32));
    let (x, y, z) = (module.shared("x", float), module.mutable("y", half), module.mutable("z", float));
    let mut body = module.entry();
    let i = global(&mut body);
    // The store rounds, and so does a half in a register.
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.convert(value, Scalar::F16);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, value);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.convert(value, Scalar::F16);
    let value = body.bind("rounded", value);
    let value = body.local(value);
    let value = body.convert(value, Scalar::F32);
    let index = body.local(i);
    write(&mut body, Root::Binding(z), index, value);
    body.finish_entry();
    let module = module.build();
    let x: Vec<f32> = half_cases();
    let buffers = [floats(x.clone()), vec![0x55; x.len() * 2], floats(vec![-1.0; x.len()])];
    let groups = x.len().div_ceil(32) as u32;
    let run = Run { groups: [groups, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::of(&[Feature::F16Storage]), &run) else { return };
    for (i, x) in x.iter().enumerate() {
        let stored = u16::from_le_bytes([got[1][2 * i], got[1][2 * i + 1]]);
        let rounded = as_floats(&got[2])[i];
        if x.is_nan() {
            assert!(stored & 0x7fff > 0x7c00 && rounded.is_nan(), "{x}");
            continue;
        }
        let expected = nearest_half(*x);
        // Denormals may be flushed by the store.
        if f64::from(*x).abs() >= 2f64.powi(-14) {
            assert_eq!(half_value(stored), expected, "stored {x:e} as {stored:#x}");
        }
        assert_eq!(rounded.to_bits(), (expected as f32).to_bits(), "rounded {x:e} to {rounded:e}");
    }
}

#[test]
fn halves_packed_in_words() {
    let mut module = ModuleBuilder::new("packed", [32, 1, 1]);
    let (word, float) = (module.scalar(Scalar::U32), module.scalar(Scalar::F32));
    let (x, y, z) = (module.shared("x", float), module.mutable("y", word), module.mutable("z", float));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let packed = body.expression(
        ExpressionKind::Math { function: Math::PackHalf, arguments: vec![value] },
        Type::Scalar(Scalar::U32),
    );
    let packed = body.bind("bits", packed);
    let (index, value) = (body.local(i), body.local(packed));
    write(&mut body, Root::Binding(y), index, value);
    let value = body.local(packed);
    let value = body.expression(
        ExpressionKind::Math { function: Math::UnpackHalf, arguments: vec![value] },
        Type::Scalar(Scalar::F32),
    );
    let index = body.local(i);
    write(&mut body, Root::Binding(z), index, value);
    body.finish_entry();
    let module = module.build();
    let x: Vec<f32> = half_cases();
    let buffers = [floats(x.clone()), words(vec![7; x.len()]), floats(vec![-1.0; x.len()])];
    let groups = x.len().div_ceil(32) as u32;
    let run = Run { groups: [groups, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (i, x) in x.iter().enumerate() {
        let (bits, back) = (as_words(&got[1])[i], as_floats(&got[2])[i]);
        assert!(bits <= 0xffff, "{x:e}: {bits:#x}");
        if x.is_nan() {
            assert!(back.is_nan());
        } else if f64::from(*x).abs() >= 2f64.powi(-14) {
            assert_eq!(half_value(bits as u16), nearest_half(*x), "{x:e}: {bits:#x}");
            assert_eq!(f64::from(back), nearest_half(*x), "{x:e}");
        }
    }
}

/// Numbers around everything that rounding to halves must get right.
fn half_cases() -> Vec<f32> {
    let mut cases = vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 65504.0, 65519.99, 65520.0, 1e30, -1e30];
    for exponent in -30..17 {
        let one = 2f32.powi(exponent);
        for ulps in [0.0, 0.25, 0.5, 0.499_99, 0.500_01, 0.75, 1.0, 1.5, 2.5, 1023.5] {
            cases.push(one * (1.0 + ulps / 1024.0));
            cases.push(-one * (1.0 + ulps / 1024.0));
            // Ties between subnormal halves.
            cases.push((ulps + 3.0) * 2f32.powi(-24));
        }
    }
    cases
}

fn half_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 => f64::INFINITY,
        _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// By search: the closest half, and of two equally close ones that with the even last place.
fn nearest_half(x: f32) -> f64 {
    let magnitude = f64::from(x).abs();
    let distance = |bits: u16| match bits {
        // Where infinity would lie if exponents went on.
        0x7c00 if magnitude.is_finite() => (65536.0 - magnitude).abs(),
        0x7c00 => 0.0,
        _ => (half_value(bits) - magnitude).abs(),
    };
    if magnitude >= 65536.0 {
        return f64::INFINITY.copysign(f64::from(x));
    }
    let bits = (0..=0x7c00u16)
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))))
        .unwrap();
    half_value(bits).copysign(f64::from(x))
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
    for (name, function) in
        [("sum", SubgroupFunction::Add), ("most", SubgroupFunction::Max), ("least", SubgroupFunction::Min)]
    {
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

#[test]
fn integers_and_bits() {
    let mut module = ModuleBuilder::new("integers", [8, 1, 1]);
    let (word, int) = (module.scalar(Scalar::U32), module.scalar(Scalar::I32));
    let (x, y) = (module.shared("x", int), module.mutable("y", word));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.bind("value", value);
    let mut results = Vec::new();
    for function in [Math::CountOnes, Math::LeadingZeros, Math::TrailingZeros] {
        let x = body.local(value);
        results.push(body.math(function, vec![x]));
    }
    let x = body.local(value);
    let value_abs = body.math(Math::Abs, vec![x]);
    results.push(body.convert(value_abs, Scalar::U32));
    let x = body.local(value);
    let sign = body.math(Math::Signum, vec![x]);
    results.push(body.convert(sign, Scalar::U32));
    let (x, low, high) = (body.local(value), body.i32(-5), body.i32(7));
    let clamped = body.math(Math::Clamp, vec![x, low, high]);
    results.push(body.convert(clamped, Scalar::U32));
    let (x, by) = (body.local(value), body.u32(3));
    let shifted = body.binary(Op::ShiftRight, x, by);
    results.push(body.convert(shifted, Scalar::U32));
    let x = body.local(value);
    let x = body.convert(x, Scalar::F32);
    results.push(body.bitcast(x, Scalar::U32));
    for (k, result) in results.into_iter().enumerate() {
        let (index, eight, k) = (body.local(i), body.index(8), body.index(k as u32));
        let to = body.binary(Op::Multiply, index, eight);
        let to = body.binary(Op::Add, to, k);
        write(&mut body, Root::Binding(y), to, result);
    }
    body.finish_entry();
    let module = module.build();
    let x = [0, 1, -1, i32::MIN, i32::MAX, -6, 12, 0x00ff_0000];
    let buffers = [words(x.map(i32::cast_unsigned)), words([9; 64])];
    let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (x, row) in x.iter().zip(as_words(&got[1]).chunks_exact(8)) {
        let expected = [
            x.count_ones(),
            x.leading_zeros(),
            x.trailing_zeros(),
            x.wrapping_abs().cast_unsigned(),
            x.signum().cast_unsigned(),
            (*x).clamp(-5, 7).cast_unsigned(),
            (x >> 3).cast_unsigned(),
            (*x as f32).to_bits(),
        ];
        assert_eq!(row, expected, "{x}");
    }
}

#[test]
fn mathematics() {
    // Those that lowering leaves to the target, with a tolerance in relation to the result.
    type Case = (Math, fn(f64) -> f64, f64);
    let cases: [Case; 19] = [
        (Math::Abs, f64::abs, 0.0),
        (Math::Signum, |x| if x.is_nan() { x } else { 1f64.copysign(x) }, 0.0),
        (Math::Floor, f64::floor, 0.0),
        (Math::Ceil, f64::ceil, 0.0),
        (Math::RoundTiesEven, f64::round_ties_even, 0.0),
        (Math::Trunc, f64::trunc, 0.0),
        (Math::Sqrt, f64::sqrt, 1e-6),
        (Math::InverseSqrt, |x| 1.0 / x.sqrt(), 1e-6),
        (Math::Exp, f64::exp, 3e-6),
        (Math::Exp2, f64::exp2, 3e-6),
        (Math::Ln, f64::ln, 3e-6),
        (Math::Log2, f64::log2, 3e-6),
        (Math::Sin, f64::sin, 1e-3),
        (Math::Cos, f64::cos, 1e-3),
        (Math::Tan, f64::tan, 1e-2),
        (Math::Tanh, f64::tanh, 1e-3),
        (Math::Atan, f64::atan, 1e-3),
        (Math::IsNan, |x| f64::from(u8::from(x.is_nan())), 0.0),
        (Math::IsInfinite, |x| f64::from(u8::from(x.is_infinite())), 0.0),
    ];
    let mut module = ModuleBuilder::new("mathematics", [8, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let (x, y) = (module.shared("x", float), module.mutable("y", float));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.bind("value", value);
    for (k, (function, ..)) in cases.iter().enumerate() {
        let argument = body.local(value);
        let mut result = body.math(*function, vec![argument]);
        if matches!(function, Math::IsNan | Math::IsInfinite) {
            result = body.convert(result, Scalar::F32);
        }
        let (index, count, k) = (body.local(i), body.index(cases.len() as u32), body.index(k as u32));
        let to = body.binary(Op::Multiply, index, count);
        let to = body.binary(Op::Add, to, k);
        write(&mut body, Root::Binding(y), to, result);
    }
    body.finish_entry();
    let module = module.build();
    let x = [0.5f32, 1.0, 1.5, 2.5, 3.25, -0.75, -1.5, -2.5, 0.0, 4.75, f32::INFINITY, f32::NAN];
    let buffers = [floats(x), floats(vec![9.0; x.len() * cases.len()])];
    let run = Run { groups: [2, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (x, row) in x.iter().zip(as_floats(&got[1]).chunks_exact(cases.len())) {
        for ((function, reference, tolerance), got) in cases.iter().zip(row) {
            let expected = reference(f64::from(*x));
            // What a function is outside its domain or at its poles is lowering's affair.
            let exact = *tolerance == 0.0;
            if !exact && !(x.is_finite() && expected.is_finite()) {
                continue;
            }
            let error = (f64::from(*got) - expected).abs();
            let same = f64::from(*got) == expected || (got.is_nan() && expected.is_nan());
            assert!(same || error <= tolerance * expected.abs().max(1e-2), "{function:?}({x}) = {got}, not {expected}");
        }
    }
}
