//! Launches against a device that only looks at what it is given.

mod order;
mod rules;

use std::any::Any;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{
    self, Access, Binding, Features, GridKind, IndexWidth, Kernel, ParamField, ParamScalar, ParamTransport, ParamType,
    Params,
};

use super::*;
use crate::buffer::{BufferView, BufferViewMut};
use crate::device::{
    Backend, Command, Counters, Device, DeviceKind, DispatchCommand, GroupSource, Limits, MemoryRange, ParamSource,
    Pipeline, Properties, Recording, RunIo, next_device_id,
};
use crate::readback::PendingRead;
use crate::support::cache::DiskCache;
use crate::support::check::{Checks, room};

#[derive(Debug)]
struct FakeMemory {
    bytes: u64,
    device: u64,
}

impl Memory for FakeMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn room(&self) -> u64 {
        room(self.bytes)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn device(&self) -> u64 {
        self.device
    }
}

#[derive(Debug)]
struct FakePipeline {
    kernel: Arc<Kernel>,
    device: u64,
}

impl Pipeline for FakePipeline {
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn device(&self) -> u64 {
        self.device
    }
}

/// Takes down what it is told to run, after the checks that every device makes.
#[derive(Debug)]
struct Fake {
    id: u64,
    properties: Properties,
    ran: Mutex<Vec<DispatchCommand>>,
    loaded: Mutex<u64>,
}

impl Backend for Fake {
    fn properties(&self) -> &Properties {
        &self.properties
    }
    fn allocate(&self, bytes: u64, _: &str) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(FakeMemory { bytes, device: self.id }))
    }
    fn write(&self, _: &MemoryRange, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn read(&self, _: &MemoryRange, _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn read_later(&self, _: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        Err(Error::Unavailable { kind: "fake", reason: "no launch reads".to_owned() })
    }
    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        assert_eq!(transport, ParamTransport::Value);
        *self.loaded.lock().unwrap() += kernels.len() as u64;
        Ok(kernels
            .iter()
            .map(|kernel| Arc::new(FakePipeline { kernel: kernel.clone(), device: self.id }) as Arc<dyn Pipeline>)
            .collect())
    }
    fn execute(&self, commands: &[Command]) -> Result<()> {
        Checks { id: self.id, properties: &self.properties }.commands(commands, None)?;
        for command in commands {
            if let Command::Dispatch(dispatch) = command {
                self.ran.lock().unwrap().push(dispatch.clone());
            }
        }
        Ok(())
    }
    fn wait(&self) -> Result<()> {
        Ok(())
    }
    fn record(&self, _: &[Command], _: usize) -> Result<Arc<dyn Recording>> {
        Err(Error::Unavailable { kind: "fake", reason: "no launch records".to_owned() })
    }
    fn run(&self, _: &dyn Recording, _: RunIo<'_, '_>) -> Result<()> {
        Err(Error::Unavailable { kind: "fake", reason: "no launch runs recordings".to_owned() })
    }
    fn submit(&self, _: &dyn Recording) -> Result<()> {
        Err(Error::Unavailable { kind: "fake", reason: "no launch submits recordings".to_owned() })
    }
    fn time(&self, _: &[Command]) -> Result<Vec<u64>> {
        Ok(vec![0])
    }
    fn counters(&self) -> Counters {
        Counters { pipelines: *self.loaded.lock().unwrap(), ..Counters::default() }
    }
    fn kept(&self) -> Option<&DiskCache> {
        None
    }
}

