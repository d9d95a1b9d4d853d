#include "poputil/OptionParsing.hpp"

#include <string_view>

#include "poplar/internal/NearName.hpp"

namespace poplibs {

void OptionSpec::parse(poplar::StringRef option, poplar::StringRef value,
                       bool ignoreUnknown) const {
  const std::string name = option.cloneAsString();
  const auto found = handlers_.find(name);
  if (found == handlers_.end()) {
    if (ignoreUnknown) return;
    std::vector<std::string_view> names;
    for (const auto& handler : handlers_) names.emplace_back(handler.first);
    const std::string hint = poplar::internal::didYouMean(name, names);
    throw poplar::invalid_option("unknown option '" + name + "'" +
                                 (hint.empty() ? "" : ". " + hint.substr(0, hint.size() - 1)));
  }
  try {
    found->second.parseValue(value);
  } catch (const poplar::invalid_option& e) {
    throw poplar::invalid_option("option '" + name + "' " + e.what());
  }
}

}  // namespace poplibs
