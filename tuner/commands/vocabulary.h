// The names that configs may use, from the families, strategies and baselines of this program.
#pragma once

#include "tuner/core/config.h"

namespace tuner {

Vocabulary vocabulary();
/// The class that `--class NAME` names. Throws UsageError listing those there are.
Accuracy class_named(const std::string& name);

}  // namespace tuner
