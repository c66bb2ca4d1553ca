// SPDX-License-Identifier: Apache-2.0
// Reads logs and bench files of other tools; the format is detected from the content. A file is
// held in memory as a whole.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "calib/observations.hpp"

namespace scapesim::calib {

/// A file format. `text` is the whole file, already decompressed.
struct Importer {
  std::string_view name;
  std::string_view help;
  std::string_view looked_for;  ///< what recognises() wants to see, for the refusal of other files
  bool (*recognises)(std::string_view text);
  /// Throws InputError for a text of this format that is cut off, corrupt or without any sample.
  Observations (*read)(std::string_view text, const std::string& file);
};

std::span<const Importer> importers();

/// Reads a file with the first importer that recognises it; a file that several recognise carries
/// a warning. Throws InputError when none does.
Observations import_file(const std::filesystem::path& path);

/// The same for bytes in memory, gzip or not; `file` is for messages.
Observations import_bytes(std::string_view bytes, const std::string& file);

#define SCAPESIM_IMPORTER(name)                  \
  bool recognises_##name(std::string_view text); \
  Observations read_##name(std::string_view text, const std::string& file);
SCAPESIM_IMPORTER(nccl_text)
SCAPESIM_IMPORTER(nccl_json)
SCAPESIM_IMPORTER(nvbandwidth)
SCAPESIM_IMPORTER(nvbench)
SCAPESIM_IMPORTER(kineto)
SCAPESIM_IMPORTER(nsys)
SCAPESIM_IMPORTER(megatron)
SCAPESIM_IMPORTER(nanotron)
SCAPESIM_IMPORTER(torchtitan)
SCAPESIM_IMPORTER(csv)
SCAPESIM_IMPORTER(bench)
#undef SCAPESIM_IMPORTER

}  // namespace scapesim::calib
