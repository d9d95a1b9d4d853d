#include "engine/codelets/CodeletParser.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "engine/codelets/LoopCost.hpp"

namespace ipujax::engine {
namespace {

using Tokens = std::vector<std::string>;

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
bool isName(const std::string& t) {
  return !t.empty() && isWord(t[0]) && !std::isdigit(static_cast<unsigned char>(t[0]));
}

/// Words, literals as one token, "::" and single punctuation; comments and # lines are dropped.
class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  Tokens all() {
    Tokens tokens;
    while (skipBlank()) tokens.push_back(next());
    return tokens;
  }

 private:
  bool at(const char* s) const {
    return text_.compare(i_, std::char_traits<char>::length(s), s) == 0;
  }

  bool skipBlank() {
    bool line_start = i_ == 0;
    for (; i_ < text_.size(); ++i_) {
      const char c = text_[i_];
      if (c == '\n') {
        line_start = true;
      } else if (at("//") || (c == '#' && line_start)) {
        i_ = std::min(text_.find('\n', i_), text_.size()) - 1;
      } else if (at("/*")) {
        i_ = std::min(text_.find("*/", i_ + 2), text_.size() - 2) + 1;
      } else if (!std::isspace(static_cast<unsigned char>(c))) {
        return true;
      }
    }
    return false;
  }

  std::string next() {
    const std::size_t begin = i_;
    if (at("R\"")) {
      const std::size_t open = text_.find('(', i_);
      const std::string close = ")" + text_.substr(i_ + 2, open - i_ - 2) + "\"";
      i_ = std::min(text_.find(close, open), text_.size() - close.size()) + close.size();
      return "\"\"";
    }
    if (text_[i_] == '"' || text_[i_] == '\'') return literal();
    if (at("::")) {
      i_ += 2;
      return "::";
    }
    if (!isWord(text_[i_])) return std::string(1, text_[i_++]);
    while (i_ < text_.size() && isWord(text_[i_])) ++i_;
    return text_.substr(begin, i_ - begin);
  }

  std::string literal() {
    const char quote = text_[i_];
    for (++i_; i_ < text_.size() && text_[i_] != quote; ++i_) {
      if (text_[i_] == '\\') ++i_;
    }
    ++i_;
    return "\"\"";
  }

  const std::string& text_;
  std::size_t i_ = 0;
};

std::string join(const Tokens& tokens, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    const bool words = !text.empty() && isWord(text.back()) && isWord(tokens[i][0]);
    text += (words ? " " : "") + tokens[i];
  }
  return text;
}

class Parser {
 public:
  explicit Parser(Tokens tokens) : t_(std::move(tokens)) {}

  CodeletSource run() {
    scope("", t_.size());
    return std::move(source_);
  }

 private:
  const std::string& tok(std::size_t i) const {
    static const std::string none;
    return i < t_.size() ? t_[i] : none;
  }

  /// The index after the bracket that closes the one at i.
  std::size_t behind(std::size_t i) const {
    const std::string open = tok(i);
    const std::string close = open == "{" ? "}" : open == "(" ? ")" : open == "[" ? "]" : ">";
    int depth = 0;
    for (; i < t_.size(); ++i) {
      if (open == "<" && (tok(i) == "(" || tok(i) == "{" || tok(i) == "[")) {
        i = behind(i) - 1;
        continue;
      }
      if (tok(i) == open) ++depth;
      if (tok(i) == close && --depth == 0) return i + 1;
    }
    return t_.size();
  }

  /// The index after a declaration: after its ';', or its body and a ';' that follows.
  std::size_t behindDeclaration(std::size_t i) const {
    for (; i < t_.size(); ++i) {
      if (tok(i) == ";") return i + 1;
      if (tok(i) == "(" || tok(i) == "[") i = behind(i) - 1;
      if (tok(i) == "}") return i;
      if (tok(i) == "{") {
        i = behind(i);
        return tok(i) == ";" ? i + 1 : i;
      }
    }
    return i;
  }

  void scope(const std::string& prefix, std::size_t end) {
    while (i_ < end) {
      const bool transparent = tok(i_) == "inline" && tok(i_ + 1) == "namespace";
      if (transparent) ++i_;
      if (tok(i_) == "namespace") {
        nameSpace(prefix, transparent);
      } else if (tok(i_) == "extern" && tok(i_ + 2) == "{") {
        i_ += 3;  // extern "C" {: its closing bracket is skipped below
      } else if (tok(i_) == "template") {
        templated(prefix);
      } else if (tok(i_) == "class" || tok(i_) == "struct") {
        record(prefix, false);
      } else if (tok(i_) == "}" || tok(i_) == ";") {
        ++i_;
      } else {
        i_ = std::max(i_ + 1, behindDeclaration(i_));
      }
    }
  }

