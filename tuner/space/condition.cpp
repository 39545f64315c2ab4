#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tuner/space/expression.h"
#include "tuner/space/space.h"

namespace tuner {
namespace {

double remainder_of(double a, double b) { return std::fmod(a, b); }
double not_of(double a) { return a == 0 ? 1 : 0; }
double min_of(double a, double b) { return a < b ? a : b; }
double max_of(double a, double b) { return a > b ? a : b; }
double abs_of(double a) { return std::fabs(a); }
double floor_of(double a) { return std::floor(a); }
double ceil_of(double a) { return std::ceil(a); }

/// muParser with our operators only, and the variables that it reads.
struct Parsed {
  mu::Parser parser;
  std::vector<double> variables;

  Parsed(const std::string& expression, const Translation& translation) : variables(translation.names.size(), 1) {
    parser.ClearFun();
    parser.ClearConst();
    parser.ClearInfixOprt();
    parser.ClearPostfixOprt();
    try {
      parser.DefineInfixOprt("-", [](double a) { return -a; });
      parser.DefineInfixOprt("+", [](double a) { return a; });
      parser.DefineInfixOprt("!", not_of);
      parser.DefineInfixOprt("~", not_of, mu::prLOGIC);  // `not a == b` is not (a == b), and binds tighter than `and`
      parser.DefineOprt("%", remainder_of, mu::prMUL_DIV);
      parser.DefineFun("min", min_of);
      parser.DefineFun("max", max_of);
      parser.DefineFun("abs", abs_of);
      parser.DefineFun("floor", floor_of);
      parser.DefineFun("ceil", ceil_of);
      for (std::size_t i = 0; i < variables.size(); ++i) parser.DefineVar(translation.names[i], &variables[i]);
      parser.SetExpr(translation.text);
      int results = 0;
      parser.Eval(results);
      if (results != 1) refuse_condition(expression, "several values; one condition is expected");
    } catch (const mu::ParserError& error) {
      refuse_condition(expression, fault_of(error, expression));
    }
  }

