//! What every device crate needs and must not say twice: the checks of the device interface's rules, the state that all devices
//! keep alike, the choice of an adapter, short waits, threads that wait, and the caches of pipelines in memory and on disk; and devices that fail on request, for tests.

pub mod adapter;
pub mod cache;
pub mod check;
pub mod faults;
pub mod pipelines;
pub mod state;
pub mod threads;
pub mod wait;
