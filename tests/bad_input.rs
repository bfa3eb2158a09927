//! Bad input is an error that names the thing, on every device. What a graph says of it is tested beside the graph.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::{Subject, devices};
use trefoil::device::{DeviceOptions, Limits};
use trefoil::prelude::*;
use trefoil::{Device, DeviceKind, Error};

/// y = 2 x
#[kernel(workgroup(64))]
fn doubled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = 2.0 * x[i];
    }
}

/// The same device, with no more than `limits` says.
fn poorer(device: &Device, limits: impl FnOnce(Limits) -> Limits) -> Device {
    let options = DeviceOptions { at_most: Some(limits(*device.limits())), ..DeviceOptions::default() };
    trefoil::devices::open(device.kind(), &options).unwrap()
}

#[test]
fn a_device_that_is_not_there() {
    for kind in DeviceKind::ALL {
        let options = DeviceOptions { adapter: Some("abacus".to_owned()), ..DeviceOptions::default() };
        let error = trefoil::devices::open(kind, &options).unwrap_err().to_string();
        match trefoil::devices::open(kind, &DeviceOptions::default()) {
            Ok(device) => {
                let expected = format!("no {kind} device is called `abacus`; there are: ");
                assert!(error.starts_with(&expected) && error.contains(&device.properties().name), "{error}");
            }
            // The reason is the driver's to give.
            Err(_) => assert!(error.starts_with(&format!("no {kind} device: ")) && error.len() > 40, "{error}"),
        }
    }
    let error = trefoil::devices::open_by_name("abacus", &DeviceOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "no such device: `abacus` is none of auto, cpu, wgpu, vulkan, cuda");
}

#[test]
fn a_device_is_named_in_any_case_of_its_letters() {
    let opened = |name: &str| trefoil::devices::open_by_name(name, &DeviceOptions::default());
    let kind = |name: &str| opened(name).map(|device| device.kind()).map_err(|error| error.to_string());
    let names = [("vulkan", "Vulkan"), ("cuda", "CUDA"), ("cpu", "Cpu"), ("wgpu", "WGPU"), ("auto", "Auto")];
    for (name, written) in names {
        // A device that is not there is not there under either.
        assert_eq!(kind(written), kind(name), "{written}");
    }
}

#[test]
fn adapters_are_listed_by_kind() {
    for kind in DeviceKind::ALL {
        match (trefoil::devices::adapters(kind), trefoil::devices::open(kind, &DeviceOptions::default())) {
            (Ok(names), Ok(device)) => assert!(names.contains(&device.properties().name), "{kind}: {names:?}"),
            (Err(listed), Err(opened)) => {
                for error in [listed, opened] {
                    assert!(error.to_string().starts_with(&format!("no {kind} device: ")), "{error}");
                }
            }
            (listed, opened) => panic!("{kind}: {listed:?} but {opened:?}"),
        }
    }
}

#[test]
fn an_adapter_of_any_kind_that_is_not_there() {
    let auto = |adapter: &str| {
        let options = DeviceOptions { adapter: Some(adapter.to_owned()), ..DeviceOptions::default() };
        trefoil::devices::open_by_name("auto", &options)
    };
    let error = auto("abacus").unwrap_err().to_string();
    assert!(error.starts_with("no usable device is called `abacus`; there are: "), "{error}");
    for kind in DeviceKind::ALL {
        let Ok(device) = trefoil::devices::open(kind, &DeviceOptions::default()) else { continue };
        let name = &device.properties().name;
        assert!(error.contains(&format!("{kind} 0: ")) && error.contains(name), "{error}");
        // Whichever kind has it.
        assert_eq!(auto(name).unwrap().properties().name, *name);
    }
}