  /// `transparent`: its members belong to the enclosing namespace.
  void nameSpace(const std::string& prefix, bool transparent) {
    std::string name;
    std::size_t i = i_ + 1;
    for (; i < t_.size() && tok(i) != "{" && tok(i) != ";" && tok(i) != "="; ++i) {
      if (tok(i) == "[" || tok(i) == "(") {
        i = behind(i) - 1;
      } else if (tok(i) != "inline" && tok(i).rfind("__attribute", 0) != 0) {
        name += tok(i);
      }
    }
    if (tok(i) != "{") {
      i_ = behindDeclaration(i);
      return;
    }
    const std::size_t end = behind(i);
    i_ = i + 1;
    scope(name.empty() || transparent ? prefix : prefix + name + "::", end - 1);
    i_ = end;
  }

  void templated(const std::string& prefix) {
    if (tok(i_ + 1) == "<") {
      const bool specialisation = tok(i_ + 2) == ">";
      i_ = behind(i_ + 1);
      if (tok(i_) == "class" || tok(i_) == "struct") return record(prefix, !specialisation);
      i_ = behindDeclaration(i_);
      return;
    }
    // template class Foo<float>;
    const std::size_t begin = i_ + 2;
    const std::size_t end = behindDeclaration(i_);
    const bool record = tok(i_ + 1) == "class" || tok(i_ + 1) == "struct";
    if (record && end > begin) instantiation(prefix, normaliseTypeName(join(t_, begin, end - 1)));
    i_ = end;
  }

  void instantiation(const std::string& prefix, const std::string& name) {
    const std::string base = name.substr(0, name.find('<'));
    for (const std::string& full : {prefix + base, base}) {
      if (!source_.classes.count(full)) continue;
      source_.types.push_back(full + name.substr(base.size()));
      return;
    }
  }

  void record(const std::string& prefix, bool is_template) {
    std::size_t i = i_ + 1;
    while (tok(i) == "[" || tok(i).rfind("__attribute", 0) == 0 || tok(i) == "alignas") {
      i = behind(tok(i) == "[" ? i : i + 1);
    }
    std::string name = tok(i++);
    if (tok(i) == "<") {  // a specialisation: the arguments are part of its name
      const std::size_t end = behind(i);
      name += join(t_, i, end);
      i = end;
      // Partial: found by its primary template's name, with the fields of both.
      if (is_template) name = name.substr(0, name.find('<'));
    }
    if (tok(i) == "final") ++i;
    if (tok(i) != ":" || name.empty()) {
      i_ = behindDeclaration(i_ + 1);
      return;
    }
    CodeletClass found;
    found.name = normaliseTypeName(prefix + name);
    found.is_template = is_template;
    bool is_codelet = false;
    for (++i; i < t_.size() && tok(i) != "{"; ++i) {
      if (tok(i) == "<" || tok(i) == "(") i = behind(i) - 1;
      if (tok(i) == "Vertex" || tok(i) == "MultiVertex" || tok(i).rfind("SupervisorVertex", 0) == 0)
        is_codelet = true;
      for (const std::string& base : {prefix + tok(i), tok(i)}) {
        const auto it = source_.classes.find(base);
        if (it == source_.classes.end()) continue;
        is_codelet = true;
        found.fields = it->second.fields;
        found.assigned = it->second.assigned;
        break;
      }
    }
    const std::size_t end = behind(i);
    if (is_codelet) {
      members(i + 1, end - 1, found.fields);
      assignments(i + 1, end - 1, found.assigned);
      const auto at = [&](std::size_t n) { return t_.begin() + static_cast<std::ptrdiff_t>(n); };
      const std::size_t last = std::max(i + 1, end - 1);  // nothing if the class does not end
      found.loop_cycles = std::max(found.loop_cycles, loopCycles(Tokens(at(i + 1), at(last))));
      const std::string own = name.substr(0, name.find('<'));
      for (std::size_t m = i + 1; m + 4 <= end; ++m)
        if (tok(m) == own && tok(m + 1) == "(" && tok(m + 2) == ")" && tok(m + 3) == ";")
          found.declares_constructor = true;
      if (!is_template) source_.types.push_back(found.name);
      add(std::move(found));
    }
    i_ = tok(end) == ";" ? end + 1 : end;
  }

  /// A template's fields are those of all its declarations; the compiler knows which of them one
  /// type has.
  void add(CodeletClass found) {
    const auto [it, added] = source_.classes.try_emplace(found.name, found);
    if (added || !found.is_template) {
      it->second = std::move(found);
      return;
    }
    auto& fields = it->second.fields;
    for (const std::string& field : found.fields)
      if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
    auto& assigned = it->second.assigned;
    assigned.insert(assigned.end(), found.assigned.begin(), found.assigned.end());
    it->second.declares_constructor |= found.declares_constructor;
  }

