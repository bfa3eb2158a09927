//! Kernels on the CPU against references of their own: in the evaluator, and as compiled Rust. The latter is emitted for all kernels, compiled with
//! rustc as one program, and run by it.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod cases;
mod returns;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use trefoil_codegen::artefact::{CpuArguments, CpuBuffer, ParamRole, ParamTransport};
use trefoil_codegen::check::{self, Options, Order};
use trefoil_codegen::emit::cpu;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::interp::Program;
use trefoil_codegen::ir::{IndexWidth, Instance, instantiate};
use trefoil_codegen::layout;
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::Target;
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::{Verified, verify};

use self::cases::cases;

/// A launch, and what it should leave in its buffers.
struct Case {
    kernel: &'static str,
    /// Words of each buffer, and its elements.
    buffers: Vec<(Vec<u32>, u32)>,
    params: Vec<u32>,
    groups: [u32; 3],
    expected: Vec<(usize, Vec<u32>)>,
    /// Relative error allowed; words are compared as bits if it is 0.
    tolerance: f64,
}

/// Every instance, with indices of that width.
fn kernels(source: &str, index: IndexWidth) -> Vec<Verified> {
    let outputs = parse_source(source)
        .unwrap_or_else(|errors| panic!("{:?}", errors.0.iter().map(|error| &error.message).collect::<Vec<_>>()));
    let mut all = Vec::new();
    for output in outputs {
        for instance in &output.instances {
            let instance = Instance { index, ..instance.clone() };
            let mut module = instantiate(&output.module, &instance).unwrap();
            module.targets = vec![Target::Cpu];
            all.push(verify(module).unwrap());
        }
    }
    all
}

/// The position of a case's kernel.
fn position(kernels: &[Verified], case: &Case) -> usize {
    let name = |kernel: &Verified| kernel.module.name.trim_end_matches("_index64").to_owned();
    kernels.iter().position(|kernel| name(kernel) == case.kernel).unwrap()
}

