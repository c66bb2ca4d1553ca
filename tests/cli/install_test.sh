#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed copy runs from anywhere and uses its own data, not the source tree's.
set -euo pipefail
source_folder=$PWD
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$(dirname "$SCAPESIM")" --prefix "$prefix" >/dev/null
share=$prefix/share/scapesim
cd "$prefix"
bin/scapesim run share/scapesim/scenarios/vista-llama-1.8b.toml >out.txt
grep -q . out.txt

# A program outside the source tree finds the library, its headers and its data; nothing else.
cmake -S "$share/scenarios/library" -B library -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >cmake.txt 2>&1 || { cat cmake.txt; exit 1; }
cmake --build library >build.txt 2>&1 || { cat build.txt; exit 1; }
if grep -r "$source_folder" library/build.ninja include lib/cmake 2>/dev/null; then
  echo "the installed library refers to the source tree"
  exit 1
fi
library/scaling share/scapesim/scenarios/vista-llama-500m.toml | tee scaling.txt
first=$(sed -n 's/^[0-9]* GPUs: \(.*\) s$/\1/p' scaling.txt | head -1)
step=$(bin/scapesim run share/scapesim/scenarios/vista-llama-500m.toml --series AdamS --json |
  sed -n 's/^  "step_time_s": \([0-9.e-]*\),$/\1/p')
if [[ $first != "$(printf '%.4f' "$step")" ]]; then
  echo "the library predicts $first s, the program $step s"
  exit 1
fi

rm "$share"/calib/profiles/*.json
code=0
bin/scapesim run share/scapesim/scenarios/vista-llama-1.8b.toml >out.txt 2>err.txt || code=$?
if [[ $code -ne 2 || -s out.txt ]]; then
  echo "without its own profiles the installed copy must refuse (exit code 2), not $code:"
  cat err.txt
  exit 1
fi
