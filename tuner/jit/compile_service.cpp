#include "tuner/jit/compile_service.h"

#include <exception>

namespace tuner {

Expected<std::string> Compiler::ptx(const CompileUnit&) {
  return Failure{Outcome::rejected, identity() + " gives no PTX", {}};
}

Expected<std::string> CompileBackend::ptx(const CompileUnit&, int) {
  return Failure{Outcome::rejected, identity() + " gives no PTX", {}};
}

CompileService::CompileService(std::unique_ptr<CompileBackend> backend, ArtifactCache cache, int jobs)
    : backend_(std::move(backend)), cache_(std::move(cache)), queue_(jobs) {
  on_queue([this] { backend_->start(); });
}

std::vector<std::string> CompileService::warnings() const {
  std::vector<std::string> all = backend_->warnings();
  for (std::string& warning : cache_.warnings()) all.push_back(std::move(warning));
  return all;
}

/// Runs a job on one of the queue's threads, waits, and passes on what it throws.
void CompileService::on_queue(const std::function<void()>& job) {
  std::packaged_task<void()> task(job);
  auto done = task.get_future();
  queue_.submit([&task] { task(); });
  done.get();
}

std::future<Expected<CompiledUnit>> CompileService::compile(const CompileUnit& unit) {
  Promise promise;
  auto future = promise.get_future();
  const std::string key = backend_->key(unit);
  if (auto hit = cache_.find(key)) {
    promise.set_value(std::move(*hit));
    return future;
  }
  const std::lock_guard lock(mutex_);
  auto& waiting = under_way_[key];
  waiting.push_back(std::move(promise));
  if (waiting.size() > 1) return future;
  queue_.submit([this, unit, key] {
    const Expected<CompiledUnit> result = compile_now(unit, key);
    std::vector<Promise> promises;
    {
      const std::lock_guard inner(mutex_);
      promises = std::move(under_way_.extract(key).mapped());
    }
    for (Promise& each : promises) each.set_value(result);
  });
  return future;
}

Expected<CompiledUnit> CompileService::compile_now(const CompileUnit& unit, const std::string& key) {
  if (queue_.stopping()) return Failure{Outcome::unproven, "the compile was abandoned before it started", {}};
  try {
    if (auto hit = cache_.find(key)) return std::move(*hit);  // another process may have been quicker
    auto built = build(unit);
    if (!built) return built.failure();
    return cache_.publish(key, built->content, built->facts);
  } catch (const std::exception& error) {  // a full disk, say: nothing that the unit is to blame for
    return Failure{Outcome::unproven, error.what(), {}};
  }
}

/// What the compiler does not refuse is tried once more with no other compile beside it. Nothing is known of a unit
/// whose compile then fails for a reason that is the machine's.
Expected<CompileBackend::Artefact> CompileService::build(const CompileUnit& unit) {
  const auto once = [&]() -> Expected<CompileBackend::Artefact> {
    try {
      return backend_->build(unit, queue_.stop_descriptor());
    } catch (const std::exception& error) {  // no file can be written, say
      return Failure{Outcome::unproven, error.what(), {}};
    }
  };
  auto built = solitude_.together(once);
  if (built || built.failure().outcome == Outcome::compile_failed || queue_.stopping()) return built;
  built = solitude_.alone(once);
  if (built || built.failure().outcome == Outcome::compile_failed || queue_.stopping()) return built;
  const Outcome outcome =
      built.failure().outcome == Outcome::crashed ? Outcome::compile_failed : built.failure().outcome;
  return Failure{outcome, built.failure().reason + "; twice, the second time with no other compile",
                 built.failure().log};
}

Expected<std::string> CompileService::ptx(const CompileUnit& unit) {
  Expected<std::string> text = Failure{};
  on_queue([&] { text = backend_->ptx(unit, queue_.stop_descriptor()); });
  return text;
}

}  // namespace tuner
