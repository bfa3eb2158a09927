//! Files of the cache on disk, which drivers and compilers are given what they hold.
//!
//! The first byte says whether the checksum is made right, without which nothing behind it would ever be looked at.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_fuzz::seeds;

const KEY: &[u8] = b"key";

/// FNV-1a over 128 bits, as the cache has it.
fn hash(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// A file without its checksum.
fn file(key: &[u8], payload: &[u8]) -> Vec<u8> {
    [b"trefoil\x01".as_slice(), &(key.len() as u64).to_le_bytes(), key, payload].concat()
}

fn inputs() -> Vec<Vec<u8>> {
    let mut whole = file(KEY, b"payload");
    whole.extend((hash(&whole) as u64).to_le_bytes());
    let with = |first: u8, rest: Vec<u8>| [&[first], rest.as_slice()].concat();
    vec![with(0, whole), with(1, file(KEY, b"payload")), with(1, file(b"other", b"")), with(1, Vec::new())]
}

fuzz_target!(
    init: seeds::asked_for(inputs),
    |data: &[u8]| -> Corpus {
        let Some((first, body)) = data.split_first() else { return Corpus::Reject };
        let mut whole = body.to_vec();
        if first % 2 == 1 {
            whole.extend((hash(body) as u64).to_le_bytes());
        }
        let folder = std::env::temp_dir().join(format!("trefoil-fuzz-{}", std::process::id()));
        let Ok(cache) = DiskCache::open(&folder, "fuzz") else { return Corpus::Reject };
        let path = folder.join(format!("kernel-{:032x}.bin", hash(KEY)));
        if std::fs::write(&path, &whole).is_ok()
            && let Some(payload) = cache.load("kernel", KEY)
        {
            assert!(whole.starts_with(&file(KEY, &payload)), "this is not what the file holds");
        }
        let _ = std::fs::remove_dir_all(&folder);
        Corpus::Keep
    }
);
