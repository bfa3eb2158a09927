#!/usr/bin/env bash
# Builds what scripts/test-gpu.sh runs on a GPU machine that has no Rust and no network, and packs it into .carry.
#
# usage: scripts/build-gpu-tests.sh [--without-model]
#
# Packed is the part of this checkout that tests need at run time, under the paths that are compiled into them: the test and bench
# binaries, examples and programs (release, stripped), the tracked files, the model from .model, ONNX's tests from .onnx, and the Vulkan loader, which some
# GPU machines lack. Left out, and printed: test binaries without a test, and those that need a compiler to run.
#
# The model's weights do not compress (91 MB, 81 MB by xz -9), and ways to hand files to a machine often stop at 64 MiB. So the
# pack is cut into parts of at most 50 MB, .carry/1, .carry/2 and so on: take them over in one go or one after the other and
# call scripts/test-gpu.sh on each; it keeps the parts that it has seen, and runs when all are there. --without-model makes one small part;
# tests that need the model then fail, so it serves only for timings and for kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
carry=$root/.carry
part_limit=50000000
with_model=yes
case "${1:-}" in
    "") ;;
    --without-model) with_model=no ;;
    *) echo "usage: scripts/build-gpu-tests.sh [--without-model]" >&2; exit 2 ;;
esac
# Their tests call cargo or rustc, or compare text that is the same on every machine and that scripts/test.sh compares already.
needs_compiler=(ui emitted cpu)

say() { echo "build-gpu-tests: $*"; }

[ "$with_model" = no ] || scripts/fetch-model.sh
scripts/fetch-onnx-cases.sh

say "building"
messages=$(mktemp)
stage=$(mktemp -d)
trap 'rm -rf "$messages" "$stage"' EXIT
options=(--release --workspace --features trefoil/wgpu,trefoil/vulkan,trefoil/cuda --message-format=json-render-diagnostics)
cargo test --no-run --lib --bins --tests --benches "${options[@]}" >"$messages"
# `cargo test` builds programs as tests alone.
cargo build --bins --examples "${options[@]}" >>"$messages"

# Tests of macros are linked against the compiler's own library.
scripts/test-programs.py <"$messages" | grep -v '^macro' >"$stage/executables"

pack=$stage/pack
mkdir -p "$pack"
while IFS=$'\t' read -r role name package path; do
    case "$path" in
        "$root"/*) ;;
        *) echo "build-gpu-tests: $path lies outside $root; unset CARGO_TARGET_DIR" >&2; exit 1 ;;
    esac
    if [ "$role" = test ]; then
        if [[ " ${needs_compiler[*]} " == *" $name "* ]]; then
            say "left out, needs a compiler: $name"
            continue
        fi
        listing=$(cd "$package" && timeout 60 "$path" --list) ||
            { echo "build-gpu-tests: $path --list failed" >&2; exit 1; }
        if ! grep -q ': test$' <<<"$listing"; then
            say "left out, holds no test: $name"
            continue
        fi
    fi
    relative=${path#"$root"/}
    mkdir -p "$pack/$(dirname "$relative")"
    strip -o "$pack/$relative" "$path"
    printf '%s\t%s\t%s\t%s\n' "$role" "$name" ".${package#"$root"}" "$relative" >>"$pack/executables.tsv"
done < <(sort -u "$stage/executables")
[ -s "$pack/executables.tsv" ] || { echo "build-gpu-tests: cargo built no executable" >&2; exit 1; }

git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$pack"
cp -r .onnx "$pack/"
if [ "$with_model" = yes ]; then
    mkdir -p "$pack/.model"
    cp -r .model/all-MiniLM-L6-v2 "$pack/.model/"
fi
mkdir -p "$pack/lib"
loader=$(ldconfig -p | awk '/libvulkan\.so\.1 .*(x86-64|AArch64)/ && !path { path = $NF } END { print path }')
[ -z "$loader" ] || cp -L "$loader" "$pack/lib/libvulkan.so.1"
echo "$root" >"$pack/root.txt"

say "packing $(du -sm "$pack" | cut -f1) MB"
rm -rf "$carry"
mkdir -p "$carry"
tar -C "$pack" -cf - . | xz -6 --threads=0 >"$stage/pack.tar.xz"
size=$(stat -c %s "$stage/pack.tar.xz")
parts=$(((size + part_limit - 1) / part_limit))
id=$(sha256sum "$stage/pack.tar.xz" | cut -c1-12)
split --number="$parts" --numeric-suffixes=1 --suffix-length=2 "$stage/pack.tar.xz" "$stage/part."
for ((part = 1; part <= parts; part++)); do
    mkdir "$carry/$part"
    mv "$stage/part.$(printf %02d "$part")" "$carry/$part/trefoil-$id.$part.of.$parts"
done
say "$(cut -f1 "$pack/executables.tsv" | sort | uniq -c | awk '{ printf "%s%d %s", separator, $1, $2; separator = ", " }')"
say "$((size / 1000000)) MB in $parts part(s): $(echo "$carry"/*/trefoil-*)"
say "on the GPU machine: scripts/test-gpu.sh .carry/1 (then .carry/2 and so on)"
