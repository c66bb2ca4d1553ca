// SPDX-License-Identifier: Apache-2.0
// torchtitan job files and DeepSpeed configurations: what of them a scenario can say.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/scenario/arguments.hpp"
#include "sim/scenario/toml_text.hpp"

namespace scapesim::scenario {
namespace {

using Json = nlohmann::json;

void put(ImportedArguments& out, std::string key, std::string value, Place place,
         std::string origin) {
  out.cells.push_back({std::move(key), std::move(value), place, place});
  out.origins.push_back(std::move(origin));
}

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// A torchtitan file's settings by "section.name".
class Titan {
 public:
  Titan(std::string_view text, const std::string& file) {
    document_ = parse_document(text, file, problems_);
  }

  const Setting* find(std::string_view section, std::string_view name) {
    for (const Setting& setting : document_.settings)
      if (setting.section == section && setting.name == name) {
        seen_.push_back(&setting);
        return &setting;
      }
    return nullptr;
  }
  std::string text(std::string_view section, std::string_view name) {
    const Setting* setting = find(section, name);
    const auto* word = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value);
    return word == nullptr ? "" : *word;
  }
  std::optional<std::int64_t> integer(std::string_view section, std::string_view name) {
    const Setting* setting = find(section, name);
    if (setting == nullptr) return std::nullopt;
    if (const auto* value = std::get_if<std::int64_t>(&setting->value)) return *value;
    problems_.add(setting->place, key_text(section, name), "not an integer");
    return std::nullopt;
  }
  void copy(ImportedArguments& out, std::string key, std::string_view section,
            std::string_view name) {
    if (const auto value = integer(section, name); value && *value > 0)
      put(out, std::move(key), std::to_string(*value), find(section, name)->place,
          key_text(section, name));
  }
  void finish(ImportedArguments& out) const {
    problems_.raise();
    for (const Setting& setting : document_.settings)
      if (std::ranges::find(seen_, &setting) == seen_.end())
        out.ignored.push_back(key_text(setting.section, setting.name));
  }

 private:
  Problems problems_;
  Document document_;
  std::vector<const Setting*> seen_;
};

/// torchtitan's model families and the prefix of our presets.
struct Family {
  std::string_view name;
  std::string_view preset;
};
constexpr Family kFamilies[] = {
    {"llama3", "llama3-"}, {"qwen3", "qwen3-"}, {"deepseek_v3", "deepseek-v3"}};

void map_titan_model(Titan& titan, ImportedArguments& out) {
  const std::string family = titan.text("model", "name");
  const std::string flavor = titan.text("model", "flavor");
  const auto known = std::ranges::find(kFamilies, family, &Family::name);
  if (known == std::end(kFamilies) || flavor.empty()) {
    out.notes.push_back("model: set model.preset, this family's shapes are not known here");
    return;
  }
  // Presets of families with one size do not name it.
  const bool sized = known->preset.ends_with('-');
  put(out, "model.preset", in_quotes(std::string(known->preset) + (sized ? lower(flavor) : "")),
      titan.find("model", "flavor")->place, "model.name, model.flavor");
}

void map_titan_schedule(Titan& titan, ImportedArguments& out) {
  const std::string name = lower(titan.text("parallelism", "pipeline_parallel_schedule"));
  std::string_view schedule;
  if (name == "1f1b") schedule = "1f1b";
  if (name == "gpipe") schedule = "gpipe";
  if (name == "interleaved1f1b") schedule = "interleaved";
  if (name == "dualpipev") schedule = "dualpipe";
  if (!schedule.empty())
    put(out, "parallelism.schedule", in_quotes(schedule),
        titan.find("parallelism", "pipeline_parallel_schedule")->place,
        "parallelism.pipeline_parallel_schedule");
  if (schedule == "dualpipe")
    put(out, "parallelism.virtual_stages", "2",
        titan.find("parallelism", "pipeline_parallel_schedule")->place,
        "parallelism.pipeline_parallel_schedule");
  if (schedule.empty() && !name.empty())
    out.notes.push_back(fmt::format("pipeline schedule \"{}\" has no counterpart", name));
}

void map_titan_sharding(Titan& titan, ImportedArguments& out) {
  const auto shard = titan.integer("parallelism", "data_parallel_shard_degree").value_or(-1);
  const auto replicate = titan.integer("parallelism", "data_parallel_replicate_degree").value_or(1);
  const std::string_view sharding = shard == 1 ? "none" : replicate > 1 ? "hsdp" : "fsdp";
  const Setting* place = titan.find("parallelism", "data_parallel_shard_degree");
  put(out, "strategy.sharding", in_quotes(sharding), place == nullptr ? Place{} : place->place,
      "parallelism.data_parallel_shard_degree and _replicate_degree");
}

const Json* at(const Json& document, std::initializer_list<std::string_view> path) {
  const Json* node = &document;
  for (const std::string_view name : path) {
    if (!node->is_object() || !node->contains(name)) return nullptr;
    node = &(*node)[std::string(name)];
  }
  return node;
}

bool enabled(const Json& document, std::string_view section) {
  const Json* flag = at(document, {section, "enabled"});
  return flag != nullptr && flag->is_boolean() && flag->get<bool>();
}

/// Line and column of a quoted key in JSON text.
Place place_of_key(std::string_view text, std::string_view key, const std::string& file) {
  const std::size_t at = std::min(text.find(fmt::format("\"{}\"", key)), text.size());
  const auto before = text.substr(0, at);
  const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  const std::size_t start = before.rfind('\n');
  return {file, line, static_cast<int>(at - (start == text.npos ? 0 : start + 1)) + 1};
}

Json parse_json(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text, nullptr, true, true);
  } catch (const Json::parse_error& error) {
    const auto before = text.substr(0, std::min(error.byte, text.size()));
    const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
    throw InputError(Problem{{file, line, 1},
                             "",
                             "no JSON: it breaks off or has a stray character",
                             "is the file complete?"});
  } catch (const Json::exception&) {
    throw InputError(
        Problem{{file, 1, 1}, "", "a number in it is too large", "numbers up to 1e308"});
  }
}

}  // namespace

