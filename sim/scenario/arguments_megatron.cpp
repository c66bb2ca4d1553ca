// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments (megatron/training/arguments.py of core 0.12 names and defaults).
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

#include "sim/scenario/arguments.hpp"

namespace scapesim::scenario {
namespace {

/// A command-line word or a value of the log's block, with its place.
struct Word {
  std::string text;
  Place place;
};

struct Argument {
  std::string value;  ///< empty: a flag
  Place place;
};
/// By name without dashes: "num-layers".
using Arguments = std::map<std::string, Argument, std::less<>>;

constexpr std::string_view kSpaces = " \t\r";

/// Words of a shell text: quotes and line continuations are resolved, comments dropped, variables
/// of the form NAME=value remembered and put in for $NAME and ${NAME}.
class Shell {
 public:
  Shell(std::string_view text, std::string file) : file_(std::move(file)) {
    for (int line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end), line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  const std::vector<Word>& words() const { return words_; }

 private:
  void read_line(std::string_view line, int number) {
    std::size_t at = 0;
    while (true) {
      at = line.find_first_not_of(kSpaces, at);
      if (at == std::string_view::npos || line[at] == '#') return;
      const std::size_t begin = at;
      std::string word;
      while (at < line.size() && kSpaces.find(line[at]) == std::string_view::npos)
        append_piece(line, at, word);
      keep(std::move(word), {file_, number, static_cast<int>(begin) + 1});
    }
  }

  /// One character, or one quoted stretch.
  static void append_piece(std::string_view line, std::size_t& at, std::string& word) {
    const char c = line[at++];
    if (c != '"' && c != '\'') {
      if (c != '\\' && c != '(' && c != ')' && c != ',') word += c;
      return;
    }
    while (at < line.size() && line[at] != c) word += line[at++];
    if (at < line.size()) ++at;
  }

  void keep(std::string word, Place place) {
    if (word.empty()) return;
    word = expanded(word);
    const std::size_t equals = word.find('=');
    if (!word.starts_with("-") && equals != std::string::npos && equals > 0) {
      const std::string value = word.substr(equals + 1);
      variables_[word.substr(0, equals)] = value;
      if (!value.starts_with("-")) return;
      word = value;  // GPT_ARGS="--num-layers 24 ..."
    }
    // A quoted list of options is words of its own.
    std::size_t at = 0;
    while ((at = word.find_first_not_of(kSpaces, at)) != std::string::npos) {
      const std::size_t end = std::min(word.find_first_of(kSpaces, at), word.size());
      words_.push_back({word.substr(at, end - at), place});
      at = end;
    }
  }

  std::string expanded(std::string_view word) const {
    std::string out;
    for (std::size_t at = 0; at < word.size(); ++at) {
      if (word[at] != '$') {
        out += word[at];
        continue;
      }
      const bool braces = at + 1 < word.size() && word[at + 1] == '{';
      const std::size_t begin = at + (braces ? 2 : 1);
      std::size_t end = begin;
      const auto is_name = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z');
      };
      while (end < word.size() && is_name(word[end])) ++end;
      const auto found = variables_.find(word.substr(begin, end - begin));
      if (found != variables_.end()) out += found->second;
      // ${NAME:-default} and ${ARGS[@]}: what follows the name is dropped with the brace.
      if (braces) end = std::min(word.find('}', end), word.size() - 1) + 1;
      at = end - 1;
    }
    return out;
  }

  std::string file_;
  std::map<std::string, std::string, std::less<>> variables_;
  std::vector<Word> words_;
};

bool is_option(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && word[2] >= 'a' && word[2] <= 'z';
}

Arguments command_line(std::string_view text, const std::string& file) {
  Arguments arguments;
  const Shell shell(text, file);
  const std::vector<Word>& words = shell.words();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i].text)) continue;
    std::string name = words[i].text.substr(2);
    Argument argument{.value = {}, .place = words[i].place};
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      argument.value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < words.size() && !words[i + 1].text.starts_with("--")) {
      argument = {words[i + 1].text, words[i + 1].place};
      // The only argument read here that has several values.
      for (std::size_t k = i + 2; name.starts_with("rampup") && k < words.size() && k < i + 4; ++k)
        if (!words[k].text.starts_with("--")) argument.value += " " + words[k].text;
    }
    std::ranges::replace(name, '_', '-');
    arguments[name] = argument;
  }
  return arguments;
}

/// "  num_layers ...................................... 24"
std::optional<std::pair<std::string, std::string>> log_argument(std::string_view line) {
  const std::size_t dots = line.find(" ....");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::size_t first = line.substr(0, dots).find_last_of(" \t:") + 1;
  const std::size_t value = line.find_first_not_of(". ", dots);
  std::string name(line.substr(first, dots - first));
  if (name.empty() || value == std::string_view::npos) return std::nullopt;
  std::string_view text = line.substr(value);
  text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  std::ranges::replace(name, '_', '-');
  return std::pair(std::move(name), std::string(text));
}

