//! Ops run one by one on the first GPU there is, or else on the CPU: the largest eigenvalue of a symmetric matrix by power iteration, which goes on until the host has seen that it has converged.
//!
//! ```text
//! cargo run --release --example eager --features graph
//! cargo run --release --example eager --features graph,wgpu,vulkan,cuda
//! ```

use std::error::Error;

use trefoil::graph::Eager;
use trefoil::{DeviceOptions, devices};

const SIDE: usize = 512;
/// Products between two looks at the result: they are submitted together.
const STEPS: usize = 10;
/// Looks at the result before it is said not to converge.
const MOST_ROUNDS: usize = 100;
/// The largest eigenvalue of the matrix whose entries are 1 / `SIDE`, with this added on the diagonal, is this and 1.
const DIAGONAL: f32 = 0.5;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let device = devices::open_by_name("auto", &DeviceOptions::default())?;
    let eager = Eager::new(&device);
    let entry = |at: usize| 1.0 / SIDE as f32 + if at / SIDE == at % SIDE { DIAGONAL } else { 0.0 };
    let matrix = eager.tensor(&[SIDE, SIDE], &(0..SIDE * SIDE).map(entry).collect::<Vec<_>>())?;
    let start: Vec<f32> = (0..SIDE).map(|row| if row % 2 == 0 { 1.0 } else { -0.9 }).collect();
    let mut vector = eager.tensor(&[SIDE, 1], &start)?;
    let (mut value, mut rounds) = (0.0f32, 0);
    loop {
        for _ in 0..STEPS {
            let next = eager.matmul(&matrix, &vector)?;
            vector = eager.l2_normalise(&next, &[0], 1e-12)?;
        }
        // Rayleigh's quotient of a vector of length 1: v · (A v).
        let image = eager.matmul(&matrix, &vector)?;
        let quotient = eager.sum(&eager.mul(&vector, &image)?, &[0, 1], false)?;
        let [now] = quotient.read::<f32>()?[..] else { return Err("a sum of several numbers".into()) };
        rounds += 1;
        if (now - value).abs() < 1e-6 * now {
            value = now;
            break;
        }
        value = now;
        if rounds == MOST_ROUNDS {
            return Err(format!("{value} after {rounds} rounds, which does not converge").into());
        }
    }
    let done = eager.statistics();
    println!(
        "{}: {value} after {} products, {} launches in {} batches, {} bytes of memory",
        device.properties().name,
        rounds * STEPS,
        done.launches,
        done.submissions,
        done.pool.held_bytes,
    );
    let wanted = 1.0 + DIAGONAL;
    if (value - wanted).abs() > 1e-4 {
        return Err(format!("the largest eigenvalue is {wanted}, not {value}").into());
    }
    Ok(())
}
