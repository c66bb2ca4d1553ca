#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel spills registers or keeps a stack frame on sm_90, says ptxas; prints the registers of
each. Exit code 77 without nvcc."""

import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def resources(nvcc, unit, *options):
    """(mangled name, registers, bytes of stack and spills) of each kernel of a unit."""
    run = subprocess.run([nvcc, "-cubin", "-arch=sm_90", "-std=c++20", "--fmad=false", "-O3",
                          "-Xptxas", "-v", *options, f"-I{ROOT}", "-o", "/dev/null", str(unit)],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{unit.name} does not compile:\n{run.stderr}")
    rows, name, frame = [], None, 0
    for line in run.stderr.splitlines():
        if match := ENTRY.search(line):
            name, frame = match.group(1), 0
        elif match := FRAME.search(line):
            frame = max(frame, sum(int(count) for count in match.groups()))
        elif name and (match := REGISTERS.search(line)):
            rows.append((name, int(match.group(1)), frame))
            name = None
    return rows


def readable(name):
    shown = subprocess.run(["c++filt", name], capture_output=True, text=True)
    text = shown.stdout.strip() if shown.returncode == 0 else name
    text = re.sub(r"scapesim::(kernels|reference)::|\(anonymous namespace\)::|^void ", "", text)
    return text.split("(")[0]


def main():
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("no nvcc")
        return SKIPPED
    units = sorted((ROOT / "kernels/cuda").glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = [row for part in pool.map(lambda unit: resources(nvcc, unit), units) for row in part]
    for name, registers, frame in rows:
        print(f"{registers:4d} registers, {frame} bytes of stack and spills  {readable(name)}")
    written = sum(unit.read_text(encoding="utf-8").count("__global__") for unit in units)
    faulty = sum(frame > 0 for _, _, frame in rows)
    print(f"{len(rows)} kernels of {written} in the source, {faulty} with a stack frame or spills")
    # With too few registers ptxas must spill, and this test must see it.
    starved = resources(nvcc, ROOT / "kernels/cuda/update.cu", "-maxrregcount=16")
    if not any(frame > 0 for _, _, frame in starved):
        print("a kernel with 16 registers is not seen to spill")
        return 1
    return 1 if faulty or len(rows) < written else 0


if __name__ == "__main__":
    sys.exit(main())
