// SPDX-License-Identifier: Apache-2.0
// [M211] What a rank holds and computes under tensor, context, expert and sequence parallelism;
// [M212], [M213], [M214] the collectives its layers wait for.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::Axis;
using graph::CollectiveKind;
using workload::Exchange;
using workload::Layer;
using workload::Operation;
using workload::Workload;

namespace {

// Sums of exact products in double precision: only the order of addition differs.
constexpr double kRounding = 1e-12;
constexpr std::int64_t kBatch = 2, kSequence = 4096, kTokens = kBatch * kSequence;

spec::Model experts() {
  spec::Model model = llama({4, 1024, 16, 8, 4096});
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_ffn = 1536;
  return model;
}

spec::Model latent() {
  spec::Model model = experts();
  model.attention = spec::AttentionKind::latent;
  model.kv_heads = model.heads;
  model.head_dim = 96;
  model.rope_head_dim = 32;
  model.value_head_dim = 64;
  model.q_lora_rank = 384;
  model.kv_lora_rank = 128;
  model.shared_experts = 1;
  model.dense_layers = 1;
  return model;
}

Workload work_of(const spec::Model& model, const spec::Parallelism& parallelism) {
  return workload::workload_of(model, training_of(kBatch, kSequence), parallelism);
}

Flops forward_flops(const Workload& work) {
  Flops sum;
  for (const Layer& layer : work.layers) sum += flops_of(layer.forward);
  return sum;
}

std::vector<Exchange> exchanges_of(const std::vector<Operation>& operations, CollectiveKind kind,
                                   Axis axis) {
  std::vector<Exchange> list;
  for (const Operation& operation : operations)
    if (const auto* exchange = std::get_if<Exchange>(&operation.shape))
      if (exchange->kind == kind && exchange->axis == axis) list.push_back(*exchange);
  return list;
}

Bytes bytes_of(const std::vector<Exchange>& exchanges) {
  Bytes sum;
  for (const Exchange& exchange : exchanges) sum += exchange.bytes;
  return sum;
}

std::int64_t rank_parameters(const Workload& work) {
  std::int64_t sum = 0;
  for (const Layer& layer : work.layers) sum += workload::parameters_of(layer);
  return sum;
}

}  // namespace

TEST_CASE("[M211] all ranks of a split together execute the FLOPs of one that is not") {
  const Flops whole = forward_flops(work_of(llama_70b(), {}));
  for (const int tp : {1, 2, 8})
    for (const int cp : {1, 2, 4})
      for (const auto method : {spec::ContextMethod::ring, spec::ContextMethod::all_to_all}) {
        INFO("tp " << tp << " cp " << cp << " " << name_of(method));
        const Workload rank = work_of(llama_70b(), {.tp = tp, .cp = cp, .context_method = method});
        CHECK(tp * cp * forward_flops(rank).si() == Approx(whole.si()).epsilon(kRounding));
      }
}

TEST_CASE("[M211] experts and latent vectors split without work done twice") {
  for (const spec::Model& model : {experts(), latent()}) {
    const Flops whole = forward_flops(work_of(model, {}));
    for (const int ep : {1, 2, 8})
      for (const int expert_tp : {0, 1}) {
        const spec::Parallelism split{
            .tp = 4, .cp = 2, .ep = ep, .sequence_parallel = true, .expert_tp = expert_tp};
        CHECK(8 * forward_flops(work_of(model, split)).si() ==
              Approx(whole.si()).epsilon(kRounding));
      }
  }
}

TEST_CASE("[M211] counts and FLOPs of the model do not depend on how it is split") {
  const Workload whole = work_of(latent(), {});
  const Workload rank = work_of(latent(), {.tp = 4, .cp = 2, .ep = 4, .sequence_parallel = true});
  CHECK(rank.parameters == whole.parameters);
  CHECK(rank.active_parameters == whole.active_parameters);
  CHECK(rank.model_flops == whole.model_flops);
  CHECK(rank_parameters(whole) == whole.parameters);
}

