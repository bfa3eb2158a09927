//! Buffers between guards, and launches that are run again and again.

use trefoil::dsl::element::Element;
use trefoil::{Buffer, BufferSlice, BufferSliceMut, Device, Dispatch};

use crate::common::Subject;

/// One unit in the last place of a number near 1.
pub const EPSILON: f64 = f32::EPSILON as f64;

/// Elements before and after, which belong to nobody; a multiple of what kernels move at once.
const GUARD: usize = 64;
/// A NaN that no arithmetic gives.
const POISON: u32 = 0x7fc0_dead;
/// How often a result must come out the same.
const TIMES: usize = 200;

/// A slice of a buffer, between poison.
pub struct Held<T: Element> {
    buffer: Buffer<T>,
    length: usize,
}

fn poison<T: Element>() -> T {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice(&[POISON; 64])[..size_of::<T>()])
}

impl<T: Element + PartialEq> Held<T> {
    /// Holds elements for kernels to read.
    pub fn new(device: &Device, elements: &[T]) -> Self {
        let guard = [poison(); GUARD];
        let buffer = device.buffer(&[&guard, elements, &guard].concat()).unwrap();
        Self { buffer, length: elements.len() }
    }

    /// Poison, for kernels to overwrite.
    pub fn output(device: &Device, length: usize) -> Self {
        Self::new(device, &vec![poison(); length])
    }

    /// For a kernel to read.
    pub fn slice(&self) -> BufferSlice<'_, T> {
        self.buffer.slice(GUARD..GUARD + self.length).unwrap()
    }

    /// For a kernel to write.
    pub fn slice_mut(&mut self) -> BufferSliceMut<'_, T> {
        self.buffer.slice_mut(GUARD..GUARD + self.length).unwrap()
    }

    /// The elements; the guards must be as they were.
    pub fn read(&self, about: &str) -> Vec<T> {
        let mut all = self.buffer.read().unwrap();
        let intact = |part: &[T]| part.iter().all(|x| bytemuck::bytes_of(x) == bytemuck::bytes_of(&poison::<T>()));
        assert!(intact(&all[..GUARD]) && intact(&all[GUARD + self.length..]), "{about}: a guard was overwritten");
        all.truncate(GUARD + self.length);
        all.split_off(GUARD)
    }
}

/// 2^24 elements, or as many as a processor that plays a GPU does in little time.
pub fn large(subject: &Subject) -> usize {
    if subject.device.properties().software { 1 << 18 } else { 1 << 24 }
}

/// Runs launches again and again: the bits must be the same each time.
pub fn repeat<T: Element + PartialEq>(device: &Device, launches: &[Dispatch], output: &Held<T>, about: &str) {
    device.run_all(launches.to_vec()).unwrap();
    let first = output.read(about);
    for time in 1..TIMES {
        device.run_all(launches.to_vec()).unwrap();
        let again = output.read(about);
        let same = bytemuck::cast_slice::<T, u8>(&first) == bytemuck::cast_slice::<T, u8>(&again);
        assert!(same, "{about}: run {time} gave something else");
    }
}
