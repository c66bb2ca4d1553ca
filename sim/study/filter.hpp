// SPDX-License-Identifier: Apache-2.0
// Conditions on a scenario's keys: "tp * pp * dp == gpus and micro_batch <= 8". Numbers may carry a
// unit (80GiB, 400Gbps), words stand in quotes. Nothing that a prediction says can be asked.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::study {

namespace detail {
struct FilterNode;
}

/// A condition, read once and asked for many scenarios.
///
///   condition  = or-ed "and"-ed "not"-ed comparisons: or ||  and &&  not !
///   comparison = sum (== != < <= > >=) sum, or a flag by itself
///   sum        = numbers and keys with + - * / % and parentheses
///
/// A key is written "training.micro_batch", or by its last word where only one section has it. Of
/// no section are dp (data-parallel ranks), micro_batches and series. A key that is "none" compares
/// to no number, and what is divided by keys that are 0 to nothing. Sides of a comparison or sum
/// have the same unit (0 has any); a word is one that the key can be.
class Filter {
 public:
  /// `series` are the names there are; empty: not known. Throws InputError with the column in
  /// `text` (file: `origin`, such as "--filter").
  Filter(std::string_view text, const std::string& origin,
         const std::vector<std::string>& series = {});

  bool keeps(const spec::Scenario& scenario) const;

 private:
  std::shared_ptr<const detail::FilterNode> root_;
};

}  // namespace scapesim::study
