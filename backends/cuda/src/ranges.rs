//! NVTX ranges with the names of commands, for Nsight Systems and its like.
//!
//! The library is loaded if it is there and labels were asked for; a range costs a few nanoseconds while no profiler is attached. A range spans the call that hands something to the stream, by which a profiler finds what
//! ran for it: one for each command of a list, and one for each run of a recording, of which a CUDA graph keeps no names.

use std::ffi::{CString, c_char, c_int};
use std::fmt;

/// The library of the toolkits up to CUDA 12, and what took its place.
const LIBRARIES: [&str; 4] = ["libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so", "nvToolsExt64_1.dll"];

/// Ranges, if the library is there.
pub(crate) struct Ranges {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
    // The functions are its.
    _library: libloading::Library,
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ranges")
    }
}

/// A range of the calling thread, which ends with its scope.
pub(crate) struct Range<'r>(Option<&'r Ranges>);

impl Ranges {
    /// Loads the library; none where it is not installed.
    pub(crate) fn load() -> Option<Self> {
        LIBRARIES.iter().find_map(|name| {
            // SAFETY: the library's initialisers have no requirements towards us.
            let library = unsafe { libloading::Library::new(*name) }.ok()?;
            // SAFETY: these are the types of the two functions in every version of the library.
            let (push, pop) =
                unsafe { (*library.get(b"nvtxRangePushA\0").ok()?, *library.get(b"nvtxRangePop\0").ok()?) };
            Some(Self { push, pop, _library: library })
        })
    }
}

impl<'r> Range<'r> {
    /// Begins a range, if there are any.
    pub(crate) fn begin(ranges: Option<&'r Ranges>, name: &str) -> Self {
        Self(ranges.and_then(|ranges| {
            let name = CString::new(name).ok()?;
            // SAFETY: the library is loaded, and copies the name during the call.
            unsafe { (ranges.push)(name.as_ptr()) };
            Some(ranges)
        }))
    }
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        if let Some(ranges) = self.0 {
            // SAFETY: the library is loaded; ranges of a thread end in the opposite order of their beginnings, as scopes do.
            unsafe { (ranges.pop)() };
        }
    }
}