fn device(kind: DeviceKind, max_groups: [u32; 3]) -> (Device, Arc<Fake>) {
    let id = next_device_id();
    let fake = Arc::new(Fake {
        id,
        properties: Properties {
            kind,
            name: "fake".to_owned(),
            driver: String::new(),
            software: true,
            features: Features::NONE,
            matrices: Vec::new(),
            subgroup_sizes: None,
            matrix_library: None,
            limits: Limits {
                max_allocation_bytes: 1 << 40,
                max_binding_bytes: 1 << 40,
                binding_alignment: 256,
                max_storage_buffers: 8,
                max_workgroup_bytes: 1 << 14,
                max_invocations: 256,
                max_workgroup_size: [256, 256, 64],
                max_groups,
                min_subgroup: 1,
                max_subgroup: 1,
                shares_memory_within_dispatch: false,
                near_host_bytes: 0,
            },
        },
        ran: Mutex::default(),
        loaded: Mutex::default(),
    });
    (Device::new(fake.clone(), id), fake)
}

fn binding(name: &'static str, size: u32, access: Access, vector: u32, view: Option<u32>) -> Binding {
    let element = match size {
        4 => "f32",
        8 => "u64",
        _ => "Vec3<f32>",
    };
    Binding {
        name: name.into(),
        element: artefact::Element { name: element.into(), size, align: 4 },
        access,
        vector,
        view,
    }
}

fn field(name: &'static str, role: ParamRole, count: u32, array: bool, offset: u32) -> ParamField {
    ParamField { name: name.into(), role, ty: ParamType { scalar: ParamScalar::Index, count, array }, offset }
}

/// `kernel(x: &[f32], y: &mut [f32], n: usize)` with workgroups of 4 x 2 x 1.
fn kernel(grid: GridKind, bindings: Vec<Binding>, mut fields: Vec<ParamField>) -> Arc<Kernel> {
    let end = fields.iter().map(|f| f.offset + 4 * f.ty.count).max();
    let end = end.unwrap_or(0);
    if grid == GridKind::Linear {
        fields.push(field("group_count", ParamRole::GroupCount, 1, false, end));
    }
    Arc::new(Kernel {
        name: "subject".into(),
        doc: "".into(),
        bindings: bindings.into(),
        params: Params { size: (end + 4).next_multiple_of(16), fields: fields.into() },
        constants: Vec::new().into(),
        workgroup_size: [4, 2, 1],
        subgroup_size: None,
        workgroup_bytes: 0,
        no_robustness: false,
        index: IndexWidth::Bits32,
        grid,
        variants: Vec::new().into(),
        cpu: None,
        sites: Vec::new().into(),
        reporting: None,
        ir: Vec::new().into(),
        instance: Vec::new().into(),
        hash: [7; 16],
    })
}

fn copy_kernel(vector: u32, size: u32) -> Arc<Kernel> {
    kernel(
        GridKind::Linear,
        vec![binding("x", size, Access::Read, vector, None), binding("y", size, Access::Write, vector, None)],
        vec![
            field("n", ParamRole::User(0), 1, false, 0),
            field("x_len", ParamRole::Length(0), 1, false, 4),
            field("x_offset", ParamRole::Offset(0), 1, false, 8),
            field("y_len", ParamRole::Length(1), 1, false, 12),
            field("y_offset", ParamRole::Offset(1), 1, false, 16),
        ],
    )
}

fn words(command: &DispatchCommand) -> Vec<u32> {
    match &command.params {
        ParamSource::Value(bytes) => bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect(),
        ParamSource::RunWords(_) => panic!("a launch by hand passes values"),
    }
}

fn groups(command: &DispatchCommand) -> [u32; 3] {
    match command.groups {
        GroupSource::Value(groups) => groups,
        GroupSource::RunWords { .. } | GroupSource::Memory(_) => panic!("a launch by hand passes values"),
    }
}

const WIDE: [u32; 3] = [65535; 3];

