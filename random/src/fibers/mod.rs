//! The CUDA C of kernels, compiled by the machine's C++ compiler and run on its CPU, where no GPU is.
//!
//! `cuda.hpp` gives a text what NVRTC and a GPU give it, `ptx` puts calls in the place of inline PTX, and `machine.cpp` runs each thread of a block as a fiber. The kernels of a batch become one program, so that the header is
//! read once for all of them; the machine is compiled once. The program runs each launch in a process of its own: what ends by a signal, does not end, waits for threads that do not come, or has no meaning in C++ is a [`Failure`] of that kernel.

mod ptx;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_codegen::artefact::{Code, Kernel, ParamTransport, defined_name};
use trefoil_codegen::target::{Features, Target};

use crate::run::{self, Failure};
use crate::syntax::Program;

/// What a failure here is said to be of, and what counts are kept under.
pub const PLACE: &str = "cuda text";

/// Lanes of a subgroup.
pub const SUBGROUP: u32 = 32;

/// The compilers that are tried.
const COMPILERS: [&str; 2] = ["g++", "c++"];

/// How texts are compiled. An operation is rounded once, where it stands: that NVRTC makes one of a product and a sum is allowed by what a program means, and only one of both is looked at. Kernels run for milliseconds, so that
/// optimising them would take most of the time. What has no meaning in C++ is told, though NVRTC's machine code may well do what was meant; only that memory is read as other types than it was written is left aside.
const FLAGS: [&str; 10] = [
    "-std=c++17",
    "-O0",
    "-w",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow,alignment,bounds,bool",
    "-fno-sanitize-recover=all",
];

const HEADER: &str = concat!(include_str!("cuda.hpp"), include_str!("machine.hpp"));
const MACHINE: &str = include_str!("machine.cpp");

/// A compiler of C++, and the compiled machine.
#[derive(Debug)]
pub struct Fibers {
    compiler: &'static str,
    /// Where everything is written that a compiler reads or makes; it goes with this.
    folder: PathBuf,
    /// Batches so far.
    batches: AtomicU64,
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Task {
    /// The kernel's CUDA C.
    pub text: String,
    /// The values of its specialisation constants, by the names that the text knows them by.
    constants: Vec<(String, i64)>,
    workgroup: [u32; 3],
    groups: u32,
    /// What the buffers hold at first, and behind their ends.
    buffers: Vec<Vec<u8>>,
    /// The parameter block.
    params: Vec<u8>,
}

/// What a launch leaves in its buffers.
pub type Outcome = Result<Vec<Vec<u8>>, Failure>;

fn failure(words: impl std::fmt::Display) -> Failure {
    Failure { place: PLACE.to_owned(), words: words.to_string() }
}

impl Task {
    /// The launch of a program's kernel on a device that has everything.
    ///
    /// # Errors
    /// The kernel has no text.
    pub fn new(kernel: &Arc<Kernel>, program: &Program) -> Result<Self, Failure> {
        let kernel = run::specialised(kernel, program).map_err(failure)?;
        let features = Features::of_target(Target::Cuda);
        let variant = kernel.variant(Target::Cuda, features, ParamTransport::Value).map_err(failure)?;
        let Code::Text(text) = &variant.code else { return Err(failure("its CUDA variant holds no text")) };
        Ok(Self {
            text: text.to_string(),
            constants: kernel.constants.iter().map(|one| (defined_name(&one.name), one.value)).collect(),
            workgroup: kernel.workgroup_size,
            groups: program.groups,
            buffers: run::padded(program),
            params: run::block(program, &kernel.params),
        })
    }

