//! What the checker finds, each kind on a kernel that does it and on the nearest one that does not; at subgroups of every size.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use trefoil_codegen::artefact::ParamRole;
use trefoil_codegen::check::{CheckError, Finding, MemoryKind, Options, Order, Program, Report};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::{Instance, Locations, Module, Span};
use trefoil_codegen::layout;

/// A kernel of so many invocations.
fn kernel(attribute: &str, signature: &str, body: &str) -> Module {
    let source = format!("#[kernel({attribute})]\nfn k({signature}) {{\n{body}\n}}");
    parse_source(&source).unwrap_or_else(|errors| panic!("{errors}\n{source}")).remove(0).module
}

/// Its parameter block, for buffers of so many elements and params that are words.
fn block(program: &Program, lengths: &[u32], words: &[u32], groups: u32) -> Vec<u8> {
    let verified = program.verified();
    let params = layout::params(&verified.module, verified.info.grid).unwrap();
    let mut bytes = vec![0; params.size as usize];
    for field in params.fields.iter() {
        let word = match field.role {
            ParamRole::User(index) => words[index as usize],
            ParamRole::Length(binding) => lengths[binding as usize],
            ParamRole::GroupCount => groups,
            _ => 0,
        };
        bytes[field.offset as usize..field.offset as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Checks a kernel over buffers of words, each one more than the one before, and gives what they hold then.
fn run(module: &Module, options: &Options, lengths: &[u32], words: &[u32], groups: u32) -> (Report, Vec<Vec<u32>>) {
    let program = Program::new(module, &Instance::default(), &[]).unwrap();
    let mut buffers: Vec<Vec<u8>> =
        lengths.iter().map(|length| (0..*length).flat_map(u32::to_le_bytes).collect()).collect();
    let params = block(&program, lengths, words, groups);
    let report = program.run(options, &mut buffers, &params, [groups, 1, 1]).unwrap();
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    (report, buffers.iter().map(|bytes| bytes.chunks(4).map(word).collect()).collect())
}

/// What is found in two workgroups of 64, with a buffer of 128 words each.
fn found(signature: &str, body: &str) -> Vec<Finding> {
    found_with(&Options::default(), signature, body)
}

fn found_with(options: &Options, signature: &str, body: &str) -> Vec<Finding> {
    let module = kernel("workgroup(64)", signature, body);
    let lengths = vec![128; module.bindings.len()];
    let (report, _) = run(&module, options, &lengths, &[], 2);
    report.findings.into_iter().map(|found| found.finding).collect()
}

/// The one thing that is found.
fn one(signature: &str, body: &str) -> Finding {
    let mut all = found(signature, body);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn nothing(signature: &str, body: &str) {
    let all = found(signature, body);
    assert!(all.is_empty(), "{all:?}\n{body}");
}

#[test]
fn a_missing_barrier_is_a_race_on_workgroup_memory_and_is_told_of_at_both_lines() {
    let body = |barrier: &str| {
        format!(
            "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\npart[l] = x[l];\n{barrier}\ny[global_index()] = part[63 - l];"
        )
    };
    let Finding::Race { memory, element, first, second } = one("x: &[u32], y: &mut [u32]", &body("")) else {
        panic!("no race")
    };
    assert_eq!((memory.kind, memory.name.as_str()), (MemoryKind::Workgroup, "part"));
    // The first that reads what another wrote is invocation 0.
    assert_eq!(element, 63);
    assert!(first.writes && !second.writes);
    assert_eq!((first.invocation.local, second.invocation.local), ([63, 0, 0], [0, 0, 0]));
    assert_eq!(first.invocation.workgroup, second.invocation.workgroup);
    assert!(first.at.contains(":5:") && second.at.contains(":7:"), "{} and {}", first.at, second.at);
    nothing("x: &[u32], y: &mut [u32]", &body("barrier();"));
}

#[test]
fn a_report_names_everything_in_words() {
    let module = kernel(
        "workgroup(64)",
        "x: &[u32], y: &mut [u32]",
        "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\npart[l] = x[l];\ny[global_index()] = part[63 - l];",
    );
    let (report, _) = run(&module, &Options::default(), &[128, 128], &[], 2);
    assert_eq!(
        report.to_string(),
        "kernel `k`: 1 finding\n  source:6:21: race on element 63 of workgroup memory `part`: invocation 0 of workgroup 0 reads it, and invocation 63 \
         of workgroup 0 writes it at source:5:1, with nothing between that orders the two (128 times)"
    );
}

#[test]
fn a_barrier_that_comes_too_early_is_a_race_of_the_next_round() {
    let body = |barrier: &str| {
        format!(
            "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\nlet mut sum = 0u32;\nfor i in 0..3 {{\npart[l] = x[l] + i;\nbarrier();\nsum += part[63 - l];\n{barrier}\n}}\ny[global_index()] = sum;"
        )
    };
    let Finding::Race { first, second, .. } = one("x: &[u32], y: &mut [u32]", &body("")) else { panic!("no race") };
    assert!(second.writes && !first.writes, "the write of the second round meets the read of the first");
    nothing("x: &[u32], y: &mut [u32]", &body("barrier();"));
}

#[test]
fn two_invocations_that_write_one_element_race_even_with_one_value() {
    let Finding::Race { element, first, second, .. } = one("y: &mut [u32]", "y[group_index()] = 7;") else {
        panic!("no race")
    };
    assert_eq!((element, first.writes, second.writes), (0, true, true));
    nothing("y: &mut [u32]", "if local_index() == 0 { y[group_index()] = 7; }");
}

#[test]
fn workgroups_race_on_buffers_and_no_barrier_helps() {
    let body = "if local_index() == 0 { y[group_index()] = 1; }\nbarrier();\nif local_index() == 1 { y[64] = y[0]; }";
    let all = found("y: &mut [u32]", body);
    // The second workgroup reads what the first wrote, and both write element 64.
    assert_eq!(all.len(), 2, "{all:?}");
    for finding in &all {
        let Finding::Race { first, second, memory, .. } = finding else { panic!("{finding}") };
        assert_eq!(memory.kind, MemoryKind::Buffer);
        assert_eq!((first.invocation.workgroup[0], second.invocation.workgroup[0]), (0, 1));
    }
    // Within a workgroup a barrier orders accesses of buffers too.
    nothing(
        "y: &mut [u32]",
        "y[global_index()] = 1;\nbarrier();\nlet v = y[global_index() ^ 1];\nbarrier();\ny[global_index()] = v;",
    );
}

#[test]
fn a_write_after_a_read_of_another_workgroup_races_in_any_order() {
    let module =
        kernel("workgroup(64)", "y: &mut [u32]", "let v = y[(global_index() + 64) % 128];\ny[global_index()] = v;");
    for order in [Order::Ascending, Order::Descending, Order::Shuffled(3)] {
        let options = Options { order, ..Options::default() };
        let (report, _) = run(&module, &options, &[128], &[], 2);
        assert!(matches!(report.findings[0].finding, Finding::Race { .. }), "{report}");
    }
}

#[test]
fn atomics_do_not_race() {
    nothing("x: &[u32], n: &[Atomic<u32>]", "n[(x[global_index()] % 4) as usize].add(1);");
    nothing(
        "y: &mut [u32]",
        "let n = workgroup_array::<Atomic<u32>>(1);\nif local_index() == 0 { n[0].store(0); }\nbarrier();\nn[0].add(1);\nbarrier();\nif local_index() == 0 { y[group_index()] = n[0].load(); }",
    );
}

#[test]
fn an_atomic_that_is_not_set_before_a_barrier_is_not_set() {
    let body = |barrier: &str| {
        format!(
            "let n = workgroup_array::<Atomic<u32>>(1);\nif local_index() == 0 {{ n[0].store(0); }}\n{barrier}\nn[0].add(1);\nbarrier();\nif local_index() == 0 {{ y[group_index()] = n[0].load(); }}"
        )
    };
    let Finding::Uninitialised { memory, access, .. } = one("y: &mut [u32]", &body("")) else { panic!("it is set") };
    assert_eq!((memory.name.as_str(), access.invocation.local), ("n", [1, 0, 0]));
    nothing("y: &mut [u32]", &body("barrier();"));
}

#[test]
fn what_is_released_and_acquired_is_no_race() {
    // The last workgroup to arrive adds up what all wrote.
    let body = |add: &str| {
        format!(
            "let mut last = workgroup_array::<u32>(1);\nlet l = local_index();\nif l == 0 {{\ny[group_index()] = 5;\nlet arrived = n[0].{add}(1);\nlast[0] = arrived;\n}}\nbarrier();\nif last[0] == 1 && l == 0 {{\ny[100] = y[0] + y[1];\n}}"
        )
    };
    let check = |add: &str| {
        let module = kernel("workgroup(64), targets(spirv, cuda, cpu)", "y: &mut [u32], n: &[Atomic<u32>]", &body(add));
        let program = Program::new(&module, &Instance::default(), &[]).unwrap();
        let mut buffers = vec![vec![0; 512], vec![0; 4]];
        let params = block(&program, &[128, 1], &[], 2);
        program.run(&Options::default(), &mut buffers, &params, [2, 1, 1]).unwrap()
    };
    let ordered = check("add_acq_rel");
    assert!(ordered.is_clean(), "{ordered}");
    // A workgroup's own scope does not hold the other.
    for unordered in ["add", "workgroup().add_acq_rel"] {
        let found = check(unordered);
        assert!(matches!(found.findings[0].finding, Finding::Race { .. }), "{unordered}: {found}");
    }
}

#[test]
fn whoever_learns_of_one_learns_of_those_before_it() {
    // The last of sixteen takes a second ticket, and the last of those adds up what all wrote.
    let body = "let mut part = workgroup_array::<u32>(64);\nlet tickets = workgroup_array::<Atomic<u32>>(5);\nlet i = local_index();\n\
                if i < 5 {\ntickets[i].store(0);\n}\nbarrier();\npart[i] = x[i];\n\
                if tickets[i / 16].add_acq_rel(1) == 15 {\nif tickets[4].add_acq_rel(1) == 3 {\nlet mut sum = 0;\nfor k in 0..64 {\nsum += part[k];\n}\ny[0] = sum;\n}\n}";
    let module = kernel("workgroup(64), targets(spirv, cuda, cpu)", "x: &[u32], y: &mut [u32]", body);
    let program = Program::new(&module, &Instance::default(), &[]).unwrap();
    let mut buffers = vec![[1, 0, 0, 0].repeat(64), vec![0; 4]];
    let params = block(&program, &[64, 1], &[], 1);
    let found = program.run(&Options::default(), &mut buffers, &params, [1, 1, 1]).unwrap();
    assert!(found.is_clean(), "{found}");
    assert_eq!(buffers[1], [64, 0, 0, 0]);
}

#[test]
fn accesses_past_the_end_are_told_of_unless_they_are_allowed() {
    let signature = "x: &[u32], y: &mut [u32]";
    let Finding::PastEnd { memory, index, length, access } =
        one(signature, "y[global_index()] = x[global_index() + 1];")
    else {
        panic!("nothing past the end")
    };
    assert_eq!((memory.name.as_str(), index, length, access.writes), ("x", 128, 128, false));
    assert_eq!((access.invocation.workgroup, access.invocation.local), ([1, 0, 0], [63, 0, 0]));
    let Finding::PastEnd { memory, access, .. } = one(signature, "y[global_index() * 2] = x[global_index()];") else {
        panic!("nothing past the end")
    };
    assert!(memory.name == "y" && access.writes);
    let allowed = Options { reads_past_end: false, writes_past_end: false, ..Options::default() };
    assert!(found_with(&allowed, signature, "y[global_index() * 2] = x[global_index() + 1];").is_empty());
    nothing(signature, "if global_index() + 1 < x.len() { y[global_index()] = x[global_index() + 1]; }");
    // Only what is chosen is read.
    nothing(signature, "y[global_index()] = if global_index() + 1 < x.len() { x[global_index() + 1] } else { 0 };");
    let Finding::PastEnd { memory, .. } =
        one(signature, "let mut t = [0u32; 4];\nt[global_index() % 5] = x[0];\ny[global_index()] = t[0];")
    else {
        panic!("nothing past the end")
    };
    assert_eq!((memory.kind, memory.name.as_str()), (MemoryKind::Private, "t"));
}

#[test]
fn workgroup_memory_that_nobody_wrote_is_told_of_in_each_workgroup() {
    let body = |first: &str| {
        format!(
            "let mut part = workgroup_array::<u32>(65);\nlet l = local_index();\n{first}\npart[l] = x[l];\nbarrier();\ny[global_index()] = part[l + 1];"
        )
    };
    let Finding::Uninitialised { memory, element, access } = one("x: &[u32], y: &mut [u32]", &body("")) else {
        panic!("everything is written")
    };
    assert_eq!((memory.name.as_str(), element, access.invocation.local), ("part", 64, [63, 0, 0]));
    nothing("x: &[u32], y: &mut [u32]", &body("if l == 0 { part[64] = 0; }"));
    // What the workgroup before left there is nobody's.
    let module =
        kernel("workgroup(64)", "x: &[u32], y: &mut [u32]", &body("if l == 0 && group_index() == 0 { part[64] = 0; }"));
    let (report, _) = run(&module, &Options::default(), &[128, 128], &[], 2);
    let Finding::Uninitialised { access, .. } = &report.findings[0].finding else { panic!("{report}") };
    assert_eq!(access.invocation.workgroup, [1, 0, 0]);
}

#[test]
fn divisions_by_zero_overflow_and_nan_are_told_of_as_asked() {
    let signature = "x: &[u32], y: &mut [u32]";
    let Finding::DivisionByZero { operation, invocation, at } =
        one(signature, "y[global_index()] = 5 / x[global_index()];")
    else {
        panic!("no division by zero")
    };
    assert_eq!((operation.as_str(), invocation.local), ("5 / 0", [0; 3]));
    assert!(at.contains(":3:"), "{at}");
    let all = Options { overflow: true, not_a_number: true, ..Options::default() };
    nothing(signature, "y[global_index()] = x[global_index()] - 1;");
    let found = found_with(&all, signature, "y[global_index()] = x[global_index()] - 1;");
    let [Finding::Overflow { operation, ty, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((operation.as_str(), *ty), ("0 - 1", "u32"));
    assert!(found_with(&all, signature, "y[global_index()] = x[global_index()].wrapping_sub(1);").is_empty());
    let body = "let v = x[global_index()] as f32;\ny[global_index()] = (v / v) as u32;";
    nothing(signature, body);
    let found = found_with(&all, signature, body);
    let [Finding::NotANumber { operation, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(operation, "0.0 / 0.0");
    let found = found_with(&all, signature, "y[global_index()] = sqrt(0.0 - 1.0 - x[global_index()] as f32) as u32;");
    let [Finding::NotANumber { operation, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(operation, "sqrt(-1.0)");
}

#[test]
fn functions_of_integers_divide_by_zero_and_overflow_too() {
    let signature = "x: &[u32], y: &mut [u32]";
    let Finding::DivisionByZero { operation, invocation, .. } =
        one(signature, "y[global_index()] = rem_euclid(x[global_index()] + 5, x[global_index()]);")
    else {
        panic!("no division by zero")
    };
    assert_eq!((operation.as_str(), invocation.local, invocation.workgroup), ("rem_euclid(5, 0)", [0; 3], [0; 3]));
    nothing(signature, "y[global_index()] = rem_euclid(x[global_index()], x[global_index()] + 1);");
    let all = Options { overflow: true, ..Options::default() };
    let body = "y[global_index()] = abs(x[global_index()] as i32 - 2147483647 - 1) as u32;";
    nothing(signature, body);
    let found = found_with(&all, signature, body);
    let [Finding::Overflow { operation, ty, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((operation.as_str(), *ty), ("abs(-2147483648)", "i32"));
}

#[test]
fn a_read_of_what_nobody_wrote_races_with_a_write_beside_it() {
    let body = "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\nlet v = part[63 - l];\npart[l] = x[l];\ny[global_index()] = v;";
    let options = Options { uninitialised: false, ..Options::default() };
    let found = found_with(&options, "x: &[u32], y: &mut [u32]", body);
    let [Finding::Race { memory, first, second, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!((memory.name.as_str(), first.writes, second.writes), ("part", false, true));
}

#[test]
fn a_barrier_that_some_miss_is_told_of() {
    let body = "if local_index() < 7 {\ny[global_index()] = 1;\n}\nbarrier();";
    let program = Program::new(&kernel("workgroup(64)", "y: &mut [u32]", body), &Instance::default(), &[]).unwrap();
    // The verifier refuses such kernels, so one is made behind its back.
    let mut verified = program.verified().clone();
    let entry = &mut verified.module.entry;
    let barrier = entry.body.pop().unwrap();
    let Some(last) = entry.body.last_mut() else { panic!("no statement") };
    let trefoil_codegen::ir::StatementKind::If { accept, .. } = &mut last.kind else { panic!("no branch") };
    accept.push(barrier);
    let program = Program::of_verified(verified).unwrap();
    let params = block(&program, &[128], &[], 2);
    let report = program.run(&Options::default(), &mut [vec![0; 512]], &params, [2, 1, 1]).unwrap();
    let Finding::Divergent { operation, arrived, of, missing, .. } = &report.findings[0].finding else {
        panic!("{report}")
    };
    assert_eq!((operation.as_str(), *arrived, *of, missing.local), ("barrier", 7, 64, [7, 0, 0]));
}

#[test]
fn a_loop_that_does_not_end_is_given_up() {
    let options = Options { most_rounds: 1000, ..Options::default() };
    let module = kernel("workgroup(64)", "y: &mut [u32]", "let mut i = 1u32;\nwhile i > 0 {\ni |= 1;\n}\ny[0] = i;");
    let (report, _) = run(&module, &options, &[128], &[], 1);
    assert!(report.stopped);
    let Finding::Endless { rounds, at, .. } = &report.findings[0].finding else { panic!("{report}") };
    assert_eq!(*rounds, 1000);
    assert!(at.contains(":4:"), "{at}");
}

#[test]
fn a_copy_is_not_there_before_it_was_waited_for() {
    let body = |wait: &str| {
        format!(
            "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\ncopy_async(&mut part, l, x, global_index(), 1);\nasync_commit();\n{wait}\nbarrier();\ny[global_index()] = part[63 - l];"
        )
    };
    let signature = "x: &[u32], y: &mut [u32]";
    nothing(signature, &body("async_wait(0);"));
    let Finding::CopyUnderWay { memory, copy, access, .. } = one(signature, &body("")) else { panic!("it is there") };
    assert_eq!((memory.name.as_str(), copy.invocation.local, access.invocation.local), ("part", [63, 0, 0], [0; 3]));
    assert!(matches!(one(signature, &body("async_wait(1);")), Finding::CopyUnderWay { .. }));
    // Waited for, but not by all.
    let late = "let mut part = workgroup_array::<u32>(64);\nlet l = local_index();\ncopy_async(&mut part, l, x, global_index(), 1);\nasync_commit();\nasync_wait(0);\ny[global_index()] = part[63 - l];";
    assert!(matches!(one(signature, late), Finding::Race { .. }));
}

#[test]
fn what_a_copy_reads_is_not_to_change_before_it_was_waited_for() {
    let body = |before: &str, behind: &str| {
        format!(
            "let mut t = workgroup_array::<u32>(64);\nlet l = local_index();\ncopy_async(&mut t, l, x, global_index(), 1);\nasync_commit();\n{before}\nasync_wait(0);\n{behind}\nbarrier();\ny[global_index()] = t[63 - l];"
        )
    };
    let signature = "x: &mut [u32], y: &mut [u32]";
    let own = "x[global_index()] = 0;";
    // Neither that the invocation itself changes it nor a barrier helps.
    for change in [own, "barrier();\nx[global_index() ^ 1] = 0;"] {
        let finding = one(signature, &body(change, ""));
        let Finding::CopyUnderWay { memory, access, copy, .. } = &finding else { panic!("{finding}") };
        assert_eq!((memory.name.as_str(), access.writes, copy.writes), ("x", true, false));
        assert!(finding.to_string().contains("of buffer `x` while a copy from it is under way"), "{finding}");
    }
    nothing(signature, &body("", own));
    // The copy of another may go on until that has waited.
    let others = "x[global_index() ^ 1] = 0;";
    assert!(matches!(one(signature, &body("barrier();", others)), Finding::Race { .. }));
    nothing(signature, &body("barrier();", &format!("barrier();\n{others}")));
}

#[test]
fn the_elements_of_a_copy_wrap_as_indices_do() {
    let module = kernel(
        "workgroup(64)",
        "x: &[u32], y: &mut [u32]",
        "let mut t = workgroup_array::<u32>(256);\nlet l = local_index();\ncopy_async(&mut t, 4 * l, x, global_index().wrapping_sub(2), 4);\nasync_commit();\nasync_wait(0);\nbarrier();\ny[global_index()] = t[4 * l] * 1000 + t[4 * l + 3];",
    );
    let (report, buffers) = run(&module, &Options::default(), &[64, 64], &[], 1);
    assert!(report.is_clean(), "{report}");
    // The first two are past the end, and the fourth is x[1].
    assert_eq!(buffers[1][..4], [1, 2, 3, 1004]);
}

#[test]
fn subgroups_are_as_large_as_asked() {
    let module = kernel(
        "workgroup(64), requires(Subgroups)",
        "x: &[u32], y: &mut [u32]",
        "let s = subgroup_add(x[global_index()]);\ny[global_index()] = s * 100 + subgroup_lane() as u32;",
    );
    for size in [4u32, 8, 32, 64] {
        let options = Options { subgroup_size: size, ..Options::default() };
        let (report, buffers) = run(&module, &options, &[128, 128], &[], 2);
        assert!(report.is_clean(), "{report}");
        for (i, word) in (0u32..).zip(&buffers[1]) {
            let first = i / size * size;
            assert_eq!(*word, (first..first + size).sum::<u32>() * 100 + i % size);
        }
    }
    // A kernel that relies on subgroups of 32, and nothing else, races in smaller ones.
    let module = kernel(
        "workgroup(64), requires(Subgroups)",
        "x: &[u32], y: &mut [u32]",
        "let s = subgroup_add(x[global_index()]);\nif local_index() % 32 == subgroup_lane() { y[global_index() / 32] = s; }",
    );
    let small = Options { subgroup_size: 4, ..Options::default() };
    let (report, _) = run(&module, &small, &[128, 128], &[], 2);
    assert!(matches!(report.findings[0].finding, Finding::Race { .. }), "{report}");
}

#[test]
fn a_target_has_subgroups_or_not() {
    let body =
        "if const { target::has(Feature::Subgroups) } { y[global_index()] = 1; } else { y[global_index()] = 2; }";
    let module = kernel("workgroup(64)", "y: &mut [u32]", body);
    for (has_subgroups, wanted) in [(true, 1), (false, 2)] {
        let options = Options { has_subgroups, ..Options::default() };
        let (report, buffers) = run(&module, &options, &[128], &[], 2);
        assert!(report.is_clean(), "{report}");
        assert_eq!(buffers[0], [wanted; 128]);
    }
}

#[test]
fn what_one_operation_on_matrices_writes_another_of_its_subgroup_finds_behind_a_barrier() {
    let check = |signature: &str, body: &str| {
        let module = kernel(
            "workgroup(32), subgroup(32), requires(CooperativeMatrices), targets(spirv, cuda, cpu)",
            signature,
            body,
        );
        run(&module, &Options::default(), &vec![256; module.bindings.len()], &[], 1).0
    };
    let body = |stored: &str, between: &str, read: &str| {
        format!("let mut tile = workgroup_array::<f32>(256);\n{stored}\n{between}\n{read}")
    };
    // Which invocation holds which element is the device's affair, so that nothing but a barrier orders a store before a load.
    let store = "Accumulator::<f32, 16, 16>::fill(2.0).store(&mut tile, 0, 16);";
    let load = "Accumulator::<f32, 16, 16>::load(&tile, 0, 16).store(y, 0, 16);";
    // One row after the other, so that the first invocation itself reads what it wrote.
    let own = "for i in 0..16 { if local_index() < 16 { y[local_index() + i * 16] = tile[local_index() + i * 16]; } }";
    let fill = "for i in 0..256 { if local_index() == 0 { tile[i] = 1.0; } }";
    for (first, second) in [(store, load), (store, own), (fill, load), (store, store)] {
        let report = check("y: &mut [f32]", &body(first, "", second));
        let Some(Finding::Race { memory, first, second, .. }) = report.findings.first().map(|found| &found.finding)
        else {
            panic!("no race: {report}");
        };
        assert_eq!(memory.name, "tile");
        assert!(first.at.contains(":4:") && second.at.contains(":6:"), "{report}");
    }
    for (first, second) in [(store, load), (store, own), (fill, load), (store, store)] {
        let report = check("y: &mut [f32]", &body(first, "barrier();", second));
        assert!(report.is_clean(), "{report}");
    }
    // A matrix is stored where it was loaded: what is stored was made of what was loaded.
    let report = check("y: &mut [f32]", "let sum = Accumulator::<f32, 16, 16>::load(y, 0, 16);\nsum.store(y, 0, 16);");
    assert!(report.is_clean(), "{report}");
}

#[test]
fn findings_are_counted_and_end_a_run() {
    let body = "y[0] = 1;\ny[1] = 1;\ny[2] = 1;";
    let module = kernel("workgroup(64)", "y: &mut [u32]", body);
    let (report, _) = run(&module, &Options::default(), &[128], &[], 1);
    assert_eq!((report.findings.len(), report.findings[0].times, report.stopped), (3, 63, false));
    let options = Options { most_findings: 2, ..Options::default() };
    let (report, _) = run(&module, &options, &[128], &[], 1);
    assert_eq!((report.findings.len(), report.stopped), (2, true));
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let module = kernel("workgroup(64)", "y: &mut [u32]", "if global_index() < y.len() { y[global_index()] = 1; }");
    let program = Program::new(&module, &Instance::default(), &[]).unwrap();
    let params = block(&program, &[128], &[], 1);
    let refused = |buffers: &mut [Vec<u8>], params: &[u8], options: Options| -> CheckError {
        program.run(&options, buffers, params, [1, 1, 1]).unwrap_err()
    };
    let mut fitting = [vec![0; 512]];
    let error = refused(&mut [], &params, Options::default());
    assert_eq!(error.to_string(), "kernel `k` cannot be checked: 0 buffers given, 1 expected");
    assert!(refused(&mut fitting, &[], Options::default()).reason.contains("a parameter block of 0 bytes"));
    assert!(refused(&mut [vec![0; 511]], &params, Options::default()).reason.contains("`y` has 128 elements"));
    let odd = Options { subgroup_size: 12, ..Options::default() };
    assert!(refused(&mut fitting, &params, odd).reason.contains("subgroups of 12"));
}

#[test]
fn a_place_is_told_of_with_its_file() {
    let mut locations = Locations { file: "src/kernel.rs".to_owned(), ..Locations::default() };
    let places = [
        ("src/kernel.rs", 3),
        ("src/kernel.rs", 4),
        ("src/helper.rs", 9),
        ("src/other.rs", 1),
        ("src/helper.rs", 8),
        ("src/kernel.rs", 5),
    ];
    let spans: Vec<Span> = places.iter().map(|(file, line)| locations.add(file, *line, 7)).collect();
    for ((file, line), span) in places.iter().zip(spans) {
        assert_eq!(locations.position(span), Some((*file, *line, 7)));
        assert_eq!(locations.describe(span), format!("{file}:{line}:7"));
    }
    assert_eq!(locations.others, ["src/helper.rs", "src/other.rs"]);
    assert_eq!(locations.describe(Span::NONE), "src/kernel.rs");
}

#[test]
fn work_is_what_all_invocations_compute() {
    let work = |body: &str, groups: u32| {
        let module = kernel("workgroup(64)", "x: &[u32], y: &mut [u32]", body);
        run(&module, &Options::default(), &[256, 256], &[], groups).0.work
    };
    let copy = "y[global_index()] = x[global_index()];";
    // A statement, a read and two indices at least.
    assert!(work(copy, 1) >= 4 * 64, "{}", work(copy, 1));
    assert_eq!(work(copy, 4), 4 * work(copy, 1));
    let rounds = |count: u32| work(&format!("for i in 0..{count} {{ y[global_index()] = i; }}"), 1);
    assert!(rounds(5) > rounds(4), "{} and {}", rounds(5), rounds(4));
    assert_eq!(rounds(9) - rounds(5), 4 * (rounds(5) - rounds(4)));
}

/// The tiled product that a checker must be fast at.
const TILED: &str = "let mut left = workgroup_array::<f32>(256);
let mut right = workgroup_array::<f32>(256);
let row = group_id().y * 16 + local_id().y;
let column = group_id().x * 16 + local_id().x;
let at = local_id().y * 16 + local_id().x;
let mut total = 0.0;
for t in (0..n).step_by(16) {
left[at] = a[row * n + t + local_id().x];
right[at] = b[(t + local_id().y) * n + column];
barrier();
for i in 0..16 {
total += left[local_id().y * 16 + i] * right[i * 16 + local_id().x];
}
barrier();
}
c[row * n + column] = total;";

#[test]
fn a_tiled_product_is_checked_and_right() {
    // In a release build the size is that of the promise, which is a second.
    let n: u32 = if cfg!(debug_assertions) { 48 } else { 256 };
    let module = kernel("workgroup(16, 16)", "a: &[f32], b: &[f32], c: &mut [f32], n: usize", TILED);
    let program = Program::new(&module, &Instance::default(), &[]).unwrap();
    let numbers = |seed: u32| -> Vec<f32> { (0..n * n).map(|i| ((i * seed) % 7) as f32 - 3.0).collect() };
    let (a, b) = (numbers(5), numbers(3));
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut buffers = [bytes(&a), bytes(&b), vec![0; (4 * n * n) as usize]];
    let params = block(&program, &[n * n; 3], &[n], 1);
    let start = std::time::Instant::now();
    let report = program.run(&Options::default(), &mut buffers, &params, [n / 16, n / 16, 1]).unwrap();
    let took = start.elapsed();
    println!("{n} x {n} x {n}: {} words, {took:?}", report.work);
    assert!(report.is_clean(), "{report}");
    for (index, found) in buffers[2].chunks(4).enumerate().step_by(37) {
        let (row, column) = (index / n as usize, index % n as usize);
        let wanted: f32 = (0..n as usize).map(|k| a[row * n as usize + k] * b[k * n as usize + column]).sum();
        assert_eq!(f32::from_le_bytes(found.try_into().unwrap()), wanted);
    }
}

/// A launch that somebody kept may say anything of a constant.
#[test]
fn a_constant_out_of_its_range_takes_no_memory() {
    let attribute = "workgroup(8), specialise(N: usize = 2, in 1..=9)";
    let body = "let mut shared = workgroup_array::<u32>(N); shared[0] = 1; barrier(); y[local_index()] = shared[0];";
    let program = Program::new(&kernel(attribute, "y: &mut [u32]", body), &Instance::default(), &[]).unwrap();
    let params = vec![0x7f; block(&program, &[8], &[], 1).len()];
    let said = program.run(&Options::default(), &mut [vec![0; 32]], &params, [1, 1, 1]).unwrap_err();
    assert!(said.reason.contains("2139062143 elements"), "{}", said.reason);
}
