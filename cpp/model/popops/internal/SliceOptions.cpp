#include "popops/internal/SliceOptions.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "poplar/exceptions.hpp"
#include "poputil/internal/ParseOptions.hpp"

namespace popops::internal {
namespace {

using poplibs::OptionHandler;

/// A JSON object of numbers: {"lookupSplit": 4}.
OptionHandler constraintsHandler(SliceOptions& made) {
  return [&made](poplar::StringRef text) {
    constexpr std::array<std::string_view, 5> kNumbers{
        "lookupSplit", "slicedDimSplit", "unslicedDimSplit", "unslicedGrainSize", "groupSplit"};
    poplar::OptionFlags constraints;
    poplar::readJSON(text, constraints);
    for (const auto& [name, value] : constraints) {
      if (name == "useOrderingInfo") {
        if (poplibs::parse::asBool(value) && !made.indices_are_sorted)
          throw poplar::invalid_option("needs indicesAreSorted for useOrderingInfo; got false");
        continue;
      }
      const auto number = poplibs::parse::asInteger<int>(value);
      if (std::ranges::find(kNumbers, name) == kNumbers.end() || number < 1)
        throw poplar::invalid_option(
            "needs lookupSplit, slicedDimSplit, unslicedDimSplit, unslicedGrainSize or groupSplit "
            "of 1 or more, or useOrderingInfo; got " +
            name + " = " + value);
      made.constraints[name] = static_cast<std::size_t>(number);
    }
  };
}

/// Ignores `internal.alwaysIncludeBaseRearrangementCost` and others for PopLibs' own tests.
OptionHandler ignored() {
  return [](poplar::StringRef) {};
}

}  // namespace

SliceOptions sliceOptions(const poplar::OptionFlags& options) {
  SliceOptions made;
  if (options.empty()) return made;
  const poplibs::OptionSpec spec{
      {"usedForSlice", OptionHandler::createWithBool(made.used_for_slice)},
      {"usedForUpdate", OptionHandler::createWithBool(made.used_for_update)},
      {"operationForUpdate",
       poplibs::createOptionalEnumHandler(
           made.update,
           std::map<std::string, Operation>{{"add", Operation::ADD}, {"max", Operation::MAX}})},
      {"partialType",
       poplibs::createOptionalEnumHandler(
           made.partial_type,
           std::map<std::string, poplar::Type>{{"half", poplar::HALF}, {"float", poplar::FLOAT}})},
      {"availableMemoryProportion",
       OptionHandler::createWithDouble(made.memory_proportion, 0, true, 1)},
      {"indicesDistribution",
       OptionHandler::createWithEnum(
           made.all_indices_equal,
           std::map<std::string, bool>{{"uniform", false}, {"onePoint", true}})},
      {"planMinimisationTarget", ignored()},  // of SDK 1: memory or cycles
      {"indicesAreSorted", OptionHandler::createWithBool(made.indices_are_sorted)},
      {"internal.alwaysIncludeBaseRearrangementCost", ignored()},
      {"validateIndices", OptionHandler::createWithBool(made.validates_indices)},
      {"remapOutOfBoundIndices", OptionHandler::createWithBool(made.remaps_to_zero)},
      {"paddingIndexUsed", OptionHandler::createWithBool(made.has_padding_index)},
      {"planConstraints", constraintsHandler(made)}};
  poputil::internal::parseOptions(spec, options, "[popops] slices and their plans:",
                                  "Use the options that popops/DynamicSlice.hpp lists.");
  return made;
}

}  // namespace popops::internal
