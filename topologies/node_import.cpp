// SPDX-License-Identifier: Apache-2.0
#include "topologies/node_import.hpp"

#include <algorithm>
#include <array>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <sstream>

#include "sim/base/unit_text.hpp"
#include "topologies/xml_nesting.hpp"

namespace scapesim::topology {

namespace {

using Tree = boost::property_tree::ptree;

[[noreturn]] void refuse(const std::string& file, int line, std::string what, std::string hint) {
  throw InputError(Problem{.place = {.file = file, .line = line},
                           .key = "node",
                           .what = std::move(what),
                           .hint = std::move(hint)});
}

/// The adapter of each GPU: the nearest, and of several the one with the fewest GPUs so far.
std::vector<int> nearest(const std::vector<std::vector<int>>& distance, int nics) {
  std::vector<int> list, taken(static_cast<std::size_t>(nics));
  if (nics == 0) return list;
  for (const std::vector<int>& row : distance) {
    std::size_t best = 0;
    for (std::size_t nic = 1; nic < row.size(); ++nic)
      if (std::pair(row[nic], taken[nic]) < std::pair(row[best], taken[best])) best = nic;
    ++taken[best];
    list.push_back(static_cast<int>(best));
  }
  return list;
}

/// Per direction, data sheets: NVLink 1 20 GB/s, NVLink 2 to 4 25 GB/s, NVLink 5 50 GB/s.
BytesPerSecond nvlink_rate(int sm) {
  constexpr int kVolta = 70, kBlackwell = 100;
  return BytesPerSecond(sm < kVolta ? 20e9 : sm < kBlackwell ? 25e9 : 50e9);
}

// NCCL's XML -------------------------------------------------------------------------------------

/// The tree of sockets, PCIe switches, GPUs and adapters, as far as it holds the latter two.
class NcclNode {
 public:
  NcclNode(const Tree& system, const std::string& file) : file_(file) {
    for (const auto& [tag, child] : system)
      if (tag == "cpu") walk(child, part("socket", sockets_++, kRoot));
    if (gpus_.empty())
      refuse(file_, 0, "no <gpu> in a <system>", "the dump of NCCL_TOPO_DUMP_FILE");
  }

  NodeDescription describe() const {
    NodeDescription node;
    node.gpus = static_cast<int>(gpus_.size());
    node.nics = static_cast<int>(nics_.size());
    node.nic_affinity = nearest(distances(), node.nics);
    describe_adapters(node);
    describe_links(node);
    if (node.fabric == spec::NodeFabric::pcie) node.pcie_tree = branches(node);
    describe_host(node);
    return node;
  }

 private:
  static constexpr int kRoot = -1;

  struct Part {
    std::string name;
    int parent = kRoot;
  };
  struct Gpu {
    int part = 0;
    int sm = 0;
    int switch_links = 0;
    std::map<std::string, int> pairs;  ///< NVLinks by the peer's bus id
    std::string bus;
    std::optional<BytesPerSecond> c2c;
    BytesPerSecond slot;
  };
  struct Nic {
    int part = 0;
    double speed = 0;  ///< Mb/s
    std::string name;
  };

  int part(std::string_view word, int number, int parent) {
    parts_.push_back({fmt::format("{} {}", word, number), parent});
    return static_cast<int>(parts_.size() - 1);
  }

  /// "16.0 GT/s PCIe" x 16: 2 GB/s per lane, as data sheets count.
  static BytesPerSecond slot_rate(const Tree& pci) {
    constexpr double kBitsPerByte = 8, kGiga = 1e9;
    double transfers = 0;
    const std::string speed = pci.get("<xmlattr>.link_speed", "");
    std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
    return BytesPerSecond(transfers * kGiga * pci.get("<xmlattr>.link_width", 0) / kBitsPerByte);
  }

