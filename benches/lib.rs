//! Nothing: this package holds benches (`cargo bench -p trefoil-benches`).
