#include "poplin/internal/PlanOptions.hpp"

#include <charconv>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "poplar/exceptions.hpp"
#include "poplar/internal/NearName.hpp"
#include "poplin/internal/PlanConstraints.hpp"

namespace poplin {
namespace {

[[noreturn]] void refuse(const char* where, const std::string& name, const std::string& value,
                         const std::string& needs) {
  throw poplar::invalid_option(std::string("[poplin::") + where + "] option '" + name + "' needs " +
                               needs + "; got '" + value +
                               "'. Use such a value, or omit the option.");
}

/// Whether a value is `first`; it must be `first` or `second`.
bool isFirst(const char* where, const std::string& name, const std::string& value,
             const std::string& first, const std::string& second) {
  if (value != first && value != second) refuse(where, name, value, first + " or " + second);
  return value == first;
}

double proportion(const char* where, const std::string& name, const std::string& value) {
  char* end = nullptr;
  const double x = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(x >= 0 && x <= 1))
    refuse(where, name, value, "a number from 0 to 1");
  return x;
}

std::uint64_t count(const char* where, const std::string& name, const std::string& value) {
  std::uint64_t n = 0;
  const char* last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, n);
  if (error != std::errc() || end != last || n == 0)
    refuse(where, name, value, "a positive integer");
  return n;
}

const std::set<std::string>& truths() {
  static const std::set<std::string> names{"use128BitConvUnitLoad",
                                           "enableMultiStageReduce",
                                           "enableFastReduce",
                                           "enableConvDithering",
                                           "remapOutputTensor",
                                           "gatherConvOutput",
                                           "gatherOutput",
                                           "enableAmpHalfEnginesPlan",
                                           "disableTransformations",
                                           "insertTransformsCycleCountProgs",
                                           "interIpuPartialsEnabled",
                                           "inputRHSIsPreArranged",
                                           "enableSingleInputReduce",
                                           "enableTransformsConvTable",
                                           "experimental.slicVmac16",
                                           "disableSRForAMPVertices",
                                           "useAggressiveRegrouping"};
  return names;
}

const std::set<std::string>& ignored() {
  static const std::set<std::string> names{"maxOutputMemoryProportion",
                                           "planConstraintsOutputFilename",
                                           "numIPUs",
                                           "use128BitLoad",
                                           "startTileMultiplier",
                                           "partialsType.interIPU",
                                           "weightUpdateMethod"};
  return names;
}

/// All options that products and convolutions have.
std::vector<std::string_view> names() {
  std::vector<std::string_view> found{"partialsType",
                                      "partialsType.interTile",
                                      "interTilePartialsType",
                                      "interIpuPartialsType",
                                      "availableMemoryProportion",
                                      "fullyConnectedPass",
                                      "pass",
                                      "planConstraints",
                                      "tilesPerIPU",
                                      "numTilesPerIPU"};
  for (const auto* more : {&truths(), &ignored()})
    found.insert(found.end(), more->begin(), more->end());
  return found;
}

void checkPass(const char* where, const std::string& name, const std::string& value) {
  static const std::set<std::string> passes{
      "NONE",           "INFERENCE_FWD",    "TRAINING_FWD",    "TRAINING_BWD",
      "TRAINING_WU",    "FC_INFERENCE_FWD", "FC_TRAINING_FWD", "FC_TRAINING_BWD",
      "FC_TRAINING_WU", "NONE_MATMUL"};
  if (!passes.contains(value)) refuse(where, name, value, "a pass such as TRAINING_FWD");
}

}  // namespace

PlanOptions PlanOptions::read(const poplar::OptionFlags& options, const char* where) {
  PlanOptions result;
  for (const auto& [name, value] : options) {
    if (name == "partialsType") {
      result.half_partials = isFirst(where, name, value, "half", "float");
    } else if (name == "partialsType.interTile" || name == "interTilePartialsType" ||
               name == "interIpuPartialsType") {
      isFirst(where, name, value, "half", "float");
    } else if (name == "availableMemoryProportion") {
      result.memory_proportion = proportion(where, name, value);
    } else if (name == "fullyConnectedPass" || name == "pass") {
      checkPass(where, name, value);
      result.fully_connected =
          value != "NONE" && (name == "fullyConnectedPass" || value.starts_with("FC_"));
    } else if (truths().contains(name)) {
      const bool on = isFirst(where, name, value, "true", "false");
      if (name == "use128BitConvUnitLoad") result.wide_weight_load = on;
      if (name == "enableMultiStageReduce") result.multi_stage_reduce = on;
      if (name == "disableTransformations") result.transforms = !on;
    } else if (name == "planConstraints") {
      if (!value.empty()) result.constraints = readConstraints(where, value);
    } else if (name == "tilesPerIPU" || name == "numTilesPerIPU") {
      result.tiles = count(where, name, value);
    } else if (!ignored().contains(name)) {
      throw poplar::invalid_option(
          std::string("[poplin::") + where + "] needs options it knows; got '" + name + "'. " +
          poplar::internal::didYouMean(name, names()) +
          "Known are partialsType, availableMemoryProportion, fullyConnectedPass, "
          "use128BitConvUnitLoad, planConstraints and PopLibs' further convolution options.");
    }
  }
  return result;
}

void PlanOptions::apply(plan::Problem& problem) const {
  // Half partials need half operands: float units have float partials.
  const bool halves = problem.in_type == ipujax::engine::ElementType::kHalf;
  problem.quarters = quarter_operands && halves;
  problem.half_partials = (half_partials || quarter_operands) && halves;
  problem.wide_weight_load = wide_weight_load;
  problem.multi_stage_reduce = multi_stage_reduce;
  problem.transforms = transforms;
  problem.tiles = tiles;
  problem.limits_moves = fully_connected;
  problem.memory_proportion = memory_proportion;
  problem.constraints = constraints;
}

}  // namespace poplin
