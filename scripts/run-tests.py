#!/usr/bin/env python3
"""Runs test programs, as many at a time as there are cores, and shows what each said when it has ended.

usage: test-programs.py <MESSAGES | run-tests.py [LAUNCHER]

`cargo test` runs one program after the other, and most have a test at the end for which one core waits. A program gets what Cargo gives it: the folder of its package to stand in, and
the folder's name in CARGO_MANIFEST_DIR. LAUNCHER (.tools/bin/with-matrices) runs those programs that have drivers compile many kernels, on a driver that multiplies matrices. Ends with 1
if a program failed, and says at the end once more what the last lines of each were.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

libraries = subprocess.run(["rustc", "--print", "target-libdir"], check=True, capture_output=True, text=True).stdout.strip()
environment = dict(os.environ)
# Tests of macros are linked against the compiler's own library.
environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [environment.get("LD_LIBRARY_PATH"), libraries]))
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
launcher = [os.path.join(root, path) for path in sys.argv[1:]]
# What has drivers compile hundreds of kernels, by folders from the root; it tests kernels and graphs. What the language means, the devices and all else are tested on the system's driver.
launched = {"backends/graph", "conformance", "examples/embed", "examples/kernels", "guide", "tests/candle"}
launched_of_root = {"kernels", "matrices"}
# A program that starts itself would start the launcher; where matrices are multiplied, the products' tests try dozens of ways that a driver compiles for minutes; and the newer driver's division of
# doubles gives zero where less than the smallest normal number divides.
never_launched = {"second_compile", "products", "accuracy"}


def is_launched(name, folder):
    within = os.path.relpath(folder, root)
    return bool(launcher) and (within in launched and name not in never_launched or within == "." and name in launched_of_root)


def run(program):
    _, name, folder, path = program
    begin = time.monotonic()
    matrices = is_launched(name, folder)
    ended = subprocess.run(
        [*(launcher if matrices else []), path],
        cwd=folder,
        env=environment | {"CARGO_MANIFEST_DIR": folder} | ({"TREFOIL_REQUIRE_MATRICES": "wgpu,vulkan"} if matrices else {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    seconds = time.monotonic() - begin
    said = ended.stdout.rstrip()
    print(f"-- {os.path.basename(folder)}: {name}, {seconds:.1f} s\n{said}", flush=True)
    return ended.returncode, said


programs = [line.rstrip("\n").split("\t") for line in sys.stdin]
programs = [program for program in programs if program[0] in ("test", "macro")]
if not programs:
    sys.exit("run-tests: no programs were given")
# The longest first, longest of all first: one that began last would have a core for itself while the others idle.
longest = ["hard_kernels", "products", "reductions", "scans", "onnx", "random_graphs", "kernels", "ui", "convolutions", "attention", "attention_parts", "norms", "fused_kernels", "minilm"]
programs.sort(key=lambda program: longest.index(program[1]) if program[1] in longest else len(longest))
with ThreadPoolExecutor(os.cpu_count()) as several:
    ends = list(several.map(run, programs))
failed = []
for (_, name, folder, path), (code, said) in zip(programs, ends):
    if code:
        last = "\n".join(said.splitlines()[-60:])
        print(f"-- {os.path.basename(folder)}: {name} failed, and ended so:\n{last}")
        failed.append(f"{path} ended with {code}")
print(f"-- {len(programs)} programs, {len(failed)} failed", *failed, sep="\n")
sys.exit(1 if failed else 0)
