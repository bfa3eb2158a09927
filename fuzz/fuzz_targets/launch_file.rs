//! Launches as the checker's users keep them, run once more.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use trefoil_codegen::check::{Launch, Options};
use trefoil_fuzz::seeds;

fuzz_target!(
    init: seeds::asked_for(|| seeds::modules().iter().filter_map(seeds::launch).collect()),
    |data: &[u8]| -> Corpus {
        let Ok(mut launch) = Launch::from_bytes(data) else { return Corpus::Reject };
        if let Ok(program) = launch.program() {
            // How long a kernel runs is its author's affair; and loops stand within loops.
            let options = Options { most_rounds: 12, ..Options::default() };
            let groups = launch.groups.map(|count| count.min(2));
            // What the checker finds is no fault.
            let _ = program.run(&options, &mut launch.buffers, &launch.params, groups);
        }
        Corpus::Keep
    }
);
