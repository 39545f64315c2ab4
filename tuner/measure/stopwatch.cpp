#include "tuner/measure/stopwatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastFlush = std::size_t{64} << 20;
constexpr int kMostHeld = 128;  // launches, of several kernels each: a stream's queue holds about a thousand commands
constexpr double kStampEveryMs = 0.2;  // of GPU work; the nanosecond counter may tick in whole microseconds

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Stopwatch::Stopwatch(CudaDevice& device, L2 l2, Probe* probe) : device_(device), l2_(l2), probe_(probe) {
  // Refused where the device cannot set L2 aside, and then nothing persists.
  persisting_ = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) == cudaSuccess;
  if (persisting_) persisting_ = cudaCtxResetPersistingL2Cache() == cudaSuccess;
  cudaGetLastError();
  // Twice L2, so that whatever replacement it uses, nothing of the last call stays.
  if (l2_ == L2::cold)
    flush_ = device.allocate(std::max(kLeastFlush, 2 * static_cast<std::size_t>(device.environment().device.l2_bytes)));
  for (int i = 0; i < 5; ++i) {  // what the first waits for is not idleness
    const auto start = Clock::now();
    TUNER_CUDA(cudaDeviceSynchronize());
    if (const double ms = ms_since(start); i == 1 || (i > 1 && ms < idle_ms_)) idle_ms_ = ms;
  }
  if (probe_) probe_->clocks();  // forgets what a batch that failed left
}

Expected<bool> Stopwatch::enqueue(Runnable& runnable, int launches, double expected_ms) {
  if (used_ == 0 && probe_ && may_hold_)
    if (auto held = probe_->hold(); !held) return held;
  auto enqueued = enqueue_sample(runnable, launches, expected_ms);
  held_launches_ += launches;
  if (probe_ && (!enqueued || held_launches_ > kMostHeld)) probe_->release();
  return enqueued;
}

Expected<bool> Stopwatch::enqueue_sample(Runnable& runnable, int launches, double expected_ms) {
  if (used_ == brackets_.size()) brackets_.push_back(std::make_unique<Bracket>());
  Bracket& bracket = *brackets_[used_];
  if (probe_ && (stamps_ == 0 || since_stamp_ms_ >= kStampEveryMs)) {
    const auto stamps = probe_->stamp();
    if (!stamps) return stamps.failure();
    stamps_ = *stamps;
    since_stamp_ms_ = 0;
  }
  since_stamp_ms_ += launches * expected_ms;
  bracket.launches = launches;
  bracket.after_stamp = static_cast<std::size_t>(std::max(stamps_ - 1, 0));
  if (flush_) TUNER_CUDA(cudaMemsetAsync(flush_->data(), 0, flush_->size(), device_.stream()));
  TUNER_CUDA(cudaEventRecord(bracket.start.get(), device_.stream()));
  for (int i = 0; i < launches; ++i)
    if (auto launched = runnable.launch(); !launched) return launched;
  TUNER_CUDA(cudaEventRecord(bracket.stop.get(), device_.stream()));
  ++used_;
  return true;
}

Expected<std::vector<Sample>> Stopwatch::collect() {
  if (probe_ && stamps_ > 0)
    if (const auto stamps = probe_->stamp(); !stamps) return stamps.failure();
  if (probe_) probe_->release();
  if (auto done = device_.synchronize(); !done) return done.failure();
  if (probe_ && probe_->opened_by_itself()) may_hold_ = false;
  return read();
}

Expected<std::vector<Sample>> Stopwatch::read() {
  const std::vector<double> clocks = probe_ ? probe_->clocks() : std::vector<double>();
  std::vector<Sample> samples(used_);
  for (std::size_t i = 0; i < used_; ++i) {
    const Bracket& bracket = *brackets_[i];
    float ms = 0;
    TUNER_CUDA(cudaEventElapsedTime(&ms, bracket.start.get(), bracket.stop.get()));
    samples[i].ms = static_cast<double>(ms) / bracket.launches;
    if (bracket.after_stamp < clocks.size()) samples[i].mhz = clocks[bracket.after_stamp];
  }
  used_ = 0;
  held_launches_ = 0;
  stamps_ = 0;
  since_stamp_ms_ = 0;
  return samples;
}

Expected<Sample> Stopwatch::time_once(Runnable& runnable, int launches) {
  if (auto enqueued = enqueue_sample(runnable, launches, kStampEveryMs); !enqueued) return enqueued.failure();
  cudaStreamSynchronize(device_.stream());  // its error, if any, comes again
  const auto start = Clock::now();
  if (auto done = device_.synchronize(); !done) return done.failure();
  const double busy_ms = ms_since(start);
  least_busy_ms_ = std::min(least_busy_ms_.value_or(busy_ms), busy_ms);
  if (probe_) {  // only now: its kernel would wait for SMs that work elsewhere keeps, and so hide it
    if (const auto stamps = probe_->stamp(); !stamps) return stamps.failure();
    if (auto done = device_.synchronize(); !done) return done.failure();
  }
  auto samples = read();
  if (!samples) return samples.failure();
  return samples->back();
}

std::optional<Failure> Stopwatch::cheated(const Runnable& runnable, double launch_ms) const {
  if (least_busy_ms_ && works_elsewhere(*least_busy_ms_, idle_ms_, launch_ms))
    return Failure{Outcome::implausible,
                   fmt::format("{}: work outside the timed stream: the device was busy for at least {:.3g} ms after it",
                               runnable.name(), *least_busy_ms_),
                   {}};
  std::size_t bytes = 0;
  if (persisting_ && cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess && bytes > 0)
    return Failure{Outcome::implausible,
                   fmt::format("{}: set {} bytes of L2 aside for lines that survive a flush", runnable.name(), bytes),
                   {}};
  return std::nullopt;
}

}  // namespace tuner
