#!/usr/bin/env bash
# Fuzzes each target for so many seconds, one after the other, and tells what came of it: scripts/fuzz.sh [SECONDS], an hour each by default.
#
# Stable Rust and a C++ compiler are all it needs: it builds what `cargo fuzz run -s none` builds. FORKS=5 runs five processes at once, TARGETS="front_end ir_file" those alone.
# BINARIES=FOLDER takes the programs from there and builds nothing, for machines without Rust. What was found stays in fuzz/artifacts, and inputs that reach new code in fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-3600}
forks=${FORKS:-1}
targets=${TARGETS:-front_end ir_file kernel_file launch_file cache_file safetensors}
work=${WORK:-$PWD/fuzz}

if [ -z "${BINARIES:-}" ]; then
    host=$(rustc -vV | sed -n 's/^host: //p')
    coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
    coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
    # With a target given, macros and build scripts are built without it.
    (cd fuzz && RUSTFLAGS="$coverage" CARGO_INCREMENTAL=0 cargo build --release --locked --target "$host" --target-dir target)
    BINARIES=fuzz/target/$host/release
fi

failed=0
printf '%-12s %12s %8s %8s %8s %8s\n' target executions "per s" edges corpus faults
for target in $targets; do
    # Kernels with code for every target are long.
    case $target in
        kernel_file) longest=40000 ;;
        cache_file | safetensors) longest=4096 ;;
        *) longest=12000 ;;
    esac
    program=$(realpath "$BINARIES/$target")
    corpus=$work/corpus/$target seeds=$work/corpus/$target-seeds artifacts=$work/artifacts/$target log=$work/artifacts/$target.log
    mkdir -p "$corpus" "$artifacts"
    TREFOIL_SEEDS=$seeds "$program" > /dev/null 2>&1
    before=$(find "$artifacts" -type f | wc -l)
    # A fault ends one of its processes, and the others go on.
    "$program" "$corpus" "$seeds" -fork="$forks" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=4096 -max_len=$longest -artifact_prefix="$artifacts/" > "$log" 2>&1 || true
    faults=$(($(find "$artifacts" -type f | wc -l) - before))
    last=$(grep -E '^#[0-9]+: cov: ' "$log" | tail -n 1 || true)
    read -r runs edges <<< "$(sed -E 's/^#([0-9]+): cov: ([0-9]+) .*/\1 \2/' <<< "${last:-#0: cov: 0 }")"
    time=$(sed -nE 's/.* time: ([0-9]+)s.*/\1/p' <<< "$last")
    printf '%-12s %12s %8s %8s %8s %8s\n' "$target" "$runs" "$((runs / (${time:-0} > 0 ? ${time:-0} : 1)))" "$edges" "$(find "$corpus" -type f | wc -l)" "$faults"
    # A target that ran nothing has failed too.
    if [ "$faults" -gt 0 ] || [ "$runs" -eq 0 ]; then
        failed=1
        grep -E "panicked at|ERROR: libFuzzer" -A 2 "$log" | head -n 40 || true
    fi
done
exit $failed