    /// Its text in a namespace of a batch's program.
    fn source(&self, number: usize) -> Result<String, Failure> {
        let text = ptx::called(&self.text).map_err(failure)?;
        // Kernels of one name would be one function, were it C's.
        let text = text.replacen("extern \"C\" __global__", "__global__", 1);
        let entry = entry(&text).ok_or_else(|| failure("its text has no kernel"))?;
        let mut source = String::new();
        for (name, value) in &self.constants {
            let _ = writeln!(source, "#define {name} {value}");
        }
        let _ = write!(source, "namespace kernel_{number} {{\nDEVICE_NAMES\n#line 1 \"kernel_{number}.cu\"\n{text}");
        let _ = writeln!(source, "static void run(void** arguments) {{ fibers::call({entry}, arguments); }}\n}}");
        for (name, _) in &self.constants {
            let _ = writeln!(source, "#undef {name}");
        }
        Ok(source)
    }

    /// What the program reads of it.
    fn launch(&self, number: usize) -> Vec<u8> {
        let sizes = self.buffers.iter().chain([&self.params]).map(|bytes| bytes.len() as u32);
        let counts = [self.groups, self.buffers.len() as u32];
        let words = [number as u32].into_iter().chain(self.workgroup).chain(counts).chain(sizes);
        let mut launch: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
        self.buffers.iter().chain([&self.params]).for_each(|bytes| launch.extend(bytes));
        launch
    }

    /// What became of it, which the program wrote at the beginning of `bytes`, and what it wrote behind that.
    fn outcome<'b>(&self, bytes: &'b [u8]) -> Option<(Outcome, &'b [u8])> {
        let (length, mut rest) = bytes.split_first_chunk()?;
        let length = u32::from_ne_bytes(*length) as usize;
        if length > 0 {
            let (words, rest) = rest.split_at_checked(length)?;
            return Some((Err(failure(String::from_utf8_lossy(words))), rest));
        }
        let mut buffers = Vec::new();
        for buffer in &self.buffers {
            let (found, behind) = rest.split_at_checked(buffer.len())?;
            buffers.push(found.to_vec());
            rest = behind;
        }
        Some((Ok(buffers), rest))
    }
}

/// The name of a text's kernel: the word before the bracket that opens its parameters.
fn entry(text: &str) -> Option<&str> {
    let (_, behind) = text.split_once("__global__ void __launch_bounds__(")?;
    let (_, behind) = behind.split_once(") ")?;
    behind.split_once('(').map(|(name, _)| name)
}

/// Whether this, and what else judges code without a device, must be there where these devices must, as the tests' `TREFOIL_REQUIRE_DEVICES` lists them: wherever the scripts have installed what tests need, but where a CUDA device runs the texts itself.
pub fn is_required(devices: &str) -> bool {
    !devices.is_empty() && devices.split(',').all(|name| name.trim() != Target::Cuda.name())
}

impl Fibers {
    /// With the compiler of this machine.
    ///
    /// # Errors
    /// There is none, or it does not compile the machine.
    pub fn open() -> Result<Self, String> {
        /// Those of this process so far.
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let answers = |compiler: &&str| {
            let asked = Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            asked.is_ok_and(|status| status.success())
        };
        let compiler = COMPILERS.into_iter().find(answers);
        let compiler = compiler.ok_or_else(|| format!("there is no compiler of C++: {}", COMPILERS.join(", ")))?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("trefoil-fibers-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let fibers = Self { compiler, folder, batches: AtomicU64::new(0) };
        let source = fibers.folder.join("machine.cpp");
        write(&source, format!("{HEADER}{MACHINE}").as_bytes()).map_err(|failure| failure.words)?;
        let made = fibers.machine();
        fibers.compile(&source, &made)?;
        Ok(fibers)
    }

    /// The compiler's name.
    pub const fn compiler(&self) -> &'static str {
        self.compiler
    }

    fn machine(&self) -> PathBuf {
        self.folder.join("machine.o")
    }

    /// Makes an object of a source.
    fn compile(&self, source: &Path, object: &Path) -> Result<(), String> {
        self.ask(Command::new(self.compiler).args(FLAGS).arg("-c").arg(source).arg("-o").arg(object))
    }

    /// Makes a program of an object and the machine, which has all that the compiler's checks call: it needs no library for them.
    fn link(&self, object: &Path, program: &Path) -> Result<(), String> {
        self.ask(Command::new(self.compiler).arg(object).arg(self.machine()).arg("-o").arg(program))
    }

