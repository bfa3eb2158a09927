//! ONNX's own node tests, run through trefoil's graph on every device.
//!
//! `scripts/fetch-onnx-cases.sh` has the PyPI package `onnx` make them ([`cases`]). Each becomes a graph ([`import`]), which is compiled and run on a device and gives what the case
//! expects, or fails; or it is unsupported, for a stated reason ([`run`]). What came out, by op and by device, is `docs/src/onnx.md` ([`report`]), which a test holds fresh.
//!
//! The importer knows ONNX and the graph's public methods, and nothing else: what it cannot say with these is unsupported.

pub mod cases;
pub mod import;
pub mod report;
pub mod rows;
pub mod run;
