//! Tests of the device interface's rules, which every device crate includes and runs on small kernels in its own language.
//!
//! A device crate gives three kernels by name, each with the parameter block stated here, for every transport of its target:
//! * `add`: bindings `a`, `b` (read), `c` (write); parameters `len: u32`, `scale: f32`, two unused words;
//!   `c[i] = (a[i] + b[i]) * scale` for `i < len`.
//! * `rotate`: bindings `x` (read), `y` (write); parameters as above; `y[i] = x[(i + 1) % len] * scale` for `i < len`.
//! * `table`: binding `y` (write); parameters `len: u32`, three unused words, then 31 groups of four `u32`, 512 bytes in all;
//!   `y[i] = first word of group (i % 31)` for `i < len`.
//!
//! All have workgroups of 64 invocations along x, and buffers of `f32` (`table`: `u32`).

mod lists;
mod memory;
mod pipelines;
mod products;
mod readbacks;
mod recordings;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::{lists::*, memory::*, pipelines::*, products::*, readbacks::*, recordings::*};
use trefoil_codegen::artefact::{
    Access, Binding, CpuFunction, Element, GridKind, IndexWidth, Kernel, ParamField, ParamRole, ParamScalar,
    ParamTransport, ParamType, Params, Variant,
};
use trefoil_dsl::device::{
    Command, Device, DeviceKind, DeviceOptions, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource,
    Pipeline,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::{Buffer, BufferSlice, Launch};

/// What a device crate brings.
pub struct Subject {
    /// What it opens.
    pub kind: DeviceKind,
    /// Opens the device.
    pub open: fn(&DeviceOptions) -> Result<Device>,
    /// The variants of a kernel.
    pub variants: fn(&str) -> Vec<Variant>,
    /// Whether the device always tells that a cache on disk served a pipeline; some drivers do not.
    pub reports_cache: bool,
    /// The function that runs a kernel on the CPU; the CPU device needs it.
    pub cpu: fn(&str) -> Option<CpuFunction>,
}

/// Every test, for a static `Subject`; `opened` is one that others opened, on an adapter of their choice.
#[macro_export]
macro_rules! device_rules {
    ($subject:expr; $($name:ident),* $(,)?) => { $(#[test] fn $name() {
        if rules::is_present(&$subject) {
            rules::$name(&$subject);
        }
    })* };
    ($subject:expr) => {
        device_rules!($subject; adapters_that_are_not_there_are_errors);
        device_rules!(opened $subject);
    };
    (opened $subject:expr) => {
        device_rules!($subject;
            memory_of_any_size_keeps_what_is_written, wrong_ranges_are_errors, lists_run_at_once, dependent_commands_see_each_other, kernels_take_turns,
            a_recording_serves_every_extent, groups_come_from_run_words, wrong_commands_are_errors, runs_carry_uploads_and_downloads,
            copies_move_bytes_within_the_device, products_by_a_library, device_times_are_told, poorer_devices_refuse, large_parameter_blocks_arrive, kernels_are_made_once, many_threads_may_work,
            memory_may_go_while_it_is_used, pinned_memory_is_moved_both_ways, pipelines_come_from_the_cache_on_disk,
            lengths_and_counts_are_held_to_what_is_bound, many_threads_may_run_one_recording, parts_of_words_may_be_written_at_once,
            parts_of_words_may_be_written_beside_lists, large_writes_are_whole, a_run_follows_the_lists_before_it,
            what_is_read_later_is_as_it_was, any_number_of_reads_may_be_under_way, parts_are_read_later, reads_and_buffers_outlive_each_other,
            large_reads_are_whole, a_read_is_ready_without_anybody_who_waits, many_threads_may_read_later, wrong_reads_are_errors, reads_may_fail_later,
            what_a_run_takes_is_no_mixture, what_is_read_is_of_one_state, nothing_comes_between_the_parts_of_a_run, submissions_follow_each_other, what_is_submitted_outlives_its_recording,
            many_threads_may_submit_one_recording, what_has_run_words_is_not_submitted);
    };
}

/// Whether there is such a device to test. One that `TREFOIL_REQUIRE_DEVICES` names must be there.
pub fn is_present(subject: &Subject) -> bool {
    let required = std::env::var("TREFOIL_REQUIRE_DEVICES").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim().eq_ignore_ascii_case(subject.kind.name()));
    match (subject.open)(&DeviceOptions::default()) {
        Err(error @ Error::Unavailable { .. }) if !required => {
            eprintln!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
        Ok(_) => true,
    }
}

fn open(subject: &Subject) -> Device {
    (subject.open)(&DeviceOptions { validate: true, ..DeviceOptions::default() })
        .or_else(|error| match error {
            // Validation is there to find our mistakes; devices without it are tested without it.
            Error::Unavailable { .. } => (subject.open)(&DeviceOptions::default()),
            other => Err(other),
        })
        .unwrap()
}

/// More than any device moves at a time between its memory and the host.
const LARGE: usize = (64 << 20) + 64;

/// Is set when it goes.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something, while another thread does `again` over and over.
fn beside(again: impl Fn() + Sync, act: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It ends also where this thread panics.
        let _ending = Ending(&is_done);
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                again();
                std::thread::yield_now();
            }
        });
        act();
    });
}

