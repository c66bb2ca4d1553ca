// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/simgrid_engine.hpp"

#include <array>
#include <iterator>
#include <string>

#include "sim/base/check.hpp"

namespace scapesim::engine {

SimgridEngine::SimgridEngine() {
  SCAPESIM_CHECK(!simgrid::s4u::Engine::has_instance(), "a SimGrid engine is alive");
  // CM02 with these settings shares links max-min fairly at exactly their bandwidth; a latency
  // factor of 0 takes the weights by latency away. Options are frozen after the first engine.
  static std::array<std::string, 7> options = {"scapesim",
                                               "--log=root.thresh:error",
                                               "--cfg=network/model:CM02",
                                               "--cfg=network/crosstraffic:0",
                                               "--cfg=network/latency-factor:0",
                                               "--cfg=network/TCP-gamma:1e15",
                                               "--cfg=network/optim:Full"};
  std::array<char*, 8> argv{};
  int argc = 0;
  for (std::string& option : options) argv[static_cast<std::size_t>(argc++)] = option.data();
  engine_ = new simgrid::s4u::Engine(&argc, argv.data());
}

SimgridEngine::~SimgridEngine() { delete engine_; }

}  // namespace scapesim::engine
