// SPDX-License-Identifier: Apache-2.0
// Every choice a scenario offers, with the word users write. One row per enumerator.
#pragma once

#include "sim/base/named.hpp"

namespace scapesim::spec {

#define SCAPESIM_NAMES(E, ...)                         \
  inline std::span<const Named<E>> names_of(E*) {      \
    using enum E;                                      \
    static constexpr Named<E> kRows[] = {__VA_ARGS__}; \
    return kRows;                                      \
  }

/// MLP non-linearity; swiglu and geglu have a gate matrix.
enum class Activation { gelu, swiglu, geglu, relu2 };
SCAPESIM_NAMES(Activation, {gelu, "gelu"}, {swiglu, "swiglu"}, {geglu, "geglu"}, {relu2, "relu2"})

enum class Norm { layernorm, rmsnorm };
SCAPESIM_NAMES(Norm, {layernorm, "layernorm"}, {rmsnorm, "rmsnorm"})

/// What a norm learns; usual: weight and bias of a layer norm, weight of an RMS norm.
enum class NormParameters { usual, weight, none };
SCAPESIM_NAMES(NormParameters, {usual, "usual"}, {weight, "weight"}, {none, "none"})

/// pre: before each branch; post: after the residual sum (BERT); branch: after the branch, before
/// the sum (OLMo 2); both: before and after the branch (Gemma 2).
enum class NormPlacement { pre, post, branch, both };
SCAPESIM_NAMES(NormPlacement, {pre, "pre"}, {post, "post"}, {branch, "branch"}, {both, "both"})

/// RMS norm of queries and keys: none, per head (Qwen 3), over all heads together (OLMo 2).
enum class QkNorm { none, head, full };
SCAPESIM_NAMES(QkNorm, {none, "none"}, {head, "head"}, {full, "full"})

/// Which linear layers have a bias; attention: qkv and projection.
enum class Biases { none, qkv, attention, all };
SCAPESIM_NAMES(Biases, {none, "none"}, {qkv, "qkv"}, {attention, "attention"}, {all, "all"})

/// latent: keys and values from a low-rank vector (DeepSeek-V2, multi-head latent attention).
enum class AttentionKind { standard, latent };
SCAPESIM_NAMES(AttentionKind, {standard, "standard"}, {latent, "latent"})

/// Whether attention and MLP follow each other or read the same input (GPT-NeoX), from one norm
/// (Falcon) or one each.
enum class Blocks { sequential, parallel, parallel_one_norm };
SCAPESIM_NAMES(Blocks, {sequential, "sequential"}, {parallel, "parallel"},
               {parallel_one_norm, "parallel_one_norm"})

enum class Positions { learned, rope, alibi, none };
SCAPESIM_NAMES(Positions, {learned, "learned"}, {rope, "rope"}, {alibi, "alibi"}, {none, "none"})

/// Compute precision of the GEMMs.
enum class Precision { fp32, fp16, bf16, fp8, mxfp8, nvfp4 };
SCAPESIM_NAMES(Precision, {fp32, "fp32"}, {fp16, "fp16"}, {bf16, "bf16"}, {fp8, "fp8"},
               {mxfp8, "mxfp8"}, {nvfp4, "nvfp4"})

/// Type in which gradients are accumulated and reduced.
enum class GradientDtype { fp32, bf16, fp16 };
SCAPESIM_NAMES(GradientDtype, {fp32, "fp32"}, {bf16, "bf16"}, {fp16, "fp16"})

enum class Optimizer { adams, adamw, sgd, lamb };
SCAPESIM_NAMES(Optimizer, {adams, "adams"}, {adamw, "adamw"}, {sgd, "sgd"}, {lamb, "lamb"})

/// Activation recomputation; selective is the attention core (Korthikanti 2022).
enum class Recompute { none, selective, full };
SCAPESIM_NAMES(Recompute, {none, "none"}, {selective, "selective"}, {full, "full"})

/// Attention core: a kernel that keeps no scores (Dao 2022), by the library that the profile has
/// sampled or a named generation (FlashAttention, its Triton twin, FlashAttention-2); or two
/// batched products and a softmax that write them.
enum class AttentionCore { flash, flash1, triton, flash2, unfused };
SCAPESIM_NAMES(AttentionCore, {flash, "flash"}, {flash1, "flash1"}, {triton, "triton"},
               {flash2, "flash2"}, {unfused, "unfused"})

/// Element-wise work: one kernel per named pass as in Megatron-LM and Transformer Engine, or a
/// kernel per operator as PyTorch runs without compiling.
enum class ElementWise { fused, eager };
SCAPESIM_NAMES(ElementWise, {fused, "fused"}, {eager, "eager"})

/// Gradients of a sharded optimizer (zero1): scattered sums, or whole sums of which a rank uses its
/// shard (DeepSpeed's BF16_Optimizer).
enum class Reduction { reduce_scatter, all_reduce };
SCAPESIM_NAMES(Reduction, {reduce_scatter, "reduce_scatter"}, {all_reduce, "all_reduce"})

/// How tokens reach experts of other ranks: a copy per expert chosen, one per rank that holds any
/// of them (DeepEP, HybridEP), or all tokens of the group to all of its ranks.
enum class Dispatcher { all_to_all, per_rank, all_gather };
SCAPESIM_NAMES(Dispatcher, {all_to_all, "all_to_all"}, {per_rank, "per_rank"},
               {all_gather, "all_gather"})

/// Cross-entropy: Megatron-LM's passes in fp32, one kernel that reads and overwrites the logits, or
/// PyTorch's own on fp32 logits.
enum class Loss { unfused, fused, pytorch };
SCAPESIM_NAMES(Loss, {unfused, "unfused"}, {fused, "fused"}, {pytorch, "pytorch"})

/// When unsharded gradients are summed over ranks: once per step, or behind every backward pass, as
/// PyTorch's DDP does without no_sync.
enum class GradientSync { step, micro_batch };
SCAPESIM_NAMES(GradientSync, {step, "step"}, {micro_batch, "micro_batch"})

/// How attention sees the whole sequence under context parallelism: keys and values pass around a
/// ring, or an all-to-all turns sequence shards into head shards (Ulysses).
enum class ContextMethod { ring, all_to_all };
SCAPESIM_NAMES(ContextMethod, {ring, "ring"}, {all_to_all, "all_to_all"})

/// Pipeline schedule.
enum class Schedule { gpipe, one_f_one_b, interleaved, zb_h1, dualpipe };
SCAPESIM_NAMES(Schedule, {gpipe, "gpipe"}, {one_f_one_b, "1f1b"}, {interleaved, "interleaved"},
               {zb_h1, "zb_h1"}, {dualpipe, "dualpipe"})

/// Axes by which ranks are numbered; ep divides cp and dp ranks of a stage.
enum class MeshAxis { tp, cp, ep, dp, pp };
SCAPESIM_NAMES(MeshAxis, {tp, "tp"}, {cp, "cp"}, {ep, "ep"}, {dp, "dp"}, {pp, "pp"})

/// When a stage goes on after sending: at once, or as Megatron-LM's 1F1B does, when neighbours have
/// met. automatic: overlapped for the schedules that were made for it.
enum class StageOverlap { automatic, overlapped, blocking };
SCAPESIM_NAMES(StageOverlap, {automatic, "automatic"}, {overlapped, "overlapped"},
               {blocking, "blocking"})

/// Whether the all-to-all of experts is hidden behind another pass: that of a forward pass behind
/// the backward pass beside it and the other way round. automatic: paired under dualpipe, which was
/// made for it.
enum class ExpertOverlap { automatic, none, paired };
SCAPESIM_NAMES(ExpertOverlap, {automatic, "automatic"}, {none, "none"}, {paired, "paired"})

/// How gradients are communicated.
enum class Method {
  dense,
  scape,
  topk,
  dgc,
  demo,
  qsdp,
  zeropp,
  oktopk,
  onebit_adam,
  powersgd,
  local_sgd
};
SCAPESIM_NAMES(Method, {dense, "dense"}, {scape, "scape"}, {topk, "topk"}, {dgc, "dgc"},
               {demo, "demo"}, {qsdp, "qsdp"}, {zeropp, "zeropp"}, {oktopk, "oktopk"},
               {onebit_adam, "onebit_adam"}, {powersgd, "powersgd"}, {local_sgd, "local_sgd"})

/// Who keeps what; zero1 is Megatron-LM's distributed optimizer.
enum class Sharding { none, zero1, zero2, zero3, fsdp, hsdp };
SCAPESIM_NAMES(Sharding, {none, "none"}, {zero1, "zero1"}, {zero2, "zero2"}, {zero3, "zero3"},
               {fsdp, "fsdp"}, {hsdp, "hsdp"})

/// unfused: the pass counts of the released PyTorch implementations.
enum class Kernels { fused, unfused };
SCAPESIM_NAMES(Kernels, {fused, "fused"}, {unfused, "unfused"})

/// owner: each rank makes the mask of its part; global: every rank of all, OR-ed.
enum class MaskPartition { owner, global };
SCAPESIM_NAMES(MaskPartition, {owner, "owner"}, {global, "global"})

enum class MaskWait { overlapped, blocking };
SCAPESIM_NAMES(MaskWait, {overlapped, "overlapped"}, {blocking, "blocking"})

/// packed: 1 bit per element; byte: 1 byte.
enum class MaskFormat { packed, byte };
SCAPESIM_NAMES(MaskFormat, {packed, "packed"}, {byte, "byte"})

/// tensor: whole tensors (released code without distributed optimizer); even: N/P each.
enum class Owners { even, tensor };
SCAPESIM_NAMES(Owners, {even, "even"}, {tensor, "tensor"})

/// one: momentum rebuilt from one buffer; two: gradient and momentum both reduced.
enum class PayloadBuffers { one, two };
SCAPESIM_NAMES(PayloadBuffers, {one, "one"}, {two, "two"})

enum class PayloadDtype { fp32, bf16, fp8 };
SCAPESIM_NAMES(PayloadDtype, {fp32, "fp32"}, {bf16, "bf16"}, {fp8, "fp8"})

/// How top-k gradients travel: every rank's indices and values, or the values of the OR of all
/// ranks' masks.
enum class Exchange { indices, mask };
SCAPESIM_NAMES(Exchange, {indices, "indices"}, {mask, "mask"})

/// Type in which dense gradients cross the network.
enum class ReduceDtype { gradient, fp32, bf16, fp8 };
SCAPESIM_NAMES(ReduceDtype, {gradient, "gradient"}, {fp32, "fp32"}, {bf16, "bf16"}, {fp8, "fp8"})

/// Local steps: the next round waits for the outer all-reduce, or runs beside it and takes its
/// result a round late.
enum class OuterWait { blocking, overlapped };
SCAPESIM_NAMES(OuterWait, {blocking, "blocking"}, {overlapped, "overlapped"})

/// Second payload all-reduce of SCAPE with the distributed optimizer.
enum class SecondPayload { released, none };
SCAPESIM_NAMES(SecondPayload, {released, "released"}, {none, "none"})

/// How a NIC reaches GPU memory: directly, or through a copy in host memory.
enum class NicPath { gpudirect, host };
SCAPESIM_NAMES(NicPath, {gpudirect, "gpudirect"}, {host, "host"})

enum class HostLinkKind { c2c, pcie };
SCAPESIM_NAMES(HostLinkKind, {c2c, "c2c"}, {pcie, "pcie"})

/// How the GPUs of a node are joined: an NVSwitch, a link per pair, or the PCIe tree alone.
enum class NodeFabric { switch_, mesh, pcie };
SCAPESIM_NAMES(NodeFabric, {switch_, "switch"}, {mesh, "mesh"}, {pcie, "pcie"})

/// Which GPUs reach each other over PCIe without a copy in host memory.
enum class PeerAccess { all, socket, none };
SCAPESIM_NAMES(PeerAccess, {all, "all"}, {socket, "socket"}, {none, "none"})

enum class FabricKind {
  switch_,
  fat_tree,
  rail_optimized,
  rail_only,
  dragonfly,
  dragonfly_plus,
  torus,
  hyperx,
  sites,
  graph
};
SCAPESIM_NAMES(FabricKind, {switch_, "switch"}, {fat_tree, "fat_tree"},
               {rail_optimized, "rail_optimized"}, {rail_only, "rail_only"},
               {dragonfly, "dragonfly"}, {dragonfly_plus, "dragonfly_plus"}, {torus, "torus"},
               {hyperx, "hyperx"}, {sites, "sites"}, {graph, "graph"})

/// spray: parallel cables share all traffic evenly; ecmp: a hash gives every flow one of them.
enum class Routing { spray, ecmp };
SCAPESIM_NAMES(Routing, {spray, "spray"}, {ecmp, "ecmp"})

/// Which GPU gets which rank.
enum class Placement { packed, strided, random, rail, topology };
SCAPESIM_NAMES(Placement, {packed, "packed"}, {strided, "strided"}, {random, "random"},
               {rail, "rail"}, {topology, "topology"})

/// Which nodes of the machine a job gets.
enum class Allocation { packed, spread, random };
SCAPESIM_NAMES(Allocation, {packed, "packed"}, {spread, "spread"}, {random, "random"})

/// How the compute times of ranks spread about their mean; exponential: most a little below it,
/// few far above.
enum class JitterDistribution { normal, lognormal, exponential };
SCAPESIM_NAMES(JitterDistribution, {normal, "normal"}, {lognormal, "lognormal"},
               {exponential, "exponential"})

/// What draws a pace of its own: every rank, or every node.
enum class JitterScope { rank, node };
SCAPESIM_NAMES(JitterScope, {rank, "rank"}, {node, "node"})

/// How a collective moves its bytes.
enum class Algorithm {
  ring,
  tree,       ///< double binary tree (Sanders, Speck, Traeff 2009)
  nvls,       ///< the NVLink switch reduces and multicasts
  nvls_tree,  ///< NVLS inside the node, a tree between nodes
  sharp,      ///< the network's switches reduce
  hierarchical,
  halving_doubling,
  pairwise,
  pat
};
SCAPESIM_NAMES(Algorithm, {ring, "ring"}, {tree, "tree"}, {nvls, "nvls"}, {nvls_tree, "nvls-tree"},
               {sharp, "sharp"}, {hierarchical, "hierarchical"},
               {halving_doubling, "halving-doubling"}, {pairwise, "pairwise"}, {pat, "pat"})

/// NCCL's wire formats: flags beside every 4 bytes, beside every 120, or none.
enum class Protocol { ll, ll128, simple };
SCAPESIM_NAMES(Protocol, {ll, "LL"}, {ll128, "LL128"}, {simple, "Simple"})

/// Matrices that an adapter stands beside, by their names in Hugging Face's Llama and Phi-3;
/// all_linear is PEFT's word for every matrix of the layers.
enum class LoraTarget {
  q_proj,
  k_proj,
  v_proj,
  qkv_proj,
  o_proj,
  gate_proj,
  up_proj,
  gate_up_proj,
  down_proj,
  all_linear
};
SCAPESIM_NAMES(LoraTarget, {q_proj, "q_proj"}, {k_proj, "k_proj"}, {v_proj, "v_proj"},
               {qkv_proj, "qkv_proj"}, {o_proj, "o_proj"}, {gate_proj, "gate_proj"},
               {up_proj, "up_proj"}, {gate_up_proj, "gate_up_proj"}, {down_proj, "down_proj"},
               {all_linear, "all-linear"})

/// How matrices that are not trained lie in memory: in the type they are multiplied in, or in the
/// four bits of QLoRA.
enum class FrozenWeights { compute, nf4 };
SCAPESIM_NAMES(FrozenWeights, {compute, "compute"}, {nf4, "nf4"})

/// How documents make sequences: each fills one; several share one and attend to themselves alone;
/// one each, padded to the whole sequence or to the longest of its micro-batch.
enum class Documents { whole, packed, padded, longest };
SCAPESIM_NAMES(Documents, {whole, "whole"}, {packed, "packed"}, {padded, "padded"},
               {longest, "padded_to_longest"})

#undef SCAPESIM_NAMES

}  // namespace scapesim::spec
