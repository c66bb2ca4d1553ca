#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults planted in the kernels' source, one at a time: each must be found by the check of its
kernel on the SIMT shim. The libraries come in $SIMT_LINK, from the build."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = "kernels/cuda"


class Fault(typing.NamedTuple):
    name: str
    file: str      # where it is planted
    unit: str      # what is compiled
    check: str     # what must find it
    right: str
    wrong: str


FAULTS = [
    Fault("missing barrier after a tile's mask is loaded", "tile.cuh", "local_pass.cu", "accumulate",
          "    tile.before[2 * threadIdx.x + 1] = before + count;\n  }\n  __syncthreads();\n",
          "    tile.before[2 * threadIdx.x + 1] = before + count;\n  }\n"),
    Fault("missing barrier between two uses of shared sums", "tile.cuh", "select.cu", "select",
          "    result.total += sums.of[i];\n  }\n  __syncthreads();\n",
          "    result.total += sums.of[i];\n  }\n"),
    Fault("missing barrier before the next tile", "norm.cu", "norm.cu", "norms",
          "    __syncthreads();\n  }\n", "  }\n"),
    Fault("rank off by one", "tile.cuh", "update.cu", "scatter_adams",
          "word & ((1U << shift) - 1U)", "word & ((2U << shift) - 1U)"),
    Fault("lost tail", "tile.cuh", "local_pass.cu", "gather",
          "static_cast<unsigned>(end < kPerThread ? end : kPerThread)",
          "static_cast<unsigned>(end < kPerThread ? 0 : kPerThread)"),
    Fault("divergent shuffle", "select.cu", "select.cu", "select",
          "  std::uint32_t word = bits <<", "  if (bits == 0) return;\n  std::uint32_t word = bits <<"),
    Fault("barrier that half the block never reaches", "select.cu", "select.cu", "select",
          "  if (state.all != 0) return;\n  constexpr", "  if (threadIdx.x > 99) return;\n  constexpr"),
    Fault("one tie too many", "select.cu", "select.cu", "select",
          "state.wanted - before : 0", "state.wanted - before + 1 : 0"),
    Fault("ties of the chunk before forgotten", "select.cu", "select.cu", "select",
          "i < chunk.earlier", "i + 1 < chunk.earlier"),
    Fault("missing atomic in a histogram", "select.cu", "select.cu", "select of bf16 scores",
          "atomicAdd(&bins.count[score >> a.shift & ((1U << a.bits) - 1U)], 1U)",
          "bins.count[score >> a.shift & ((1U << a.bits) - 1U)] += 1U"),
    Fault("missing atomic in a word of two pieces", "select.cu", "select.cu", "select",
          "atomicOr(&a.mask[element / 32], word)", "a.mask[element / 32] |= word"),
    Fault("unaligned access of four", "tile.cuh", "local_pass.cu", "accumulate",
          "% (4 * sizeof(T)) == 0", "% (4 * sizeof(T)) != 99"),
    Fault("read beyond the end", "masks.cu", "masks.cu", "masks",
          "byte * 8 < shift + count", "byte < 5"),
    Fault("a scratch value never written", "masks.cu", "masks.cu", "masks",
          "if (threadIdx.x == 0) a.scratch[blockIdx.x] = total",
          "if (threadIdx.x == 0 && blockIdx.x > 0) a.scratch[blockIdx.x] = total"),
    Fault("old moment not cleared", "update.cu", "update.cu", "scatter_adams",
          "      moment.at[i] = 0;\n", ""),
    Fault("gradient not clipped", "update.cu", "update.cu", "write_back",
          "  it.gradient *= clip->factor;\n", ""),
]


def build(folder, unit, include):
    """A program with that unit compiled anew and all others from the libraries."""
    compiler = os.environ.get("CXX", "c++")
    program = folder / "check"
    subprocess.run([compiler, "-std=c++20", "-O0", "-w", "-ffp-contract=off", "-fsanitize=thread",
                    *include, f"-I{ROOT}", "-x", "c++", "-c", "-o", folder / "unit.o", unit],
                   check=True)
    objects, *libraries = os.environ["SIMT_LINK"].split("|")
    subprocess.run([compiler, "-o", program, objects, folder / "unit.o", *libraries], check=True)
    return program


def outcome(fault):
    """What the check says of the faulty kernel, None when it finds nothing."""
    source = (ROOT / KERNELS / fault.file).read_text(encoding="utf-8")
    if source.count(fault.right) != 1:
        return None, f"{fault.file} has {source.count(fault.right)} places like it, not one"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / KERNELS).mkdir(parents=True)
        # All of them, so that an include finds the faulty one first.
        for path in (ROOT / KERNELS).glob("*.cu*"):
            (folder / KERNELS / path.name).write_text(path.read_text(encoding="utf-8"))
        (folder / KERNELS / fault.file).write_text(source.replace(fault.right, fault.wrong))
        program = build(folder, folder / KERNELS / fault.unit, [f"-I{folder}"])
        run = subprocess.run([program, fault.check], capture_output=True, text=True, timeout=120)
    if run.returncode == 0:
        return None, "not found"
    if run.returncode != 1:
        return None, f"exit code {run.returncode}"
    return run.stdout.strip(), ""


def control():
    """The same way of building finds nothing where nothing is wrong."""
    with tempfile.TemporaryDirectory() as name:
        program = build(pathlib.Path(name), ROOT / KERNELS / "select.cu", [])
        return subprocess.run([program, "select"], capture_output=True, text=True, timeout=120)


def main():
    missed = 0
    clean = control()
    if clean.returncode != 0:
        print(f"a right kernel is found faulty: {clean.stdout.strip()}")
        missed += 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for fault, (found, why) in zip(FAULTS, pool.map(outcome, FAULTS)):
            print(f"{fault.name}: {found if found else 'MISSED, ' + why}")
            missed += 0 if found else 1
    print(f"{len(FAULTS)} faults, {missed} problems")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
