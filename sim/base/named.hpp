// SPDX-License-Identifier: Apache-2.0
// Tables that tie an enumeration to the words users write; one table feeds parser, printer and
// help.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/check.hpp"

namespace scapesim {

template <class E>
struct Named {
  E value;
  std::string_view name;
};

/// Overload `inline std::span<const Named<E>> names_of(E*)` beside the enum.
template <class E>
std::span<const Named<E>> names() {
  return names_of(static_cast<E*>(nullptr));
}

template <class E>
std::string_view name_of(E value) {
  for (const Named<E>& row : names<E>())
    if (row.value == value) return row.name;
  throw InternalError("enumerator without a name");
}

template <class E>
std::optional<E> find_named(std::string_view name) {
  for (const Named<E>& row : names<E>())
    if (row.name == name) return row.value;
  return std::nullopt;
}

template <class E>
std::vector<std::string_view> all_names() {
  std::vector<std::string_view> list;
  for (const Named<E>& row : names<E>()) list.push_back(row.name);
  return list;
}

}  // namespace scapesim