  void add_gpu(const Tree& gpu, const Tree& pci, int parent) {
    Gpu one{.part = part("GPU", static_cast<int>(gpus_.size()), parent),
            .sm = gpu.get("<xmlattr>.sm", 0),
            .pairs = {},
            .bus = pci.get("<xmlattr>.busid", ""),
            .c2c = {},
            .slot = slot_rate(pci)};
    constexpr double kMega = 1e6;
    for (const auto& [tag, link] : gpu) {
      const int count = link.get("<xmlattr>.count", 0);
      if (tag == "nvlink" && link.get("<xmlattr>.tclass", "") == "0x068000")
        one.switch_links += count;
      else if (tag == "nvlink")
        one.pairs[link.get("<xmlattr>.target", "")] += count;
      else if (tag == "c2c")
        one.c2c = BytesPerSecond(link.get("<xmlattr>.bw", 0.0) * kMega * std::max(count, 1));
    }
    gpus_.push_back(std::move(one));
  }

  void add_nics(const Tree& nic, int parent) {
    for (const auto& [tag, net] : nic)
      if (tag == "net")
        nics_.push_back({.part = part("NIC", static_cast<int>(nics_.size()), parent),
                         .speed = net.get("<xmlattr>.speed", 0.0),
                         .name = net.get("<xmlattr>.name", "")});
  }

  void walk(const Tree& element, int parent) {
    for (const auto& [tag, child] : element) {
      if (tag == "nic") add_nics(child, parent);
      if (tag != "pci") continue;
      const auto gpu = child.get_child_optional("gpu");
      const auto nic = child.get_child_optional("nic");
      if (gpu) add_gpu(*gpu, child, parent);
      if (nic) add_nics(*nic, parent);
      if (!gpu && !nic && child.get_child_optional("pci"))
        walk(child, part("switch", switches_++, parent));
    }
  }

  std::vector<int> ways_up(int from) const {
    std::vector<int> list;
    for (; from != kRoot; from = parts_[static_cast<std::size_t>(from)].parent)
      list.push_back(from);
    return list;
  }

  /// Parts on the way from every GPU to every adapter.
  std::vector<std::vector<int>> distances() const {
    std::vector<std::vector<int>> rows;
    for (const Gpu& gpu : gpus_) {
      std::vector<int>& row = rows.emplace_back();
      for (const Nic& nic : nics_) {
        std::vector<int> a = ways_up(gpu.part), b = ways_up(nic.part);
        while (!a.empty() && !b.empty() && a.back() == b.back()) {
          a.pop_back();
          b.pop_back();
        }
        row.push_back(static_cast<int>(a.size() + b.size()));
      }
    }
    return rows;
  }

  void describe_adapters(NodeDescription& node) const {
    constexpr double kMegabitsToBytes = 1e6 / 8;
    double slowest = 0, fastest = 0;
    for (const Nic& nic : nics_) {
      if (nic.speed <= 0) continue;
      slowest = slowest > 0 ? std::min(slowest, nic.speed) : nic.speed;
      fastest = std::max(fastest, nic.speed);
    }
    if (slowest > 0) node.nic_bandwidth = BytesPerSecond(slowest * kMegabitsToBytes);
    if (slowest < fastest)
      node.notes.push_back(
          fmt::format("adapters of {} to {} Mb/s; the slowest is written", slowest, fastest));
  }

  void describe_links(NodeDescription& node) const {
    const Gpu& first = gpus_.front();
    const auto pair_links = [](const Gpu& gpu) {
      int links = 0;
      for (const auto& [bus, count] : gpu.pairs) links += count;
      return links;
    };
    const int links = first.switch_links > 0 ? first.switch_links : pair_links(first);
    for (const Gpu& gpu : gpus_)
      if (gpu.switch_links != first.switch_links || pair_links(gpu) != pair_links(first) ||
          gpu.sm != first.sm)
        node.notes.push_back(fmt::format("GPUs differ in NVLinks or kind; all are taken as {}",
                                         parts_[static_cast<std::size_t>(first.part)].name));
    if (node.notes.size() > 1)
      node.notes.erase(std::unique(node.notes.begin(), node.notes.end()), node.notes.end());
    if (links == 0) {
      if (first.slot.si() > 0) node.node_link_bandwidth = first.slot;
      return;
    }
    node.fabric = first.switch_links > 0 ? spec::NodeFabric::switch_ : spec::NodeFabric::mesh;
    node.node_link_bandwidth = links * nvlink_rate(first.sm);
    node.notes.push_back(fmt::format("{} NVLinks of {} per GPU (sm_{}, data sheet)", links,
                                     text_of(nvlink_rate(first.sm)), first.sm));
    if (node.fabric == spec::NodeFabric::mesh && first.pairs.size() + 1 < gpus_.size())
      node.notes.push_back("some pairs of GPUs have no NVLink; a full mesh is written");
  }

