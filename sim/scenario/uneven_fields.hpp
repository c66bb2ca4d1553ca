// SPDX-License-Identifier: Apache-2.0
// Fields of what makes ranks unequal (shares, slow parts, other GPUs) and of forced collectives.
#pragma once

#include "sim/scenario/field.hpp"

namespace scapesim::scenario {

namespace detail {

/// "5%" or 0.05.
Read<double> read_share(const Value& value, Range<double> range);
std::string share_range(Range<double> range);
Read<spec::ForcedCollective> read_forced(const Value& value);
std::string forced_text(const spec::ForcedCollective& forced);
std::string forced_range();

}  // namespace detail

/// A share as a percentage, "5%", or as a number, 0.05.
template <class Get>
Field share(Get get, Range<double> range) {
  return detail::field(
      "share", detail::share_range(range), get,
      [range](const Value& value) { return detail::read_share(value, range); },
      [](double value) { return detail::exact(value, ""); });
}

/// An algorithm, a protocol or both: "tree LL128"; "automatic" for neither.
template <class Get>
Field forced_collective(Get get) {
  return detail::field("words", detail::forced_range(), get, detail::read_forced,
                       detail::forced_text);
}

/// Slow parts: ["GPU 3 = 1.2", "node 4-7 = 1.05"].
Field stragglers();

/// Nodes with another GPU: ["node 4-7 = dgx-a100, a100-sxm-80gb"].
Field other_gpus();

}  // namespace scapesim::scenario