#[test]
fn a_buffer_too_large_for_the_device() {
    for Subject { device, .. } in devices() {
        let poor =
            poorer(&device, |limits| Limits { max_allocation_bytes: 1 << 20, max_binding_bytes: 2048, ..limits });
        let name = &poor.properties().name;
        let error = poor.uninit::<f32>((1 << 18) + 1).unwrap_err().to_string();
        assert_eq!(error, format!("`buffer of 262145 f32` takes 1048580 bytes; {name} allows at most 1048576"));
        let error = poor.uninit::<Vec4<f32>>(usize::MAX).unwrap_err().to_string();
        assert!(error.starts_with("buffer of 18446744073709551615 Vec4<f32> takes "), "{error}");
        // It may be allocated, and not be bound whole.
        let (x, mut y) = (poor.zeros::<f32>(600).unwrap(), poor.zeros::<f32>(8).unwrap());
        let error = poor.run(doubled(&x, &mut y).unwrap().over(8)).unwrap_err().to_string();
        assert_eq!(error, format!("`doubled`: binding `x` takes 2400 bytes; {name} allows at most 2048"));
        // The device goes on.
        poor.run(doubled(x.slice(..8).unwrap(), &mut y).unwrap().over(8)).unwrap();
        assert_eq!(y.read().unwrap(), [0.0; 8]);
    }
}

#[test]
fn a_buffer_of_another_device() {
    for Subject { device, name } in devices() {
        let other = poorer(&device, |limits| limits);
        let (near, mut y) = (device.zeros::<f32>(8).unwrap(), device.zeros::<f32>(8).unwrap());
        let (far, mut far_y) = (other.zeros::<f32>(8).unwrap(), other.zeros::<f32>(8).unwrap());
        let own = device.properties().label();
        let error = device.run(doubled(&far, &mut y).unwrap().over(8)).unwrap_err().to_string();
        assert_eq!(error, format!("argument `x` of kernel `doubled` belongs to another device than {own}"), "{name}");
        let error = device.run(doubled(&near, &mut far_y).unwrap().over(8)).unwrap_err().to_string();
        assert_eq!(error, format!("argument `y` of kernel `doubled` belongs to another device than {own}"), "{name}");
        let error = y.copy_from(&far).unwrap_err().to_string();
        let said = format!("the source of `copy to buffer of 8 f32` belongs to another device than {own}");
        assert_eq!(error, said, "{name}");
        let error = y.slice_mut(..0).unwrap().copy_from(far.slice(8..).unwrap()).unwrap_err();
        assert!(matches!(error, Error::OtherDevice { .. }), "{name}: {error}");
        let error = device.buffer_of::<f32>(far.memory(), 8).unwrap_err().to_string();
        let said = format!("the memory of a buffer of 8 f32 belongs to another device than {own}");
        assert_eq!(error, said, "{name}");
        device.run(doubled(&near, &mut y).unwrap().over(8)).unwrap();
    }
}

#[test]
fn data_of_another_length() {
    for Subject { device, .. } in devices() {
        let mut x = device.zeros::<f32>(8).unwrap();
        let error = x.write(&[0.0; 9]).unwrap_err().to_string();
        assert_eq!(error, "buffer of 8 f32: 9 elements given, 8 expected");
        let error = x.slice(4..9).unwrap_err().to_string();
        assert_eq!(error, "buffer of 8 f32: 5 elements from 4 on are not within its 8 elements");
        assert!(x.slice_mut(9..).is_err());
        let error = x.slice(2..5).unwrap().read_into(&mut [0.0; 2]).unwrap_err().to_string();
        assert_eq!(error, "elements 2..5 of a buffer of 8 f32: 2 elements given, 3 expected");
        let error = x.slice_mut(2..5).unwrap().write(&[0.0; 4]).unwrap_err().to_string();
        assert_eq!(error, "elements 2..5 of a buffer of 8 f32: 4 elements given, 3 expected");
        let y = device.zeros::<f32>(4).unwrap();
        let error = x.copy_from(&y).unwrap_err().to_string();
        assert_eq!(error, "buffer of 8 f32: 4 elements given, 8 expected");
        let error = x.slice_mut(2..5).unwrap().copy_from(&y).unwrap_err().to_string();
        assert_eq!(error, "elements 2..5 of a buffer of 8 f32: 4 elements given, 3 expected");
    }
}

