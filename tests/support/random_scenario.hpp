// SPDX-License-Identifier: Apache-2.0
// Random sound scenarios: small models, every method and switch, one or several GPUs per node; and
// profiles with random rates, latencies and ranges.
#pragma once

#include <cmath>

#include "sim/base/random.hpp"
#include "tests/support/prediction.hpp"

namespace scapesim::test {

inline bool coin(Random& random) { return random.below(2) == 1; }
inline int one_of(Random& random, std::initializer_list<int> choices) {
  return *(choices.begin() + static_cast<std::ptrdiff_t>(random.below(choices.size())));
}
/// Uniform in its logarithm.
inline double between(Random& random, double low, double high) {
  return low * std::pow(high / low, random.uniform());
}
template <class E>
E any_of(Random& random) {
  return names<E>()[static_cast<std::size_t>(random.below(names<E>().size()))].value;
}

/// Experts, windows and norms of a model whose other sizes are chosen.
inline void add_random_variety(spec::Model& model, Random& random) {
  model.norm_placement = any_of<spec::NormPlacement>(random);
  model.qk_norm = any_of<spec::QkNorm>(random);
  model.causal = coin(random);
  model.window = one_of(random, {0, 0, 100, 1024});
  model.full_attention_every = one_of(random, {0, 2, 3});
  if (coin(random)) return;
  model.experts = one_of(random, {4, 8, 16});
  model.experts_per_token = one_of(random, {1, 2, 4});
  model.shared_experts = one_of(random, {0, 1});
  model.expert_ffn = 8 * one_of(random, {16, 100});
  model.dense_layers = model.layers > 1 ? one_of(random, {0, 1}) : 0;
}

inline spec::Model random_model(Random& random) {
  spec::Model model;
  model.name = "random";
  model.layers = one_of(random, {1, 2, 5, 12});
  model.heads = one_of(random, {4, 8, 16});
  model.kv_heads = model.heads / one_of(random, {1, 2, 4});
  model.head_dim = one_of(random, {32, 64, 96, 128});
  model.hidden = model.heads * model.head_dim;
  model.ffn = model.hidden * one_of(random, {2, 4}) + 8 * one_of(random, {0, 3});
  model.activation = any_of<spec::Activation>(random);
  model.norm = any_of<spec::Norm>(random);
  model.positions = any_of<spec::Positions>(random);
  model.max_positions = model.positions == spec::Positions::learned ? 4096 : 0;
  model.vocab = one_of(random, {1000, 32'000, 50'304});
  model.tied_embeddings = coin(random);
  model.biases = any_of<spec::Biases>(random);
  if (coin(random)) add_random_variety(model, random);
  return model;
}

inline spec::Training random_training(Random& random) {
  spec::Training training;
  training.micro_batch = one_of(random, {1, 2, 8});
  training.sequence = one_of(random, {128, 1024, 4096});
  training.precision = static_cast<spec::Precision>(random.below(4));  // fp32, fp16, bf16, fp8
  training.gradient_dtype = any_of<spec::GradientDtype>(random);
  training.optimizer = static_cast<spec::Optimizer>(random.below(3));  // all but lamb
  training.recompute = any_of<spec::Recompute>(random);
  training.overlap_gradients = coin(random);
  if (coin(random)) training.bucket = Bytes(between(random, 1e6, 1e9));
  return training;
}

inline spec::Strategy random_scape(Random& random) {
  spec::Strategy s;
  s.method = spec::Method::scape;
  s.density = between(random, 1e-3, 1);
  if (coin(random)) s.density_warmup = 100, s.at_step = static_cast<int>(random.below(200));
  s.mask_partition = any_of<spec::MaskPartition>(random);
  s.mask_overlap = random.uniform();
  s.mask_delay = one_of(random, {0, 1});
  s.mask_wait = s.mask_delay == 0 ? spec::MaskWait::blocking : any_of<spec::MaskWait>(random);
  s.mask_format = any_of<spec::MaskFormat>(random);
  s.owners = any_of<spec::Owners>(random);
  s.payload_buffers = any_of<spec::PayloadBuffers>(random);
  s.payload_dtype = any_of<spec::PayloadDtype>(random);
  s.second_payload = any_of<spec::SecondPayload>(random);
  s.offload.residual = coin(random);
  if (coin(random)) s.offload_chunk = Bytes(between(random, 1e6, 1e9));
  return s;
}

inline spec::Cluster random_cluster(Random& random) {
  spec::Cluster cluster = scenario_of(gpt_345m(), 1).cluster;
  cluster.gpus_per_node = one_of(random, {1, 1, 2, 4});
  cluster.nics_per_node = one_of(random, {1, cluster.gpus_per_node});
  cluster.nodes = one_of(random, {1, 2, 3, 8, 16});
  cluster.gpus = cluster.nodes * cluster.gpus_per_node;
  cluster.nic_bandwidth = BytesPerSecond(between(random, 1e9, 1e11));
  cluster.node_link_bandwidth = BytesPerSecond(between(random, 1e10, 1e12));
  cluster.host_link.bandwidth = BytesPerSecond(between(random, 1e10, 1e12));
  cluster.host_memory_bandwidth = BytesPerSecond(between(random, 1e11, 1e12));
  if (coin(random)) {
    cluster.fabric.kind = spec::FabricKind::fat_tree;
    cluster.fabric.nodes_per_rack = one_of(random, {2, 4, 32});
    cluster.fabric.taper = one_of(random, {1, 2, 4});
  }
  return cluster;
}

inline spec::Scenario random_scenario(std::uint64_t seed) {
  Random random(seed);
  spec::Scenario s;
  s.name = "random " + std::to_string(seed);
  s.model = random_model(random);
  s.training = random_training(random);
  s.cluster = random_cluster(random);
  if (coin(random)) {
    s.strategy = random_scape(random);
    s.training.optimizer = spec::Optimizer::adams;
  }
  s.strategy.kernels = any_of<spec::Kernels>(random);
  if (coin(random)) {
    s.strategy.sharding = spec::Sharding::zero1;
    s.strategy.offload.replica = s.strategy.method == spec::Method::scape && coin(random);
  }
  s.training.global_batch = s.training.micro_batch * s.cluster.gpus * one_of(random, {1, 2, 3});
  for (const spec::Violation& violation : spec::violations(s))
    throw InternalError(violation.key + ": " + violation.what);
  return s;
}

inline void spread(cost::Profile& profile, const std::string& key, double value, Random& random) {
  cost::Number& number = profile.numbers.at(key);
  number.value = value;
  number.low = value * random.uniform(0.5, 1);
  number.high = value * random.uniform(1, 2);
}

inline cost::Profile random_profile(std::uint64_t seed) {
  Random random(seed + 1'000'000);
  cost::Profile profile = round_profile();
  spread(profile, "network.efficiency", random.uniform(0.3, 0.99), random);
  spread(profile, "network.hop_latency_s", between(random, 1e-6, 1e-3), random);
  spread(profile, "network.scalar_latency_s", between(random, 1e-6, 1e-4), random);
  spread(profile, "gemm.k_half_B", between(random, 10, 1000), random);
  spread(profile, "gemm.scale", random.uniform(0.5, 1), random);
  spread(profile, "hbm.launch_s", between(random, 1e-7, 1e-5), random);
  spread(profile, "copy.h2d_Bps", between(random, 1e10, 5e11), random);
  spread(profile, "copy.d2h_Bps", between(random, 1e10, 5e11), random);
  spread(profile, "copy.latency_s", between(random, 1e-6, 1e-4), random);
  spread(profile, "host.step_s", between(random, 1e-4, 1e-2), random);
  spread(profile, "host.micro_batch_s", between(random, 1e-5, 1e-3), random);
  spread(profile, "model.discrepancy", 1, random);
  if (coin(random)) {
    profile.numbers["network.transport_cap_Bps"] = exactly(1, cost::Factor::network);
    spread(profile, "network.transport_cap_Bps", between(random, 5e8, 1e11), random);
  }
  return profile;
}

}  // namespace scapesim::test
