// wgmma: an estimate of time to choose first configurations by. Host code.
#pragma once

#include "kernels/wgmma/layout.h"

namespace ct1d::wgmma {

/// Cycles of an SM that a call takes, roughly: fitted to the variants of the seed problem measured on an H200 within
/// 20 %. What a step costs beside its products hardly depends on how wide they are, so few wide tiles are best until
/// they leave SMs without work.
inline double cycles_of(const Tunables& t, const Geometry& g, int element_bytes) {
  const Extent e = extent_of(t, g);
  const Schedule s = schedule_of(t, g, element_bytes, run_shape(t, g, element_bytes).grid_x);
  const double products = 2.0 * t.products * t.taps * t.OC_TILE;  // of 64 rows N / 2 cycles each
  double step = products + (t.ahead != 0 ? 650 : 950);  // less where x is converted ahead: counted, not measured
  if (t.products == 1 && t.promote == 1) step += 3.7 * t.OC_TILE;
  if (t.resident == 0) step += 150 + step_bytes(t) / 48.0;
  const double tile = t.split > 1 ? 2000 + 15.0 * t.OC_TILE : 4000 + 40.0 * t.OC_TILE;
  double finish = 0;  // a second launch, and what it reads
  if (t.split > 1) finish = 6000 + 2.0 * static_cast<double>(workspace_bytes(t, g, element_bytes)) / (t.blocks * 24.0);
  const double weights = t.resident != 0 ? static_cast<double>(e.steps) * step_bytes(t) / 24.0 : 0;
  return 3000 + finish + weights + s.worker_tiles * (static_cast<double>(e.steps) * step + tile);
}

}  // namespace ct1d::wgmma
