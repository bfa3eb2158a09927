//! The device interface's rules on the CPU, with kernels written by hand; and late instances in the evaluator.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../../device_rules/mod.rs"]
#[allow(dead_code, reason = "the rules of a cache on disk do not concern a device that has none")]
mod rules;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rayon::prelude::*;
use trefoil_codegen::artefact::{CpuArguments, CpuFunction, Kernel, ParamRole, ParamTransport, ShareStep, Target};
use trefoil_codegen::check::{Launch, Options, Report};
use trefoil_codegen::compile;
use trefoil_codegen::front::parse_source;
use trefoil_dsl::device::{
    Call, CallCommand, Command, CopyCommand, Device, DeviceKind, DeviceOptions, DispatchCommand, GroupSource,
    MemoryRange, ParamSource, Pipeline, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::faults::{self, Faults};

/// The element `i` of a binding, in words.
unsafe fn at(arguments: &CpuArguments<'_>, binding: usize, i: usize) -> *mut f32 {
    assert!((i + 1) * 4 <= arguments.buffers[binding].bytes);
    // SAFETY: just checked.
    unsafe { arguments.buffers[binding].pointer.cast::<f32>().add(i) }
}

fn word(arguments: &CpuArguments<'_>, i: usize) -> u32 {
    u32::from_le_bytes(arguments.params[4 * i..4 * i + 4].try_into().unwrap())
}

fn range(arguments: &CpuArguments<'_>, first: u64, end: u64) -> std::ops::Range<usize> {
    let len = word(arguments, 0) as usize;
    (first as usize * 64).min(len)..(end as usize * 64).min(len)
}

unsafe fn add(arguments: &CpuArguments<'_>, first: u64, end: u64) {
    let scale = f32::from_bits(word(arguments, 1));
    for i in range(arguments, first, end) {
        // SAFETY: `at` checks.
        unsafe { *at(arguments, 2, i) = (*at(arguments, 0, i) + *at(arguments, 1, i)) * scale };
    }
}

unsafe fn rotate(arguments: &CpuArguments<'_>, first: u64, end: u64) {
    let (len, scale) = (word(arguments, 0) as usize, f32::from_bits(word(arguments, 1)));
    for i in range(arguments, first, end) {
        // SAFETY: `at` checks.
        unsafe { *at(arguments, 1, i) = *at(arguments, 0, (i + 1) % len) * scale };
    }
}

unsafe fn table(arguments: &CpuArguments<'_>, first: u64, end: u64) {
    for i in range(arguments, first, end) {
        // SAFETY: `at` checks.
        unsafe { *at(arguments, 0, i).cast::<u32>() = word(arguments, 4 + i % 31 * 4) };
    }
}

fn function(name: &str) -> Option<CpuFunction> {
    match name {
        "add" => Some(CpuFunction { entry: add, share: &[] }),
        "rotate" => Some(CpuFunction { entry: rotate, share: &[] }),
        "table" => Some(CpuFunction { entry: table, share: &[] }),
        _ => None,
    }
}

// There is no cache on disk: nothing is compiled when a program runs.
device_rules!(rules::Subject { kind: DeviceKind::Cpu, open: trefoil_cpu::open, variants: |_| Vec::new(), reports_cache: false, cpu: function };
    memory_of_any_size_keeps_what_is_written, wrong_ranges_are_errors, lists_run_at_once, dependent_commands_see_each_other, kernels_take_turns,
    a_recording_serves_every_extent, groups_come_from_run_words, wrong_commands_are_errors, runs_carry_uploads_and_downloads,
    device_times_are_told, poorer_devices_refuse, adapters_that_are_not_there_are_errors, large_parameter_blocks_arrive, kernels_are_made_once, many_threads_may_work,
    memory_may_go_while_it_is_used, pinned_memory_is_moved_both_ways, copies_move_bytes_within_the_device, products_by_a_library,
    lengths_and_counts_are_held_to_what_is_bound, many_threads_may_run_one_recording, parts_of_words_may_be_written_at_once,
    parts_of_words_may_be_written_beside_lists, large_writes_are_whole, a_run_follows_the_lists_before_it, what_a_run_takes_is_no_mixture,
    what_is_read_later_is_as_it_was, any_number_of_reads_may_be_under_way, parts_are_read_later, reads_and_buffers_outlive_each_other,
    large_reads_are_whole, a_read_is_ready_without_anybody_who_waits, many_threads_may_read_later, wrong_reads_are_errors, reads_may_fail_later,
    submissions_follow_each_other, what_is_submitted_outlives_its_recording, many_threads_may_submit_one_recording,
    what_has_run_words_is_not_submitted);

const SOURCE: &str = "
    #[kernel(workgroup(64))]
    fn scaled(x: &[f32], y: &mut [f32], s: f32) {
        let i = global_index();
        if i < y.len() {
            y[i] = x[i] * s + 1.0;
        }
    }
";

/// A kernel without a compiled function.
fn late(targets: &[Target]) -> Arc<Kernel> {
    late_of(SOURCE, targets)
}

/// The same of another source.
fn late_of(source: &str, targets: &[Target]) -> Arc<Kernel> {
    let mut output = parse_source(source).map_err(|errors| errors.0.len()).unwrap().remove(0);
    output.module.targets = targets.to_vec();
    let instance = output.instances.remove(0);
    Arc::new(compile::compile(&output.module, &instance).unwrap())
}

#[test]
fn late_instances_run_in_the_evaluator() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    run_scaled(&device, &late(&[Target::Cpu]), &[1, 63, 5000, 300_001]);
}

