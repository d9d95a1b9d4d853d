#pragma once
#include <string>
#include <vector>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// Effects of the options on the model.
struct EngineOptions {
  OptionFlags flags;               ///< all; those of POPLAR_ENGINE_OPTIONS override
  bool refuses_too_large = false;  ///< debug.outOfMemory = error, or allowOutOfMemory = false
  bool float_exceptions = false;   ///< debug.floatPointOpException
  bool reports_each_run = true;    ///< autoReport.streamAtEachRun
  bool records_runs = true;        ///< false by debug.instrument or debug.instrumentCompute = false
  bool reports = false;            ///< autoReport.all or an autoReport.output*
  std::string report_folder = ".";          ///< autoReport.directory
  std::vector<std::string> without_effect;  ///< the options that change nothing in the model
};

/// Reads `options` and those of the environment, and prints which have no effect. Throws
/// invalid_option for names that are misspelt or outside Poplar's families, and for invalid values
/// of options with an effect.
EngineOptions engineOptions(const OptionFlags& options);
/// Reads only `options`, and prints nothing.
EngineOptions engineOptionsAlone(const OptionFlags& options);

/// Prints to standard error, once per option, that it has no effect.
void sayWithoutEffect(const std::vector<std::string>& names);

/// Throws invalid_option for options that cannot change between runs; prints those without effect.
void checkRuntimeOptions(const OptionFlags& options);

/// Whether callbacks of several replicas may run at the same time, by streamCallbacks.* of the run,
/// or else of the engine. Throws invalid_option for invalid values.
bool threadsForCallbacks(const OptionFlags& engine, const OptionFlags& run);

/// Path of the report that the options request, in an existing folder; empty if none.
std::string reportFile(const EngineOptions& options);

}  // namespace poplar::internal
