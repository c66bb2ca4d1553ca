// SPDX-License-Identifier: Apache-2.0
// Fixtures: texts written for these tests, beside this file. Tests run in the repository's root.
#pragma once

#include <filesystem>
#include <sqlite3.h>
#include <string>
#include <string_view>
#include <zlib.h>

#include "calib/import.hpp"
#include "sim/base/file.hpp"

namespace scapesim::calib {

inline const std::filesystem::path kFolder = "tests/golden/calib";

inline std::string fixture(const std::string& name) { return read_file(kFolder / name, "fixture"); }

inline Observations import_fixture(const std::string& name) { return import_file(kFolder / name); }

/// The database that a fixture's SQL builds, as the bytes of its file.
inline std::string database(const std::string& name) {
  sqlite3* handle = nullptr;
  sqlite3_open(":memory:", &handle);
  const int status = sqlite3_exec(handle, fixture(name).c_str(), nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle, "main", &size, 0);
  std::string file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(handle);
  return status == SQLITE_OK ? file : std::string();
}

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// What importing says, empty when it does not refuse.
inline std::string refusal(std::string_view bytes, const std::string& file = "input") {
  try {
    import_bytes(bytes, file);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

/// All warnings, one per line.
inline std::string warnings_of(const Observations& found) {
  std::string all;
  for (const Problem& warning : found.warnings) all += warning.what + "\n";
  return all;
}

}  // namespace scapesim::calib