#[test]
fn a_device_that_checks_gives_the_same_results_and_a_report_of_each_dispatch() {
    let (device, reports) = trefoil_cpu::open_checked(&DeviceOptions::default(), &Options::default()).unwrap();
    let launches: Arc<Mutex<Vec<Launch>>> = Arc::default();
    let sink = launches.clone();
    reports.watch(move |launch| sink.lock().unwrap().push(launch.clone()));
    // It needs no code for the CPU.
    run_scaled(&device, &late(&[Target::Cuda]), &[1, 63, 5000]);
    let made = reports.take();
    assert_eq!(made.len(), 3);
    assert!(made.iter().all(Report::is_clean), "{made:?}");
    assert!(reports.take().is_empty());
    // What was launched does the same anywhere else.
    let launches = launches.lock().unwrap();
    assert_eq!(launches.len(), 3);
    for (launch, made) in launches.iter().zip(&made) {
        let mut launch = Launch::from_bytes(&launch.to_bytes().unwrap()).unwrap();
        let program = launch.program().unwrap();
        let before = launch.buffers.clone();
        let report = program.run(&Options::default(), &mut launch.buffers, &launch.params, launch.groups).unwrap();
        assert_eq!(report, *made);
        assert_ne!(launch.buffers, before);
    }
    let odd = Options { subgroup_size: 24, ..Options::default() };
    let refused = trefoil_cpu::open_checked(&DeviceOptions::default(), &odd);
    assert!(matches!(&refused, Err(Error::Unavailable { reason, .. }) if reason.contains("24")), "{refused:?}");
}

/// Runs `scaled` over so many elements, each count on its own.
fn run_scaled(device: &Device, kernel: &Arc<Kernel>, counts: &[usize]) {
    let backend = device.backend();
    let pipeline = backend.load(std::slice::from_ref(kernel), ParamTransport::Value).unwrap().remove(0);
    for n in counts.iter().copied() {
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.25).collect();
        let bytes = n as u64 * 4;
        let memory = [backend.allocate(bytes, "x").unwrap(), backend.allocate(bytes, "y").unwrap()];
        let whole = |i: usize| MemoryRange { memory: memory[i].clone(), offset: 0, bytes };
        let data: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        backend.write(&whole(0), &data).unwrap();
        let groups = n.div_ceil(64) as u32;
        let block = |length: u32| {
            let mut block = vec![0u8; kernel.params.size as usize];
            for field in kernel.params.fields.iter() {
                let value = match field.role {
                    ParamRole::User(_) => 2.0f32.to_bits(),
                    ParamRole::Length(_) => length,
                    ParamRole::GroupCount => groups,
                    _ => 0,
                };
                block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&value.to_le_bytes());
            }
            block
        };
        let dispatch = |length: u32| {
            Command::Dispatch(DispatchCommand {
                pipeline: pipeline.clone(),
                bindings: vec![whole(0), whole(1)],
                params: ParamSource::Value(block(length)),
                // Folded, as a device with small grids would be asked to.
                groups: GroupSource::Value([groups.min(100), groups.div_ceil(100), 1]),
                label: Arc::from("scaled"),
            })
        };
        backend.execute(&[dispatch(n as u32)]).unwrap();
        let mut found = vec![0; n * 4];
        backend.read(&whole(1), &mut found).unwrap();
        let found: Vec<f32> = found.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let expected: Vec<f32> = x.iter().map(|x| x * 2.0 + 1.0).collect();
        assert_eq!(found, expected);
        // A length that the memory does not have would make kernels reach outside.
        let wrong = backend.execute(&[dispatch(n as u32 + 1)]);
        assert!(matches!(&wrong, Err(Error::Command { reason, .. }) if reason.contains("elements")), "{wrong:?}");
    }
}

