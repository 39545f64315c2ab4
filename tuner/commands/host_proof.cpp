#include "tuner/commands/host_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "tuner/commands/interrupt.h"
#include "tuner/core/device_facts.h"
#include "tuner/family/family.h"

namespace tuner {
namespace {

std::int64_t tunable_or(const Configuration& configuration, std::string_view name, std::int64_t fallback) {
  for (const auto& [key, value] : configuration)
    if (key == name)
      if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return fallback;
}

double products(const Problem& problem) { return problem.flop() / 2; }

constexpr double kMostHostBytes = 4e9;

/// Inputs in float; of an output the float, the float64 reference and the bound.
double host_bytes(const Problem& problem) {
  return 4.0 * (static_cast<double>(problem.x_count()) + static_cast<double>(problem.w_count())) +
         24.0 * static_cast<double>(problem.y_count());
}

}  // namespace

Problem cut_for_host(const Problem& problem, const Configuration& configuration, double max_products) {
  Problem cut = problem;
  cut.batch = std::min<std::int64_t>(problem.batch, 2);
  cut.groups = std::min<std::int64_t>(problem.groups, 3);
  // One tile and a part of the next in each direction; an even length stays even, so that vector paths are met.
  const std::int64_t in = std::min(problem.in_channels / problem.groups, tunable_or(configuration, "IC_TILE", 32) + 8);
  const std::int64_t out =
      std::min(problem.out_channels / problem.groups, tunable_or(configuration, "OC_TILE", 32) + 8);
  const std::int64_t span = tunable_or(configuration, "T", 128);
  const std::int64_t least = (2 * problem.padding + problem.stride) / problem.stride + 4;
  cut.length = std::min(problem.length, std::max(least, (span + span / 2 + 8) / std::min(problem.stride, span)));
  cut.in_channels = in * cut.groups;
  cut.out_channels = out * cut.groups;
  // Too much for a CPU: first fewer batches and groups, then fewer input channels, then fewer output channels.
  while (products(cut) > max_products) {
    if (cut.batch > 1) {
      cut.batch = 1;
    } else if (cut.groups > 1) {
      cut.in_channels /= cut.groups;
      cut.out_channels /= cut.groups;
      cut.groups = 1;
    } else if (cut.in_channels > 3) {
      cut.in_channels = (cut.in_channels + 1) / 2;
    } else if (cut.out_channels > 3) {
      cut.out_channels = (cut.out_channels + 1) / 2;
    } else {
      break;
    }
  }
  return illegal(cut) ? problem : cut;
}

HostProver::HostProver(const Settings& settings, int jobs, std::uint64_t seed, const CompileLimits& limits)
    : seed_(seed) {
  CompilerOptions options;
  options.cache = settings.cache;
  options.jobs = jobs;
  options.limits = limits;
  compiler_ = make_host_compiler(options, settings.cxx);
}

Worker& HostProver::worker() {
  if (!worker_) {
    WorkerOptions options;
    options.device = fmt::format("host:{}", seed_);
    options.preload = compiler_->preload();
    options.grace_seconds = 10;  // a CPU that compiles beside it
    options.interrupted = [] { return interrupt_signal() != 0; };
    worker_ = start_worker(options);
  }
  return *worker_;
}

std::string HostProver::key(const BuildContext& context, const Variant& variant) const {
  BuildContext cut = context;
  cut.problem = cut_for_host(context.problem, variant.tunables);
  return compiler_->key(find_family(variant.family)->build(cut, variant.tunables).unit);
}

void HostProver::prove(const BuildContext& context, const std::vector<Variant>& variants,
                       const std::function<void(std::size_t, const Proof&)>& each) {
  std::vector<BuildContext> cuts;
  std::vector<std::future<Expected<CompiledUnit>>> units;
  for (const Variant& variant : variants) {
    cuts.push_back(context);
    cuts.back().problem = cut_for_host(context.problem, variant.tunables);
    if (host_bytes(cuts.back().problem) > kMostHostBytes) {
      std::promise<Expected<CompiledUnit>> too_large;
      too_large.set_value(Failure{Outcome::unproven,
                                  fmt::format("compiled; not run on the CPU: {} needs {:.0f} GB of memory there",
                                              summary(cuts.back().problem), host_bytes(cuts.back().problem) / 1e9),
                                  {}});
      units.push_back(too_large.get_future());
      continue;
    }
    units.push_back(compiler_->compile(find_family(variant.family)->build(cuts.back(), variant.tunables).unit));
  }
  for (std::size_t i = 0; i < variants.size() && interrupt_signal() == 0; ++i) {
    Proof proof{{}, cuts[i].problem, 0};
    if (!wait_unless_interrupted(units[i])) break;
    const auto unit = units[i].get();
    try {
      if (!unit) {
        proof.evaluation = failed_evaluation(unit.failure());
      } else if (const auto loaded = worker().load(cuts[i], Values::normal, seed_); !loaded) {
        proof.evaluation = failed_evaluation(loaded.failure());
      } else {
        proof.plain_error = *loaded;
        proof.evaluation = worker().evaluate(variants[i], *unit, nullptr);
      }
    } catch (const EnvironmentError& error) {  // Host execution itself does not start
      proof.evaluation =
          failed_evaluation({Outcome::unproven, fmt::format("not run on the CPU: {}", error.what()), {}});
    }
    if (interrupt_signal() != 0) break;
    each(i, proof);
  }
}

}  // namespace tuner
