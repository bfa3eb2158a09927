//! Reading what may be nested in itself from bytes: so deep and no deeper, since bytes can say that there are a thousand blocks within each other, and a stack cannot hold them.

use std::cell::Cell;

use serde::de::{Deserialize, Deserializer, Error};

/// Blocks within each other, or sizes. The front end takes less.
const MOST: usize = 450;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Reads a part of something of its own kind.
pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    let depth = DEPTH.get();
    if depth >= MOST {
        return Err(D::Error::custom("blocks or sizes are nested too deep"));
    }
    DEPTH.set(depth + 1);
    let read = T::deserialize(deserializer);
    DEPTH.set(depth);
    read
}
