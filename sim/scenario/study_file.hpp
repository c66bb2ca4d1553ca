// SPDX-License-Identifier: Apache-2.0
// Studies as files: a [study] table with its kind and its options, to be kept, rerun and diffed.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/value.hpp"

namespace scapesim::scenario {

/// One option of a kind of study and the type of its value.
struct StudyKey {
  enum class Type { text, texts, flag, number };
  std::string_view name;
  Type type;
};

/// The [study] table of a file. Paths in it are relative to the file's folder.
struct StudyFile {
  std::filesystem::path file;
  std::string kind;  ///< "sweep"
  std::vector<Setting> settings;

  const Setting* find(std::string_view name) const;
  std::string text(std::string_view name) const;                ///< empty when not given
  std::vector<std::string> texts(std::string_view name) const;  ///< one text is a list of one
  bool flag(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::filesystem::path path(std::string_view name) const;  ///< empty when not given
};

/// The study of a file; none when it has no [study] table, as a scenario. Throws InputError when it
/// is no TOML, is not of the kind, or has a key that the kind does not take.
std::optional<StudyFile> read_study(const std::filesystem::path& file, std::string_view kind,
                                    std::span<const StudyKey> keys);

}  // namespace scapesim::scenario
