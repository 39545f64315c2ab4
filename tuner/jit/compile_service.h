// A Compiler over a backend: the cache in front, jobs behind, and equal units that are under way compiled once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tuner/jit/cache.h"
#include "tuner/jit/jit.h"
#include "tuner/jit/job_queue.h"
#include "tuner/jit/solitude.h"

namespace tuner {

/// A kind of compiler. All but start() may be called from several threads at a time.
class CompileBackend {
 public:
  struct Artefact {
    std::string content;
    CompiledUnit facts;  // all but the file and its hash
  };

  virtual ~CompileBackend() = default;
  /// Called once, on a thread that outlives the backend. Throws EnvironmentError.
  virtual void start() {}
  virtual std::string identity() const = 0;
  virtual std::vector<std::string> warnings() const { return {}; }
  virtual std::string preload() const { return {}; }
  virtual std::string key(const CompileUnit& unit) const = 0;
  /// Gives up as soon as `cancel` is readable. A failure is compile_failed where the compiler refuses the unit, crashed
  /// where it ended otherwise or met a limit, which may be another's doing, and unproven where the machine did not let
  /// it work.
  virtual Expected<Artefact> build(const CompileUnit& unit, int cancel) = 0;
  virtual Expected<std::string> ptx(const CompileUnit& unit, int cancel);
};

class CompileService : public Compiler {
 public:
  /// Throws what the backend's start() throws.
  CompileService(std::unique_ptr<CompileBackend> backend, ArtifactCache cache, int jobs);

  std::string identity() const override { return backend_->identity(); }
  std::string key(const CompileUnit& unit) const override { return backend_->key(unit); }
  /// Those of the cache may come at any time.
  std::vector<std::string> warnings() const override;
  std::string preload() const override { return backend_->preload(); }
  std::future<Expected<CompiledUnit>> compile(const CompileUnit& unit) override;
  Expected<std::string> ptx(const CompileUnit& unit) override;

 private:
  using Promise = std::promise<Expected<CompiledUnit>>;

  Expected<CompiledUnit> compile_now(const CompileUnit& unit, const std::string& key);
  Expected<CompileBackend::Artefact> build(const CompileUnit& unit);
  void on_queue(const std::function<void()>& job);

  std::unique_ptr<CompileBackend> backend_;
  ArtifactCache cache_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Promise>> under_way_;  // by key
  Solitude solitude_;
  JobQueue queue_;  // last: stops before anything that its jobs use goes
};

}  // namespace tuner
