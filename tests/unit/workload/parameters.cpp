// SPDX-License-Identifier: Apache-2.0
// [M1] Parameters against published counts and closed forms.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using workload::Tensor;
using workload::Workload;

namespace {

Workload work_of(const spec::Model& model) {
  return workload::workload_of(model, training_of(1, model.max_positions > 0 ? 1024 : 2048));
}

}  // namespace

TEST_CASE("[M1] the SCAPE paper's three models are exact to the element") {
  CHECK(work_of(gpt_345m()).parameters == 354'871'296);
  CHECK(work_of(llama_500m()).parameters == 513'590'784);
  CHECK(work_of(llama_1_8b()).parameters == 1'831'201'280);
}

TEST_CASE("[M1] Llama 2 and GPT-3 have their published numbers of parameters") {
  CHECK(work_of(llama_7b()).parameters == 6'738'415'616);
  CHECK(work_of(llama_13b()).parameters == 13'015'864'320);
  CHECK(work_of(llama_70b()).parameters == 68'976'648'192);
  CHECK(work_of(gpt3_175b()).parameters == 174'615'846'912);
}

TEST_CASE("[M1] a GPT's parameters are Megatron-LM's closed form and the final norm") {
  // Narayanan et al. 2021, eq. 2: 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)); it leaves out the
  // weight and bias of the last norm.
  for (const spec::Model& m : {gpt_345m(), gpt3_175b()}) {
    const std::int64_t h = m.hidden;
    const std::int64_t closed_form =
        m.layers * (12 * h * h + 13 * h) + (std::int64_t{m.vocab} + m.max_positions) * h;
    CHECK(work_of(m).parameters == closed_form + 2 * h);
  }
}

TEST_CASE("grouped queries take away only key and value heads") {
  spec::Model grouped = llama_1_8b();
  spec::Model full = grouped;
  full.kv_heads = full.heads;
  const std::int64_t missing_heads = full.heads - grouped.kv_heads;
  CHECK(work_of(full).parameters - work_of(grouped).parameters ==
        full.layers * 2 * missing_heads * full.head_dim * full.hidden);
}

TEST_CASE("tying the embeddings saves the output matrix") {
  spec::Model tied = llama_500m();
  tied.tied_embeddings = true;
  CHECK(work_of(llama_500m()).parameters - work_of(tied).parameters ==
        std::int64_t{tied.vocab} * tied.hidden);
}

TEST_CASE("tensors in optimizer order are all parameters, from the embedding to the output") {
  const Workload work = work_of(llama_1_8b());
  const std::vector<Tensor> tensors = workload::tensors_of(work);
  std::int64_t sum = 0;
  std::int64_t largest = 0;
  for (const Tensor& tensor : tensors) {
    sum += tensor.numel;
    largest = std::max(largest, tensor.numel);
  }
  CHECK(sum == work.parameters);
  CHECK(largest == work.largest_tensor);
  CHECK(work.largest_tensor == 32'000 * 2560);
  CHECK(tensors.front().name == "embedding.weight");
  CHECK(tensors.back().name == "output.weight");
}

TEST_CASE("norm weights and biases, and nothing else, are always selected") {
  std::int64_t always = 0;
  for (const Tensor& tensor : workload::tensors_of(work_of(gpt_345m())))
    if (tensor.always_selected) always += tensor.numel;
  // Per layer: two norms of 2h, biases of qkv 3h, projection h, MLP 4h and h; one final norm.
  CHECK(always == 24 * 13 * 1024 + 2 * 1024);

  always = 0;
  for (const Tensor& tensor : workload::tensors_of(work_of(llama_1_8b())))
    if (tensor.always_selected) always += tensor.numel;
  CHECK(always == (2 * 24 + 1) * 2560);
}
