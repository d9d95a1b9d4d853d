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

/// All documented options. Source: Poplar API reference of SDK 1.2 to 3.3 (Engine, RuntimeOptions),
/// and options that Graphcore's TensorFlow, PopART, PopTorch and public programs give to engines.
std::span<const EngineOptionName> engineOptionNames();

/// Looks up an option given to `where`. Returns null for an unknown name in one of Poplar's
/// families that is like no known name, since SDKs differ. Throws invalid_option for other unknown
/// names, and suggests a known name.
const EngineOptionName* engineOption(const std::string& where, const std::string& name,
                                     const std::string& value);

}  // namespace poplar::internal
