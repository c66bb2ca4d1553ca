#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SCAPESIM_CUDA: OFF and AUTO configure everywhere; ON only where a CUDA compiler is, and says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

failures=0
# A configuration with a value and a PATH; its output goes to $folder/log.
configures() {
  PATH=$2 CUDACXX='' cmake -S . -B "$folder/build" -DSCAPESIM_CUDA="$1" -DSCAPESIM_TESTS=OFF \
    -DCMAKE_CXX_COMPILER="${CXX:-c++}" --fresh >"$folder/log" 2>&1
}
expect() { # what, pattern in the log
  if grep -q "$2" "$folder/log"; then
    echo "ok: $1"
  else
    echo "FAILED: $1"
    cat "$folder/log"
    failures=$((failures + 1))
  fi
}

# Every program but nvcc.
without=$folder/bin
mkdir "$without"
for program in cmake ninja make pkg-config c++ g++ gcc cc ld as ar ranlib python3 bash sh env git uname; do
  found=$(command -v "$program" || true)
  [[ -z $found ]] || ln -s "$found" "$without/$program"
done

configures OFF "$PATH"
expect "OFF builds no kernels" 'CUDA kernels: OFF (SCAPESIM_CUDA=OFF)'
configures AUTO "$without"
expect "AUTO without a compiler builds no kernels" 'CUDA kernels: OFF (SCAPESIM_CUDA=AUTO)'
if configures ON "$without"; then
  echo "FAILED: ON without a compiler configures"
  failures=$((failures + 1))
fi
expect "ON without a compiler is an error" 'there is no CUDA compiler'
if configures MAYBE "$PATH"; then
  echo "FAILED: MAYBE configures"
  failures=$((failures + 1))
fi
expect "another value is an error" 'SCAPESIM_CUDA is MAYBE'
if command -v nvcc >/dev/null; then
  configures AUTO "$PATH"
  expect "AUTO with a compiler builds the kernels" 'CUDA kernels: ON (SCAPESIM_CUDA=AUTO)'
  configures ON "$PATH"
  expect "ON with a compiler builds the kernels" 'CUDA kernels: ON (SCAPESIM_CUDA=ON)'
fi
exit "$failures"
