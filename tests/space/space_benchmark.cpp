// Time and peak memory of listing 10^7 raw combinations; the bar is 1 s and 200 MB (docs/ARCHITECTURE.md).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "tuner/family/typed_family.h"
#include "tuner/space/space.h"

namespace {

using namespace tuner;

struct Tunables {
  int T = 1, OC_TILE = 1, IC_TILE = 1, OC_PATCH = 1, T_PATCH = 1, STAGES = 1, UNROLL = 1;
  template <class Visitor>
  static constexpr void visit(Visitor&& v) {
    v("T", &Tunables::T), v("OC_TILE", &Tunables::OC_TILE), v("IC_TILE", &Tunables::IC_TILE);
    v("OC_PATCH", &Tunables::OC_PATCH), v("T_PATCH", &Tunables::T_PATCH), v("STAGES", &Tunables::STAGES);
    v("UNROLL", &Tunables::UNROLL);
  }
};

std::vector<Tunable> ten_million() {
  std::vector<Tunable> axes;
  Tunables::visit([&](const char* name, auto) {
    Tunable axis{name, {}, ""};
    for (std::int64_t value = 1; value <= 10; ++value) axis.values.emplace_back(value);
    axes.push_back(axis);
  });
  return axes;
}

double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void list(benchmark::State& state, const std::vector<Constraint>& constraints) {
  std::size_t valid = 0;
  for (auto _ : state) {
    const Space space(ten_million(), constraints);
    valid = space.size();
  }
  state.counters["valid"] = static_cast<double>(valid);
  state.counters["peak_MB"] = peak_mb();
}

void pruned(benchmark::State& state) {
  const Condition user("T * IC_TILE <= 50", ten_million());
  list(state,
       {constraint<Tunables>({"T", "T_PATCH"}, "T % T_PATCH", [](const Tunables& t) { return t.T % t.T_PATCH == 0; }),
        constraint<Tunables>({"OC_TILE", "OC_PATCH"}, "OC",
                             [](const Tunables& t) { return t.OC_TILE % t.OC_PATCH == 0; }),
        constraint<Tunables>({"T", "OC_TILE", "IC_TILE", "STAGES"}, "shared memory",
                             [](const Tunables& t) { return t.STAGES * t.IC_TILE * (t.T + t.OC_TILE) < 600; }),
        user.constraint()});
}
/// Nothing is refused until every tunable is chosen: no pruning, each of the 10^7 is asked.
void unpruned(benchmark::State& state) {
  list(state,
       {constraint<Tunables>({"T", "OC_TILE", "IC_TILE", "OC_PATCH", "T_PATCH", "STAGES", "UNROLL"}, "sum",
                             [](const Tunables& t) { return (t.T + t.OC_TILE + t.IC_TILE + t.UNROLL) % 2 == 0; })});
}
void unconstrained(benchmark::State& state) { list(state, {}); }

BENCHMARK(pruned)->Unit(benchmark::kMillisecond);
BENCHMARK(unpruned)->Unit(benchmark::kMillisecond);
BENCHMARK(unconstrained)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