  static std::string fault_of(const mu::ParserError& error, const std::string& expression) {
    const std::size_t at = static_cast<std::size_t>(std::max(0, error.GetPos()));
    switch (error.GetCode()) {
      case mu::ecUNEXPECTED_EOF:
        return "it ends where a value is expected";
      case mu::ecEMPTY_EXPRESSION:
        return "empty";
      case mu::ecMISSING_PARENS:
        return "a \"(\" is not closed";
      case mu::ecTOO_MANY_PARAMS:
      case mu::ecTOO_FEW_PARAMS:
        return "a function has a wrong number of arguments (min and max take two, the others one)";
      default:
        break;
    }
    const std::string token = error.GetToken();
    if (token.empty() || at > expression.size()) return error.GetMsg();
    return fmt::format("unexpected \"{}\" near column {}", token, at + 1);
  }
};

enum class Part { number, threads, x, y, literal };

/// Where a variable's value comes from: the place in a configuration, and which part of it.
struct Source {
  std::size_t axis;
  Part part;
};

std::optional<Source> source_of(const std::string& name, const std::vector<Tunable>& tunables) {
  for (std::size_t axis = 0; axis < tunables.size(); ++axis) {
    const Tunable& tunable = tunables[axis];
    const bool block = !tunable.values.empty() && std::holds_alternative<Block>(tunable.values[0]);
    const bool named = !tunable.values.empty() && std::holds_alternative<std::string>(tunable.values[0]);
    if (name == tunable.name) return Source{axis, block ? Part::threads : named ? Part::literal : Part::number};
    if (block && name == tunable.name + "_x") return Source{axis, Part::x};
    if (block && name == tunable.name + "_y") return Source{axis, Part::y};
  }
  return std::nullopt;
}

double number_of(const Value& value, Part part, const std::vector<std::string>& literals) {
  switch (part) {
    case Part::number:
      return static_cast<double>(std::get<std::int64_t>(value));
    case Part::threads:
      return static_cast<double>(std::get<Block>(value).x) * std::get<Block>(value).y;
    case Part::x:
      return std::get<Block>(value).x;
    case Part::y:
      return std::get<Block>(value).y;
    case Part::literal: {
      const auto found = std::find(literals.begin(), literals.end(), std::get<std::string>(value));
      return found == literals.end() ? -1 : static_cast<double>(found - literals.begin());
    }
  }
  return 0;
}

std::string list_of(const std::vector<Tunable>& tunables) {
  std::string list;
  for (const Tunable& tunable : tunables) list += (list.empty() ? "" : ", ") + tunable.name;
  return list;
}

/// A quoted name that no named tunable of the condition can take in any family would make it constant: a typing error.
void check_literals(const std::string& expression, const Translation& translation,
                    const std::vector<std::vector<Tunable>>& families) {
  std::vector<std::string> allowed;
  for (const auto& tunables : families)
    for (const std::string& name : translation.names) {
      const std::optional<Source> source = source_of(name, tunables);
      if (!source || source->part != Part::literal) continue;
      for (const Value& value : tunables[source->axis].values) allowed.push_back(std::get<std::string>(value));
    }
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  for (const std::string& literal : translation.literals)
    if (!std::binary_search(allowed.begin(), allowed.end(), literal))
      refuse_condition(expression, fmt::format("\"{}\" is no value of a tunable in it{}{}", literal,
                                               allowed.empty() ? "" : "; allowed: ", fmt::join(allowed, ", ")));
}

Constraint bind(const std::string& expression, const Translation& translation, const std::vector<Tunable>& tunables) {
  std::vector<Source> sources;
  Constraint constraint;
  for (const std::string& name : translation.names) {
    const std::optional<Source> source = source_of(name, tunables);
    if (!source)
      refuse_condition(expression, fmt::format("no tunable is called {}; there are {}", name, list_of(tunables)));
    sources.push_back(*source);
    const std::string& read = tunables[source->axis].name;
    if (std::find(constraint.reads.begin(), constraint.reads.end(), read) == constraint.reads.end())
      constraint.reads.push_back(read);
  }
  constraint.reason = "restrict: " + expression;
  const auto parsed = std::make_shared<Parsed>(expression, translation);
  constraint.holds = [parsed, sources, literals = translation.literals](const Configuration& configuration) {
    for (std::size_t i = 0; i < sources.size(); ++i)
      parsed->variables[i] = number_of(configuration[sources[i].axis].second, sources[i].part, literals);
    const double value = parsed->parser.Eval();
    return value != 0 && !std::isnan(value);
  };
  return constraint;
}

}  // namespace

Condition::Condition(const std::string& expression, const std::vector<Tunable>& tunables) {
  const Translation translation = translate(expression);
  constraint_ = bind(expression, translation, tunables);
  check_literals(expression, translation, {tunables});
}

std::vector<std::vector<Constraint>> bind_conditions(const std::vector<std::string>& expressions,
                                                     const std::vector<std::vector<Tunable>>& families) {
  std::vector<std::vector<Constraint>> bound(families.size());
  for (const std::string& expression : expressions) {
    const Translation translation = translate(expression);
    (void)Parsed(expression, translation);  // its syntax counts even where it applies to no family
    for (const std::string& name : translation.names) {
      const bool known = std::any_of(families.begin(), families.end(),
                                     [&](const auto& tunables) { return source_of(name, tunables).has_value(); });
      if (known) continue;
      std::vector<Tunable> all;
      for (const auto& tunables : families)
        for (const Tunable& tunable : tunables)
          if (std::none_of(all.begin(), all.end(), [&](const Tunable& t) { return t.name == tunable.name; }))
            all.push_back(tunable);
      refuse_condition(expression, fmt::format("no family has a tunable {}; there are {}", name, list_of(all)));
    }
    check_literals(expression, translation, families);
    for (std::size_t i = 0; i < families.size(); ++i) {
      const bool applies =
          std::all_of(translation.names.begin(), translation.names.end(),
                      [&](const std::string& name) { return source_of(name, families[i]).has_value(); });
      if (applies) bound[i].push_back(bind(expression, translation, families[i]));
    }
  }
  return bound;
}

}  // namespace tuner
