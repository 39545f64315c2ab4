#include "tuner/emit/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tuner/core/hash.h"
#include "tuner/emit/choose.h"
#include "tuner/emit/flatten.h"
#include "tuner/emit/header_text.h"

namespace tuner {

const EmbeddedFiles& embedded_sources();  // of kernels/, within this program (kernels/CMakeLists.txt)

namespace {

/// Kernels of one configuration: an element of the header's kKernels.
struct Instance {
  const Chosen* chosen = nullptr;
  std::vector<std::string> run, prepare;  // in the order of their launches; nothing to prepare: run reads w itself

  std::string key() const {
    return fmt::format("{}\n{}\n{}\n\n{}", chosen->variant.family, to_string(chosen->variant.tunables),
                       fmt::join(run, "\n"), fmt::join(prepare, "\n"));
  }
};

/// Everything the header says, in order.
struct Contents {
  std::vector<Chosen> tuned;
  std::vector<Chosen> general;
  std::vector<Instance> instances;
  std::vector<std::size_t> tuned_instance, general_instance;
};

std::vector<std::string> kernels_of(const std::vector<Launch>& launches) {
  std::vector<std::string> kernels;
  for (const Launch& launch : launches) kernels.push_back(launch.kernel);
  return kernels;
}

std::size_t add_instance(std::vector<Instance>& instances, const Chosen& chosen) {
  const Instance instance{&chosen, kernels_of(chosen.program.run), kernels_of(chosen.program.prepare)};
  const auto known =
      std::find_if(instances.begin(), instances.end(), [&](const Instance& i) { return i.key() == instance.key(); });
  if (known != instances.end()) return static_cast<std::size_t>(known - instances.begin());
  instances.push_back(instance);
  return instances.size() - 1;
}

void collect(Contents& contents) {
  for (const Accuracy accuracy : kAccuracies)
    if (auto general = choose_general(accuracy, contents.tuned)) contents.general.push_back(std::move(*general));
  for (const Chosen& chosen : contents.tuned)
    contents.tuned_instance.push_back(add_instance(contents.instances, chosen));
  for (const Chosen& chosen : contents.general)
    contents.general_instance.push_back(add_instance(contents.instances, chosen));
}

/// As a string literal.
std::string literal(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

/// For a line comment: one line, and no backslash at its end that would continue it.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\\') c = ' ';
  return text;
}

std::string describe(const Chosen& chosen) { return chosen.variant.family + " " + to_string(chosen.variant.tunables); }

std::string value_text(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* block = std::get_if<Block>(&value)) return fmt::format("{{{}, {}}}", block->x, block->y);
  throw UsageError("emit: tunables with named values cannot be emitted yet: " + std::get<std::string>(value));
}

/// Shapes and kernels of launches in a row ("run", "prepare"), by the number of the launch. What one kernel does needs
/// no such number in the family's layout.h.
std::string steps_text(const std::string& family, const char* what, const std::vector<std::string>& kernels,
                       int element_bytes) {
  const char* step = kernels.size() > 1 ? " step" : "";
  std::string text = fmt::format(
      "  static ct1d::LaunchShape {0}_shape(const ct1d::Geometry& g, int{1}) {{\n"
      "    return {2}::{0}_shape(tunables(), g, {3}{4});\n  }}\n  static const void* {0}_kernel(int{1}) {{\n",
      what, step, family, element_bytes, kernels.size() > 1 ? ", step" : "");
  for (std::size_t i = 0; i < kernels.size(); ++i)
    text += fmt::format("    {}return reinterpret_cast<const void*>(&{});\n",
                        i + 1 < kernels.size() ? fmt::format("if (step == {}) ", i) : "", kernels[i]);
  return text + "  }\n";
}

std::string instance_text(const Instance& instance, std::size_t index) {
  const Chosen& chosen = *instance.chosen;
  const std::string family = "ct1d::" + chosen.variant.family;
  const int bytes = bytes_of(element_of(chosen.context.accuracy));
  std::string assignments;
  for (const auto& [name, value] : chosen.variant.tunables)
    assignments += fmt::format("    t.{} = {};\n", name, value_text(value));
  std::string text = fmt::format("/// {}\nstruct Kernels{} {{\n", one_line(describe(chosen)), index);
  text += fmt::format("  static constexpr {}::Tunables tunables() {{\n    {}::Tunables t{{}};\n{}    return t;\n  }}\n",
                      family, family, assignments);
  for (const char* name : {"packed_bytes", "workspace_bytes"})
    text += fmt::format("  static long long {0}(const ct1d::Geometry& g) {{ return {1}::{0}(tunables(), g, {2}); }}\n",
                        name, family, bytes);
  text += steps_text(family, "run", instance.run, bytes);
  if (!instance.prepare.empty()) text += steps_text(family, "prepare", instance.prepare, bytes);
  return text + "};\n";
}

std::string kernels_text(const std::vector<Instance>& instances) {
  std::string text;
  for (std::size_t i = 0; i < instances.size(); ++i) text += instance_text(instances[i], i) + "\n";
  std::size_t most = 1;
  for (const Instance& instance : instances) most = std::max({most, instance.run.size(), instance.prepare.size()});
  text += fmt::format(
      "/// Launches of a call or of its preparation at most.\ninline constexpr int kMostSteps = {};\n\n", most);
  text += "inline constexpr Kernels kKernels[] = {\n";
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const bool prepares = !instances[i].prepare.empty();
    text += fmt::format(
        "    {{Kernels{0}::packed_bytes, Kernels{0}::workspace_bytes,\n     {1}, Kernels{0}::run_shape, "
        "Kernels{0}::run_kernel,\n     {2}, {3}, {4}}},\n",
        i, instances[i].run.size(), instances[i].prepare.size(),
        prepares ? fmt::format("Kernels{}::prepare_shape", i) : std::string("nullptr"),
        prepares ? fmt::format("Kernels{}::prepare_kernel", i) : std::string("nullptr"));
  }
  return text + "};\n";
}

