#pragma once
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "poplar/StringRef.hpp"
#include "poplar/exceptions.hpp"

/// Lets a user's library read OptionFlags: each option has a handler, which writes the value to a
/// variable. Invalid values throw invalid_option.
namespace poplibs {

namespace parse {

/// Parses `text` as one number; integers must take all of it, and may begin with 0x.
template <typename T>
T asInteger(const poplar::StringRef& text) {
  std::istringstream in(text.cloneAsString());
  in >> (text.find("0x") == std::string_view::npos ? std::dec : std::hex);
  T value{};
  if (!(in >> value) || in.peek() != std::istringstream::traits_type::eof())
    throw poplar::invalid_option("needs an integer; got '" + text.cloneAsString() + "'");
  return value;
}
template <typename T>
T asFloatingPoint(const poplar::StringRef& text) {
  std::istringstream in(text.cloneAsString());
  T value{};
  if (!(in >> value))
    throw poplar::invalid_option("needs a number; got '" + text.cloneAsString() + "'");
  return value;
}

/// ['a', 'b'].
template <typename T>
std::string describeEnumValues(const std::map<std::string, T>& values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "'" : ", '") + value.first + "'";
  return "[" + list + "]";
}
template <typename T>
T asEnum(const poplar::StringRef& text, const std::map<std::string, T>& values) {
  const auto found = values.find(text.cloneAsString());
  if (found == values.end())
    throw poplar::invalid_option("needs one of " + describeEnumValues(values) + "; got '" +
                                 text.cloneAsString() + "'");
  return found->second;
}
inline bool asBool(const poplar::StringRef& text) {
  return asEnum<bool>(text, {{"false", false}, {"true", true}});
}

}  // namespace parse

/// Handles the value of one option. Parsing it writes to the variable given.
class OptionHandler {
 public:
  template <typename T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, OptionHandler>>>
  OptionHandler(T&& valueHandler) : parse_(std::forward<T>(valueHandler)) {}  // NOLINT: as the SDK
  void parseValue(poplar::StringRef value) const { parse_(value); }

  template <typename T, typename ValueMapT = std::map<std::string, T>>
  static OptionHandler createWithEnum(T& output, ValueMapT&& valueMap) {
    std::map<std::string, T> values(valueMap.begin(), valueMap.end());
    return [&output, values](poplar::StringRef value) { output = parse::asEnum<T>(value, values); };
  }
  template <typename T>
  static OptionHandler createWithInteger(T& output) {
    return [&output](poplar::StringRef value) {
      output = static_cast<T>(parse::asInteger<int>(value));
    };
  }
  template <typename T>
  static OptionHandler createWithBool(T& output) {
    return [&output](poplar::StringRef value) { output = static_cast<T>(parse::asBool(value)); };
  }

  /// Throws invalid_option for a value outside of the bounds.
  template <typename T>
  static void ensureValueIsWithinBounds(T value, const T& lowerBound, bool lowerBoundIsInclusive,
                                        const T& upperBound, bool upperBoundIsInclusive) {
    const bool is_above = lowerBoundIsInclusive ? value >= lowerBound : value > lowerBound;
    const bool is_below = upperBoundIsInclusive ? value <= upperBound : value < upperBound;
    if (is_above && is_below) return;
    std::ostringstream text;
    text << "needs a value in " << (lowerBoundIsInclusive ? "[" : "(") << lowerBound << ", "
         << upperBound << (upperBoundIsInclusive ? "]" : ")") << "; got " << value;
    throw poplar::invalid_option(text.str());
  }
  /// The default lower bound is the smallest positive number, as in the SDK.
  template <typename T>
  static OptionHandler createWithDouble(T& output,
                                        double lowerBound = std::numeric_limits<double>::min(),
                                        bool lowerBoundIsInclusive = true,
                                        double upperBound = std::numeric_limits<double>::max(),
                                        bool upperBoundIsInclusive = true) {
    return [=, &output](poplar::StringRef text) {
      const auto value = parse::asFloatingPoint<double>(text);
      ensureValueIsWithinBounds(value, lowerBound, lowerBoundIsInclusive, upperBound,
                                upperBoundIsInclusive);
      output = static_cast<T>(value);
    };
  }
  static OptionHandler createWithString(std::string& output) {
    return [&output](poplar::StringRef value) { output = value.cloneAsString(); };
  }
  /// Appends integers separated by commas.
  template <typename T>
  static OptionHandler createWithList(std::vector<T>& output) {
    return [&output](poplar::StringRef values) {
      std::istringstream in(values.cloneAsString());
      for (std::string element; std::getline(in, element, ',');)
        output.push_back(parse::asInteger<T>(element));
    };
  }

 private:
  std::function<void(poplar::StringRef)> parse_;
};

/// The known options.
class OptionSpec {
 public:
  OptionSpec(std::initializer_list<std::pair<const std::string, OptionHandler>>&& handlers)
      : handlers_(handlers) {}

  /// Throws invalid_option, which names the option, for an unknown option or an invalid value.
  void parse(poplar::StringRef option, poplar::StringRef value, bool ignoreUnknown = false) const;

 private:
  std::map<std::string, OptionHandler> handlers_;
};

/// createWithDouble for a value that may be absent.
template <typename T>
OptionHandler createOptionalDoubleHandler(std::optional<T>& output,
                                          double lowerBound = std::numeric_limits<double>::min(),
                                          bool lowerBoundIsInclusive = true,
                                          double upperBound = std::numeric_limits<double>::max(),
                                          bool upperBoundIsInclusive = true) {
  return [=, &output](poplar::StringRef text) {
    const auto value = parse::asFloatingPoint<double>(text);
    OptionHandler::ensureValueIsWithinBounds(value, lowerBound, lowerBoundIsInclusive, upperBound,
                                             upperBoundIsInclusive);
    output = static_cast<T>(value);
  };
}
/// createWithEnum, where "none" makes the value absent.
template <typename T, typename ValueMapT = std::map<std::string, T>>
OptionHandler createOptionalEnumHandler(std::optional<T>& output, ValueMapT&& valueMap) {
  std::map<std::string, T> values(valueMap.begin(), valueMap.end());
  return [&output, values](poplar::StringRef text) {
    if (text == "none")
      output.reset();
    else
      output = parse::asEnum<T>(text, values);
  };
}

}  // namespace poplibs
