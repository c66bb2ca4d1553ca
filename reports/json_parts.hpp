// SPDX-License-Identifier: Apache-2.0
// What writers of JSON share: checked numbers, null for what is unknown, one way to print.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace scapesim::reports::parts {

using Json = nlohmann::ordered_json;

inline Json number(double value) {
  SCAPESIM_CHECK(std::isfinite(value), "a result holds {}", value);
  return value;
}

template <Dim D>
Json number(Quantity<D> value) {
  return number(value.si());
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? number(*value) : Json(nullptr);
}

template <class T, class F>
Json or_null(const std::optional<T>& value, F convert) {
  return value ? convert(*value) : Json(nullptr);
}

inline Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// The document's text; what is not UTF-8 is replaced, so that every reader accepts it.
inline std::string text_of(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports::parts
