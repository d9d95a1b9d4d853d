#pragma once
#include <string>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// What the options change in the model.
struct EngineOptions {
  OptionFlags flags;               ///< all, with those of POPLAR_ENGINE_OPTIONS on top
  bool refuses_too_large = false;  ///< debug.outOfMemory = error
  bool float_exceptions = false;   ///< debug.floatPointOpException
  bool reports_each_run = true;    ///< autoReport.streamAtEachRun
  bool records_runs = true;        ///< false by debug.instrument or debug.instrumentCompute = false
};

/// Throws invalid_option for an option that no Poplar documents, and for values that those with an
/// effect do not have.
EngineOptions engineOptions(const OptionFlags& options);
/// The same without those of the environment.
EngineOptions engineOptionsAlone(const OptionFlags& options);

/// Throws invalid_option for an option that cannot change between runs.
void checkRuntimeOptions(const OptionFlags& options);

/// Whether callbacks of several replicas may be called at one time, by streamCallbacks.*: of the
/// run's options, or else of the engine's. Throws invalid_option for values that they do not have.
bool threadsForCallbacks(const OptionFlags& engine, const OptionFlags& run);

/// Where the options ask for a report to be left: a file in an existing folder, or nothing.
std::string reportFile(const OptionFlags& options);

}  // namespace poplar::internal
