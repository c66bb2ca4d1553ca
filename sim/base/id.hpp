// SPDX-License-Identifier: Apache-2.0
// Strong indices: a LinkId cannot be used where a RankId is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace scapesim {

/// Position in the table of things that Tag names.
template <class Tag>
struct Id {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

template <class Tag>
constexpr std::size_t index(Id<Tag> id) {
  return id.value;
}

}  // namespace scapesim
