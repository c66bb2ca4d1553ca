// SPDX-License-Identifier: Apache-2.0
#include "sim/study/choices.hpp"

#include <algorithm>

namespace scapesim::study {
namespace {

/// Other gradients, other rounding, other batches.
constexpr std::string_view kOtherwise[] = {
    "training.global_batch",     "training.sequence",       "training.precision",
    "training.gradient_dtype",   "training.optimizer",      "training.autocast",
    "strategy.method",           "strategy.density",        "strategy.density_warmup",
    "strategy.mask_partition",   "strategy.mask_delay",     "strategy.owners",
    "strategy.payload_dtype",    "strategy.exchange",       "strategy.reduce_dtype",
    "strategy.weight_bits",      "strategy.gradient_bits",  "strategy.block",
    "strategy.zeropp",           "strategy.dct_chunk",      "strategy.dct_topk",
    "strategy.low_rank",         "strategy.dense_steps",    "strategy.local_steps",
    "strategy.outer_wait",       "training.frozen_layers",  "training.lora_rank",
    "training.lora_targets",     "training.frozen_weights", "training.documents",
    "training.document_length",  "training.batch_ramp",     "training.hidden_dropout",
    "training.attention_dropout"};

/// The same sums in another place, order or time. What only describes a run (mask_overlap, at_step,
/// tokens_to_loss) is here too.
constexpr std::string_view kAlike[] = {"training.micro_batch",
                                       "training.recompute",
                                       "training.recompute_layers",
                                       "training.attention",
                                       "training.loss",
                                       "training.kernels",
                                       "training.activation_offload",
                                       "training.offload_layers",
                                       "training.gradient_sync",
                                       "training.overlap_gradients",
                                       "training.bucket",
                                       "training.overlap_parameters",
                                       "training.data_loading",
                                       "training.logging",
                                       "training.logging_interval",
                                       "training.evaluation_interval",
                                       "training.evaluation_iterations",
                                       "parallelism.tp",
                                       "parallelism.pp",
                                       "parallelism.cp",
                                       "parallelism.ep",
                                       "parallelism.virtual_stages",
                                       "parallelism.schedule",
                                       "parallelism.sequence_parallel",
                                       "parallelism.tensor_overlap",
                                       "parallelism.split_messages",
                                       "parallelism.context_method",
                                       "parallelism.dispatcher",
                                       "parallelism.permute_fusion",
                                       "parallelism.expert_tp",
                                       "parallelism.order",
                                       "parallelism.stage_layers",
                                       "parallelism.stage_overlap",
                                       "parallelism.expert_overlap",
                                       "strategy.sharding",
                                       "strategy.shard_group",
                                       "strategy.prefetch",
                                       "strategy.reduction",
                                       "strategy.reshard_after_forward",
                                       "strategy.kernels",
                                       "strategy.at_step",
                                       "strategy.mask_overlap",
                                       "strategy.mask_wait",
                                       "strategy.mask_format",
                                       "strategy.payload_buffers",
                                       "strategy.second_payload",
                                       "strategy.offload",
                                       "strategy.offload_chunk",
                                       "strategy.tokens_to_loss"};

}  // namespace

std::optional<bool> trains_otherwise(std::string_view key) {
  if (std::ranges::find(kOtherwise, key) != std::end(kOtherwise)) return true;
  if (std::ranges::find(kAlike, key) != std::end(kAlike)) return false;
  return std::nullopt;
}

}  // namespace scapesim::study
