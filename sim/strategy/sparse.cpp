// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/sparse.hpp"

#include <algorithm>
#include <cmath>

namespace scapesim::strategy {

namespace {
constexpr double kSector = 32;  // bytes that HBM moves at least
}

double Sparse::touched(double element_bytes) const {
  return elements * element_bytes * (1 - std::pow(1 - density(), kSector / element_bytes));
}

Sparse sparse_of(const Bucket& bucket, double density) {
  Sparse sparse{.elements = elements_of(bucket)};
  for (const workload::Tensor& tensor : bucket) {
    const std::int64_t share =
        static_cast<std::int64_t>(density * static_cast<double>(tensor.numel));
    sparse.count += static_cast<double>(tensor.always_selected ? tensor.numel
                                                               : std::max<std::int64_t>(1, share));
  }
  return sparse;
}

Waits gather_sparse(Program& program, const Context& context, const Sparse& sent,
                    graph::OpId packed) {
  const double ranks = context.ranks;
  Waits gathered{{packed}};
  also_wait(gathered, add_call(program, context,
                               {.name = "index and value all-gather",
                                .kind = graph::CollectiveKind::all_gather,
                                .bytes = Bytes(sent.bytes() * ranks)},
                               graph::Stream::communication, "M302", gathered));
  const double added = sent.bytes() + 2 * sent.touched(4);
  return {{add_pass(program, context,
                    {.name = "sparse sum",
                     .traffic = Bytes(4 * sent.elements + ranks * added),
                     .launches = 1 + context.ranks,
                     .formula = "M302",
                     .stream = stream_behind(context)},
                    gathered)}};
}

}  // namespace scapesim::strategy
