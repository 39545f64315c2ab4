// Cases of `tuner verify --cases`.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "tuner/core/config.h"
#include "tuner/core/problem_json.h"

namespace tuner {
namespace {

constexpr double kMostFloat = std::numeric_limits<float>::max();

/// Numbers of at most `most` in magnitude: what is given to kernels must not become infinite as a float.
std::vector<double> read_tensor(const Node& node, std::int64_t count, double most) {
  const Json& json = node.json();
  if (!json.is_array() || json.size() != static_cast<std::size_t>(count))
    node.refuse(fmt::format("an array of {} numbers, as the problem says", count));
  std::vector<double> values;
  values.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_number()) node.elements()[i].refuse("a number");
    values.push_back(json[i].get<double>());
    if (std::abs(values.back()) > most) node.elements()[i].refuse(fmt::format("a number within +-{:.9g}", most));
  }
  return values;
}

Case read_case(const Node& node) {
  node.expect_keys({"name", "values", "problem", "length_out", "input", "weight", "bias", "output"});
  Case read;
  read.name = read_label(node.at("name"));
  read.problem = read_problem(node.at("problem"));
  if (const auto values = node.find("values")) values->string();
  if (const auto length = node.find("length_out"); length && length->integer() != read.problem.length_out())
    length->refuse(fmt::format("{}, as the problem says", read.problem.length_out()));
  read.input = read_tensor(node.at("input"), read.problem.x_count(), kMostFloat);
  read.weight = read_tensor(node.at("weight"), read.problem.w_count(), kMostFloat);
  const Node bias = node.at("bias");
  if (read.problem.bias) {
    read.bias = read_tensor(bias, read.problem.out_channels, kMostFloat);
  } else if (!bias.json().is_null()) {
    bias.refuse("null, since the problem has no bias");
  }
  read.output = read_tensor(node.at("output"), read.problem.y_count(), std::numeric_limits<double>::max());
  return read;
}

}  // namespace

std::vector<Case> read_cases(const std::filesystem::path& path) {
  const Json json = read_json(path);
  const Node root(json, one_line(path.string(), 4096));
  root.expect_keys({"$schema", "what", "cases"});
  std::vector<Case> cases;
  std::set<std::string> names;
  for (const Node& node : root.at("cases").elements(1)) {
    cases.push_back(read_case(node));
    if (!names.insert(cases.back().name).second) node.at("name").refuse("a name that no other case has");
  }
  return cases;
}

}  // namespace tuner