#[test]
fn hidden_parameters_are_filled_and_the_rest_of_an_aligned_start_is_the_offset() {
    let (device, fake) = device(DeviceKind::Wgpu, WIDE);
    let x = device.zeros::<f32>(200).unwrap();
    let mut y = device.zeros::<f32>(100).unwrap();
    let launch = Launch::of(copy_kernel(4, 4))
        .read(x.slice(72..171).unwrap())
        .unwrap()
        .write(&mut y)
        .unwrap()
        .value(99usize)
        .unwrap();
    device.run(launch.over(y.len())).unwrap();
    let ran = fake.ran.lock().unwrap();
    // Byte 288 is 256 and 8 elements; 100 elements are 12 full workgroups of 8 and one with 4.
    assert_eq!(words(&ran[0]), [99, 99, 8, 100, 0, 13, 0, 0]);
    assert_eq!(groups(&ran[0]), [13, 1, 1]);
    assert_eq!((ran[0].bindings[0].offset, ran[0].bindings[0].bytes), (256, 432));
    assert_eq!((ran[0].bindings[1].offset, ran[0].bindings[1].bytes), (0, 400));
}

#[test]
fn empty_slices_at_the_end_bind_what_there_is() {
    let (device, fake) = device(DeviceKind::Wgpu, WIDE);
    let mut y = device.zeros::<f32>(8).unwrap();
    for (count, expected) in [(0, (0, 16)), (4, (0, 16)), (8, (0, 32)), (64, (0, 256)), (65, (256, 16))] {
        let x = device.zeros::<f32>(count).unwrap();
        let launch = Launch::of(copy_kernel(1, 4)).read(x.slice(count..).unwrap()).unwrap().write(&mut y).unwrap();
        device.run(launch.value(0usize).unwrap().groups(1)).unwrap();
        let ran = fake.ran.lock().unwrap().pop().unwrap();
        assert_eq!((ran.bindings[0].offset, ran.bindings[0].bytes), expected, "{count}");
        assert_eq!(words(&ran)[1], 0, "{count}");
    }
}

/// Loops count up to lengths, in steps.
#[test]
fn lengths_stay_a_step_below_the_largest_index() {
    let (device, fake) = device(DeviceKind::Cpu, WIDE);
    let mut y = device.zeros::<f32>(8).unwrap();
    let most = artefact::MOST_ELEMENTS as usize;
    let x = device.uninit::<f32>(most + 1).unwrap();
    let launch = Launch::of(copy_kernel(1, 4)).read(x.slice(..most).unwrap()).unwrap().write(&mut y).unwrap();
    device.run(launch.value(0usize).unwrap().groups(1)).unwrap();
    assert_eq!(words(&fake.ran.lock().unwrap()[0])[1], artefact::MOST_ELEMENTS);
    let launch = Launch::of(copy_kernel(1, 4)).read(&x).unwrap().write(&mut y).unwrap();
    assert_eq!(
        device.run(launch.value(0usize).unwrap().groups(1)).unwrap_err().to_string(),
        "kernel `subject`, argument `x_len`: its length, 4294901761, is above 4294901760, the most that indices of 32 bits count up to"
    );
}

#[test]
fn no_less_is_bound_than_a_kernel_moves_at_once() {
    let (device, fake) = device(DeviceKind::Wgpu, WIDE);
    let mut y = device.zeros::<u64>(8).unwrap();
    for (count, first, expected) in [
        (0, 0, (0, 32)),
        (1, 0, (0, 32)),
        (2, 0, (0, 32)),
        (4, 4, (0, 32)),
        (5, 0, (0, 48)),
        (5, 4, (0, 48)),
        (32, 32, (0, 256)),
        // There is no room for four elements from byte 256 on.
        (33, 32, (0, 272)),
        (36, 32, (256, 32)),
    ] {
        let x = device.zeros::<u64>(count).unwrap();
        let launch = Launch::of(copy_kernel(4, 8)).read(x.slice(first..).unwrap()).unwrap().write(&mut y).unwrap();
        device.run(launch.value(0usize).unwrap().groups(1)).unwrap();
        let ran = fake.ran.lock().unwrap().pop().unwrap();
        assert_eq!((ran.bindings[0].offset, ran.bindings[0].bytes), expected, "{count} from {first} on");
        let offset = first - expected.0 as usize / 8;
        assert_eq!(words(&ran)[1..3], [(count - first) as u32, offset as u32], "{count} from {first} on");
    }
}

