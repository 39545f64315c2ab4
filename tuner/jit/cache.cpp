#include "tuner/jit/cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <system_error>

#include "tuner/core/failure.h"
#include "tuner/core/file.h"
#include "tuner/core/hash.h"
#include "tuner/core/json.h"
#include "tuner/jit/wire.h"

namespace tuner {
namespace {

constexpr int kScheme = 1;

std::optional<std::string> content_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    return read_file(path);
  } catch (const UsageError&) {  // removed between the two looks, or not ours to read
    return std::nullopt;
  }
}

/// A log may quote bytes of a source that are not UTF-8.
Json as_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json facts_to_json(const std::string& key, const CompiledUnit& unit) {
  Json symbols = Json::array();
  for (const auto& [expression, name] : unit.symbols) symbols.push_back({expression, name});
  return {{"scheme", kScheme},
          {"key", key},
          {"sha256", unit.sha256},
          {"symbols", symbols},
          {"registers", unit.registers},
          {"spill_bytes", unit.spill_bytes},
          {"static_shared_bytes", unit.static_shared_bytes},
          {"barriers", unit.barriers},
          {"compile_ms", unit.compile_ms},
          {"log", as_utf8(unit.log)}};
}

/// Throws what nlohmann/json throws where a field is missing or of another type.
CompiledUnit facts_from_json(const Json& json) {
  CompiledUnit unit;
  unit.sha256 = json.at("sha256").get<std::string>();
  for (const Json& pair : json.at("symbols"))
    unit.symbols.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  unit.registers = json.at("registers").get<int>();
  unit.spill_bytes = json.at("spill_bytes").get<int>();
  unit.static_shared_bytes = json.at("static_shared_bytes").get<int>();
  unit.barriers = json.at("barriers").get<int>();
  unit.log = json.at("log").get<std::string>();
  unit.from_cache = true;
  return unit;
}

/// The manifest carries a hash of its own facts, so that a damaged one cannot pass for another.
std::string manifest_of(const std::string& key, const CompiledUnit& unit) {
  const Json facts = facts_to_json(key, unit);
  return dump_json({{"check", sha256(facts.dump())}, {"facts", facts}});
}