std::string tables_text(const Contents& contents) {
  std::string text = "inline constexpr Tuned kTuned[] = {\n";
  for (std::size_t i = 0; i < contents.tuned.size(); ++i) {
    const Chosen& c = contents.tuned[i];
    const Problem& p = c.context.problem;
    const std::string device = c.context.device.name;
    const std::string time = c.median_ms ? fmt::format("{:.4g} ms", *c.median_ms) : "not measured";
    text += fmt::format("    // {}: {}\n", one_line(c.problem_name), one_line(summary(p)));
    text +=
        fmt::format("    {{{}, {}, Accuracy::{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},\n     {},\n     {}}},\n",
                    literal(device), c.context.device.compute_major, to_string(c.context.accuracy), p.batch,
                    p.in_channels, p.out_channels, p.kernel_size, p.stride, p.padding, p.output_padding, p.dilation,
                    p.groups, p.length, contents.tuned_instance[i],
                    literal(fmt::format("tuned for this problem on this GPU: {} ({})", describe(c), time)),
                    literal(fmt::format("tuned for this problem on another GPU, {}: {}", device, describe(c))));
  }
  text += "};\n\ninline constexpr General kGeneral[] = {\n";
  for (std::size_t i = 0; i < contents.general.size(); ++i)
    text += fmt::format("    {{Accuracy::{}, {},\n     {}}},\n", to_string(contents.general[i].context.accuracy),
                        contents.general_instance[i],
                        literal("general configuration, not tuned for this problem: " + describe(contents.general[i])));
  return text + "    {Accuracy::fp32, -1, nullptr}};\n";  // the end, as a list of none would not compile
}

