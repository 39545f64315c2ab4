// The names that configs may use, from the families, strategies and baselines of this program.
#pragma once

#include "tuner/core/config.h"

namespace tuner {

Vocabulary vocabulary();

}  // namespace tuner
