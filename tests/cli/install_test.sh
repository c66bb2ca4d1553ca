#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed copy runs from anywhere and uses its own data, not the source tree's.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$(dirname "$SCAPESIM")" --prefix "$prefix" >/dev/null
share=$prefix/share/scapesim
cd "$prefix"
bin/scapesim run share/scapesim/scenarios/vista-llama-1.8b.toml >out.txt
grep -q . out.txt

rm "$share"/calib/profiles/*.json
code=0
bin/scapesim run share/scapesim/scenarios/vista-llama-1.8b.toml >out.txt 2>err.txt || code=$?
if [[ $code -ne 2 || -s out.txt ]]; then
  echo "without its own profiles the installed copy must refuse (exit code 2), not $code:"
  cat err.txt
  exit 1
fi