std::string banner(const std::vector<RunResult>& results, const EmitOptions& options, const Contents& contents) {
  std::string text = fmt::format("// Generated by tuner {}; do not edit.\n//   {}\n// From:\n",
                                 one_line(results.front().tool_version), one_line(options.command));
  for (const RunResult& result : results) {
    text += one_line(fmt::format("//   {} of {} on {}: result sha256 {}, config {}", result.name, result.started,
                                 result.environment.device.name, sha256(to_json(result)), result.config_hash)) +
            "\n";
    if (!result.measured) text += "//     UNMEASURED: nothing was timed; the order is the model's.\n";
  }
  text += "// Holds:\n";
  for (const Chosen& c : contents.tuned) {
    text += one_line(fmt::format("//   {} {} on {}: {}, {}{}", c.problem_name, to_string(c.context.accuracy),
                                 c.context.device.name, describe(c),
                                 c.median_ms ? fmt::format("median {:.4g} ms", *c.median_ms) : "not measured",
                                 c.note.empty() ? "" : " (" + c.note + ")")) +
            "\n";
  }
  for (const Chosen& c : contents.general)
    text +=
        one_line(fmt::format("//   any other problem in {}: {}", to_string(c.context.accuracy), describe(c))) + "\n";
  return text;
}

/// Words that name no namespace though they look like names: C++20's, of which headers see those of C++17 too.
bool is_keyword(std::string_view word) {
  static constexpr std::string_view kKeywords =
      " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
      "compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype "
      "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
      "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
      "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template "
      "this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t "
      "while xor xor_eq std ";
  return kKeywords.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

void check_namespace(const std::string& name) {
  bool start = true;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (c == ':' && !start && name.compare(i, 2, "::") == 0) {
      start = true;
      ++i;
    } else if (letter || (!start && c >= '0' && c <= '9')) {
      start = false;
    } else {
      start = true;
      break;
    }
  }
  for (std::size_t from = 0, end = 0; !start && end != name.npos; from = end + 2) {
    end = name.find("::", from);
    start = is_keyword(name.substr(from, end - from));
  }
  if (start) throw UsageError(fmt::format("--namespace \"{}\" is no C++ namespace, such as audio::kernels", name));
}

void check(const std::vector<RunResult>& results, const EmitOptions& options) {
  check_namespace(options.name_space);
  if (results.empty()) throw UsageError("emit: no results");
  for (const RunResult& result : results)
    if (!result.measured && !options.unmeasured)
      throw UsageError(
          fmt::format("the result {} of {} holds no times; --unmeasured emits its shortlist's first all the same",
                      result.name, result.environment.device.name));
}

}  // namespace

std::string emit_header(const std::vector<RunResult>& results, const EmitOptions& options) {
  check(results, options);
  Contents contents;
  contents.tuned = choose(results);
  if (contents.tuned.empty()) throw UsageError("emit: the results hold no valid variant of ours");
  collect(contents);
  std::vector<std::string> units;
  for (const Instance& instance : contents.instances) units.push_back(instance.chosen->program.unit.source);
  const Flattened sources = flatten(units, embedded_sources());

  std::string text = banner(results, options, contents);
  text += fmt::format(
      "//\n{}#pragma once\n\n#if !defined(__CUDACC__)\n#error \"this header holds CUDA kernels: include it in a file "
      "that nvcc compiles\"\n#endif\n\n"
      "#include <cuda_runtime.h>\n\n#include <cstddef>\n#include <cstring>\n",
      header_manual());
  for (const std::string& include : sources.system) text += include + "\n";
  text += fmt::format("\nnamespace {} {{\n\n{}\nnamespace detail {{\n\n", options.name_space, header_types());
  text += fmt::format("// ---- device code: {} ----\n\n{}\n", fmt::join(sources.files, ", "), sources.text);
  text += fmt::format("// ---- what was tuned ----\n\n{}\n{}\n{}\n}}  // namespace detail\n\n{}\n}}  // namespace {}\n",
                      header_details(), kernels_text(contents.instances), tables_text(contents), header_plan(),
                      options.name_space);
  for (const std::string& macro : sources.macros) text += "\n#undef " + macro;
  return text + (sources.macros.empty() ? "" : "\n");
}

}  // namespace tuner
