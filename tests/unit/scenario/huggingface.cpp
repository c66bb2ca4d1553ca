// SPDX-License-Identifier: Apache-2.0
// Every config.json beside this file, written here after published models: it means the same as
// the preset of its name, or has the published number of parameters.
#include "sim/scenario/huggingface.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/workload/workload.hpp"
#include "support.hpp"

namespace scapesim::scenario {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = "tests/unit/scenario/configs";

spec::Scenario imported(const fs::path& config) {
  return load_text(kSound, {"model.huggingface=" + fs::absolute(config).string(),
                            "training.global_batch=512", "training.sequence=512"})
      .front();
}

std::int64_t parameters_of(const spec::Scenario& scenario) {
  return workload::workload_of(scenario.model, scenario.training).parameters;
}

TEST_CASE("a config.json means what the preset of the same model says") {
  std::vector<std::string> presets;
  for (const Preset& preset : model_presets()) presets.push_back(preset.name);
  int equal = 0;
  for (const auto& entry : fs::directory_iterator(kConfigs)) {
    const std::string name = entry.path().stem().string();
    if (std::ranges::find(presets, name) == presets.end()) continue;
    INFO(name);
    const spec::Scenario preset =
        load_text(kSound,
                  {"model.preset=" + name, "training.global_batch=512", "training.sequence=512"})
            .front();
    const spec::Scenario config = imported(entry.path());
    CHECK(config.hash == preset.hash);
    CHECK(config.model.name == name);
    ++equal;
  }
  CHECK(equal >= 15);
}

TEST_CASE("[M1] imported models without a preset have their published parameters") {
  // Totals of the checkpoints on Hugging Face.
  const std::map<std::string, std::int64_t> published = {
      {"gpt-neox-20b", 20'554'567'680},      {"falcon-7b", 6'921'720'704},
      {"phi3-mini", 3'821'079'552},          {"olmo2-7b", 7'298'617'344},
      {"qwen1.5-moe-a2.7b", 14'315'784'192}, {"deepseek-v2-lite", 15'706'484'224},
  };
  for (const auto& [name, parameters] : published) {
    INFO(name);
    CHECK(parameters_of(imported(kConfigs / (name + ".json"))) == parameters);
  }
}

TEST_CASE("all architectures that are known have a config here, the aliases apart") {
  std::vector<std::string> seen;
  for (const auto& entry : fs::directory_iterator(kConfigs)) {
    const std::string text = read_file(entry.path(), "config");
    for (const std::string_view name : huggingface_architectures())
      if (text.find('"' + std::string(name) + '"') != std::string::npos) seen.emplace_back(name);
  }
  for (const std::string_view name : huggingface_architectures()) {
    INFO(name);
    const bool alias =
        name == "BertForMaskedLM" || name == "BloomModel" || name == "MptForCausalLM";
    CHECK((alias || std::ranges::count(seen, name) >= 1));
  }
}

TEST_CASE("what may change the computation and is not simulated is named, other keys are not") {
  CHECK(imported(kConfigs / "gemma2-9b.json").model.unread ==
        std::vector<std::string>{"attn_logit_softcapping", "final_logit_softcapping"});
  for (const auto& entry : fs::directory_iterator(kConfigs)) {
    if (entry.path().stem() == "gemma2-9b") continue;
    INFO(entry.path());
    CHECK(imported(entry.path()).model.unread.empty());
  }
}

TEST_CASE("keys of the scenario lie over those of an imported model") {
  const spec::Scenario scenario =
      load_text(kSound, {"model.huggingface=" + fs::absolute(kConfigs / "llama3-8b.json").string(),
                         "model.layers=4", "training.global_batch=512", "training.sequence=512"})
          .front();
  CHECK(scenario.model.layers == 4);
  CHECK(scenario.model.ffn == 14'336);
}

}  // namespace
}  // namespace scapesim::scenario