  void describe_host(NodeDescription& node) const {
    const Gpu& first = gpus_.front();
    if (first.c2c)
      node.host_link = spec::HostLink{spec::HostLinkKind::c2c, *first.c2c};
    else if (first.slot.si() > 0)
      node.host_link = spec::HostLink{spec::HostLinkKind::pcie, first.slot};
  }

  /// The tree without adapters beyond one per GPU, which a cluster does not take.
  std::vector<spec::PcieBranch> branches(const NodeDescription& node) const {
    std::map<int, spec::PcieBranch> by_parent;
    const auto holds = [&](int index) {  // a GPU or an adapter below
      const auto below = [&](int leaf) { return std::ranges::count(ways_up(leaf), index) > 0; };
      return std::ranges::any_of(gpus_, [&](const Gpu& gpu) { return below(gpu.part); }) ||
             std::ranges::any_of(nics_, [&](const Nic& nic) { return below(nic.part); });
    };
    for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
      const Part& one = parts_[static_cast<std::size_t>(i)];
      if (one.parent == kRoot || !holds(i)) continue;
      const bool spare = one.name.starts_with("NIC ") && std::stoi(one.name.substr(4)) >= node.gpus;
      if (spare) continue;
      spec::PcieBranch& branch = by_parent[one.parent];
      branch.parent = parts_[static_cast<std::size_t>(one.parent)].name;
      branch.children.push_back(one.name);
    }
    std::vector<spec::PcieBranch> list;
    for (auto& [parent, branch] : by_parent) list.push_back(std::move(branch));
    return list;
  }

  std::string file_;
  std::vector<Part> parts_;
  std::vector<Gpu> gpus_;
  std::vector<Nic> nics_;
  int sockets_ = 0, switches_ = 0;
};

NodeDescription read_nccl(std::string_view text, const std::string& file) {
  if (xml_nesting(text) > kDeepestXml)
    refuse(file, 0, "elements nested too deep for a topology", "a file of NCCL_TOPO_DUMP_FILE");
  Tree document;
  std::istringstream stream{std::string(text)};
  try {
    boost::property_tree::read_xml(stream, document);
  } catch (const boost::property_tree::xml_parser_error& failure) {
    refuse(file, static_cast<int>(failure.line()), fmt::format("no XML: {}", failure.message()),
           "the whole file that NCCL_TOPO_DUMP_FILE names");
  }
  const auto system = document.get_child_optional("system");
  if (!system)
    refuse(file, 0, "no topology of NCCL: it has no <system>", "a file of NCCL_TOPO_DUMP_FILE");
  return NcclNode(*system, file).describe();
}

// nvidia-smi topo -m -----------------------------------------------------------------------------

std::vector<std::string> words_of(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {  // underlining of the header
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    plain += line[i] == '\t' || line[i] == '\r' ? ' ' : line[i];
  }
  std::istringstream stream(plain);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// How far apart two parts are: PIX, PXB, PHB, NODE, SYS; 0 for itself and NVLink.
int distance_of(const std::string& cell) {
  constexpr std::array<std::string_view, 6> kWords = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto found = std::ranges::find(kWords, cell);
  return found == kWords.end() ? 0 : static_cast<int>(found - kWords.begin());
}

bool is_cell(const std::string& cell) {
  return cell == "X" || distance_of(cell) > 0 || (cell.starts_with("NV") && cell.size() > 2);
}

bool is_gpu(const std::string& name) { return name.starts_with("GPU") && name.size() > 3; }

/// The matrix with its rows in order of its columns.
struct Matrix {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> cells;
};

Matrix read_matrix(std::string_view text, const std::string& file) {
  Matrix matrix;
  int number = 0;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (matrix.names.empty()) {
      if (words[0] != "GPU0") continue;
      for (const std::string& word : words) {
        if (word == "CPU" || word == "NUMA") break;
        matrix.names.push_back(word);
      }
      continue;
    }
    if (matrix.cells.size() == matrix.names.size()) break;
    const std::string& expected = matrix.names[matrix.cells.size()];
    if (words[0] != expected)
      refuse(file, number, fmt::format("the row of {} is expected, not \"{}\"", expected, words[0]),
             "the whole output of nvidia-smi topo -m");
    if (words.size() < matrix.names.size() + 1)
      refuse(file, number,
             fmt::format("{} cells for {} columns", words.size() - 1, matrix.names.size()),
             "the whole output of nvidia-smi topo -m");
    std::vector<std::string> row(
        words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(matrix.names.size()));
    for (const std::string& cell : row)
      if (!is_cell(cell))
        refuse(file, number, fmt::format("\"{}\" is no connection", cell),
               "X, NV#, PIX, PXB, PHB, NODE or SYS");
    matrix.cells.push_back(std::move(row));
  }
  if (matrix.names.empty())
    refuse(file, 0, "neither a topology of NCCL nor of nvidia-smi topo -m",
           "a file of NCCL_TOPO_DUMP_FILE, or the output of nvidia-smi topo -m");
  if (matrix.cells.size() < matrix.names.size())
    refuse(file, number, fmt::format("the row of {} is missing", matrix.names[matrix.cells.size()]),
           "the whole output of nvidia-smi topo -m");
  return matrix;
}

/// Columns by which they are at most `farthest` apart: the number of each column's group.
std::vector<int> groups_of(const Matrix& matrix, int farthest) {
  std::vector<int> group(matrix.names.size(), -1);
  int next = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] >= 0) continue;
    group[i] = next++;
    for (std::size_t j = i + 1; j < group.size(); ++j) {
      const int apart = distance_of(matrix.cells[i][j]);
      if (group[j] < 0 && apart > 0 && apart <= farthest) group[j] = group[i];
    }
  }
  return group;
}

