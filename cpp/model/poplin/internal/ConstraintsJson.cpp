#include "poplin/internal/ConstraintsJson.hpp"

#include <charconv>
#include <system_error>

#include "poplar/exceptions.hpp"

namespace poplin {

Json readConstraintsJson(const std::string& where, const std::string& text) {
  try {
    return poplar::internal::readJson(text);
  } catch (const poplar::internal::JsonError& error) {
    refuseConstraints(where, "a JSON object such as {\"method\": \"AMP\"}", error.what());
  }
}

std::optional<std::uint64_t> countOf(const Json& json) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  std::uint64_t count = 0;
  const char* const end = json.text.data() + json.text.size();
  const auto read = std::from_chars(json.text.data(), end, count);
  const bool is_whole =
      json.kind == Json::Kind::kNumber && read.ec == std::errc() && read.ptr == end;
  if (!is_whole || count == 0 || count > kMost) return std::nullopt;
  return count;
}

void refuseConstraints(const std::string& where, const std::string& needs, const std::string& got) {
  throw poplar::invalid_option("[" + where + "] planConstraints needs " + needs + "; got " + got +
                               ". Use what a report of the plan shows, or omit it.");
}

}  // namespace poplin
