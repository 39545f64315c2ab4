#include "tuner/commands/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>

#include "tuner/commands/interrupt.h"
#include "tuner/commands/suggestion.h"
#include "tuner/commands/version.h"
#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/core/json_node.h"
#include "tuner/jit/jit.h"
#include "tuner/worker/worker.h"

namespace tuner {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// compute-sanitizer on PATH or in the toolkit's folder; its name alone where it is in neither.
std::string find_compute_sanitizer() {
  const std::string name = "compute-sanitizer";
  std::string folders = variable("PATH");
  for (const std::string& toolkit : {variable("CUDA_HOME"), variable("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!toolkit.empty()) folders += ":" + toolkit + "/bin:" + toolkit + "/compute-sanitizer";
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty() && access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return name;
}

Settings read_settings() {
  Settings settings;
  settings.cache = choose_cache_folder(variable("XDG_CACHE_HOME"), variable("HOME"));
  settings.cxx = variable("CXX");
  settings.tf32_override = variable("NVIDIA_TF32_OVERRIDE");
  settings.compute_sanitizer = find_compute_sanitizer();
  settings.color = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  settings.progress_bar = isatty(STDERR_FILENO) && variable("TERM") != "dumb";
  return settings;
}

/// A whole number in decimal, or nothing.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::uint64_t number_within(const char* flag, const std::string& text, std::int64_t most) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number || *number < 0 || *number > most)
    throw UsageError(
        fmt::format("{} {}: allowed are whole numbers from 0 to {}", flag, text.empty() ? "''" : text, most));
  return static_cast<std::uint64_t>(*number);
}

DeviceChoice parse_device(const std::string& text) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  DeviceChoice choice;
  if (kind == "auto" && colon == std::string::npos) return choice;
  if (kind == "offline" && (colon == std::string::npos || !rest.empty())) {
    choice.kind = DeviceChoice::Kind::offline;
    choice.profile = rest;
    return choice;
  }
  const auto index = colon == std::string::npos ? std::optional<int>(0) : parse_number<int>(rest);
  if (kind == "cuda" && index && *index >= 0) {
    choice.kind = DeviceChoice::Kind::cuda;
    choice.index = *index;
    return choice;
  }
  throw UsageError(fmt::format("--device {}: allowed are auto, cuda, cuda:N, offline, offline:PROFILE", text));
}

void add_budget(Budget& budget, const std::string& text) {
  const std::string allowed = "allowed are a number of seconds as 300s or of evaluations as 200evals, above 0";
  const auto once = [&](bool given) {
    if (given) throw UsageError(fmt::format("--budget {}: given twice in the same unit", text));
  };
  if (text.size() > 5 && text.ends_with("evals")) {
    const auto number = parse_number<std::int64_t>(std::string_view(text).substr(0, text.size() - 5));
    if (!number || *number <= 0) throw UsageError(fmt::format("--budget {}: {}", text, allowed));
    once(budget.evaluations.has_value());
    budget.evaluations = number;
  } else if (text.size() > 1 && text.ends_with("s")) {
    const auto number = parse_number<double>(std::string_view(text).substr(0, text.size() - 1));
    if (!number || !(*number > 0) || *number > 1e9) throw UsageError(fmt::format("--budget {}: {}", text, allowed));
    once(budget.seconds.has_value());
    budget.seconds = number;
  } else {
    throw UsageError(fmt::format("--budget {}: {}", text, allowed));
  }
}

std::string as_typed(int argc, char** argv) {
  std::string text = "tuner";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--resume") continue;  // says how a run was gone on with, not what it is
    const bool plain = !argument.empty() && argument.find_first_of(" '\"$&|;<>()*?\\`\n\t") == std::string::npos;
    text += ' ';
    if (plain) {
      text += argument;
    } else {
      text += '\'';
      for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
      text += '\'';
    }
  }
  return text;
}

/// The tree of options, bound to their structs, and the command that parsing chose.
class CommandLine {
 public:
  explicit CommandLine(std::string typed) : typed_(std::move(typed)) {
    app_.set_version_flag("--version", version_line());
    app_.require_subcommand(0, 1);
    app_.get_formatter()->column_width(34);
    add_tune();
    add_verify();
    add_inspect();
    add_report();
    add_compare();
    add_emit();
    add_small();
    app_.footer(
        "Exit codes: 0 done, 1 nothing valid or a check failed, 2 wrong usage or input, 3 environment, 4 regression,\n"
        "70 internal error, 130 and 143 interrupted (everything measured so far is saved).");
  }

