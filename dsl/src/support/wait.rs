//! Waits that are likely to be short.

use std::hint::spin_loop;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use crate::error::Result;

/// How long a wait keeps its core: about what the system takes to wake a thread.
const KEEPS: Duration = Duration::from_micros(50);
/// How long a wait asks again and again before it sleeps: behind that, waking up is less than a tenth of what the wait took.
const ASKS: Duration = Duration::from_millis(1);

/// Asks for a millisecond whether something is done; whether it was. After 50 microseconds any other thread that wants the core gets it between two questions. Where it was not done, sleep.
///
/// # Errors
/// Asking failed.
///
/// ```
/// let mut asked = 0;
/// let done = trefoil_dsl::support::wait::is_soon(|| { asked += 1; Ok(asked == 3) })?;
/// assert!(done && asked == 3);
/// # Ok::<(), trefoil_dsl::error::Error>(())
/// ```
pub fn is_soon(mut is_done: impl FnMut() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        match start.elapsed() {
            waited if waited < KEEPS => spin_loop(),
            waited if waited < ASKS => yield_now(),
            _ => return Ok(false),
        }
    }
}
