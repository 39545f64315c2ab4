// Failure as a value, and the two exceptions a command cannot go on from.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tuner {

/// What became of a variant or a baseline. The names are those of the result file (docs/FORMATS.md).
enum class Outcome {
  ok,
  rejected,        // a constraint or the device's limits refuse it before it is compiled
  compile_failed,  // the compiler refused it, crashed, or ran out of its time or memory limit
  launch_failed,   // the driver refused the module or the launch
  wrong_result,    // an accuracy bound, a guard band or an input was violated
  timed_out,       // the watchdog ended it
  crashed,         // it took its worker down (illegal address and the like)
  implausible,     // faster than the machine's limits allow
  cut,             // measured until it was certain to be slower than the best
  unproven,        // compiled, but nothing could run it
};

std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view name);

/// Why something did not work, in words a person can act on. `log` is the long form (compiler log, sanitizer report).
struct Failure {
  Outcome outcome = Outcome::rejected;
  std::string reason;
  std::string log;
};

/// A value or the Failure that stands in its place.
template <class Value>
class Expected {
 public:
  Expected(Value value) : content_(std::move(value)) {}
  Expected(Failure failure) : content_(std::move(failure)) {}

  explicit operator bool() const { return content_.index() == 0; }
  Value& operator*() { return std::get<0>(content_); }
  const Value& operator*() const { return std::get<0>(content_); }
  Value* operator->() { return &std::get<0>(content_); }
  const Value* operator->() const { return &std::get<0>(content_); }
  const Failure& failure() const { return std::get<1>(content_); }

 private:
  std::variant<Value, Failure> content_;
};

/// A wrong command line, config or input file: one line (what, where, what is allowed), exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The environment lacks what was demanded, or the output cannot be written: one line, exit code 3.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tuner