/// The block of a log names every argument, defaults included; None and False are no arguments,
/// True is a flag.
Arguments log_block(std::string_view text, const std::string& file) {
  Arguments arguments;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto argument = log_argument(line);
    if (!argument || argument->second == "None" || argument->second == "False") continue;
    const auto column = static_cast<int>(line.size() - argument->second.size()) + 1;
    arguments[argument->first] = {argument->second == "True" ? "" : argument->second,
                                  {file, number, column}};
  }
  return arguments;
}

/// Keeps products of a few arguments in 64 bits.
constexpr std::int64_t kLargest = 1'000'000'000;

/// Turns arguments into cells and remembers which ones it has looked at.
class Mapper {
 public:
  Mapper(Arguments arguments, std::string file)
      : arguments_(std::move(arguments)), file_(std::move(file)) {}

  bool has(std::string_view name) {
    seen_.insert(std::string(name));
    return arguments_.contains(name);
  }
  std::string text(std::string_view name) { return has(name) ? found(name).value : ""; }
  std::optional<std::int64_t> integer(std::string_view name) {
    if (!has(name)) return std::nullopt;
    const Argument& argument = found(name);
    std::int64_t value = 0;
    const char* end = argument.value.data() + argument.value.size();
    const auto [stop, failure] = std::from_chars(argument.value.data(), end, value);
    const bool read = failure == std::errc{} && stop == end;
    if (read && value >= 0 && value <= kLargest) return value;
    problems_.add(argument.place, "--" + std::string(name),
                  read ? fmt::format("{} is out of range", value)
                       : fmt::format("\"{}\" is not an integer", argument.value),
                  read ? fmt::format("0 to {}", kLargest) : "");
    return std::nullopt;
  }

  void put(std::string key, std::string value, std::string_view option, std::string_view remark) {
    const Place place = has(option) ? found(option).place : Place{.file = file_};
    result_.cells.push_back({std::move(key), std::move(value), place, place});
    result_.origins.push_back(option.empty() ? std::string(remark)
                                             : fmt::format("--{}{}", option, remark));
  }
  void put_integer(std::string key, std::string_view option) {
    if (const auto value = integer(option)) put(std::move(key), std::to_string(*value), option, "");
  }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }
  void missing(std::string_view option, std::string hint) {
    problems_.add({.file = file_}, "--" + std::string(option), "missing", std::move(hint));
  }

  ImportedArguments take() {
    problems_.raise();
    for (const auto& [name, argument] : arguments_)
      if (!seen_.contains(name)) result_.ignored.push_back("--" + name);
    return std::move(result_);
  }

 private:
  const Argument& found(std::string_view name) const { return arguments_.find(name)->second; }

  Arguments arguments_;
  std::string file_;
  std::set<std::string, std::less<>> seen_;
  ImportedArguments result_;
  Problems problems_;
};

constexpr std::int64_t kGpt2Vocabulary = 50257;  // Radford 2019: 50,000 merges, 256 bytes, 1 mark

/// Rows of the embedding: padded to a multiple of make-vocab-size-divisible-by (128) times tp.
void map_vocabulary(Mapper& map, std::int64_t tp) {
  if (map.has("padded-vocab-size")) return map.put_integer("model.vocab", "padded-vocab-size");
  const bool gpt2 = map.text("tokenizer-type") == "GPT2BPETokenizer";
  std::optional<std::int64_t> rows = map.integer("vocab-size");
  if (!rows && gpt2) rows = kGpt2Vocabulary;
  if (!rows) {
    map.missing("vocab-size", "the tokenizer's size is not in the arguments: --set model.vocab=N");
    return;
  }
  const std::int64_t unit =
      std::max<std::int64_t>(1, map.integer("make-vocab-size-divisible-by").value_or(128)) * tp;
  const std::int64_t padded = (*rows + unit - 1) / unit * unit;
  map.put("model.vocab", std::to_string(padded), gpt2 ? "tokenizer-type" : "vocab-size",
          fmt::format(", {} padded to a multiple of {}", *rows, unit));
}

void map_mlp(Mapper& map, std::int64_t hidden) {
  const bool swiglu = map.has("swiglu");
  if (map.has("ffn-hidden-size")) {
    map.put_integer("model.ffn", "ffn-hidden-size");
  } else if (hidden > 0) {
    const std::int64_t ffn = swiglu ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
    map.put("model.ffn", std::to_string(ffn), "", "Megatron-LM's default");
  }
  if (swiglu)
    map.put("model.activation", "\"swiglu\"", "swiglu", "");
  else if (map.has("squared-relu"))
    map.put("model.activation", "\"relu2\"", "squared-relu", "");
  else
    map.put("model.activation", "\"gelu\"", "", "Megatron-LM's default");
}

