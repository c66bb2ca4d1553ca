// SPDX-License-Identifier: Apache-2.0
// Nsight Systems reports exported with `nsys export --type sqlite`. Tables exist only when
// something was recorded, and columns differ between versions: both are looked up first.
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <sqlite3.h>
#include <unordered_map>

#include "calib/import.hpp"
#include "calib/import_kernels.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

class Database {
 public:
  Database(std::string_view bytes, std::string file) : file_(std::move(file)) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
    handle_.reset(opened);
    if (status != SQLITE_OK) fail();
    // Read-only: SQLite does not write through the pointer.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    if (sqlite3_deserialize(handle_.get(), "main", data, size, size, SQLITE_DESERIALIZE_READONLY) !=
        SQLITE_OK)
      fail();
  }

  /// Calls `take` with every row of a query.
  template <class Take>
  void each(const std::string& query, Take take) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), query.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      fail();
    struct End {
      sqlite3_stmt* statement;
      ~End() { sqlite3_finalize(statement); }
    } const end{statement};
    int status = sqlite3_step(statement);
    for (; status == SQLITE_ROW; status = sqlite3_step(statement)) take(statement);
    if (status != SQLITE_DONE) fail();
  }

  std::vector<std::string> texts(const std::string& query) {
    std::vector<std::string> list;
    each(query, [&](sqlite3_stmt* row) { list.push_back(text(row, 0)); });
    return list;
  }

  static std::string text(sqlite3_stmt* row, int column) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return bytes == nullptr
               ? std::string()
               : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
  }

 private:
  [[noreturn]] void fail() const {
    const std::string reason = handle_ ? sqlite3_errmsg(handle_.get()) : "no memory";
    throw InputError(Problem{{.file = file_},
                             "",
                             "the database cannot be read: " + reason,
                             "it may be cut off: export it again with nsys export --type sqlite"});
  }

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string file_;
};

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

struct Report {
  Database database;
  std::vector<std::string> tables;

  explicit Report(std::string_view bytes, const std::string& file)
      : database(bytes, file),
        tables(database.texts("SELECT name FROM sqlite_master WHERE type = 'table'")) {}

  /// Whether the table exists and has all of these columns.
  bool has(const std::string& table, std::initializer_list<std::string_view> columns) {
    if (!contains(tables, table)) return false;
    const auto present = database.texts("SELECT name FROM pragma_table_info('" + table + "')");
    return std::ranges::all_of(columns, [&](auto column) { return contains(present, column); });
  }
};

Seconds nanoseconds(sqlite3_stmt* row, int column) {
  return Seconds(static_cast<double>(sqlite3_column_int64(row, column)) / 1e9);
}

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";

void read_kernels(Report& report, const std::string& file, Observations& out) {
  if (!report.has(kKernels, {"start", "end", "shortName"}) ||
      !report.has("StringIds", {"id", "value"}))
    return;
  std::unordered_map<sqlite3_int64, std::string> names;
  report.database.each("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
    names.emplace(sqlite3_column_int64(row, 0), Database::text(row, 1));
  });
  // A CUTLASS kernel's short name is "Kernel": the class is that of the full name.
  const char* full = report.has(kKernels, {"demangledName"}) ? "demangledName" : "shortName";
  const char* device = report.has(kKernels, {"deviceId"}) ? "deviceId" : "0";
  std::vector<KernelSpan> spans;
  report.database.each(
      fmt::format("SELECT start, \"end\", {}, shortName, {} FROM {}", device, full, kKernels),
      [&](sqlite3_stmt* row) {
        const Seconds begin = nanoseconds(row, 0);
        const Seconds end = nanoseconds(row, 1);
        const std::string& name = names[sqlite3_column_int64(row, 3)];
        const std::string& full_name = names[sqlite3_column_int64(row, 4)];
        if (end < begin || name.empty())
          add_unparsed(0, "a kernel without a name or with its end before its begin",
                       Looks::like_data, out);
        else
          spans.push_back({begin, end, sqlite3_column_int(row, 2), kernel_class(full_name), name});
      });
  add_kernels(spans, file, out);
}

void read_copies(Report& report, const std::string& file, Observations& out) {
  if (!report.has(kCopies, {"start", "end", "bytes", "copyKind"})) return;
  report.database.each(fmt::format("SELECT start, \"end\", bytes, copyKind FROM {}", kCopies),
                       [&](sqlite3_stmt* row) {
                         const Seconds length = nanoseconds(row, 1) - nanoseconds(row, 0);
                         const Bytes size(static_cast<double>(sqlite3_column_int64(row, 2)));
                         // CUpti_ActivityMemcpyKind of CUDA's cupti_activity.h.
                         std::optional<CopyDirection> direction;
                         switch (sqlite3_column_int(row, 3)) {
                           case 1:
                             direction = CopyDirection::host_to_device;
                             break;
                           case 2:
                             direction = CopyDirection::device_to_host;
                             break;
                           case 8:
                             direction = CopyDirection::local;
                             break;
                           case 10:
                             direction = CopyDirection::device_to_device;
                             break;
                           default:
                             break;
                         }
                         if (!direction || length <= Seconds(0) || size <= Bytes(0))
                           return add_unparsed(0,
                                               "a copy of another kind, or without bytes or time",
                                               Looks::like_something_else, out);
                         out.copies.push_back({.direction = *direction,
                                               .name = "cudaMemcpy",
                                               .size = size,
                                               .rate = size / length,
                                               .place = {.file = file}});
                       });
}

}  // namespace

bool recognises_nsys(std::string_view text) { return text.starts_with("SQLite format 3"); }

Observations read_nsys(std::string_view text, const std::string& file) {
  Report report(text, file);
  Observations out;
  read_kernels(report, file, out);
  read_copies(report, file, out);
  if (report.has("TARGET_INFO_GPU", {"name"}))
    for (const std::string& name : report.database.texts("SELECT name FROM TARGET_INFO_GPU"))
      add_gpu_name(name, out.machine);
  require_samples(out, file, "GPU kernel or copy",
                  fmt::format("needed are the tables {} and StringIds, or {}", kKernels, kCopies));
  return out;
}

}  // namespace scapesim::calib
