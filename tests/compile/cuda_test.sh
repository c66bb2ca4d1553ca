#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SCAPESIM_CUDA: OFF and AUTO configure everywhere; ON only where a CUDA compiler is, and says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

failures=0
# Configures with a value and a PATH: `works` or `fails`, and what the output must hold.
expect() {
  local result=fails
  if PATH=$2 CUDACXX='' cmake -G Ninja -S . -B "$folder/build" -DSCAPESIM_CUDA="$1" \
    -DSCAPESIM_TESTS=OFF -DCMAKE_CXX_COMPILER="${CXX:-c++}" --fresh >"$folder/log" 2>&1; then
    result=works
  fi
  if [[ $result == "$3" ]] && grep -q "$4" "$folder/log"; then
    echo "ok: $1 $result: $4"
  else
    echo "FAILED: $1 $result, not '$3: $4'"
    cat "$folder/log"
    failures=$((failures + 1))
  fi
}

# Every program but nvcc.
without=$folder/bin
mkdir "$without"
for program in cmake ninja pkg-config c++ g++ gcc cc ld as ar ranlib nm python3 bash sh env git uname; do
  found=$(command -v "$program" || true)
  [[ -z $found ]] || ln -s "$found" "$without/$program"
done

expect OFF "$PATH" works 'CUDA kernels: OFF (SCAPESIM_CUDA=OFF)'
expect AUTO "$without" works 'CUDA kernels: OFF (SCAPESIM_CUDA=AUTO)'
expect ON "$without" fails 'there is no CUDA compiler'
expect MAYBE "$PATH" fails 'SCAPESIM_CUDA is MAYBE'
if command -v nvcc >/dev/null; then
  expect AUTO "$PATH" works 'CUDA kernels: ON (SCAPESIM_CUDA=AUTO)'
  expect ON "$PATH" works 'CUDA kernels: ON (SCAPESIM_CUDA=ON)'
fi
exit "$failures"
