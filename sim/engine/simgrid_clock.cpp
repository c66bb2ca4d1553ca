// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/simgrid_clock.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <simgrid/kernel/resource/Model.hpp>

#include "sim/engine/simgrid_engine.hpp"

namespace scapesim::engine {

namespace {

/// Offers the replay's next event to SimGrid and serves it when SimGrid's clock has come there.
class ReplayModel : public simgrid::kernel::resource::Model {
 public:
  ReplayModel(ReplayState& state, double start)
      : Model("scapesim replay"), state_(state), start_(start) {}

  double next_occurring_event(double now) override {
    const std::optional<double> date = event_date();
    return date ? std::max(0.0, *date - now) : -1;  // SimGrid's word for never
  }

  /// The clock is a sum of steps and of earlier simulations: it may stand some units in the last
  /// place before the date it was asked to go to.
  void update_actions_state(double now, double /*delta*/) override {
    const double reached = now + 4e-16 * now;
    while (event_date().value_or(kNever) <= reached) state_.advance();
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  std::optional<double> event_date() const {
    const std::optional<Seconds> next = state_.next_event();
    return next ? std::optional(start_ + next->si()) : std::nullopt;
  }

  ReplayState& state_;
  double start_;
};

}  // namespace

void run_on_simgrid_clock(ReplayState& state) {
  SimgridEngine engine;
  simgrid::s4u::create_empty_zone("cluster")->create_host("driver", 1.0);
  engine->add_model(std::make_shared<ReplayModel>(state, simgrid::s4u::Engine::get_clock()));
  engine->run();
  while (!state.done()) state.advance();  // only after a deadlock, and throws
}

}  // namespace scapesim::engine