  /// "x = ", "x += ", "++x", but not a declaration of x with a value.
  bool isAssigned(std::size_t i) const {
    const auto twice = [&](std::size_t at) {
      return (tok(at) == "+" || tok(at) == "-") && tok(at) == tok(at + 1);
    };
    if (twice(i + 1) || (i >= 2 && twice(i - 2))) return true;
    static const std::set<std::string> kOperators{"+", "-", "*", "/", "%", "&", "|", "^"};
    if (kOperators.count(tok(i + 1)) != 0) return tok(i + 2) == "=";
    if (tok(i + 1) != "=" || tok(i + 2) == "=" || i == 0) return false;
    static const std::set<std::string> kBefore{";", "{", "}", "(",    ")",
                                               ",", ":", ".", "else", "do"};
    return kBefore.count(tok(i - 1)) != 0 || (i >= 2 && tok(i - 2) == "-" && tok(i - 1) == ">");
  }

  void assignments(std::size_t i, std::size_t end, std::vector<std::string>& names) const {
    for (; i < end; ++i)
      if (isName(tok(i)) && isAssigned(i)) names.push_back(tok(i));
  }

  void members(std::size_t i, std::size_t end, std::vector<std::string>& fields) const {
    static const std::set<std::string> kNotFields = {
        "using",  "typedef", "static",    "friend",  "static_assert", "template", "enum",  "class",
        "struct", "union",   "constexpr", "virtual", "explicit",      "operator", "inline"};
    while (i < end) {
      if ((tok(i) == "public" || tok(i) == "private" || tok(i) == "protected") &&
          tok(i + 1) == ":") {
        i += 2;
      } else if (tok(i) == ";") {
        ++i;
      } else if (tok(i) == "template" && tok(i + 1) == "<") {
        i = behindMember(behind(i + 1));
      } else if (kNotFields.count(tok(i))) {
        i = behindMember(i);
      } else {
        i = member(i, fields);
      }
    }
  }

  /// The index after a member that is not a field: after its ';' or body. Braces after a name in a
  /// constructor's list of initialisers are not the body.
  std::size_t behindMember(std::size_t i) const {
    const bool aliases = tok(i) == "using" || tok(i) == "typedef";
    bool initialisers = false;
    for (; i < t_.size(); ++i) {
      if (tok(i) == ";") return i + 1;
      if (tok(i) == ":") initialisers = true;
      if (tok(i) == "(" || tok(i) == "[") i = behind(i) - 1;
      if (tok(i) != "{") continue;
      const bool body = !aliases && !(initialisers && isName(tok(i - 1)));
      i = behind(i);
      if (body) return tok(i) == ";" ? i + 1 : i;
      --i;
    }
    return i;
  }

  /// Reads one statement: adds the names it declares, unless it is a function.
  std::size_t member(std::size_t i, std::vector<std::string>& fields) const {
    std::vector<std::string> names;
    std::string last;
    bool initialised = false;
    for (; i < t_.size(); ++i) {
      const std::string& t = tok(i);
      if (t == ";" || (t == "," && !last.empty())) {
        if (!last.empty()) names.push_back(last);
        if (t == ";") break;
        last.clear();
        initialised = false;
      } else if (t.rfind("__attribute", 0) == 0 || t == "alignas" || t == "decltype") {
        i = behind(i + 1) - 1;
      } else if (t == "[") {
        const bool attribute = tok(i + 1) == "[";
        if (!attribute && !initialised) last.clear();  // an array: not a field a graph can set
        i = behind(i) - 1;
      } else if (t == "<" && !initialised) {
        i = behind(i) - 1;
      } else if (t == "(" && !initialised) {
        return behindMember(i);  // a function
      } else if (t == "{") {
        i = behind(i) - 1;
        initialised = true;
      } else if (t == "(") {
        i = behind(i) - 1;
      } else if (t == "=") {
        initialised = true;
      } else if (!initialised && isName(t)) {
        last = t;
      }
    }
    fields.insert(fields.end(), names.begin(), names.end());
    return i + 1;
  }

  Tokens t_;
  std::size_t i_ = 0;
  CodeletSource source_;
};

}  // namespace

CodeletSource parseCodelets(const std::string& preprocessed) {
  return Parser(Lexer(preprocessed).all()).run();
}

std::string normaliseTypeName(const std::string& name) {
  Tokens tokens = Lexer(name).all();
  Tokens kept;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool follows_int_prefix =
        i > 0 && (tokens[i - 1] == "unsigned" || tokens[i - 1] == "short" ||
                  tokens[i - 1] == "long" || tokens[i - 1] == "longlong");
    if (tokens[i] == "int" && follows_int_prefix) continue;
    if (tokens[i] == "::" && kept.empty()) continue;
    // poplar::Type's name of 64-bit integers, which templateVertex writes, is not a C++ type.
    if (tokens[i] == "longlong") kept.push_back("long");
    kept.push_back(tokens[i] == "longlong" ? "long" : tokens[i]);
  }
  return join(kept, 0, kept.size());
}

}  // namespace ipujax::engine
