#include "tuner/device/host_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/element.cuh"
#include "tuner/device/host_registers.h"
#include "tuner/device/host_report.h"
#include "tuner/device/matrix_model.h"

namespace tuner {
namespace {

using ct1d::bits_of_float;
using ct1d::float_of_bits;

/// Sums in flight: a signalling NaN, so that arithmetic on it leaves another.
constexpr std::uint32_t kPoisonWord = 0xFFBADBAD;

std::uint32_t* words(float* place) { return reinterpret_cast<std::uint32_t*>(place); }

int row_of(unsigned thread, unsigned element) {
  return static_cast<int>(thread / 32 * 16 + thread % 32 / 4 + (element & 2) * 4);
}
int column_of(unsigned thread, unsigned element) {
  return static_cast<int>(element / 4 * 8 + thread % 4 * 2 + (element & 1));
}

bool same(const ct1d_host::MatrixProduct& x, const ct1d_host::MatrixProduct& y) {
  return x.columns == y.columns && x.bfloat16 == y.bfloat16 && x.accumulate == y.accumulate &&
         (x.a[0] == nullptr) == (y.a[0] == nullptr) && x.a_descriptor == y.a_descriptor &&
         x.b_descriptor == y.b_descriptor;
}

}  // namespace

void MatrixUnit::start() {
  products_.clear();
  first_ = 0;
  for (ThreadState& thread : threads_) thread = {};
  in_flight_.clear();
}

void MatrixUnit::fence(unsigned thread) {
  ThreadState& state = threads_[thread];
  state.fenced = true;
  for (Register& each : state.a) each.fenced = peek(each.place);
  for (SumRegisters& each : state.d)
    for (std::size_t i = 0; i < each.fenced.size(); ++i) each.fenced[i] = peek(each.place + i);
}

/// Whether it holds what it did at the last fence, as far as that is known.
bool MatrixUnit::fenced(ThreadState& state, const Word* a) {
  for (const Register& each : state.a)
    if (each.place == a) return each.fenced == peek(a);
  state.a.push_back({a, peek(a)});
  return true;
}
bool MatrixUnit::fenced(ThreadState& state, const Word* d, std::size_t count) {
  const auto known = std::find_if(state.d.begin(), state.d.end(), [&](const SumRegisters& each) {
    return each.place == d && each.fenced.size() == count;
  });
  const bool is_new = known == state.d.end();
  SumRegisters& registers = is_new ? state.d.emplace_back(SumRegisters{d, std::vector<Word>(count)}) : *known;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_new) registers.fenced[i] = peek(d + i);
    if (registers.fenced[i] != peek(d + i)) return false;
  }
  return true;
}

std::optional<std::string> MatrixUnit::issue(unsigned thread, const ct1d_host::MatrixProduct& what,
                                             ct1d_host::Site site, Random& random) {
  ThreadState& state = threads_[thread];
  if (!state.fenced) return "matrix product before any matrix_fence()";
  if (state.issued == first_ + products_.size()) {
    products_.emplace_back();
    Product& product = products_.back();
    product.what = what;
    product.site = site;
    product.group = state.open_group;
    product.moment = draw_moment(random);
  }
  Product& product = at(state.issued);
  if (auto wrong = join(product, thread, what, site)) return wrong;
  ++state.issued;
  if (++product.issued == kWarpgroupSize && product.moment == Moment::issue) return compute_up_to(state.issued - 1);
  return std::nullopt;
}

std::optional<std::string> MatrixUnit::compute_up_to(std::uint64_t number) {
  for (std::uint64_t earlier = first_; earlier <= number; ++earlier)
    if (at(earlier).sums == at(number).sums)
      if (auto wrong = compute(at(earlier))) return wrong;
  return std::nullopt;
}

std::optional<std::string> MatrixUnit::join(Product& product, unsigned thread, const ct1d_host::MatrixProduct& what,
                                            ct1d_host::Site site) {
  ThreadState& state = threads_[thread];
  if (!same(product.what, what) || !same_place(product.site, site) || product.group != state.open_group)
    return "threads of a warpgroup issue different matrix products, or commit differently: others issued that of " +
           describe(product.site);
  for (std::size_t i = 0; what.a[0] != nullptr && i < 4; ++i) {
    if (!fenced(state, what.a[i])) return "a of a matrix product was written after the thread's last matrix_fence()";
    product.a[thread][i] = what.a[i];
    product.a_at_issue[thread][i] = peek(what.a[i]);
  }
  std::shared_ptr<Sums> sums = product.sums;
  if (auto wrong = take_sums(thread, what, sums)) return wrong;
  if (product.sums != nullptr && product.sums != sums)
    return "threads of a warpgroup issue matrix products into different sums";
  product.sums = sums;
  sums->last = std::max(sums->last, state.issued);
  return std::nullopt;
}

