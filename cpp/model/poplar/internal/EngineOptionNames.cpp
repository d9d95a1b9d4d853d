#include "poplar/internal/EngineOptionNames.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "poplar/exceptions.hpp"
#include "poplar/internal/NearName.hpp"

namespace poplar::internal {
namespace {

constexpr bool kActs = true, kNoEffect = false, kOfRuns = true;

constexpr std::array<std::string_view, 10> kFamilies{
    "autoReport.", "debug.",    "device.",          "exchange.", "opt.",
    "prng.",       "profiler.", "streamCallbacks.", "target.",   "verbose."};

constexpr EngineOptionName kNames[] = {
    {"autoReport.all", kActs},
    {"autoReport.directory", kActs},
    {"autoReport.executionProfileProgramRunCount", kNoEffect},
    {"autoReport.outputArchive", kActs},
    {"autoReport.outputDebugInfo", kActs},
    {"autoReport.outputExecutionProfile", kActs},
    {"autoReport.outputGraphProfile", kActs},
    {"autoReport.outputLoweredVars", kActs},
    {"autoReport.outputSerializedGraph", kActs},
    {"autoReport.streamAtEachRun", kActs},
    {"debug.allowOutOfMemory", kActs},
    {"debug.branchRecordTile", kNoEffect},
    {"debug.computeInstrumentationLevel", kNoEffect},
    {"debug.cpuMultiThreadExecution", kNoEffect},
    {"debug.executionProfile", kNoEffect},
    {"debug.floatPointOpException", kActs},
    {"debug.graphReportDestination", kNoEffect},
    {"debug.instrument", kActs},
    {"debug.instrumentCompute", kActs},
    {"debug.instrumentControlFlow", kNoEffect},
    {"debug.instrumentExternalExchange", kActs},
    {"debug.loweredVarDumpFile", kNoEffect},
    {"debug.nanOverflowException", kNoEffect},
    {"debug.outOfMemory", kActs},
    {"debug.outputAllSymbols", kNoEffect},
    {"debug.retainDebugInformation", kNoEffect},
    {"debug.runtimeVerify", kNoEffect},
    {"debug.supervisorStackSizeInBytes", kNoEffect},
    {"debug.trace", kNoEffect},
    {"debug.traceFile", kNoEffect},
    {"debug.verify", kNoEffect},
    {"device.clearAtomicFlagAfterExchange", kNoEffect},
    {"exchange.enablePrefetch", kNoEffect},
    {"exchange.multicastPolicy", kNoEffect},
    {"exchange.streamBufferOverlap", kNoEffect},
    {"opt.enableInlining", kNoEffect},
    {"opt.enableMultiAccessCopies", kNoEffect},
    {"opt.enableSwSyncs", kNoEffect},
    {"opt.internalExchangeOptimisationTarget", kNoEffect},
    {"opt.limitVertexStateToLower256K", kNoEffect},
    {"opt.maxCompilationThreads", kNoEffect},
    {"opt.maxComputeSetsPerLoweredCopy", kNoEffect},
    {"opt.maxCopyMergeSize", kNoEffect},
    {"opt.maxLinkerThreads", kNoEffect},
    {"opt.useAutoloader", kNoEffect},
    {"prng.enable", kNoEffect},
    {"prng.seed", kNoEffect},
    {"profiler.allowUnstableFormat", kNoEffect},
    {"profiler.blocks.filter", kActs},
    {"profiler.blocks.tile", kActs},
    {"profiler.format", kNoEffect},
    {"profiler.includeCycleEstimates", kNoEffect},
    {"profiler.includeFlopEstimates", kNoEffect},
    {"profiler.perExecutionStreamCopyCycles", kNoEffect},
    {"profiler.programs.filter", kActs},
    {"profiler.replicaToProfile", kNoEffect},
    {"streamCallbacks.maxLookahead", kNoEffect, kOfRuns},
    {"streamCallbacks.multiThreadMode", kActs, kOfRuns},
    {"streamCallbacks.numWorkerThreads", kActs, kOfRuns},
    {"streamCallbacks.numaAware", kNoEffect, kOfRuns},
    {"target.deterministicWorkers", kNoEffect},
    {"target.exceptionPollPeriodUs", kNoEffect, kOfRuns},
    {"target.extendedMemory", kNoEffect},
    {"target.gatewayMode", kNoEffect},
    {"target.gatewayWriteCombining", kNoEffect, kOfRuns},
    {"target.hostSyncTimeout", kNoEffect, kOfRuns},
    {"target.maxStreamCallbackThreadsPerNumaNode", kNoEffect},
    {"target.saveArchive", kNoEffect},
    {"target.supervisorStackSizeInBytes", kNoEffect},
    {"target.syncMethod", kNoEffect, kOfRuns},
    {"target.syncPollPeriodUs", kNoEffect, kOfRuns},
    {"target.syncReplicasIndependently", kNoEffect, kOfRuns},
    {"target.textSectionSizeInBytes", kNoEffect},
    {"target.useBufferedCompletions", kNoEffect},
    {"target.workerStackSizeInBytes", kNoEffect},
};

}  // namespace

std::span<const EngineOptionName> engineOptionNames() { return kNames; }

const EngineOptionName* engineOption(const std::string& where, const std::string& name,
                                     const std::string& value) {
  const auto* found = std::ranges::find(kNames, name, &EngineOptionName::name);
  if (found != std::end(kNames)) return found;
  std::vector<std::string_view> names;
  for (const auto& each : kNames) names.push_back(each.name);
  const std::string hint = didYouMean(name, names);
  const bool is_of_a_family = std::ranges::any_of(
      kFamilies, [&](auto family) { return std::string_view(name).starts_with(family); });
  if (hint.empty() && is_of_a_family) return nullptr;
  throw invalid_option("[" + where +
                       "] needs options of Poplar's families (debug.*, target.*, opt.*, "
                       "autoReport.* ...); got " +
                       name + " = " + value + ". " +
                       (hint.empty() ? "Use one of these." : hint + "Correct the name."));
}

}  // namespace poplar::internal