#[test]
fn kernels_without_code_for_the_cpu_are_refused() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let mut kernel = (*late(&[Target::Cuda])).clone();
    let refused = device.backend().load(&[Arc::new(kernel.clone())], ParamTransport::Value);
    assert!(matches!(refused, Err(Error::Variant(_))), "{refused:?}");
    kernel.ir = Cow::Borrowed(&[1, 2, 3]);
    let refused = device.backend().load(&[Arc::new(kernel)], ParamTransport::Value);
    assert!(matches!(refused, Err(Error::Build { .. } | Error::Variant(_))), "{refused:?}");
}

#[test]
fn a_function_of_the_host_runs_and_its_failure_loses_the_device() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let backend = device.backend();
    let memory = backend.allocate(8, "m").unwrap();
    let range = |offset| MemoryRange { memory: memory.clone(), offset, bytes: 4 };
    backend.write(&range(0), &[1, 2, 3, 4]).unwrap();
    let host = |fails: bool| {
        Command::Call(CallCommand {
            call: Call::Host(Arc::new(move |reads, writes, _| {
                writes[0].copy_from_slice(reads[0]);
                if fails { Err("on purpose".to_owned()) } else { Ok(()) }
            })),
            reads: vec![range(0)],
            writes: vec![range(4)],
            run_words: 0..0,
            label: Arc::from("host"),
        })
    };
    backend.execute(&[host(false)]).unwrap();
    let mut found = [0; 4];
    backend.read(&range(4), &mut found).unwrap();
    assert_eq!(found, [1, 2, 3, 4]);
    assert!(matches!(backend.execute(&[host(true)]), Err(Error::Lost { .. })));
    assert!(matches!(backend.wait(), Err(Error::Lost { label, .. }) if label == "host"));
    // It is opened again as another device.
    let again = device.reopen().unwrap();
    again.backend().allocate(8, "m").unwrap();
    assert!(matches!(backend.wait(), Err(Error::Lost { .. })));
}

#[test]
fn workgroups_of_more_invocations_than_can_be_counted_are_refused() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let mut kernel = Kernel::clone(&late(&[Target::Cpu]));
    kernel.workgroup_size = [u32::MAX; 3];
    let error = device.backend().load(&[Arc::new(kernel)], ParamTransport::Value).unwrap_err();
    assert!(error.to_string().contains("invocations in a workgroup"), "{error}");
}

/// Memory is bound as the artefact says, and accessed as its IR does.
#[test]
fn an_artefact_that_says_something_else_than_its_ir_is_refused() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let whole = late(&[Target::Cpu]);
    assert!(device.backend().load(std::slice::from_ref(&whole), ParamTransport::Value).is_ok());
    let changes: [fn(&mut Kernel); 4] = [
        |kernel| drop(kernel.bindings.to_mut().pop()),
        |kernel| kernel.bindings.to_mut()[0].element.size = 2,
        |kernel| kernel.params.size = 0,
        |kernel| kernel.workgroup_size = [1; 3],
    ];
    for change in changes {
        let mut kernel = Kernel::clone(&whole);
        change(&mut kernel);
        // Pipelines are known by it.
        kernel.hash[0] ^= 1;
        let error = device.backend().load(&[Arc::new(kernel)], ParamTransport::Value).unwrap_err();
        assert!(error.to_string().contains("it is damaged"), "{error}");
    }
}