TEST_CASE("[M211] a tensor-parallel rank holds its share, and norms whole") {
  const spec::Model m = llama_70b();
  const std::int64_t norms = (2 * m.layers + 1) * std::int64_t{m.hidden};
  for (const int tp : {2, 4, 8}) {
    const Workload work = work_of(m, {.tp = tp});
    CHECK(rank_parameters(work) == (work.parameters - norms) / tp + norms);
    CHECK(work.largest_tensor == std::int64_t{2} * m.ffn * m.hidden / tp);
  }
}

TEST_CASE("[M211] more ranks than key heads hold one each, a vocabulary is padded") {
  spec::Model m = llama({1, 1024, 16, 2, 4096});
  m.vocab = 32'001;
  const Workload work = work_of(m, {.tp = 8});
  const auto& tensors = work.layers[1].tensors;
  const auto qkv = std::ranges::find(tensors, "layer 0 qkv.weight", &workload::Tensor::name);
  CHECK(qkv->numel == (2 + 2 * 1) * 64 * 1024);
  CHECK(work.layers[0].tensors[0].numel == 4001 * 1024);
}

TEST_CASE("[M211] an expert-parallel rank holds its experts, marked as such") {
  const Workload whole = work_of(experts(), {});
  for (const int ep : {1, 2, 8}) {
    const Workload work = work_of(experts(), {.ep = ep});
    for (std::size_t i = 0; i < work.layers.size(); ++i) {
      const auto routed = workload::expert_parameters_of(work.layers[i]);
      CHECK(ep * routed == workload::expert_parameters_of(whole.layers[i]));
      CHECK(workload::parameters_of(work.layers[i]) - routed ==
            workload::parameters_of(whole.layers[i]) -
                workload::expert_parameters_of(whole.layers[i]));
    }
  }
  CHECK(workload::expert_parameters_of(whole.layers[1]) == 8 * 3 * 1536 * 1024);
  CHECK(whole.active_parameters == whole.parameters - 4 * 6 * 3 * 1536 * 1024);
}

TEST_CASE("[M212] a layer sums twice forward and twice backward over tensor-parallel ranks") {
  const spec::Model m = llama_70b();
  const Layer layer = work_of(m, {.tp = 8}).layers[1];
  for (const auto* list : {&layer.forward, &layer.backward}) {
    const auto sums = exchanges_of(*list, CollectiveKind::all_reduce, Axis::tensor);
    REQUIRE(sums.size() == 2);
    for (const Exchange& sum : sums) CHECK(sum.bytes.si() == 2.0 * kTokens * m.hidden);
  }
  CHECK(exchanges_of(layer.backward, CollectiveKind::all_reduce, Axis::tensor)[0].overlaps ==
        "fc1 wgrad");
}

TEST_CASE("[M212] sequence parallelism gathers and scatters what was summed, and gathers again") {
  // Korthikanti et al. 2022, sec. 4.2.2: the same bytes as the all-reduces, and in the backward
  // pass one more gather of each column-parallel input.
  const spec::Model m = llama_70b();
  const Layer layer = work_of(m, {.tp = 8, .sequence_parallel = true}).layers[1];
  const double one = 2.0 * kTokens * m.hidden;
  const auto count = [&](const std::vector<Operation>& list, CollectiveKind kind) {
    const auto exchanges = exchanges_of(list, kind, Axis::tensor);
    for (const Exchange& exchange : exchanges) CHECK(exchange.bytes.si() == one);
    return exchanges.size();
  };
  CHECK(count(layer.forward, CollectiveKind::all_gather) == 2);
  CHECK(count(layer.forward, CollectiveKind::reduce_scatter) == 2);
  CHECK(count(layer.backward, CollectiveKind::all_gather) == 4);
  CHECK(count(layer.backward, CollectiveKind::reduce_scatter) == 2);
  CHECK(count(layer.forward, CollectiveKind::all_reduce) == 0);
}

