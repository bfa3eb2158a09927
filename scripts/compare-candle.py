#!/usr/bin/env python3
"""Times ops on trefoil's CPU device and on candle's, alternately on this machine, and prints the table of ratios.

usage: scripts/compare-candle.py [FILTER..] [--passes N] [--trefoil PROGRAM] [--candle PROGRAM]

Runs the cases of `scripts/bench-candle` (its binary `ops`) whose name contains one of the filters, or all, and those of the same names of
`cargo bench -p trefoil-benches`, or of programs that were built of these. Each pass runs a few cases of one and then of the other, so that a machine
that is busy for a while is so for both. Times are medians of the passes' medians, a ratio is candle's time by ours. Both use as many threads as
RAYON_NUM_THREADS says, or as the machine has.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ["cargo", "bench", "--quiet", "-p", "trefoil-benches", "--no-default-features"]
THEIRS = ["cargo", "run", "--quiet", "--release", "--bin", "ops", "--manifest-path", "scripts/bench-candle/Cargo.toml", "--"]
# Cases that one runs before it is the other's turn.
TURN = 12


def lines(command):
    """What a command prints, a list of lines."""
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


def times(command):
    """The nanoseconds of each case that a command prints."""
    cases = (json.loads(line) for line in lines(command) if line.startswith("{"))
    return {case["case"]: case["median_ns"] for case in cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="a part of a case's name")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="how often both run (3)")
    parser.add_argument("--trefoil", metavar="PROGRAM", help="the bench, built")
    parser.add_argument("--candle", metavar="PROGRAM", help="candle's `ops`, built")
    arguments = parser.parse_args()
    trefoil = [arguments.trefoil] if arguments.trefoil else [*OURS, "--"]
    candle = [arguments.candle] if arguments.candle else THEIRS
    names = lines([*candle, *arguments.filters, "--list"])
    if not names:
        parser.error("no case has such a name")

    passes = []
    for _ in range(arguments.passes):
        ours, theirs = {}, {}
        for turn in range(0, len(names), TURN):
            of_turn = names[turn : turn + TURN]
            ours |= times([*trefoil, *of_turn, "--device", "cpu", "--json"])
            theirs |= times([*candle, *of_turn])
        passes.append((ours, theirs))

    print(f"load {' '.join(f'{load:.2f}' for load in os.getloadavg())}, {os.cpu_count()} threads, {len(passes)} passes\n")
    print("| case | trefoil | candle | ratio |")
    print("|---|---|---|---|")
    ratios = []
    for name in names:
        missing = [who for who, at in (("trefoil", 0), ("candle", 1)) if any(name not in both[at] for both in passes)]
        if missing:
            print(f"| {name} | not run by {' and '.join(missing)} | | |")
            continue
        ours, theirs = (statistics.median(both[at][name] for both in passes) for at in (0, 1))
        ratios.append((theirs / ours, name))
        print(f"| {name} | {ours / 1e6:.3f} ms | {theirs / 1e6:.3f} ms | {theirs / ours:.2f} |")
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
        least, which = min(ratios)
        print(f"\n{len(ratios)} cases: geometric mean {mean:.2f}, least {least:.2f} ({which})")


if __name__ == "__main__":
    main()
