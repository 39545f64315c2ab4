// Compiled artefacts on disk, by content; shared safely by processes on one file system.
//
// <folder>/objects/<sha256 of content><suffix> holds each artefact once; <folder>/keys/<key>.json is a manifest that
// points to it and carries the compile facts. Both are published whole and never replaced (publish_file). A manifest
// that is unreadable, or whose object is missing or does not hash to its name, is a miss and is rewritten; the log of
// what publish() returns says so then, and no later one.
//
// A folder that cannot be written costs compile time and nothing else: what is compiled lies in a folder of this
// process's own then, and ends with it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/device/device.h"

namespace tuner {

class ArtifactCache {
 public:
  /// `suffix` is ".cubin" or ".so". Creates the folders.
  ArtifactCache(std::filesystem::path folder, std::string suffix);
  ArtifactCache(ArtifactCache&&) noexcept;
  ~ArtifactCache();

  std::optional<CompiledUnit> find(const std::string& key) const;
  /// Stores the artefact and the manifest; returns what a later find() returns (another process's, if it was first).
  /// Throws EnvironmentError where it can be written nowhere at all.
  CompiledUnit publish(const std::string& key, std::string_view artefact, const CompiledUnit& facts) const;
  /// One line once something could not be kept.
  std::vector<std::string> warnings() const;

 private:
  class Spare;  // for what cannot be kept
  std::filesystem::path folder_;
  std::string suffix_;
  std::unique_ptr<Spare> spare_;
};

/// Key of a unit: everything that affects the code (source, every embedded file it includes transitively, options,
/// arch, compiler identity, version of this scheme).
std::string compile_key(const CompileUnit& unit, std::string_view arch, std::string_view compiler_identity,
                        std::string_view extra = {});

}  // namespace tuner