void map_positions(Mapper& map) {
  const std::string type = map.text("position-embedding-type");
  if (type == "rope" || map.has("use-rotary-position-embeddings"))
    map.put("model.positions", "\"rope\"",
            type.empty() ? "use-rotary-position-embeddings" : "position-embedding-type", "");
  else if (type == "none")
    map.put("model.positions", "\"none\"", "position-embedding-type", "");
  else
    map.put("model.positions", "\"learned\"", "", "Megatron-LM's default");
  if (type != "rope" && type != "none" && !map.has("use-rotary-position-embeddings"))
    map.put_integer("model.max_positions", "max-position-embeddings");
  else
    map.has("max-position-embeddings");
}

void map_experts(Mapper& map) {
  if (!map.has("num-experts")) return;
  map.put_integer("model.experts", "num-experts");
  map.put_integer("model.experts_per_token", "moe-router-topk");
  map.put_integer("model.expert_ffn", "moe-ffn-hidden-size");
  const auto shared = map.integer("moe-shared-expert-intermediate-size");
  const auto width = map.integer("moe-ffn-hidden-size");
  if (shared && width && *width > 0 && *shared % *width == 0)
    map.put("model.shared_experts", std::to_string(*shared / *width),
            "moe-shared-expert-intermediate-size", ", in experts of --moe-ffn-hidden-size");
}

void map_model(Mapper& map, std::int64_t tp) {
  map.put_integer("model.layers", "num-layers");
  map.put_integer("model.hidden", "hidden-size");
  map.put_integer("model.heads", "num-attention-heads");
  if (map.has("group-query-attention")) map.put_integer("model.kv_heads", "num-query-groups");
  map.has("num-query-groups");
  map.put_integer("model.head_dim", "kv-channels");
  map_mlp(map, map.integer("hidden-size").value_or(0));
  const bool rms = map.text("normalization") == "RMSNorm";
  map.put("model.norm", rms ? "\"rmsnorm\"" : "\"layernorm\"", rms ? "normalization" : "",
          rms ? "" : "Megatron-LM's default");
  map_positions(map);
  map_vocabulary(map, tp);
  const bool untied = map.has("untie-embeddings-and-output-weights");
  map.put("model.tied_embeddings", untied ? "false" : "true",
          untied ? "untie-embeddings-and-output-weights" : "",
          untied ? "" : "Megatron-LM's default");
  const bool plain = map.has("disable-bias-linear");
  map.put("model.biases", plain ? "false" : "true", plain ? "disable-bias-linear" : "",
          plain ? "" : "Megatron-LM's default");
  map_experts(map);
}

void map_precision(Mapper& map) {
  if (map.has("fp8-format") || map.has("fp8")) {
    const std::string recipe = map.text("fp8-recipe");
    map.put("training.precision", recipe == "mxfp8" ? "\"mxfp8\"" : "\"fp8\"",
            map.has("fp8-format") ? "fp8-format" : "fp8", "");
  } else if (map.has("bf16")) {
    map.put("training.precision", "\"bf16\"", "bf16", "");
  } else if (map.has("fp16")) {
    map.put("training.precision", "\"fp16\"", "fp16", "");
  } else {
    map.put("training.precision", "\"fp32\"", "", "Megatron-LM's default");
  }
  map.has("bf16");
  if (map.has("grad-reduce-in-bf16"))
    map.put("training.gradient_dtype", "\"bf16\"", "grad-reduce-in-bf16", "");
  else if (map.has("accumulate-allreduce-grads-in-fp32") || map.has("bf16") || !map.has("fp16"))
    map.put(
        "training.gradient_dtype", "\"fp32\"",
        map.has("accumulate-allreduce-grads-in-fp32") ? "accumulate-allreduce-grads-in-fp32" : "",
        map.has("accumulate-allreduce-grads-in-fp32") ? "" : "Megatron-LM's rule for bf16");
  else
    map.put("training.gradient_dtype", "\"fp16\"", "fp16", "");
}

void map_recompute(Mapper& map) {
  const std::string granularity = map.text("recompute-granularity");
  if (granularity == "full" || granularity == "selective")
    map.put("training.recompute", "\"" + granularity + "\"", "recompute-granularity", "");
  else if (map.has("recompute-activations"))
    map.put("training.recompute", "\"selective\"", "recompute-activations", "");
  const auto layers = map.integer("recompute-num-layers");
  if (granularity == "full" && layers && *layers != 1)
    map.note("--recompute-num-layers: all layers are taken to be recomputed");
  map.has("recompute-method");
}

