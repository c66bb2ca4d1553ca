// SPDX-License-Identifier: Apache-2.0
#include "reports/plot.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
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

/// A file of our own in the temporary folder, gone at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string name = (fs::temp_directory_path() / "scapesim-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0)
      throw InputError(Problem{{.file = name}, "", "cannot write the temporary file", ""});
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

/// Exit codes of report.py.
constexpr int kDrawn = 0;
constexpr int kBadInput = 2;
constexpr int kNoMatplotlib = 3;
constexpr int kNotStarted = 127;

/// report.py with these arguments, in the first Python that can draw.
PlotOutcome run_script(std::vector<std::string> arguments) {
  const std::string script = (data_folder() / "reports" / "report.py").string();
  for (const std::string& python : candidates()) {
    const TemporaryFile log("");
    std::vector<std::string> words = {python, "-W", "ignore", script};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const int code = call(words, log.path());
    if (code == kNotStarted || code == kNoMatplotlib) continue;
    std::vector<std::string> said = lines_of(read_file(log.path(), "messages of the drawing"));
    if (code != kDrawn && said.empty()) said = {fmt::format("{} ended with code {}", python, code)};
    return {code == kDrawn      ? Drawing::done
            : code == kBadInput ? Drawing::bad_input
                                : Drawing::failed,
            std::move(said)};
  }
  return {Drawing::failed,
          {fmt::format("none of {} has matplotlib (Debian: apt-get install python3-matplotlib, or "
                       "set SCAPESIM_PYTHON)",
                       fmt::join(candidates(), ", "))}};
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
  const TemporaryFile result(result_json);
  const std::vector<fs::path> names = plot_names(figure);
  PlotOutcome outcome =
      run_script({result.path().string(), fmt::format("--figure=scaling={}", names[0].string()),
                  fmt::format("--figure=breakdown={}", names[1].string())});
  if (outcome.drawing != Drawing::done) {
    const std::string reason = outcome.messages.empty() ? "" : outcome.messages.back();
    outcome.messages = {"warning: no figure drawn: " + reason};
  }
  return outcome;
}

PlotOutcome draw_report(std::span<const std::string> results, const fs::path& folder,
                        const ReportOptions& options) {
  std::vector<std::string> words = {fmt::format("--output={}", folder.string()),
                                    "--formats=" + options.formats, "--date=" + options.date, "--"};
  words.insert(words.end(), results.begin(), results.end());
  return run_script(std::move(words));
}

}  // namespace scapesim::reports