/// One of the kernels described above.
pub fn kernel(subject: &Subject, name: &'static str) -> Arc<Kernel> {
    let (bindings, words): (&[(&'static str, Access)], u32) = match name {
        "add" => (&[("a", Access::Read), ("b", Access::Read), ("c", Access::Write)], 4),
        "rotate" => (&[("x", Access::Read), ("y", Access::Write)], 4),
        "table" => (&[("y", Access::Write)], 128),
        other => panic!("no kernel {other}"),
    };
    let element = Element { name: Cow::Borrowed("f32"), size: 4, align: 4 };
    let field = |name: &'static str, scalar, offset| ParamField {
        name: Cow::Borrowed(name),
        role: ParamRole::User(offset / 4),
        ty: ParamType { scalar, count: 1, array: false },
        offset,
    };
    let mut hash = [0; 16];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    Arc::new(Kernel {
        name: Cow::Borrowed(name),
        doc: Cow::Borrowed(""),
        bindings: bindings
            .iter()
            .map(|(name, access)| Binding {
                name: Cow::Borrowed(name),
                element: element.clone(),
                access: *access,
                vector: 1,
                view: None,
            })
            .collect(),
        params: Params {
            size: words * 4,
            fields: vec![field("len", ParamScalar::U32, 0), field("scale", ParamScalar::F32, 4)].into(),
        },
        constants: Vec::new().into(),
        workgroup_size: [64, 1, 1],
        subgroup_size: None,
        workgroup_bytes: 0,
        no_robustness: false,
        index: IndexWidth::Bits32,
        grid: GridKind::Linear,
        variants: (subject.variants)(name).into(),
        cpu: (subject.cpu)(name),
        sites: Vec::new().into(),
        reporting: None,
        ir: Cow::Borrowed(&[]),
        instance: Cow::Borrowed(&[]),
        hash,
    })
}

/// A kernel made ready.
pub fn load(device: &Device, kernel: &Arc<Kernel>, transport: ParamTransport) -> Arc<dyn Pipeline> {
    device.backend().load(std::slice::from_ref(kernel), transport).unwrap().remove(0)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Numbers that are different everywhere and exact under the kernels' arithmetic.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 12) as f32).collect()
}

fn params(len: usize, scale: f32) -> Vec<u8> {
    let mut block = (len as u32).to_le_bytes().to_vec();
    block.extend(scale.to_le_bytes());
    block.extend([0; 8]);
    block
}

/// Launches that take memory of the program's own as elements: 64 floats, all of which are `value`. It is read, written, and holds other bits in the end.
pub fn launches_read_and_write(subject: &Subject, device: &Device, memory: &Arc<dyn Memory>, value: f32) {
    let kernel = kernel(subject, "add");
    let mut given = device.buffer_of::<f32>(memory, 64).unwrap();
    let launch = |a: BufferSlice<'_, f32>, c: &mut Buffer<f32>| {
        let launch = Launch::of(kernel.clone()).read(a).unwrap().read(a).unwrap().write(c).unwrap();
        device.run(launch.value(40u32).unwrap().value(2f32).unwrap().over(40)).unwrap();
    };
    let mut sum = device.zeros::<f32>(64).unwrap();
    launch(given.slice(..40).unwrap(), &mut sum);
    let expected = |first: f32, rest: f32| [vec![first; 40], vec![rest; 24]].concat();
    assert_eq!(sum.read().unwrap(), expected(4.0 * value, 0.0));
    launch(sum.slice(..).unwrap(), &mut given);
    assert_eq!(given.read().unwrap(), expected(16.0 * value, value));
    given.slice_mut(40..).unwrap().copy_from(sum.slice(..24).unwrap()).unwrap();
    let bits = device.buffer_of::<u32>(memory, 64).unwrap().read().unwrap();
    assert_eq!(bits, expected(16.0 * value, 4.0 * value).into_iter().map(f32::to_bits).collect::<Vec<_>>());
    let refused = device.buffer_of::<f32>(memory, 65).unwrap_err().to_string();
    assert_eq!(
        refused,
        "buffer of 65 f32 in memory of 256 bytes: 65 elements from 0 on are not within its 64 elements"
    );
}

/// All of a piece of memory.
pub fn whole(memory: &Arc<dyn Memory>) -> MemoryRange {
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes() }
}

fn part(memory: &Arc<dyn Memory>, offset: usize, bytes: usize) -> MemoryRange {
    MemoryRange { memory: memory.clone(), offset: offset as u64, bytes: bytes as u64 }
}

fn bound(memory: &Arc<dyn Memory>) -> MemoryRange {
    MemoryRange { memory: memory.clone(), offset: 0, bytes: memory.bytes().max(1).next_multiple_of(16) }
}

fn upload(device: &Device, values: &[f32]) -> Arc<dyn Memory> {
    let memory = device.backend().allocate(values.len() as u64 * 4, "test").unwrap();
    device.backend().write(&whole(&memory), &bytes(values)).unwrap();
    memory
}

/// What a piece of memory holds.
pub fn download(device: &Device, memory: &Arc<dyn Memory>) -> Vec<f32> {
    let mut data = vec![0; memory.bytes() as usize];
    device.backend().read(&whole(memory), &mut data).unwrap();
    floats(&data)
}

fn groups(len: usize) -> [u32; 3] {
    [len.div_ceil(64) as u32, 1, 1]
}

fn dispatch(
    pipeline: &Arc<dyn Pipeline>,
    memory: &[&Arc<dyn Memory>],
    params: ParamSource,
    groups: GroupSource,
) -> DispatchCommand {
    DispatchCommand {
        pipeline: pipeline.clone(),
        bindings: memory.iter().map(|memory| bound(memory)).collect(),
        params,
        groups,
        label: Arc::from(&*pipeline.kernel().name),
    }
}

/// A dispatch of one of the kernels above, with its parameters by value.
pub fn by_value(pipeline: &Arc<dyn Pipeline>, memory: &[&Arc<dyn Memory>], len: usize, scale: f32) -> Command {
    Command::Dispatch(dispatch(
        pipeline,
        memory,
        ParamSource::Value(params(len, scale)),
        GroupSource::Value(groups(len)),
    ))
}
