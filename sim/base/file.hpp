// SPDX-License-Identifier: Apache-2.0
// Whole-file reading and atomic writing; content hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace scapesim {

/// Far above any scenario or profile.
inline constexpr std::size_t kLargestInput = std::size_t{256} << 20U;

/// The bytes of a file. Throws InputError (key = what it is for) when it cannot be read or has more
/// than `largest` bytes.
std::string read_file(const std::filesystem::path& path, std::string_view purpose,
                      std::size_t largest = kLargestInput);

/// Writes to a temporary name in the same folder and renames: readers see the old or the whole new
/// file. Throws InputError when the folder cannot be written or the disk is full; nothing is left.
void write_file(const std::filesystem::path& path, std::string_view content);

/// A file written piece by piece that readers see only when it is whole, as with write_file.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  ~FileWriter();  ///< without commit() nothing is left
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void write(std::string_view content);
  void commit();

 private:
  struct State;
  void flush();
  std::unique_ptr<State> state_;
};

/// FNV-1a, 64 bits, as 16 hex digits: names a scenario or a profile in results, not a signature.
std::string content_hash(std::string_view content);

/// Folder of the shipped data (calib/profiles, topologies, scenarios): $SCAPESIM_DATA, else
/// share/scapesim beside an installed program, else the source tree it was built from.
std::filesystem::path data_folder();

}  // namespace scapesim
