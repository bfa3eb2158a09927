//! Which launches of a list wait for others.

use trefoil_codegen::site::Site;

use super::*;
use crate::buffer::{Buffer, BufferSlice, BufferSliceMut};

fn copy(from: BufferSlice<'_, f32>, to: BufferSliceMut<'_, f32>) -> Dispatch {
    let launch = Launch::of(copy_kernel(1, 4)).read(from).unwrap().write(to).unwrap();
    launch.value(0usize).unwrap().groups(1)
}

/// For each command whether it is a barrier.
fn barriers(device: &Device, dispatches: Vec<Dispatch>) -> Vec<bool> {
    let commands = device.commands(dispatches).unwrap();
    commands.iter().map(|command| matches!(command, Command::Barrier)).collect()
}

#[test]
fn launches_wait_only_for_what_they_share() {
    let (device, _) = device(DeviceKind::Cuda, WIDE);
    let x = device.zeros::<f32>(128).unwrap();
    let (mut y, mut z) = (device.zeros::<f32>(128).unwrap(), device.zeros::<f32>(128).unwrap());
    // What is only read is shared, and so are parts of a buffer that do not overlap.
    let low = copy(x.slice(..).unwrap(), y.slice_mut(..64).unwrap());
    let high = copy(x.slice(..).unwrap(), y.slice_mut(64..).unwrap());
    let from_low = copy(y.slice(..32).unwrap(), z.slice_mut(..).unwrap());
    let of = |dispatches: &[&Dispatch]| barriers(&device, dispatches.iter().map(|&one| one.clone()).collect());
    assert_eq!(of(&[&low, &high]), [false, false]);
    // A read of what was written, a write of what was read, a write of what was written.
    assert_eq!(of(&[&low, &high, &from_low]), [false, false, true, false]);
    assert_eq!(of(&[&from_low, &low]), [false, true, false]);
    assert_eq!(of(&[&low, &low]), [false, true, false]);
    // What lies before a barrier is done.
    assert_eq!(of(&[&low, &from_low, &high]), [false, true, false, false]);
}

#[test]
fn launches_do_not_wait_for_the_buffer_that_they_report_to() {
    let (device, _) = device(DeviceKind::Cuda, WIDE);
    let x = device.zeros::<f32>(4).unwrap();
    let [mut y, mut z, mut reports] = [0; 3].map(|_| device.zeros::<f32>(4).unwrap());
    let of = |sites: Vec<Site>| {
        let bindings = [("x", Access::Read), ("y", Access::Write), ("reports", Access::Write)];
        let bindings = bindings.map(|(name, access)| binding(name, 4, access, 1, None));
        let mut kernel = Kernel::clone(&kernel(GridKind::Linear, bindings.into(), vec![]));
        // Pipelines are told apart by it.
        kernel.hash[15] = u8::from(sites.is_empty());
        kernel.sites = sites.into();
        Arc::new(kernel)
    };
    let (text, values) = (Vec::new().into(), Vec::new().into());
    let site = Site { file: "here.rs".into(), line: 1, column: 1, fails: true, text, values };
    let mut waits = |kernel: &Arc<Kernel>| {
        let mut launch = |to: &mut Buffer<f32>| {
            let bound = Launch::of(kernel.clone()).read(&x).unwrap().write(to).unwrap();
            bound.write(&mut reports).unwrap().groups(1)
        };
        let dispatches = vec![launch(&mut y), launch(&mut z), launch(&mut y)];
        barriers(&device, dispatches)
    };
    // What the author bound counts as ever.
    assert_eq!(waits(&of(vec![site])), [false, false, true, false]);
    // The last binding of a kernel that reports nothing is the author's.
    assert_eq!(waits(&of(vec![])), [false, true, false, true, false]);
}

#[test]
fn a_launch_is_compared_with_a_few_others_at_most() {
    let (device, _) = device(DeviceKind::Cuda, WIDE);
    let x = device.zeros::<f32>(4).unwrap();
    let mut outputs: Vec<_> = (0..200).map(|_| device.zeros::<f32>(4).unwrap()).collect();
    let dispatches = outputs.iter_mut().map(|y| copy((&x).into(), y.into())).collect();
    let commands = barriers(&device, dispatches);
    assert_eq!(commands.iter().filter(|&&is_barrier| is_barrier).count(), 3, "200 launches by 64");
}
