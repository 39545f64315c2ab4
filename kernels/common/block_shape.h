// Thread block shape as a tunable: x along t, y along output channels.
#pragma once

namespace ct1d {

struct BlockShape {
  int x;
  int y;
  constexpr int threads() const { return x * y; }
};

}  // namespace ct1d