#[test]
fn devices_with_pointers_bind_from_the_exact_byte() {
    let (device, fake) = device(DeviceKind::Cpu, WIDE);
    let x = device.zeros::<f32>(10).unwrap();
    let mut y = device.zeros::<f32>(10).unwrap();
    let launch = Launch::of(copy_kernel(1, 4))
        .read(x.slice(7..).unwrap())
        .unwrap()
        .write(y.slice_mut(1..2).unwrap())
        .unwrap()
        .value(1usize)
        .unwrap();
    device.run(launch.groups(1)).unwrap();
    let ran = fake.ran.lock().unwrap();
    assert_eq!(words(&ran[0])[..6], [1, 3, 0, 1, 0, 1]);
    assert_eq!((ran[0].bindings[0].offset, ran[0].bindings[0].bytes), (28, 16));
    assert_eq!((ran[0].bindings[1].offset, ran[0].bindings[1].bytes), (4, 16));
}

#[test]
fn elements_that_do_not_divide_the_alignment_start_on_a_common_multiple() {
    let (device, fake) = device(DeviceKind::Vulkan, WIDE);
    let x = device.zeros::<crate::vector::Vec3<f32>>(100).unwrap();
    let mut y = device.zeros::<crate::vector::Vec3<f32>>(100).unwrap();
    let launch = Launch::of(copy_kernel(1, 12))
        .read(x.slice(70..).unwrap())
        .unwrap()
        .write(&mut y)
        .unwrap()
        .value(0usize)
        .unwrap();
    device.run(launch.over(1)).unwrap();
    let ran = fake.ran.lock().unwrap();
    // 840 bytes are 768, a multiple of 256 and of 12, and six elements.
    assert_eq!(ran[0].bindings[0].offset, 768);
    assert_eq!(words(&ran[0])[1..3], [30, 6]);
}

#[test]
fn linear_grids_fold_over_y_and_volumes_do_not() {
    let (device, fake) = device(DeviceKind::Wgpu, [100, 10, 10]);
    let linear = || Launch::of(kernel(GridKind::Linear, vec![], vec![]));
    let volume = || Launch::of(kernel(GridKind::Volume, vec![], vec![]));
    device.run(linear().groups(100)).unwrap();
    device.run(linear().groups(101)).unwrap();
    device.run(linear().over(8 * 999 + 1)).unwrap();
    device.run(linear().over(0)).unwrap();
    device.run(volume().over_axes([9, 3, 5])).unwrap();
    device.run(volume().grid([100, 10, 10])).unwrap();
    let ran = fake.ran.lock().unwrap();
    assert_eq!(
        ran.iter().map(groups).collect::<Vec<_>>(),
        [[100, 1, 1], [51, 2, 1], [100, 10, 1], [3, 2, 5], [100, 10, 10]]
    );
    assert_eq!(words(&ran[1])[0], 101);
    drop(ran);
    for refused in [
        linear().groups(1001),
        linear().groups(1 << 40),
        linear().over(usize::MAX),
        volume().grid([101, 1, 1]),
        volume().grid([1, 1, 11]),
    ] {
        let error = device.run(refused).unwrap_err();
        assert!(matches!(&error, Error::Grid { kernel, .. } if kernel == "subject"), "{error}");
    }
}

#[test]
fn indices_beyond_32_bits_are_refused_even_where_the_workgroups_fit() {
    let (device, _) = device(DeviceKind::Cpu, [u32::MAX; 3]);
    let launch = || Launch::of(kernel(GridKind::Linear, vec![], vec![]));
    device.run(launch().over(1 << 32)).unwrap();
    device.run(launch().over((1 << 32) + 1)).unwrap_err();
    device.run(launch().groups((1 << 29) + 1)).unwrap_err();
}

