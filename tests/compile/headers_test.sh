#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone, twice included, without a warning.
set -euo pipefail
export compiler=${CXX:-c++}

alone() {
  printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
    "$compiler" -std=c++20 -Wall -Wextra -Wshadow -Wconversion -Werror -I. -isystem /usr/include/eigen3 \
      -fsyntax-only -x c++ - || {
    echo "does not compile alone: $1"
    return 1
  }
}
export -f alone

# A header that lacks an include must be found, else this test finds nothing.
broken=$(mktemp --suffix=.hpp)
trap 'rm -f "$broken"' EXIT
echo 'inline std::string f() { return {}; }' >"$broken"
if alone "$broken" >/dev/null 2>&1; then
  echo "a header without its includes passed"
  exit 1
fi

find sim topologies calib reports kernels/reference kernels/cuda kernels/check kernels/simt kernels/step kernels/bench -name '*.hpp' -not -path 'kernels/bench/cuda/*' -print0 |
  xargs -0 -n 1 -P "$(nproc)" bash -c 'alone "$1"' _
echo "$(find sim topologies calib reports kernels/reference kernels/cuda kernels/check kernels/simt kernels/step kernels/bench -name '*.hpp' -not -path 'kernels/bench/cuda/*' | wc -l) headers compile alone"
