#!/usr/bin/env bash
# Has the PyPI package onnx make its node tests, into .onnx/VERSION. Skips what is there already.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.23.2
folder=.onnx/$version
if [ -s "$folder/cases.json" ]; then
    echo "fetch-onnx-cases: $folder is there"
    exit 0
fi
rm -rf ".onnx/making"
mkdir -p .onnx/making
python3 -m pip install --quiet --disable-pip-version-check --no-compile --target .onnx/making/python "onnx==$version"
PYTHONPATH=$PWD/.onnx/making/python python3 scripts/onnx-cases.py .onnx/making/cases
mkdir -p .onnx
rm -rf "$folder"
mv .onnx/making/cases "$folder"
rm -rf .onnx/making
