#!/usr/bin/env bash
# Runs the kernels of examples/browser in a headless Chromium, on its software GPU, and prints which were right.
#
# usage: scripts/test-browser.sh [PROGRAM]
#
# PROGRAM is trefoil-browser, if it is built already; else Cargo builds it. First what is missing is installed (scripts/setup-tools.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-tools.sh
mkdir -p target
if [ "$#" -gt 0 ]; then
    "$1" target/browser-cases.json
else
    cargo run --quiet -p trefoil-browser -- target/browser-cases.json
fi
node examples/browser/drive.mjs target/browser-cases.json "$(command -v chromium)" .tools/web
