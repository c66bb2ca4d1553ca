// SPDX-License-Identifier: Apache-2.0
// One function per family of architectures; defaults are those of the transformers library.
#include "sim/scenario/huggingface.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>

#include "sim/base/file.hpp"
#include "sim/scenario/huggingface_config.hpp"

namespace scapesim::scenario {
namespace {

Value text(std::string_view word) { return std::string(word); }

/// Non-linearities by their names in transformers, with and without a gate; empty: none.
std::string_view activation_of(std::string_view name, bool gate) {
  const bool gelu = name.starts_with("gelu") || name == "quick_gelu";
  if (gate) return name == "silu" || name == "swish" ? "swiglu" : gelu ? "geglu" : "";
  return name == "relu2" ? "relu2" : gelu ? "gelu" : "";
}

enum class Gate { none, yes };
void read_activation(ConfigReader& in, std::string_view key, std::string_view fallback, Gate gate) {
  const std::string name = in.word({key}, std::string(fallback));
  const std::string_view known = activation_of(name, gate == Gate::yes);
  if (known.empty())
    in.add_problem(key, fmt::format("the activation \"{}\" is not known here", name),
                   gate == Gate::yes ? "silu or gelu" : "gelu or relu2");
  else
    in.set("activation", text(known), key);
}

void read_tied(ConfigReader& in, bool fallback) {
  in.set("tied_embeddings", in.flag("tie_word_embeddings", fallback), "tie_word_embeddings");
}

/// Sizes under the names that most architectures share.
void read_sizes(ConfigReader& in) {
  in.set("layers", in.integer({"num_hidden_layers"}), "num_hidden_layers");
  in.set("hidden", in.integer({"hidden_size"}), "hidden_size");
  in.set("heads", in.integer({"num_attention_heads"}), "num_attention_heads");
  in.set("vocab", in.integer({"vocab_size"}), "vocab_size");
}

void read_key_heads(ConfigReader& in) {
  const std::int64_t heads = in.integer({"num_attention_heads"});
  in.set("kv_heads", in.integer({"num_key_value_heads"}, heads), "num_key_value_heads");
}

void read_ffn(ConfigReader& in) {
  in.set("ffn", in.integer({"intermediate_size"}), "intermediate_size");
}

void read_head_width(ConfigReader& in) {
  if (in.has("head_dim")) in.set("head_dim", in.integer({"head_dim"}), "head_dim");
}

/// attention_bias and mlp_bias.
void read_biases(ConfigReader& in) {
  const bool attention = in.flag("attention_bias", false), mlp = in.flag("mlp_bias", false);
  if (mlp && !attention)
    in.add_problem("mlp_bias", "biases of the MLP alone are not known here",
                   "set attention_bias too, or neither");
  in.set("biases",
         text(mlp         ? "all"
              : attention ? "attention"
                          : "none"),
         mlp ? "mlp_bias" : "attention_bias");
}

/// What Llama and its descendants share: RMS norm, rotary positions, a gated MLP.
void read_llama_core(ConfigReader& in, bool tied, std::string_view activation = "silu") {
  read_sizes(in);
  read_key_heads(in);
  read_ffn(in);
  read_head_width(in);
  read_tied(in, tied);
  in.set("norm", text("rmsnorm"));
  in.set("positions", text("rope"));
  read_activation(in, "hidden_act", activation, Gate::yes);
}

void read_window(ConfigReader& in, std::int64_t fallback = 0) {
  if (in.flag("use_sliding_window", true))
    in.set("window", in.integer({"sliding_window"}, fallback), "sliding_window");
  else
    in.integer({"sliding_window"}, fallback);
}

void read_llama(ConfigReader& in) {
  read_llama_core(in, false);
  read_biases(in);
}

void read_mistral(ConfigReader& in) {
  read_llama_core(in, false);
  read_window(in);
  in.set("biases", text("none"));
}

void read_mixtral(ConfigReader& in) {
  read_mistral(in);
  in.set("experts", in.integer({"num_local_experts"}, 8), "num_local_experts");
  in.set("experts_per_token", in.integer({"num_experts_per_tok"}, 2), "num_experts_per_tok");
}

void read_qwen2(ConfigReader& in) {
  read_llama_core(in, false);
  if (in.flag("use_sliding_window", false)) read_window(in, 4096);
  in.integer({"sliding_window"}, 0);
  in.set("biases", text("qkv"));
}

void read_qwen3(ConfigReader& in) {
  read_llama_core(in, false);
  if (!in.has("head_dim")) in.set("head_dim", std::int64_t{128});
  if (in.flag("use_sliding_window", false)) read_window(in, 4096);
  in.integer({"sliding_window"}, 0);
  read_biases(in);
  in.set("qk_norm", text("head"));
}

void read_qwen_experts(ConfigReader& in) {
  in.set("experts", in.integer({"num_experts"}), "num_experts");
  in.set("experts_per_token", in.integer({"num_experts_per_tok"}), "num_experts_per_tok");
  in.set("expert_ffn", in.integer({"moe_intermediate_size"}), "moe_intermediate_size");
  in.set("moe_every", in.integer({"decoder_sparse_step"}, 1), "decoder_sparse_step");
  if (!in.empty_list("mlp_only_layers"))
    in.add_problem("mlp_only_layers", "single layers without experts are not known here",
                   "an empty list");
}

void read_qwen2_moe(ConfigReader& in) {
  read_qwen2(in);
  read_qwen_experts(in);
  const std::int64_t one = in.integer({"moe_intermediate_size"});
  const std::int64_t shared = in.integer({"shared_expert_intermediate_size"});
  if (one < 1 || shared % one != 0)
    in.add_problem("shared_expert_intermediate_size",
                   fmt::format("{} is no multiple of moe_intermediate_size = {}", shared, one));
  in.set("shared_experts", one < 1 ? 1 : shared / one, "shared_expert_intermediate_size");
  in.set("shared_expert_gate", true);
}

void read_qwen3_moe(ConfigReader& in) {
  read_qwen3(in);
  read_qwen_experts(in);
}

void read_gemma(ConfigReader& in) {
  in.word({"hidden_activation"}, "");
  read_llama_core(in, true, "gelu_pytorch_tanh");
  if (!in.has("head_dim")) in.set("head_dim", std::int64_t{256});
  read_biases(in);
}

void read_gemma2(ConfigReader& in) {
  read_gemma(in);
  in.set("norm_placement", text("both"));
  in.set("window", in.integer({"sliding_window"}, 4096), "sliding_window");
  in.set("full_attention_every", std::int64_t{2});
}

void read_olmo(ConfigReader& in) {
  read_llama_core(in, false);
  read_biases(in);
  in.set("norm", text("layernorm"));
  in.set("norm_parameters", text("none"));
}

void read_olmo2(ConfigReader& in) {
  read_llama_core(in, false);
  read_biases(in);
  in.set("norm_placement", text("branch"));
  in.set("qk_norm", text("full"));
}

void read_nemotron(ConfigReader& in) {
  read_sizes(in);
  read_key_heads(in);
  read_ffn(in);
  read_head_width(in);
  read_tied(in, false);
  read_biases(in);
  read_activation(in, "hidden_act", "relu2", Gate::none);
  in.set("norm", text("layernorm"));
  in.set("positions", text("rope"));
}

void read_deepseek(ConfigReader& in) {
  const std::int64_t nope = in.integer({"qk_nope_head_dim"});
  const std::int64_t rope = in.integer({"qk_rope_head_dim"});
  read_sizes(in);
  in.integer({"num_key_value_heads"}, 0);  // as many as heads in a latent attention
  in.integer({"head_dim"}, 0);
  read_ffn(in);
  read_tied(in, false);
  read_activation(in, "hidden_act", "silu", Gate::yes);
  read_biases(in);
  in.set("norm", text("rmsnorm"));
  in.set("positions", text("rope"));
  in.set("attention", text("latent"));
  in.set("head_dim", nope + rope, "qk_nope_head_dim");
  in.set("rope_head_dim", rope, "qk_rope_head_dim");
  in.set("value_head_dim", in.integer({"v_head_dim"}), "v_head_dim");
  in.set("q_lora_rank", in.integer({"q_lora_rank"}, 0), "q_lora_rank");
  in.set("kv_lora_rank", in.integer({"kv_lora_rank"}), "kv_lora_rank");
  in.set("experts", in.integer({"n_routed_experts"}), "n_routed_experts");
  in.set("experts_per_token", in.integer({"num_experts_per_tok"}), "num_experts_per_tok");
  in.set("shared_experts", in.integer({"n_shared_experts"}, 0), "n_shared_experts");
  in.set("expert_ffn", in.integer({"moe_intermediate_size"}), "moe_intermediate_size");
  in.set("dense_layers", in.integer({"first_k_dense_replace"}, 0), "first_k_dense_replace");
  in.set("moe_every", in.integer({"moe_layer_freq"}, 1), "moe_layer_freq");
}

void read_deepseek3(ConfigReader& in) {
  read_deepseek(in);
  in.set("router_bias", true);
  in.set("mtp_layers", in.integer({"num_nextn_predict_layers"}, 0), "num_nextn_predict_layers");
}

void read_phi3(ConfigReader& in) {
  read_llama_core(in, false);
  read_window(in);
  in.set("biases", text("none"));
}

/// GPT-2 and GPT-3: everything has a bias, positions are learned.
void read_gpt2(ConfigReader& in) {
  const std::int64_t hidden = in.integer({"n_embd"});
  in.set("layers", in.integer({"n_layer"}), "n_layer");
  in.set("hidden", hidden, "n_embd");
  in.set("heads", in.integer({"n_head"}), "n_head");
  in.set("ffn", in.integer({"n_inner"}, 4 * hidden), "n_inner");
  in.set("vocab", in.integer({"vocab_size"}), "vocab_size");
  in.set("max_positions", in.integer({"n_positions"}, 1024), "n_positions");
  read_tied(in, true);
  read_activation(in, "activation_function", "gelu_new", Gate::none);
  in.set("norm", text("layernorm"));
  in.set("positions", text("learned"));
  in.set("biases", text("all"));
}

void read_gpt_neox(ConfigReader& in) {
  read_sizes(in);
  read_ffn(in);
  read_tied(in, false);
  read_activation(in, "hidden_act", "gelu", Gate::none);
  if (!in.flag("attention_bias", true))
    in.add_problem("attention_bias", "biases of the MLP alone are not known here", "true");
  in.set("norm", text("layernorm"));
  in.set("positions", text("rope"));
  in.set("biases", text("all"));
  in.set("blocks", text(in.flag("use_parallel_residual", true) ? "parallel" : "sequential"),
         "use_parallel_residual");
}

void read_bloom(ConfigReader& in) {
  const std::int64_t hidden = in.integer({"hidden_size", "n_embed"});
  in.set("layers", in.integer({"n_layer", "num_hidden_layers"}), "n_layer");
  in.set("hidden", hidden, "hidden_size");
  in.set("heads", in.integer({"n_head", "num_attention_heads"}), "n_head");
  in.set("ffn", 4 * hidden);
  in.set("vocab", in.integer({"vocab_size"}), "vocab_size");
  read_tied(in, true);
  in.set("activation", text("gelu"));
  in.set("norm", text("layernorm"));
  in.set("positions", text("alibi"));
  in.set("biases", text("all"));
  in.set("embedding_norm", true);
}

void read_mpt(ConfigReader& in) {
  const std::int64_t hidden = in.integer({"d_model"}), heads = in.integer({"n_heads"});
  in.set("layers", in.integer({"n_layers"}), "n_layers");
  in.set("hidden", hidden, "d_model");
  in.set("heads", heads, "n_heads");
  in.set("ffn", hidden * in.integer({"expansion_ratio"}, 4), "expansion_ratio");
  in.set("vocab", in.integer({"vocab_size"}), "vocab_size");
  read_tied(in, true);
  const bool bare = in.flag("no_bias", true);
  in.set("biases", text(bare ? "none" : "all"), "no_bias");
  in.set("norm", text("layernorm"));
  in.word({"norm_type"}, "low_precision_layernorm");
  in.set("norm_parameters", text(bare ? "weight" : "usual"), "no_bias");
  in.set("activation", text("gelu"));
  const std::int64_t positions = in.integer({"max_seq_len"}, 2048);
  ConfigReader attention = in.inner("attn_config");
  const bool alibi = attention.flag("alibi", true);
  attention.set("positions", text(alibi ? "alibi" : "learned"), "alibi");
  if (!alibi) attention.set("max_positions", positions, "max_seq_len");
  if (attention.flag("qk_ln", false))
    attention.add_problem("qk_ln", "a layer norm of queries and keys is not known here", "false");
  const std::string kind = attention.word({"attn_type"}, "multihead_attention");
  attention.set("kv_heads",
                attention.integer({"kv_n_heads"}, kind == "multiquery_attention" ? 1 : heads),
                "kv_n_heads");
  in.take(std::move(attention));
}

void read_falcon(ConfigReader& in) {
  const std::int64_t hidden = in.integer({"hidden_size"});
  const std::int64_t heads = in.integer({"num_attention_heads", "n_head"});
  const bool grouped = in.flag("new_decoder_architecture", false);
  const std::int64_t key_heads = in.integer({"num_kv_heads", "n_head_kv"}, heads);
  const bool single = in.flag("multi_query", true);
  in.set("layers", in.integer({"num_hidden_layers", "n_layer"}), "num_hidden_layers");
  in.set("hidden", hidden, "hidden_size");
  in.set("heads", heads, "num_attention_heads");
  in.set("kv_heads", grouped ? key_heads : single ? 1 : heads, "num_kv_heads");
  in.set("ffn", in.integer({"ffn_hidden_size"}, 4 * hidden), "ffn_hidden_size");
  in.set("vocab", in.integer({"vocab_size"}), "vocab_size");
  read_tied(in, true);
  const bool parallel = in.flag("parallel_attn", true);
  in.set("blocks",
         text(grouped    ? "parallel"
              : parallel ? "parallel_one_norm"
                         : "sequential"),
         "parallel_attn");
  in.set("positions", text(in.flag("alibi", false) ? "alibi" : "rope"), "alibi");
  in.set("biases", text(in.flag("bias", false) ? "all" : "none"), "bias");
  read_activation(in, "activation", "gelu", Gate::none);
  in.set("norm", text("layernorm"));
}

void read_bert(ConfigReader& in) {
  read_sizes(in);
  read_ffn(in);
  read_tied(in, true);
  read_activation(in, "hidden_act", "gelu", Gate::none);
  in.set("norm", text("layernorm"));
  in.set("norm_placement", text("post"));
  in.set("positions", text("learned"));
  in.set("max_positions", in.integer({"max_position_embeddings"}), "max_position_embeddings");
  in.set("token_types", in.integer({"type_vocab_size"}, 2), "type_vocab_size");
  in.set("biases", text("all"));
  in.set("causal", false);
  in.set("embedding_norm", true);
  in.set("mlm_head", true);
}

void read_bert_pretraining(ConfigReader& in) {
  read_bert(in);
  in.set("pooler", true);
}

struct Architecture {
  std::string_view name;
  void (*read)(ConfigReader& in);
};
constexpr Architecture kArchitectures[] = {
    {"BertForMaskedLM", read_bert},
    {"BertForPreTraining", read_bert_pretraining},
    {"BloomForCausalLM", read_bloom},
    {"BloomModel", read_bloom},
    {"DeepseekV2ForCausalLM", read_deepseek},
    {"DeepseekV3ForCausalLM", read_deepseek3},
    {"FalconForCausalLM", read_falcon},
    {"GPT2LMHeadModel", read_gpt2},
    {"GPTNeoXForCausalLM", read_gpt_neox},
    {"Gemma2ForCausalLM", read_gemma2},
    {"GemmaForCausalLM", read_gemma},
    {"LlamaForCausalLM", read_llama},
    {"MPTForCausalLM", read_mpt},
    {"MistralForCausalLM", read_mistral},
    {"MixtralForCausalLM", read_mixtral},
    {"MptForCausalLM", read_mpt},
    {"NemotronForCausalLM", read_nemotron},
    {"Olmo2ForCausalLM", read_olmo2},
    {"OlmoForCausalLM", read_olmo},
    {"Phi3ForCausalLM", read_phi3},
    {"Qwen2ForCausalLM", read_qwen2},
    {"Qwen2MoeForCausalLM", read_qwen2_moe},
    {"Qwen3ForCausalLM", read_qwen3},
    {"Qwen3MoeForCausalLM", read_qwen3_moe},
};

}  // namespace

std::vector<std::string_view> huggingface_architectures() {
  std::vector<std::string_view> names;
  for (const Architecture& row : kArchitectures) names.push_back(row.name);
  return names;
}

Document read_huggingface(const std::filesystem::path& file) {
  ConfigReader in(file, read_file(file, "model.huggingface"));
  const std::string name = in.architecture();
  const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
  if (row == std::end(kArchitectures)) {
    const std::vector<std::string_view> known = huggingface_architectures();
    std::string hint = did_you_mean(name, known);
    if (hint.empty()) hint = fmt::format("known: {}", fmt::join(known, ", "));
    if (!name.empty())
      in.add_problem("architectures", fmt::format("\"{}\" is not known here", name), hint);
  } else {
    row->read(in);
  }
  return std::move(in).document();
}

}  // namespace scapesim::scenario