#[test]
fn copies_of_parts_of_words() {
    for Subject { device, name } in devices() {
        let x = device.zeros::<u16>(8).unwrap();
        let mut y = device.zeros::<u16>(8).unwrap();
        let error = y.slice_mut(1..3).unwrap().copy_from(x.slice(..2).unwrap()).unwrap_err().to_string();
        let said = "`copy to elements 1..3 of a buffer of 8 u16`: its destination, 4 bytes from byte 2 on, is not in multiples of 4 bytes";
        assert_eq!(error, said, "{name}");
        for (from, to) in [(0..3, 2..5), (1..3, 2..4), (5..8, 5..8)] {
            let error = y.slice_mut(to).unwrap().copy_from(x.slice(from).unwrap()).unwrap_err().to_string();
            assert!(error.contains("not in multiples of 4 bytes"), "{name}: {error}");
        }
    }
}

#[test]
fn memory_that_is_too_short_for_a_buffer() {
    for Subject { device, name } in devices() {
        let memory = device.zeros::<f32>(5).unwrap().memory().clone();
        let said = |error: Error| error.to_string();
        // What is padded is not there to be read.
        assert_eq!(
            said(device.buffer_of::<f32>(&memory, 6).unwrap_err()),
            "buffer of 6 f32 in memory of 20 bytes: 6 elements from 0 on are not within its 5 elements",
            "{name}"
        );
        assert_eq!(
            said(device.buffer_of::<u64>(&memory, 3).unwrap_err()),
            "buffer of 3 u64 in memory of 20 bytes: 3 elements from 0 on are not within its 2 elements",
            "{name}"
        );
        assert!(matches!(device.buffer_of::<u64>(&memory, usize::MAX), Err(Error::OutOfRange { .. })), "{name}");
        assert_eq!(device.buffer_of::<u64>(&memory, 2).unwrap().read().unwrap(), [0, 0], "{name}");
    }
}

#[test]
fn parts_of_buffers_are_read_and_written() {
    for Subject { device, name } in devices() {
        let mut x = device.buffer(&[0u32, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        x.slice_mut(3..5).unwrap().write(&[30, 40]).unwrap();
        x.slice_mut(8..).unwrap().write(&[]).unwrap();
        assert_eq!(x.slice(2..6).unwrap().read().unwrap(), [2, 30, 40, 5], "{name}");
        let mut two = [9; 2];
        x.slice(6..).unwrap().read_into(&mut two).unwrap();
        assert_eq!(two, [6, 7], "{name}");
        assert!(x.slice(8..).unwrap().read().unwrap().is_empty(), "{name}");
        // More zeros than are written at once.
        let zeros = device.zeros::<u8>((1 << 24) + 3).unwrap();
        assert!(zeros.read().unwrap().iter().all(|byte| *byte == 0), "{name}");
    }
}

#[test]
fn what_is_written_and_bound_twice() {
    for Subject { device, name } in devices() {
        let mut x = device.buffer(&[1.0f32; 64]).unwrap();
        let begun = trefoil::Launch::of(&doubled::KERNEL).read(&x).unwrap();
        let error = begun.write(&mut x).unwrap_err().to_string();
        assert!(
            error.starts_with("kernel `doubled`, argument `y`: ") && error.contains("read as `x`"),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_grid_larger_than_the_device_allows() {
    for Subject { device, .. } in devices() {
        let poor = poorer(&device, |limits| Limits { max_groups: [2, 2, 1], ..limits });
        let name = &poor.properties().name;
        let (x, mut y) = (poor.zeros::<f32>(8).unwrap(), poor.zeros::<f32>(8).unwrap());
        let error = poor.run(doubled(&x, &mut y).unwrap().groups(5)).unwrap_err().to_string();
        assert_eq!(error, format!("kernel `doubled`: a grid of [5, 1, 1] workgroups; {name} allows [2, 2, 1]"));
    }
}
