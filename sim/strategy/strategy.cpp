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
      {spec::Method::topk, "largest elements of a residual, with indices or by an OR of masks",
       make_topk, topk_memory},
      {spec::Method::dgc, "deep gradient compression: largest elements of corrected momentum",
       make_dgc, dgc_memory},
      {spec::Method::zeropp, "ZeRO-3 with quantised gathers and gradients and a copy in each node",
       make_zeropp, zeropp_memory},
      {spec::Method::qsdp, "sharded training with quantised gathers and gradients", make_qsdp,
       qsdp_memory},
      {spec::Method::demo, "fast cosine components of each rank's momentum", make_demo,
       demo_memory},
      {spec::Method::oktopk, "top-k of the sum by a sparse reduce-scatter and an all-gather",
       make_oktopk, oktopk_memory},
      {spec::Method::onebit_adam, "Adam with signs of the momentum, dense for the first steps",
       make_onebit_adam, onebit_adam_memory},
      {spec::Method::powersgd, "gradients as products of two thin factors", make_powersgd,
       powersgd_memory},
      {spec::Method::local_sgd, "steps without communication, then an outer all-reduce (DiLoCo)",
       make_local_sgd, local_sgd_memory},
  };
  return rows;
}

const Method& method_of(spec::Method method) {
  for (const Method& row : methods())
    if (row.method == method) return row;
  throw InternalError("method without a row");
}

}  // namespace scapesim::strategy