/// Numbers that take two words have an upper one of zero.
fn block(verified: &Verified, case: &Case) -> Vec<u8> {
    let params = layout::params(&verified.module, verified.info.grid).unwrap();
    let mut bytes = vec![0; params.size as usize];
    let mut user = case.params.iter();
    for field in params.fields.iter() {
        let word = match field.role {
            ParamRole::User(_) => *user.next().unwrap(),
            ParamRole::Length(binding) => case.buffers[binding as usize].1,
            ParamRole::GroupCount => case.groups.iter().product(),
            _ => 0,
        };
        bytes[field.offset as usize..field.offset as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Buffers with room behind that must stay as it is.
const GUARD: u32 = 0xdead_beef;

fn guarded(case: &Case) -> Vec<Vec<u32>> {
    case.buffers.iter().map(|(words, _)| words.iter().copied().chain([GUARD; 8]).collect()).collect()
}

fn compare(engine: &str, case: &Case, found: &[Vec<u32>]) {
    for (buffer, words) in found.iter().enumerate() {
        let (body, guard) = words.split_at(words.len() - 8);
        assert!(guard.iter().all(|word| *word == GUARD), "{engine}: `{}` wrote past buffer {buffer}", case.kernel);
        let Some((_, expected)) = case.expected.iter().find(|(index, _)| *index == buffer) else {
            assert_eq!(body, case.buffers[buffer].0, "{engine}: `{}` changed buffer {buffer}", case.kernel);
            continue;
        };
        for (i, (found, expected)) in body.iter().zip(expected).enumerate() {
            let (f, e) = (f64::from(f32::from_bits(*found)), f64::from(f32::from_bits(*expected)));
            let close =
                found == expected || (case.tolerance > 0.0 && (f - e).abs() <= case.tolerance * e.abs().max(1.0e-3));
            assert!(
                close,
                "{engine}: `{}` buffer {buffer} element {i}: {found:#x} ({f}), expected {expected:#x} ({e})",
                case.kernel
            );
        }
    }
}

fn evaluate(verified: &Verified, case: &Case) -> Vec<Vec<u32>> {
    let program = Program::new(verified).unwrap();
    let params = block(verified, case);
    let mut memory = guarded(case);
    let buffers: Vec<CpuBuffer> = memory
        .iter_mut()
        .map(|words| CpuBuffer { pointer: words.as_mut_ptr().cast(), bytes: words.len() * 4 - 32 })
        .collect();
    let arguments = CpuArguments { buffers: &buffers, params: &params, groups: case.groups, subgroup_size: 8 };
    let total: u64 = case.groups.iter().map(|count| u64::from(*count)).product();
    // SAFETY: buffers are as long as the lengths say, and the block is the kernel's.
    unsafe {
        // In two pieces, as threads would.
        program.run(&arguments, 0..total / 2);
        program.run(&arguments, total / 2..total);
    }
    memory
}

/// The checker's results, in subgroups of 8 as the others have them. What has a meaning and is not asked for is left out of what it looks for.
fn checked(verified: &Verified, case: &Case, order: Order) -> Vec<Vec<u32>> {
    let program = check::Program::of_verified(verified.clone()).unwrap();
    let mut memory: Vec<Vec<u8>> =
        guarded(case).iter().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect()).collect();
    let options = Options {
        reads_past_end: false,
        writes_past_end: false,
        division_by_zero: false,
        subgroup_size: 8,
        order,
        ..Options::default()
    };
    let report = program.run(&options, &mut memory, &block(verified, case), case.groups).unwrap();
    assert!(report.is_clean(), "{report}");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    memory.iter().map(|bytes| bytes.chunks(4).map(word).collect()).collect()
}

/// The program that runs compiled kernels: it reads launches from standard input and writes buffers to standard output.
const RUNNER: &str = r#"
mod artefact {
    pub use crate::share::ShareStep;
    pub use crate::vectors::Vectors;
    #[allow(dead_code)] pub struct CpuFunction { pub entry: unsafe fn(&CpuArguments<'_>, u64, u64), pub share: &'static [ShareStep] }
    #[allow(dead_code)] pub struct CpuArguments<'a> { pub buffers: &'a [CpuBuffer], pub params: &'a [u8], pub groups: [u32; 3], pub subgroup_size: u32 }
    #[allow(dead_code)] pub struct CpuBuffer { pub pointer: *mut u8, pub bytes: usize }
}
fn main() {
    use std::io::{Read, Write};
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let words: Vec<u32> = input.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let mut at = 0;
    let mut next = || { at += 1; words[at - 1] };
    let mut out = std::io::stdout().lock();
    let cases = next();
    for _ in 0..cases {
        let kernel = &KERNELS[next() as usize];
        let groups = [next(), next(), next()];
        let count = next();
        let params: Vec<u8> = (0..count).flat_map(|_| next().to_le_bytes()).collect();
        let mut memory: Vec<Vec<u32>> = (0..next()).map(|_| (0..next()).map(|_| next()).collect()).collect();
        let buffers: Vec<artefact::CpuBuffer> = memory.iter_mut().map(|m| artefact::CpuBuffer { pointer: m.as_mut_ptr().cast(), bytes: m.len() * 4 - 32 }).collect();
        let arguments = artefact::CpuArguments { buffers: &buffers, params: &params, groups, subgroup_size: 8 };
        let total: u64 = groups.iter().map(|g| *g as u64).product();
        unsafe { (kernel.entry)(&arguments, 0, total / 2); (kernel.entry)(&arguments, total / 2, total); }
        if std::env::args().len() > 1 {
            let start = std::time::Instant::now();
            for _ in 0..5 { unsafe { (kernel.entry)(&arguments, 0, total) }; }
            eprintln!("compiled: {:?} a run", start.elapsed() / 5);
        }
        for m in memory { for w in m { out.write_all(&w.to_le_bytes()).unwrap(); } }
    }
}
"#;

fn compile(name: &str, verified: &[Verified]) -> PathBuf {
    let (vectors, share) = (include_str!("../../src/vectors.rs"), include_str!("../../src/share.rs"));
    let mut source = format!("{RUNNER}mod vectors {{ {vectors} }}\n#[allow(dead_code)]\nmod share {{ {share} }}\n");
    let mut list = String::new();
    for kernel in verified {
        let (profile, _) = variants(kernel).remove(0);
        let lowered = lower(kernel, &profile, ParamTransport::Value).unwrap();
        let function = cpu::emit(&lowered, "crate::artefact").unwrap();
        list.push_str(&format!("{function},\n"));
        if std::env::var_os("TREFOIL_PRINT").is_some() {
            println!("// {}\n{}", lowered.module.name, cpu::text(&lowered).unwrap());
        }
    }
    source.push_str(&format!("static KERNELS: [artefact::CpuFunction; {}] = [{list}];\n", verified.len()));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.rs"));
    let program = folder.join(name);
    std::fs::write(&file, source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "-C", "opt-level=3", "-D", "warnings", "-o"])
        .arg(&program)
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run_compiled(program: &PathBuf, verified: &[Verified], cases: &[Case], timed: bool) -> Vec<Vec<Vec<u32>>> {
    let mut input: Vec<u32> = vec![cases.len() as u32];
    for case in cases {
        let index = position(verified, case);
        input.push(index as u32);
        input.extend(case.groups);
        let params = block(&verified[index], case);
        input.push(params.len() as u32 / 4);
        input.extend(params.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())));
        let memory = guarded(case);
        input.push(memory.len() as u32);
        for words in memory {
            input.push(words.len() as u32);
            input.extend(words);
        }
    }
    let mut command = Command::new(program);
    if timed {
        command.arg("time");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    let mut words = bytes.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    cases
        .iter()
        .map(|case| guarded(case).iter().map(|buffer| words.by_ref().take(buffer.len()).collect()).collect())
        .collect()
}

#[test]
fn the_evaluator_gives_what_references_give() {
    for index in IndexWidth::ALL {
        let kernels = kernels(include_str!("../kernels/cpu.rs"), index);
        for case in cases() {
            compare("evaluator", &case, &evaluate(&kernels[position(&kernels, &case)], &case));
        }
    }
}

#[test]
fn the_checker_gives_what_references_give_in_any_order_and_finds_nothing() {
    for index in IndexWidth::ALL {
        let kernels = kernels(include_str!("../kernels/cpu.rs"), index);
        for case in cases() {
            for order in [Order::Ascending, Order::Descending, Order::Shuffled(7)] {
                compare("checker", &case, &checked(&kernels[position(&kernels, &case)], &case, order));
            }
        }
    }
}

#[test]
fn compiled_kernels_give_what_references_give() {
    for index in IndexWidth::ALL {
        let kernels = kernels(include_str!("../kernels/cpu.rs"), index);
        let program = compile(&format!("cpu_kernels_{}", index.bits()), &kernels);
        let cases = cases();
        for (case, found) in cases.iter().zip(run_compiled(&program, &kernels, &cases, false)) {
            compare("compiled", case, &found);
        }
    }
}

#[test]
fn functions_that_a_workgroup_leaves_early_give_what_references_give() {
    for index in IndexWidth::ALL {
        let kernels = kernels(include_str!("../kernels/returns.rs"), index);
        let program = compile(&format!("cpu_returns_{}", index.bits()), &kernels);
        let cases = returns::cases();
        for (case, found) in cases.iter().zip(run_compiled(&program, &kernels, &cases, false)) {
            let verified = &kernels[position(&kernels, case)];
            compare("evaluator", case, &evaluate(verified, case));
            for order in [Order::Ascending, Order::Descending, Order::Shuffled(7)] {
                compare("checker", case, &checked(verified, case, order));
            }
            compare("compiled", case, &found);
        }
    }
}

/// A kernel for the CPU.
fn lowered(source: &str) -> Lowered {
    let verified = &kernels(source, IndexWidth::Bits32)[0];
    let (profile, _) = variants(verified).remove(0);
    lower(verified, &profile, ParamTransport::Value).unwrap()
}

/// The text of a kernel's function.
fn text(source: &str) -> String {
    cpu::text(&lowered(source)).unwrap()
}

#[test]
fn the_function_says_what_a_workgroup_has_to_itself() {
    for (statements, share) in [
        ("y[4 * global_index() + 1] = 1.0;", "&[a::ShareStep::Number(256)]"),
        (
            "let row = 2 * group_index(); for c in (local_index()..n).step_by(64) { y[row * n + c] = 1.0; }",
            "&[a::ShareStep::Word(0), a::ShareStep::Number(2), a::ShareStep::Multiply]",
        ),
        ("y[0] = 1.0;", "&[]"),
    ] {
        let source = format!("#[kernel(workgroup(64))] fn k(y: &mut [f32], n: usize) {{ {statements} }}");
        let function = cpu::emit(&lowered(&source), "a").unwrap();
        let end = format!("a::CpuFunction {{ entry: cpu::entry, share: {share} }}\n}}");
        assert!(function.ends_with(&end), "{share}: {function}");
    }
}

#[test]
fn structs_that_workgroups_share_are_moved_word_by_word() {
    let text = text(
        "#[device] struct S { a: u32, b: Vec3<f32> }
        #[kernel(workgroup(64))] fn k(x: &[u32], y: &mut [S]) { let s = y[x[0] as usize]; y[x[1] as usize] = s; }",
    );
    for moved in ["read_words::<Struct0>", "write_words::<Struct0>", "AtomicU32::from_ptr(at.cast::<u32>().add(i))"] {
        assert!(text.contains(moved), "{moved}: {text}");
    }
    assert!(!text.contains("AtomicU16"), "{text}");
}

/// What follows a branch that always returns lies in the other one.
#[test]
fn a_flag_says_that_a_function_has_returned_only_where_it_must() {
    for (statements, wanted) in [
        ("if n > 4 { return 1; } barrier();", false),
        ("if n > 4 { if n > 8 { return 1; } else { return 2; } } barrier();", false),
        ("barrier(); if n > 4 { if n > 8 { return 1; } } else { return 2; }", false),
        ("if n > 4 { if n > 8 { return 1; } } barrier();", true),
    ] {
        let text = text(&format!(
            "#[device] fn early(n: u32) -> u32 {{ {statements} 3 }}
            #[kernel(workgroup(64))] fn k(y: &mut [u32], n: u32) {{ let v = early(n); y[global_index()] = v; }}"
        ));
        assert_eq!(text.contains("early_returned"), wanted, "{statements}: {text}");
    }
}

#[test]
fn the_last_workgroup_whose_indices_fit_is_run() {
    let text = text("#[kernel(workgroup(64))] fn k(y: &mut [f32]) { y[global_index()] = 1.0; }");
    assert!(text.contains("if base > u32::MAX - 63u32 { break; }"), "{text}");
}

/// A row of the table of arithmetic: the types of operands and result, the expression of `a` and `b`, and operands (as bits) with what
/// comes out.
type Row = (&'static str, &'static str, &'static str, &'static [(u32, u32, u32)]);

const NAN: u32 = 0x7fc0_0000;
const MIN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const fn f(value: f32) -> u32 {
    value.to_bits()
}
const fn i(value: i32) -> u32 {
    value.cast_unsigned()
}

/// What the essay of the IR says, row by row; a result of [`NAN`] stands for any NaN.
const TABLE: &[Row] = &[
    ("u32", "u32", "a + b", &[(u32::MAX, 1, 0), (3, 4, 7)]),
    ("u32", "u32", "a - b", &[(0, 1, u32::MAX)]),
    ("u32", "u32", "a * b", &[(0x8000_0001, 2, 2)]),
    ("i32", "i32", "a + b", &[(0x7fff_ffff, 1, MIN)]),
    ("i32", "i32", "-a", &[(MIN, 0, MIN), (5, 0, i(-5))]),
    ("i32", "i32", "a.abs()", &[(MIN, 0, MIN), (i(-5), 0, 5)]),
    ("i32", "i32", "a / b", &[(i(-7), 2, i(-3)), (7, 0, 0), (MIN, i(-1), MIN), (MIN, 1, MIN), (i(-1), MIN, 0)]),
    ("i32", "i32", "a % b", &[(i(-7), 2, i(-1)), (7, i(-2), 1), (7, 0, 0), (MIN, i(-1), 0)]),
    (
        "u32",
        "u32",
        "a / b",
        &[(7, 2, 3), (7, 0, 0), (u32::MAX, 1, u32::MAX), (u32::MAX, u32::MAX, 1), (u32::MAX - 1, u32::MAX, 0)],
    ),
    ("u32", "u32", "a % b", &[(7, 4, 3), (7, 0, 0), (u32::MAX, 10, 5)]),
    ("u32", "u32", "a << b", &[(1, 31, MIN), (1, 32, 1), (1, 33, 2)]),
    ("u32", "u32", "a >> b", &[(MIN, 31, 1), (MIN, 32, MIN)]),
    ("i32", "i32", "a >> (b as u32)", &[(i(-8), 1, i(-4)), (i(-8), 33, i(-4))]),
    ("u32", "u32", "(a & b) | ((a ^ b) << 4)", &[(0b1100, 0b1010, 0b110_1000)]),
    ("u32", "u32", "!a", &[(0, 0, u32::MAX)]),
    ("f32", "f32", "a / b", &[(f(1.0), f(0.0), INFINITY), (f(0.0), f(0.0), NAN), (f(1.0), f(3.0), f(1.0 / 3.0))]),
    ("f32", "f32", "a % b", &[(f(-7.5), f(2.0), f(-1.5)), (f(7.5), f(-2.0), f(1.5)), (f(1.0), f(0.0), NAN)]),
    ("f32", "u32", "(a < b) as u32", &[(f(1.0), f(2.0), 1), (NAN, f(1.0), 0), (f(1.0), NAN, 0)]),
    ("f32", "u32", "(a >= b) as u32", &[(f(2.0), f(2.0), 1), (NAN, f(1.0), 0)]),
    ("f32", "u32", "(a == b) as u32", &[(f(0.0), f(-0.0), 1), (NAN, NAN, 0)]),
    ("f32", "u32", "(a != b) as u32", &[(f(0.0), f(-0.0), 0), (NAN, NAN, 1)]),
    (
        "f32",
        "f32",
        "min(a, b)",
        &[(NAN, f(1.0), f(1.0)), (f(1.0), NAN, f(1.0)), (f(1.0), f(-2.0), f(-2.0)), (NAN, NAN, NAN)],
    ),
    ("f32", "f32", "max(a, b)", &[(NAN, f(1.0), f(1.0)), (f(1.0), NAN, f(1.0)), (f(1.0), f(-2.0), f(1.0))]),
    (
        "f32",
        "f32",
        "clamp(a, b, 2.0)",
        &[
            (f(-3.0), f(-1.0), f(-1.0)),
            (f(5.0), f(-1.0), f(2.0)),
            (f(0.0), f(3.0), f(2.0)),
            (NAN, f(-1.0), NAN),
            (NAN, NAN, NAN),
            (f(-3.0), NAN, f(-3.0)),
            (f(5.0), NAN, f(2.0)),
        ],
    ),
    ("f32", "f32", "a.clamp(-1.0, b)", &[(NAN, f(1.0), NAN), (f(5.0), NAN, f(5.0)), (f(-5.0), NAN, f(-1.0))]),
    (
        "f32",
        "f32",
        "clamp(Vec2::new(a, b), Vec2::splat(-1.0), Vec2::splat(2.0)).y",
        &[(f(1.0), NAN, NAN), (NAN, f(5.0), f(2.0)), (NAN, f(-5.0), f(-1.0))],
    ),
    ("i32", "i32", "max(a, b)", &[(i(-1), 1, 1), (i(-1), i(-2), i(-1))]),
    ("u32", "u32", "min(a, b)", &[(u32::MAX, 1, 1)]),
    ("f32", "f32", "a.signum()", &[(f(-0.0), 0, f(-1.0)), (f(0.0), 0, f(1.0)), (f(3.0), 0, f(1.0)), (NAN, 0, NAN)]),
    ("i32", "i32", "a.signum()", &[(i(-9), 0, i(-1)), (0, 0, 0)]),
    ("f32", "f32", "floor(a)", &[(f(-1.5), 0, f(-2.0)), (f(1.0e20), 0, f(1.0e20))]),
    ("f32", "f32", "ceil(a)", &[(f(1.2), 0, f(2.0))]),
    ("f32", "f32", "trunc(a)", &[(f(-1.7), 0, f(-1.0))]),
    (
        "f32",
        "f32",
        "round_ties_even(a)",
        &[(f(0.5), 0, f(0.0)), (f(1.5), 0, f(2.0)), (f(-2.5), 0, f(-2.0)), (f(2.6), 0, f(3.0))],
    ),
    ("f32", "f32", "sqrt(a)", &[(f(2.0), 0, f(std::f32::consts::SQRT_2)), (f(-1.0), 0, NAN)]),
    ("f32", "i32", "a as i32", &[(f(-1.9), 0, i(-1)), (f(3.0e9), 0, 0x7fff_ffff), (f(-3.0e9), 0, MIN), (NAN, 0, 0)]),
    ("f32", "u32", "a as u32", &[(f(-1.0), 0, 0), (f(5.0e9), 0, u32::MAX), (f(3.0e9), 0, 3_000_000_000), (NAN, 0, 0)]),
    (
        "i32",
        "f32",
        "a as f32",
        &[(i(-3), 0, f(-3.0)), (16_777_217, 0, f(16_777_216.0)), (16_777_219, 0, f(16_777_220.0))],
    ),
    ("u32", "f32", "a as f32", &[(u32::MAX, 0, f(4_294_967_296.0))]),
    ("i32", "u32", "a as u32", &[(i(-1), 0, u32::MAX)]),
    ("u32", "f32", "(a < b) as u32 as f32", &[(1, 2, f(1.0)), (2, 1, f(0.0))]),
    (
        "f32",
        "f32",
        "f16::from_f32(a).to_f32()",
        &[
            (f(1.0), 0, f(1.0)),
            (f(65504.0), 0, f(65504.0)),
            (f(65519.9), 0, f(65504.0)),
            (f(65520.0), 0, INFINITY),
            (f(2049.0), 0, f(2048.0)),
            (f(2051.0), 0, f(2052.0)),
            (0x3380_0000, 0, 0x3380_0000),
            (0x3300_0000, 0, 0),
            (0x3300_0001, 0, 0x3380_0000),
            (f(-0.0), 0, f(-0.0)),
            (f(6.1e-5), 0, f(6.097_555e-5)),
            (f(-2.0e9), 0, 0xff80_0000),
            (NAN, 0, NAN),
        ],
    ),
    (
        "f32",
        "u32",
        "a.is_nan() as u32 + (a.is_infinite() as u32) * 2",
        &[(NAN, 0, 1), (INFINITY, 0, 2), (f(1.0), 0, 0), (0xffc0_0000, 0, 1)],
    ),
    (
        "u32",
        "u32",
        "a.count_ones() + a.leading_zeros() * 100 + a.trailing_zeros() * 10000",
        &[(0, 0, 323_200), (0b1100, 0, 22_802)],
    ),
    ("u32", "f32", "f32::from_bits(a)", &[(0x4000_0000, 0, f(2.0))]),
    ("f32", "f32", "if a > 0.0 && 1.0 / a > b { a } else { b }", &[(f(0.0), f(5.0), f(5.0)), (f(0.1), f(5.0), f(0.1))]),
];

#[test]
fn every_row_of_the_table_of_arithmetic() {
    let mut source = String::new();
    let names: Vec<&'static str> = (0..TABLE.len()).map(|row| &*format!("row{row}").leak()).collect();
    for (name, (from, to, expression, _)) in names.iter().zip(TABLE) {
        source.push_str(&format!(
            "#[kernel(workgroup(16))] fn {name}(x: &[{from}], y: &[{from}], out: &mut [{to}]) {{ let i = global_index(); \
             if i < out.len() {{ let a = x[i]; let b = y[i]; let _unused = b; out[i] = {expression}; }} }}\n"
        ));
    }
    let kernels = kernels(&source, IndexWidth::Bits32);
    let cases: Vec<Case> = names
        .iter()
        .zip(TABLE)
        .map(|(name, (_, _, _, rows))| {
            let column = |part: &dyn Fn(&(u32, u32, u32)) -> u32| {
                (rows.iter().map(part).collect::<Vec<u32>>(), rows.len() as u32)
            };
            Case {
                kernel: name,
                buffers: vec![column(&|row| row.0), column(&|row| row.1), (vec![0; rows.len()], rows.len() as u32)],
                params: vec![],
                groups: [1, 1, 1],
                expected: vec![(2, rows.iter().map(|row| row.2).collect())],
                tolerance: 0.0,
            }
        })
        .collect();
    let program = compile("cpu_table", &kernels);
    let compiled = run_compiled(&program, &kernels, &cases, false);
    for (index, case) in cases.iter().enumerate() {
        let evaluated = evaluate(&kernels[position(&kernels, case)], case);
        let checked = checked(&kernels[position(&kernels, case)], case, Order::Ascending);
        for (engine, found) in [("evaluator", &evaluated), ("compiled", &compiled[index]), ("checker", &checked)] {
            for (row, found) in TABLE[index].3.iter().zip(&found[2]) {
                let nan = row.2 == NAN && f32::from_bits(*found).is_nan();
                assert!(
                    nan || *found == row.2,
                    "{engine}: `{}` of {:#x} and {:#x} is {found:#x}, not {:#x}",
                    TABLE[index].2,
                    row.0,
                    row.1,
                    row.2
                );
            }
        }
    }
}