#[test]
fn a_kernel_is_loaded_once_for_each_device() {
    let (device, _) = device(DeviceKind::Wgpu, WIDE);
    let kernel = kernel(GridKind::Linear, vec![], vec![]);
    device.load(&[&kernel, &kernel]).unwrap();
    device.run(Launch::of(kernel.clone()).groups(1)).unwrap();
    device.clone().run(Launch::of(kernel).groups(2)).unwrap();
    assert_eq!(device.backend().counters().pipelines, 1);
}

/// `kernel(v: &View<f32, 2>)`, or with `&mut`.
fn view_kernel(access: Access) -> Arc<Kernel> {
    kernel(
        GridKind::Linear,
        vec![binding("v", 4, access, 1, Some(2))],
        vec![
            field("v_len", ParamRole::Length(0), 1, false, 0),
            field("v_offset", ParamRole::Offset(0), 1, false, 4),
            field("v_extents", ParamRole::Extents(0), 2, true, 16),
            field("v_strides", ParamRole::Strides(0), 2, true, 32),
        ],
    )
}

#[test]
fn a_view_that_is_written_serves_several_launches() {
    let (device, fake) = device(DeviceKind::Wgpu, WIDE);
    let kernel = view_kernel(Access::Write);
    let mut buffer = device.zeros::<f32>(12).unwrap();
    let mut view = BufferViewMut::<f32, 2>::new(&mut buffer, [4, 3], [1, 4]).unwrap();
    assert_eq!((view.extents(), view.strides(), view.slice_mut().len()), ([4, 3], [1, 4], 12));
    for _ in 0..2 {
        let launch = Launch::of(kernel.clone()).write_view(view.reborrow()).unwrap();
        device.run(launch.groups(1)).unwrap();
    }
    view.slice_mut().write(&[1.0; 12]).unwrap();
    let ran = fake.ran.lock().unwrap();
    assert_eq!(ran.len(), 2);
    for command in ran.iter() {
        assert_eq!(words(command)[..10], [12, 0, 0, 0, 4, 3, 0, 0, 1, 4]);
    }
}

#[test]
fn views_bring_extents_and_strides() {
    let (device, fake) = device(DeviceKind::Wgpu, WIDE);
    let kernel = view_kernel(Access::Read);
    let buffer = device.zeros::<f32>(12).unwrap();
    let view = BufferView::new(&buffer, [4, 3], [1, 4]).unwrap();
    let launch = Launch::of(kernel.clone()).read_view(view).unwrap();
    device.run(launch.groups(1)).unwrap();
    assert_eq!(words(&fake.ran.lock().unwrap()[0])[..10], [12, 0, 0, 0, 4, 3, 0, 0, 1, 4]);
    BufferView::contiguous(&buffer, [5, 3]).unwrap_err();
    BufferView::new(&buffer, [usize::MAX, 2], [2, 1]).unwrap_err();
    BufferView::new(&buffer, [2], [usize::MAX]).unwrap_err();
    BufferView::contiguous(&buffer, [0, 300]).unwrap();
    let slice = Launch::of(kernel.clone()).read(buffer.slice(..).unwrap());
    assert_eq!(
        slice.unwrap_err().to_string(),
        "kernel `subject`, argument `v`: a slice given, a view of 2 axes expected"
    );
}

