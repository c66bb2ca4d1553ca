// SPDX-License-Identifier: Apache-2.0
// What the user wrote, typed. Plain values; defaults describe the method as published.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/spec/enums.hpp"

namespace scapesim::spec {

/// A transformer, decoder-only unless causal is false. Counts are elements, not bytes.
struct Model {
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  ///< = heads without grouped-query attention
  int head_dim = 0;  ///< of queries and keys
  int ffn = 0;
  Activation activation = Activation::gelu;
  Norm norm = Norm::layernorm;
  NormParameters norm_parameters = NormParameters::usual;
  NormPlacement norm_placement = NormPlacement::pre;
  Blocks blocks = Blocks::sequential;
  Positions positions = Positions::learned;
  int max_positions = 0;  ///< rows of a learned position table, 0 otherwise
  int vocab = 0;          ///< rows of the embedding, padding included
  bool tied_embeddings = true;
  Biases biases = Biases::all;

  AttentionKind attention = AttentionKind::standard;
  QkNorm qk_norm = QkNorm::none;
  int window = 0;                ///< keys that a query of a windowed layer sees; 0: no window
  int full_attention_every = 0;  ///< every so many layers one sees all keys; 0: none does
  int q_lora_rank = 0;           ///< latent: width of the compressed query, 0: not compressed
  int kv_lora_rank = 0;          ///< latent: width of the compressed keys and values
  int rope_head_dim = 0;         ///< latent: part of head_dim that is rotated, shared by the heads
  int value_head_dim = 0;        ///< 0: as head_dim

  int experts = 0;                  ///< routed experts of a mixture-of-experts layer, 0: dense
  int experts_per_token = 0;        ///< routed experts that a token visits
  int shared_experts = 0;           ///< experts that every token visits
  int expert_ffn = 0;               ///< inner width of one expert
  int dense_layers = 0;             ///< leading layers without experts
  int moe_every = 1;                ///< after these, the last of every so many layers has experts
  bool router_bias = false;         ///< a bias per expert corrects the choice (DeepSeek-V3)
  bool shared_expert_gate = false;  ///< a gate weighs the shared experts (Qwen 2 MoE)
  double capacity_factor = 0;       ///< room of an expert over its mean load, padded; 0: dropless
  double expert_imbalance = 1;      ///< load of the fullest expert-parallel rank over the mean

  int mtp_layers = 0;           ///< multi-token prediction modules behind the blocks
  bool causal = true;           ///< false: an encoder such as BERT
  int token_types = 0;          ///< rows of a segment table
  bool embedding_norm = false;  ///< a norm behind the embedding (BLOOM, BERT)
  bool mlm_head = false;        ///< dense layer, norm and output bias before the logits (BERT)
  bool pooler = false;          ///< dense layer and two-way classifier on the first token (BERT)

