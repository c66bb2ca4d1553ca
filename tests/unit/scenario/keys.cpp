// SPDX-License-Identifier: Apache-2.0
// Over every row of the key table: what is listed is what is read.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <set>

#include "support.hpp"

namespace scapesim::scenario {
namespace {

std::string key_of(const KeyRecord& record) {
  return record.section.empty() ? std::string(record.name)
                                : fmt::format("{}.{}", record.section, record.name);
}

// A value of the right type and in range, from what the record says.
std::string good_value(const KeyRecord& record) {
  if (record.name == "preset") return record.section == "model" ? "llama-7b" : "vista";
  if (record.name == "huggingface")
    return std::filesystem::absolute("tests/unit/scenario/configs/llama3-8b.json").string();
  if (record.type == "flag") return "true";
  if (record.type == "text") return "words";
  if (record.type == "list") return "[\"" + record.range.substr(0, record.range.find(',')) + "\"]";
  if (record.type == "adapters" || record.type == "file" || record.type == "lengths" ||
      record.type == "ramp")
    return "none";
  if (record.type.starts_with("list of")) return "[]";
  if (record.type == "one of" || record.type == "words")
    return record.range.substr(0, record.range.find(','));
  const std::string lowest = record.range.substr(0, record.range.find(" to "));
  return record.type == "integer" || record.type == "number" ? lowest : "\"" + lowest + "\"";
}

std::vector<std::string> bad_values(const KeyRecord& record) {
  if (record.type == "flag") return {"2", "yes", "[]"};
  if (record.type == "text") return {"7", "\"\"", "true", "[\"a\"]"};
  if (record.type == "adapters") return {"7", "\"-1\"", "\"0,x\"", "\"0,\"", "[0]"};
  if (record.type == "lengths") return {"0", "-1", "\"lognormal 7\"", "\"7 x 2\"", "[7]", "true"};
  if (record.type == "ramp") return {"7", "\"7\"", "\"7 7 0\"", "\"7 until x\"", "[\"7\"]"};
  if (record.type == "file") return {"7", "\"\"", "no-such-file.csv", "[]"};
  if (record.type.starts_with("list of")) return {"7", "[7]", "[\"\"]", "[\"NIC 1\"]", "words"};
  if (record.type == "list") return {"7", "[7]", "[\"nothing\"]", "other"};
  if (record.type == "one of") return {"no-such-word", "7", "\"\""};
  if (record.type == "integer") return {"1000000001", "-2", "1.5", "words", "nan"};
  if (record.type == "number") return {"-1", "1001", "nan", "inf", "words", "true"};
  if (record.type == "sizes") return {"7", "\"-1\"", "\"8x0\"", "\"8x\"", "[8]", "\"1x1x1x1x1\""};
  return {"7", "-1", "\"1\"", "\"-1s\"", "\"1furlong\"", "\"1e300\"", "true", "nan"};
}

bool is_refused(const KeyRecord& record, const std::string& value) {
  const std::string key = key_of(record);
  for (const Problem& problem : problems_of([&] { load_text(kSound, {key + "=" + value}); }))
    if (problem.key == key && problem.place.file == "--set") return true;
  return false;
}

// Rules between keys that a single change of kSound breaks: refused, but not for its value.
const std::set<std::string> kTiedToOthers = {"model.head_dim",
                                             "training.global_batch",
                                             "training.optimizer",
                                             "training.overlap_gradients",
                                             "training.recompute_layers",
                                             "training.lora_targets",
                                             "training.evaluation_interval",
                                             "training.evaluation_iterations",
                                             "training.offload_layers",
                                             "parallelism.stage_layers",
                                             "strategy.method",
                                             "strategy.mask_delay",
                                             "cluster.nodes_per_rack"};

TEST_CASE("every key is taken by --set with a value in its range") {
  for (const KeyRecord& record : key_records()) {
    INFO(key_of(record) << " = " << good_value(record));
    if (kTiedToOthers.contains(key_of(record))) continue;
    CHECK_FALSE(is_refused(record, good_value(record)));
  }
}

TEST_CASE("every key is refused out of its range and of another type") {
  for (const KeyRecord& record : key_records())
    for (const std::string& value : bad_values(record)) {
      INFO(key_of(record) << " = " << value);
      CHECK(is_refused(record, value));
    }
}

TEST_CASE("every default that is a value is read back as itself") {
  const std::string hash = load_text(kSound).front().hash;
  for (const KeyRecord& record : key_records()) {
    const bool is_value =
        !record.default_text.empty() &&
        std::string("\"[0123456789-tf").find(record.default_text[0]) != std::string::npos &&
        record.type != "text" && record.default_text.find(' ') == std::string::npos;
    const bool given = record.section == "model" || record.section == "cluster" ||
                       key_of(record) == "strategy.method" ||
                       key_of(record) == "strategy.density" ||
                       key_of(record) == "training.optimizer";
    if (!is_value || given) continue;
    INFO(key_of(record) << " = " << record.default_text);
    CHECK(load_text(kSound, {key_of(record) + "=" + record.default_text}).front().hash == hash);
  }
}

TEST_CASE("words that the rules refuse as not simulated are known as such, and no others") {
  for (const KeyRecord& record : key_records()) {
    if (record.type != "one of") continue;
    std::string rest = record.range + ", ";
    while (!rest.empty()) {
      const std::string word = rest.substr(0, rest.find(", "));
      rest.erase(0, word.size() + 2);
      INFO(key_of(record) << " = " << word);
      bool refused = false;
      for (const Problem& problem :
           problems_of([&] { load_text(kSound, {key_of(record) + "=" + word}); }))
        refused = refused || (problem.key == key_of(record) &&
                              problem.what.find("not simulated") != std::string::npos);
      CHECK(refused == (std::ranges::count(record.refused, word) == 1));
    }
    if (record.name == "precision") CHECK(record.refused == Set{"mxfp8", "nvfp4"});
    if (record.name == "method") CHECK(record.refused.empty());
  }
}

TEST_CASE("every key has a help text, a type and a name of its own") {
  std::set<std::string> seen;
  for (const KeyRecord& record : key_records()) {
    INFO(key_of(record));
    CHECK_FALSE(record.help.empty());
    CHECK_FALSE(record.type.empty());
    CHECK((record.type == "text" || !record.range.empty()));
    CHECK(seen.insert(key_of(record)).second);
  }
}

TEST_CASE("the keys of the design's contract are there") {
  std::set<std::string> known;
  for (const KeyRecord& record : key_records()) known.insert(key_of(record));
  for (const char* key : {"name",
                          "model.preset",
                          "model.layers",
                          "model.kv_heads",
                          "model.tied_embeddings",
                          "training.global_batch",
                          "training.micro_batch",
                          "training.sequence",
                          "training.precision",
                          "training.gradient_dtype",
                          "training.optimizer",
                          "training.recompute",
                          "training.overlap_gradients",
                          "training.bucket",
                          "parallelism.tp",
                          "parallelism.schedule",
                          "parallelism.virtual_stages",
                          "parallelism.sequence_parallel",
                          "parallelism.order",
                          "parallelism.stage_layers",
                          "strategy.method",
                          "strategy.density",
                          "strategy.sharding",
                          "strategy.offload",
                          "strategy.mask_delay",
                          "strategy.mask_partition",
                          "strategy.mask_wait",
                          "strategy.kernels",
                          "strategy.owners",
                          "strategy.second_payload",
                          "cluster.preset",
                          "cluster.gpus",
                          "cluster.nic_bandwidth",
                          "cluster.taper",
                          "calibration.profile"}) {
    INFO(key);
    CHECK(known.contains(key));
  }
}

}  // namespace
}  // namespace scapesim::scenario
