// SPDX-License-Identifier: Apache-2.0
// scapesim-profiles ROOT: rebuilds ROOT/calib/profiles from ROOT/calib/data; residuals to stdout.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "calib/shipped.hpp"
#include "sim/base/file.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: scapesim-profiles ROOT\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path root = argv[1];
    const auto shipped = scapesim::calib::build_shipped_profiles(root);
    for (const auto& profile : shipped.profiles)
      scapesim::write_file(root / "calib" / "profiles" / (profile.id + ".json"),
                           scapesim::cost::profile_json(profile));
    std::fputs(shipped.report.c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
