// SPDX-License-Identifier: Apache-2.0
// PyTorch profiler traces. Events are taken out of the document while it is parsed, so that memory
// grows with the events that are used. A collective's algorithm and protocol stay unknown: NCCL's
// kernel names carry those of the one variant that is compiled, not of the one that runs.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "calib/import.hpp"
#include "calib/import_json.hpp"
#include "calib/import_kernels.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

using graph::CollectiveKind;

/// What an event says of a collective, on the kernel itself or on record_param_comms.
struct Comms {
  std::string name;
  double in_elements = 0;
  double out_elements = 0;
  int ranks = 0;
  std::string datatype;
};

/// A CPU-side event that others refer to.
struct Caller {
  double begin_us = 0;
  double end_us = 0;
  std::string thread;
  Comms comms;
};

struct NcclKernel {
  Comms comms;
  Seconds time;
  std::optional<double> external, correlation;
};

struct GemmShape {
  double m = 0, n = 0, k = 0;
  std::string datatype{};
  Seconds time{};  ///< of its kernels
};

struct Trace {
  std::vector<KernelSpan> kernels;
  std::vector<NcclKernel> nccl;
  std::unordered_map<double, Comms> comms;         ///< by external id
  std::vector<Caller> callers;                     ///< record_param_comms in time
  std::unordered_map<double, Caller> launches;     ///< by correlation
  std::unordered_map<double, double> external_of;  ///< correlation -> external id
  std::map<double, GemmShape> gemms;               ///< by external id
  std::vector<std::pair<double, Seconds>> gemm_times;
  Observations out;
  std::string file;
};

std::optional<Comms> comms_of(const Json& args) {
  Comms comms{.name = text_in(args, "Collective name"),
              .in_elements = number_in(args, "In msg nelems").value_or(0),
              .out_elements = number_in(args, "Out msg nelems").value_or(0),
              .ranks = count_in(args, "Group size").value_or(0),
              .datatype = lower_case(text_in(args, "dtype"))};
  if (comms.name.empty()) return std::nullopt;
  return comms;
}

std::optional<CollectiveKind> kind_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has("reduce_scatter")) return CollectiveKind::reduce_scatter;
  if (has("allreduce") || has("all_reduce")) return CollectiveKind::all_reduce;
  if (has("allgather") || has("all_gather")) return CollectiveKind::all_gather;
  if (has("all_to_all") || has("alltoall")) return CollectiveKind::all_to_all;
  if (has("broadcast")) return CollectiveKind::broadcast;
  if (name == "send" || name == "recv") return CollectiveKind::send_recv;
  return std::nullopt;
}

