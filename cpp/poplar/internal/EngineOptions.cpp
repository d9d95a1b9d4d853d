#include "poplar/internal/EngineOptions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "poplar/exceptions.hpp"

namespace poplar::internal {
namespace {

/// The families of options that the SDK documents for Engine and compileGraph. They tune a
/// compiler, an exchange and a runtime that the model does not have, so they change nothing here.
constexpr std::array<std::string_view, 9> kFamilies{
    "autoReport.", "debug.",           "exchange.", "opt.",    "prng.",
    "profiler.",   "streamCallbacks.", "target.",   "verbose."};

bool isDocumented(std::string_view name) {
  return std::ranges::any_of(kFamilies, [&](auto family) { return name.starts_with(family); });
}

}  // namespace

bool checkEngineOptions(const OptionFlags& options) {
  bool refuse = false;
  for (const auto& [name, value] : options) {
    const bool is_memory = name == "debug.outOfMemory";
    if (!isDocumented(name) || (is_memory && value != "log" && value != "error")) {
      throw invalid_option(
          "[Engine] needs options of Poplar's families (debug.*, target.*, opt.*, autoReport.* "
          "...), and debug.outOfMemory = log | error; got " +
          name + " = " + value + ". Use one of these.");
    }
    if (is_memory) refuse = value == "error";
  }
  return refuse;
}

void checkReplica(unsigned index) {
  if (index == 0) return;
  throw poplar_error("[Engine] needs replica 0, the only one that it runs; got " +
                     std::to_string(index) + ". Run replicated graphs through JAX.");
}

std::string reportFile(const OptionFlags& options) {
  bool wanted = false;
  std::filesystem::path folder = ".";
  for (const auto& [name, value] : options) {
    const bool is_output = name == "autoReport.all" || name.starts_with("autoReport.output");
    if (is_output && value == "true") wanted = true;
    if (name == "autoReport.directory") folder = value;
  }
  if (!wanted) return {};
  std::error_code ignored;  // one that cannot be made is found when the file is written
  std::filesystem::create_directories(folder, ignored);
  return folder / "profile.pop";
}

}  // namespace poplar::internal
