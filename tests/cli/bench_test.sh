#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scapesim-bench: wrong options end with 2, wrong shapes are named by line, the list of shapes that
# the build makes is one it reads, and without a device the program says so, writes nothing and ends
# with 77.
set -euo pipefail
bench=$(dirname "$SCAPESIM")/scapesim-bench
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "$1"
  exit 1
}
ends_with() { # ends_with CODE ARGUMENTS...: output in $output
  local wanted=$1 code=0
  shift
  output=$("$bench" "$@" 2>&1) || code=$?
  [[ $code -eq $wanted ]] || fail "scapesim-bench $* ends with $code, not $wanted: $output"
}

ends_with 0 --help
ends_with 2 env
ends_with 2 kernel -o "$folder/x.jsonl"
[[ $output == *kernels* ]] || fail "does not name the family that was meant: $output"
printf 'name,pass,m,n,k\na,forward,1,2\n' >"$folder/shapes.csv"
ends_with 2 gemm -o "$folder/x.jsonl" --shapes "$folder/shapes.csv"
[[ $output == *shapes.csv:2* ]] || fail "does not name the wrong line: $output"

shapes=$(dirname "$SCAPESIM")/gemm_shapes.csv
[[ $(wc -l <"$shapes") -gt 50 ]] || fail "$shapes has few shapes"
if ! [[ -e /dev/nvidiactl ]]; then
  ends_with 77 all -o "$folder/x.jsonl" --quick --shapes "$shapes"
  [[ $output == *"no CUDA device"* ]] || fail "does not say what is missing: $output"
  [[ ! -e $folder/x.jsonl ]] || fail "a file without rows"
fi
echo "scapesim-bench: all claims hold"
