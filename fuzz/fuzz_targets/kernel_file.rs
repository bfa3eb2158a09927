//! Kernels as devices' folders keep them, loaded as a program loads them.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::{Corpus, fuzz_target};
use trefoil_codegen::artefact::{Code, Features, Kernel, ParamTransport, Target};
use trefoil_codegen::overrides;
use trefoil_dsl::device::{Device, DeviceOptions};
use trefoil_fuzz::seeds;

/// The device that kernels are loaded on.
fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE.get_or_init(|| trefoil_cpu::open(&DeviceOptions::default()).ok()).as_ref()
}

fuzz_target!(
    init: seeds::asked_for(|| seeds::modules().iter().filter_map(seeds::kernel).collect()),
    |data: &[u8]| -> Corpus {
        let Ok(kernel) = Kernel::from_bytes(data) else { return Corpus::Reject };
        for target in Target::ALL {
            let _ = kernel.variant(target, Features::default(), ParamTransport::Buffer);
        }
        let block = vec![0xff; kernel.params.size.min(1 << 12) as usize];
        for variant in kernel.variants.iter() {
            if let Code::Text(text) = &variant.code {
                drop(overrides::settled(text, &kernel.constants));
            }
            for map in variant.tensor_maps.iter() {
                let _ = map.shape(&kernel.params, &block);
            }
        }
        let values: Vec<_> = kernel.constants.iter().map(|constant| (constant.name.as_ref(), constant.high)).collect();
        let special = kernel.specialise(&values);
        if let Some(device) = device() {
            let kernels: Vec<_> = special.into_iter().chain([kernel]).map(Arc::new).collect();
            for kernel in kernels {
                let _ = device.backend().load(&[kernel], ParamTransport::Value);
            }
        }
        Corpus::Keep
    }
);