std::optional<CompiledUnit> read_manifest(const std::string& text, const std::string& key) {
  try {
    const Json json = Json::parse(text);
    const Json& facts = json.at("facts");
    if (json.at("check").get<std::string>() != sha256(facts.dump())) return std::nullopt;
    if (facts.at("scheme") != kScheme || facts.at("key") != key) return std::nullopt;
    return facts_from_json(facts);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

CompiledUnit repaired(CompiledUnit unit) {
  unit.log = "the cache held a damaged entry for this unit, which was replaced\n" + unit.log;
  return unit;
}

/// Held while a damaged manifest is removed. Where the file system knows no locks, repairs are merely not serialised.
Descriptor lock_for_repair(const std::filesystem::path& folder) {
  Descriptor lock(::open((folder / "repair.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock) ::flock(lock.get(), LOCK_EX);
  return lock;
}

std::optional<CompiledUnit> find_in(const std::filesystem::path& folder, const std::string& suffix,
                                    const std::string& key) {
  const auto text = content_of(folder / "keys" / (key + ".json"));
  if (!text) return std::nullopt;
  auto unit = read_manifest(*text, key);
  if (!unit) return std::nullopt;
  unit->file = folder / "objects" / (unit->sha256 + suffix);
  const auto artefact = content_of(unit->file);
  if (!artefact || sha256(*artefact) != unit->sha256) return std::nullopt;
  return unit;
}

/// Throws EnvironmentError.
CompiledUnit publish_in(const std::filesystem::path& folder, const std::string& suffix, const std::string& key,
                        std::string_view artefact, const CompiledUnit& facts) {
  CompiledUnit unit = facts;
  unit.sha256 = sha256(artefact);
  unit.file = folder / "objects" / (unit.sha256 + suffix);
  const bool damaged = !publish_file(unit.file, artefact) && content_of(unit.file) != artefact;
  if (damaged) write_file_atomically(unit.file, artefact);  // its name says what it must hold

  const std::filesystem::path manifest = folder / "keys" / (key + ".json");
  const std::string text = manifest_of(key, unit);
  if (publish_file(manifest, text)) return damaged ? repaired(unit) : unit;
  if (auto first = find_in(folder, suffix, key)) return damaged ? repaired(*first) : *first;

  // What stands there is damaged. A whole manifest is never removed: it is looked at again under the lock.
  const Descriptor lock = lock_for_repair(folder);
  if (auto first = find_in(folder, suffix, key)) return *first;
  std::error_code ignored;
  std::filesystem::remove_all(manifest, ignored);
  if (publish_file(manifest, text)) return repaired(unit);
  const auto first = find_in(folder, suffix, key);
  return first ? *first : unit;
}

}  // namespace

/// Folders of the process's own, made when they are needed and removed with what is in them.
class ArtifactCache::Spare {
 public:
  explicit Spare(std::string suffix) : suffix_(std::move(suffix)) {}
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    std::error_code ignored;
    for (const auto& folder : folders_) std::filesystem::remove_all(folder, ignored);
  }

  void warn(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (warnings_.empty())
      warnings_.push_back("the cache of compiled kernels cannot be written, and the run goes on without it: " + why);
  }
  std::vector<std::string> warnings() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  std::optional<CompiledUnit> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    for (const auto& folder : folders_)
      if (auto unit = find_in(folder, suffix_, key)) return unit;
    return std::nullopt;
  }

  /// In the first place that takes it.
  CompiledUnit publish(const std::string& key, std::string_view artefact, const CompiledUnit& facts) {
    const std::lock_guard lock(mutex_);
    std::string why = "no temporary folder can be made";
    for (std::size_t i = 0; i < kPlaces.size(); ++i) {
      if (i == folders_.size()) {
        std::string pattern = std::string(kPlaces.at(i)) + "/tuner-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) pattern.clear();
        folders_.emplace_back(pattern);
      }
      if (folders_[i].empty()) continue;
      try {
        return publish_in(folders_[i], suffix_, key, artefact, facts);
      } catch (const EnvironmentError& error) {
        why = error.what();
      }
    }
    throw EnvironmentError(why);
  }

 private:
  static constexpr std::array<const char*, 2> kPlaces{"/tmp", "/dev/shm"};

  std::string suffix_;
  mutable std::mutex mutex_;
  std::vector<std::filesystem::path> folders_;  // by place, empty where none can be made
  std::vector<std::string> warnings_;
};

ArtifactCache::ArtifactCache(std::filesystem::path folder, std::string suffix)
    : folder_(std::move(folder)), suffix_(std::move(suffix)), spare_(std::make_unique<Spare>(suffix_)) {
  for (const char* name : {"objects", "keys"}) {
    std::error_code error;
    std::filesystem::create_directories(folder_ / name, error);
    if (error) spare_->warn((folder_ / name).string() + ": cannot be created: " + error.message());
  }
}

ArtifactCache::ArtifactCache(ArtifactCache&&) noexcept = default;
ArtifactCache::~ArtifactCache() = default;

std::optional<CompiledUnit> ArtifactCache::find(const std::string& key) const {
  auto unit = find_in(folder_, suffix_, key);
  return unit ? unit : spare_->find(key);
}

CompiledUnit ArtifactCache::publish(const std::string& key, std::string_view artefact,
                                    const CompiledUnit& facts) const {
  try {
    return publish_in(folder_, suffix_, key, artefact, facts);
  } catch (const EnvironmentError& error) {
    spare_->warn(error.what());
    return spare_->publish(key, artefact, facts);
  }
}

std::vector<std::string> ArtifactCache::warnings() const { return spare_->warnings(); }

}  // namespace tuner
