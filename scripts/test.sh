#!/usr/bin/env bash
# Runs every test that needs no GPU: the README's second command. Half an hour to an hour on two cores the first time.
#
# It first installs what is missing (scripts/setup-tools.sh, scripts/fetch-model.sh, scripts/fetch-onnx-cases.sh), so that a fresh Debian 12 with Rust needs
# nothing else. Vulkan and wgpu run on lavapipe, a Vulkan driver for the CPU (the devices' own tests on Debian's, those that have it compile many kernels on a newer one), unless
# VK_ICD_FILENAMES or VK_DRIVER_FILES names another driver. CUDA C is compiled with NVRTC, and that of random kernels run on the CPU (random/src/fibers): scripts/test-gpu.sh runs all of it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup-tools.sh
scripts/fetch-model.sh
scripts/fetch-onnx-cases.sh

launcher=()
if [ -z "${VK_ICD_FILENAMES:-}${VK_DRIVER_FILES:-}" ]; then
    # A newer lavapipe multiplies matrices, and compiles a kernel in a third of the time.
    launcher=(.tools/bin/with-matrices)
    for driver in /usr/share/vulkan/icd.d/lvp_icd*.json; do
        [ ! -f "$driver" ] || export VK_ICD_FILENAMES=$driver
    done
fi
# lavapipe spends most of a first run in its compiler: without optimisation passes that takes half the time, and kernels run hardly longer.
export GALLIVM_PERF=${GALLIVM_PERF-nopt}
export LD_LIBRARY_PATH=$PWD/.tools/nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A device in this list that cannot be opened is a failure, where a test would otherwise pass it over.
export TREFOIL_REQUIRE_DEVICES=${TREFOIL_REQUIRE_DEVICES-cpu,wgpu,vulkan}
# What a second build would reuse takes gigabytes beside each program, and there is no second build here.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL-0}
# A snapshot that differs is a failure, never an update.
export INSTA_UPDATE=no

features=(--features trefoil/wgpu,trefoil/vulkan,trefoil/cuda)

# Cargo for this workspace, which lints what it checks as `cargo clippy` would, and shares what it builds with the other steps. Kernels are compiled once here, in
# seconds, where optimising the macros for many such builds takes minutes. Tests that call Cargo do so without this.
checked() {
    RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/lint-what-is-checked.sh CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
        CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL=1 "$@"
}
step() {
    local begin=$SECONDS
    echo; echo "== $*"; "$@"
    echo "== $((SECONDS - begin)) s"
}

step cargo fmt --all --check
step checked cargo check --quiet --workspace --all-targets "${features[@]}"
# Fuzzing has a workspace of its own, whose list of packages follows this one's: where it does not, nothing there is built.
step cargo update --quiet --workspace --locked --manifest-path fuzz/Cargo.toml
echo; echo "== cargo test --workspace ${features[*]} --no-run"
programs=$(checked cargo test --workspace "${features[@]}" --no-run --message-format=json-render-diagnostics | scripts/test-programs.py)
step scripts/run-tests.py "${launcher[@]}" <<<"$programs"
# Examples in the documentation, by a part of their names: with `--doc` Cargo would build most crates again.
step checked cargo test --quiet --workspace "${features[@]}" -- '(line '
# Asked for examples, Cargo counts in what tests need, as above: without them it would build most crates again, with other features. Programs must be named then: all but those that have no
# documentation, or a library of their name beside them, whose page they would overwrite.
documented=(--lib --examples $(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    programs = {target["name"] for target in package["targets"] if target["kind"] == ["bin"] and target["doc"]}
    libraries = {target["name"] for target in package["targets"] if target["kind"][0] in ("lib", "proc-macro")}
    print(*(f"--bin={name}" for name in sorted(programs) if name.replace("-", "_") not in libraries))'))
step checked env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps "${documented[@]}" "${features[@]}"
program() { awk -F'\t' -v name="$1" '$1 == "program" && $2 == name { print $4 }' <<<"$programs"; }
# What the command line writes, judged by the newest spirv-val, by NVRTC and by Tint.
rm -rf target/emitted
step "$(program trefoil)" emit --all --out target/emitted
step scripts/check-spirv.sh target/emitted
step scripts/check-cuda.py target/emitted
step scripts/check-wgsl.mjs target/emitted
step scripts/test-browser.sh "$(program trefoil-browser)"
echo
echo "== all passed (devices: $TREFOIL_REQUIRE_DEVICES)"
