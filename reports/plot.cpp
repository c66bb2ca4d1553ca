// SPDX-License-Identifier: Apache-2.0
#include "reports/plot.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"

extern char** environ;

namespace scapesim::reports {
namespace {

namespace fs = std::filesystem;

/// Exit code of a program whose output goes into a file. 127 when it cannot be started or crashes.
int call(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
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
    if (call({python, "-c", "import matplotlib"}, "/dev/null") == 0) return python;
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

/// The lines that say something.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<fs::path> plot_names(const fs::path& figure) {
  const std::string kind = figure.extension().string();
  if (kind != ".png" && kind != ".pdf" && kind != ".svg")
    throw InputError(Problem{{},
                             "--plot",
                             fmt::format("cannot draw \"{}\"", figure.string()),
                             "the name ends with .png, .pdf or .svg"});
  fs::path breakdown = figure;
  breakdown.replace_filename(figure.stem().string() + "-breakdown" + kind);
  return {figure, breakdown};
}

PlotOutcome draw_scale(const std::string& result_json, const fs::path& figure) {
  const std::optional<std::string> python = python_with_matplotlib();
  if (!python)
    return {false,
            {fmt::format("warning: no figure drawn: none of {} has matplotlib (Debian: apt-get "
                         "install python3-matplotlib, or set SCAPESIM_PYTHON)",
                         fmt::join(candidates(), ", "))}};
  const TemporaryFile result(result_json), log("");
  const std::string script = (data_folder() / "reports" / "plot.py").string();
  const int code = call({*python, "-W", "ignore", script, result.path().string(),
                         fmt::format("--output={}", figure.string())},
                        log.path());
  const std::vector<std::string> said = lines_of(read_file(log.path(), "messages of the plot"));
  if (code == 0) return {true, said};
  return {false,
          {fmt::format(
              "warning: no figure drawn: {}",
              said.empty() ? fmt::format("{} ended with code {}", *python, code) : said.back())}};
}

}  // namespace scapesim::reports
