// SPDX-License-Identifier: Apache-2.0
// What the importers of JSON share: parsing with places, members that may be missing or of another
// type, and keys of the outermost object without parsing the rest.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/observations.hpp"

namespace scapesim::calib {

using Json = nlohmann::json;

/// Parses a whole text; `keep` may take values out while they are read (nlohmann's callback).
/// Throws InputError with line and column where the text is no JSON.
Json parse_json(std::string_view text, const std::string& file,
                const Json::parser_callback_t& keep = nullptr);

/// Keys of the outermost object within the first MiB; empty when the text is no object. Works on
/// texts that are cut off.
std::vector<std::string_view> outer_keys(std::string_view text);
bool has_outer_keys(std::string_view text, std::initializer_list<std::string_view> wanted);

/// The member, or null when `object` is no object or has none.
const Json& member(const Json& object, std::string_view key);

/// The member when it is a list, else an empty list.
const Json& list_in(const Json& object, std::string_view key);

/// A finite number, also written as text ("12.5").
std::optional<double> number_in(const Json& object, std::string_view key);
std::optional<double> positive_in(const Json& object, std::string_view key);
std::optional<int> count_in(const Json& object, std::string_view key);
/// Empty when missing or no text.
std::string text_in(const Json& object, std::string_view key);

/// Counts a record that gave nothing; the example is `why` and the start of the record.
void add_unparsed(const Json& record, std::string_view why, Observations& into);

}  // namespace scapesim::calib
