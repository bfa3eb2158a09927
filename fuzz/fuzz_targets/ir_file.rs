//! IR and an instance as bytes, as artefacts carry them, through all that a program does with them.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use trefoil_codegen::ir::{Instance, Module};
use trefoil_fuzz::{compile, seeds};

fuzz_target!(
    init: seeds::asked_for(|| seeds::modules().iter().filter_map(seeds::of_module).collect()),
    |data: &[u8]| -> Corpus {
        let Some((module, instance)) = seeds::parts(data) else { return Corpus::Reject };
        let (Ok(module), Ok(instance)) = (Module::from_bytes(module), Instance::from_bytes(instance)) else {
            return Corpus::Reject;
        };
        compile::any(&module, &instance);
        Corpus::Keep
    }
);
