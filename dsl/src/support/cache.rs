//! A cache on disk of what drivers and compilers made, shared by processes.
//!
//! An entry is one file: a header, the whole key, the payload, and a checksum of all that. A file that is cut short, damaged, of
//! another version, or of another key whose file name is the same, reads as absent. Files are written under another name and
//! then renamed, so that no process ever sees half of one. An entry that cannot be written costs time later and nothing else,
//! so only opening the cache can fail.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// Starts every file; the last byte is the version of the format.
const MAGIC: [u8; 8] = *b"trefoil\x01";

/// A folder with entries.
#[derive(Clone, Debug)]
pub struct DiskCache {
    folder: PathBuf,
}

impl DiskCache {
    /// Uses that folder, and makes it if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: &Path, device: &str) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| Error::Driver {
            device: device.to_owned(),
            call: "opening the cache on disk",
            message: format!("{}: {error}", folder.display()),
        })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The payload stored under `key`, if it is there and whole.
    pub fn load(&self, kind: &str, key: &[u8]) -> Option<Vec<u8>> {
        let file = fs::read(self.path(kind, key)).ok()?;
        let (body, sum) = file.split_last_chunk::<8>()?;
        if hash(body) as u64 != u64::from_le_bytes(*sum) {
            return None;
        }
        let (magic, rest) = body.split_first_chunk::<8>()?;
        let (key_length, rest) = rest.split_first_chunk::<8>()?;
        let key_length = usize::try_from(u64::from_le_bytes(*key_length)).ok()?;
        let (stored_key, payload) = rest.split_at_checked(key_length)?;
        (*magic == MAGIC && stored_key == key).then(|| payload.to_vec())
    }

    /// Stores `payload` under `key`; whether that worked.
    pub fn store(&self, kind: &str, key: &[u8], payload: &[u8]) -> bool {
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        let mut file = Vec::with_capacity(MAGIC.len() + 16 + key.len() + payload.len());
        file.extend(MAGIC);
        file.extend((key.len() as u64).to_le_bytes());
        file.extend(key);
        file.extend(payload);
        file.extend((hash(&file) as u64).to_le_bytes());
        let path = self.path(kind, key);
        let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let draft = path.with_extension(format!("{}-{unique}.tmp", std::process::id()));
        let written = fs::File::create(&draft)
            .and_then(|mut draft| draft.write_all(&file))
            .and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // Nothing more can be done about a draft that cannot be removed either.
            let _ = fs::remove_file(&draft);
        }
        written.is_ok()
    }

    /// What changes when an entry is stored anew, whoever does: when its file was written, and its length. None where there is none.
    pub fn stamp(&self, kind: &str, key: &[u8]) -> Option<(SystemTime, u64)> {
        let file = fs::metadata(self.path(kind, key)).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    fn path(&self, kind: &str, key: &[u8]) -> PathBuf {
        self.folder.join(format!("{kind}-{:032x}.bin", hash(key)))
    }
}

/// FNV-1a over 128 bits: names files and finds damage; keys are compared whole, so a collision costs a miss and no more.
fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("trefoil-cache-test-{}", std::process::id()));
        let cache = DiskCache::open(&folder, "test").unwrap();
        assert_eq!(cache.load("x", b"key"), None);
        assert!(cache.store("x", b"key", b"payload"));
        assert_eq!(cache.load("x", b"key").as_deref(), Some(&b"payload"[..]));
        assert_eq!(cache.load("x", b"other"), None);
        assert_eq!(cache.load("y", b"key"), None);
        let path = cache.path("x", b"key");
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(cache.load("x", b"key"), None, "cut after {cut} bytes");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(cache.load("x", b"key"), None, "damaged at byte {at}");
        }
        let before = cache.stamp("x", b"key").unwrap();
        assert!(cache.store("x", b"key", b""));
        assert_ne!(cache.stamp("x", b"key"), Some(before));
        assert_eq!(cache.stamp("x", b"other"), None);
        assert_eq!(cache.load("x", b"key").as_deref(), Some(&b""[..]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no draft stays behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
