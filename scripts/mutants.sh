#!/usr/bin/env bash
# Writes docs/src/mutants.md: every mistake at every site of the library's and the examples' kernels, and what the checker tells of it. Eight minutes on 16 processors, and as much longer as there are fewer; what it looks at is the same on every machine.
#
# Tests leave what they launch in the checker in target/launches; then the mutants run. TREFOIL_MUTANTS_KEPT=1 takes the launches that are there.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/target/launches
if [ -z "${TREFOIL_MUTANTS_KEPT:-}" ]; then
    rm -rf "$folder"
    TREFOIL_LAUNCHES=$folder cargo test --quiet -p trefoil --features graph --test kernels nothing_is_amiss
    TREFOIL_LAUNCHES=$folder cargo test --quiet -p trefoil-mutants --test examples
fi
cargo run --release -p trefoil-mutants -- "$folder" --to docs/src/mutants.md "$@"