std::vector<spec::PcieBranch> tree_of(const Matrix& matrix, const std::vector<std::string>& parts) {
  constexpr int kSwitch = 2, kSocket = 4;  // PXB and NODE
  const std::vector<int> sockets = groups_of(matrix, kSocket);
  const std::vector<int> switches = groups_of(matrix, kSwitch);
  std::map<std::string, std::vector<std::string>> below;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    const std::string socket = fmt::format("socket {}", sockets[i]);
    if (std::ranges::count(switches, switches[i]) == 1) {
      below[socket].push_back(parts[i]);
      continue;
    }
    const std::string name = fmt::format("switch {}", switches[i]);
    if (std::ranges::count(below[socket], name) == 0) below[socket].push_back(name);
    below[name].push_back(parts[i]);
  }
  std::vector<spec::PcieBranch> list;
  for (auto& [parent, children] : below)
    if (!children.empty()) list.push_back({parent, std::move(children)});
  return list;
}

/// NVLinks of the first GPU: how many pairs have any, and the most of a pair.
void describe_nvlinks(const Matrix& matrix, NodeDescription& node) {
  constexpr int kMostLinks = 18;  // of a GPU so far, NVLink 4 and 5
  std::vector<int> counts;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    const std::string& cell = matrix.cells[0][i];
    if (!is_gpu(matrix.names[i]) || !cell.starts_with("NV")) continue;
    int links = 0;
    std::from_chars(cell.data() + 2, cell.data() + cell.size(), links);
    counts.push_back(links);
  }
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  if (total == 0) return;
  const bool by_switch = total > kMostLinks;
  const int links = by_switch ? counts.front() : total;
  const BytesPerSecond rate = nvlink_rate(90);
  node.fabric = by_switch ? spec::NodeFabric::switch_ : spec::NodeFabric::mesh;
  node.node_link_bandwidth = links * rate;
  node.notes.push_back(fmt::format(
      "{} NVLinks per GPU at {} each, NVLink 2 to 4 (data sheet); NVLink 5 (Blackwell) is twice "
      "that",
      links, text_of(rate)));
  if (static_cast<int>(counts.size()) + 1 < node.gpus)
    node.notes.push_back("some pairs of GPUs have no NVLink; a full mesh is written");
}

