//! The product of matrices of halves from tiles, where a device has the memory for it; elsewhere it is the other product.

use trefoil::DeviceKind;
use trefoil_example_kernels::matmul_tiles::{has_room, matmul};

use crate::common::devices;
use crate::matmul_f16::check;

#[test]
fn products() {
    for subject in devices() {
        let software = subject.device.properties().software || subject.device.kind() == DeviceKind::Cpu;
        assert!(has_room(&subject.device) || subject.device.kind() != DeviceKind::Cpu);
        for size in [[1, 1, 1], [16, 16, 16], [127, 129, 33], [130, 260, 65], [128, 256, 320], [129, 300, 500]] {
            check(&subject, size, matmul);
        }
        if !software {
            check(&subject, [1000, 1048, 520], matmul);
        }
    }
}
