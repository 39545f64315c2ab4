#include "tuner/core/problem_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuner {
namespace {

bool printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

}  // namespace

std::string read_label(const Node& node) {
  const std::string text = node.json().is_string() ? node.string() : "";
  if (text.empty() || text.size() > 200 || !printable(text))
    node.refuse("a name of 1 to 200 bytes without control characters");
  return text;
}

std::string read_file_name(const Node& node) {
  const std::string text = read_label(node);
  if (text == "." || text == ".." || text.find_first_of("/\\") != text.npos)
    node.refuse("a name that can be a folder's: no '/' or '\\', not '.' or '..'");
  return text;
}

bool is_target(std::string_view arch) {
  if (!arch.starts_with("sm_")) return false;
  arch.remove_prefix(3);
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  return arch.size() >= 2 && arch.size() <= 3 &&
         std::all_of(arch.begin(), arch.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Problem read_problem(const Node& node, bool named) {
  if (named) {
    node.expect_keys({"name", "batch", "in_channels", "out_channels", "kernel_size", "stride", "padding",
                      "output_padding", "dilation", "groups", "bias", "length"});
  } else {
    node.expect_keys({"batch", "in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding",
                      "dilation", "groups", "bias", "length"});
  }
  Problem problem;
  const auto optional = [&](const char* key, std::int64_t& value, std::int64_t least) {
    if (const auto member = node.find(key)) value = member->integer(least);
  };
  optional("batch", problem.batch, 0);
  problem.in_channels = node.at("in_channels").integer(1);
  problem.out_channels = node.at("out_channels").integer(1);
  problem.kernel_size = node.at("kernel_size").integer(1);
  optional("stride", problem.stride, 1);
  optional("padding", problem.padding, 0);
  optional("output_padding", problem.output_padding, 0);
  optional("dilation", problem.dilation, 1);
  optional("groups", problem.groups, 1);
  if (const auto bias = node.find("bias")) problem.bias = bias->boolean();
  problem.length = node.at("length").integer(1);
  if (const auto reason = illegal(problem)) node.fail(fmt::format("{} is not legal: {}", summary(problem), *reason));
  return problem;
}

Json problem_json(const Problem& p) {
  return {{"batch", p.batch},
          {"in_channels", p.in_channels},
          {"out_channels", p.out_channels},
          {"kernel_size", p.kernel_size},
          {"stride", p.stride},
          {"padding", p.padding},
          {"output_padding", p.output_padding},
          {"dilation", p.dilation},
          {"groups", p.groups},
          {"bias", p.bias},
          {"length", p.length}};
}

Value read_value(const Node& node) {
  const Json& json = node.json();
  if (json.is_number()) return node.integer(0, 2147483647);
  if (json.is_string() && !json.get_ref<const std::string&>().empty()) return node.string();
  if (!json.is_array() || json.size() != 2) node.refuse("a whole number, a block shape [x, y] or a name");
  const auto extents = node.elements(2, 2);
  return Block{static_cast<int>(extents[0].integer(1, 1024)), static_cast<int>(extents[1].integer(1, 1024))};
}

Json value_json(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* block = std::get_if<Block>(&value)) return Json::array({block->x, block->y});
  return std::get<std::string>(value);
}

}  // namespace tuner
