#include "tuner/device/host_bulk.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tuner/device/host_report.h"

namespace tuner {
namespace {

constexpr std::size_t kMaxThreads = 1024;

}  // namespace

Moment draw_moment(Random& random) {
  const Moment moments[] = {Moment::issue, Moment::between, Moment::between, Moment::last};
  return moments[random.next() >> 62];
}

void BulkCopies::start() {
  loads_.clear();
  stores_.clear();
  batches_.clear();
  groups_.assign(kMaxThreads, 0);
}

std::optional<std::string> BulkCopies::issue(Load load, std::vector<std::uint16_t>& released) {
  shared_.async_poison(load.target, load.data.size());
  loads_.push_back(std::move(load));
  if (loads_.back().moment == Moment::issue) return complete_load(loads_.size() - 1, released);
  return std::nullopt;
}

std::optional<std::string> BulkCopies::complete_load(std::size_t i, std::vector<std::uint16_t>& released) {
  std::swap(loads_[i], loads_.back());
  const Load load = std::move(loads_.back());
  loads_.pop_back();
  shared_.async_write(load.target, load.data.data(), load.data.size());
  return barriers_.complete_bytes(load.barrier, static_cast<unsigned>(load.data.size()), released);
}

std::optional<std::string> BulkCopies::issue(Store store) {
  stores_.push_back(std::move(store));
  Store& last = stores_.back();
  if (last.moment != Moment::issue) return std::nullopt;
  if (auto wrong = read(last)) return wrong;
  write(last);
  stores_.pop_back();
  return std::nullopt;
}

std::optional<std::string> BulkCopies::issue(Batch batch, std::vector<std::uint16_t>& released) {
  if (auto wrong = barriers_.usable(batch.barrier)) return wrong;
  batches_.push_back(std::move(batch));
  if (batches_.back().moment != Moment::issue) return std::nullopt;
  return complete_batch(batches_.size() - 1, released);
}

std::optional<std::string> BulkCopies::complete_batch(std::size_t i, std::vector<std::uint16_t>& released) {
  std::swap(batches_[i], batches_.back());
  const Batch batch = std::move(batches_.back());
  batches_.pop_back();
  for (const PendingCopies::Copy& copy : batch.copies) PendingCopies::complete(copy);
  return barriers_.arrive(batch.barrier, 0, released);
}

std::optional<std::string> BulkCopies::end_batches(unsigned thread, std::vector<std::uint16_t>& released) {
  std::vector<std::uint16_t> all;
  std::optional<std::string> wrong;
  for (std::size_t i = batches_.size(); i > 0 && !wrong; --i) {
    if (batches_[i - 1].thread != thread) continue;
    wrong = complete_batch(i - 1, all);
    released.insert(released.end(), all.begin(), all.end());
    all.clear();
  }
  return wrong;
}

std::optional<std::string> BulkCopies::read(Store& store) {
  if (std::exchange(store.read, true)) return std::nullopt;
  if (auto wrong = shared_.uncovered(store.source, store.bytes))
    return *wrong + "; the bulk store of " + describe(store.site) + " reads it";
  const unsigned char* source = shared_.at(store.source, store.bytes);
  store.data.assign(source, source + store.bytes);
  return std::nullopt;
}

void BulkCopies::write(const Store& store) { std::memcpy(store.target, store.data.data(), store.bytes); }

std::optional<std::string> BulkCopies::wait(unsigned thread, unsigned groups_in_flight, bool read_only) {
  std::size_t kept = 0;
  std::optional<std::string> wrong;
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    Store& store = stores_[i];
    const bool covered = store.thread == thread && store.group + groups_in_flight < groups_[thread];
    if (covered && !wrong) wrong = read(store);
    if (covered && !read_only && !wrong) {
      write(store);
      continue;
    }
    if (kept != i) stores_[kept] = std::move(store);
    ++kept;
  }
  stores_.resize(kept);
  return wrong;
}

std::optional<std::string> BulkCopies::pass(Random& random, std::vector<std::uint16_t>& released) {
  const std::uint64_t drawn = random.next();
  if ((drawn & 3) != 0) return std::nullopt;
  std::size_t i = (drawn >> 32) % (loads_.size() + batches_.size() + stores_.size());
  if (i < loads_.size()) return loads_[i].moment == Moment::between ? complete_load(i, released) : std::nullopt;
  i -= loads_.size();
  if (i < batches_.size()) return batches_[i].moment == Moment::between ? complete_batch(i, released) : std::nullopt;
  Store& store = stores_[i - batches_.size()];
  return store.moment == Moment::between ? read(store) : std::nullopt;
}

std::optional<std::string> BulkCopies::force(Random& random, std::vector<std::uint16_t>& released) {
  const std::size_t i = (random.next() >> 32) % (loads_.size() + batches_.size());
  return i < loads_.size() ? complete_load(i, released) : complete_batch(i - loads_.size(), released);
}

std::optional<std::string> BulkCopies::thread_exits(unsigned thread) const {
  for (const Store& store : stores_)
    if (store.thread == thread && !store.read)
      return "a thread exits while its bulk store of " + describe(store.site) + " may still read shared memory";
  return std::nullopt;
}

std::optional<std::string> BulkCopies::block_ends() {
  for (const Store& store : stores_) write(store);
  stores_.clear();
  batches_.clear();
  if (loads_.empty()) return std::nullopt;
  const Load& load = loads_.front();
  return fmt::format("the block ends while {} bulk loads are in flight, the first by thread {} at {}", loads_.size(),
                     load.thread, describe(load.site));
}

}  // namespace tuner
