//! NVRTC: CUDA C to machine code.

use std::ffi::{CString, c_char};

use cudarc::nvrtc::{result, sys};

/// What every kernel is compiled with, beside the architecture. Contraction is allowed where the source does not forbid it.
const OPTIONS: [&str; 3] = ["--std=c++17", "--fmad=true", "-default-device"];

/// Whether the library can be opened.
///
/// # Safety
/// Opening it runs its initialisers.
pub(crate) unsafe fn is_present() -> bool {
    // SAFETY: the caller's promise.
    unsafe { sys::is_culib_present() }
}

/// Everything that decides what [`compile`] makes of a source: versions, architecture, options and the source itself.
pub(crate) fn key(source: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: `driver::start` found the library present.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().map_err(|error| error.to_string())?;
    Ok(format!("nvrtc {major}.{minor}\n{architecture}\n{}\n{source}", OPTIONS.join(" ")).into_bytes())
}

/// A program that goes with its scope.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was made by NVRTC and is destroyed once. There is nobody to tell of a failure.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// Compiles `source` to a cubin for `architecture` (`sm_90a`); the error is NVRTC's log.
pub(crate) fn compile(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let text = |what: &str| CString::new(what).map_err(|error| error.to_string());
    let source = text(source)?;
    let file = text(&format!("{name}.cu"))?;
    let program =
        Program(result::create_program(&source, Some(&file)).map_err(|error| format!("no program: {error}"))?);
    let mut options = vec![format!("--gpu-architecture={architecture}")];
    options.extend(OPTIONS.map(str::to_owned));
    // SAFETY: the program was just made; `source` and `file` outlive it.
    let compiled = unsafe { result::compile_program(program.0, &options) };
    if let Err(error) = compiled {
        return Err(format!("{error}\n{}", log(&program)));
    }
    let mut size = 0;
    // SAFETY: the program is compiled.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) }
        .result()
        .map_err(|error| format!("no size of the machine code: {error}"))?;
    let mut cubin = vec![0u8; size];
    // SAFETY: as above, and the buffer is as long as NVRTC asked for.
    unsafe { sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast::<c_char>()) }
        .result()
        .map_err(|error| format!("no machine code: {error}"))?;
    if cubin.is_empty() {
        return Err(format!("no machine code for {architecture}"));
    }
    Ok(cubin)
}

fn log(program: &Program) -> String {
    // SAFETY: the program is alive.
    let bytes: Vec<u8> = unsafe { result::get_program_log(program.0) }
        .unwrap_or_default()
        .into_iter()
        .map(|c| c as u8)
        .take_while(|c| *c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These need NVRTC, but no GPU.
    fn present() -> bool {
        // SAFETY: NVRTC's initialisers have no requirements.
        let present = unsafe { is_present() };
        if !present {
            eprintln!("skipped: NVRTC is not installed");
        }
        present
    }

    const SOURCE: &str = r#"extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }"#;

    #[test]
    fn sources_become_machine_code() {
        if present() {
            for architecture in ["sm_80", "sm_90a"] {
                let cubin = compile("twice", SOURCE, architecture).unwrap();
                assert_eq!(&cubin[..4], b"\x7fELF", "{architecture}");
            }
        }
    }

    #[test]
    fn the_kernels_of_the_device_rules_compile() {
        if present() {
            let kernels = include_str!("../tests/device/kernels.cu");
            for block in [include_str!("../tests/device/by_value.cu"), include_str!("../tests/device/by_pointer.cu")] {
                compile("rules", &format!("{block}{kernels}"), "sm_90a").unwrap();
            }
        }
    }

    #[test]
    fn errors_carry_the_log() {
        if present() {
            let error = compile("broken", "__global__ void broken() { nonsense; }", "sm_90").unwrap_err();
            assert!(error.contains("nonsense") && error.contains("broken.cu"), "{error}");
            assert!(compile("none", SOURCE, "sm_1").is_err());
            assert!(compile("zero", "\0", "sm_90").is_err());
        }
    }

    #[test]
    fn keys_tell_sources_and_architectures_apart() {
        if present() {
            let keys =
                [("a", "sm_80"), ("a", "sm_90"), ("b", "sm_80")].map(|(source, arch)| key(source, arch).unwrap());
            assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        }
    }
}