/// A worker of a pool that waits for the device must not begin another job of its pool meanwhile, which would wait for the device behind it.
#[test]
fn jobs_of_a_pool_may_use_the_device() {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
        // Large enough to be uploaded by several threads.
        let bytes = 3 << 20;
        (0..64u8).into_par_iter().for_each(|job| {
            let memory = [0, 1].map(|_| device.backend().allocate(bytes, "job").unwrap());
            let [from, to] = [0, 1].map(|i: usize| MemoryRange { memory: memory[i].clone(), offset: 0, bytes });
            device.backend().write(&from, &vec![job; bytes as usize]).unwrap();
            let copy = CopyCommand { from, to: to.clone(), label: Arc::from("copy") };
            device.backend().execute(&[Command::Copy(copy.clone())]).unwrap();
            device.backend().time(&[Command::Copy(copy)]).unwrap();
            let mut found = vec![0; bytes as usize];
            device.backend().read(&to, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == job));
        });
        // The same with a lock of the caller's, while kernels are made.
        let kernels: Vec<_> = (0..8)
            .map(|hash| {
                let mut kernel = Kernel::clone(&late(&[Target::Cpu]));
                kernel.hash[0] = hash;
                Arc::new(kernel)
            })
            .collect();
        let lock = Mutex::new(());
        (0..64).into_par_iter().for_each(|_| {
            let _held = lock.lock().unwrap();
            let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
            assert_eq!(device.backend().load(&kernels, ParamTransport::Value).unwrap().len(), 8);
        });
        done.send(()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(120)), Ok(()), "it hangs, or a job failed");
}

/// A listed kernel and the same instance made late have one hash.
#[test]
fn kernels_with_and_without_compiled_rust_are_two() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let late = late(&[Target::Cpu]);
    let mut listed = Kernel::clone(&late);
    listed.cpu = function("add");
    assert_eq!(listed.hash, late.hash);
    device.load(&[&late, &listed, &late]).unwrap();
    assert_eq!(device.backend().counters().pipelines, 2);
    device.load(&[&listed]).unwrap();
    assert_eq!(device.backend().counters().pipelines, 2);
}

/// What a kernel on the CPU only reads it has as slices, which nobody may write meanwhile.
#[test]
fn what_a_dispatch_writes_is_bound_once() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let (backend, kernel) = (device.backend(), late(&[Target::Cpu]));
    let load = |transport| backend.load(std::slice::from_ref(&kernel), transport).unwrap().remove(0);
    let (by_value, by_words) = (load(ParamTransport::Value), load(ParamTransport::Buffer));
    let memory = backend.allocate(96, "both").unwrap();
    // Ten elements, and room for two more.
    let mut block = vec![0u8; kernel.params.size as usize];
    for field in kernel.params.fields.iter() {
        let value: u32 = match field.role {
            ParamRole::Length(_) => 10,
            ParamRole::GroupCount => 1,
            _ => 0,
        };
        block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&value.to_le_bytes());
    }
    let from = |first: u64| MemoryRange { memory: memory.clone(), offset: 4 * first, bytes: 48 };
    let dispatch = |pipeline: &Arc<dyn Pipeline>, params: ParamSource, bindings: [MemoryRange; 2]| {
        let (pipeline, groups) = (pipeline.clone(), GroupSource::Value([1; 3]));
        Command::Dispatch(DispatchCommand {
            pipeline,
            bindings: bindings.to_vec(),
            params,
            groups,
            label: Arc::from("scaled"),
        })
    };
    let run = |bindings: [MemoryRange; 2]| -> [Result<()>; 2] {
        let recorded = dispatch(&by_words, ParamSource::RunWords(0), bindings.clone());
        let recording = backend.record(&[recorded], block.len()).unwrap();
        [
            backend.execute(&[dispatch(&by_value, ParamSource::Value(block.clone()), bindings)]),
            backend.run(&*recording, RunIo { run_words: Some(&block), ..RunIo::default() }),
        ]
    };
    for second in [0, 9] {
        for bindings in [[from(0), from(second)], [from(second), from(0)]] {
            for refused in run(bindings) {
                let named = matches!(&refused, Err(Error::Command { label, reason })
                    if label == "scaled" && reason.contains("what is written must be bound once"));
                assert!(named, "{refused:?}");
            }
        }
    }
    // What is bound beside the elements may overlap.
    for second in [10, 12] {
        for done in run([from(0), from(second)]) {
            done.unwrap();
        }
    }
}

