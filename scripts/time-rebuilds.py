#!/usr/bin/env python3
"""Changes one kernel of each large family of the library, rebuilds, and prints how long that took: the median of three changes.

    scripts/time-rebuilds.py [check|build] [moved]

With `moved` each change also puts a line before everything in the file, so that the compiler finds all kernels of the file changed.

A file is put back as it was, also after an interruption. Other work on the machine counts: what is printed is time on the wall.
"""

import pathlib
import statistics
import subprocess
import sys
import time

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "backends" / "kernels"
# A kernel's file, a piece of the text of that kernel alone, and what takes its place, with a number that no change had before: what was kept of the kernel is of no use.
CHANGES = [
    ("attention/src/tiled.rs", "min(first_row + 8 * ROWS, rows) - 1", "min(first_row + 8 * ROWS, rows) - {n}"),
    ("convolution/src/weights.rs", "if i < ", "if i + {n} < "),
    ("matmul/src/narrow.rs", "(piece % parts)", "((piece + {n}) % parts)"),
    ("norm/src/norms.rs", "norm_rows (f32; own; 4, 8, 16;", "norm_rows (f32; own; 4, 8, {n};"),
    ("reduce/src/floats.rs", "[|a, x, _| a + abs(x.to_f32())]", "[|a, x, _| a + abs(x.to_f32()) * {n}.0]"),
    ("rope/src/lib.rs", "(from + element) / 4", "(from + element + {n}) / 4"),
    ("scan/src/floats.rs", "{ f32, [0.0], [|a, b| a + b]", "{ f32, [0.0], [|a, b| a + b * {n}.0]"),
    ("scatter/src/places.rs", "if i < last.len()", "if i + {n} < last.len()"),
    ("sort/src/radix.rs", "part * SIZE + lane < count", "part * SIZE + lane + {n} < count"),
]


def main() -> int:
    moved = "moved" in sys.argv[1:]
    command = next((word for word in sys.argv[1:] if word != "moved"), "build")

    def rebuild() -> float:
        start = time.monotonic()
        subprocess.run(["cargo", command, "--quiet", "-p", "trefoil-kernels"], check=True)
        return time.monotonic() - start

    rebuild()
    number = 8
    for name, piece, instead in CHANGES:
        path = LIBRARY / name
        text = path.read_text()
        if text.count(piece) != 1:
            print(f"{name}: `{piece}` stands there {text.count(piece)} times, once is expected", file=sys.stderr)
            return 1
        times = []
        try:
            for _ in range(3):
                number += 1
                lines = number - 8 if moved else 0
                path.write_text("//\n" * lines + text.replace(piece, instead.replace("{n}", str(number))))
                times.append(rebuild())
        finally:
            path.write_text(text)
        print(f"{name:28} {statistics.median(times):5.2f} s   ({', '.join(f'{took:.2f}' for took in times)})", flush=True)
        rebuild()
    return 0


if __name__ == "__main__":
    sys.exit(main())
