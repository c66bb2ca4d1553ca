// SPDX-License-Identifier: Apache-2.0
// scapesim-bench: measures a CUDA device for `scapesim calibrate`.
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <unistd.h>

#include "kernels/bench/session.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/base/version.hpp"

namespace {

using namespace scapesim;
using namespace scapesim::bench;

constexpr int kBadInput = 2;
constexpr int kFailed = 70;
constexpr int kNoDevice = 77;
constexpr int kInterrupted = 130;

volatile std::sig_atomic_t stop_asked = 0;
void ask_to_stop(int) { stop_asked = 1; }

/// ISO 8601, UTC, by day.
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// The list that the build makes beside the program, or the one asked for.
std::vector<GemmCase> shapes_of(const Options& options) {
  std::filesystem::path file = options.shapes;
  if (file.empty()) {
    file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gemm_shapes.csv";
    if (!std::filesystem::exists(file)) return {};
  }
  return read_shapes(read_file(file, "shapes"), file.string());
}

int run(const Options& options) {
  const std::vector<GemmCase> shapes = shapes_of(options);
  const std::string missing = device_missing();
  if (!missing.empty()) {
    fmt::print(stderr, "{}\n", missing);
    return kNoDevice;
  }
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  RowFile file(options.output);
  Session session{.options = options,
                  .provenance = {.machine = options.machine.empty() ? host_name() : options.machine,
                                 .gpu = {},
                                 .driver = {},
                                 .date = today(),
                                 .tool = "scapesim-bench " + std::string(version())},
                  .file = file,
                  .stop = [] { return stop_asked != 0; },
                  .progress = [](const std::string& text) { fmt::print(stderr, "{}\n", text); }};
  measure_device(session, shapes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const auto* ended = std::get_if<Ended>(&parsed)) {
    fmt::print(ended->code == 0 ? stdout : stderr, "{}", ended->text);
    return ended->code;
  }
  try {
    return run(std::get<Options>(parsed));
  } catch (const Interrupted&) {
    fmt::print(stderr, "interrupted: the rows measured until now are in the file\n");
    return kInterrupted;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kFailed;
  }
}
