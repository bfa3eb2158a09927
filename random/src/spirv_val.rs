//! `spirv-val`, which says what is wrong with a module of SPIR-V.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_codegen::artefact::{Code, Kernel};

use crate::run::Failure;

/// What a failure here is said to be of.
pub const PLACE: &str = "spirv-val";

/// The tool, which starts on this machine.
#[derive(Debug)]
pub struct SpirvVal {
    tool: PathBuf,
}

fn failure(words: impl std::fmt::Display) -> Failure {
    Failure { place: PLACE.to_owned(), words: words.to_string() }
}

/// What a run of the tool says against what it was given.
fn accepted(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let (said, written) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    Err(format!("{}: {said}{written}", output.status))
}

impl SpirvVal {
    /// The one that scripts/setup-tools.sh installs, or the system's.
    ///
    /// # Errors
    /// There is none, or it does not start.
    pub fn open() -> Result<Self, String> {
        let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin/spirv-val");
        let tool = if fetched.exists() { fetched } else { PLACE.into() };
        let about = |words: String| format!("{}: {words}", tool.display());
        let output = Command::new(&tool).arg("--version").output().map_err(|error| about(error.to_string()))?;
        accepted(&output).map_err(about)?;
        Ok(Self { tool })
    }

    /// Whether it takes a kernel's SPIR-V.
    ///
    /// # Errors
    /// What it says, or that it cannot be asked.
    pub fn accepts(&self, kernel: &Kernel) -> Result<(), Failure> {
        /// Files of this process so far.
        static FILES: AtomicU64 = AtomicU64::new(0);
        for variant in kernel.variants.iter() {
            let Code::Spirv(words) = &variant.code else { continue };
            let number = FILES.fetch_add(1, Ordering::Relaxed);
            let file = std::env::temp_dir().join(format!("trefoil-random-{}-{number}.spv", std::process::id()));
            std::fs::write(&file, &**words).map_err(failure)?;
            let output = Command::new(&self.tool).args(["--target-env", "vulkan1.3"]).arg(&file).output();
            // A file that stays costs room among temporary files, and nothing else.
            let _ = std::fs::remove_file(&file);
            accepted(&output.map_err(failure)?).map_err(failure)?;
        }
        Ok(())
    }
}
