// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/huggingface_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace scapesim::scenario {

namespace {

using Json = nlohmann::json;

/// Keys that change neither shapes nor kernels: names, token ids, dropout of inference configs,
/// initialisation, generation, scales, and what only inference uses.
constexpr std::array kHarmless = std::to_array<std::string_view>({
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attention_softmax_in_fp32",
    "attn_pdrop",
    "auto_map",
    "aux_loss_alpha",
    "bos_token_id",
    "cache_implementation",
    "classifier_dropout",
    "description",
    "dtype",
    "embd_pdrop",
    "embedding_dropout",
    "embedding_fraction",
    "embed_pdrop",
    "eos_token_id",
    "ep_size",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "init_config",
    "init_device",
    "initializer_range",
    "is_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "learned_pos_emb",
    "logit_scale",
    "masked_softmax_fusion",
    "max_position_embeddings",
    "max_window_layers",
    "model_type",
    "n_ctx",
    "n_group",
    "norm_eps",
    "norm_topk_prob",
    "original_max_position_embeddings",
    "output_router_logits",
    "pad_token_id",
    "position_embedding_type",
    "pretraining_tp",
    "query_pre_attn_scalar",
    "rescale_logits",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "rms_norm_eps",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rope_interleave",
    "rotary_pct",
    "partial_rotary_factor",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scoring_func",
    "seq_aux",
    "seq_length",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_name",
    "topk_group",
    "topk_method",
    "torch_dtype",
    "transformers_version",
    "unk_token_id",
    "use_cache",
    "verbose",
    "offset_alibi",
    "bias_dropout_fusion",
    "resid_bias",
    "emb_pdrop",
    "head_dropout",
    "softmax_scale",
    "attn_impl",
    "alibi_bias_max",
    "attn_dropout",
    "hidden_activation",
});

Place place_at(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == before.npos ? before.size() : before.size() - start - 1;
  return {file, static_cast<int>(line), static_cast<int>(column) + 1};
}

}  // namespace

ConfigReader::ConfigReader(const std::filesystem::path& file, const std::string& text)
    : file_(file.string()), text_(text) {
  try {
    object_ = Json::parse(text_);
  } catch (const Json::parse_error& error) {
    const std::size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    throw InputError(Problem{.place = place_at(file_, text_, offset),
                             .key = "",
                             .what = "no JSON here",
                             .hint = "a config.json of a Hugging Face model is needed"});
  } catch (const Json::exception&) {
    throw InputError(Problem{.place = {file_, 1, 1},
                             .key = "",
                             .what = "a number in it is too large",
                             .hint = "numbers up to 1e308"});
  }
  if (!object_.is_object())
    throw InputError(Problem{.place = {file_, 1, 1},
                             .key = "",
                             .what = "no JSON object",
                             .hint = "a config.json of a Hugging Face model is needed"});
}

Place ConfigReader::place_of(std::string_view key) const {
  const std::size_t found = text_.find(fmt::format("\"{}\"", key));
  return found == std::string::npos ? Place{file_, 0, 0} : place_at(file_, text_, found);
}

bool ConfigReader::has(std::string_view name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

const Json* ConfigReader::find(std::initializer_list<std::string_view> names) {
  const Json* first = nullptr;
  for (const std::string_view name : names) {
    read_.emplace(name);
    if (first == nullptr && has(name)) first = &*object_.find(name);
  }
  return first;
}

std::int64_t ConfigReader::integer(std::initializer_list<std::string_view> names,
                                   std::optional<std::int64_t> fallback) {
  const Json* value = find(names);
  const std::string_view name = *names.begin();
  if (value == nullptr) {
    if (!fallback) add_problem(name, "missing", "this architecture needs it");
    return fallback.value_or(1);
  }
  // Beyond the ranges of all keys, which are checked where the value is stored.
  constexpr double kMost = 1e15;
  if (value->is_number() && std::abs(value->get<double>()) < kMost &&
      value->get<double>() == std::floor(value->get<double>()))
    return static_cast<std::int64_t>(value->get<double>());
  add_problem(name, "must be a whole number");
  return 1;
}

bool ConfigReader::flag(std::string_view name, bool fallback) {
  const Json* value = find({name});
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  add_problem(name, "must be true or false");
  return fallback;
}

std::string ConfigReader::word(std::initializer_list<std::string_view> names,
                               std::optional<std::string> fallback) {
  const Json* value = find(names);
  const std::string_view name = *names.begin();
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  if (value != nullptr)
    add_problem(name, "must be text");
  else if (!fallback)
    add_problem(name, "missing", "this architecture needs it");
  return fallback.value_or("");
}

std::string ConfigReader::architecture() {
  const Json* list = find({"architectures"});
  if (list != nullptr && list->is_array() && !list->empty() && list->front().is_string())
    return list->front().get<std::string>();
  add_problem("architectures", list == nullptr ? "missing" : "must be a list of names",
              "such as [\"LlamaForCausalLM\"]");
  return {};
}

bool ConfigReader::empty_list(std::string_view name) {
  const Json* value = find({name});
  return value == nullptr || value->empty();
}

ConfigReader ConfigReader::inner(std::string_view name) {
  const Json* value = find({name});
  if (value != nullptr && value->is_object()) return {file_, text_, *value};
  if (value != nullptr) add_problem(name, "must be an object");
  return {file_, text_, Json::object()};
}

void ConfigReader::add_problem(std::string_view key, std::string what, std::string hint) {
  problems_.add(place_of(key), std::string(key), std::move(what), std::move(hint));
}

void ConfigReader::set(std::string_view name, Value value, std::string_view from) {
  const Place place = from.empty() ? Place{file_, 0, 0} : place_of(from);
  document_.settings.push_back({.section = "model",
                                .name = std::string(name),
                                .value = std::move(value),
                                .key_place = place,
                                .place = place,
                                .given = {}});
}

void ConfigReader::add_unread() {
  const auto is_off = [](const Json& value) { return value.is_null() || value == false; };
  for (const auto& [key, value] : object_.items())
    if (!is_off(value) && !read_.contains(key) &&
        std::ranges::find(kHarmless, key) == kHarmless.end())
      document_.unread.push_back(key);
}

void ConfigReader::take(ConfigReader&& inner) {
  inner.add_unread();
  for (std::string& key : inner.document_.unread) document_.unread.push_back(std::move(key));
  for (Setting& setting : inner.document_.settings)
    document_.settings.push_back(std::move(setting));
  for (const Problem& problem : inner.problems_.list())
    problems_.add(problem.place, problem.key, problem.what, problem.hint);
}

Document ConfigReader::document() && {
  add_unread();
  problems_.raise();
  return std::move(document_);
}

}  // namespace scapesim::scenario
