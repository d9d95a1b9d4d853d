#include "engine/codelets/BlockCounts.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/codelets/CodeletText.hpp"
#include "engine/codelets/LoopCost.hpp"

namespace ipujax::engine {
namespace {

struct Token {
  std::string text;
  std::size_t at = 0;  ///< in the text
};

bool isLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The tokens outside system headers (flag 3 of a line marker), without the contents of literals.
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& text) : text_(text) {
    while (i_ < text_.size()) next();
  }
  std::vector<Token> take() { return std::move(tokens_); }

 private:
  void next() {
    const char c = text_[i_];
    if (c == '#' && (i_ == 0 || text_[i_ - 1] == '\n')) return marker();
    if (system_) return skipLine();
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i_;
    } else if (text_.compare(i_, 2, "R\"") == 0) {
      raw();
    } else if (c == '"' || c == '\'') {
      literal(c);
    } else {
      const std::size_t begin = i_++;
      if (isLetter(c)) {
        const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
        // 1'000 and 1e-5 are one token each.
        while (i_ < text_.size() && (isLetter(text_[i_]) || (number && continuesNumber()))) ++i_;
      }
      tokens_.push_back({text_.substr(begin, i_ - begin), begin});
    }
  }

  bool continuesNumber() const {
    const char c = text_[i_], before = text_[i_ - 1];
    return c == '.' || (c == '\'' && i_ + 1 < text_.size() && isLetter(text_[i_ + 1])) ||
           ((c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p'));
  }

  void skipLine() { i_ = std::min(text_.find('\n', i_), text_.size() - 1) + 1; }

  void marker() {
    const std::size_t begin = i_;
    skipLine();
    const auto line = std::string_view(text_).substr(begin, i_ - begin);
    system_ = beginsSystemHeader(line).value_or(system_);
  }

  void raw() {
    const std::size_t open = text_.find('(', i_);
    const std::string close = ")" + text_.substr(i_ + 2, open - i_ - 2) + "\"";
    tokens_.push_back({"\"\"", i_});
    i_ = std::min(text_.find(close, open), text_.size() - close.size()) + close.size();
  }

  void literal(char quote) {
    tokens_.push_back({"\"\"", i_});
    for (++i_; i_ < text_.size() && text_[i_] != quote; ++i_)
      if (text_[i_] == '\\') ++i_;
    ++i_;
  }

  const std::string& text_;
  std::size_t i_ = 0;
  bool system_ = false;
  std::vector<Token> tokens_;
};

/// Finds the blocks and the number that each counts. Lives for one text.
class Blocks {
 public:
  explicit Blocks(const std::string& text) : t_(Tokenizer(text).take()) {
    walk(0, t_.size(), nullptr);
  }

  /// The insertions before each position of the text.
  std::multimap<std::size_t, std::string> insertions() const { return insertions_; }

 private:
  const std::string& tok(std::size_t i) const {
    static const std::string none;
    return i < t_.size() ? t_[i].text : none;
  }

  /// The position after the bracket that closes the one at i.
  std::size_t behind(std::size_t i) const {
    const std::string open = tok(i);
    const std::string close = open == "{" ? "}" : open == "(" ? ")" : "]";
    int depth = 0;
    for (; i < t_.size(); ++i) {
      if (tok(i) == open) ++depth;
      if (tok(i) == close && --depth == 0) return i + 1;
    }
    return t_.size();
  }

  /// The position after the statement that begins at i.
  std::size_t behindStatement(std::size_t i) const {
    if (tok(i) == "{") return behind(i);
    if (tok(i) == "if") {
      if (tok(++i) == "constexpr") ++i;
      i = behindStatement(behind(i));
      return tok(i) == "else" ? behindStatement(i + 1) : i;
    }
    if (tok(i) == "for" || tok(i) == "while" || tok(i) == "switch")
      return behindStatement(behind(i + 1));
    if (tok(i) == "do") i = behindStatement(i + 1);
    for (; i < t_.size() && tok(i) != ";"; ++i)
      if (tok(i) == "(" || tok(i) == "{" || tok(i) == "[") i = behind(i) - 1;
    return i + 1;
  }

  /// Whether the brace at i begins statements that run when control reaches it.
  bool isBlock(std::size_t i) const {
    static const std::set<std::string> kBefore = {")",        "else",  "do",       "try",
                                                  "override", "const", "noexcept", "mutable"};
    return i > 0 && kBefore.count(tok(i - 1)) != 0;
  }

  bool follows(std::size_t i, std::size_t next) const {
    return next < t_.size() && t_[next].at == t_[i].at + t_[i].text.size();
  }

  /// Whether & or * is part of a type or takes an address, and so is not an operation.
  bool isOfType(std::size_t i) const {
    static const std::set<std::string> kTypes = {
        "auto", "const",  "char",   "bool",  "int",   "unsigned", "float", "double", "half",
        ">",    "float2", "float4", "half2", "half4", "half8",    "short", "void",   "uint8_t"};
    static const std::set<std::string> kBeforeAddress = {"(", "=",      ",", ";",
                                                         "{", "return", "[", ":"};
    if (tok(i) != "&" && tok(i) != "*") return false;
    if (i > 0 && (kTypes.count(tok(i - 1)) != 0 || tok(i + 1) == ">")) return true;
    return tok(i) == "&" && i > 0 && kBeforeAddress.count(tok(i - 1)) != 0;
  }

  /// Slots that the operation at i takes; functions of the IPU's headers count their own.
  double slotsAt(std::size_t i) const {
    if (tok(i) == "load_postinc" || tok(i) == "store_postinc" || isOfType(i)) return 0;
    if (i > 2 && tok(i - 1) == ":" && tok(i - 2) == ":" && tok(i - 3) == "ipu") return 0;
    const bool again = (tok(i) == "+" || tok(i) == "-" || tok(i) == "&" || tok(i) == "|") &&
                       follows(i, i + 1) && (tok(i + 1) == tok(i) || tok(i + 1) == ">");
    return again ? 0 : operationCycles(tok(i));  // ++ is one, and -> none
  }

  /// Counts the body of a condition or loop, a block or a statement that begins at i.
  std::size_t body(std::size_t i, double more) {
    if (tok(i) == "{") return block(i, more);
    if (tok(i) == ";" && more == 0) return i + 1;
    const std::size_t end = behindStatement(i);
    double slots = more;
    const std::size_t begin = t_[i].at;
    walk(i, end, &slots);
    if (end > t_.size()) return t_.size();
    count(begin, slots, "{");
    insertions_.emplace(t_[end - 1].at + t_[end - 1].text.size(), "}");
    return end;
  }

  std::size_t block(std::size_t i, double more) {
    const std::size_t end = behind(i);
    double slots = more;
    walk(i + 1, end > i + 1 ? end - 1 : end, &slots);
    count(t_[i].at + 1, slots, "");
    return end;
  }

  void count(std::size_t at, double slots, const char* before) {
    const auto number = static_cast<unsigned>(std::lround(slots));
    if (number == 0 && *before == 0) return;
    insertions_.emplace(
        at, before + std::string("::ipujax_cycles::ran(") + std::to_string(number) + ");");
  }

  double slotsBetween(std::size_t i, std::size_t end) {
    double slots = 0;
    walk(i, end, &slots);
    return slots;
  }

  /// Adds the operations of tokens to `slots`, except those of blocks among them.
  void walk(std::size_t i, std::size_t end, double* slots) {
    while (i < end) {
      const bool inside = slots != nullptr;
      if (inside && (tok(i) == "for" || tok(i) == "while") && tok(i + 1) == "(") {
        const std::size_t parentheses = behind(i + 1);
        // A `for` costs one per iteration, a `while` one plus the operations of its condition.
        const double more = tok(i) == "for" ? 1 : 1 + slotsBetween(i + 1, parentheses);
        i = body(parentheses, more);
      } else if (inside && tok(i) == "if" && (tok(i + 1) == "(" || tok(i + 1) == "constexpr")) {
        const std::size_t open = tok(i + 1) == "(" ? i + 1 : i + 2;
        walk(open, behind(open), slots);
        i = body(behind(open), 0);
      } else if (inside && tok(i) == "else" && tok(i + 1) != "if") {
        i = body(i + 1, 0);
      } else if (inside && tok(i) == "do") {
        const std::size_t condition = behindStatement(i + 1) + 1;
        body(i + 1, 1 + slotsBetween(condition, behind(condition)));
        i = behind(condition);
      } else if (inside && tok(i) == "switch" && tok(i + 1) == "(") {
        const std::size_t open = behind(i + 1);
        walk(i + 1, open, slots);
        // Its labels may be anywhere, so all cases count with the switch.
        const std::size_t close = behind(open);
        walk(open + 1, close, slots);
        i = close;
      } else if (tok(i) == "{" && isBlock(i)) {
        i = block(i, 0);
      } else {
        if (inside) *slots += slotsAt(i);
        ++i;
      }
    }
  }

  std::vector<Token> t_;
  std::multimap<std::size_t, std::string> insertions_;
};

}  // namespace

std::string withBlockCounts(const std::string& preprocessed) {
  std::string made;
  std::size_t from = 0;
  const auto insertions = Blocks(preprocessed).insertions();
  for (const auto& [at, what] : insertions) {
    made += preprocessed.substr(from, at - from) + what;
    from = at;
  }
  return made + preprocessed.substr(from);
}

}  // namespace ipujax::engine
