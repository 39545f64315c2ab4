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

std::string transpose_kernel(const char* direction, int bytes) {
  return fmt::format("ct1d::baseline::{}<{}>", direction, bytes == 4 ? "float" : "unsigned short");
}

Launch over_tiles(std::string kernel, std::int64_t channel_tiles, std::int64_t position_tiles, std::int64_t batches) {
  Launch launch{std::move(kernel)};
  launch.shape.grid_x = static_cast<unsigned>(channel_tiles);
  launch.shape.grid_y = static_cast<unsigned>(std::min(position_tiles, kMostRows));
  launch.shape.grid_z = static_cast<unsigned>(std::min(batches, kMostRows));
  launch.shape.block_x = ct1d::baseline::kTransposeThreads;
  return launch;
}

}  // namespace

CompileUnit baseline_unit() {
  CompileUnit unit;
  unit.source = "#include \"baselines/kernels.cuh\"\n";
  for (const int bytes : {4, 2}) {
    unit.kernels.push_back(permute_kernel(bytes));
    for (const char* direction : {"to_channels_last", "to_channels_first"})
      unit.kernels.push_back(transpose_kernel(direction, bytes));
  }
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    const std::string_view type = type_name(element);
    unit.kernels.push_back(fmt::format("ct1d::baseline::fill<{}>", type));
    unit.kernels.push_back(fmt::format("ct1d::baseline::fill_last<{}>", type));
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

Expected<bool> SupportKernels::fill_last(Element element, void* y, const void* bias, std::int64_t channels,
                                         std::int64_t count) {
  ct1d::baseline::FillArguments a{};
  a.y = y;
  a.bias = bias;
  a.rows = count;
  a.channels = channels;
  Launch launch{fmt::format("ct1d::baseline::fill_last<{}>", type_name(element))};
  launch.shape.grid_x = static_cast<unsigned>(std::min<std::int64_t>(ct1d::ceil_div(count, kColumnsPerBlock), 1 << 20));
  launch.shape.block_x = kThreads;
  return launch_on(*module_, launch, a);
}

Expected<bool> SupportKernels::to_channels_last(Element element, const Rows& from, void* to) {
  using Tile = ct1d::baseline::ToChannelsLast<float>;
  using Narrow = ct1d::baseline::ToChannelsLast<unsigned short>;
  const int bytes = bytes_of(element);
  const ct1d::baseline::TransposeArguments a{from.data, to, nullptr, from.batches, from.channels, from.length};
  return launch_on(*module_,
                   over_tiles(transpose_kernel("to_channels_last", bytes),
                              ct1d::ceil_div(from.channels, bytes == 4 ? Tile::kRows : Narrow::kRows),
                              ct1d::ceil_div(from.length, Tile::kColumns), from.batches),
                   a);
}

Expected<bool> SupportKernels::to_channels_first(Element element, const Rows& from, void* to, const void* bias) {
  using Tile = ct1d::baseline::ToChannelsFirst<float>;
  using Narrow = ct1d::baseline::ToChannelsFirst<unsigned short>;
  const int bytes = bytes_of(element);
  const ct1d::baseline::TransposeArguments a{from.data,    to,          static_cast<const float*>(bias),
                                             from.batches, from.length, from.channels};
  return launch_on(*module_,
                   over_tiles(transpose_kernel("to_channels_first", bytes),
                              ct1d::ceil_div(from.channels, bytes == 4 ? Tile::kColumns : Narrow::kColumns),
                              ct1d::ceil_div(from.length, Tile::kRows), from.batches),
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
  if (!current_ || current_->size() < bytes) {
    current_.reset();
    current_ = device_.allocate(std::max(bytes, std::min(std::bit_ceil(bytes), limit_)));
  }
  return current_;
}

}  // namespace tuner
