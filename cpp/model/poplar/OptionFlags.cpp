#include "poplar/OptionFlags.hpp"

#include <istream>
#include <iterator>

#include "poplar/ProfileValue.hpp"
#include "poplar/internal/JsonOptions.hpp"

namespace poplar {

void readJSON(StringRef string, OptionFlags& flags) {
  for (const auto& [option, value] : internal::optionsOfJson("readJSON", std::string(string)))
    flags.set(option, value);
}

void readJSON(std::istream& stream, OptionFlags& flags) {
  readJSON(std::string(std::istreambuf_iterator<char>(stream), {}), flags);
}

void readJSONFromEnv(StringRef envVarName, OptionFlags& flags) {
  flags = internal::withEnvironment(flags, std::string(envVarName).c_str());
}

std::ostream& operator<<(std::ostream& out, const OptionFlags& flags) {
  return out << getAsProfileValue(flags);
}

ProfileValue getAsProfileValue(const OptionFlags& flags) {
  ProfileValue::Map values;
  for (const auto& [option, value] : flags) values.emplace(option, value);
  return values;
}

}  // namespace poplar
