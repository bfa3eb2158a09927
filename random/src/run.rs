//! Running programs: through the front end, and then in the evaluator, in the checker and on devices; and comparing what they leave with what the program means.

use std::fmt;
use std::sync::Arc;

use trefoil_codegen::artefact::{
    Code, ConstantError, CpuArguments, CpuBuffer, Dialect, Kernel, ParamRole, ParamTransport, Params, VariantError,
};
use trefoil_codegen::check;
use trefoil_codegen::compile::compile_for;
use trefoil_codegen::emit::wgsl;
use trefoil_codegen::front::parse_source;
use trefoil_codegen::interp;
use trefoil_codegen::ir::{Instance, Module, Scalar, instantiate};
use trefoil_codegen::layout;
use trefoil_codegen::overrides::settled;
use trefoil_codegen::target::Target;
use trefoil_codegen::verify::{Verified, verify};
use trefoil_dsl::device::{Command, DispatchCommand, GroupSource, MemoryRange, ParamSource};
use trefoil_dsl::device::{Device, DeviceKind};
use trefoil_dsl::error::Error;

use crate::print::source;
use crate::syntax::Program;
use crate::value::{Value, bytes, float, layout as layout_of};

/// What the memory behind the data of a buffer holds: not the zeros that reads past the end give, and in no type a number that is lost in a sum.
const BEHIND: u8 = 0x5a;

/// What is wrong with a kernel, and where it was seen.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// The part of the compiler, or the device.
    pub place: String,
    /// What was seen.
    pub words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.words)
    }
}

fn failure(place: &str, words: impl fmt::Display) -> Failure {
    Failure { place: place.to_owned(), words: words.to_string() }
}

/// A program that the compiler has understood.
#[derive(Clone, Debug)]
pub struct Understood {
    /// The only instance of the kernel.
    pub module: Module,
    /// The instance with the facts about it.
    pub verified: Verified,
}

/// The program's IR.
///
/// # Errors
/// The front end or the verifier refuses it, which no program should be.
pub fn understand(program: &Program) -> Result<Understood, Failure> {
    let outputs = parse_source(&source(program)).map_err(|errors| failure("front end", errors))?;
    let output = outputs.into_iter().next().ok_or_else(|| failure("front end", "there is no kernel"))?;
    let module = instantiate(&output.module, &Instance::default()).map_err(|found| failure("instance", found))?;
    let verified = verify(module.clone()).map_err(|found| failure("verifier", found))?;
    Ok(Understood { module, verified })
}

/// Its code for some targets, judged by naga where that is one of them.
///
/// # Errors
/// Something in it cannot be emitted, or naga refuses what was.
pub fn compile(module: &Module, targets: &[Target]) -> Result<Kernel, Failure> {
    compile_for(module, &Instance::default(), targets).map_err(|found| failure("emitter", found))
}

/// The parameter block of a launch.
pub fn block(program: &Program, params: &Params) -> Vec<u8> {
    let mut block = vec![0; params.size as usize];
    let (mut users, mut constants) = (Vec::new(), Vec::new());
    for param in &program.params {
        let list = if param.range.is_some() { &mut constants } else { &mut users };
        list.push(param);
    }
    for field in params.fields.iter() {
        let param = match field.role {
            ParamRole::User(index) => users.get(index as usize),
            ParamRole::Constant(index) => constants.get(index as usize),
            _ => None,
        };
        let mut words = Vec::new();
        match (field.role, param) {
            (_, Some(param)) => {
                let ty = &program.vars[param.var].ty;
                param
                    .value
                    .scalars(ty, &program.structs, 0, &mut |_, scalar, value| words.push(widened(scalar, value)));
            }
            (ParamRole::Length(binding), _) => words.push(program.buffers[binding as usize].data.len() as u64),
            (ParamRole::GroupCount, _) => words.push(program.groups.into()),
            _ => {}
        }
        let size = field.ty.scalar.bytes() as usize;
        for (lane, word) in words.iter().enumerate() {
            let at = field.offset as usize + lane * size;
            block[at..at + size].copy_from_slice(&word.to_le_bytes()[..size]);
        }
    }
    block
}

/// The bits of the type that a parameter travels as.
fn widened(scalar: Scalar, value: &Value) -> u64 {
    match value {
        Value::Word(bits) if scalar.is_signed() => crate::value::integer(scalar, *bits) as u64,
        Value::Word(bits) => *bits,
        Value::Float(float) if scalar == Scalar::F64 => float.low.to_bits(),
        Value::Float(float) => u64::from((float.low as f32).to_bits()),
        Value::Parts(_) | Value::Slice(_) => 0,
    }
}

/// The bytes that a program's buffers hold at first.
pub fn initial(program: &Program) -> Vec<Vec<u8>> {
    let of = |buffer: &crate::syntax::Buffer| bytes(&buffer.data, &buffer.element, &program.structs);
    program.buffers.iter().map(of).collect()
}

