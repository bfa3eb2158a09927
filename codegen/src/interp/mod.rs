//! The evaluator: runs the IR as the essay in [`crate::ir`] says. It is the living definition of the IR and the CPU's engine for kernels
//! that were built at run time.
