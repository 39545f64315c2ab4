#include "tuner/jit/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <system_error>

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

}  // namespace

ArtifactCache::ArtifactCache(std::filesystem::path folder, std::string suffix)
    : folder_(std::move(folder)), suffix_(std::move(suffix)) {
  for (const char* name : {"objects", "keys"}) {
    std::error_code error;
    std::filesystem::create_directories(folder_ / name, error);
    if (error) throw EnvironmentError((folder_ / name).string() + ": cannot be created: " + error.message());
  }
}

std::optional<CompiledUnit> ArtifactCache::find(const std::string& key) const {
  const auto text = content_of(folder_ / "keys" / (key + ".json"));
  if (!text) return std::nullopt;
  auto unit = read_manifest(*text, key);
  if (!unit) return std::nullopt;
  unit->file = folder_ / "objects" / (unit->sha256 + suffix_);
  const auto artefact = content_of(unit->file);
  if (!artefact || sha256(*artefact) != unit->sha256) return std::nullopt;
  return unit;
}

CompiledUnit ArtifactCache::publish(const std::string& key, std::string_view artefact,
                                    const CompiledUnit& facts) const {
  CompiledUnit unit = facts;
  unit.sha256 = sha256(artefact);
  unit.file = folder_ / "objects" / (unit.sha256 + suffix_);
  const bool damaged = !publish_file(unit.file, artefact) && content_of(unit.file) != artefact;
  if (damaged) write_file_atomically(unit.file, artefact);  // its name says what it must hold

  const std::filesystem::path manifest = folder_ / "keys" / (key + ".json");
  const std::string text = manifest_of(key, unit);
  if (publish_file(manifest, text)) return damaged ? repaired(unit) : unit;
  if (auto first = find(key)) return damaged ? repaired(*first) : *first;

  // What stands there is damaged. A whole manifest is never removed: it is looked at again under the lock.
  const Descriptor lock = lock_for_repair(folder_);
  if (auto first = find(key)) return *first;
  std::error_code ignored;
  std::filesystem::remove_all(manifest, ignored);
  if (publish_file(manifest, text)) return repaired(unit);
  const auto first = find(key);
  return first ? *first : unit;
}

}  // namespace tuner