/// What the evaluator makes of an instance.
///
/// # Errors
/// It cannot be evaluated.
pub fn evaluate(verified: &Verified, program: &Program, subgroup: u32) -> Result<Vec<Vec<u8>>, Failure> {
    let machine = interp::Program::new(verified).map_err(|error| failure("evaluator", error))?;
    let params = layout::params(&verified.module, verified.info.grid)
        .ok_or_else(|| failure("evaluator", "a parameter that cannot be one"))?;
    let block = block(program, &params);
    let mut memory = as_words(&padded(program));
    let buffers: Vec<CpuBuffer> = memory
        .iter_mut()
        .map(|words| CpuBuffer { pointer: words.as_mut_ptr().cast(), bytes: words.len() * 8 })
        .collect();
    let arguments =
        CpuArguments { buffers: &buffers, params: &block, groups: [program.groups, 1, 1], subgroup_size: subgroup };
    // SAFETY: buffers are no shorter than the lengths in the block say, and live until the end of this function.
    unsafe { machine.run(&arguments, 0..program.groups.into()) };
    Ok(memory.iter().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect()).collect())
}

/// The bytes that a program's buffers hold at first, and behind each of them memory that is none of its: 16 bytes at least, in which an element has room, to a multiple of 16.
pub(crate) fn padded(program: &Program) -> Vec<Vec<u8>> {
    let mut all = initial(program);
    for (bytes, buffer) in all.iter_mut().zip(&program.buffers) {
        let element = layout_of(&buffer.element, &program.structs).0;
        bytes.resize((bytes.len() + element.max(16)).next_multiple_of(16), BEHIND);
    }
    all
}

/// Bytes as words, which are aligned for everything.
fn as_words(buffers: &[Vec<u8>]) -> Vec<Vec<u64>> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    buffers.iter().map(|bytes| bytes.chunks(8).map(word).collect()).collect()
}

/// What the checker makes of an instance; it must find nothing that has no meaning.
///
/// # Errors
/// It finds something, or cannot run it.
pub fn checked(module: &Module, program: &Program, subgroup: u32) -> Result<Vec<Vec<u8>>, Failure> {
    let constants: Vec<i64> = program
        .params
        .iter()
        .filter(|param| param.range.is_some())
        .map(|param| match param.value {
            Value::Word(bits) => bits as i64,
            _ => 0,
        })
        .collect();
    let machine =
        check::Program::new(module, &Instance::default(), &constants).map_err(|error| failure("checker", error))?;
    let verified = machine.verified();
    let params = layout::params(&verified.module, verified.info.grid)
        .ok_or_else(|| failure("checker", "a parameter that cannot be one"))?;
    let block = block(program, &params);
    // What is past an end and what is divided by zero has a meaning, which is compared.
    let options = check::Options {
        reads_past_end: false,
        writes_past_end: false,
        division_by_zero: false,
        subgroup_size: subgroup,
        most_rounds: 1000,
        ..check::Options::default()
    };
    let mut buffers = initial(program);
    let report = machine
        .run(&options, &mut buffers, &block, [program.groups, 1, 1])
        .map_err(|error| failure("checker", error))?;
    if report.is_clean() { Ok(buffers) } else { Err(failure("checker", report)) }
}

/// What a device leaves in buffers; nothing where it lacks what a kernel requires.
pub type Found = Option<Vec<Vec<u8>>>;

/// Why a device does not run a kernel.
#[derive(Clone, Debug)]
pub struct Refused {
    /// In words.
    pub failure: Failure,
    /// Whether the device answers nothing any more, for which this kernel may not be the reason.
    pub lost: bool,
}

