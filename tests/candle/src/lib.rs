//! Nothing: a package of its own, so that only its tests build candle.
