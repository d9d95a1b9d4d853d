#include "poplar/internal/JsonOptions.hpp"

#include <cstdlib>

#include "poplar/exceptions.hpp"
#include "poplar/internal/Json.hpp"

namespace poplar::internal {

OptionFlags optionsOfJson(const std::string& where, const std::string& json) {
  const auto refuse = [&](const std::string& got) {
    throw invalid_option("[" + where + "] needs a JSON object of options and values; got " + got +
                         ". Write {\"option\": \"value\"}.");
  };
  OptionFlags options;
  try {
    const Json read = readJson(json);
    if (read.kind != Json::Kind::kObject) refuse("'" + json + "'");
    for (const auto& [name, value] : read.members) {
      if (!value.isScalar()) refuse("a list or an object as '" + name + "'");
      options.set(name, value.text);
    }
  } catch (const JsonError& error) {
    refuse(error.what());
  }
  return options;
}

OptionFlags withEnvironment(const OptionFlags& options, const char* name) {
  const char* given = std::getenv(name);
  if (!given || *given == '\0') return options;
  OptionFlags all = options;
  for (const auto& [option, value] : optionsOfJson(name, given)) all.set(option, value);
  return all;
}

}  // namespace poplar::internal
