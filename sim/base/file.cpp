// SPDX-License-Identifier: Apache-2.0
// POSIX files: every call's failure is told to the user with the system's reason.
#include "sim/base/file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/base/data_folder.hpp"
#include "sim/base/error.hpp"

namespace scapesim {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const fs::path& path, std::string_view key, std::string what,
                       std::string hint = {}) {
  Problem problem{{.file = path.string()}, std::string(key), std::move(what), std::move(hint)};
  throw InputError(std::move(problem));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes now; false with errno set when the system reports a late write error.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// The nearest name in the folder where the path was looked for.
std::string nearest_file(const fs::path& path) {
  constexpr std::size_t kEnough = 1000;
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, ignored), end; it != end && names.size() < kEnough;
       it.increment(ignored)) {
    if (ignored) break;
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string name = path.filename().string();
  return nearest(name, views) ? did_you_mean(name, views) : std::string();
}

// False with errno set when not all of it could be written.
bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// A temporary file that is gone unless it was renamed into place.
class Temporary {
 public:
  explicit Temporary(const fs::path& folder) {
    static std::atomic<unsigned> count{0};
    path_ = folder / fmt::format(".scapesim-{}-{}.tmp", ::getpid(), count++);
  }
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const fs::path& path() const { return path_; }
  bool rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  fs::path path_;
};

// The file behind a symbolic link, so that the link stays a link.
fs::path link_target(const fs::path& path) {
  std::error_code failure;
  fs::path target = fs::is_symlink(path, failure) ? fs::weakly_canonical(path, failure) : path;
  return failure ? path : target;
}

void write_device(const fs::path& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), content) || !file.close())
    fail(path, {}, "cannot write: " + reason(errno));
}

// Makes the temporary file of a target.
int create(const Temporary& temporary, const fs::path& path) {
  constexpr mode_t kDefaultMode = 0666;  // less the user's umask
  const int fd =
      ::open(temporary.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kDefaultMode);
  if (fd >= 0) return fd;
  const int error = errno;
  fail(path, {}, "cannot write: " + reason(error),
       error == ENOENT ? fmt::format("there is no folder {}", folder_of(path).string()) : "");
}

void write_atomically(const fs::path& path, std::string_view content, std::optional<mode_t> mode) {
  Temporary temporary(folder_of(path));
  Descriptor file(create(temporary, path));
  if (mode && ::fchmod(file.get(), *mode) != 0) fail(path, {}, "cannot write: " + reason(errno));
  const bool written = write_all(file.get(), content) && ::fsync(file.get()) == 0 && file.close();
  if (!written || !temporary.rename_to(path)) fail(path, {}, "cannot write: " + reason(errno));
}

fs::path& chosen_data_folder() {
  static fs::path folder;
  return folder;
}

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "calib" / "profiles", ignored);
}

}  // namespace

std::string read_file(const fs::path& path, std::string_view purpose, std::size_t largest) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    fail(path, purpose, "cannot read: " + reason(error),
         error == ENOENT ? nearest_file(path) : std::string());
  }
  std::string content;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, purpose, "cannot read: " + reason(errno));
    if (got == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(got));
    if (content.size() > largest)
      fail(path, purpose, fmt::format("larger than {} MiB", largest >> 20U));
  }
}

void write_file(const fs::path& given, std::string_view content) {
  const fs::path path = link_target(given);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail(given, {}, "cannot write: it is a folder");
  if (exists && !S_ISREG(status.st_mode)) return write_device(path, content);
  constexpr mode_t kPermissions = 0777;
  write_atomically(path, content,
                   exists ? std::optional<mode_t>(status.st_mode & kPermissions) : std::nullopt);
}

struct FileWriter::State {
  explicit State(const fs::path& target)
      : path(target), temporary(folder_of(target)), file(create(temporary, target)) {}
  fs::path path;
  Temporary temporary;
  Descriptor file;
  std::string waiting;
};

FileWriter::FileWriter(const fs::path& path) : state_(std::make_unique<State>(link_target(path))) {}

FileWriter::~FileWriter() = default;

void FileWriter::write(std::string_view content) {
  constexpr std::size_t kBlock = std::size_t{1} << 20U;
  state_->waiting += content;
  if (state_->waiting.size() >= kBlock) flush();
}

void FileWriter::flush() {
  if (!write_all(state_->file.get(), state_->waiting))
    fail(state_->path, {}, "cannot write: " + reason(errno));
  state_->waiting.clear();
}

void FileWriter::commit() {
  flush();
  const bool written = ::fsync(state_->file.get()) == 0 && state_->file.close();
  if (!written || !state_->temporary.rename_to(state_->path))
    fail(state_->path, {}, "cannot write: " + reason(errno));
}

std::string content_hash(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : content) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

fs::path data_folder() {
  if (const char* chosen = std::getenv("SCAPESIM_DATA"); chosen != nullptr && *chosen != '\0') {
    if (!holds_data(chosen)) fail(chosen, "SCAPESIM_DATA", "no folder with calib/profiles in it");
    return chosen;
  }
  if (const fs::path& folder = chosen_data_folder(); !folder.empty()) {
    if (!holds_data(folder)) fail(folder, "data folder", "no folder with calib/profiles in it");
    return folder;
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / "share" / "scapesim";
  if (holds_data(installed)) return installed;
  if (holds_data(SCAPESIM_SOURCE_DIR)) return SCAPESIM_SOURCE_DIR;
  fail(installed, {}, "the shipped data is not found",
       "set SCAPESIM_DATA to the folder that holds calib/profiles");
}

void set_data_folder(fs::path folder) { chosen_data_folder() = std::move(folder); }

}  // namespace scapesim