std::optional<Bytes> width_of(std::string_view datatype) {
  struct Width {
    std::string_view name;
    double bytes;
  };
  constexpr Width kWidths[] = {{"double", 8}, {"long", 8},          {"float", 4},
                               {"int", 4},    {"half", 2},          {"bfloat16", 2},
                               {"short", 2},  {"byte", 1},          {"char", 1},
                               {"bool", 1},   {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
  for (const Width& width : kWidths)
    if (width.name == datatype) return Bytes(width.bytes);
  return std::nullopt;
}

std::string thread_of(const Json& event) {
  return member(event, "pid").dump() + "/" + member(event, "tid").dump();
}

void read_kernel(const Json& event, const Json& args, double begin_us, double length_us,
                 Trace& trace) {
  const std::string name = text_in(event, "name");
  const KernelClass kind = kernel_class(name);
  const Seconds begin(begin_us * 1e-6);
  const Seconds length(length_us * 1e-6);
  const double device = number_in(args, "device").value_or(0);
  const std::optional<double> external = number_in(args, "External id");
  trace.kernels.push_back({begin, begin + length,
                           device >= 0 && device < 1e6 ? static_cast<int>(device) : 0, kind, name});
  if (kind == KernelClass::nccl)
    trace.nccl.push_back(
        {comms_of(args).value_or(Comms()), length, external, number_in(args, "correlation")});
  if (kind == KernelClass::gemm && external) trace.gemm_times.emplace_back(*external, length);
}

void read_copy(const Json& event, const Json& args, double length_us, Trace& trace) {
  const std::string name = text_in(event, "name");
  const std::optional<double> bytes = positive_in(args, "bytes");
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  std::optional<CopyDirection> direction;
  if (has("HtoD")) direction = CopyDirection::host_to_device;
  if (has("DtoH")) direction = CopyDirection::device_to_host;
  if (has("DtoD")) direction = CopyDirection::local;
  if (has("PtoP")) direction = CopyDirection::device_to_device;
  if (!bytes || !direction || length_us <= 0)
    return add_unparsed(event, "a copy without bytes, time or direction", trace.out);
  trace.out.copies.push_back({.direction = *direction,
                              .name = name,
                              .size = Bytes(*bytes),
                              .rate = Bytes(*bytes) / Seconds(length_us * 1e-6),
                              .place = {.file = trace.file}});
}

/// aten::mm of [m,k] and [k,n]; aten::addmm has the bias before them.
std::optional<GemmShape> gemm_of(const Json& event, const Json& args) {
  const std::string name = text_in(event, "name");
  if (name != "aten::mm" && name != "aten::addmm") return std::nullopt;
  const std::size_t first = name == "aten::mm" ? 0 : 1;
  const Json& shapes = list_in(args, "Input Dims");
  const Json& types = list_in(args, "Input type");
  const auto is_matrix = [](const Json& shape) {
    return shape.is_array() && shape.size() == 2 && shape[0].is_number() && shape[1].is_number();
  };
  if (shapes.size() < first + 2 || !is_matrix(shapes[first]) || !is_matrix(shapes[first + 1]))
    return std::nullopt;
  GemmShape shape{.m = shapes[first][0], .n = shapes[first + 1][1], .k = shapes[first][1]};
  if (types.size() > first && types[first].is_string())
    shape.datatype = lower_case(types[first].get<std::string>());
  if (shape.datatype.starts_with("c10::")) shape.datatype.erase(0, 5);
  return shape;
}

void read_caller(const Json& event, const Json& args, double begin_us, double length_us,
                 Trace& trace) {
  const std::optional<double> external = number_in(args, "External id");
  if (const auto comms = comms_of(args)) {
    if (external) trace.comms.emplace(*external, *comms);
    trace.callers.push_back({begin_us, begin_us + length_us, thread_of(event), *comms});
  } else if (const auto gemm = gemm_of(event, args); gemm && external) {
    trace.gemms.emplace(*external, *gemm);
  }
}

void read_event(const Json& event, Trace& trace) {
  if (text_in(event, "ph") != "X") return;
  const std::string category = text_in(event, "cat");
  const std::string name = text_in(event, "name");
  const Json& args = member(event, "args");
  const std::optional<double> begin = number_in(event, "ts");
  const std::optional<double> length = number_in(event, "dur");
  const bool used = category == "kernel" || category == "gpu_memcpy" || category == "cpu_op" ||
                    category == "cuda_runtime" || category == "user_annotation";
  if (!used) return;
  if (!begin || !length || *length < 0) return add_unparsed(event, "no ts or dur", trace.out);
  constexpr std::string_view kStep = "ProfilerStep#";
  if (category == "kernel") {
    read_kernel(event, args, *begin, *length, trace);
  } else if (category == "gpu_memcpy") {
    read_copy(event, args, *length, trace);
  } else if (category == "cpu_op") {
    read_caller(event, args, *begin, *length, trace);
  } else if (category == "cuda_runtime") {
    const std::optional<double> correlation = number_in(args, "correlation");
    const std::optional<double> external = number_in(args, "External id");
    if (correlation && external) trace.external_of.emplace(*correlation, *external);
    if (correlation)
      trace.launches.emplace(*correlation, Caller{*begin, *begin, thread_of(event), {}});
  } else if (name.starts_with(kStep) && *length > 0) {
    trace.out.steps.push_back({.iteration = count_of(name.substr(kStep.size())).value_or(0),
                               .step_time = Seconds(*length * 1e-6),
                               .place = {.file = trace.file}});
  }
}

/// The collective a kernel without arguments of its own belongs to: by external id, by the launch's
/// external id, or by the record_param_comms around the launch.
const Comms* joined(const Trace& trace, const NcclKernel& kernel) {
  const auto by_external = [&](double id) -> const Comms* {
    const auto found = trace.comms.find(id);
    return found == trace.comms.end() ? nullptr : &found->second;
  };
  if (!kernel.comms.name.empty()) return &kernel.comms;
  if (kernel.external)
    if (const Comms* found = by_external(*kernel.external)) return found;
  if (!kernel.correlation) return nullptr;
  if (const auto id = trace.external_of.find(*kernel.correlation); id != trace.external_of.end())
    if (const Comms* found = by_external(id->second)) return found;
  const auto launch = trace.launches.find(*kernel.correlation);
  if (launch == trace.launches.end()) return nullptr;
  const double at = launch->second.begin_us;
  // Callers are sorted; the last one that began on the launch's thread is the innermost.
  auto caller = std::ranges::upper_bound(trace.callers, at, {}, &Caller::begin_us);
  for (int tries = 0; caller != trace.callers.begin() && tries < 64; ++tries) {
    --caller;
    if (caller->thread == launch->second.thread && at <= caller->end_us) return &caller->comms;
  }
  return nullptr;
}

void add_collectives(Trace& trace) {
  std::ranges::sort(trace.callers, {}, &Caller::begin_us);
  for (const NcclKernel& kernel : trace.nccl) {
    const Comms* comms = joined(trace, kernel);
    const std::optional<CollectiveKind> kind =
        comms != nullptr ? kind_of(comms->name) : std::nullopt;
    const std::optional<Bytes> width = comms != nullptr ? width_of(comms->datatype) : std::nullopt;
    const double elements =
        comms != nullptr ? std::max(comms->in_elements, comms->out_elements) : 0;
    if (!kind || !width || elements <= 0 || comms->ranks < 2 || kernel.time <= Seconds(0)) {
      add_unparsed(0,
                   comms == nullptr
                       ? "an NCCL kernel without a record of its collective"
                       : "an NCCL kernel of collective \"" + comms->name + "\" that is not used",
                   Looks::like_data, trace.out);
      continue;
    }
    trace.out.collectives.push_back({.kind = *kind,
                                     .size = elements * *width,
                                     .ranks = comms->ranks,
                                     .time = kernel.time,
                                     .datatype = comms->datatype,
                                     .in_training = true,
                                     .place = {.file = trace.file}});
  }
}

void add_gemms(Trace& trace) {
  for (const auto& [id, time] : trace.gemm_times)
    if (const auto shape = trace.gemms.find(id); shape != trace.gemms.end())
      shape->second.time += time;
  for (const auto& [id, shape] : trace.gemms)
    if (shape.time > Seconds(0) && shape.m > 0 && shape.n > 0 && shape.k > 0)
      trace.out.gemms.push_back(
          {shape.m, shape.n, shape.k, shape.datatype, shape.time, {.file = trace.file}});
}

}  // namespace

bool recognises_kineto(std::string_view text) { return has_outer_keys(text, {"traceEvents"}); }

Observations read_kineto(std::string_view text, const std::string& file) {
  Trace trace;
  trace.file = file;
  constexpr int kEventDepth = 2;  // in a list of the outermost object
  const Json root = parse_json(text, file, [&](int depth, Json::parse_event_t what, Json& value) {
    const bool is_event =
        what == Json::parse_event_t::object_end && depth == kEventDepth && value.contains("ph");
    if (is_event) read_event(value, trace);
    return !is_event;
  });
  Observations& out = trace.out;
  for (const Json& device : list_in(root, "deviceProperties"))
    add_gpu_name(text_in(device, "name"), out.machine);
  out.machine.gpus = count_in(member(root, "distributedInfo"), "world_size");
  for (StepSample& step : out.steps) step.gpus = out.machine.gpus;
  add_collectives(trace);
  add_gemms(trace);
  add_kernels(trace.kernels, file, out);
  require_samples(out, file, "GPU kernel, copy or step",
                  "record the trace with ProfilerActivity.CUDA");
  return std::move(out);
}

}  // namespace scapesim::calib