TEST_CASE("[M212] embedding and loss are summed over the parts of the vocabulary") {
  const spec::Model m = llama_70b();
  const Workload work = work_of(m, {.tp = 8});
  const auto lookup =
      exchanges_of(work.layers[0].forward, CollectiveKind::all_reduce, Axis::tensor);
  REQUIRE(lookup.size() == 1);
  CHECK(lookup[0].bytes.si() == 2.0 * kTokens * m.hidden);
  const auto loss =
      exchanges_of(work.layers.back().forward, CollectiveKind::all_reduce, Axis::tensor);
  REQUIRE(loss.size() == 3);
  for (const Exchange& sum : loss) CHECK(sum.bytes.si() == 4.0 * kTokens);
}

TEST_CASE("[M213] ring attention passes its keys and values to the next rank c-1 times") {
  const spec::Model m = llama_70b();
  for (const int cp : {2, 4, 8}) {
    const Layer layer = work_of(m, {.cp = cp}).layers[1];
    const double keys_and_values = 4.0 * kTokens * m.kv_heads * m.head_dim / cp;
    const auto forward = exchanges_of(layer.forward, CollectiveKind::send_recv, Axis::context);
    REQUIRE(forward.size() == static_cast<std::size_t>(cp - 1));
    for (const Exchange& step : forward) CHECK(step.bytes.si() == keys_and_values);
    CHECK(bytes_of(exchanges_of(layer.backward, CollectiveKind::send_recv, Axis::context)) ==
          2 * bytes_of(forward));
    CHECK(forward[0].overlaps == "attention step 0");
  }
}

TEST_CASE("[M213] heads for sequence: four all-to-alls forward in two calls, two backward") {
  const spec::Model m = llama_70b();
  const Layer layer =
      work_of(m, {.cp = 4, .context_method = spec::ContextMethod::all_to_all}).layers[1];
  const auto calls = exchanges_of(layer.forward, CollectiveKind::all_to_all, Axis::context);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].bytes.si() == 2.0 * kTokens / 4 * (m.heads + 2 * m.kv_heads) * m.head_dim);
  CHECK(calls[1].bytes.si() == 2.0 * kTokens / 4 * m.heads * m.head_dim);
  CHECK(bytes_of(exchanges_of(layer.backward, CollectiveKind::all_to_all, Axis::context)) ==
        bytes_of(calls));
}

TEST_CASE("[M214] tokens go to their experts and back, forward and backward") {
  const spec::Model m = experts();
  const Layer layer = work_of(m, {.ep = 4}).layers[1];
  for (const auto* list : {&layer.forward, &layer.backward}) {
    const auto calls = exchanges_of(*list, CollectiveKind::all_to_all, Axis::expert);
    REQUIRE(calls.size() == 2);
    for (const Exchange& call : calls) CHECK(call.bytes.si() == 2.0 * kTokens * 2 * m.hidden);
  }
}

TEST_CASE("[M214] capacity and imbalance scale the bytes and the rows of the fullest rank") {
  const auto fc1 = [](const spec::Model& model) {
    return std::get<workload::Gemm>(
        operation_named(work_of(model, {.ep = 4}).layers[1].forward, "expert fc1").shape);
  };
  spec::Model m = experts();
  CHECK(fc1(m).groups == 2);
  CHECK(fc1(m).m == kTokens * 2 / 2);
  m.expert_imbalance = 1.5;
  CHECK(fc1(m).m == kTokens * 3 / 2);
  m.capacity_factor = 2;  // padded to the room whatever the load
  CHECK(fc1(m).m == kTokens * 2 / 2 * 2);
  CHECK(work_of(m, {}).model_flops == work_of(experts(), {}).model_flops);
}