NodeDescription read_smi(std::string_view text, const std::string& file) {
  const Matrix matrix = read_matrix(text, file);
  NodeDescription node;
  std::vector<std::string> parts;
  for (const std::string& name : matrix.names)
    parts.push_back(is_gpu(name) ? fmt::format("GPU {}", node.gpus++)
                                 : fmt::format("NIC {}", node.nics++));
  std::vector<std::vector<int>> distance;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!is_gpu(matrix.names[i])) continue;
    std::vector<int>& row = distance.emplace_back();
    for (std::size_t j = 0; j < parts.size(); ++j)
      if (!is_gpu(matrix.names[j])) row.push_back(distance_of(matrix.cells[i][j]));
  }
  node.nic_affinity = nearest(distance, node.nics);
  describe_nvlinks(matrix, node);
  for (std::string& part : parts)
    if (part.starts_with("NIC ") && std::stoi(part.substr(4)) >= node.gpus) part.clear();
  if (node.fabric == spec::NodeFabric::pcie) node.pcie_tree = tree_of(matrix, parts);
  return node;
}

}  // namespace

NodeDescription read_node(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool xml = first != std::string_view::npos && text[first] == '<';
  NodeDescription node = xml ? read_nccl(text, file) : read_smi(text, file);
  if (node.nics > node.gpus) {
    node.notes.push_back(fmt::format("{} adapters for {} GPUs: a GPU gets its share of them all",
                                     node.nics, node.gpus));
    node.nic_affinity.clear();
  }
  const auto missing = [&](bool is_missing, const char* what) {
    if (is_missing) node.unknown.emplace_back(what);
  };
  missing(node.nics == 0, "nics_per_node: no adapter is listed");
  missing(!node.nic_bandwidth, "nic_bandwidth");
  missing(!node.node_link_bandwidth && node.gpus > 1,
          "node_link_bandwidth (without NVLink that of a PCIe slot, such as \"32GB/s\")");
  missing(node.pcie_tree.size() > 1, "socket_bandwidth, if there are two sockets, and peer_access");
  missing(!node.host_link, "host_link, host_link_bandwidth");
  missing(true, "host_memory, host_memory_bandwidth");
  missing(true, "nodes, fabric, latency");
  missing(true, "gpu, gpu_peak_bf16, hbm_bandwidth, gpu_memory, multiprocessors");
  return node;
}

std::string node_toml(const NodeDescription& node, const std::string& file) {
  std::string out = fmt::format("# The node that {} describes.\n", file);
  for (const std::string& note : node.notes) out += fmt::format("# Note: {}.\n", note);
  for (const std::string& key : node.unknown) out += fmt::format("# Not in the file: {}\n", key);
  out += fmt::format("[cluster]\ngpus_per_node = {}\n", node.gpus);
  if (node.nics > 0) out += fmt::format("nics_per_node = {}\n", node.nics);
  const auto rate = [&](const char* key, BytesPerSecond value) {
    out += fmt::format("{} = \"{}GB/s\"\n", key, value.si() / 1e9);
  };
  if (node.nic_bandwidth) rate("nic_bandwidth", *node.nic_bandwidth);
  if (!node.nic_affinity.empty())
    out += fmt::format("nic_affinity = \"{}\"\n", fmt::join(node.nic_affinity, ","));
  out += fmt::format("node_fabric = \"{}\"\n", name_of(node.fabric));
  if (node.node_link_bandwidth) rate("node_link_bandwidth", *node.node_link_bandwidth);
  if (!node.pcie_tree.empty()) {
    out += "pcie_tree = [\n";
    for (const spec::PcieBranch& branch : node.pcie_tree)
      out += fmt::format("  \"{}: {}\",\n", branch.parent, fmt::join(branch.children, ", "));
    out += "]\n";
  }
  if (node.host_link) {
    out += fmt::format("host_link = \"{}\"\n", name_of(node.host_link->kind));
    rate("host_link_bandwidth", node.host_link->bandwidth);
  }
  return out;
}

}  // namespace scapesim::topology
