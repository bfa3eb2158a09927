#!/usr/bin/env bash
# Runs the kernels of examples/browser in a headless Chromium, on its software GPU, and prints which were right.
#
# It first installs what is missing (scripts/setup-tools.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-tools.sh
mkdir -p target
cargo run --quiet -p trefoil-browser -- target/browser-cases.json
node examples/browser/drive.mjs target/browser-cases.json "$(command -v chromium)" .tools/web
