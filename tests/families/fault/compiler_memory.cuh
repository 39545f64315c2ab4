// Takes all of a compiler's memory: twice as many instances at each depth, none of which is like another.
#pragma once

#include "tests/families/fault/kernel.cuh"

namespace ct1d::fault {

template <int DEPTH, class Path>
struct Bomb;
template <class Path>
struct Left;
template <class Path>
struct Right;
template <class Path>
struct Bomb<0, Path> {
  static constexpr int value = sizeof(Path*);
};
template <int DEPTH, class Path>
struct Bomb {
  static constexpr int value = Bomb<DEPTH - 1, Left<Path>>::value + Bomb<DEPTH - 1, Right<Path>>::value;
};
static_assert(Bomb<40, int>::value > 0, "the compiler's memory held 2^40 instances");

}  // namespace ct1d::fault
