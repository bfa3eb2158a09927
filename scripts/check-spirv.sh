#!/usr/bin/env bash
# Validates every .spv below a folder for Vulkan 1.3 with the newest spirv-val (scripts/setup-tools.sh installs it).
#
# usage: scripts/check-spirv.sh DIR
#
# Prints each failure with its message and a count; fails if one file fails or if there is none to check.
set -euo pipefail
[ "$#" -eq 1 ] || { echo "usage: scripts/check-spirv.sh DIR" >&2; exit 2; }
[ -d "$1" ] || { echo "check-spirv: $1 is not a folder" >&2; exit 2; }
validator=$(cd "$(dirname "$0")/.." && pwd)/.tools/bin/spirv-val
[ -x "$validator" ] || { echo "check-spirv: no $validator; run scripts/setup-tools.sh" >&2; exit 2; }

# Prints a word for each file, behind what the validator says against it.
check() {
    local output
    if output=$("$1" --target-env vulkan1.3 "$2" 2>&1); then
        echo passed
    else
        printf 'check-spirv: %s\n%s\nfailed\n' "$2" "$(sed 's/^/    /' <<<"$output")"
    fi
}
export -f check
results=$(find "$1" -name '*.spv' -print0 | sort -z | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'check "$@"' check "$validator")
passed=$(grep -cx passed <<<"$results" || true)
failed=$(grep -cx failed <<<"$results" || true)
grep -vxE 'passed|failed' <<<"$results" || true

version=$("$validator" --version)
echo "check-spirv: $passed passed, $failed failed (${version%%$'\n'*}, vulkan1.3)"
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || { echo "check-spirv: no .spv below $1" >&2; exit 1; }
