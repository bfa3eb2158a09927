#!/usr/bin/env python3
"""Runs test programs, as many at a time as there are cores, and shows what each said when it has ended.

usage: test-programs.py <MESSAGES | run-tests.py

`cargo test` runs one program after the other, and most have a test at the end for which one core waits. A program gets what Cargo gives it: the folder of its package to stand in, and
the folder's name in CARGO_MANIFEST_DIR. Ends with 1 if a program failed, and names it.
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


def run(program):
    _, name, folder, path = program
    begin = time.monotonic()
    ended = subprocess.run(
        [path],
        cwd=folder,
        env=environment | {"CARGO_MANIFEST_DIR": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    seconds = time.monotonic() - begin
    print(f"-- {os.path.basename(folder)}: {name}, {seconds:.1f} s\n{ended.stdout.rstrip()}", flush=True)
    return ended.returncode


programs = [line.rstrip("\n").split("\t") for line in sys.stdin]
programs = [program for program in programs if program[0] in ("test", "macro")]
if not programs:
    sys.exit("run-tests: no programs were given")
with ThreadPoolExecutor(os.cpu_count()) as several:
    codes = list(several.map(run, programs))
failed = [f"{program[3]} ended with {code}" for program, code in zip(programs, codes) if code]
print(f"-- {len(programs)} programs, {len(failed)} failed", *failed, sep="\n")
sys.exit(1 if failed else 0)