#[test]
fn wrong_arguments_are_named() {
    let (device, _) = device(DeviceKind::Wgpu, WIDE);
    let (other, _) = self::device(DeviceKind::Wgpu, WIDE);
    let x = device.zeros::<f32>(8).unwrap();
    let mut y = device.zeros::<f32>(8).unwrap();
    let mut far = other.zeros::<f32>(8).unwrap();
    let halves = device.zeros::<half::f16>(8).unwrap();
    let begin = || Launch::of(copy_kernel(4, 4));
    let message = |result: Result<Launch>| result.unwrap_err().to_string();

    assert_eq!(
        message(begin().read(&halves)),
        "kernel `subject`, argument `x`: elements of 2 bytes (half::binary16::f16) given, elements of 4 bytes (f32) expected"
    );
    let bound = begin().read(&x).unwrap();
    assert_eq!(
        message(bound.clone().read(&x)),
        "kernel `subject`, argument `y`: the kernel writes it, so it must be bound as mutable"
    );
    let error = device.run(bound.clone().write(&mut far).unwrap().groups(1)).unwrap_err();
    assert_eq!(error.to_string(), "argument `y` of kernel `subject` belongs to another device than fake (wgpu)");
    let error = device.run(bound.clone().groups(1)).unwrap_err();
    assert_eq!(error.to_string(), "kernel `subject`, argument `y`: it is not given");
    let full = bound.write(&mut y).unwrap();
    let error = device.run(full.clone().groups(1)).unwrap_err();
    assert_eq!(error.to_string(), "kernel `subject`, argument `n`: it is not given");
    assert_eq!(
        message(full.clone().value(1usize << 32)),
        "kernel `subject`, argument `n`: 4294967296 does not fit into 32 bits"
    );
    assert_eq!(message(full.clone().value([1usize, 2])), "kernel `subject`, argument `n`: 2 numbers given, 1 expected");
    assert_eq!(
        message(full.value(1usize).unwrap().value(2usize)),
        "kernel `subject`, argument `value 1`: the kernel takes only 1 of them"
    );
    let askew = begin().read(x.slice(2..).unwrap()).unwrap().write(&mut y).unwrap().value(0usize).unwrap();
    assert_eq!(
        device.run(askew.groups(1)).unwrap_err().to_string(),
        "kernel `subject`, argument `x`: it starts at element 2; the kernel moves 4 elements at once, so it must start at a multiple of 4"
    );
}

#[test]
fn what_is_written_is_bound_once_on_every_device() {
    for kind in DeviceKind::ALL {
        let (device, _) = device(kind, WIDE);
        let mut b = device.zeros::<f32>(128).unwrap();
        let message = |result: Result<Launch>| result.unwrap_err().to_string();
        let begin = || Launch::of(copy_kernel(1, 4));
        assert_eq!(
            message(begin().read(b.slice(32..100).unwrap()).unwrap().write(b.slice_mut(99..128).unwrap())),
            "kernel `subject`, argument `y`: elements 99..128 of its buffer are written, and those that overlap them are read as `x`: what is written must be bound once",
            "{kind}"
        );
        // Of a binding that is only read, what counts is that it may be written.
        let begun = begin().write(&mut b).unwrap();
        assert!(message(begun.write(b.slice_mut(3..4).unwrap())).contains("are written as `x`"), "{kind}");
        // Neighbours, and nothing.
        let begun = begin().read(b.slice(..64).unwrap()).unwrap();
        assert!(begun.write(b.slice_mut(64..).unwrap()).is_ok(), "{kind}");
        let begun = begin().read(b.slice(..).unwrap()).unwrap();
        assert!(begun.write(b.slice_mut(64..64).unwrap()).is_ok(), "{kind}");
        // Reads share.
        let reads = kernel(
            GridKind::Linear,
            vec![binding("x", 4, Access::Read, 1, None), binding("y", 4, Access::Read, 1, None)],
            vec![],
        );
        device.run(Launch::of(reads).read(&b).unwrap().read(&b).unwrap().groups(1)).unwrap();
    }
}

#[test]
fn parts_of_one_buffer_are_refused_where_the_device_cannot_share() {
    let (device, _) = device(DeviceKind::Wgpu, WIDE);
    let mut y = device.zeros::<f32>(128).unwrap();
    let (low, high) = y.slice_mut(..).unwrap().split_at(64).unwrap();
    let launch = Launch::of(copy_kernel(1, 4)).read(low.shared()).unwrap().write(high).unwrap().value(0usize).unwrap();
    let error = device.run(launch.groups(1)).unwrap_err();
    assert!(error.to_string().contains("parts of one piece of memory"), "{error}");
}
