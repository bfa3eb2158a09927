#!/usr/bin/env bash
# Runs the test suite on a machine with a GPU, with CUDA and the real Vulkan driver required; needs no Rust and no network.
#
# usage: scripts/test-gpu.sh FOLDER... [-- TEST_ARGUMENT...]
#
# Each FOLDER holds parts that scripts/build-gpu-tests.sh made (.carry, or .carry/1 and so on). Parts are kept in
# TREFOIL_STORE (default /tmp/trefoil), so they may come in several calls on one machine: the tests run in the call
# that brings the last one. TEST_ARGUMENTs go to every test binary (a filter, --nocapture).
#
# A device in TREFOIL_REQUIRE_DEVICES (default cpu,wgpu,vulkan,cuda) that cannot be opened fails the tests that would use it.
# Prints the GPU, every binary that it runs with its result, and a count; fails if one fails or if there was none.
# Afterwards the benches, examples and programs lie in the unpacked checkout, whose path is printed, for further commands.
set -euo pipefail

store=${TREFOIL_STORE:-/tmp/trefoil}
say() { echo "test-gpu: $*"; }
die() { echo "test-gpu: $*" >&2; exit 1; }

folders=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    folders+=("$1")
    shift
done
[ "$#" -eq 0 ] || shift
[ "${#folders[@]}" -gt 0 ] || die "usage: scripts/test-gpu.sh FOLDER... [-- TEST_ARGUMENT...]"

# Gather the parts of one pack.
mkdir -p "$store"
pack=
while IFS= read -r -d '' part; do
    name=$(basename "$part")
    [ -z "$pack" ] || [ "${name%%.*}" = "$pack" ] || die "parts of two packs: $pack and ${name%%.*}; build again"
    pack=${name%%.*}
    parts=${name##*.of.}
    # A copy that is cut off has another name, and is made again.
    [ -f "$store/$name" ] || { cp "$part" "$store/$name.new" && mv "$store/$name.new" "$store/$name"; }
done < <(find "${folders[@]}" -name 'trefoil-*.of.*' -print0)
[ -n "$pack" ] || die "no part in ${folders[*]}; scripts/build-gpu-tests.sh makes them"
here=("$store/$pack".*.of."$parts")
if [ "${#here[@]}" -lt "$parts" ]; then
    say "NOTHING RUN YET: ${#here[@]} of $parts parts are here, bring the others to this machine in a further call"
    exit 0
fi

# Unpack them, once.
checkout=$store/$pack
if [ ! -d "$checkout" ]; then
    # What an unpacking that was cut off left.
    rm -rf "$checkout.new"
    mkdir "$checkout.new"
    for ((part = 1; part <= parts; part++)); do
        cat "$store/$pack.$part.of.$parts"
    done | {
        if command -v xz >/dev/null; then xz -dc; else
            python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
        fi
    } | tar -xf - -C "$checkout.new"
    mv "$checkout.new" "$checkout"
fi
# Tests name the files that they read by the path of the checkout that built them.
built_at=$(cat "$checkout/root.txt")
if [ -L "$built_at" ]; then
    ln -sfn "$checkout" "$built_at"
elif [ ! -e "$built_at" ]; then
    mkdir -p "$(dirname "$built_at")"
    ln -s "$checkout" "$built_at"
else
    # A checkout without builds and models gets these.
    for part in .model .onnx target; do
        [ ! -e "$checkout/$part" ] || [ -e "$built_at/$part" ] || ln -s "$checkout/$part" "$built_at/$part"
    done
fi

# Real drivers only: a software Vulkan beside them must not pass for one.
if [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ]; then
    drivers=
    for manifest in /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json \
        /usr/local/*/share/vulkan/icd.d/*.json; do
        [ -f "$manifest" ] || continue
        case "$manifest" in */lvp_icd* | */vk_swiftshader*) continue ;; esac
        drivers=${drivers:+$drivers:}$manifest
    done
    [ -z "$drivers" ] || export VK_DRIVER_FILES=$drivers
    say "Vulkan drivers: ${drivers:-none found in the usual folders}"
fi
libraries=
known=$(ldconfig -p)
[[ $known == *libvulkan.so.1* ]] || libraries=$checkout/lib
if [[ $known != *libnvrtc.so* ]]; then
    for folder in /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 \
        $(python3 -c 'import sys; print(*(f"{p}/nvidia/{d}/lib" for p in sys.path if p for d in ("cu13", "cuda_nvrtc")))' 2>/dev/null); do
        if compgen -G "$folder/libnvrtc.so*" >/dev/null; then
            libraries=${libraries:+$libraries:}$folder
            say "NVRTC: $folder"
            break
        fi
    done
fi
export LD_LIBRARY_PATH=${libraries:+$libraries:}${LD_LIBRARY_PATH:-}
export TREFOIL_REQUIRE_DEVICES=${TREFOIL_REQUIRE_DEVICES-cpu,wgpu,vulkan,cuda}
export INSTA_UPDATE=no INSTA_WORKSPACE_ROOT=$checkout

if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
fi
say "required devices: ${TREFOIL_REQUIRE_DEVICES:-none}"

ran=0
failed=()
while IFS=$'\t' read -r role name package path; do
    [ "$role" = test ] || continue
    ran=$((ran + 1))
    echo
    say "$name ($path)"
    # Tests expect to start in their package's folder, as under cargo.
    if (cd "$checkout/$package" && CARGO_MANIFEST_DIR=$built_at/$package timeout 540 "$checkout/$path" "$@" </dev/null); then
        :
    else
        code=$?
        failed+=("$name")
        say "$name FAILED with status $code"
    fi
done <"$checkout/executables.tsv"

echo
say "unpacked checkout: $checkout"
say "benches and programs: $(awk -F'\t' '$1 != "test" { printf "%s ", $4 }' "$checkout/executables.tsv")"
say "$((ran - ${#failed[@]})) test binaries passed, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}" \
    "(devices: ${TREFOIL_REQUIRE_DEVICES:-any})"
[ "$ran" -gt 0 ] || die "the pack holds no test binary"
[ "${#failed[@]}" -eq 0 ]
