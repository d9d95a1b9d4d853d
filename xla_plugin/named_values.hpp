#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt_abi.hpp"

namespace ipujax::plugin {

using OptionValue = std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool>;
/// Named values from or for JAX. The alternatives are in the order of PJRT_NamedValue_Type.
using Options = std::map<std::string, OptionValue, std::less<>>;

Options readNamedValues(const PJRT_NamedValue* values, std::size_t count);

/// An array of PJRT_NamedValue with the data it points to. Neither copied nor moved once filled.
class NamedValues {
 public:
  explicit NamedValues(Options options);
  NamedValues(const NamedValues&) = delete;
  NamedValues& operator=(const NamedValues&) = delete;

  const Options& options() const { return options_; }
  const PJRT_NamedValue* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }

 private:
  const Options options_;
  std::vector<PJRT_NamedValue> values_;
};

}  // namespace ipujax::plugin