  std::vector<std::string> unread;  ///< keys of an imported model that nothing here stands for
};

/// Low-rank adapters beside frozen matrices (Hu 2021).
struct Lora {
  int rank = 0;  ///< 0: none, the parameters themselves are trained
  std::vector<LoraTarget> targets = {LoraTarget::q_proj, LoraTarget::v_proj};
};

/// A share of all documents that has so many tokens each.
struct LengthShare {
  std::int64_t tokens = 0;
  double share = 0;
};
/// Lengths of documents: lognormal, or some lengths with their shares, which sum to 1.
struct DocumentLengths {
  double mean = 0;   ///< of a lognormal, tokens; 0: the shares count
  double sigma = 0;  ///< of the logarithm of a lognormal
  std::vector<LengthShare> shares;
  bool given() const { return mean > 0 || !shares.empty(); }
};

/// A batch, sequences, until so many tokens have been trained on.
struct BatchStage {
  std::int64_t batch = 0;
  double until = 0;
};
/// A batch that grows to training.global_batch: by stages, or as Megatron-LM's --rampup-batch-size.
struct BatchRamp {
  std::int64_t start = 0;      ///< sequences of the first batch, 0: stages, or no ramp
  std::int64_t increment = 0;  ///< sequences
  std::int64_t samples = 0;    ///< sequences of the whole ramp
  std::vector<BatchStage> stages;
  bool given() const { return start > 0 || !stages.empty(); }
};

/// What the GPUs wait for beside the step's own work.
struct Stalls {
  Seconds data_loading;           ///< per step
  Seconds logging;                ///< per logged step
  int logging_interval = 1;       ///< steps from one logged step to the next
  int evaluation_interval = 0;    ///< steps between two evaluations, 0: none
  int evaluation_iterations = 0;  ///< global batches of an evaluation
};

struct Training {
  std::int64_t global_batch = 0;  ///< sequences per step, whole job
  std::int64_t micro_batch = 0;   ///< sequences per GPU and micro-batch
  std::int64_t sequence = 0;      ///< tokens per sequence
  Precision precision = Precision::bf16;
  GradientDtype gradient_dtype = GradientDtype::fp32;
  Optimizer optimizer = Optimizer::adamw;
  Recompute recompute = Recompute::none;
  std::optional<int> recompute_layers;  ///< the first of each pipeline stage only; none: all
  AttentionCore attention = AttentionCore::flash;
  Loss loss = Loss::unfused;
  ElementWise kernels = ElementWise::fused;
  bool autocast = false;              ///< fp32 weights, cast at each use; fp32 residual stream
  bool activation_offload = false;    ///< kept activations wait in host memory
  std::optional<int> offload_layers;  ///< the first of each part of the model only; none: all
  GradientSync gradient_sync = GradientSync::step;
  double hidden_dropout = 0;        ///< of the embedding and of both branches of a layer
  double attention_dropout = 0;     ///< of the probabilities
  bool overlap_gradients = false;   ///< reduce buckets during the backward pass
  std::optional<Bytes> bucket;      ///< none: one buffer for all gradients
  bool overlap_parameters = false;  ///< gather sharded parameters during the next forward pass
  int frozen_layers = 0;  ///< leading transformer layers that are not trained, and what is before
  Lora lora;
  FrozenWeights frozen_weights = FrozenWeights::compute;
  Documents documents = Documents::whole;
  DocumentLengths document_length;
  double document_load = 1;  ///< [M433] derived: attention of the slowest rank over the mean
  BatchRamp batch_ramp;
  Stalls stalls;
};

/// The axis named first varies fastest from rank to rank.
using MeshOrder = std::array<MeshAxis, 5>;
inline constexpr MeshOrder kMegatronOrder = {MeshAxis::tp, MeshAxis::cp, MeshAxis::ep, MeshAxis::dp,
                                             MeshAxis::pp};

struct Parallelism {
  int tp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
  int virtual_stages = 1;
  Schedule schedule = Schedule::one_f_one_b;
  bool sequence_parallel = false;
  bool tensor_overlap = true;   ///< collectives of a layer's input gradient run beside products
  bool split_messages = false;  ///< a tensor rank sends its part to the next stage, gathered there
  ContextMethod context_method = ContextMethod::ring;
  Dispatcher dispatcher = Dispatcher::all_to_all;
  bool permute_fusion = true;  ///< routed rows are summed by one kernel, not by scatter_add
  int expert_tp = 0;           ///< tensor parallelism of the experts: 1, or 0 for as much as tp
  MeshOrder order = kMegatronOrder;
  std::vector<int> stage_layers = {};  ///< transformer layers per stage and chunk; empty: even
  StageOverlap stage_overlap = StageOverlap::automatic;
  ExpertOverlap expert_overlap = ExpertOverlap::automatic;
};

struct Offload {
  bool residual = false;
  bool replica = false;
};

/// Parts of ZeRO++.
struct ZeroPlusPlus {
  bool weights = true;    ///< qwZ: quantised parameter gathers
  bool secondary = true;  ///< hpZ: a second copy of the parameters inside each node
  bool gradients = true;  ///< qgZ: quantised gradients by two all-to-alls
};

struct Strategy {
  Method method = Method::dense;
  Sharding sharding = Sharding::none;
  int shard_group = 0;  ///< hsdp, zeropp: ranks that share one copy, 0: those of a node
  int prefetch = 1;     ///< zero3, fsdp, hsdp: layers gathered ahead of the one that runs
  Reduction reduction = Reduction::reduce_scatter;  ///< zero1
  bool reshard_after_forward = true;  ///< zero3, fsdp, hsdp: parameters are gathered again backward
  Kernels kernels = Kernels::fused;
  double density = 1.0;    ///< share of elements sent; 0.01 is "99 % sparsity"
  int density_warmup = 0;  ///< steps of geometric warm-up from 1 to density
  int at_step = -1;        ///< step of the warm-up that is simulated; -1: after it
  MaskPartition mask_partition = MaskPartition::owner;
  double mask_overlap = 0.0;  ///< global masks: 0 independent, 1 identical on all ranks
  int mask_delay = 1;         ///< steps between making and using a mask: 0 or 1
  MaskWait mask_wait = MaskWait::overlapped;
  MaskFormat mask_format = MaskFormat::packed;
  Owners owners = Owners::even;
  PayloadBuffers payload_buffers = PayloadBuffers::one;
  PayloadDtype payload_dtype = PayloadDtype::fp32;
  SecondPayload second_payload = SecondPayload::released;
  Offload offload;
  std::optional<Bytes>
      offload_chunk;  ///< staging buffer of the double-buffered offload; none: largest tensor
  Exchange exchange = Exchange::indices;             ///< topk
  ReduceDtype reduce_dtype = ReduceDtype::gradient;  ///< dense
  std::optional<int> weight_bits = {};               ///< qsdp, zeropp; none: as published
  std::optional<int> gradient_bits = {};             ///< qsdp, zeropp; none: as published
  std::optional<int> block = {};  ///< qsdp, zeropp: values that share a scale; none: as released
  ZeroPlusPlus zeropp;
  int dct_chunk = 64;            ///< demo: side of a chunk
  int dct_topk = 32;             ///< demo: coefficients sent of each chunk
  int low_rank = 4;              ///< powersgd: columns of a factor
  std::int64_t dense_steps = 0;  ///< onebit_adam, powersgd: leading steps with dense gradients
  int local_steps = 500;         ///< local_sgd: steps of a round
  OuterWait outer_wait = OuterWait::blocking;  ///< local_sgd
  double tokens_to_loss = 1.0;  ///< tokens to the same loss over those of dense training
};

struct Gpu {
  std::string name;
  FlopsPerSecond peak_bf16;      ///< dense
  FlopsPerSecond peak_fp8;       ///< dense, 0 when the part has none
  FlopsPerSecond peak_fp4;       ///< dense, 0 when the part has none
  FlopsPerSecond peak_tf32;      ///< dense, used for fp32 GEMMs
  BytesPerSecond hbm_bandwidth;  ///< data sheet
  Bytes memory;                  ///< as nvidia-smi reports it
  int multiprocessors = 0;
};

struct HostLink {
  HostLinkKind kind = HostLinkKind::pcie;
  BytesPerSecond bandwidth;  ///< per direction and GPU, data sheet
};

/// A parent of a node's PCIe tree and what hangs below it: "socket 0", "switch 1", "GPU 3", "NIC
/// 0".
struct PcieBranch {
  std::string parent;
  std::vector<std::string> children;
};

/// A cable of a network given as a graph.
struct GraphEdge {
  std::string from;
  std::string to;
  BytesPerSecond capacity;  ///< per direction, all parallel cables
};

/// A network from a file: "node 0", "node 1" ... are the cluster's nodes, all else switches.
struct NetworkGraph {
  std::string file;  ///< as written
  std::vector<GraphEdge> edges;
};

/// A cable that is slower than built, by the names of its ends, or failed.
struct Degraded {
  std::string from;
  std::string to;
  double share = 1;  ///< of its capacity that is left, 0: failed
};

struct Fabric {
  FabricKind kind = FabricKind::switch_;
  int nodes_per_rack = 0;  ///< fat_tree, rails: nodes under one leaf switch (one per rail)
  double taper = 1.0;      ///< fat_tree, rails, dragonfly_plus: leaf down-links over up-links
  int racks_per_pod = 0;   ///< fat_tree: racks under one spine, 0: two levels without pods
  double pod_taper = 1.0;  ///< fat_tree: a pod's down-links over its up-links
  int switch_radix = 0;    ///< fat_tree: ports per switch, gives racks and pods; 0: those as given
  int tree_levels = 2;     ///< fat_tree with a radix
  Routing routing = Routing::spray;
  std::int64_t routing_seed = 0;    ///< of the hash of ecmp
  int groups = 0;                   ///< dragonflies
  int routers_per_group = 1;        ///< dragonfly: 1 makes a group one non-blocking switch;
                                    ///< dragonfly_plus: leaf routers
  int nodes_per_router = 0;         ///< dragonflies, hyperx
  BytesPerSecond local_bandwidth;   ///< dragonfly: between two routers of a group, per direction
  BytesPerSecond global_bandwidth;  ///< dragonflies: between two groups, all cables, per direction
  std::vector<int> dimensions;      ///< torus, hyperx: routers along each, the last one fastest
  BytesPerSecond cable_bandwidth;   ///< torus, hyperx: between two neighbours, per direction
  int sites = 0;                    ///< sites
  int nodes_per_site = 0;           ///< sites
  BytesPerSecond wan_bandwidth;     ///< sites: between two of them, per direction
  Seconds wan_latency;              ///< sites: on top of latency
  NetworkGraph graph;               ///< graph
  std::vector<Degraded> degraded;
  double background_load = 0;  ///< share of the links between switches that other jobs use
  Seconds latency;             ///< end to end between two nodes, once per message
};

/// GPUs first to last, or all GPUs of these nodes, that take `slowdown` times as long to compute.
struct Straggler {
  JitterScope part = JitterScope::rank;  ///< rank: a GPU
  int first = 0;
  int last = 0;
  double slowdown = 1;
};

/// Nodes first to last that have another GPU: that of a cluster preset, which computes as a
/// profile says.
struct OtherGpus {
  int first = 0;
  int last = 0;
  std::string cluster;
  std::string profile;
  Gpu gpu = {};
  std::optional<Watts> power = {};
  std::optional<DollarsPerSecond> price = {};
};

/// A cluster: so many equal nodes on a fabric.
struct Cluster {
  std::string name;
  int nodes = 0;  ///< what the machine has
  int gpus = 0;   ///< what this job uses
  int gpus_per_node = 1;
  int nics_per_node = 1;
  BytesPerSecond nic_bandwidth;        ///< per NIC and direction
  BytesPerSecond node_link_bandwidth;  ///< GPU to GPU inside the node (NVLink), per GPU and
                                       ///< direction, all its links; 0 with one GPU
  NodeFabric node_fabric = NodeFabric::switch_;
  int nvlink_domain_nodes = 1;        ///< nodes that share one NVLink switch
  std::vector<int> nic_affinity;      ///< NIC of every GPU of a node; empty: dealt out in order
  std::vector<PcieBranch> pcie_tree;  ///< pcie: empty: all GPUs and NICs below one socket
  BytesPerSecond socket_bandwidth;    ///< pcie: between two sockets, per direction
  PeerAccess peer_access = PeerAccess::all;
  Gpu gpu;
  HostLink host_link;
  NicPath nic_path = NicPath::gpudirect;
  Bytes host_memory;                     ///< per node
  BytesPerSecond host_memory_bandwidth;  ///< per node
  Fabric fabric;
  std::optional<Dollars> nic_price;
  std::optional<Dollars> cable_price;  ///< at the adapter's rate
  std::optional<Dollars> port_price;   ///< of a switch, at the adapter's rate
  Allocation allocation = Allocation::packed;
  Placement placement = Placement::packed;
  std::int64_t placement_seed = 0;            ///< of random placement and allocation
  std::optional<Watts> gpu_power;             ///< board power under load
  std::optional<DollarsPerSecond> gpu_price;  ///< per GPU
  std::optional<Watts> node_power;            ///< of a whole node under load, its GPUs included
  std::optional<double> power_usage_effectiveness;    ///< of the building, 1 or more
  std::optional<KilogramsPerJoule> carbon_intensity;  ///< CO2 equivalent of its electricity
  std::optional<Seconds> node_mtbf;     ///< between failures of one node that stop the job
  std::optional<Seconds> restart_time;  ///< from a failure until training goes on
  std::optional<BytesPerSecond>
      storage_bandwidth;  ///< that a checkpoint is written with, whole job
  std::vector<Straggler> stragglers;
  std::vector<OtherGpus> other_gpus;
  std::optional<double> speed_spread;      ///< [M405] between equal GPUs; none: the profile's
  std::optional<double> overlap_slowdown;  ///< [M406] beside a collective; none: the profile's
};

struct Calibration {
  std::string profile;  ///< id of a shipped profile, or a path as written
};

/// What a kind of collective must run as; none: the fastest that the profile knows.
struct ForcedCollective {
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
};
struct Collectives {
  ForcedCollective all_reduce, reduce_scatter, all_gather, broadcast, all_to_all;
};
/// What the kind of that name ("all-reduce") is forced to; nullptr for kinds that are not.
const ForcedCollective* of_kind(const Collectives& collectives, std::string_view kind);

/// Ranks compute at paces of their own, drawn anew for every simulated step.
struct Jitter {
  double compute = 0;  ///< standard deviation of a rank's compute time over its mean
  JitterDistribution distribution = JitterDistribution::normal;
  JitterScope scope = JitterScope::rank;
  std::int64_t seed = 0;
  int steps = 8;
};

/// A whole scenario (one series of it, variants applied).
struct Scenario {
  std::string name;
  std::string series;  ///< variant name, empty without variants
  std::string hash;    ///< content_hash of the canonical text of all keys
  Model model;
  Training training;
  Parallelism parallelism;
  Strategy strategy;
  Cluster cluster;
  Calibration calibration;
  Collectives collectives = {};
  Jitter jitter = {};
};

/// A fat tree as it is built: as written, or from the radix of its switches.
struct TreeShape {
  std::int64_t nodes_per_rack = 0;
  std::int64_t racks_per_pod = 0;  ///< 0 without pods
  double taper = 1;
  double pod_taper = 1;
  std::int64_t most_nodes = 0;  ///< 0: any number
};
/// [M191] From a radix: a leaf's ports split by the taper, those of pods in half, the top's all
/// down.
TreeShape tree_shape(const Cluster& cluster);

/// 3 for "node 3", "node3" or "node-3".
std::optional<int> node_number(std::string_view name);

/// Ranks that hold a copy of the same parameters: gpus / (tp pp cp).
int data_parallel_size(const Scenario& scenario);
/// Whether backward passes come in halves.
inline bool halves(Schedule schedule) {
  return schedule == Schedule::zb_h1 || schedule == Schedule::dualpipe;
}
/// Whether passes hide the all-to-all of each other's experts.
inline bool pairs_experts(const Parallelism& parallelism) {
  return parallelism.expert_overlap == ExpertOverlap::paired ||
         (parallelism.expert_overlap == ExpertOverlap::automatic &&
          parallelism.schedule == Schedule::dualpipe);
}
/// Ranks that share one expert.
inline int expert_tensor_parallel(const Parallelism& parallelism) {
  return parallelism.expert_tp == 0 ? parallelism.tp : parallelism.expert_tp;
}
/// hsdp, zeropp: ranks that share one copy of the parameters.
int shard_group(const Scenario& scenario);
/// Micro-batches per rank and step: global_batch / (dp micro_batch). 1 or more in a valid scenario.
std::int64_t micro_batches(const Scenario& scenario);

/// Cross-field rules: every violated one as (key, what, hint); empty means the scenario is sound.
/// Covers: divisibility (batch by dp x micro-batch, heads by kv_heads), GPUs against the cluster,
/// method against sharding, ranges that depend on other keys, and what this version cannot
/// simulate.
struct Violation {
  std::string key;
  std::string what;
  std::string hint;
};
std::vector<Violation> violations(const Scenario& scenario);
/// A method's place among the other keys: one row per method.
struct MethodRule {
  Method method;
  std::vector<Sharding> shardings;  ///< it goes with, the first where none is given
  std::string_view why;             ///< it goes with no other
  double density = 1;               ///< where none is given
};
std::span<const MethodRule> method_rules();
const MethodRule& rule_of(Method method);

/// The rules of a cluster alone.
std::vector<Violation> violations(const Cluster& cluster);

}  // namespace scapesim::spec
