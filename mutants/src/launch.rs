//! What kernels are launched with: dispatches of tests, each in a file.

use std::path::Path;
use std::{fs, io};

use trefoil_codegen::check::Launch;

/// Launches cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct LaunchError {
    /// The file, or the kernel.
    pub place: String,
    /// What stands against it.
    pub reason: String,
}

/// All launches in a folder, by the names of their files.
///
/// # Errors
/// A file cannot be read, or holds no launch.
pub fn all(folder: &Path) -> Result<Vec<Launch>, LaunchError> {
    let failed = |file: &Path, reason: String| LaunchError { place: file.display().to_string(), reason };
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, error.to_string()))?;
    let files: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = files.map_err(|error| failed(folder, error.to_string()))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "launch"));
    files.sort();
    let read = |file: &Path| {
        let bytes = fs::read(file).map_err(|error| failed(file, error.to_string()))?;
        Launch::from_bytes(&bytes).map_err(|error| failed(file, error.to_string()))
    };
    files.iter().map(|file| read(file)).collect()
}