/// The kernel with the values that a program gives its specialisation constants.
///
/// # Errors
/// It has no such constants, which no kernel of the program's should say.
pub fn specialised(kernel: &Arc<Kernel>, program: &Program) -> Result<Arc<Kernel>, ConstantError> {
    let values: Vec<(String, i64)> = program
        .params
        .iter()
        .filter(|param| param.range.is_some())
        .map(|param| match param.value {
            Value::Word(bits) => (format!("V{}", param.var), bits as i64),
            _ => (String::new(), 0),
        })
        .collect();
    if values.is_empty() {
        return Ok(kernel.clone());
    }
    let named: Vec<(&str, i64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    kernel.specialise(&named).map(Arc::new)
}

/// What a device makes of a kernel.
///
/// # Errors
/// The device or its driver refuses the kernel.
pub fn launched(device: &Device, kernel: &Arc<Kernel>, program: &Program) -> Result<Found, Refused> {
    let place = device.kind().name();
    let failed = |error: Error| Refused { lost: matches!(error, Error::Lost { .. }), failure: failure(place, error) };
    let unlike = |words: &dyn fmt::Display| Refused { failure: failure(place, words), lost: false };
    let backend = device.backend();
    let kernel = specialised(kernel, program).map_err(|error| unlike(&error))?;
    let loaded = match backend.load(std::slice::from_ref(&kernel), ParamTransport::Value) {
        Err(Error::Variant(VariantError::MissingFeatures { .. })) => return Ok(None),
        loaded => loaded.map_err(failed)?,
    };
    let Some(pipeline) = loaded.into_iter().next() else { return Err(unlike(&"no pipeline was made")) };
    let mut bindings = Vec::new();
    let first = padded(program);
    for bytes in &first {
        let memory = backend.allocate(bytes.len() as u64, "random").map_err(failed)?;
        let range = MemoryRange { memory, offset: 0, bytes: bytes.len() as u64 };
        backend.write(&range, bytes).map_err(failed)?;
        bindings.push(range);
    }
    let dispatch = DispatchCommand {
        pipeline,
        bindings: bindings.clone(),
        params: ParamSource::Value(block(program, &kernel.params)),
        groups: GroupSource::Value([program.groups, 1, 1]),
        label: Arc::from("random"),
    };
    backend.execute(&[Command::Dispatch(dispatch)]).map_err(failed)?;
    let mut all = Vec::new();
    for (range, bytes) in bindings.iter().zip(&first) {
        let mut found = vec![0; bytes.len()];
        backend.read(range, &mut found).map_err(failed)?;
        all.push(found);
    }
    Ok(Some(all))
}

/// Whether what a place left is what the program means, and what lies behind the buffers is as it was.
///
/// # Errors
/// The first scalar that is something else, or the first byte behind a buffer.
pub fn agree(place: &str, program: &Program, wanted: &[Vec<Value>], found: &[Vec<u8>]) -> Result<(), Failure> {
    for (index, (buffer, values)) in program.buffers.iter().zip(wanted).enumerate() {
        let size = layout_of(&buffer.element, &program.structs).0;
        for (number, value) in values.iter().enumerate() {
            let mut wrong = None;
            value.scalars(&buffer.element, &program.structs, number * size, &mut |at, scalar, value| {
                let count = scalar.bytes().unwrap_or(4) as usize;
                let Some(bytes) = found[index].get(at..at + count) else { return };
                let bits = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                let right = match value {
                    Value::Word(wanted) => *wanted == bits,
                    Value::Float(wanted) => wanted.holds(float(scalar, bits)),
                    Value::Parts(_) | Value::Slice(_) => true,
                };
                if !right && wrong.is_none() {
                    let words = match value {
                        Value::Float(wanted) => {
                            let (low, high, found) = (wanted.low, wanted.high, float(scalar, bits));
                            format!("byte {at}: {low:?} to {high:?} is meant, {found:?} is there")
                        }
                        Value::Word(wanted) => format!("byte {at}: {wanted:#x} is meant, {bits:#x} is there"),
                        Value::Parts(_) | Value::Slice(_) => String::new(),
                    };
                    wrong = Some(words);
                }
            });
            if let Some(words) = wrong {
                return Err(failure(place, format!("element {number} of b{index}, {words}")));
            }
        }
        // In the checker nothing lies behind them.
        let behind = found[index].get(size * values.len()..).unwrap_or_default();
        if let Some(at) = behind.iter().position(|byte| *byte != BEHIND) {
            return Err(failure(place, format!("byte {at} behind the end of b{index} is written")));
        }
    }
    Ok(())
}

/// The size of a device's subgroups, if all have one.
pub fn subgroup_size(device: &Device) -> Option<u32> {
    let limits = device.limits();
    if device.kind() == DeviceKind::Cpu {
        return Some(limits.min_subgroup);
    }
    (limits.min_subgroup == limits.max_subgroup).then_some(limits.min_subgroup)
}

/// Whether naga's writer of SPIR-V, which wgpu runs, takes a kernel's WGSL: of some modules that naga calls valid it does not.
///
/// # Errors
/// What it says, or that it panics.
pub fn writable(kernel: &Kernel) -> Result<(), Failure> {
    for variant in kernel.variants.iter() {
        let Code::Text(text) = &variant.code else { continue };
        if variant.target != Target::Wgsl || variant.dialect == Some(Dialect::Browsers) {
            continue;
        }
        let place = "naga's writer";
        let written = guarded(|| {
            let (module, info) =
                wgsl::parse(&settled(text, &kernel.constants)).map_err(|error| failure(place, error))?;
            let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
            naga::back::spv::write_vec(&module, &info, &options, None).map_err(|error| failure(place, error))
        });
        match written {
            Some(result) => result.map(|_| ())?,
            None => return Err(failure(place, "it panics")),
        }
    }
    Ok(())
}

/// What a function gives, if it does not panic.
pub fn guarded<T>(of: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(of)).ok()
}
