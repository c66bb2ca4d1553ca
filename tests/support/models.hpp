// SPDX-License-Identifier: Apache-2.0
// Models and training recipes written by hand, so that tests below the scenario layer have them.
#pragma once

#include "sim/workload/workload.hpp"

namespace scapesim::test {

/// A GPT-2/3 block: GELU, layer norm, biases, learned positions, tied embeddings, ffn = 4 hidden.
struct GptShape {
  int layers, hidden, heads, positions, vocab;
};
inline spec::Model gpt(const GptShape& shape) {
  spec::Model model;
  model.name = "gpt";
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = model.kv_heads = shape.heads;
  model.head_dim = shape.hidden / shape.heads;
  model.ffn = 4 * shape.hidden;
  model.max_positions = shape.positions;
  model.vocab = shape.vocab;
  return model;
}

/// A Llama block: SwiGLU, RMS norm, rotary positions, no biases, untied embeddings of 32,000 words.
struct LlamaShape {
  int layers, hidden, heads, kv_heads, ffn;
};
inline spec::Model llama(const LlamaShape& shape) {
  spec::Model model;
  model.name = "llama";
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.head_dim = shape.hidden / shape.heads;
  model.ffn = shape.ffn;
  model.activation = spec::Activation::swiglu;
  model.norm = spec::Norm::rmsnorm;
  model.positions = spec::Positions::rope;
  model.vocab = 32'000;
  model.tied_embeddings = false;
  model.biases = spec::Biases::none;
  return model;
}

inline spec::Model gpt_345m() { return gpt({24, 1024, 16, 1024, 50'304}); }
inline spec::Model gpt3_175b() { return gpt({96, 12'288, 96, 2048, 51'200}); }
inline spec::Model llama_500m() { return llama({16, 1536, 16, 8, 4096}); }
inline spec::Model llama_1_8b() { return llama({24, 2560, 32, 8, 6912}); }
inline spec::Model llama_7b() { return llama({32, 4096, 32, 32, 11'008}); }
inline spec::Model llama_13b() { return llama({40, 5120, 40, 40, 13'824}); }
inline spec::Model llama_70b() { return llama({80, 8192, 64, 8, 28'672}); }

inline spec::Training training_of(std::int64_t micro_batch, std::int64_t sequence) {
  spec::Training training;
  training.global_batch = micro_batch;
  training.micro_batch = micro_batch;
  training.sequence = sequence;
  training.optimizer = spec::Optimizer::adams;
  return training;
}

inline Flops flops_of(const std::vector<workload::Operation>& operations) {
  Flops sum;
  for (const workload::Operation& operation : operations) sum += workload::flops_of(operation);
  return sum;
}

/// Bytes of all memory-bound passes in a list.
inline Bytes traffic_of(const std::vector<workload::Operation>& operations) {
  Bytes sum;
  for (const workload::Operation& operation : operations)
    if (const auto* pass = std::get_if<workload::Pass>(&operation.shape)) sum += pass->traffic;
  return sum;
}

inline const workload::Operation& operation_named(
    const std::vector<workload::Operation>& operations, std::string_view name) {
  for (const workload::Operation& operation : operations)
    if (operation.name == name) return operation;
  throw InternalError("no operation " + std::string(name));
}

}  // namespace scapesim::test
