#!/usr/bin/env bash
# Fuzzes each target for so many seconds of processor time, one after the other, and tells what came of it: scripts/fuzz.sh [SECONDS], an hour each by default.
#
# Stable Rust and a C++ compiler are all it needs: it builds what `cargo fuzz run -s none` builds. FORKS=5 runs five processes at once, each for that time, TARGETS="front_end ir_file" those
# targets alone. BINARIES=FOLDER takes the programs from there and builds nothing, for machines without Rust. What was found stays in fuzz/artifacts, inputs that reach new code in fuzz/corpus, and
# a line for each run in fuzz/runs.tsv, of which the sums are told at the end: a later run goes on where an earlier one ended.
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
    (cd fuzz && RUSTC_WRAPPER="$PWD/../scripts/fuzz-rustc.sh" RUSTFLAGS="$coverage" CARGO_INCREMENTAL=0 cargo build --release --locked --target "$host" --target-dir target)
    BINARIES=fuzz/target/$host/release
fi

# What the processes of a command used, of a processor and by the clock, in seconds.
TIMEFORMAT='%U %S %R'
failed=0
# Who ends it sooner gets the figures until then: the fuzzer is told to end, and tells what it did.
running='' stopped=''
# pkill is missing where few programs are installed; a process that has ended has no such file.
interrupt() {
    local children=()
    read -r -a children 2> /dev/null < "/proc/$1/task/$1/children" || true
    [ "${#children[@]}" -eq 0 ] || kill -INT "${children[@]}" 2> /dev/null || true
}
trap 'stopped=1; [ -z "$running" ] || interrupt "$running"' TERM INT
format='%-12s %12s %8s %8s %8s %8s %8s %8s\n'
heading=(target executions seconds "by clock" "per s" edges corpus faults)
# shellcheck disable=SC2059 # The format is the one above.
line() { printf "$format" "$@"; }
line "${heading[@]}"
for target in $targets; do
    [ -z "$stopped" ] || break
    # Kernels with code for every target are long.
    case $target in
        kernel_file) longest=40000 ;;
        cache_file | safetensors) longest=4096 ;;
        *) longest=12000 ;;
    esac
    program=$(realpath "$BINARIES/$target")
    corpus=$work/corpus/$target seeds=$work/corpus/$target-seeds artifacts=$work/artifacts/$target log=$work/artifacts/$target.log
    mkdir -p "$corpus" "$artifacts"
    TREFOIL_SEEDS=$seeds "$program" > "$log" 2>&1 || {
        code=$?
        [ -z "$stopped" ] || break
        echo "fuzz: $program ended with status $code and wrote no seeds:" >&2
        tail -n 40 "$log" >&2
        exit 1
    }
    before=$(find "$artifacts" -type f | wc -l)
    : > "$log"
    executions=0 used=0 clock=0 edges=0
    # Others may use the processor too: what a round lacks is in another one, as long as it takes with the share of before. It reads the corpus again, and so is not too short.
    while [ "$used" -lt "$seconds" ]; do
        left=$((used > 0 ? (seconds - used) * clock / used : seconds)) least=$((seconds / 50 + 1))
        # A fault ends one of its processes, and the others go on. What ends the script may be sent to all that it started.
        { trap : TERM INT
          time "$program" "$corpus" "$seeds" -fork="$forks" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -max_total_time=$((left > least ? left : least)) -timeout=10 \
            -rss_limit_mb=4096 -max_len=$longest -artifact_prefix="$artifacts/" > "$log.round" 2>&1 || true; } 2> "$log.time" &
        running=$!
        # Waiting ends each time that the script is told to, and then there is something to wait for still.
        while kill -0 "$running" 2> /dev/null; do wait "$running" || true; done
        running=
        cat "$log.round" >> "$log"
        last=$(grep -E '^#[0-9]+: cov: ' "$log.round" | tail -n 1 || true)
        read -r ran edges <<< "$(sed -E 's/^#([0-9]+): cov: ([0-9]+) .*/\1 \2/' <<< "${last:-#0: cov: 0 }")"
        read -r round by_clock <<< "$(tail -n 1 "$log.time" | awk -v forks="$forks" '{ printf "%d %d", ($1 + $2) / forks, $3 }')"
        executions=$((executions + ran)) used=$((used + round)) clock=$((clock + by_clock))
        [ "$ran" -gt 0 ] && [ "$round" -gt 0 ] && [ -z "$stopped" ] || break
    done
    rm -f "$log.round" "$log.time"
    faults=$(($(find "$artifacts" -type f | wc -l) - before))
    figures=("$target" "$executions" $((used * forks)) "$clock" $((executions / (used > 0 ? used * forks : 1))) "$edges" "$(find "$corpus" -type f | wc -l)" "$faults")
    line "${figures[@]}"
    (IFS=$'\t'; echo "${figures[*]}") >> "$work/runs.tsv"
    # A target that ran nothing has failed too.
    if [ "$faults" -gt 0 ] || [ "$executions" -eq 0 ]; then
        failed=1
        grep -E "panicked at|ERROR: libFuzzer" -A 2 "$log" | head -n 40 || true
    fi
done
if [ "$(wc -l < "$work/runs.tsv")" -gt "$(wc -w <<< "$targets")" ]; then
    echo "all runs so far:"
    while IFS=$'\t' read -r -a figures; do line "${figures[@]}"; done < <(awk -F'\t' -v OFS='\t' '
        !($1 in edges) { order[++count] = $1 }
        { executions[$1] += $2; seconds[$1] += $3; clock[$1] += $4; edges[$1] = $6; corpus[$1] = $7; faults[$1] += $8 }
        END { for (i = 1; i <= count; i++) { t = order[i]; print t, executions[t], seconds[t], clock[t], int(executions[t] / (seconds[t] ? seconds[t] : 1)), edges[t], corpus[t], faults[t] } }' "$work/runs.tsv")
fi
exit $failed
