// SPDX-License-Identifier: Apache-2.0
// Whole-file reading and atomic writing; content hashes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace scapesim {

/// The bytes of a file. Throws InputError (key = what it is for) when it cannot be read.
std::string read_file(const std::filesystem::path& path, std::string_view purpose);

/// Writes to a temporary name in the same folder and renames: readers see the old or the whole new
/// file. Throws InputError when the folder cannot be written or the disk is full; nothing is left.
void write_file(const std::filesystem::path& path, std::string_view content);

/// FNV-1a, 64 bits, as 16 hex digits: names a scenario or a profile in results, not a signature.
std::string content_hash(std::string_view content);

/// Folder of the shipped data (calib/profiles, topologies, scenarios): $SCAPESIM_DATA, else
/// share/scapesim beside an installed program, else the source tree it was built from.
std::filesystem::path data_folder();

}  // namespace scapesim
