//! A file of kernels and `#[device]` items, through the front end and, as far as it is accepted, through everything behind it.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use trefoil_codegen::front;
use trefoil_fuzz::{compile, mutate, seeds};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::in_place(data, size, most, seed) });

fuzz_target!(
    init: seeds::asked_for(|| seeds::kernels().into_iter().map(String::into_bytes).collect()),
    |text: &str| {
        // Texts of earlier inputs would stay in memory.
        proc_macro2::extra::invalidate_current_thread_spans();
        match front::parse_source(text) {
            Ok(outputs) => outputs.iter().for_each(compile::all_targets),
            Err(errors) => drop(errors.to_string()),
        }
    }
);
