#!/usr/bin/env bash
# Runs the compiler for scripts/fuzz.sh: naga is built without counters of coverage. It walks over all expressions of a function for each of them, and where each step is counted long kernels take it minutes.
rustc=$1
shift
if [[ " $* " == *" --crate-name naga "* ]]; then
    arguments=()
    for argument; do
        [[ $argument == -C*sancov-module || $argument == -C*-sanitizer-coverage-* ]] || arguments+=("$argument")
    done
    set -- "${arguments[@]}"
fi
exec "$rustc" "$@"
