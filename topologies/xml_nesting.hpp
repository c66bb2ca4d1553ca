// SPDX-License-Identifier: Apache-2.0
// Boost's XML reader recurses per element: files nested too deep for the stack are refused first.
#pragma once

#include <algorithm>
#include <string_view>

namespace scapesim::topology {

/// Deeper than any topology; far from what the stack holds.
inline constexpr int kDeepestXml = 200;

/// Elements open at once, at most; declarations and comments count as nothing.
inline int xml_nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos; ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '/';
    if (next == '?' || next == '!') continue;
    const std::size_t end = text.find('>', at);
    const bool closes_itself = end != std::string_view::npos && text[end - 1] == '/';
    if (next == '/')
      --depth;
    else if (!closes_itself)
      deepest = std::max(deepest, ++depth);
  }
  return deepest;
}

}  // namespace scapesim::topology
