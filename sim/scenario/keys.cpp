// SPDX-License-Identifier: Apache-2.0
// The key table: section, name, type with range and place in the Spec, default, help.
#include "sim/scenario/keys.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "sim/scenario/load.hpp"
#include "sim/scenario/network_fields.hpp"
#include "sim/scenario/training_fields.hpp"
#include "sim/scenario/uneven_fields.hpp"

// Accessor of a member of the Spec, for reading and writing.
#define AT(member) \
  [](auto& s) -> auto& { return s.member; }

namespace scapesim::scenario {
namespace {

using namespace literals;

constexpr Default kFromSpec{};
constexpr Default required(std::string_view example) { return {Default::Kind::required, example}; }
constexpr Default derived(std::string_view from) { return {Default::Kind::derived, from}; }

constexpr Range<std::int64_t> kSize{1, 1'000'000};  // keeps every product of counts in 64 bits
constexpr Range<std::int64_t> kBatch{1, 1'000'000'000};
constexpr Range<std::int64_t> kDegree{1, 1'000'000};
constexpr Range<BytesPerSecond> kBandwidth{BytesPerSecond(1e3), 1000_TBps};
constexpr Range<BytesPerSecond> kBandwidthOrNone{BytesPerSecond(0), 1000_TBps};
constexpr Range<FlopsPerSecond> kRate{FlopsPerSecond(1e9), 1e6_TFLOPps};
constexpr Range<FlopsPerSecond> kRateOrNone{FlopsPerSecond(0), 1e6_TFLOPps};
constexpr Range<Bytes> kCapacity{0_B, 1e6_GB};
constexpr Range<Bytes> kMemory{1_MB, 1e6_GB};
constexpr Range<Bytes> kChunk{1_MB, 1e6_GB};  // bounds the operations of a step

constexpr Default kUnknown = derived("none: not known");

/// A text for people and other commands: no part of the Spec.
Field remark() {
  Field field = text(AT(name));
  field.store = [](spec::Scenario&, const Value& value) -> std::optional<Fault> {
    const auto read = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&read)) return *fault;
    return std::nullopt;
  };
  field.text = nullptr;
  return field;
}

std::vector<Key> general_keys() {
  return {{"", "name", preset(AT(name)), derived("the file's name"), "name in results"},
          {"", "description", remark(), derived("none"), "one line for people"},
          {"", "usual_profile", remark(), kUnknown,
           "of a cluster preset: the profile of calib/profiles that describes it; plan --clusters "
           "takes it"}};
}

std::vector<Key> model_keys() {
  return {
      {"model", "preset", preset(AT(model.name)), derived("none: the other keys of [model]"),
       "a model of scenarios/models, or the path of such a file"},
      {"model", "layers", integer(AT(model.layers), {1, 10'000}), required("24"),
       "transformer layers"},
      {"model", "hidden", integer(AT(model.hidden), {1, 200'000}), required("1024"),
       "width of the residual stream"},
      {"model", "heads", integer(AT(model.heads), {1, 4096}), required("16"),
       "attention (query) heads"},
      {"model", "kv_heads", integer(AT(model.kv_heads), {1, 4096}), derived("heads"),
       "key and value heads; fewer than heads is grouped-query attention"},
      {"model", "head_dim", integer(AT(model.head_dim), {1, 4096}), derived("hidden / heads"),
       "width of a head's queries and keys"},
      {"model", "ffn", integer(AT(model.ffn), {1, 2'000'000}), required("4096"),
       "inner width of the MLP, per gate"},
      {"model", "activation", choice(AT(model.activation)), kFromSpec,
       "MLP non-linearity; swiglu and geglu have a gate matrix"},
      {"model", "norm", choice(AT(model.norm)), kFromSpec, "normalisation layers"},
      {"model", "norm_parameters", choice(AT(model.norm_parameters)), kFromSpec,
       "usual: weight, of a layer norm also bias"},
      {"model", "norm_placement", choice(AT(model.norm_placement)), kFromSpec,
       "before each branch, behind the sum, behind the branch, before and behind the branch"},
      {"model", "blocks", choice(AT(model.blocks)), kFromSpec,
       "attention and MLP one after the other, or both from the same input"},
      {"model", "positions", choice(AT(model.positions)), kFromSpec, "position encoding"},
      {"model", "max_positions", integer(AT(model.max_positions), {0, 100'000'000}),
       derived("sequence with learned positions, else 0"), "rows of a learned position table"},
      {"model", "vocab", integer(AT(model.vocab), {1, 100'000'000}), required("32000"),
       "rows of the embedding, padding included"},
      {"model", "tied_embeddings", flag(AT(model.tied_embeddings)), kFromSpec,
       "the output layer shares the embedding's matrix"},
      {"model", "biases", biases(), kFromSpec, "linear layers with a bias; true is all of them"},
      {"model", "huggingface", preset(AT(model.name)), derived("none: the other keys of [model]"),
       "path of a Hugging Face config.json, instead of a preset"},
  };
}

std::vector<Key> attention_keys() {
  return {
      {"model", "attention", choice(AT(model.attention)), kFromSpec,
       "latent: keys and values from a low-rank vector (DeepSeek)"},
      {"model", "qk_norm", choice(AT(model.qk_norm)), kFromSpec,
       "norm of queries and keys, per head or over all heads"},
      {"model", "window", integer(AT(model.window), {0, 100'000'000}), kFromSpec,
       "keys that a query sees in a windowed layer; 0 is all"},
      {"model", "full_attention_every", integer(AT(model.full_attention_every), {0, 10'000}),
       kFromSpec, "with a window: every so many layers one sees all keys; 0 is none"},
      {"model", "q_lora_rank", integer(AT(model.q_lora_rank), {0, 100'000}), kFromSpec,
       "latent: width of the compressed query, 0 is not compressed"},
      {"model", "kv_lora_rank", integer(AT(model.kv_lora_rank), {0, 100'000}), kFromSpec,
       "latent: width of the compressed keys and values"},
      {"model", "rope_head_dim", integer(AT(model.rope_head_dim), {0, 4096}), kFromSpec,
       "latent: part of head_dim that is rotated, one key for all heads"},
      {"model", "value_head_dim", integer(AT(model.value_head_dim), {0, 4096}), kFromSpec,
       "width of a head's values, 0 is head_dim"},
      {"model", "causal", flag(AT(model.causal)), kFromSpec, "false is an encoder"},
  };
}

std::vector<Key> expert_keys() {
  return {
      {"model", "experts", integer(AT(model.experts), {0, 4096}), kFromSpec,
       "routed experts of a mixture-of-experts layer"},
      {"model", "experts_per_token", integer(AT(model.experts_per_token), {0, 4096}), kFromSpec,
       "routed experts that a token visits"},
      {"model", "shared_experts", integer(AT(model.shared_experts), {0, 4096}), kFromSpec,
       "experts that every token visits"},
      {"model", "expert_ffn", integer(AT(model.expert_ffn), {0, 2'000'000}), derived("ffn"),
       "inner width of an expert"},
      {"model", "dense_layers", integer(AT(model.dense_layers), {0, 10'000}), kFromSpec,
       "leading layers without experts"},
      {"model", "moe_every", integer(AT(model.moe_every), {1, 10'000}), kFromSpec,
       "behind these, the last of every so many layers has experts"},
      {"model", "router_bias", flag(AT(model.router_bias)), kFromSpec,
       "a bias per expert corrects the router's choice"},
      {"model", "shared_expert_gate", flag(AT(model.shared_expert_gate)), kFromSpec,
       "a gate weighs the shared experts"},
      {"model", "capacity_factor", number(AT(model.capacity_factor), {0, 100}), kFromSpec,
       "room of an expert over its mean load, always filled; 0 drops no token"},
      {"model", "expert_imbalance", number(AT(model.expert_imbalance), {1, 100}), kFromSpec,
       "load of the fullest expert-parallel rank over the mean"},
      {"model", "mtp_layers", integer(AT(model.mtp_layers), {0, 100}), kFromSpec,
       "multi-token prediction modules"},
      {"model", "token_types", integer(AT(model.token_types), {0, 1000}), kFromSpec,
       "rows of a segment embedding"},
      {"model", "embedding_norm", flag(AT(model.embedding_norm)), kFromSpec,
       "a norm behind the embedding"},
      {"model", "mlm_head", flag(AT(model.mlm_head)), kFromSpec,
       "dense layer, norm and output bias before the logits (BERT)"},
      {"model", "pooler", flag(AT(model.pooler)), kFromSpec,
       "dense layer and next-sentence classifier (BERT)"},
  };
}

std::vector<Key> training_keys() {
  return {
      {"training", "global_batch", integer(AT(training.global_batch), kBatch), required("1024"),
       "sequences per step of the whole job"},
      {"training", "micro_batch", integer(AT(training.micro_batch), kSize), required("8"),
       "sequences per GPU and micro-batch"},
      {"training", "sequence", integer(AT(training.sequence), {1, 100'000'000}), required("2048"),
       "tokens per sequence; a model preset brings its own"},
      {"training", "precision", choice(AT(training.precision)), kFromSpec,
       "compute precision of the matrix products"},
      {"training", "gradient_dtype", choice(AT(training.gradient_dtype)), kFromSpec,
       "type in which gradients are accumulated and reduced"},
      {"training", "optimizer", choice(AT(training.optimizer)), kFromSpec, "optimizer"},
      {"training", "recompute", choice(AT(training.recompute)), kFromSpec,
       "activations computed again in the backward pass"},
      {"training", "recompute_layers", optional_integer(AT(training.recompute_layers), {0, 10'000}),
       kFromSpec, "only so many layers of each pipeline stage, from its first; none is all"},
      {"training", "activation_offload", flag(AT(training.activation_offload)), kFromSpec,
       "activations wait in host memory for their backward pass, two layers at a time on the way"},
      {"training", "offload_layers", optional_integer(AT(training.offload_layers), {0, 10'000}),
       kFromSpec,
       "activation_offload: only so many layers of each pipeline stage, or chunk of it, from its "
       "first; none is all"},
      {"training", "gradient_sync", choice(AT(training.gradient_sync)), kFromSpec,
       "dense, unsharded: gradients are summed once per step, or behind every micro-batch as "
       "PyTorch's DDP does without no_sync"},
      {"training", "attention", choice(AT(training.attention)), kFromSpec,
       "attention core: flash (the library the profile knows), an older one, or two batched "
       "products and a softmax that write all scores"},
      {"training", "loss", choice(AT(training.loss)), kFromSpec,
       "cross-entropy in Megatron-LM's passes, in one kernel, or PyTorch's"},
      {"training", "kernels", choice(AT(training.kernels)), kFromSpec,
       "element-wise work: one kernel per pass; eager: PyTorch's kernel per operator, weight "
       "gradients added to their buffer by passes of their own"},
      {"training", "autocast", flag(AT(training.autocast)), kFromSpec,
       "PyTorch's automatic mixed precision: fp32 weights cast at each use (and gathered so under "
       "full sharding), sums of the residual stream in fp32"},
      {"training", "hidden_dropout", number(AT(training.hidden_dropout), {0, 0.99}), kFromSpec,
       "rate behind the embedding and both branches of a layer; any rate costs the same"},
      {"training", "attention_dropout", number(AT(training.attention_dropout), {0, 0.99}),
       kFromSpec, "rate of the probabilities; counted where attention = \"unfused\" writes them"},
      {"training", "overlap_gradients", flag(AT(training.overlap_gradients)), kFromSpec,
       "reduce gradient buckets during the backward pass; no effect on scape"},
      {"training", "bucket", optional_quantity<Bytes>(AT(training.bucket), kChunk), kFromSpec,
       "size of a gradient bucket; none is one buffer for all gradients, or Megatron-LM's default "
       "when they overlap: 40 million elements, a million per rank if that is more"},
      {"training", "overlap_parameters", flag(AT(training.overlap_parameters)), kFromSpec,
       "zero1, zero2: gather parameters during the next forward pass"},
  };
}

std::vector<Key> tuning_keys() {
  return {
      {"training", "frozen_layers", integer(AT(training.frozen_layers), {0, 10'000}), kFromSpec,
       "leading transformer layers that are not trained, with the embedding; 0 trains all"},
      {"training", "lora_rank", integer(AT(training.lora.rank), {0, 100'000}), kFromSpec,
       "rank r of LoRA's adapters beside frozen matrices; 0: the parameters themselves are "
       "trained"},
      {"training", "lora_targets", lora_targets(), kFromSpec,
       "matrices with an adapter, by PEFT's names; all-linear is every matrix of the layers"},
      {"training", "frozen_weights", choice(AT(training.frozen_weights)), kFromSpec,
       "of frozen matrices: in the type they are multiplied in, or QLoRA's four bits, dequantised "
       "before every product"},
  };
}

std::vector<Key> data_keys() {
  constexpr Range<Seconds> kStall{0_s, 1e5_s};
  return {
      {"training", "documents", choice(AT(training.documents)), kFromSpec,
       "what fills a sequence: one document each; several, attending to themselves alone; one, "
       "padded to the sequence or to the longest of its micro-batch"},
      {"training", "document_length", document_lengths(), kFromSpec,
       "tokens of the documents: \"700\", \"lognormal MEAN SIGMA\" (sigma of the logarithm), or "
       "lengths with shares \"512 x 0.5, 4096 x 0.5\""},
      {"training", "batch_ramp", batch_ramp(), kFromSpec,
       "batch that grows to global_batch: \"START INCREMENT SAMPLES\" as Megatron-LM's "
       "--rampup-batch-size, or \"BATCH until TOKENS, ...\""},
      {"training", "data_loading", quantity(AT(training.stalls.data_loading), kStall), kFromSpec,
       "host time per step in which the GPUs wait for data"},
      {"training", "logging", quantity(AT(training.stalls.logging), kStall), kFromSpec,
       "host time of a logged step in which the GPUs wait"},
      {"training", "logging_interval",
       integer(AT(training.stalls.logging_interval), {1, 1'000'000}), kFromSpec,
       "steps from one logged step to the next"},
      {"training", "evaluation_interval",
       integer(AT(training.stalls.evaluation_interval), {0, 1'000'000'000}), kFromSpec,
       "steps between two evaluations; 0 is none"},
      {"training", "evaluation_iterations",
       integer(AT(training.stalls.evaluation_iterations), {0, 1'000'000}), kFromSpec,
       "global batches of an evaluation, forward only"},
  };
}

std::vector<Key> parallelism_keys() {
  return {
      {"parallelism", "tp", integer(AT(parallelism.tp), kDegree), kFromSpec, "tensor parallel"},
      {"parallelism", "pp", integer(AT(parallelism.pp), kDegree), kFromSpec, "pipeline parallel"},
      {"parallelism", "cp", integer(AT(parallelism.cp), kDegree), kFromSpec, "context parallel"},
      {"parallelism", "ep", integer(AT(parallelism.ep), kDegree), kFromSpec, "expert parallel"},
      {"parallelism", "virtual_stages", integer(AT(parallelism.virtual_stages), {1, 10'000}),
       kFromSpec, "model chunks per pipeline stage"},
      {"parallelism", "schedule", choice(AT(parallelism.schedule)), kFromSpec,
       "pipeline schedule; dualpipe is its V form, with virtual_stages = 2"},
      {"parallelism", "sequence_parallel", flag(AT(parallelism.sequence_parallel)), kFromSpec,
       "norms and dropout split along the sequence inside a tensor-parallel group"},
      {"parallelism", "tensor_overlap", flag(AT(parallelism.tensor_overlap)), kFromSpec,
       "collectives of a linear layer's backward pass run beside its products, as Megatron-LM's "
       "asynchronous ones do"},
      {"parallelism", "split_messages", flag(AT(parallelism.split_messages)), kFromSpec,
       "each tensor rank sends its part of a message to the next stage, which gathers it over "
       "NVLink, as Megatron-LM did until 2023 and DeepSpeed does; else each sends the whole"},
      {"parallelism", "context_method", choice(AT(parallelism.context_method)), kFromSpec,
       "keys and values pass around a ring, or heads for sequence by all-to-all"},
      {"parallelism", "dispatcher", choice(AT(parallelism.dispatcher)), kFromSpec,
       "a token's row to each expert chosen, once to each rank that holds any, or to all ranks"},
      {"parallelism", "permute_fusion", flag(AT(parallelism.permute_fusion)), kFromSpec,
       "one kernel sums a token's rows from its experts; else PyTorch's scatter_add, as "
       "Megatron-LM "
       "without --moe-permute-fusion"},
      {"parallelism", "expert_tp", integer(AT(parallelism.expert_tp), {0, 4096}), kFromSpec,
       "tensor parallelism of the experts: 1, or 0 for that of the rest"},
      {"parallelism", "order", mesh_order(), kFromSpec,
       "how ranks are numbered, the fastest axis first"},
      {"parallelism", "stage_layers", stage_layers(), kFromSpec,
       "transformer layers of each stage, then of each stage's next chunk; even is equal shares"},
      {"parallelism", "stage_overlap", choice(AT(parallelism.stage_overlap)), kFromSpec,
       "blocking: a stage waits for its neighbours after every pass, as Megatron-LM's 1f1b does"},
      {"parallelism", "expert_overlap", choice(AT(parallelism.expert_overlap)), kFromSpec,
       "paired: the all-to-all of experts hides behind the pass beside it, as dualpipe's does"},
  };
}

std::vector<Key> strategy_keys() {
  return {
      {"strategy", "method", choice(AT(strategy.method)), kFromSpec,
       "how gradients are communicated; list strategies says what each is"},
      {"strategy", "sharding", choice(AT(strategy.sharding)),
       derived("none; qsdp: fsdp; zeropp: zero3"),
       "who keeps what; zero1 is Megatron-LM's distributed optimizer; list strategies says which "
       "method goes with which"},
      {"strategy", "shard_group", integer(AT(strategy.shard_group), {0, 1'000'000}), kFromSpec,
       "hsdp, zeropp: ranks that share one copy of the parameters; 0 is those of a node"},
      {"strategy", "prefetch", integer(AT(strategy.prefetch), {0, 1000}), kFromSpec,
       "zero3, fsdp, hsdp: layers gathered ahead of the one that runs"},
      {"strategy", "reduction", choice(AT(strategy.reduction)), kFromSpec,
       "zero1: gradients by reduce-scatter, or whole sums on every rank as DeepSpeed's bf16 "
       "optimizer makes them"},
      {"strategy", "reshard_after_forward", flag(AT(strategy.reshard_after_forward)), kFromSpec,
       "zero3, fsdp, hsdp: parameters are gathered again for the backward pass"},
      {"strategy", "kernels", choice(AT(strategy.kernels)), kFromSpec,
       "unfused: the passes of the released implementation"},
      {"strategy", "density", number(AT(strategy.density), {1e-6, 1}),
       derived("1; topk, oktopk: 0.01; dgc: 0.001"),
       "share of elements sent; 0.01 is 99 % sparsity"},
      {"strategy", "density_warmup", integer(AT(strategy.density_warmup), {0, 1'000'000'000}),
       kFromSpec, "steps in which the density falls from 1 to its value"},
      {"strategy", "at_step", integer(AT(strategy.at_step), {-1, 1'000'000'000}), kFromSpec,
       "step of the warm-up to simulate; -1 is after it"},
      {"strategy", "mask_partition", choice(AT(strategy.mask_partition)), kFromSpec,
       "owner: each rank makes the mask of its part; global: all of it, OR-ed over ranks"},
      {"strategy", "mask_overlap", number(AT(strategy.mask_overlap), {0, 1}), kFromSpec,
       "global masks: 0 independent, 1 identical on all ranks"},
      {"strategy", "mask_delay", integer(AT(strategy.mask_delay), {0, 1}), kFromSpec,
       "steps between making a mask and using it"},
      {"strategy", "mask_wait", choice(AT(strategy.mask_wait)), kFromSpec,
       "blocking: the forward pass waits for the mask exchange"},
      {"strategy", "mask_format", choice(AT(strategy.mask_format)), kFromSpec,
       "packed: 1 bit per element; byte: 1 byte"},
      {"strategy", "owners", choice(AT(strategy.owners)), kFromSpec,
       "parts of the mask: whole tensors or even shares; with zero1 always the shards"},
      {"strategy", "payload_buffers", choice(AT(strategy.payload_buffers)), kFromSpec,
       "two: gradient and momentum are reduced apart"},
      {"strategy", "payload_dtype", choice(AT(strategy.payload_dtype)), kFromSpec,
       "type of the values sent"},
      {"strategy", "second_payload", choice(AT(strategy.second_payload)), kFromSpec,
       "zero1: all-reduce of updated weights, as released or left out"},
      {"strategy", "offload", offload_list(), kFromSpec, "state kept in host memory"},
      {"strategy", "offload_chunk", optional_quantity<Bytes>(AT(strategy.offload_chunk), kChunk),
       kFromSpec, "staging buffer of the offload; none is the largest tensor"},
  };
}

std::vector<Key> method_keys() {
  return {
      {"strategy", "reduce_dtype", choice(AT(strategy.reduce_dtype)), kFromSpec,
       "dense: type in which gradients cross the network, that of gradient_dtype or another"},
      {"strategy", "exchange", choice(AT(strategy.exchange)), kFromSpec,
       "topk: indices and values of every rank, or the values of the OR of all ranks' masks"},
      {"strategy", "weight_bits", optional_integer(AT(strategy.weight_bits), {2, 16}), kFromSpec,
       "qsdp, zeropp: bits of a gathered parameter; none is 8"},
      {"strategy", "gradient_bits", optional_integer(AT(strategy.gradient_bits), {2, 16}),
       kFromSpec, "qsdp, zeropp: bits of a gradient; none is 8, zeropp 4"},
      {"strategy", "block", optional_integer(AT(strategy.block), {16, 1'000'000}), kFromSpec,
       "qsdp, zeropp: values that share an fp32 scale; none is 1024, zeropp as DeepSpeed cuts"},
      {"strategy", "zeropp", zeropp_list(), kFromSpec,
       "zeropp: quantised parameter gathers, a second copy in each node, quantised gradients"},
      {"strategy", "dct_chunk", integer(AT(strategy.dct_chunk), {2, 1024}), kFromSpec,
       "demo: side of the square chunks that are transformed"},
      {"strategy", "dct_topk", integer(AT(strategy.dct_topk), {1, 1'000'000}), kFromSpec,
       "demo: coefficients sent of each chunk"},
      {"strategy", "low_rank", integer(AT(strategy.low_rank), {1, 100'000}), kFromSpec,
       "powersgd: rank of the factors that stand for a matrix"},
      {"strategy", "dense_steps", integer(AT(strategy.dense_steps), {0, 1'000'000'000}), kFromSpec,
       "onebit_adam, powersgd: leading steps that send dense gradients; at_step picks one"},
      {"strategy", "local_steps", integer(AT(strategy.local_steps), {1, 100'000}), kFromSpec,
       "local_sgd: steps from one outer all-reduce to the next"},
      {"strategy", "outer_wait", choice(AT(strategy.outer_wait)), kFromSpec,
       "local_sgd: the next round waits for the all-reduce, or takes its result a round late"},
      {"strategy", "tokens_to_loss", number(AT(strategy.tokens_to_loss), {0.01, 100}), kFromSpec,
       "tokens to the same loss over those of dense training, for breakeven"},
  };
}

std::vector<Key> cluster_keys() {
  return {
      {"cluster", "preset", preset(AT(cluster.name)), derived("none: the other keys of [cluster]"),
       "a cluster of topologies, or the path of such a file"},
      {"cluster", "gpus", integer(AT(cluster.gpus), kSize), required("64"), "GPUs of this job"},
      {"cluster", "nodes", integer(AT(cluster.nodes), kSize), required("600"),
       "nodes of the machine"},
      {"cluster", "gpus_per_node", integer(AT(cluster.gpus_per_node), {1, 1024}), kFromSpec,
       "GPUs of a node"},
      {"cluster", "nics_per_node", integer(AT(cluster.nics_per_node), {1, 1024}), kFromSpec,
       "network adapters of a node"},
      {"cluster", "nic_bandwidth", quantity(AT(cluster.nic_bandwidth), kBandwidth),
       required("\"400Gbps\""), "per adapter and direction"},
      {"cluster", "node_link_bandwidth",
       quantity(AT(cluster.node_link_bandwidth), kBandwidthOrNone), kFromSpec,
       "GPU to GPU inside a node, all links of a GPU, per direction; pcie: of a slot"},
      {"cluster", "node_fabric", choice(AT(cluster.node_fabric)), kFromSpec,
       "what joins the GPUs of a node: an NVSwitch, a link per pair, or PCIe alone"},
      {"cluster", "nvlink_domain_nodes", integer(AT(cluster.nvlink_domain_nodes), {1, 1024}),
       kFromSpec, "nodes that share one NVLink switch, 18 of an NVL72"},
      {"cluster", "nic_affinity", nic_affinity(), kFromSpec,
       "adapter of each GPU of a node; none: dealt out in order, with PCIe the nearest"},
      {"cluster", "pcie_tree", pcie_tree(), kFromSpec,
       "node_fabric pcie: what hangs below each socket and switch; empty: all below one socket"},
      {"cluster", "socket_bandwidth", quantity(AT(cluster.socket_bandwidth), kBandwidthOrNone),
       kFromSpec, "node_fabric pcie: between two sockets, per direction"},
      {"cluster", "peer_access", choice(AT(cluster.peer_access)), kFromSpec,
       "node_fabric pcie: GPUs that reach each other without a copy in host memory"},
      {"cluster", "fabric", choice(AT(cluster.fabric.kind)), kFromSpec, "shape of the network"},
      {"cluster", "nodes_per_rack", integer(AT(cluster.fabric.nodes_per_rack), {0, 1'000'000}),
       kFromSpec, "fat_tree, rails, sites: nodes under one leaf switch"},
      {"cluster", "taper", number(AT(cluster.fabric.taper), {1, 1000}), kFromSpec,
       "trees: down-links over up-links of a leaf switch, 1 is non-blocking"},
      {"cluster", "racks_per_pod", integer(AT(cluster.fabric.racks_per_pod), {0, 1'000'000}),
       kFromSpec, "fat_tree: racks of a pod, pods below a core; 0 is two levels without pods"},
      {"cluster", "pod_taper", number(AT(cluster.fabric.pod_taper), {1, 1000}), kFromSpec,
       "fat_tree: down-links over up-links of a pod, beside the taper of its racks"},
      {"cluster", "switch_radix", integer(AT(cluster.fabric.switch_radix), {0, 100'000}), kFromSpec,
       "fat_tree: ports of a switch, gives nodes per rack and racks per pod; 0: as these say"},
      {"cluster", "tree_levels", integer(AT(cluster.fabric.tree_levels), {1, 3}), kFromSpec,
       "fat_tree with a switch_radix: levels of switches"},
      {"cluster", "routing", choice(AT(cluster.fabric.routing)), kFromSpec,
       "fat_tree: all parallel cables share the traffic, or a hash gives a flow one of them"},
      {"cluster", "routing_seed", integer(AT(cluster.fabric.routing_seed), {0, 1'000'000'000}),
       kFromSpec, "of the hash of ecmp and of graphs"},
      {"cluster", "groups", integer(AT(cluster.fabric.groups), {0, 100'000}), kFromSpec,
       "dragonflies: groups, each joined to every other"},
      {"cluster", "routers_per_group", integer(AT(cluster.fabric.routers_per_group), {1, 100'000}),
       kFromSpec,
       "dragonfly: routers of a group, joined pairwise; 1 makes it one non-blocking switch; plus: "
       "leaf routers below its spines"},
      {"cluster", "nodes_per_router", integer(AT(cluster.fabric.nodes_per_router), {0, 1'000'000}),
       kFromSpec, "dragonflies, hyperx: nodes under one router"},
      {"cluster", "local_bandwidth", quantity(AT(cluster.fabric.local_bandwidth), kBandwidthOrNone),
       kFromSpec, "dragonfly: between two routers of a group, per direction"},
      {"cluster", "global_bandwidth",
       quantity(AT(cluster.fabric.global_bandwidth), kBandwidthOrNone), kFromSpec,
       "dragonflies: all cables between two groups together, per direction"},
      {"cluster", "dimensions", dimensions(), kFromSpec,
       "torus, hyperx: routers along each dimension, the last one numbered fastest"},
      {"cluster", "cable_bandwidth", quantity(AT(cluster.fabric.cable_bandwidth), kBandwidthOrNone),
       kFromSpec, "torus, hyperx: between two neighbours, per direction"},
      {"cluster", "sites", integer(AT(cluster.fabric.sites), {0, 1000}), kFromSpec,
       "sites: places far apart"},
      {"cluster", "nodes_per_site", integer(AT(cluster.fabric.nodes_per_site), {0, 1'000'000}),
       kFromSpec, "sites: nodes of each"},
      {"cluster", "wan_bandwidth", quantity(AT(cluster.fabric.wan_bandwidth), kBandwidthOrNone),
       kFromSpec, "sites: of a site to the others, per direction"},
      {"cluster", "wan_latency",
       quantity(AT(cluster.fabric.wan_latency), Range<Seconds>{0_s, 10_s}), kFromSpec,
       "sites: between two, on top of latency"},
      {"cluster", "graph", network_file(), kFromSpec, "graph: its cables"},
      {"cluster", "degraded", degraded_cables(), kFromSpec,
       "cables that are slow or failed, named as topology show names their ends"},
      {"cluster", "background_load", number(AT(cluster.fabric.background_load), {0, 0.99}),
       kFromSpec, "share of every link between switches that other jobs use"},
      {"cluster", "nic_price", dollars(AT(cluster.nic_price)), kFromSpec,
       "of an adapter, for topology show"},
      {"cluster", "cable_price", dollars(AT(cluster.cable_price)), kFromSpec,
       "of a cable at the adapter's rate"},
      {"cluster", "port_price", dollars(AT(cluster.port_price)), kFromSpec,
       "of a switch port at the adapter's rate"},
      {"cluster", "allocation", choice(AT(cluster.allocation)), kFromSpec,
       "nodes of the machine that the job gets: the first, spread evenly over all, or any"},
      {"cluster", "placement", choice(AT(cluster.placement)), kFromSpec,
       "which GPU gets which rank"},
      {"cluster", "placement_seed", integer(AT(cluster.placement_seed), {0, 1'000'000'000}),
       kFromSpec, "of random allocation and placement"},
      {"cluster", "latency", quantity(AT(cluster.fabric.latency), Range<Seconds>{0_s, 10_s}),
       required("\"5us\""), "end to end between two nodes, once per message"},
      {"cluster", "gpu", text(AT(cluster.gpu.name)), derived("none"), "name of the GPU"},
      {"cluster", "gpu_peak_bf16", quantity(AT(cluster.gpu.peak_bf16), kRate),
       required("\"989.4TFLOP/s\""), "dense bf16 and fp16 peak"},
      {"cluster", "gpu_peak_fp8", quantity(AT(cluster.gpu.peak_fp8), kRateOrNone), kFromSpec,
       "dense fp8 peak, 0 without"},
      {"cluster", "gpu_peak_fp4", quantity(AT(cluster.gpu.peak_fp4), kRateOrNone), kFromSpec,
       "dense fp4 peak, 0 without"},
      {"cluster", "gpu_peak_tf32", quantity(AT(cluster.gpu.peak_tf32), kRateOrNone), kFromSpec,
       "dense tf32 peak, for fp32 matrix products"},
      {"cluster", "hbm_bandwidth", quantity(AT(cluster.gpu.hbm_bandwidth), kBandwidth),
       required("\"4.0TB/s\""), "GPU memory, data sheet"},
      {"cluster", "gpu_memory", quantity(AT(cluster.gpu.memory), kMemory), required("\"96GiB\""),
       "GPU memory as nvidia-smi reports it"},
      {"cluster", "multiprocessors", integer(AT(cluster.gpu.multiprocessors), {1, 100'000}),
       required("132"), "streaming multiprocessors of the GPU"},
      {"cluster", "host_link", choice(AT(cluster.host_link.kind)), kFromSpec,
       "link between GPU and host"},
      {"cluster", "host_link_bandwidth",
       quantity(AT(cluster.host_link.bandwidth), kBandwidthOrNone), kFromSpec,
       "per GPU and direction, data sheet"},
      {"cluster", "nic_path", choice(AT(cluster.nic_path)), kFromSpec,
       "how a NIC reaches GPU memory: directly, or through a copy in host memory"},
      {"cluster", "host_memory", quantity(AT(cluster.host_memory), kCapacity), kFromSpec,
       "per node"},
      {"cluster", "host_memory_bandwidth",
       quantity(AT(cluster.host_memory_bandwidth), kBandwidthOrNone), kFromSpec, "per node"},
      {"cluster", "gpu_power",
       optional_quantity<Watts>(AT(cluster.gpu_power), Range<Watts>{Watts(0), Watts(1e6)}),
       kFromSpec, "board power under load"},
      {"cluster", "gpu_price", hourly_price(), kFromSpec, "per GPU"},
      {"cluster", "stragglers", stragglers(), kFromSpec,
       "GPUs and nodes that compute slower than the others, and how many times as long they take"},
      {"cluster", "other_gpus", other_gpus(), kFromSpec,
       "nodes with another GPU: that of a cluster preset, computing as a profile says"},
      {"cluster", "speed_spread", optional_number(AT(cluster.speed_spread), {0, 0.2}),
       derived("the profile's gpu.speed_spread"),
       "standard deviation of what equal GPUs take to compute the same, over its mean; a step "
       "waits "
       "for the slowest. 0: all alike"},
      {"cluster", "overlap_slowdown", optional_number(AT(cluster.overlap_slowdown), {0, 1}),
       derived("the profile's gpu.overlap_slowdown"),
       "how much longer kernels take while a collective runs beside them; 0: no longer"},
  };
}

// What only plans read: no part of what is simulated, so that a scenario's hash leaves it out.
std::vector<Key> planning_keys() {
  std::vector<Key> list = {
      {"cluster", "node_power",
       optional_quantity<Watts>(AT(cluster.node_power), Range<Watts>{Watts(0), Watts(1e7)}),
       kUnknown, "of a whole node under load, its GPUs included; for plan"},
      {"cluster", "pue", optional_number(AT(cluster.power_usage_effectiveness), {1, 10}), kUnknown,
       "power usage effectiveness of the building; for plan"},
      {"cluster", "carbon_intensity", carbon_intensity(), kUnknown,
       "CO2 equivalent of its electricity; for plan"},
      {"cluster", "node_mtbf",
       optional_quantity<Seconds>(AT(cluster.node_mtbf), Range<Seconds>{60_s, 1e10_s}), kUnknown,
       "mean time between failures of one node that stop the job; for plan"},
      {"cluster", "restart_time",
       optional_quantity<Seconds>(AT(cluster.restart_time), Range<Seconds>{0_s, 1e7_s}), kUnknown,
       "from a failure until training goes on from the checkpoint; for plan"},
      {"cluster", "storage_bandwidth",
       optional_quantity<BytesPerSecond>(AT(cluster.storage_bandwidth), kBandwidth), kUnknown,
       "that a checkpoint is written with, all nodes together; for plan"},
  };
  for (Key& key : list) key.field.text = nullptr;
  return list;
}

std::vector<Key> calibration_keys() {
  return {{"calibration", "profile", text(AT(calibration.profile)),
           required("\"gh200-vista-sockets\""),
           "a profile of calib/profiles, or the path of such a file"}};
}

std::vector<Key> collective_keys() {
  const std::string_view help =
      "algorithm, protocol or both, such as \"tree LL128\"; automatic: the fastest";
  return {
      {"collectives", "all_reduce", forced_collective(AT(collectives.all_reduce)), kFromSpec, help},
      {"collectives", "reduce_scatter", forced_collective(AT(collectives.reduce_scatter)),
       kFromSpec, help},
      {"collectives", "all_gather", forced_collective(AT(collectives.all_gather)), kFromSpec, help},
      {"collectives", "broadcast", forced_collective(AT(collectives.broadcast)), kFromSpec, help},
      {"collectives", "all_to_all", forced_collective(AT(collectives.all_to_all)), kFromSpec, help},
  };
}

std::vector<Key> jitter_keys() {
  return {
      {"jitter", "compute", share(AT(jitter.compute), {0, 0.5}), kFromSpec,
       "standard deviation of a rank's compute time in a step over its mean"},
      {"jitter", "distribution", choice(AT(jitter.distribution)), kFromSpec,
       "exponential: most ranks a little faster than the mean, few far slower"},
      {"jitter", "scope", choice(AT(jitter.scope)), kFromSpec,
       "whether every rank draws its pace, or every node"},
      {"jitter", "seed", integer(AT(jitter.seed), {0, 1'000'000'000}), kFromSpec, "of the draws"},
      {"jitter", "steps", integer(AT(jitter.steps), {1, 10'000}), kFromSpec,
       "steps drawn, for mean and spread"},
  };
}

std::vector<Key> all_keys() {
  std::vector<Key> all;
  for (const auto& part :
       {general_keys(), model_keys(), attention_keys(), expert_keys(), training_keys(),
        tuning_keys(), data_keys(), parallelism_keys(), strategy_keys(), method_keys(),
        cluster_keys(), planning_keys(), calibration_keys(), collective_keys(), jitter_keys()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string default_text(const Key& key) {
  switch (key.fallback.kind) {
    case Default::Kind::spec:
      return key.field.text(spec::Scenario{});
    case Default::Kind::derived:
      return std::string(key.fallback.text);
    case Default::Kind::required:
      return {};
  }
  throw InternalError("kind of default");
}

std::vector<std::string> words_of(std::string_view range) {
  constexpr std::string_view kSeparator = ", ";
  std::vector<std::string> words;
  while (true) {
    const std::size_t end = std::min(range.find(kSeparator), range.size());
    words.emplace_back(range.substr(0, end));
    if (end == range.size()) return words;
    range.remove_prefix(end + kSeparator.size());
  }
}

// The words of an enumeration that the rules of sim/spec refuse as not simulated.
std::vector<std::string> refused_words(const Key& key) {
  std::vector<std::string> refused;
  if (key.field.type != "one of") return refused;
  for (std::string& word : words_of(key.field.range)) {
    spec::Scenario scenario;
    key.field.store(scenario, word);
    const bool is_refused =
        std::ranges::any_of(spec::violations(scenario), [&](const spec::Violation& violation) {
          return violation.key == key_text(key.section, key.name) &&
                 violation.what.ends_with("is not simulated in this version");
        });
    if (is_refused) refused.push_back(std::move(word));
  }
  return refused;
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> table = all_keys();
  return table;
}

std::optional<std::size_t> find_key(std::string_view section, std::string_view name) {
  using Rows = std::map<std::pair<std::string_view, std::string_view>, std::size_t>;
  static const Rows kRows = [] {
    Rows rows;
    for (std::size_t i = 0; i < keys().size(); ++i)
      rows.emplace(std::pair(keys()[i].section, keys()[i].name), i);
    return rows;
  }();
  const auto found = kRows.find({section, name});
  return found == kRows.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const Key& key : keys())
    if (!key.section.empty() && std::ranges::find(names, key.section) == names.end())
      names.push_back(key.section);
  return names;
}

std::vector<std::string_view> names_in_section(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : keys())
    if (key.section == section) names.push_back(key.name);
  return names;
}

std::vector<KeyRecord> key_records() {
  std::vector<KeyRecord> records;
  for (const Key& key : keys())
    records.push_back({.section = key.section,
                       .name = key.name,
                       .type = key.field.type,
                       .range = key.field.range,
                       .default_text = default_text(key),
                       .help = key.help,
                       .refused = refused_words(key)});
  return records;
}

}  // namespace scapesim::scenario
