#include "poplar/internal/EngineOptions.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <regex>
#include <set>

#include "poplar/exceptions.hpp"
#include "poplar/internal/EngineOptionNames.hpp"
#include "poplar/internal/JsonOptions.hpp"

namespace poplar::internal {
namespace {

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

/// Any of autoReport.all and the parts of a report requests the whole report.
bool asksForReport(const std::string& name) {
  return name == "autoReport.all" || name.starts_with("autoReport.output");
}

/// Applies an option that has an effect; throws invalid_option for invalid values.
void apply(EngineOptions& found, const std::string& name, const std::string& value) {
  const auto is_true = [&] { return isFirst(name, value, "true", "false"); };
  if (name == "profiler.blocks.filter" || name == "profiler.programs.filter")
    checkPattern(name, value);
  else if (name == "debug.outOfMemory")
    found.refuses_too_large = isFirst(name, value, "error", "log");
  else if (name == "debug.allowOutOfMemory")
    found.refuses_too_large = !is_true();
  else if (name == "debug.floatPointOpException")
    found.float_exceptions = is_true();
  else if (name == "autoReport.streamAtEachRun")
    found.reports_each_run = is_true();
  else if (name == "debug.instrument" || name == "debug.instrumentCompute")
    found.records_runs = is_true() && found.records_runs;
  else if (asksForReport(name))
    found.reports = is_true() || found.reports;
  else if (name == "autoReport.directory")
    found.report_folder = value;
}

}  // namespace

EngineOptions engineOptions(const OptionFlags& options) {
  EngineOptions found = engineOptionsAlone(withEnvironment(options, "POPLAR_ENGINE_OPTIONS"));
  sayWithoutEffect(found.without_effect);
  return found;
}

EngineOptions engineOptionsAlone(const OptionFlags& options) {
  EngineOptions found;
  found.flags = options;
  for (const auto& [name, value] : found.flags) {
    const EngineOptionName* known = engineOption("Engine", name, value);
    if (!known || !known->acts) found.without_effect.push_back(name);
    apply(found, name, value);
  }
  return found;
}

void sayWithoutEffect(const std::vector<std::string>& names) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  std::string list;
  for (const auto& name : names)
    if (said.insert(name).second) list += (list.empty() ? "" : ", ") + name;
  if (list.empty()) return;
  std::fprintf(stderr, "ipujax: the IPU Model accepts these options, without effect: %s.\n",
               list.c_str());
}

void checkRuntimeOptions(const OptionFlags& options) {
  std::vector<std::string> without_effect;
  for (const auto& [name, value] : options) {
    const EngineOptionName* known = engineOption("RuntimeOptions", name, value);
    if (known ? !known->of_runs : !name.starts_with("streamCallbacks."))
      throw invalid_option(
          "[RuntimeOptions] needs options of runs (target.sync*, target.hostSyncTimeout, "
          "streamCallbacks.* ...); got " +
          name + " = " + value + ". Give others to the Engine.");
    if (!known || !known->acts) without_effect.push_back(name);
  }
  sayWithoutEffect(without_effect);
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
  // Without workers, the thread that runs the program calls all of them.
  return mode != "singleThread" && workers.find_first_not_of('0') != std::string::npos;
}

std::string reportFile(const EngineOptions& options) {
  if (!options.reports) return {};
  const std::filesystem::path folder = options.report_folder;
  std::error_code ignored;  // a failure shows when the file is written
  std::filesystem::create_directories(folder, ignored);
  return folder / "profile.pop";
}

}  // namespace poplar::internal
