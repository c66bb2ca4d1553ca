#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scape-step: the CPU's ranks give the reference's result, wrong options end with 2, and without a
# device the program says so and ends with 77.
set -euo pipefail
step=$(dirname "$SCAPESIM")/scape-step

fail() {
  echo "$1"
  exit 1
}
ends_with() { # ends_with CODE ARGUMENTS...: output in $output
  local wanted=$1 code=0
  shift
  output=$("$step" "$@" 2>&1) || code=$?
  [[ $code -eq $wanted ]] || fail "scape-step $* ends with $code, not $wanted: $output"
}

ends_with 0 --device cpu --ranks 3 --steps 4 --elements 5000 --check --residual staged --chunk 700
[[ $(grep -c "equal (0 of 5000 mask bits, 0 weights, 0 moments, 0 residuals" <<<"$output") -eq 3 ]] ||
  fail "not the reference's result: $output"
# 3 ranks, k = 10 % of each tensor's parts and all norm weights: all-reduce of fp32 on a ring.
grep -Eq "^payload all-reduce +[0-9]+ bytes" <<<"$output" || fail "no bytes: $output"

ends_with 0 --device cpu --ranks 2 --steps 3 --elements 3000 --check --sharding distributed --clip 0.1
ends_with 0 --help
ends_with 2 --ranks 0
ends_with 2 --residual nowhere
ends_with 2 --ranks 2 --rank 2
ends_with 2 --device cpu --sharding distributed --owners tensor
if ! [[ -e /dev/nvidiactl ]]; then
  ends_with 77 --ranks 1 --steps 1
  [[ $output == *"no CUDA device"* ]] || fail "does not say what is missing: $output"
fi
echo "scape-step: all claims hold"
