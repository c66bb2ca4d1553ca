// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/strategy.hpp"

#include "sim/base/check.hpp"
#include "sim/strategy/methods.hpp"

namespace scapesim::strategy {

std::span<const Method> methods() {
  static const Method rows[] = {
      {spec::Method::dense, "all gradients; all-reduce, or Megatron-LM's distributed optimizer",
       make_dense, dense_memory},
      {spec::Method::scape,
       "sparse first moments with partitioned, delayed masks (arXiv 2607.01678)", make_scape,
       scape_memory},
  };
  return rows;
}

const Method& method_of(spec::Method method) {
  for (const Method& row : methods())
    if (row.method == method) return row;
  throw InternalError("method without a row");
}

}  // namespace scapesim::strategy
