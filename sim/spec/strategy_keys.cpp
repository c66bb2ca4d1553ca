// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/strategy_keys.hpp"

#include <algorithm>

#include "sim/spec/method_rules.hpp"

namespace scapesim::spec {
namespace {

template <auto Member>
bool set(const Strategy& strategy) {
  return strategy.*Member != Strategy().*Member;
}

bool offloads(const Strategy& s) { return s.offload.residual || s.offload.replica; }
bool leaves_parts_out(const Strategy& s) {
  return !(s.zeropp.weights && s.zeropp.secondary && s.zeropp.gradients);
}

template <Method... kMethods>
bool method(const Scenario& s) {
  return ((s.strategy.method == kMethods) || ...);
}

template <Sharding... kShardings>
bool sharding(const Scenario& s) {
  return ((s.strategy.sharding == kShardings) || ...);
}

bool selects(const Scenario& s) { return selects_by_density(s.strategy.method); }
bool shares_masks(const Scenario& s) {
  return method<Method::topk>(s) && s.strategy.exchange == Exchange::mask;
}
bool sends_late(const Scenario& s) { return method<Method::onebit_adam, Method::powersgd>(s); }
bool gathers_layers(const Scenario& s) {
  return sharding<Sharding::zero3, Sharding::fsdp, Sharding::hsdp>(s);
}
bool quantises(const Scenario& s) { return method<Method::qsdp, Method::zeropp>(s); }

}  // namespace

std::span<const StrategyKey> strategy_keys() {
  using enum Method;
  using enum Sharding;
  using S = const Scenario&;
  constexpr std::string_view kLayers = "zero3, fsdp and hsdp";
  constexpr std::string_view kSelecting = "scape, topk, dgc and oktopk";
  constexpr std::string_view kMasks = "scape, and topk with exchange = \"mask\"";
  static constexpr StrategyKey kRows[] = {
      {"shard_group", set<&Strategy::shard_group>,
       [](S s) { return sharding<hsdp>(s) || method<zeropp>(s); }, "hsdp and zeropp"},
      {"prefetch", set<&Strategy::prefetch>, gathers_layers, kLayers},
      {"reshard_after_forward", set<&Strategy::reshard_after_forward>, gathers_layers, kLayers},
      {"reduction", set<&Strategy::reduction>,
       [](S s) { return method<dense>(s) && sharding<zero1, zero2>(s); },
       "dense with zero1 or zero2"},
      {"density", set<&Strategy::density>, selects, kSelecting},
      {"density_warmup", set<&Strategy::density_warmup>, selects, kSelecting},
      {"at_step", set<&Strategy::at_step>, [](S s) { return selects(s) || sends_late(s); },
       "scape, topk, dgc, oktopk, onebit_adam and powersgd"},
      {"mask_partition", set<&Strategy::mask_partition>, method<scape>, "scape"},
      {"mask_overlap", set<&Strategy::mask_overlap>,
       [](S s) {
         const bool global = s.strategy.mask_partition == MaskPartition::global;
         return shares_masks(s) || (method<scape>(s) && global);
       },
       "scape with mask_partition = \"global\", and topk with exchange = \"mask\""},
      {"mask_delay", set<&Strategy::mask_delay>, method<scape>, "scape"},
      {"mask_wait", set<&Strategy::mask_wait>, method<scape>, "scape"},
      {"mask_format", set<&Strategy::mask_format>,
       [](S s) { return method<scape>(s) || shares_masks(s); }, kMasks},
      {"owners", set<&Strategy::owners>, [](S s) { return method<scape>(s) && sharding<none>(s); },
       "scape without sharding"},
      {"payload_buffers", set<&Strategy::payload_buffers>, method<scape>, "scape"},
      {"payload_dtype", set<&Strategy::payload_dtype>,
       [](S s) { return method<scape, local_sgd>(s) || shares_masks(s); },
       "scape, local_sgd, and topk with exchange = \"mask\""},
      {"second_payload", set<&Strategy::second_payload>,
       [](S s) { return method<scape>(s) && sharding<zero1>(s); }, "scape with zero1"},
      {"offload", offloads, method<scape>, "scape"},
      {"offload_chunk", set<&Strategy::offload_chunk>,
       [](S s) { return method<scape>(s) && offloads(s.strategy); }, "scape with offload"},
      {"exchange", set<&Strategy::exchange>, method<topk>, "topk"},
      {"reduce_dtype", set<&Strategy::reduce_dtype>,
       [](S s) { return method<dense>(s) && sharding<none, zero1, zero2>(s); },
       "dense with none, zero1 or zero2"},
      {"weight_bits", set<&Strategy::weight_bits>, quantises, "qsdp and zeropp"},
      {"gradient_bits", set<&Strategy::gradient_bits>, quantises, "qsdp and zeropp"},
      {"block", set<&Strategy::block>, quantises, "qsdp and zeropp"},
      {"zeropp", leaves_parts_out, method<Method::zeropp>, "zeropp"},
      {"dct_chunk", set<&Strategy::dct_chunk>, method<demo>, "demo"},
      {"dct_topk", set<&Strategy::dct_topk>, method<demo>, "demo"},
      {"low_rank", set<&Strategy::low_rank>, method<powersgd>, "powersgd"},
      {"dense_steps", set<&Strategy::dense_steps>, sends_late, "onebit_adam and powersgd"},
      {"local_steps", set<&Strategy::local_steps>, method<local_sgd>, "local_sgd"},
      {"outer_wait", set<&Strategy::outer_wait>, method<local_sgd>, "local_sgd"},
  };
  return kRows;
}

const StrategyKey* strategy_key(std::string_view name) {
  const auto rows = strategy_keys();
  const auto found = std::ranges::find(rows, name, &StrategyKey::name);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace scapesim::spec
