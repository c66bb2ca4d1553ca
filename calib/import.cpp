// SPDX-License-Identifier: Apache-2.0
// The table of formats, detection, and gzip.
#include "calib/import.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <zlib.h>

#include "sim/base/file.hpp"

namespace scapesim::calib {

namespace {

constexpr Importer kImporters[] = {
    {"nccl-tests", "output of nccl-tests (all_reduce_perf and its siblings)",
     "a line \"# nThread ... nGpus ...\" or a header with size, count, type, time, algbw, busbw",
     recognises_nccl_text, read_nccl_text},
    {"nccl-tests-json", "nccl-tests -J", "JSON with \"start_time\", \"args\" and \"env\"",
     recognises_nccl_json, read_nccl_json},
    {"nvbandwidth", "nvbandwidth -j", "JSON with \"nvbandwidth\"", recognises_nvbandwidth,
     read_nvbandwidth},
    {"nvbench", "NVBench --json", "JSON with \"devices\" and \"benchmarks\"", recognises_nvbench,
     read_nvbench},
    {"kineto", "PyTorch profiler trace, .json or .json.gz", "JSON with \"traceEvents\"",
     recognises_kineto, read_kineto},
    {"nsys", "Nsight Systems export to SQLite", "an SQLite database", recognises_nsys, read_nsys},
    {"megatron", "training log of Megatron-LM or Megatron-DeepSpeed",
     "lines with \"elapsed time per iteration (ms)\"", recognises_megatron, read_megatron},
    {"nanotron", "training log of nanotron", "lines with \"elapsed_time_per_iteration_ms:\"",
     recognises_nanotron, read_nanotron},
    {"torchtitan", "training log of torchtitan", "lines with \"step:\", \"loss:\" and \"tps:\"",
     recognises_torchtitan, read_torchtitan},
    {"csv", "collective times in the five columns collective,ranks,nodes,size_B,time_s",
     "the header collective,ranks,nodes,size_B,time_s", recognises_csv, read_csv},
    {"bench", "JSON lines of scapesim-bench", "\"schema\": \"scapesim.bench/1\"", recognises_bench,
     read_bench},
};

constexpr std::size_t kLargestText = std::size_t{4} << 30U;

[[noreturn]] void fail(const std::string& file, std::string what, std::string hint) {
  throw InputError(Problem{{.file = file}, "", std::move(what), std::move(hint)});
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

/// The text of a gzip file, of all its members.
std::string inflated(std::string_view bytes, const std::string& file) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  SCAPESIM_CHECK(inflateInit2(&stream, kGzipOnly) == Z_OK, "zlib does not start");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};
  std::string text;
  std::string block(std::size_t{1} << 16U, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  while (stream.avail_in > 0) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    text.append(block, 0, block.size() - stream.avail_out);
    if (text.size() > kLargestText) fail(file, "unpacks to more than 4 GiB", "split it");
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return text;
      inflateReset(&stream);
    } else if (status != Z_OK) {
      fail(file, fmt::format("corrupt gzip data near byte {}", bytes.size() - stream.avail_in),
           "unpack it with gunzip to see how much is whole");
    }
  }
  fail(file, fmt::format("the gzip data ends too early, at byte {}", bytes.size()),
       "the file is cut off: copy it again");
}

[[noreturn]] void refuse(const std::string& file) {
  std::string looked_for;
  for (const Importer& importer : kImporters)
    looked_for +=
        fmt::format("{}{}: {}", looked_for.empty() ? "" : "; ", importer.name, importer.looked_for);
  fail(file, "no known format", "looked for " + looked_for);
}

}  // namespace

std::span<const Importer> importers() { return kImporters; }

Observations import_bytes(std::string_view bytes, const std::string& file) {
  const std::string unpacked = is_gzip(bytes) ? inflated(bytes, file) : std::string();
  const std::string_view text = is_gzip(bytes) ? unpacked : bytes;
  const auto recognised = [&](const Importer& importer) { return importer.recognises(text); };
  const Importer* end = std::end(kImporters);
  const Importer* found = std::find_if(std::begin(kImporters), end, recognised);
  if (found == end) refuse(file);
  Observations result = found->read(text, file);
  result.file = file;
  result.format = found->name;
  for (const Importer* other = std::find_if(found + 1, end, recognised); other != end;
       other = std::find_if(other + 1, end, recognised))
    result.warnings.push_back(
        {{.file = file},
         "",
         fmt::format("read as {}, but there is {} output in it too", found->name, other->name),
         "split the file to use both"});
  const bool of_lines = !text.starts_with('{') && found->recognises != recognises_nsys;
  if (of_lines && !text.ends_with('\n'))
    result.warnings.push_back({{.file = file},
                               "",
                               "the last line has no end",
                               "if the file is cut off, its last number may be wrong"});
  return result;
}

Observations import_file(const std::filesystem::path& path) {
  return import_bytes(read_file(path, "log or bench file", kLargestText), path.string());
}

}  // namespace scapesim::calib