/// Runs a kernel over so many workgroups, with a piece of memory for each binding that holds so many words, zeros at first; gives what they hold then.
fn run_over(device: &Device, kernel: &Arc<Kernel>, words: u32, groups: u32) -> Vec<Vec<u32>> {
    let backend = device.backend();
    let pipeline = backend.load(std::slice::from_ref(kernel), ParamTransport::Value).unwrap().remove(0);
    let bytes = u64::from(words) * 4;
    let bound = |_| MemoryRange { memory: backend.allocate(bytes, "words").unwrap(), offset: 0, bytes };
    let bindings: Vec<MemoryRange> = kernel.bindings.iter().map(bound).collect();
    for range in &bindings {
        backend.write(range, &vec![0; bytes as usize]).unwrap();
    }
    let mut block = vec![0u8; kernel.params.size as usize];
    for field in kernel.params.fields.iter() {
        let value = match field.role {
            ParamRole::Length(_) => words,
            ParamRole::GroupCount => groups,
            _ => 0,
        };
        block[field.offset as usize..field.offset as usize + 4].copy_from_slice(&value.to_le_bytes());
    }
    let dispatch = DispatchCommand {
        pipeline,
        bindings: bindings.clone(),
        params: ParamSource::Value(block),
        groups: GroupSource::Value([groups, 1, 1]),
        label: Arc::from("over"),
    };
    backend.execute(&[Command::Dispatch(dispatch)]).unwrap();
    let held = |range: &MemoryRange| {
        let mut found = vec![0; bytes as usize];
        backend.read(range, &mut found).unwrap();
        found.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
    };
    bindings.iter().map(held).collect()
}

/// Indices wrap, so that one workgroup in four, or in 256, counts in the same elements: on several threads at once they would lose counts.
#[test]
fn workgroups_that_meet_where_indices_wrap_do_not_run_at_once() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    for apart in [4u32, 256] {
        // One workgroup is a batch of the evaluator's, which would add once for all workgroups in it.
        let source = format!(
            "#[kernel(workgroup(1024))]
            fn counted(y: &mut [u32]) {{
                let i = group_index() * {} + local_index();
                y[i] = y[i] + 1;
            }}",
            (1u64 << 32) / u64::from(apart)
        );
        let found = run_over(&device, &late_of(&source, &[Target::Cpu]), 1024, 8192);
        assert_eq!(found, [vec![8192 / apart; 1024]], "every {apart}th");
    }
}

/// Workgroups that `watched` may be asked for, and how many of them are apart.
const WATCHED: (u64, u64) = (10_000, 256);
/// What each of them has to itself.
const SHARE: &[ShareStep] = &[ShareStep::Number((1 << 32) / WATCHED.1 as i128)];
/// Which of them run.
static RUNNING: Mutex<Vec<Range<u64>>> = Mutex::new(Vec::new());
/// How many have run.
static RUN: AtomicU64 = AtomicU64::new(0);

unsafe fn watched(_: &CpuArguments<'_>, first: u64, end: u64) {
    let (all, apart) = WATCHED;
    let own = first..end;
    {
        let mut running = RUNNING.lock().unwrap();
        running.push(own.clone());
        // One thread may run all of them, one after the other.
        let alone = running.len() == 1 && own == (0..all);
        let is_near = |group: u64| group / apart == first / apart;
        let near = running.iter().all(|other| is_near(other.start) && is_near(other.end - 1));
        assert!(alone || near, "at once: {running:?}");
    }
    std::thread::sleep(Duration::from_micros(50));
    RUN.fetch_add(end - first, Ordering::Relaxed);
    RUNNING.lock().unwrap().retain(|other| *other != own);
}

/// A compiled function says how much each workgroup has to itself.
#[test]
fn no_more_workgroups_run_at_once_than_are_apart() {
    let device = trefoil_cpu::open(&DeviceOptions::default()).unwrap();
    let mut kernel = Kernel::clone(&late(&[Target::Cpu]));
    kernel.cpu = Some(CpuFunction { entry: watched, share: SHARE });
    run_over(&device, &Arc::new(kernel), 4, WATCHED.0 as u32);
    assert_eq!(RUN.load(Ordering::Relaxed), WATCHED.0);
}

/// Launches look for the buffers to which kernels report, also while somebody reads one, who waits for the device.
#[test]
fn who_reads_reports_keeps_no_launch_waiting() {
    let (hand, device) = Faults::over(&trefoil_cpu::open(&DeviceOptions::default()).unwrap());
    let kernel = late(&[Target::Cpu]);
    device.report_buffer(&kernel).unwrap();
    let (said, told) = mpsc::channel();
    let (other, of) = (device.clone(), kernel.clone());
    hand.watch(move |call| {
        if call == faults::Call::Readback {
            let (device, kernel, (answer, answered)) = (other.clone(), of.clone(), mpsc::channel());
            std::thread::spawn(move || answer.send(device.report_buffer(&kernel).is_ok()));
            said.send(answered.recv_timeout(Duration::from_secs(60))).unwrap();
        }
    });
    device.hear().unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Ok(true)]);
    hand.watch(|_| ());
}
