// SPDX-License-Identifier: Apache-2.0
// Strong scaling of a scenario by the library: step time on its GPUs, half and a quarter of them.
#include <cstdio>

#include "sim/base/data_folder.hpp"
#include "sim/predict/predict.hpp"
#include "sim/scenario/load.hpp"

int main(int argc, char** argv) try {
  using namespace scapesim;
  set_data_folder(SCAPESIM_INSTALLED_DATA);
  const spec::Scenario base =
      scenario::load_scenarios(argc > 1 ? argv[1] : "scenario.toml").front();
  const cost::Profile profile = cost::load_profile(base.calibration.profile, ".");
  for (const int part : {1, 2, 4}) {
    const spec::Scenario scenario = scenario::with_gpus(base, base.cluster.gpus / part, false);
    const Prediction prediction = predict(scenario, profile);
    if (const auto* run = std::get_if<result::Run>(&prediction.outcome))
      std::printf("%d GPUs: %.4f s\n", run->gpus, run->step_time.si());
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
