//! The product of matrices of halves from tiles, where a device has the memory for it; elsewhere it is the other product.

use trefoil::DeviceKind;
use trefoil_example_kernels::matmul_tiles::{has_room, matmul};

use crate::common::devices;
use crate::matmul_f16::check;

#[test]
fn products() {
    for subject in devices() {
        let software = subject.device.properties().software || subject.device.kind() == DeviceKind::Cpu;
        let sizes = [[130, 260, 65], [1, 1, 1], [16, 16, 16], [127, 129, 33], [128, 256, 320], [129, 300, 500]];
        assert!(has_room(&subject.device) || subject.device.kind() != DeviceKind::Cpu);
        // Without room it is the other product, whose sizes are tested there.
        for size in if has_room(&subject.device) { &sizes[..] } else { &sizes[..1] } {
            check(&subject, *size, matmul);
        }
        if !software {
            check(&subject, [1000, 1048, 520], matmul);
        }
    }
}
