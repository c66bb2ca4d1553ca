// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/simgrid_engine.hpp"

#include <string>
#include <vector>

#include "sim/base/check.hpp"

namespace scapesim::engine {

SimgridEngine::SimgridEngine() {
  SCAPESIM_CHECK(!simgrid::s4u::Engine::has_instance(), "a SimGrid engine is alive");
  // CM02 with these settings shares links max-min fairly at exactly their bandwidth; a latency
  // factor of 0 takes the weights by latency away. Options are frozen after the first engine.
  static std::vector<std::string> options = {
      "scapesim",
      "--log=root.thresh:error",
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/latency-factor:0",
      "--cfg=network/TCP-gamma:1e15",
      "--cfg=network/optim:Full",
#ifdef __SANITIZE_ADDRESS__
      "--cfg=contexts/factory:thread",  // the sanitizer does not follow switched stacks
#endif
  };
  std::vector<char*> arguments;
  for (std::string& option : options) arguments.push_back(option.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(options.size());
  engine_ = new simgrid::s4u::Engine(&count, arguments.data());
}

SimgridEngine::~SimgridEngine() { delete engine_; }

}  // namespace scapesim::engine
