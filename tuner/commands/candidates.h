// What a search chooses from: the spaces of all families that serve a problem, as one list.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tuner/core/config.h"
#include "tuner/family/family.h"
#include "tuner/space/space.h"

namespace tuner {

/// A line for each condition of `restrict` that leaves a family of the config as it is, because that lacks a tunable
/// named there: "restrict \"T > 64\" does not touch wgmma".
std::vector<std::string> untouched_families(const Config& config);

class Candidates {
 public:
  Candidates() = default;
  /// Families that the config names (all where it names none) and that serve the problem, narrowed as the config says.
  /// Refused families and combinations are counted in `rejections` as "family: reason".
  Candidates(const Config& config, const BuildContext& context, std::map<std::string, std::uint64_t>& rejections);

  std::size_t size() const;
  Variant at(std::size_t index) const;
  /// Those of its family that differ from it in one tunable.
  std::vector<std::size_t> neighbours(std::size_t index) const;
  /// Where each family's default configuration stands, where it is listed, the least bounded by the device first:
  /// strategies may begin there.
  std::vector<std::size_t> defaults(const BuildContext& context) const;

 private:
  struct Part {
    const Family* family;
    Space space;
  };
  std::vector<Part> parts_;
};

}  // namespace tuner
