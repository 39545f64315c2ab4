#include "baselines/support_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "baselines/baseline.h"

namespace tuner {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kColumnsPerBlock = 4 * kThreads;  // kColumnsPerThread in kernels.cuh
constexpr std::int64_t kMostRows = 65535;

std::string_view type_name(Element element) {
  switch (element) {
    case Element::f16:
      return "ct1d::baseline::Half";
    case Element::bf16:
      return "ct1d::baseline::Bfloat16";
    case Element::f32:
      break;
  }
  return "float";
}

Launch over_rows(std::string kernel, std::int64_t columns, std::int64_t rows) {
  Launch launch{std::move(kernel)};
  launch.shape.grid_x = static_cast<unsigned>(ct1d::ceil_div(columns, kColumnsPerBlock));
  launch.shape.grid_y = static_cast<unsigned>(std::min(rows, kMostRows));
  launch.shape.block_x = kThreads;
  return launch;
}

template <class Arguments>
Expected<bool> launch_on(Module& module, const Launch& launch, const Arguments& arguments) {
  if (launch.shape.grid_x == 0 || launch.shape.grid_y == 0) return true;
  return module.launch_with(launch, &arguments, sizeof arguments);
}

std::string permute_kernel(int bytes) {
  return fmt::format("ct1d::baseline::permute<{}>", bytes == 4 ? "float" : "unsigned short");
}

}  // namespace

CompileUnit baseline_unit() {
  CompileUnit unit;
  unit.source = "#include \"baselines/kernels.cuh\"\n";
  unit.kernels = {permute_kernel(4), permute_kernel(2)};
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    const std::string_view type = type_name(element);
    unit.kernels.push_back(fmt::format("ct1d::baseline::fill<{}>", type));
    unit.kernels.push_back(fmt::format("ct1d::baseline::add_bias<{}>", type));
    for (const char* index : {"int", "long long"})
      unit.kernels.push_back(fmt::format("ct1d::baseline::gather<{}, {}>", type, index));
  }
  return unit;
}

Expected<std::shared_ptr<SupportKernels>> SupportKernels::load(Device& device, const CompiledUnit& unit) {
  auto module = device.load(unit);
  if (!module) return module.failure();
  return std::shared_ptr<SupportKernels>(new SupportKernels(std::move(*module)));
}

Expected<bool> SupportKernels::permute(Element element, const ct1d::baseline::PermuteArguments& a) {
  const std::int64_t total = a.extents[0] * a.extents[1] * a.extents[2] * a.extents[3];
  Launch launch{permute_kernel(bytes_of(element))};
  launch.shape.grid_x = static_cast<unsigned>(std::min<std::int64_t>(ct1d::ceil_div(total, kThreads), 1 << 20));
  launch.shape.block_x = kThreads;
  return launch_on(*module_, launch, a);
}

Expected<bool> SupportKernels::fill(Element element, const ct1d::baseline::FillArguments& a) {
  const std::int64_t columns = a.left_end + a.columns - a.right_begin;
  return launch_on(*module_, over_rows(fmt::format("ct1d::baseline::fill<{}>", type_name(element)), columns, a.rows),
                   a);
}

Expected<bool> SupportKernels::add_bias(Element element, const ct1d::baseline::AddBiasArguments& a) {
  return launch_on(*module_,
                   over_rows(fmt::format("ct1d::baseline::add_bias<{}>", type_name(element)), a.columns, a.rows), a);
}

Expected<bool> SupportKernels::gather(Element element, const ct1d::baseline::GatherArguments& a) {
  const char* index = ct1d::baseline::fits_int(a) ? "int" : "long long";
  return launch_on(*module_,
                   over_rows(fmt::format("ct1d::baseline::gather<{}, {}>", type_name(element), index), a.length_out,
                             a.batches * a.channels),
                   a);
}

std::shared_ptr<Buffer> SharedWorkspace::request(std::size_t bytes) {
  if (!current_ || current_->size() < bytes)
    current_ = device_.allocate(std::max(bytes, std::min(std::bit_ceil(bytes), limit_)));
  return current_;
}

}  // namespace tuner
