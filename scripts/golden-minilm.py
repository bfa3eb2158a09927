#!/usr/bin/env python3
"""Computes examples/embed/tests/golden/minilm.json: what all-MiniLM-L6-v2 gives for the texts in texts.json beside it.

usage: scripts/golden-minilm.py [--check] [MODEL_DIR]       (default: .model/all-MiniLM-L6-v2)
needs: numpy, tokenizers (python3 -m venv DIR && DIR/bin/pip install numpy tokenizers)

This is an outside reference: it shares nothing with trefoil, follows the architecture (BERT encoder, mean over the tokens,
unit length) and computes in float64 throughout, one text at a time and therefore without padding or mask. A text is cut to 256
tokens, [CLS] and [SEP] included, as the model's authors do. --check recomputes and compares with the file instead of writing it.
"""

import json
import math
import pathlib
import struct
import sys

import numpy
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "examples" / "embed" / "tests" / "golden"
LONGEST = 256
# What the printed digits lose, and how far two BLAS libraries' float64 sums may lie apart.
TOLERANCE = 1e-8


def read_safetensors(path):
    """Every float32 tensor of the file, by name, in float64."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = numpy.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = flat.reshape(entry["shape"]).astype(numpy.float64)
    return tensors


class Encoder:
    """The model's weights and its forward pass over one sequence of token ids."""

    def __init__(self, directory):
        config = json.loads((directory / "config.json").read_text())
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.weights = read_safetensors(directory / "model.safetensors")

    def dense(self, rows, name):
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, rows, name):
        centred = rows - rows.mean(axis=1, keepdims=True)
        variance = numpy.square(centred).mean(axis=1, keepdims=True)
        scaled = centred / numpy.sqrt(variance + self.epsilon)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, rows, name):
        query = self.dense(rows, f"{name}.query")
        key = self.dense(rows, f"{name}.key")
        value = self.dense(rows, f"{name}.value")
        width = rows.shape[1] // self.heads
        result = numpy.empty_like(rows)
        for head in range(self.heads):
            part = slice(head * width, (head + 1) * width)
            scores = query[:, part] @ key[:, part].T / math.sqrt(width)
            weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            result[:, part] = weights @ value[:, part]
        return result

    def forward(self, ids):
        """The last layer's rows, one a token."""
        rows = self.weights["embeddings.word_embeddings.weight"][ids]
        rows = rows + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        rows = rows + self.weights["embeddings.token_type_embeddings.weight"][0]
        rows = self.norm(rows, "embeddings.LayerNorm")
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}"
            attended = self.dense(self.attention(rows, f"{name}.attention.self"), f"{name}.attention.output.dense")
            rows = self.norm(rows + attended, f"{name}.attention.output.LayerNorm")
            inner = gelu(self.dense(rows, f"{name}.intermediate.dense"))
            rows = self.norm(rows + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return rows

    def embed(self, ids):
        pooled = self.forward(ids).mean(axis=0)
        return pooled / math.sqrt(float(pooled @ pooled))


def gelu(x):
    """The exact form, by the error function."""
    erf = numpy.frompyfunc(math.erf, 1, 1)
    return x * (0.5 + 0.5 * erf(x * math.sqrt(0.5)).astype(numpy.float64))


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    directory = pathlib.Path(arguments[0]) if arguments else ROOT / ".model" / "all-MiniLM-L6-v2"
    encoder = Encoder(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)

    entries = []
    for text in json.loads((GOLDEN / "texts.json").read_text()):
        ids = tokenizer.encode(text).ids
        embedding = [float(f"{component:.9g}") for component in encoder.embed(ids)]
        entries.append({"text": text, "tokens": len(ids), "embedding": embedding})

    path = GOLDEN / "minilm.json"
    if "--check" in sys.argv[1:]:
        stored = json.loads(path.read_text())
        if [(e["text"], e["tokens"]) for e in stored] != [(e["text"], e["tokens"]) for e in entries]:
            print("golden-minilm: the texts or their token counts differ from the file")
            return 1
        pairs = [(e["embedding"], s["embedding"]) for e, s in zip(entries, stored)]
        worst = max(float(numpy.abs(numpy.subtract(a, b)).max()) for a, b in pairs)
        print(f"golden-minilm: {len(entries)} texts, largest difference {worst:.3g}")
        return 0 if worst <= TOLERANCE else 1
    with path.open("w") as file:
        # One text a line, so that a change shows as the lines of the texts concerned.
        lines = (json.dumps(entry, ensure_ascii=False) for entry in entries)
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
    for entry in entries:
        print(f"{entry['tokens']:4d} tokens  {entry['text'][:60]!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
