//! Files of params: opened, listed and read as numbers.

#![no_main]

use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};
use trefoil_fuzz::numbers::Numbers;
use trefoil_fuzz::seeds;
use trefoil_graph::Model;

/// A file without a name, which goes when the process goes.
fn open() -> Option<std::fs::File> {
    let path = std::env::temp_dir().join(format!("trefoil-fuzz-{}.safetensors", std::process::id()));
    let file = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).ok()?;
    std::fs::remove_file(&path).ok()?;
    Some(file)
}

const HEADERS: [(&str, usize); 5] = [
    (r#"{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#, 24),
    (
        r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[1,1],"data_offsets":[8,16]}}"#,
        16,
    ),
    (
        r#"{"flags":{"dtype":"BOOL","shape":[5],"data_offsets":[0,5]},"none":{"dtype":"U8","shape":[0],"data_offsets":[5,5]}}"#,
        5,
    ),
    (
        r#"{"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"f":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[8,16]}}"#,
        16,
    ),
    (
        r#"{"q":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}}"#,
        4,
    ),
];

fn file(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

fn inputs() -> Vec<Vec<u8>> {
    HEADERS.iter().map(|(header, bytes)| file(header.as_bytes(), &vec![0x3c; *bytes])).collect()
}

// Mostly the header is changed and its length is made right: otherwise hardly a file would be read.
fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    let header = data.first_chunk::<8>().map(|length| u64::from_le_bytes(*length)).filter(|length| *length <= 1 << 16);
    let split = header.map(|length| (length as usize).saturating_add(8)).filter(|split| *split <= size);
    let (Some(split), true) = (split, Numbers(seed.into()).below(4) > 0) else {
        return fuzzer_mutate(data, size, most);
    };
    let tail = data[split..size].to_vec();
    let room = most.saturating_sub(tail.len()).max(split);
    if room > data.len() {
        return fuzzer_mutate(data, size, most);
    }
    let length = fuzzer_mutate(&mut data[8..room], split - 8, room - 8);
    data[..8].copy_from_slice(&(length as u64).to_le_bytes());
    let end = (8 + length + tail.len()).min(most).min(data.len());
    let start = (8 + length).min(end);
    data[start..end].copy_from_slice(&tail[..end - start]);
    end
});

fuzz_target!(
    init: seeds::asked_for(inputs),
    |data: &[u8]| -> Corpus {
        static FILE: OnceLock<Option<std::fs::File>> = OnceLock::new();
        let Some(mut file) = FILE.get_or_init(open).as_ref() else { return Corpus::Reject };
        if file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(data)).is_err() {
            return Corpus::Reject;
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match Model::from_safetensors(&[&path]) {
            Ok(model) => {
                for param in model.params().into_iter().flatten() {
                    let _ = model.values(&param.name);
                }
                drop(Model::from_safetensors(&[&path, &path]).map_err(|error| error.to_string()));
            }
            Err(error) => drop(error.to_string()),
        }
        Corpus::Keep
    }
);
