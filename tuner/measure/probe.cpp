#include "tuner/measure/probe.h"

#include "tuner/core/statistics.h"
#include "tuner/measure/measure.h"

namespace tuner {
namespace {

using ct1d::probe::kSlots;
using ct1d::probe::Reading;

constexpr int kMostStamps = 4096;
constexpr std::size_t kStampBytes = kSlots * sizeof(Reading);
constexpr unsigned long long kHoldNanoseconds = 100'000'000;

}  // namespace

CompileUnit measure_unit() {
  CompileUnit unit;
  unit.source = "#include \"tuner/measure/probe_kernels.cuh\"\n";
  unit.kernels = {"ct1d::probe::stamp", "ct1d::probe::hold"};
  return unit;
}

double mean_mhz(const Reading& from, const Reading& to) {
  if (from.nanoseconds == 0 || to.nanoseconds <= from.nanoseconds || to.cycles <= from.cycles) return 0;
  return 1e3 * static_cast<double>(to.cycles - from.cycles) / static_cast<double>(to.nanoseconds - from.nanoseconds);
}

Expected<std::unique_ptr<Probe>> Probe::load(CudaDevice& device, const CompiledUnit& unit) {
  auto module = device.load(unit);
  if (!module) return module.failure();
  return std::unique_ptr<Probe>(new Probe(device, std::move(*module)));
}

Probe::Probe(CudaDevice& device, std::unique_ptr<Module> module)
    : device_(device), module_(std::move(module)), readings_(device.allocate(kMostStamps * kStampBytes)) {
  readings_->fill(0);
  void* pinned = nullptr;
  TUNER_CUDA(cudaHostAlloc(&pinned, 2 * sizeof(unsigned), cudaHostAllocMapped));
  gate_ = static_cast<volatile unsigned*>(pinned);
  gate_[0] = 0;
  gate_[1] = 0;
}

Probe::~Probe() {
  release();
  cudaStreamSynchronize(device_.stream());  // a gate may still look
  cudaFreeHost(const_cast<unsigned*>(gate_));
}

Expected<int> Probe::stamp() {
  if (stamps_ == kMostStamps) return stamps_;
  const ct1d::probe::StampArguments arguments{static_cast<Reading*>(readings_->data()) + stamps_ * kSlots};
  // Enough blocks that some run on the first SMs, wherever the device puts the first ones.
  const auto blocks = static_cast<unsigned>(4 * device_.environment().device.sm_count);
  const Launch launch{"ct1d::probe::stamp", {blocks, 1, 1, 32, 1, 1, 0, 1}};
  if (auto launched = module_->launch_with(launch, &arguments, sizeof arguments); !launched) return launched.failure();
  return ++stamps_;
}

std::vector<double> Probe::clocks() {
  if (stamps_ == 0) return {};
  std::vector<Reading> readings(static_cast<std::size_t>(stamps_) * kSlots);
  const std::size_t bytes = readings.size() * sizeof(Reading);
  readings_->download(readings.data(), bytes);
  TUNER_CUDA(cudaMemsetAsync(readings_->data(), 0, bytes, device_.stream()));
  std::vector<double> clocks;
  for (std::size_t at = 0; at + kSlots < readings.size(); at += kSlots) {
    std::vector<double> sms;
    for (std::size_t sm = 0; sm < kSlots; ++sm)
      if (const double mhz = mean_mhz(readings[at + sm], readings[at + kSlots + sm]); mhz > 0) sms.push_back(mhz);
    clocks.push_back(sms.empty() ? 0 : median(sms));
  }
  stamps_ = 0;
  return clocks;
}

Expected<bool> Probe::hold() {
  unsigned* device_gate = nullptr;
  TUNER_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device_gate), const_cast<unsigned*>(gate_), 0));
  const ct1d::probe::HoldArguments arguments{device_gate, device_gate + 1, ++ticket_, kHoldNanoseconds};
  return module_->launch_with({"ct1d::probe::hold", {1, 1, 1, 1, 1, 1, 0, 1}}, &arguments, sizeof arguments);
}

void Probe::release() { gate_[0] = ticket_; }

bool Probe::opened_by_itself() const { return ticket_ != 0 && gate_[1] == ticket_; }

}  // namespace tuner
