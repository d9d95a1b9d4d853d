#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ipujax::engine {

class Writer;
class Reader;

/// The serialisable parameters of a step: a small map from name to integer, real, text or integers.
/// Reading a name that is absent, or of another type, throws: a kernel never runs on a guess.
class Attributes {
 public:
  using Integers = std::vector<std::int64_t>;
  using Value = std::variant<std::int64_t, double, std::string, Integers>;

  Attributes& set(std::string name, Value value);
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::string textOr(std::string_view name, std::string_view fallback) const;
  const Integers& integers(std::string_view name) const;
  const std::map<std::string, Value, std::less<>>& all() const { return values_; }

  void write(Writer& writer) const;
  static Attributes read(Reader& reader);

 private:
  const Value& find(std::string_view name) const;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace ipujax::engine