  CLI::App& app() { return app_; }

  /// What was typed beyond what is known, in its order, and what the first of it may have been meant to be.
  std::string unexpected() const {
    const std::vector<CLI::App*> chosen = app_.get_subcommands();
    const CLI::App& where = chosen.empty() ? app_ : *chosen.front();
    const std::vector<std::string> rest = app_.remaining(true);
    std::vector<std::string> names;
    if (!rest.empty() && rest.front().starts_with('-')) {
      for (const CLI::Option* option : where.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    } else if (chosen.empty()) {
      for (const CLI::App* sub : app_.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(sub->get_name());
    }
    const std::string meant = rest.empty() ? "" : nearest(rest.front(), names);
    return fmt::format("not expected: {}{}", fmt::join(rest, " "),
                       meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  }

  int run(const Settings& settings) {
    if (!command_) {
      if (tune_.config.empty()) throw UsageError("give --config FILE or a subcommand; `tuner --help` lists them");
      for (const std::string& text : budgets_) add_budget(tune_.budget, text);
      if (app_.count("--seed") > 0)
        tune_.seed = number_within("--seed", seed_, std::numeric_limits<std::int64_t>::max());
      if (app_.count("--jobs") > 0) tune_.jobs = static_cast<int>(number_within("--jobs", jobs_, 4096));
      if (tune_.out && tune_.out->empty()) throw UsageError("--out: a folder's name is expected, not an empty one");
      if (quiet_ && verbose_) throw UsageError("--quiet and --verbose exclude each other");
      tune_.verbosity = quiet_ ? Verbosity::quiet : verbose_ ? Verbosity::verbose : Verbosity::normal;
      tune_.device = parse_device(device_);
      tune_.reproduce = typed_;
      return tune(tune_, settings);
    }
    if (app_.count("--config") != 0) throw UsageError("--config belongs to the main job; give it without a subcommand");
    return command_(settings);
  }

 private:
  void add_tune() {
    app_.add_option("--config", tune_.config, "What to tune (configs/*.json)")->option_text("FILE");
    app_.add_option("--device", device_, "auto | cuda[:N] | offline[:PROFILE]")->option_text(" ");
    app_.add_option("--out", tune_.out, "Folder for results, instead of the config's `out`")->option_text("DIR");
    app_.add_flag("--resume", tune_.resume,
                  "Go on where an earlier run into the same folder ended; redo what is stale");
    app_.add_option("--budget", budgets_, "300s or 200evals, for the whole run; repeatable")
        ->option_text("N")
        ->allow_extra_args(false);
    app_.add_option("--problem", tune_.problems, "Only these problems; repeatable")
        ->option_text("NAME")
        ->allow_extra_args(false);
    app_.add_option("--family", tune_.families, "Only these kernel families; repeatable")
        ->option_text("NAME")
        ->allow_extra_args(false);
    app_.add_option("--class", tune_.classes, "Only these accuracy classes; repeatable")
        ->option_text("NAME")
        ->allow_extra_args(false);
    app_.add_option("--seed", seed_, "Seed of search and inputs")->option_text("N");
    app_.add_option("--jobs", jobs_, "Compiles at a time; 0: one a core")->option_text("N");
    app_.add_flag("--diagnose", tune_.diagnose,
                  "Run what crashed or hung on the GPU once more under compute-sanitizer");
    app_.add_flag("--quiet", quiet_, "Only the final table");
    app_.add_flag("--verbose", verbose_, "A line for each variant");
  }

  void add_verify() {
    auto* sub = app_.add_subcommand("verify", "Prove kernel families on cases, on the GPU or by Host execution");
    sub->add_option("--cases", verify_.cases, "Case files; without it a built-in set")
        ->option_text("FILE")
        ->allow_extra_args(false);
    sub->add_option("--device", verify_device_, "auto | cuda[:N] | offline")->option_text(" ");
    sub->add_option("--family", verify_.families, "Only these families")->option_text("NAME")->allow_extra_args(false);
    sub->add_option("--class", verify_.classes, "Accuracy classes (default fp32)")
        ->option_text("NAME")
        ->allow_extra_args(false);
    sub->add_option("--json", verify_.json, "Write the outcomes as JSON")->option_text("FILE");
    on(sub, [this](const Settings& settings) {
      verify_.device = parse_device(verify_device_);
      return verify(verify_, settings);
    });
  }

  void add_inspect() {
    auto* sub = app_.add_subcommand("inspect", "Write a variant's source, PTX, SASS and compile log");
    sub->add_option("RESULT", inspect_.result, "result.json")->required();
    sub->add_option("VARIANT", inspect_.variant, "Variant id or a unique prefix")->required();
    sub->add_option("--problem", inspect_.problem, "Of this problem (default: the first that has the variant)")
        ->option_text("NAME");
    sub->add_option("--class", inspect_.accuracy, "Of this accuracy class (default: the first)")->option_text("NAME");
    sub->add_flag("--run", inspect_.run, "Also run it alone");
    sub->add_option("--l2", inspect_.l2, "With --run: cold | warm")
        ->option_text(" ")
        ->check(CLI::IsMember({"cold", "warm"}));
    sub->add_option("--regime", inspect_.regime, "With --run: burst | sustained")
        ->option_text(" ")
        ->check(CLI::IsMember({"burst", "sustained"}));
    sub->add_option("-o,--out", inspect_.out, "Folder (default: the variant's id)")->option_text("DIR");
    on(sub, [this](const Settings& settings) { return inspect(inspect_, settings); });
  }

  void add_report() {
    auto* sub = app_.add_subcommand("report", "Render results");
    sub->add_option("RESULT", report_.results, "result.json files")->required();
    sub->add_option("--format", report_.format, "table | markdown | junit")
        ->option_text("FORMAT")
        ->check(CLI::IsMember({"table", "markdown", "junit"}));
    sub->add_option("-o,--out", report_.out, "File instead of standard output")->option_text("FILE");
    on(sub, [this](const Settings& settings) { return report(report_, settings); });
  }

  void add_compare() {
    auto* sub = app_.add_subcommand("compare", "Gate a new result against a base; exit 4 on a regression");
    sub->add_option("BASE", compare_.base, "result.json")->required();
    sub->add_option("NEW", compare_.now, "result.json")->required();
    sub->add_option("--fail-slower", compare_.fail_slower, "Percent slower that fails (default 3)")
        ->option_text("PCT")
        ->check(CLI::Range(0.0, 1000.0));
    sub->add_flag("--allow-different", compare_.allow_different, "Compare across GPUs, drivers or regimes");
    sub->add_flag("--live", compare_.live, "Time both best variants here, in interleaved rounds");
    sub->add_option("--problem", compare_.problems, "Only these problems")
        ->option_text("NAME")
        ->allow_extra_args(false);
    sub->add_option("--class", compare_.classes, "Only these classes")->option_text("NAME")->allow_extra_args(false);
    sub->add_option("--json", compare_.json, "With --live: write ratios and samples")->option_text("FILE");
    on(sub, [this](const Settings& settings) {
      if (compare_.json && !compare_.live) throw UsageError("--json needs --live");
      if (std::isnan(compare_.fail_slower)) throw UsageError("--fail-slower nan: allowed are numbers from 0 to 1000");
      return compare(compare_, settings);
    });
  }

  void add_emit() {
    auto* sub = app_.add_subcommand("emit", "Generate a tuned header for production builds");
    sub->add_option("RESULT", emit_.results, "result.json files")->required();
    sub->add_option("-o,--out", emit_.out, "Header to write")->option_text("HEADER")->required();
    sub->add_option("--namespace", emit_.name_space, "C++ namespace (default conv_transpose1d)")->option_text("NS");
    sub->add_flag("--unmeasured", emit_.unmeasured, "Accept results without times, and say so in the banner");
    on(sub, [this](const Settings& settings) {
      emit_.command = typed_;
      return emit(emit_, settings);
    });
  }

  void add_small() {
    auto* what = app_.add_subcommand("list", "families | strategies | problems | devices");
    what->add_option("WHAT", what_, "families | strategies | problems | devices")
        ->required()
        ->check(CLI::IsMember({"families", "strategies", "problems", "devices"}));
    on(what, [this](const Settings& settings) { return list(what_, settings); });
    auto* family = app_.add_subcommand("describe", "A family's tunables and constraints");
    family->add_option("FAMILY", family_, "Name of a family (`tuner list families`)")->required();
    on(family, [this](const Settings& settings) { return describe(family_, settings); });
    auto* health = app_.add_subcommand("doctor", "What this machine has and what is missing");
    on(health, [](const Settings& settings) { return doctor(settings); });
  }

  void on(CLI::App* sub, std::function<int(const Settings&)> command) {
    sub->callback([this, command = std::move(command)] { command_ = command; });
  }

  CLI::App app_{"Finds the fastest correct way to run a 1D transposed convolution on an NVIDIA GPU.", "tuner"};
  std::string typed_;
  TuneOptions tune_;
  VerifyOptions verify_;
  InspectOptions inspect_;
  ReportOptions report_;
  CompareCommand compare_;
  EmitCommand emit_;
  std::string device_ = "auto", verify_device_ = "auto", seed_, jobs_, what_, family_;
  std::vector<std::string> budgets_;
  bool quiet_ = false, verbose_ = false;
  std::function<int(const Settings&)> command_;
};

/// One line: line breaks of a library's message become spaces, other control characters of the input are spelled out.
int fail(int code, std::string message) {
  for (char& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  while (!message.empty() && message.back() == ' ') message.pop_back();
  std::fflush(stdout);
  std::fputs(fmt::format("tuner: {}\n", one_line(message, 4096)).c_str(), stderr);
  return code;
}

/// `code`, unless what was printed did not arrive.
int delivered(int code) {
  std::cout.flush();  // CLI11 prints there
  if (std::cout && std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  return fail(3, "standard output cannot be written");
}

}  // namespace

std::optional<int> run_helper_process(int argc, char** argv) {
  const std::string_view entry = argc > 2 ? argv[1] : "";
  if (entry != "__zygote" && entry != "__worker") return std::nullopt;
  // A Ctrl-C reaches the whole process group; the coordinator decides what its helpers do.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  const auto socket = parse_number<int>(argv[2]);
  if (!socket) return 70;
  if (entry == "__zygote") return zygote_main(*socket);
  return worker_main(*socket, argc > 3 ? argv[3] : "host");
}

int run_command_line(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write past `ulimit -f` is a failed write
  CommandLine line(as_typed(argc, argv));
  try {
    line.app().parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return delivered(line.app().exit(help));
  } catch (const CLI::CallForVersion& version) {
    return delivered(line.app().exit(version));
  } catch (const CLI::ExtrasError&) {
    return fail(2, line.unexpected() + " (`tuner --help` lists what is allowed)");
  } catch (const CLI::ParseError& error) {
    return fail(2, std::string(error.what()) + " (`tuner --help` lists what is allowed)");
  }
  try {
    return delivered(line.run(read_settings()));
  } catch (const UsageError& error) {
    return fail(2, error.what());
  } catch (const EnvironmentError& error) {
    if (interrupt_signal() != 0) return 128 + interrupt_signal();  // a helper process did not live to its answer
    return fail(3, error.what());
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    if (std::ferror(stdout)) return delivered(70);
    return fail(70, fmt::format("internal error: {}; please report it with this command line and `tuner --version`: {}",
                                error.what(), as_typed(argc, argv)));
  }
}

}  // namespace tuner
