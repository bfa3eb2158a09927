#!/usr/bin/env bash
# NVIDIA's compute-sanitizer over the tests of the library's kernels: each of its four tools, one test at a time, on a CUDA device. Two minutes on one H200.
#
#     scripts/sanitize.sh [PROGRAM..]
#
# One at a time: beside another program on the same GPU, initcheck tells of reads of which it does not tell alone.
#
# Without test programs it builds `tests/kernels`, in which every kernel is launched in every way that it has. Tests of the interpreter are left out: they launch nothing on a device.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
programs=("$@")
if [ ${#programs[@]} = 0 ]; then
    # A build that fails ends the script here.
    built=$(cargo test --quiet -p trefoil --features graph,cuda --test kernels --no-run --message-format=json | scripts/test-programs.py)
    mapfile -t programs < <(cut -f4 <<<"$built")
fi
# Launches of other drivers are not looked at, and take their time.
export TREFOIL_REQUIRE_DEVICES=cuda VK_DRIVER_FILES=/nonexistent
for program in "${programs[@]}"; do
    for tool in memcheck racecheck initcheck synccheck; do
        echo "$program: $tool"
        "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 1 \
            "$program" --test-threads 1 --skip mutants --skip nothing_is_amiss
    done
done