    fn ask(&self, command: &mut Command) -> Result<(), String> {
        let output = command.output();
        let output = output.map_err(|error| format!("{}: {error}", self.compiler))?;
        if output.status.success() { Ok(()) } else { Err(errors(&String::from_utf8_lossy(&output.stderr))) }
    }

    /// What becomes of launches, in their order.
    pub fn run(&self, tasks: &[&Task]) -> Vec<Outcome> {
        let sources: Vec<_> = tasks.iter().enumerate().map(|(number, task)| task.source(number)).collect();
        let refused = |source: &Result<String, Failure>| source.as_ref().err().cloned();
        let written: Vec<usize> = (0..tasks.len()).filter(|number| sources[*number].is_ok()).collect();
        let mut outcomes: Vec<Option<Outcome>> = sources.iter().map(|source| refused(source).map(Err)).collect();
        match self.run_program(tasks, &written, &sources) {
            Ok(found) => written.iter().zip(found).for_each(|(number, found)| outcomes[*number] = Some(found)),
            // The compiler refuses one of them, or all.
            Err(_) if tasks.len() > 1 => {
                for number in written {
                    outcomes[number] = self.run(&[tasks[number]]).pop();
                }
            }
            Err(failed) => written.iter().for_each(|number| outcomes[*number] = Some(Err(failed.clone()))),
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(failure("it was not run")))).collect()
    }

    /// Compiles and runs those of a batch that have a source.
    fn run_program(
        &self,
        tasks: &[&Task],
        written: &[usize],
        sources: &[Result<String, Failure>],
    ) -> Result<Vec<Outcome>, Failure> {
        if written.is_empty() {
            return Ok(Vec::new());
        }
        let mut text = HEADER.to_owned();
        sources.iter().flatten().for_each(|source| text.push_str(source));
        let table: Vec<String> = written.iter().map(|number| format!("{{kernel_{number}::run}}")).collect();
        let _ = writeln!(text, "const fibers::Kernel fibers::kernels[] = {{{}}};", table.join(", "));
        let _ = writeln!(text, "const unsigned fibers::kernel_count = {};", written.len());
        let files = Files::new(&self.folder, self.batches.fetch_add(1, Ordering::Relaxed));
        write(&files.source, text.as_bytes())?;
        self.compile(&files.source, &files.object).map_err(failure)?;
        self.link(&files.object, &files.program).map_err(failure)?;
        let launches = written.iter().enumerate().flat_map(|(place, number)| tasks[*number].launch(place));
        write(&files.launches, &launches.collect::<Vec<u8>>())?;
        let launches = File::open(&files.launches).map_err(failure)?;
        let output = Command::new(&files.program).stdin(launches).output().map_err(failure)?;
        let mut rest = output.stdout.as_slice();
        let mut outcomes = Vec::new();
        for number in written {
            let Some((outcome, behind)) = tasks[*number].outcome(rest) else {
                return Err(failure(format!("its program ends early: {}", String::from_utf8_lossy(&output.stderr))));
            };
            outcomes.push(outcome);
            rest = behind;
        }
        Ok(outcomes)
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        // A folder that stays costs room among temporary files, and nothing else.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The files of a batch, which go with it.
struct Files {
    source: PathBuf,
    object: PathBuf,
    program: PathBuf,
    launches: PathBuf,
}

impl Files {
    fn new(folder: &Path, batch: u64) -> Self {
        let file = |kind: &str| folder.join(format!("batch-{batch}{kind}"));
        Self { source: file(".cpp"), object: file(".o"), program: file(""), launches: file(".launches") }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in [&self.source, &self.object, &self.program, &self.launches] {
            let _ = fs::remove_file(file);
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| failure(format!("{}: {error}", path.display())))
}

/// What a compiler says is wrong, and nothing of what it says beside that; all it says, if it calls nothing an error.
fn errors(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("error")).take(5).collect();
    if lines.is_empty() { said.trim().to_owned() } else { lines.join("\n") }
}
