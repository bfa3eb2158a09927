#!/usr/bin/env python3
"""Compiles every .cu below a folder to a cubin with NVRTC; needs no GPU.

Every file is compiled for sm_90a, and those that say what is done elsewhere for sm_80 too, and for sm_75 if they have no products of matrices: a text that asks for no architecture is the same program on all, and one that finds its parameters in a buffer asks as that which is given them.

usage: scripts/check-cuda.py DIR [ARCHITECTURE...]

A cubin, not PTX: ptxas, which NVRTC runs for a cubin, refuses things that the PTX stage lets pass, such as more static shared
memory than the architecture has. NVRTC is taken from the folder in TREFOIL_NVRTC, else from .tools/nvrtc (which
scripts/setup-tools.sh fills), else from where the system's loader finds it. Prints each failure with the compiler's log and a
count an architecture; fails if one file fails or if there is none to check.
"""

import ctypes
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

ARCHITECTURES = ["sm_90a", "sm_80", "sm_75"]
# By this word a text tells architectures from each other.
ASKS = b"__CUDA_ARCH"
# The instruction for products of matrices, which begins with sm_80.
MULTIPLIES = b"mma.sync"
# Variants that find their parameters in a buffer, and are as the others in all else.
BUFFERED = ".buffer.cu"
LIBRARY = "libnvrtc.so.13"


def load_nvrtc():
    """The library with the signatures of the calls used here, or an error that says where it was looked for."""
    asked = os.environ.get("TREFOIL_NVRTC")
    fetched = pathlib.Path(__file__).resolve().parent.parent / ".tools" / "nvrtc"
    if asked:
        name = str(pathlib.Path(asked) / LIBRARY)
    elif (fetched / LIBRARY).exists():
        name = str(fetched / LIBRARY)
    else:
        name = LIBRARY
    try:
        if os.path.isabs(name):
            # NVRTC opens its built-in header library by name only: loaded first, it is found whatever the loader's path.
            for part in sorted(pathlib.Path(name).parent.glob("libnvrtc-builtins.so.*")):
                ctypes.CDLL(str(part), mode=ctypes.RTLD_GLOBAL)
        nvrtc = ctypes.CDLL(name)
    except OSError as error:
        sys.exit(f"check-cuda: cannot load NVRTC ({error}); run scripts/setup-tools.sh or set TREFOIL_NVRTC to its folder")
    program, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    texts = ctypes.POINTER(text)
    signatures = {
        "nvrtcVersion": [ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)],
        "nvrtcCreateProgram": [ctypes.POINTER(program), text, text, ctypes.c_int, texts, texts],
        "nvrtcCompileProgram": [program, ctypes.c_int, texts],
        "nvrtcGetProgramLogSize": [program, ctypes.POINTER(size)],
        "nvrtcGetProgramLog": [program, text],
        "nvrtcGetCUBINSize": [program, ctypes.POINTER(size)],
        "nvrtcGetCUBIN": [program, text],
        "nvrtcDestroyProgram": [ctypes.POINTER(program)],
    }
    for function, arguments in signatures.items():
        getattr(nvrtc, function).argtypes = arguments
        getattr(nvrtc, function).restype = ctypes.c_int
    nvrtc.nvrtcGetErrorString.argtypes = [ctypes.c_int]
    nvrtc.nvrtcGetErrorString.restype = text
    return nvrtc


def compile_to_cubin(nvrtc, path, architecture):
    """None if NVRTC makes a cubin of the file, else the reason why not."""

    def message(code):
        return nvrtc.nvrtcGetErrorString(code).decode()

    program = ctypes.c_void_p()
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None)
    if code != 0:
        return message(code)
    try:
        options = [f"--gpu-architecture={architecture}".encode()]
        code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if code != 0:
            length = ctypes.c_size_t()
            if nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(length)) != 0:
                return message(code)
            log = ctypes.create_string_buffer(length.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            return f"{message(code)}\n{log.value.decode(errors='replace').rstrip()}"
        length = ctypes.c_size_t()
        code = nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(length))
        if code != 0:
            return message(code)
        cubin = ctypes.create_string_buffer(length.value)
        code = nvrtc.nvrtcGetCUBIN(program, cubin)
        if code != 0:
            return message(code)
        return None if cubin.raw[:4] == b"\x7fELF" else f"the cubin of {length.value} bytes is no ELF file"
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def wanted(path, asked):
    """The architectures that a file is compiled for: those that are asked for, once each, or those that it may tell from each other."""
    if asked:
        return list(dict.fromkeys(asked))
    newest, *older = ARCHITECTURES
    text = path.read_bytes()
    if path.name.endswith(BUFFERED) or ASKS not in text:
        return [newest]
    return [newest, *(its for its in older if its != "sm_75" or MULTIPLIES not in text)]


def compile_all(nvrtc, jobs):
    """For each file and architecture why there is no cubin, or None; the largest texts first, so that none is left for one thread at the end."""
    ordered = sorted(jobs, key=lambda job: job[0].stat().st_size, reverse=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reasons = pool.map(partial(compile_to_cubin, nvrtc), [path for path, _ in ordered], [its for _, its in ordered])
        return dict(zip(ordered, reasons))


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    if not folder.is_dir():
        print(f"check-cuda: {folder} is not a folder", file=sys.stderr)
        return 2
    files = sorted(folder.rglob("*.cu"))
    nvrtc = load_nvrtc()
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    asked = sys.argv[2:]
    jobs = [(path, architecture) for path in files for architecture in wanted(path, asked)]
    reasons = compile_all(nvrtc, jobs)
    failures = 0
    for architecture in dict.fromkeys(asked or ARCHITECTURES):
        of_it = [path for path, its in jobs if its == architecture]
        failed = [path for path in of_it if reasons[path, architecture] is not None]
        for path in failed:
            print(f"check-cuda: {path} for {architecture}")
            print("\n".join("    " + line for line in reasons[path, architecture].splitlines()))
        print(
            f"check-cuda: {len(of_it) - len(failed)} passed, {len(failed)} failed "
            f"({architecture} cubin, NVRTC {major.value}.{minor.value})"
        )
        failures += len(failed)
    if not files:
        print(f"check-cuda: no .cu below {folder}", file=sys.stderr)
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