/// "32 32 5859375", or a log's "['32', '32', '5859375']".
void map_ramp(Mapper& map) {
  std::string text = map.text("rampup-batch-size");
  std::erase_if(text,
                [](char c) { return c == '[' || c == ']' || c == '_' || c == '\'' || c == ','; });
  if (!text.empty()) map.put("training.batch_ramp", "\"" + text + "\"", "rampup-batch-size", "");
}

/// Megatron-LM evaluates every 1,000 steps if not told otherwise.
void map_evaluation(Mapper& map) {
  const auto iterations = map.integer("eval-iters");
  const auto interval = map.integer("eval-interval");
  if (!iterations || *iterations == 0 || interval.value_or(1) == 0) return;
  map.put_integer("training.evaluation_iterations", "eval-iters");
  map.put("training.evaluation_interval", std::to_string(interval.value_or(1000)),
          interval ? "eval-interval" : "", interval ? "" : "Megatron-LM's default");
}

void map_training(Mapper& map) {
  map_ramp(map);
  map_evaluation(map);
  map.put_integer("training.global_batch", "global-batch-size");
  map.put_integer("training.micro_batch", "micro-batch-size");
  map.put_integer("training.sequence", "seq-length");
  map_precision(map);
  const std::string optimizer = map.text("optimizer");
  map.put("training.optimizer", optimizer == "sgd" ? "\"sgd\"" : "\"adamw\"",
          optimizer.empty() ? "" : "optimizer", optimizer.empty() ? "Megatron-LM's default" : "");
  map_recompute(map);
  if (map.has("overlap-grad-reduce"))
    map.put("training.overlap_gradients", "true", "overlap-grad-reduce", "");
  if (map.has("overlap-param-gather"))
    map.put("training.overlap_parameters", "true", "overlap-param-gather", "");
  if (map.has("use-distributed-optimizer"))
    map.put("strategy.sharding", "\"zero1\"", "use-distributed-optimizer", "");
  else if (map.has("use-torch-fsdp2"))
    map.put("strategy.sharding", "\"fsdp\"", "use-torch-fsdp2", "");
}

void map_parallelism(Mapper& map) {
  map.put_integer("parallelism.tp", "tensor-model-parallel-size");
  map.put_integer("parallelism.pp", "pipeline-model-parallel-size");
  map.put_integer("parallelism.cp", "context-parallel-size");
  map.put_integer("parallelism.ep", "expert-model-parallel-size");
  if (map.has("sequence-parallel"))
    map.put("parallelism.sequence_parallel", "true", "sequence-parallel", "");
  const auto pp = map.integer("pipeline-model-parallel-size");
  const auto per_stage = map.integer("num-layers-per-virtual-pipeline-stage");
  const auto layers = map.integer("num-layers");
  std::optional<std::int64_t> stages = map.integer("num-virtual-stages-per-pipeline-rank");
  if (!stages && per_stage && pp && layers && *pp * *per_stage > 0)
    stages = *layers / (*pp * *per_stage);
  if (stages && *stages > 1) {
    const std::string_view option = per_stage ? "num-layers-per-virtual-pipeline-stage"
                                              : "num-virtual-stages-per-pipeline-rank";
    map.put("parallelism.virtual_stages", std::to_string(*stages), option, "");
    map.put("parallelism.schedule", "\"interleaved\"", option, "");
  }
}

/// GPUs of the job: the log's world_size, or nodes times processes per node of torchrun.
void map_gpus(Mapper& map) {
  if (map.has("world-size")) return map.put_integer("cluster.gpus", "world-size");
  const auto per_node = map.integer("nproc-per-node");
  const auto nodes = map.integer("nnodes");
  if (per_node)
    map.put("cluster.gpus", std::to_string(*per_node * nodes.value_or(1)), "nproc-per-node",
            ", times --nnodes");
}

}  // namespace

bool recognises_megatron_arguments(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  return (has("--num-layers") && has("--hidden-size")) ||
         (has("num_layers ....") && has("hidden_size ...."));
}

ImportedArguments read_megatron_arguments(std::string_view text, const std::string& file) {
  const bool log = text.find("num_layers ....") != std::string_view::npos;
  Mapper map(log ? log_block(text, file) : command_line(text, file), file);
  const std::int64_t tp =
      std::max<std::int64_t>(1, map.integer("tensor-model-parallel-size").value_or(1));
  map_model(map, tp);
  map_training(map);
  map_parallelism(map);
  map_gpus(map);
  return map.take();
}

}  // namespace scapesim::scenario
