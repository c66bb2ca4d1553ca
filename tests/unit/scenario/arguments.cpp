// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/arguments.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace scapesim::scenario {
namespace {

using Catch::Matchers::Contains;

const std::string kScript = R"(#!/bin/bash
GPUS_PER_NODE=8
ARGS=(
    --num-layers 32 --hidden-size 4096   # a comment
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --seq-length 4096 --max-position-embeddings 4096
    --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --disable-bias-linear
)
MORE="--micro-batch-size 1 --global-batch-size 256 --lr=1e-4 --bf16 --use-distributed-optimizer"
torchrun --nproc_per_node ${GPUS_PER_NODE} --nnodes 4 pretrain_gpt.py ${ARGS[@]} $MORE \
  --tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 2 --sequence-parallel \
  --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 \
  --recompute-granularity full
)";

std::map<std::string, std::string> values_of(const ImportedArguments& arguments) {
  std::map<std::string, std::string> values;
  for (const Cell& cell : arguments.cells) values[cell.key] = cell.text;
  REQUIRE(values.size() == arguments.cells.size());  // no key twice
  REQUIRE(arguments.origins.size() == arguments.cells.size());
  return values;
}

std::string problems_of(std::string_view text, const std::string& file) {
  try {
    import_arguments(text, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("Megatron-LM's batch ramp and evaluations are read from scripts and logs") {
  const std::string line =
      " --rampup-batch-size 192 16 9_765_625 --eval-interval 500 --eval-iters 2 --fp16\n";
  auto values = values_of(import_arguments(kScript + line, "pretrain.sh"));
  CHECK(values["training.batch_ramp"] == "\"192 16 9765625\"");
  CHECK(values["training.evaluation_interval"] == "500");
  CHECK(values["training.evaluation_iterations"] == "2");
  CHECK(values["training.precision"] == "\"bf16\"");
  const std::string log =
      "  num_layers ...................................... 24\n"
      "  hidden_size ..................................... 2048\n"
      "  padded_vocab_size ............................... 50304\n"
      "  rampup_batch_size ............................... ['32', '32', '1000']\n"
      "  eval_iters ...................................... 10\n";
  values = values_of(import_arguments(log, "train.log"));
  CHECK(values["training.batch_ramp"] == "\"32 32 1000\"");
  CHECK(values["training.evaluation_interval"] == "1000");
  values = values_of(import_arguments(kScript, "pretrain.sh"));
  CHECK_FALSE(values.contains("training.batch_ramp"));
  CHECK_FALSE(values.contains("training.evaluation_interval"));
}

TEST_CASE("a Megatron-LM script becomes the keys of a scenario") {
  const ImportedArguments arguments = import_arguments(kScript, "pretrain.sh");
  CHECK(arguments.format == "megatron-lm");
  auto values = values_of(arguments);
  CHECK(values["model.layers"] == "32");
  CHECK(values["model.kv_heads"] == "8");
  CHECK(values["model.ffn"] == "10880");    // 4096 x 8/3 in multiples of 64
  CHECK(values["model.vocab"] == "50432");  // 50257 in multiples of 128 x 2
  CHECK(values["model.norm"] == "\"rmsnorm\"");
  CHECK(values["model.positions"] == "\"rope\"");
  CHECK(values["model.tied_embeddings"] == "false");
  CHECK(values["model.biases"] == "false");
  CHECK(values["training.precision"] == "\"bf16\"");
  CHECK(values["training.gradient_dtype"] == "\"fp32\"");
  CHECK(values["training.recompute"] == "\"full\"");
  CHECK(values["parallelism.tp"] == "2");
  CHECK(values["parallelism.virtual_stages"] == "4");  // 32 layers / (4 stages x 2)
  CHECK(values["strategy.sharding"] == "\"zero1\"");
  CHECK(values["cluster.gpus"] == "32");
  CHECK_FALSE(values.contains("model.max_positions"));  // rotary positions have no table
  CHECK(arguments.ignored == std::vector<std::string>{"--lr"});
}

TEST_CASE("every value carries the line and column of its argument") {
  for (const Cell& cell : import_arguments(kScript, "pretrain.sh").cells)
    if (cell.key == "model.hidden") {
      CHECK(cell.place.file == "pretrain.sh");
      CHECK(cell.place.line == 4);
      CHECK(cell.place.column == 35);
    }
}

TEST_CASE("the arguments that Megatron-LM prints into its log are read too") {
  const std::string log =
      "------------------------ arguments ------------------------\n"
      "  num_layers ...................................... 24\n"
      "[rank0]:  hidden_size ..................................... 1024\n"
      "  num_attention_heads ............................. 16\n"
      "  ffn_hidden_size ................................. 4096\n"
      "  padded_vocab_size ............................... 50304\n"
      "  swiglu .......................................... False\n"
      "  fp16 ............................................ True\n"
      "  bf16 ............................................ False\n"
      "  micro_batch_size ................................ 4\n"
      "  global_batch_size ............................... 32\n"
      "  world_size ...................................... 8\n"
      "-------------------- end of arguments ---------------------\n";
  auto values = values_of(import_arguments(log, "train.log"));
  CHECK(values["model.layers"] == "24");
  CHECK(values["model.hidden"] == "1024");
  CHECK(values["model.vocab"] == "50304");
  CHECK(values["model.activation"] == "\"gelu\"");
  CHECK(values["training.precision"] == "\"fp16\"");
  CHECK(values["training.gradient_dtype"] == "\"fp16\"");
  CHECK(values["cluster.gpus"] == "8");
}

TEST_CASE("a torchtitan job file maps to a preset, FSDP and its batch") {
  const ImportedArguments arguments = import_arguments(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = "
      "8192\nsteps = 10\n[parallelism]\ntensor_parallel_degree = 4\n"
      "data_parallel_shard_degree = -1\n[activation_checkpoint]\nmode = \"full\"\n",
      "job.toml");
  auto values = values_of(arguments);
  CHECK(values["model.preset"] == "\"llama3-8b\"");
  CHECK(values["training.micro_batch"] == "2");
  CHECK(values["training.sequence"] == "8192");
  CHECK(values["training.recompute"] == "\"full\"");
  CHECK(values["parallelism.tp"] == "4");
  CHECK(values["strategy.sharding"] == "\"fsdp\"");
  CHECK(arguments.ignored == std::vector<std::string>{"training.steps"});
}

TEST_CASE("a DeepSpeed configuration maps its batch, precision and ZeRO stage") {
  const ImportedArguments arguments = import_arguments(
      "{\n  \"train_batch_size\": 512,\n  \"train_micro_batch_size_per_gpu\": 4,\n"
      "  \"bf16\": {\"enabled\": true},\n"
      "  \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": true},\n  \"steps_per_print\": "
      "1\n}",
      "ds.json");
  auto values = values_of(arguments);
  CHECK(values["training.global_batch"] == "512");
  CHECK(values["training.micro_batch"] == "4");
  CHECK(values["training.precision"] == "\"bf16\"");
  CHECK(values["strategy.sharding"] == "\"zero3\"");
  CHECK(values["training.overlap_gradients"] == "true");
  CHECK(arguments.ignored == std::vector<std::string>{"steps_per_print"});
}

TEST_CASE("arguments that cannot be read are told with their place") {
  CHECK_THAT(problems_of("train.py --num-layers many --hidden-size 8 --vocab-size 8", "a.sh"),
             Contains("a.sh:1:23: --num-layers: \"many\" is not an integer"));
  CHECK_THAT(problems_of("train.py --num-layers 2 --hidden-size 8", "a.sh"),
             Contains("a.sh: --vocab-size: missing"));
  CHECK_THAT(problems_of("hello", "a.txt"),
             Contains("arguments of no known framework") && Contains("megatron-lm: --num-layers"));
  CHECK_THAT(problems_of("{\"zero_optimization\": {\"stage\": 7}}", "d.json"),
             Contains("d.json:1:24: zero_optimization.stage: 7 is no stage"));
  CHECK_THAT(problems_of("{\"zero_optimization\": {\"stage\": 1", "d.json"), Contains("no JSON"));
}

TEST_CASE("hostile numbers are refused, not computed with") {
  const std::string start = "train.py --num-layers 2 --hidden-size 8 --vocab-size 8 ";
  CHECK(problems_of(start + "--make-vocab-size-divisible-by 0", "a.sh") == "accepted");
  CHECK_THAT(problems_of(start + "--make-vocab-size-divisible-by 9223372036854775807", "a.sh"),
             Contains("is out of range (0 to 1000000000)"));
  CHECK_THAT(problems_of(start + "--recompute-num-layers -1", "a.sh"), Contains("out of range"));
  CHECK_THAT(problems_of("{\"train_micro_batch_size_per_gpu\": 1e400}", "d.json"),
             Contains("a number in it is too large"));
}

TEST_CASE("a text cut at any byte gives arguments or an error") {
  for (std::size_t size = 0; size <= kScript.size(); ++size)
    CHECK_FALSE(problems_of(kScript.substr(0, size), "cut.sh").empty());
}

TEST_CASE("the scenario file names what every value came from") {
  ImportedArguments arguments = import_arguments(kScript, "pretrain.sh");
  const std::string text = scenario_toml(arguments, "mine");
  CHECK_THAT(text,
             Contains("name = \"mine\"\n") && Contains("[model]\nlayers = 32  # --num-layers"));
  CHECK_THAT(text, Contains("# Without a counterpart or an effect here: --lr\n"));
}

}  // namespace
}  // namespace scapesim::scenario
