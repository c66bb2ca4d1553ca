// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cases.hpp"

#include <charconv>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "kernels/cuda/traffic.hpp"
#include "sim/base/error.hpp"

namespace scapesim::bench {

std::vector<KernelCase> kernel_cases(Extent extent) {
  const bool quick = extent == Extent::quick;
  const std::vector<double> densities =
      quick ? std::vector<double>{0.1, 0.01} : std::vector<double>{0.5, 0.1, 0.05, 0.01};
  std::vector<KernelCase> cases;
  for (const Named<Kernel>& kernel : names<Kernel>())
    for (int exponent = 16; exponent <= 30; exponent += quick ? 4 : 2)
      for (const double density : densities)
        for (const Named<MaskKind>& mask : names<MaskKind>())
          cases.push_back({kernel.value, std::size_t{1} << exponent, density, mask.value});
  return cases;
}

std::string shape_of(const KernelCase& kernel_case) {
  return fmt::format("n={} s={} {}", kernel_case.elements, kernel_case.density,
                     name_of(kernel_case.mask));
}

double counted_bytes(const KernelCase& kernel_case) {
  namespace traffic = kernels::traffic;
  using traffic::kBf16;
  using traffic::kFloat;
  const double density = kernel_case.density;
  const auto per_element = [&] {
    switch (kernel_case.kernel) {
      case Kernel::local_pass:
        return traffic::accumulate(density, kFloat, kFloat);
      case Kernel::select:
        return traffic::select_threshold(kFloat) + traffic::select_mask(kFloat);
      case Kernel::mask_offsets:
        return traffic::stitch_masks() + traffic::scan_tiles();
      case Kernel::update:
        return traffic::scatter_adams(density, kFloat, kBf16);
      case Kernel::write_back:
        return traffic::write_back(density, kFloat, kBf16, kernels::MomentUpdate::keep);
    }
    throw InternalError("kernel");
  };
  return per_element() * static_cast<double>(kernel_case.elements);
}

std::vector<std::size_t> copy_sizes(Extent extent) {
  std::vector<std::size_t> sizes;
  for (int exponent = 16; exponent <= 30; exponent += extent == Extent::quick ? 4 : 2)
    sizes.push_back(std::size_t{1} << exponent);
  if (extent == Extent::quick) sizes.push_back(std::size_t{1} << 30U);
  return sizes;
}

namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::int64_t> size_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

std::optional<GemmCase::Pass> pass_in(std::string_view text) {
  if (text == "forward") return GemmCase::Pass::forward;
  if (text == "dgrad") return GemmCase::Pass::dgrad;
  if (text == "wgrad") return GemmCase::Pass::wgrad;
  return std::nullopt;
}

std::optional<GemmCase> gemm_in(std::string_view line) {
  const auto fields = fields_of(line);
  if (fields.size() != 5) return std::nullopt;
  const auto pass = pass_in(fields[1]);
  const auto m = size_in(fields[2]);
  const auto n = size_in(fields[3]);
  const auto k = size_in(fields[4]);
  if (!pass || !m || !n || !k) return std::nullopt;
  return GemmCase{std::string(fields[0]), *pass, *m, *n, *k};
}

}  // namespace

std::vector<GemmCase> read_shapes(std::string_view text, const std::string& file) {
  std::vector<GemmCase> cases;
  std::set<std::tuple<GemmCase::Pass, std::int64_t, std::int64_t, std::int64_t>> seen;
  Problems problems;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    if (line.empty() || line.starts_with('#') || line == "name,pass,m,n,k") continue;
    const auto one = gemm_in(line);
    if (!one)
      problems.add({file, number, 0}, "", "is no shape: " + std::string(line),
                   "name,pass,m,n,k with pass forward, dgrad or wgrad");
    else if (seen.insert({one->pass, one->m, one->n, one->k}).second)
      cases.push_back(*one);
  }
  problems.raise();
  return cases;
}

std::vector<GemmCase> thinned(const std::vector<GemmCase>& cases, std::size_t most) {
  if (cases.size() <= most) return cases;
  std::vector<GemmCase> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(cases[i * cases.size() / most]);
  return some;
}

}  // namespace scapesim::bench
