// SPDX-License-Identifier: Apache-2.0
// Dimensions of one micro-batch on one rank, and the operations that layers are made of.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>

#include "sim/workload/workload.hpp"

namespace scapesim::workload {

using Operations = std::vector<Operation>;

/// Bytes of an fp32 element.
inline constexpr double kFloat = 4;

/// [M211] What a rank holds: heads, MLP and vocabulary over tp, sequence over cp, experts over ep;
/// with sequence parallelism norms and residual sums over tp as well (Korthikanti 2022).
struct Shape {
  std::int64_t batch, sequence;  ///< of the micro-batch, whole sequences
  std::int64_t tokens;           ///< whose products the rank computes
  std::int64_t norm_tokens;      ///< whose norms and residual sums it computes
  std::int64_t hidden, heads, kv_heads, head_dim, value_dim;
  std::int64_t query, key, value;  ///< widths: heads x head_dim, kv_heads x ...
  std::int64_t attended;           ///< width of attention's output: heads x value_dim
  std::int64_t ffn, ffn_in;        ///< inner width of the MLP, and with the gate
  std::int64_t vocab;
  std::int64_t tp, cp;
  bool sequence_parallel;
  spec::AttentionCore core;
  spec::ElementWise kernels;
  spec::Dispatcher dispatcher;
  bool permute_fusion;
  bool autocast;
  bool hidden_dropout, attention_dropout;
  bool fp32_sums;  ///< products of weight gradients add to an fp32 buffer in their epilogue
  bool tensor_overlap;
  double gradient;  ///< bytes of an accumulated gradient
  double element;   ///< bytes of an activation
  double narrow;    ///< bytes of both copies of an element cast for products, 0: none is cast
  // Experts of the rank.
  std::int64_t experts;      ///< groups of the expert products
  std::int64_t expert_rows;  ///< tokens of each
  std::int64_t sent_rows;    ///< tokens that leave the rank, once per expert chosen
  std::int64_t expert_ffn, expert_ffn_in, shared_ffn, shared_ffn_in;
  int ep;                  ///< ranks of the expert-parallel group
  double rank_copies;      ///< [M457] ranks of the group that a token's experts are on, expected
  bool experts_split;      ///< their inner width over tp
  bool experts_elsewhere;  ///< over expert-parallel ranks
  std::optional<double> document;  ///< [M432] tokens of a packed document
  // What is trained of the layer.
  bool trains = true;          ///< the layer's own parameters
  std::int64_t lora_rank = 0;  ///< of adapters beside them, 0: none
  std::vector<spec::LoraTarget> lora_targets = {};
  bool four_bits = false;  ///< frozen matrices are dequantised before every product
};

/// Whether the layer's matrix has an adapter.
bool adapts(const Shape& s, spec::LoraTarget target);
/// [M431] Bytes of an element of NF4 with its blocks' constants (Dettmers 2023, sec. 3).
inline constexpr double kFourBits = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;

/// False when the MLP has one matrix before its non-linearity.
bool gated(const spec::Model& model);

Shape shape_of(const spec::Model& model, const spec::Training& training,
               const spec::Parallelism& parallelism);

/// [M451] Rows of so many elements begin at multiples of 16 bytes.
inline bool aligned(const Shape& s, std::int64_t width) {
  return std::fmod(static_cast<double>(width) * s.element, 16) == 0;
}
/// C[m,n] = A[m,k] B[k,n].
void add_gemm(Operations& list, std::string name, std::int64_t m, std::int64_t n, std::int64_t k);
/// Traffic of `per_token` elements for every token.
void add_pass(Operations& list, std::string name, const Shape& s, std::int64_t tokens,
              std::int64_t per_token, int launches = 1);
/// How the ranks of a tensor-parallel group share a weight.
enum class Split { columns, rows, none };
/// A linear layer y[tokens,out] = x[tokens,in] W whose sizes are those on the rank. [M212] Columns:
/// `out` is split over tp and the input is whole; rows: `in` is split and the output is summed
/// (Shoeybi 2019); with sequence parallelism the sums scatter and the inputs gather
/// (Korthikanti 2022).
struct Linear {
  /// A trained product of two thin matrices beside a frozen one, or beside some of its columns.
  struct Adapter {
    std::string name;
    std::int64_t out = 0;
  };
  std::string name;
  std::int64_t out = 0;
  std::int64_t in = 0;
  bool cast = true;  ///< in the training precision; logits are not
  bool bias = false;
  bool narrowable = true;  ///< in four bits where frozen matrices are
  std::vector<Adapter> adapters = {};
  Split split = Split::columns;
};
/// [M416] A dropout of its own forward, or any backward: read, written, and the mask of a byte.
void add_dropout(Operations& list, std::string name, const Shape& s, double elements);
/// [M416] Bytes of a mask as activations of the rank's type.
inline double mask_elements(const Shape& s, double elements) { return elements / s.element; }
/// [M218] Quantises an operand of fp8, mxfp8 or nvfp4 products, rows and columns in one kernel.
void add_cast(Operations& list, const Linear& layer, std::string_view what, const Shape& s,
              std::int64_t tokens, std::int64_t width);
/// A collective over an axis, of `elements` activations.
struct ExchangeSpec {
  std::string name;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  graph::Axis axis = graph::Axis::tensor;
  double elements = 0;
  std::string overlaps = {};
};
void add_exchange(Operations& list, const Shape& s, ExchangeSpec spec);

void add_columns_forward(Operations& list, const Shape& s, const Linear& layer);
void add_columns_backward(Operations& list, const Shape& s, const Linear& layer);
void add_rows_forward(Operations& list, const Shape& s, const Linear& layer);
void add_rows_backward(Operations& list, const Shape& s, const Linear& layer);
/// Not split: input and weight gradient.
void add_linear_backward(Operations& list, const Shape& s, std::int64_t tokens,
                         const Linear& layer);
/// y[tokens,out] alone.
void add_linear_forward(Operations& list, const Shape& s, std::int64_t tokens, const Linear& layer);

/// A product of counts that may be larger than 64 bits hold.
inline double times(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}
/// Bytes of the rank's elements.
inline Bytes activation_bytes(const Shape& s, double elements) {
  return Bytes(elements * s.element);
}

/// An attention or MLP branch without norm and residual sum.
struct Branch {
  Operations forward;
  Operations backward;
  std::vector<Tensor> tensors;
  std::vector<Tensor> adapters = {};  ///< beside them
  double kept = 0;          ///< elements that its backward pass needs, its own input apart
  Bytes statistics;         ///< of the softmax, which recomputing attention saves
  Bytes routing;            ///< of the router, in fp32
  bool keeps_input = true;  ///< its backward pass needs what it read
};

/// Which keys the layer sees: all, or those of the model's window.
enum class Reach { all, window };
Branch attention_branch(const spec::Model& model, const spec::Parallelism& parallelism,
                        const Shape& s, Reach reach);
Branch mlp_branch(const spec::Model& model, const Shape& s);
Branch expert_branch(const spec::Model& model, const Shape& s);

/// A norm's weight and bias as one tensor, appended when it has any.
void add_norm_tensor(std::vector<Tensor>& list, const std::string& name, const spec::Model& model,
                     std::int64_t width);
/// A matrix and its bias.
void add_weight(std::vector<Tensor>& list, const Linear& layer, bool bias);
/// [M431] Adapters of a matrix: A of r rows, B of r columns; under tp what goes with the matrix's
/// split side is split.
void add_adapter_tensors(std::vector<Tensor>& list, const Shape& s, const Linear& layer);
/// Kept for the adapters of a matrix, elements.
double kept_by_adapters(const Shape& s, const Linear& layer);

Layer embedding_layer(const spec::Model& model, const Shape& s);
Layer head_layer(const spec::Model& model, const spec::Training& training, const Shape& s);
/// A multi-token prediction module around a transformer layer (DeepSeek-V3 sec. 2.2).
Layer prediction_layer(const spec::Model& model, Layer block, const Layer& head, const Shape& s);

}  // namespace scapesim::workload
