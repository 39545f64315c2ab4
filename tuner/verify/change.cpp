#include "tuner/verify/change.h"

#include <algorithm>
#include <cmath>

#include "tuner/verify/generator.cuh"
#include "tuner/verify/inputs.h"
#include "tuner/verify/resident.h"

namespace tuner {
namespace {

namespace check = ct1d::check;
using check::uint64;

constexpr uint64 kChanges = 3;    // elements of x
constexpr uint64 kAttempts = 16;  // draws for each, since some may show nowhere
constexpr double kClearly = 4;    // times the bound

/// The i-th draw.
uint64 drawn(uint64 i) { return check::mix(0x7c15 + i); }

std::int64_t nans_in(const Wanted& wanted) {
  return std::count_if(wanted.begin(), wanted.end(), [](const check::Wanted& one) { return std::isnan(one.y); });
}

}  // namespace

std::optional<std::int64_t> drawn_place(const Problem& problem, uint64 bits) {
  const ct1d::Geometry g = problem.geometry();
  const auto pick = [&](std::int64_t count) {
    bits = check::mix(bits);
    return static_cast<std::int64_t>(bits % static_cast<uint64>(count));
  };
  const std::int64_t b = pick(g.batch), oc = pick(g.out_channels), ic = pick(g.in_per_group());
  const check::Taps taps = check::taps_of(g, pick(g.length_out));
  if (taps.count == 0) return std::nullopt;
  const std::int64_t channel = oc / g.out_per_group() * g.in_per_group() + ic;
  const std::int64_t place = (b * g.in_channels + channel) * g.length + taps.x - pick(taps.count) * taps.x_step;
  const bool is_end = place == 0 || place == problem.x_count() - 1;
  return is_end && problem.x_count() > 2 ? std::nullopt : std::optional(place);
}

std::vector<std::int64_t> outputs_reached(const Problem& problem, std::int64_t place) {
  const ct1d::Geometry g = problem.geometry();
  const std::int64_t row = place / g.length, first = place % g.length * g.stride - g.padding;
  const std::int64_t b = row / g.in_channels, group = row % g.in_channels / g.in_per_group();
  std::vector<std::int64_t> outputs;
  for (std::int64_t oc = group * g.out_per_group(); oc < (group + 1) * g.out_per_group(); ++oc)
    for (std::int64_t k = 0; k < g.kernel_size; ++k)
      if (const std::int64_t t = first + k * g.dilation; t >= 0 && t < g.length_out)
        outputs.push_back((b * g.out_channels + oc) * g.length_out + t);
  return outputs;
}

bool shows(const Wanted& before, const Wanted& after, const check::Format& format) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto kept = static_cast<float>(check::round_to(before[i].y, format));
    if (check::judge(after[i].y, after[i].bound, kept, format) > kClearly) return true;
  }
  return false;
}

float ResidentVerifier::read_x(std::int64_t place) {
  const Element element = element_of(accuracy_);
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(element)));
  x_->download(bytes.data(), bytes.size(), static_cast<std::size_t>(place) * bytes.size());
  return widened(bytes, element).front();
}

void ResidentVerifier::write_x(std::int64_t place, float value) {
  const auto bytes = stored({value}, element_of(accuracy_));
  x_->upload(bytes.data(), bytes.size(), static_cast<std::size_t>(place) * bytes.size());
}

/// Adds a place whose change shows: of the other sign, and as far away as that takes.
bool ResidentVerifier::change_one(std::uint64_t draw, Change& change) {
  const auto place = drawn_place(problem_, draw);
  if (!place || std::find(change.places.begin(), change.places.end(), *place) != change.places.end()) return false;
  const check::Format format = check::format_of(static_cast<check::Storage>(element_of(accuracy_)));
  const auto outputs = outputs_reached(problem_, *place);
  const float first = read_x(*place);
  const Wanted before = wanted(outputs);
  for (int exponent = 0; exponent <= 12; exponent += 3) {
    const float value = std::ldexp(first < 0 ? 1.0f : -1.0f, exponent);
    write_x(*place, value);
    if (!shows(before, wanted(outputs), format)) continue;
    change.places.push_back(*place);
    change.values.push_back(value);
    change.first.push_back(first);
    change.outputs.insert(change.outputs.end(), outputs.begin(), outputs.end());
    return true;
  }
  write_x(*place, first);
  return false;
}

Change ResidentVerifier::find_change() {
  Change change;
  if (problem_.y_count() == 0) return change;
  for (uint64 i = 0; i < kChanges; ++i)
    for (uint64 attempt = 0; attempt < kAttempts && !change_one(drawn(i * kAttempts + attempt), change); ++attempt) {
    }
  std::sort(change.outputs.begin(), change.outputs.end());
  change.outputs.erase(std::unique(change.outputs.begin(), change.outputs.end()), change.outputs.end());
  for (const std::int64_t output : change.outputs) {
    const auto row = static_cast<std::size_t>(output / problem_.length_out());
    if (change.rows.empty() || change.rows.back() != row) change.rows.push_back(row);
  }
  change.row_norms.assign(change.rows.size(), 0.0);
  change.wanted = wanted(change.outputs);
  remember_changed_inputs();
  for (std::size_t i = 0; i < change.places.size(); ++i) write_x(change.places[i], change.first[i]);
  change.nans = reference_.nans + nans_in(change.wanted) - nans_in(wanted(change.outputs));
  return change;
}

/// Neither x nor y: only what is held to be right.
void ResidentVerifier::exchange_wanted() {
  exchange_reference(change_->outputs, change_->wanted);
  for (std::size_t i = 0; i < change_->rows.size(); ++i)
    std::swap(reference_.row_norm[change_->rows[i]], change_->row_norms[i]);
  std::swap(reference_.nans, change_->nans);
}

void ResidentVerifier::write_places() {
  for (std::size_t i = 0; i < change_->places.size(); ++i)
    write_x(change_->places[i], changed_ ? change_->values[i] : change_->first[i]);
}

void ResidentVerifier::change_inputs() {
  if (!change_) change_ = find_change();
  changed_ = !changed_;
  exchange_wanted();
  write_places();
  y_->fill(kNanWord);
}

bool ResidentVerifier::is_for_other_inputs() {
  if (!change_ || change_->places.empty()) return false;
  exchange_wanted();
  const bool is = static_cast<bool>(compare_y());
  exchange_wanted();
  return is;
}

}  // namespace tuner
