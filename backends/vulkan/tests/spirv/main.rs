//! Emitted SPIR-V, judged by `spirv-val` and run: each kernel's results are held against a computation of their own.
//!
//! Kernels run with both transports and with slices that start inside their buffers; `spirv-val` is that of `.tools/bin`, or else the
//! system's.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod arithmetic;
mod control;
mod groups;
mod halves;
mod memory;
mod random;
#[path = "../../../../codegen/tests/support/spirv_val.rs"]
mod spirv_val;

use std::sync::{Arc, OnceLock};

use trefoil_codegen::artefact::{
    Access, Binding, Code, Element, Features, Kernel, ParamRole, ParamTransport, Target, Variant,
};
use trefoil_codegen::emit::spirv;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    Argument, AtomicFunction as Atomic, BinaryOperator as Op, Builtin, CallArgument, Case, Expression, ExpressionKind,
    Handle, LogicalOperator, MathFunction as Math, Module, Place, Projection, Root, Scalar, Struct, SubgroupFunction,
    SubgroupOperator, Type, UnaryOperator,
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
        spirv_val::validate(&format!("{}-{transport:?}", module.name), &words);
        variants.push(Variant {
            dialect: None,
            target: Target::Spirv,
            profile: lowered.profile.name().into(),
            features,
            matrices: std::borrow::Cow::Borrowed(&[]),
            transport,
            tensor_maps: std::borrow::Cow::Borrowed(&[]),
            entry: module.name.clone().into(),
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
        constants: Vec::new().into(),
        workgroup_size: facts.info.workgroup_size,
        subgroup_size: facts.info.subgroup_size,
        workgroup_bytes: facts.info.workgroup_bytes,
        no_robustness: false,
        index: module.index,
        grid: facts.info.grid,
        variants: variants.into(),
        cpu: None,
        sites: Vec::new().into(),
        reporting: None,
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
            ParamRole::Constant(index) => vec![kernel.constants[index as usize].value as u32],
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
