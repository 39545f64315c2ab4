#include "tuner/space/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "tuner/core/failure.h"
#include "tuner/core/json_node.h"

namespace tuner {
namespace {

const char* const kFunctions[] = {"min", "max", "abs", "floor", "ceil"};

class Translator {
 public:
  explicit Translator(const std::string& expression) : text_(expression) { result_.text = expression; }

  Translation translate() {
    compared_.push_back(false);
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (std::isspace(static_cast<unsigned char>(c)))
        result_.text[at_++] = ' ';
      else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_')
        word();
      else if (std::isdigit(static_cast<unsigned char>(c)) || c == '.')
        number();
      else if (c == '"' || c == '\'')
        literal(c);
      else
        symbol();
    }
    return std::move(result_);
  }

 private:
  void put(std::size_t length, std::string_view spelling) {
    for (std::size_t i = 0; i < length; ++i) result_.text[at_ + i] = i < spelling.size() ? spelling[i] : ' ';
    at_ += length;
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' ||
            (text_[end] == '.' && end + 1 < text_.size() && std::isalpha(static_cast<unsigned char>(text_[end + 1])))))
      ++end;
    std::string name = text_.substr(at_, end - at_);
    if (name == "and" || name == "or") {
      compared_.back() = false;
      return put(name.size(), name == "and" ? "&&" : "||");
    }
    if (name == "not") return put(3, "~");
    std::replace(name.begin(), name.end(), '.', '_');
    put(name.size(), name);
    if (std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions)) return;
    if (std::find(result_.names.begin(), result_.names.end(), name) == result_.names.end())
      result_.names.push_back(name);
  }

  void number() {
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.')) ++end;
    const std::string digits = text_.substr(at_, end - at_);
    if (digits.find_first_not_of("0123456789.") != std::string::npos ||
        std::count(digits.begin(), digits.end(), '.') > 1 || digits == ".")
      refuse_condition(text_, fmt::format("\"{}\" at column {} is not a number", digits, at_ + 1));
    at_ = end;
  }

  void literal(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) refuse_condition(text_, fmt::format("the quote at column {} is not closed", at_ + 1));
    const std::string name = text_.substr(at_ + 1, end - at_ - 1);
    const auto known = std::find(result_.literals.begin(), result_.literals.end(), name);
    const std::string id = std::to_string(known - result_.literals.begin());
    if (known == result_.literals.end()) result_.literals.push_back(name);
    if (id.size() > end - at_ + 1) refuse_condition(text_, "too many quoted names");
    put(end - at_ + 1, id);
  }

  void symbol() {
    static const char* const two[] = {"==", "!=", "<=", ">=", "&&", "||"};
    const std::string_view rest = std::string_view(text_).substr(at_);
    for (const char* operation : two) {
      if (rest.substr(0, 2) != operation) continue;
      if (rest[0] == '&' || rest[0] == '|')
        compared_.back() = false;
      else
        compare();
      at_ += 2;
      return;
    }
    switch (rest[0]) {
      case '<':
      case '>':
        compare();
        break;
      case '(':
        compared_.push_back(false);
        break;
      case ')':
        if (compared_.size() == 1) refuse_condition(text_, fmt::format("\")\" at column {} closes nothing", at_ + 1));
        compared_.pop_back();
        break;
      case ',':
        compared_.back() = false;
        break;
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
      case '!':
        break;
      case '=':
        refuse_condition(text_, fmt::format("\"=\" at column {}: equality is ==", at_ + 1));
      default:
        refuse_condition(
            text_, fmt::format(
                       "unexpected {} at column {}; allowed are tunables, numbers, quoted names, ( ) , + - * / % "
                       "== != < <= > >= and or not",
                       std::isprint(static_cast<unsigned char>(rest[0])) ? fmt::format("\"{}\"", rest[0]) : "character",
                       at_ + 1));
    }
    ++at_;
  }

  void compare() {
    if (compared_.back())
      refuse_condition(text_,
                       fmt::format("comparisons cannot be chained (column {}): write a <= b and b <= c", at_ + 1));
    compared_.back() = true;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<bool> compared_;  // by depth of parentheses: a comparison stands since the last and, or, comma
  Translation result_;
};

}  // namespace

Translation translate(const std::string& expression) { return Translator(expression).translate(); }

void refuse_condition(const std::string& expression, const std::string& fault) {
  throw UsageError(fmt::format("restrict: \"{}\": {}", one_line(expression, 1000), fault));
}

}  // namespace tuner
