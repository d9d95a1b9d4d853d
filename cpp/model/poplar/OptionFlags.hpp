#pragma once
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>

#include "poplar/StringRef.hpp"

namespace poplar {

class ProfileValue;

/// Options by name; all values are strings: {{"partialsType", "half"},
/// {"availableMemoryProportion", "0.3"}}.
class OptionFlags {
 public:
  using OptionFlag = std::pair<const std::string, std::string>;
  using iterator = std::map<std::string, std::string>::const_iterator;

  OptionFlags() = default;
  OptionFlags(std::initializer_list<OptionFlag> initial) : options_(initial) {}
  void set(const std::string& option, const std::string& value) { options_[option] = value; }
  void set(std::initializer_list<OptionFlag> initial) {
    for (const auto& [option, value] : initial) options_[option] = value;
  }
  const std::string& at(const std::string& option) const { return options_.at(option); }
  void clear() { options_.clear(); }
  bool empty() const { return options_.empty(); }
  std::size_t size() const { return options_.size(); }
  iterator find(const std::string& option) const { return options_.find(option); }
  iterator begin() const { return options_.begin(); }
  iterator end() const { return options_.end(); }
  friend bool operator==(const OptionFlags& a, const OptionFlags& b) {
    return a.options_ == b.options_;
  }
  friend bool operator!=(const OptionFlags& a, const OptionFlags& b) { return !(a == b); }

 private:
  std::map<std::string, std::string> options_;
};

/// Sets options from a JSON object of strings, numbers and booleans; throws invalid_option for
/// other text.
void readJSON(StringRef string, OptionFlags& flags);
void readJSON(std::istream& stream, OptionFlags& flags);
/// Sets options from an environment variable; does nothing if it is unset or empty.
void readJSONFromEnv(StringRef envVarName, OptionFlags& flags);
/// Writes what readJSON reads.
std::ostream& operator<<(std::ostream& out, const OptionFlags& flags);
/// The options as a map of strings.
ProfileValue getAsProfileValue(const OptionFlags& flags);

}  // namespace poplar
