//! NVRTC, which compiles CUDA C to machine code without a GPU.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;

use libloading::Library;
use trefoil_codegen::artefact::{Code, Kernel};
use trefoil_codegen::target::Target;

use crate::run::Failure;

/// What a failure here is said to be of.
pub const PLACE: &str = "nvrtc";

type Handle = *mut std::ffi::c_void;

/// The loaded library.
#[derive(Debug)]
pub struct Nvrtc {
    library: Library,
    /// Kept loaded, because NVRTC finds it by name alone.
    _builtins: Vec<Library>,
}

/// The library from the folder that scripts/setup-tools.sh fills, the one in `TREFOIL_NVRTC`, or the system's.
///
/// # Errors
/// There is none, or it does not load.
pub fn load() -> Result<Nvrtc, String> {
    let folder = std::env::var_os("TREFOIL_NVRTC")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.tools/nvrtc"), PathBuf::from);
    let is_builtins =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins"));
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let builtins = files
        .filter(is_builtins)
        // SAFETY: NVIDIA's library has no initialisers with demands on the caller.
        .filter_map(|path| unsafe { Library::new(path) }.ok())
        .collect();
    // SAFETY: as above.
    let library = unsafe { Library::new(folder.join("libnvrtc.so.13")).or_else(|_| Library::new("libnvrtc.so.13")) };
    library.map(|library| Nvrtc { library, _builtins: builtins }).map_err(|error| error.to_string())
}

/// Whether NVRTC takes every CUDA text of a kernel. Warnings are left aside: what was drawn compares and computes what nobody would.
///
/// # Errors
/// What it says.
pub fn accepts(nvrtc: &Nvrtc, kernel: &Kernel) -> Result<(), Failure> {
    for variant in kernel.variants.iter().filter(|variant| variant.target == Target::Cuda) {
        if let Code::Text(text) = &variant.code {
            nvrtc.compile(text).map_err(|words| Failure { place: PLACE.to_owned(), words })?;
        }
    }
    Ok(())
}

impl Nvrtc {
    /// Compiles a text for sm_90.
    fn compile(&self, source: &str) -> Result<(), String> {
        type Create = unsafe extern "C" fn(
            *mut Handle,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
        type LogSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
        type Log = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
        let source = CString::new(source).map_err(|cause| cause.to_string())?;
        let options = [c"--gpu-architecture=sm_90".as_ptr()];
        let missing = |cause: libloading::Error| cause.to_string();
        // SAFETY: the signatures are those of nvrtc.h; every pointer is valid for the call that gets it.
        unsafe {
            let create = self.library.get::<Create>(b"nvrtcCreateProgram").map_err(missing)?;
            let compile = self.library.get::<Compile>(b"nvrtcCompileProgram").map_err(missing)?;
            let log_size = self.library.get::<LogSize>(b"nvrtcGetProgramLogSize").map_err(missing)?;
            let log = self.library.get::<Log>(b"nvrtcGetProgramLog").map_err(missing)?;
            let destroy = self.library.get::<Destroy>(b"nvrtcDestroyProgram").map_err(missing)?;
            let mut program: Handle = std::ptr::null_mut();
            let made =
                create(&mut program, source.as_ptr(), c"kernel.cu".as_ptr(), 0, std::ptr::null(), std::ptr::null());
            if made != 0 {
                return Err(format!("nvrtcCreateProgram gave {made}"));
            }
            let status = compile(program, 1, options.as_ptr());
            let mut size = 0usize;
            log_size(program, &mut size);
            let mut text = vec![0u8; size.max(1)];
            log(program, text.as_mut_ptr().cast());
            destroy(&mut program);
            let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned());
            let text = text.unwrap_or_default();
            if status == 0 { Ok(()) } else { Err(text) }
        }
    }
}
