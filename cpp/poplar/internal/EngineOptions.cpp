#include "poplar/internal/EngineOptions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <string_view>

#include "poplar/exceptions.hpp"
#include "poplar/internal/JsonOptions.hpp"

namespace poplar::internal {
namespace {

/// The families of options that the SDK documents for Engine and compileGraph. They tune a
/// compiler, an exchange and a runtime that the model does not have, so they change nothing here.
constexpr std::array<std::string_view, 9> kFamilies{
    "autoReport.", "debug.",           "exchange.", "opt.",    "prng.",
    "profiler.",   "streamCallbacks.", "target.",   "verbose."};

constexpr const char* kMultiThreadMode = "streamCallbacks.multiThreadMode";
constexpr const char* kNumWorkerThreads = "streamCallbacks.numWorkerThreads";

/// Whether an option has the first of its two values.
bool isFirst(const std::string& name, const std::string& value, const char* first,
             const char* second) {
  if (value == first || value == second) return value == first;
  throw invalid_option("[Engine] needs " + name + " = " + first + " | " + second + "; got " +
                       value + ". Use one of these.");
}

void checkPattern(const std::string& name, const std::string& value) {
  try {
    const std::regex pattern(value);
  } catch (const std::regex_error& error) {
    throw invalid_option("[Engine] needs a regular expression for " + name + "; got '" + value +
                         "' (" + error.what() + "). Use one of ECMAScript's, such as 'stage.*'.");
  }
}

bool isDocumented(std::string_view name) {
  return std::ranges::any_of(kFamilies, [&](auto family) { return name.starts_with(family); });
}

}  // namespace

EngineOptions engineOptions(const OptionFlags& options) {
  return engineOptionsAlone(withEnvironment(options, "POPLAR_ENGINE_OPTIONS"));
}

EngineOptions engineOptionsAlone(const OptionFlags& options) {
  EngineOptions found;
  found.flags = options;
  for (const auto& [name, value] : found.flags) {
    if (!isDocumented(name)) {
      throw invalid_option(
          "[Engine] needs options of Poplar's families (debug.*, target.*, opt.*, autoReport.* "
          "...); got " +
          name + " = " + value + ". Use one of these.");
    }
    if (name == "profiler.blocks.filter" || name == "profiler.programs.filter")
      checkPattern(name, value);
    if (name == "debug.outOfMemory") found.refuses_too_large = isFirst(name, value, "error", "log");
    if (name == "debug.floatPointOpException")
      found.float_exceptions = isFirst(name, value, "true", "false");
    if (name == "autoReport.streamAtEachRun")
      found.reports_each_run = isFirst(name, value, "true", "false");
    if (name == "debug.instrument" || name == "debug.instrumentCompute")
      found.records_runs = found.records_runs && isFirst(name, value, "true", "false");
  }
  return found;
}

void checkRuntimeOptions(const OptionFlags& options) {
  constexpr std::array<std::string_view, 6> kNames{
      "target.syncMethod",      "target.syncPollPeriodUs",      "target.exceptionPollPeriodUs",
      "target.hostSyncTimeout", "target.gatewayWriteCombining", "target.syncReplicasIndependently"};
  for (const auto& [name, value] : options) {
    const bool is_known = std::ranges::find(kNames, name) != kNames.end() ||
                          std::string_view(name).starts_with("streamCallbacks.");
    if (is_known) continue;
    throw invalid_option(
        "[RuntimeOptions] needs options of runs (target.sync*, target.hostSyncTimeout, "
        "streamCallbacks.* ...); got " +
        name + " = " + value + ". Give others to the Engine.");
  }
}

bool threadsForCallbacks(const OptionFlags& engine, const OptionFlags& run) {
  const auto valueOf = [&](const char* name, const char* otherwise) {
    for (const OptionFlags* options : {&run, &engine})
      if (const auto found = options->find(name); found != options->end()) return found->second;
    return std::string(otherwise);
  };
  const std::string mode = valueOf(kMultiThreadMode, "singleThread");
  const std::string workers = valueOf(kNumWorkerThreads, "0");
  if (mode != "singleThread" && mode != "collaborative" && mode != "dedicated")
    throw invalid_option(std::string("[Engine] needs ") + kMultiThreadMode +
                         " = singleThread | collaborative | dedicated; got " + mode +
                         ". Use one of these.");
  const bool is_number =
      !workers.empty() && std::ranges::all_of(workers, [](char c) { return c >= '0' && c <= '9'; });
  if (workers != "auto" && !is_number)
    throw invalid_option(std::string("[Engine] needs ") + kNumWorkerThreads +
                         " = auto or a number; got " + workers + ". Use one of these.");
  // Without workers the thread that runs the program calls all of them.
  return mode != "singleThread" && workers.find_first_not_of('0') != std::string::npos;
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
