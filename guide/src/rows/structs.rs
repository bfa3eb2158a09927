//! structs of plain data as elements of buffers

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Something that moves.
#[device]
#[derive(Debug, PartialEq)]
pub struct Particle {
    /// Where it is.
    pub place: Vec2<f32>,
    /// Where it goes.
    pub velocity: Vec2<f32>,
    /// How long it lives.
    pub steps: u32,
    /// Who it is.
    pub id: u32,
}

/// One step of all that live.
#[kernel(workgroup(64))]
pub fn moved(particles: &mut [Particle], time: f32) {
    let i = global_index();
    if i < particles.len() && particles[i].steps > 0 {
        particles[i].place = particles[i].place + particles[i].velocity * time;
        particles[i].steps -= 1;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let particle = |x, steps| Particle { place: Vec2::splat(x), velocity: Vec2::new(2.0, 4.0), steps, id: 7 };
    let mut particles = device.buffer(&[particle(1.0, 3), particle(1.0, 0)])?;
    device.run(moved(&mut particles, 0.5)?.over(2))?;
    let first = Particle { place: Vec2::new(2.0, 3.0), steps: 2, ..particle(1.0, 3) };
    expect(&particles.read()?, &[first, particle(1.0, 0)])
}