/// Finds the sums in flight, or takes them out of the thread's registers. `sums`: those that other threads gave.
std::optional<std::string> MatrixUnit::take_sums(unsigned thread, const ct1d_host::MatrixProduct& what,
                                                 std::shared_ptr<Sums>& sums) {
  const unsigned count = what.columns / 2;
  for (const auto& each : in_flight_) {
    float* place = each->place[thread];
    if (place == nullptr || place + each->columns / 2 <= what.sums || what.sums + count <= place) continue;
    if (place != what.sums || each->columns != what.columns)
      return "matrix product into sums that overlap others in flight";
    for (unsigned i = 0; i < count; ++i)
      if (peek(words(place) + i) != kPoisonWord) return "d was written while a matrix product into it was in flight";
    sums = each;
    return std::nullopt;
  }
  if (!fenced(threads_[thread], words(what.sums), count))
    return "d of a matrix product was written after the thread's last matrix_fence()";
  if (sums == nullptr) {
    sums = std::make_shared<Sums>();
    sums->columns = what.columns;
    sums->values.resize(std::size_t{kMatrixRows} * what.columns);
    in_flight_.push_back(sums);
  }
  if (sums->place[thread] != nullptr || sums->columns != what.columns || sums->issued == kWarpgroupSize)
    return "threads of a warpgroup issue matrix products into different sums";
  sums->place[thread] = what.sums;
  ++sums->issued;
  for (unsigned i = 0; i < count; ++i) {
    sums->values[static_cast<std::size_t>(row_of(thread, i)) * what.columns +
                 static_cast<std::size_t>(column_of(thread, i))] = float_of_bits(peek(words(what.sums) + i));
    poke(words(what.sums) + i, kPoisonWord);
  }
  return std::nullopt;
}

/// Number after the last product that a wait covers.
std::uint64_t MatrixUnit::covered(unsigned thread, unsigned groups_in_flight) const {
  const ThreadState& state = threads_[thread];
  std::uint64_t end = state.waited;
  while (end < state.issued && at(end).group + groups_in_flight < state.open_group) ++end;
  return end;
}

bool MatrixUnit::ready(unsigned thread, unsigned groups_in_flight) const {
  const std::uint64_t end = covered(thread, groups_in_flight);
  for (std::uint64_t i = threads_[thread].waited; i < end; ++i)
    if (at(i).issued < kWarpgroupSize) return false;
  return true;
}

std::string MatrixUnit::describe_missing(unsigned thread, unsigned groups_in_flight) const {
  const std::uint64_t end = covered(thread, groups_in_flight);
  for (std::uint64_t i = threads_[thread].waited; i < end; ++i)
    if (at(i).issued < kWarpgroupSize)
      return fmt::format("{} of {} threads have issued the product of {}", at(i).issued, kWarpgroupSize,
                         describe(at(i).site));
  return "all threads have issued the products";
}

std::optional<std::string> MatrixUnit::wait(unsigned thread, unsigned groups_in_flight) {
  ThreadState& state = threads_[thread];
  const std::uint64_t end = covered(thread, groups_in_flight);
  for (; state.waited < end; ++state.waited) {
    Product& product = at(state.waited);
    if (auto wrong = compute_up_to(state.waited)) return wrong;
    for (std::size_t i = 0; product.a[thread][0] != nullptr && i < 4; ++i)
      if (peek(product.a[thread][i]) != product.a_at_issue[thread][i])
        return "a was overwritten in flight (its place in memory changed between the matrix product of " +
               describe(product.site) + " and this wait; keep it with pin() after the wait)";
    if (product.sums->last == state.waited)
      if (auto wrong = give_back(thread, *product.sums, product)) return wrong;
  }
  const auto done = [](const auto& sums) { return sums->returned == kWarpgroupSize; };
  in_flight_.erase(std::remove_if(in_flight_.begin(), in_flight_.end(), done), in_flight_.end());
  while (!products_.empty() &&
         std::all_of(threads_.begin(), threads_.end(), [&](const ThreadState& each) { return each.waited > first_; })) {
    products_.pop_front();
    ++first_;
  }
  return std::nullopt;
}

std::optional<std::string> MatrixUnit::give_back(unsigned thread, Sums& sums, const Product& product) {
  float* place = sums.place[thread];
  if (place == nullptr) return std::nullopt;
  const unsigned count = sums.columns / 2;
  for (unsigned i = 0; i < count; ++i)
    if (peek(words(place) + i) != kPoisonWord)
      return "d was written while the matrix product of " + describe(product.site) + " was in flight";
  for (unsigned i = 0; i < count; ++i)
    poke(words(place) + i, bits_of_float(sums.values[static_cast<std::size_t>(row_of(thread, i)) * sums.columns +
                                                     static_cast<std::size_t>(column_of(thread, i))]));
  for (SumRegisters& each : threads_[thread].d)
    for (std::size_t i = 0; each.place == words(place) && i < each.fenced.size(); ++i)
      each.fenced[i] = peek(each.place + i);
  sums.place[thread] = nullptr;
  ++sums.returned;
  return std::nullopt;
}

std::optional<std::string> MatrixUnit::pass(Random& random) {
  const std::uint64_t drawn = random.next();
  if ((drawn & 15) != 0) return std::nullopt;
  for (Product& product : products_) {
    if (product.issued < kWarpgroupSize) return std::nullopt;
    if (product.computed) continue;
    return product.moment == Moment::between ? compute(product) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> MatrixUnit::thread_exits(unsigned thread) const {
  const ThreadState& state = threads_[thread];
  if (state.waited == state.issued) return std::nullopt;
  return "a thread exits without having waited for the matrix product of " + describe(at(state.waited).site);
}

}  // namespace tuner
