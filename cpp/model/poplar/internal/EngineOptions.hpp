#pragma once
#include <string>
#include <vector>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// What the options change in the model.
struct EngineOptions {
  OptionFlags flags;               ///< all, with those of POPLAR_ENGINE_OPTIONS on top
  bool refuses_too_large = false;  ///< debug.outOfMemory = error, or allowOutOfMemory = false
  bool float_exceptions = false;   ///< debug.floatPointOpException
  bool reports_each_run = true;    ///< autoReport.streamAtEachRun
  bool records_runs = true;        ///< false by debug.instrument or debug.instrumentCompute = false
  bool reports = false;            ///< autoReport.all or an autoReport.output*
  std::string report_folder = ".";          ///< autoReport.directory
  std::vector<std::string> without_effect;  ///< the options that change nothing in the model
};

/// With those of the environment; says which have no effect. Throws invalid_option for an option of
/// no family of Poplar's or with a misspelt name, and for values that options with an effect do not
/// have.
EngineOptions engineOptions(const OptionFlags& options);
/// Of these alone, and says nothing.
EngineOptions engineOptionsAlone(const OptionFlags& options);

/// Writes once for each option that it has no effect, to standard error.
void sayWithoutEffect(const std::vector<std::string>& names);

/// Throws invalid_option for an option that cannot change between runs; says which have no effect.
void checkRuntimeOptions(const OptionFlags& options);

/// Whether callbacks of several replicas may be called at one time, by streamCallbacks.*: of the
/// run's options, or else of the engine's. Throws invalid_option for values that they do not have.
bool threadsForCallbacks(const OptionFlags& engine, const OptionFlags& run);

/// Where the options ask for a report to be left: a file in an existing folder, or nothing.
std::string reportFile(const EngineOptions& options);

}  // namespace poplar::internal