TEST_CASE("[M214] experts split over tensor-parallel ranks gather the rows of all of them") {
  const spec::Model m = experts();
  const spec::Parallelism split{.tp = 4, .ep = 2, .sequence_parallel = true};
  const Layer layer = work_of(m, split).layers[1];
  const auto gathered = exchanges_of(layer.forward, CollectiveKind::all_gather, Axis::tensor);
  // qkv's input, then the rows sent by four ranks.
  REQUIRE(gathered.size() == 2);
  CHECK(gathered[1].bytes.si() == 2.0 * kTokens * 2 * m.hidden);
  spec::Parallelism whole = split;
  whole.expert_tp = 1;
  CHECK(exchanges_of(work_of(m, whole).layers[1].forward, CollectiveKind::all_gather, Axis::tensor)
            .size() == 1);
}

TEST_CASE("an exchange that overlaps names the operation behind it") {
  spec::Training training = training_of(kBatch, kSequence);
  int overlapped = 0;
  for (const auto recompute :
       {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full})
    for (const bool sequence_parallel : {false, true})
      for (const spec::Model& model : {llama_70b(), experts(), latent()}) {
        training.recompute = recompute;
        const Workload work = workload::workload_of(
            model, training, {.tp = 4, .cp = 2, .ep = 4, .sequence_parallel = sequence_parallel});
        for (const Layer& layer : work.layers)
          for (const auto* list : {&layer.forward, &layer.backward})
            for (std::size_t i = 0; i < list->size(); ++i)
              if (const auto* exchange = std::get_if<Exchange>(&(*list)[i].shape)) {
                if (exchange->overlaps.empty()) continue;
                REQUIRE(i + 1 < list->size());
                CHECK((*list)[i + 1].name == exchange->overlaps);
                ++overlapped;
              }
      }
  CHECK(overlapped > 1000);
}

TEST_CASE("nothing is exchanged by a rank that shares nothing") {
  for (const spec::Model& model : {llama_70b(), experts(), latent()})
    for (const Layer& layer : work_of(model, {}).layers)
      for (const auto* list : {&layer.forward, &layer.backward})
        for (const Operation& operation : *list)
          CHECK_FALSE(std::holds_alternative<Exchange>(operation.shape));
}

TEST_CASE(
    "[M60] tensor parallelism splits all that is kept but norms, sequence parallelism these") {
  // Korthikanti et al. 2022, eq. 2 and 4: s b h (10 + 24/t) and s b h 34/t without the attention
  // square; two bytes of each are dropout masks.
  const spec::Model m = gpt3_175b();
  const double sbh = static_cast<double>(kTokens) * m.hidden;
  for (const int t : {2, 4, 8}) {
    const double statistics = 4.0 * kTokens * m.heads / t;
    spec::Parallelism split{.tp = t};
    CHECK(work_of(m, split).layers[1].kept.si() == sbh * 8 + sbh * 24 / t + statistics);
    split.sequence_parallel = true;
    CHECK(work_of(m, split).layers[1].kept.si() == sbh * 32 / t + statistics);
  }
}

TEST_CASE("[M215] recompute_layers recomputes the first layers of each pipeline stage") {
  spec::Training training = training_of(1, 1024);
  training.recompute = spec::Recompute::full;
  training.recompute_layers = 2;
  const Workload work = workload::workload_of(llama_1_8b(), training, {.pp = 4});
  const double input = 2.0 * 1024 * 2560;
  for (int i = 0; i < 24; ++i) {
    const Layer& layer = work.layers[static_cast<std::size_t>(i) + 1];
    CHECK((layer.kept.si() == input) == (i % 6 < 2));
  }
  CHECK(work.layers[1].like == 1);
  CHECK(work.layers[7].like == 1);
  CHECK(work.layers[24].like == 3);
}

