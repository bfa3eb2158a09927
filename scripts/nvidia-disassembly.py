#!/usr/bin/env python3
"""What NVIDIA's Vulkan driver makes of kernels: its machine code, out of its own cache.

    export __GL_SHADER_DISK_CACHE=1 __GL_SHADER_DISK_CACHE_PATH=/tmp/cache    # an empty folder
    trefoil bench "matmul f32 4096" --device vulkan
    scripts/nvidia-disassembly.py /tmp/cache /tmp/out [SM90]

Writes `KERNEL.NUMBER.sass` for each pipeline, with what each instruction waits for, and prints what the longest loop of each consists of. Needs `zstd` and CUDA's `nvdisasm`; the driver's cache of other
drivers than 580 may be laid out otherwise.

An instruction's line: its address, the barrier that it sets when it has written (W) or read (R), those that it waits for, and the cycles until the next.
"""

import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

FRAME = b"\x28\xb5\x2f\xfd"
OBJECT = b"NVDANVVM"
# The first section of an object is its code: size and offset, and eight bytes before the first instruction.
SECTION = 0x4C
LEAD = 8


def objects(cache: bytes):
    """The driver's objects in a file of its cache."""
    for frame in re.finditer(re.escape(FRAME), cache):
        data = subprocess.run(["zstd", "-dcq"], input=cache[frame.start() :], capture_output=True).stdout
        if data.startswith(OBJECT):
            yield data


def code_of(data: bytes) -> bytes:
    size, offset = struct.unpack_from("<II", data, SECTION)
    return data[offset + LEAD : offset + LEAD + size]


def name_of(data: bytes) -> str:
    """The entry point's name, which stands by itself with a number of the driver's."""
    found = re.search(rb"\0([a-z][a-z0-9_]{4,})_\d+\0", data)
    return found.group(1).decode() if found else "unnamed"


def control(word: int) -> str:
    bits = word >> 41
    write, read = bits >> 5 & 7, bits >> 8 & 7
    waits = "".join(str(i) for i in range(6) if bits >> 11 >> i & 1)
    sets = ("" if write == 7 else f"W{write}") + ("" if read == 7 else f"R{read}")
    return f"{sets:4} {waits:6} {bits & 15:2}"


def instructions(code: bytes, architecture: str):
    """Address, instruction and control of each."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        text = subprocess.run(["nvdisasm", "-b", architecture, "-hex", file.name], capture_output=True, text=True, check=True)
    listing, last = [], None
    for line in text.stdout.splitlines():
        if found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/", line):
            last = [int(found.group(1), 16), found.group(2), ""]
            listing.append(last)
        elif last and (found := re.match(r"\s+/\* (0x[0-9a-f]{16}) \*/", line)):
            last[2], last = control(int(found.group(1), 16)), None
    return listing


def longest_loop(listing):
    places = {address: i for i, (address, _, _) in enumerate(listing)}
    best = range(0)
    for i, (address, instruction, _) in enumerate(listing):
        if found := re.search(r"\bBRA(?:\.\w+)* (?:!?U?P\d, )?0x([0-9a-f]+)", instruction):
            start = places.get(int(found.group(1), 16))
            if start is not None and listing[start][0] < address and i + 1 - start > len(best):
                best = range(start, i + 1)
    return best


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2])
    architecture = sys.argv[3] if len(sys.argv) > 3 else "SM90"
    out.mkdir(parents=True, exist_ok=True)
    seen = collections.Counter()
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.bin")):
        for data in objects(path.read_bytes()):
            name = name_of(data)
            listing = instructions(code_of(data), architecture)
            lines = [f"{address:05x} {waits} {instruction}\n" for address, instruction, waits in listing]
            (out / f"{name}.{seen[name]}.sass").write_text("".join(lines))
            loop = longest_loop(listing)
            counts = collections.Counter(re.sub(r"^@!?U?P\w+ ", "", listing[i][1]).split()[0] for i in loop)
            registers = max((int(number) for _, text, _ in listing for number in re.findall(r"\bR(\d+)", text)), default=-1) + 1
            most = ", ".join(f"{count} {operation}" for operation, count in counts.most_common(12))
            print(f"{name}.{seen[name]}: {len(listing)} instructions, {registers} registers, a loop of {len(loop)}: {most}")
            seen[name] += 1


main()
