// SPDX-License-Identifier: Apache-2.0
#include "reports/plot.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"

extern char** environ;

namespace scapesim::reports {
namespace {

namespace fs = std::filesystem;

/// Exit code of a program; its standard output goes to our standard error, all of it to nowhere
/// when `quiet`. 127 when it cannot be started.
int call(const std::vector<std::string>& words, bool quiet) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failure != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
  return WEXITSTATUS(status);
}

std::vector<std::string> candidates() {
  if (const char* chosen = std::getenv("SCAPESIM_PYTHON"); chosen != nullptr && *chosen != '\0')
    return {chosen};
  return {"/usr/bin/python3", "python3"};
}

std::optional<std::string> python_with_matplotlib() {
  for (const std::string& python : candidates())
    if (call({python, "-c", "import matplotlib"}, /*quiet=*/true) == 0) return python;
  return std::nullopt;
}

/// A file of our own in the temporary folder, gone at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string name = (fs::temp_directory_path() / "scapesim-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0)
      throw InputError(Problem{{.file = name}, "--plot", "cannot write the temporary file", ""});
    close(descriptor);
    path_ = name;
    write_file(path_, content);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void check_plot_name(const fs::path& figure) {
  const std::string kind = figure.extension().string();
  if (kind != ".png" && kind != ".pdf" && kind != ".svg")
    throw InputError(Problem{{},
                             "--plot",
                             fmt::format("cannot draw \"{}\"", figure.string()),
                             "the name ends with .png, .pdf or .svg"});
  const fs::path folder = figure.has_parent_path() ? figure.parent_path() : fs::path(".");
  if (!fs::is_directory(folder))
    throw InputError(
        Problem{{}, "--plot", fmt::format("there is no folder {}", folder.string()), ""});
}

PlotOutcome draw_scale(const std::string& result_json, const fs::path& figure) {
  const std::optional<std::string> python = python_with_matplotlib();
  if (!python)
    return {false,
            {fmt::format("warning: no figure drawn: none of {} has matplotlib (Debian: apt-get "
                         "install python3-matplotlib, or set SCAPESIM_PYTHON)",
                         fmt::join(candidates(), ", "))}};
  const TemporaryFile result(result_json);
  const std::string script = (data_folder() / "reports" / "plot.py").string();
  const int code =
      call({*python, script, result.path().string(), "-o", figure.string()}, /*quiet=*/false);
  if (code == 0) return {true, {}};
  return {false, {fmt::format("warning: no figure drawn: {} ended with code {}", script, code)}};
}

}  // namespace scapesim::reports
