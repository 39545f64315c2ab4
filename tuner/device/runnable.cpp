#include <algorithm>

#include "tuner/device/device.h"

namespace tuner {
namespace {

constexpr std::uint32_t kPoison = 0xFFFFFFFF;  // NaN in every element type

class ProgramRunnable : public Runnable {
 public:
  ProgramRunnable(Device& device, const Problem& problem, const Program& program, std::unique_ptr<Module> module,
                  std::string name)
      : module_(std::move(module)),
        run_(launches(program.run)),
        prepare_(launches(program.prepare)),
        work_(program.work),
        name_(std::move(name)) {
    if (program.packed_bytes > 0) packed_ = device.allocate(program.packed_bytes);
    if (program.workspace_bytes > 0) workspace_ = device.allocate(program.workspace_bytes);
    arguments_.geometry = problem.geometry();
    arguments_.workspace = workspace_ ? workspace_->data() : nullptr;
    packing_.geometry = arguments_.geometry;
    packing_.packed = packed_ ? packed_->data() : nullptr;
  }

  std::string name() const override { return name_; }
  Work work() const override { return work_; }

  Expected<bool> bind(const Tensors& tensors) override {
    for (Buffer* buffer : {packed_.get(), workspace_.get()})
      if (buffer) buffer->fill(kPoison);
    packing_.w = tensors.w;
    arguments_.x = tensors.x;
    arguments_.weights = packed_ ? packed_->data() : tensors.w;
    arguments_.bias = tensors.bias;
    arguments_.y = tensors.y;
    auto prepared = prepare();
    if (!prepared) return prepared;
    return true;
  }

  Expected<bool> launch() override {
    for (const Launch& each : run_)
      if (auto launched = module_->launch(each, arguments_); !launched) return launched;
    return true;
  }

  Expected<bool> prepare() override {
    for (const Launch& each : prepare_)
      if (auto launched = module_->launch(each, packing_); !launched) return launched;
    return !prepare_.empty();
  }

  std::size_t guard_violations() override {
    std::size_t bytes = 0;
    for (Buffer* buffer : {packed_.get(), workspace_.get()})
      if (buffer) bytes += buffer->guard_violations();
    return bytes;
  }

  double occupancy() override {
    double lowest = run_.empty() ? 0 : 1;
    for (const Launch& each : run_) lowest = std::min(lowest, module_->occupancy(each));
    return lowest;
  }

 private:
  static std::vector<Launch> launches(const std::vector<Launch>& all) {
    std::vector<Launch> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [](const Launch& each) {
      return each.shape.grid_x > 0 && each.shape.grid_y > 0 && each.shape.grid_z > 0;
    });
    return kept;
  }

  std::unique_ptr<Module> module_;
  std::vector<Launch> run_, prepare_;
  Work work_;
  std::string name_;
  std::unique_ptr<Buffer> packed_, workspace_;
  ct1d::RunArguments arguments_{};
  ct1d::PrepareArguments packing_{};
};

}  // namespace

Expected<std::unique_ptr<Runnable>> make_runnable(Device& device, const Problem& problem, const Program& program,
                                                  const CompiledUnit& unit, std::string name) {
  auto module = device.load(unit);
  if (!module) return module.failure();
  try {
    return std::unique_ptr<Runnable>(
        std::make_unique<ProgramRunnable>(device, problem, program, std::move(*module), std::move(name)));
  } catch (const std::bad_alloc&) {
    return Failure{Outcome::launch_failed,
                   "the device has too little memory for " + std::to_string(program.packed_bytes) +
                       " bytes of packed weights and " + std::to_string(program.workspace_bytes) +
                       " bytes of workspace",
                   {}};
  }
}

}  // namespace tuner
