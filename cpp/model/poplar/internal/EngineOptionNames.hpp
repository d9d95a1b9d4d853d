#pragma once
#include <span>
#include <string>
#include <string_view>

namespace poplar::internal {

/// An option that the SDK documents for engines.
struct EngineOptionName {
  std::string_view name;
  bool acts;             ///< whether it changes anything in the model
  bool of_runs = false;  ///< whether RuntimeOptions may have it
};

/// All of them. Source: the Poplar API reference of SDK 1.2 to 3.3 (Engine, RuntimeOptions), and
/// the options that Graphcore's TensorFlow, PopART, PopTorch and public programs give to engines.
std::span<const EngineOptionName> engineOptionNames();

/// What is known of an option; null for a name that no table has, but which is of one of Poplar's
/// families and like no known name: SDKs differ. Throws invalid_option, with the known name that is
/// meant, for any other: `where` is what was given the option.
const EngineOptionName* engineOption(const std::string& where, const std::string& name,
                                     const std::string& value);

}  // namespace poplar::internal