bool recognises_torchtitan(std::string_view text) {
  return text.find("[training]") != text.npos && text.find("seq_len") != text.npos &&
         text.find("flavor") != text.npos;
}

ImportedArguments read_torchtitan(std::string_view text, const std::string& file) {
  Titan titan(text, file);
  ImportedArguments out;
  map_titan_model(titan, out);
  titan.copy(out, "training.global_batch", "training", "global_batch_size");
  titan.copy(out, "training.micro_batch", "training", "local_batch_size");
  titan.copy(out, "training.micro_batch", "training", "batch_size");  // before local_batch_size
  titan.copy(out, "training.sequence", "training", "seq_len");
  put(out, "training.precision", in_quotes("bf16"), {}, "torchtitan's mixed precision");
  put(out, "training.gradient_dtype", in_quotes("fp32"), {}, "torchtitan's mixed_precision_reduce");
  put(out, "training.optimizer", in_quotes("adamw"), {}, "torchtitan's default");
  titan.find("optimizer", "name");
  const std::string mode = titan.text("activation_checkpoint", "mode");
  if (mode == "full" || mode == "none")
    put(out, "training.recompute", in_quotes(mode),
        titan.find("activation_checkpoint", "mode")->place, "activation_checkpoint.mode");
  else if (mode == "selective")
    out.notes.push_back(
        "activation_checkpoint \"selective\" of torchtitan saves every second matrix product; "
        "recompute is left at none");
  titan.copy(out, "parallelism.tp", "parallelism", "tensor_parallel_degree");
  titan.copy(out, "parallelism.pp", "parallelism", "pipeline_parallel_degree");
  titan.copy(out, "parallelism.cp", "parallelism", "context_parallel_degree");
  titan.copy(out, "parallelism.ep", "parallelism", "expert_parallel_degree");
  map_titan_schedule(titan, out);
  map_titan_sharding(titan, out);
  titan.finish(out);
  return out;
}

bool recognises_deepspeed(std::string_view text) {
  return text.find('{') != text.npos &&
         (text.find("\"train_micro_batch_size_per_gpu\"") != text.npos ||
          text.find("\"zero_optimization\"") != text.npos);
}

ImportedArguments read_deepspeed(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  ImportedArguments out;
  Problems problems;
  const auto copy = [&](std::string_view name, std::string key) {
    const Json* value = at(document, {name});
    if (value == nullptr || *value == "auto") return;
    if (value->is_number_integer())
      put(out, std::move(key), value->dump(), place_of_key(text, name, file), std::string(name));
    else
      problems.add(place_of_key(text, name, file), std::string(name), "not an integer");
  };
  copy("train_batch_size", "training.global_batch");
  copy("train_micro_batch_size_per_gpu", "training.micro_batch");
  for (const std::string_view precision : {"bf16", "fp16"})
    if (enabled(document, precision))
      put(out, "training.precision", in_quotes(precision), place_of_key(text, precision, file),
          std::string(precision) + ".enabled");
  if (const Json* stage = at(document, {"zero_optimization", "stage"});
      stage != nullptr && stage->is_number_integer()) {
    const int number = stage->get<int>();
    if (number >= 0 && number <= 3)
      put(out, "strategy.sharding", in_quotes(number == 0 ? "none" : fmt::format("zero{}", number)),
          place_of_key(text, "stage", file), "zero_optimization.stage");
    else
      problems.add(place_of_key(text, "stage", file), "zero_optimization.stage",
                   fmt::format("{} is no stage", number), "0 to 3");
  }
  if (const Json* overlap = at(document, {"zero_optimization", "overlap_comm"});
      overlap != nullptr && overlap->is_boolean() && overlap->get<bool>())
    put(out, "training.overlap_gradients", "true", place_of_key(text, "overlap_comm", file),
        "zero_optimization.overlap_comm");
  for (const auto& [name, value] : document.items())
    if (name != "train_batch_size" && name != "train_micro_batch_size_per_gpu" && name != "bf16" &&
        name != "fp16" && name != "zero_optimization" && name != "gradient_accumulation_steps")
      out.ignored.push_back(name);
  out.notes.push_back("a DeepSpeed configuration does not hold the model: set model.preset");
  problems.raise();
  return out;
}

}  // namespace scapesim::scenario