TEST_CASE("[M216] a fused loss reads its logits twice, leaves their gradient, and scales it") {
  spec::Training training = training_of(1, 1024);
  training.loss = spec::Loss::fused;
  const Layer head = workload::workload_of(llama_1_8b(), training).layers.back();
  const double logits = 1024.0 * 32'000;
  CHECK(std::get<workload::Pass>(operation_named(head.forward, "loss").shape).traffic.si() ==
        3 * 2 * logits);
  CHECK(std::get<workload::Pass>(operation_named(head.backward, "loss backward").shape)
            .traffic.si() == 2 * 2 * logits);
  CHECK(head.transient.si() == 2 * logits);
}

TEST_CASE("[M217] a prediction module is a projection, a layer, and the head once more") {
  spec::Model m = llama_1_8b();
  const Workload without = work_of(m, {});
  m.mtp_layers = 1;
  const Workload with = work_of(m, {});
  REQUIRE(with.layers.size() == without.layers.size() + 1);
  const Layer& module = with.layers[with.layers.size() - 2];
  CHECK(module.role == workload::Role::prediction);
  const std::int64_t h = m.hidden;
  CHECK(with.parameters - without.parameters ==
        workload::parameters_of(without.layers[1]) + 2 * h * h + 3 * h);
  const Flops extra = with.model_flops - without.model_flops;
  const Flops expected =
      3.0 * (flops_of(without.layers[1].forward) + flops_of(without.layers.back().forward)) +
      Flops(3.0 * 2 * kTokens * 2 * static_cast<double>(h * h));
  CHECK(extra.si() == Approx(expected.si()).epsilon(1e3 * kRounding));  // a difference of sums
}

TEST_CASE("the last stage of a pipeline holds a copy of tied embeddings, counted once") {
  const Workload one = work_of(gpt_345m(), {});
  const Workload two = work_of(gpt_345m(), {.pp = 2});
  CHECK(two.parameters == one.parameters);
  CHECK(workload::parameters_of(two.layers.back()) - workload::parameters_of(one.layers.back()) ==
        50'304 * 1024);
}

TEST_CASE("[M210] a latent attention multiplies DeepSeek's five matrices") {
  const spec::Model m = latent();
  const Workload work = work_of(m, {});
  const std::int64_t q = 1024 * 384 + 384 * 16 * 96, kv = 1024 * (128 + 32) + 128 * 16 * (64 + 64);
  const std::int64_t projection = 16 * 64 * 1024;
  const std::int64_t mlp = 3 * 1024 * 4096, norms = 2 * 1024 + 384 + 128;
  CHECK(workload::parameters_of(work.layers[1]) == q + kv + projection + mlp + norms);
  Flops products;
  for (const Operation& operation : work.layers[1].forward)
    if (std::holds_alternative<workload::Gemm>(operation.shape))
      products += workload::flops_of(operation);
  CHECK(products.si() == 2.0 * kTokens * static_cast<double>(q + kv + projection + mlp));
}

TEST_CASE("a rank's work alone has the same layers, with operations where they differ only") {
  const spec::Parallelism parallelism{.tp = 2, .ep = 2};
  const spec::Training training = training_of(kBatch, kSequence);
  const Workload whole = workload::workload_of(experts(), training, parallelism);
  const Workload rank = workload::rank_workload(experts(), training, parallelism);
  REQUIRE(rank.layers.size() == whole.layers.size());
  CHECK(rank.largest_tensor == whole.largest_tensor);
  for (std::size_t i = 0; i < rank.layers.size(); ++i) {
    const Layer &bare = rank.layers[i], &full = whole.layers[i];
    CHECK(bare.like == full.like);
    CHECK(bare.kept == full.kept);
    CHECK(workload::parameters_of(bare) == workload::parameters_of(full));
    CHECK(bare.forward.size() == (full.like < i ? 0 : full.forward.size()));
    CHECK(bare.backward.size() == (full.like < i ? 0 : full.backward.size()));
    CHECK(!full.forward.empty());
  }
}
