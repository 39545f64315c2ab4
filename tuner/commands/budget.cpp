#include "tuner/commands/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/family/lower_bound.h"

namespace tuner {
double room_to_gain(const ClassRecord& record, const Problem& problem, Accuracy accuracy, const DeviceFacts& device) {
  double least = std::numeric_limits<double>::infinity();
  for (const BaselineRecord& baseline : record.baselines)
    if (baseline.best_of_its_name && baseline.time) least = std::min(least, baseline.time->ms.median);
  Work work;
  work.tensor_fp16 = problem.flop() * (accuracy == Accuracy::fp32 ? 3 : 1);  // fp32 out of three fp16 products
  const double bytes = problem.min_bytes(bytes_of(element_of(accuracy)));
  const double arithmetic = lower_bound_ms(work, device, false);
  const double memory = device.memory_gbps > 0 ? bytes / (device.memory_gbps * 1e9) * 1e3 : 0;
  const double floor = std::max(arithmetic, memory);
  if (!std::isfinite(least) || !(floor > 0)) return 1;
  return std::clamp(std::log2(least / floor), 0.25, 4.0);
}

void RunBudget::measured_baselines(double seconds) {
  spent_ += seconds;
  baselines_ += seconds;
  ++measured_;
}

void RunBudget::ran_off(double seconds) {
  spent_ += seconds;
  run_offs_ += seconds;
  run_off_ = run_offs_ / static_cast<double>(++ran_);
}

std::optional<double> RunBudget::baseline_seconds(std::size_t pairs_left, std::size_t baselines) const {
  if (!seconds_) return std::nullopt;
  const double share = (*seconds_ - spent_) / static_cast<double>(pairs_left) / 3;
  return std::max(2.0, share / static_cast<double>(std::max<std::size_t>(1, baselines)));
}

bool RunBudget::has_room_for_a_pair() const {
  if (!seconds_ || measured_ == 0) return true;
  return *seconds_ - spent_ >= baselines_ / static_cast<double>(measured_) + run_off_;
}

std::optional<double> RunBudget::search_seconds(std::size_t pairs_left, double room) {
  if (!seconds_) return std::nullopt;
  rooms_ += room;
  ++shared_;
  const auto others = static_cast<double>(pairs_left) - 1;
  const double baselines = measured_ > 0 ? baselines_ / static_cast<double>(measured_) : 0;
  const double searching = *seconds_ - spent_ - run_off_ - others * (baselines + run_off_);
  const double mean_room = rooms_ / static_cast<double>(shared_);
  return std::max(least_, searching * room / (room + others * mean_room));
}

}  // namespace tuner
