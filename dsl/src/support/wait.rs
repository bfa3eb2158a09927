//! Waits that are likely to be short.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use crate::error::Result;

/// How long a wait asks again and again before it sleeps: about what the system takes to wake a thread.
const SPIN: Duration = Duration::from_micros(50);

/// Asks for 50 microseconds whether something is done; whether it was. Where it was not, sleep: the time is spent either way.
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
    while start.elapsed() < SPIN {
        if is_done()? {
            return Ok(true);
        }
        spin_loop();
    }
    Ok(false)
}
