//! NVRTC, which compiles CUDA C to machine code without a GPU.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;

use libloading::Library;

type Program = *mut std::ffi::c_void;

/// The loaded library.
pub struct Nvrtc {
    library: Library,
    /// Kept loaded, because NVRTC finds it by name alone.
    _builtins: Vec<Library>,
}

/// The library, from the folder that scripts/setup-tools.sh fills, the one in `TREFOIL_NVRTC`, or the system's. `None`, with a word on the
/// terminal, if there is none.
pub fn load() -> Option<Nvrtc> {
    let folder = std::env::var_os("TREFOIL_NVRTC")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.tools/nvrtc"), PathBuf::from);
    let builtins = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins")))
        // SAFETY: NVIDIA's library has no initialisers with demands on the caller.
        .filter_map(|path| unsafe { Library::new(path) }.ok())
        .collect();
    // SAFETY: as above.
    let library = unsafe { Library::new(folder.join("libnvrtc.so.13")).or_else(|_| Library::new("libnvrtc.so.13")) };
    match library {
        Ok(library) => Some(Nvrtc { library, _builtins: builtins }),
        Err(cause) => {
            eprintln!("skipped: no NVRTC ({cause}); scripts/setup-tools.sh fetches it");
            None
        }
    }
}

impl Nvrtc {
    /// What a file becomes for an architecture such as `compute_90` before registers are given out.
    #[allow(dead_code, reason = "not every test that compiles looks at it")]
    pub fn ptx(&self, source: &str, architecture: &str) -> Result<String, String> {
        let source = CString::new(source).map_err(|cause| cause.to_string())?;
        let option = CString::new(format!("--gpu-architecture={architecture}")).map_err(|cause| cause.to_string())?;
        let options = [option.as_ptr()];
        type Texts = *const *const c_char;
        let missing = |cause: libloading::Error| cause.to_string();
        // SAFETY: the signatures are those of nvrtc.h; every pointer is valid for the call that gets it.
        unsafe {
            let create = self
                .library
                .get::<unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, Texts, Texts) -> c_int>(
                    b"nvrtcCreateProgram",
                )
                .map_err(missing)?;
            let compile = self
                .library
                .get::<unsafe extern "C" fn(Program, c_int, Texts) -> c_int>(b"nvrtcCompileProgram")
                .map_err(missing)?;
            let size = self
                .library
                .get::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(b"nvrtcGetPTXSize")
                .map_err(missing)?;
            let get = self
                .library
                .get::<unsafe extern "C" fn(Program, *mut c_char) -> c_int>(b"nvrtcGetPTX")
                .map_err(missing)?;
            let destroy = self
                .library
                .get::<unsafe extern "C" fn(*mut Program) -> c_int>(b"nvrtcDestroyProgram")
                .map_err(missing)?;
            let mut program: Program = std::ptr::null_mut();
            let none = std::ptr::null();
            create(&mut program, source.as_ptr(), c"kernel.cu".as_ptr(), 0, none, none);
            let status = compile(program, 1, options.as_ptr());
            let mut bytes = 0usize;
            size(program, &mut bytes);
            let mut text = vec![0u8; bytes.max(1)];
            let got = get(program, text.as_mut_ptr().cast());
            destroy(&mut program);
            if status != 0 || got != 0 {
                return Err(format!("nvrtcCompileProgram gave {status}, nvrtcGetPTX {got}"));
            }
            CStr::from_bytes_until_nul(&text)
                .map(|text| text.to_string_lossy().into_owned())
                .map_err(|cause| cause.to_string())
        }
    }

    /// Compiles a file to a cubin for an architecture; the compiler's log if it refuses.
    pub fn compile(&self, source: &str, architecture: &str) -> Result<usize, String> {
        let source = CString::new(source).map_err(|cause| cause.to_string())?;
        let options = [CString::new(format!("--gpu-architecture={architecture}")).map_err(|cause| cause.to_string())?];
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the signatures are those of nvrtc.h; every pointer is valid for the call that gets it.
        unsafe {
            let create = self
                .library
                .get::<unsafe extern "C" fn(
                    *mut Program,
                    *const c_char,
                    *const c_char,
                    c_int,
                    *const *const c_char,
                    *const *const c_char,
                ) -> c_int>(b"nvrtcCreateProgram")
                .map_err(|cause| cause.to_string())?;
            let compile = self
                .library
                .get::<unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int>(b"nvrtcCompileProgram")
                .map_err(|cause| cause.to_string())?;
            let log_size = self
                .library
                .get::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(b"nvrtcGetProgramLogSize")
                .map_err(|cause| cause.to_string())?;
            let log = self
                .library
                .get::<unsafe extern "C" fn(Program, *mut c_char) -> c_int>(b"nvrtcGetProgramLog")
                .map_err(|cause| cause.to_string())?;
            let cubin_size = self
                .library
                .get::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(b"nvrtcGetCUBINSize")
                .map_err(|cause| cause.to_string())?;
            let destroy = self
                .library
                .get::<unsafe extern "C" fn(*mut Program) -> c_int>(b"nvrtcDestroyProgram")
                .map_err(|cause| cause.to_string())?;
            let mut program: Program = std::ptr::null_mut();
            let made =
                create(&mut program, source.as_ptr(), c"kernel.cu".as_ptr(), 0, std::ptr::null(), std::ptr::null());
            if made != 0 {
                return Err(format!("nvrtcCreateProgram gave {made}"));
            }
            let status = compile(program, pointers.len() as c_int, pointers.as_ptr());
            let mut size = 0usize;
            log_size(program, &mut size);
            let mut text = vec![0u8; size.max(1)];
            log(program, text.as_mut_ptr().cast());
            let mut bytes = 0usize;
            let sized = cubin_size(program, &mut bytes);
            destroy(&mut program);
            let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned());
            let text = text.unwrap_or_default();
            // A warning about generated code is a defect of the generator.
            if status != 0 || sized != 0 || bytes == 0 || text.contains("warning") {
                return Err(format!("{architecture}: {text}"));
            }
            Ok(bytes)
        }
    }
}
