//! Waits that are likely to be short.

use std::hint::spin_loop;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use crate::error::Result;

/// How long a wait keeps its core: about what the system takes to wake a thread.
pub const BRIEF: Duration = Duration::from_micros(50);
/// Behind which waking up is less than a tenth of what the wait took.
pub const LONG: Duration = Duration::from_millis(1);

/// Asks for so long whether something is done; whether it was. Behind [`BRIEF`] any other thread that wants the core gets it between two questions. Where it was not done, sleep.
///
/// # Errors
/// Asking failed.
///
/// ```
/// use trefoil_dsl::support::wait::LONG;
///
/// let mut asked = 0;
/// let done = trefoil_dsl::support::wait::is_soon(LONG, || { asked += 1; Ok(asked == 3) })?;
/// assert!(done && asked == 3);
/// # Ok::<(), trefoil_dsl::error::Error>(())
/// ```
pub fn is_soon(within: Duration, mut is_done: impl FnMut() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        let waited = start.elapsed();
        if waited >= within {
            return Ok(false);
        }
        if waited < BRIEF { spin_loop() } else { yield_now() }
    }
}
