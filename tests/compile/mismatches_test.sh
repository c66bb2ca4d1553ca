#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mistakes of dimension and of kind do not compile. Each row is a mistake and its correct twin; the
# twins must compile, so that no mistake is refused for a reason of its own.
set -euo pipefail
compiler=${CXX:-c++}

rows='
auto x = 1_GB + 1_s;                        | auto x = 1_GB + 1_B;
auto x = 1_GB - 1.0;                        | auto x = 1_GB - 1_B;
auto x = 1_GB < 1_s;                        | auto x = 1_GB < 1_B;
auto x = 1_GB == 1_GBps;                    | auto x = 1_GB == 1_GBps * 1_s;
Seconds x = 1_GB / 1_GB;                    | Seconds x = 1_GB / 1_GBps;
Seconds x = 1_GB * 1_GBps;                  | Seconds x = 1_GB / 1_GBps;
Bytes x = 5.0;                              | Bytes x = Bytes(5.0);
double x = 1_GB;                            | double x = 1_GB / 1_B;
Bytes x = 1_GB; x += 1_s;                   | Bytes x = 1_GB; x += 1_B;
Bytes x = 1_GB; x *= 2_B;                   | Bytes x = 1_GB; x *= 2;
BytesPerSecond x = 1_TFLOPps;               | FlopsPerSecond x = 1_TFLOPps;
Watts x = Joules(1) * 1_s;                  | Watts x = Joules(1) / 1_s;
auto x = time_of(1_GBps, 1_GB);             | auto x = time_of(1_GB, 1_GBps);
bool x = 1_GB;                              | bool x = 1_GB > 0_B;
RankId x = LinkId{3};                       | RankId x = RankId{3};
RankId x; x = 3;                            | RankId x; x = RankId{3};
auto x = std::vector{1, 2}[RankId{1}];      | auto x = std::vector{1, 2}[index(RankId{1})];
auto x = RankId{1} < LinkId{2};             | auto x = RankId{1} < RankId{2};
'

unit() { # a translation unit around some statements
  cat <<UNIT
#include <vector>
#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
using namespace scapesim;
using namespace scapesim::literals;
using RankId = Id<struct RankTag>;
using LinkId = Id<struct LinkTag>;
[[maybe_unused]] static Seconds time_of(Bytes size, BytesPerSecond link) { return size / link; }
void f() { $1 }
UNIT
}

compiles() {
  unit "$1" | "$compiler" -std=c++20 -w -I. -fsyntax-only -x c++ - 2>/dev/null
}

failures=0
count=0
while IFS='|' read -r mistake twin; do
  [[ -n ${mistake// /} ]] || continue
  count=$((count + 1))
  if compiles "$mistake"; then
    echo "compiles but must not: $mistake"
    failures=$((failures + 1))
  fi
  if ! compiles "$twin"; then
    echo "does not compile but must: $twin"
    failures=$((failures + 1))
  fi
done <<<"$rows"
echo "$count mistakes, $failures failures"
[[ $count -gt 0 && $failures -eq 0 ]]
