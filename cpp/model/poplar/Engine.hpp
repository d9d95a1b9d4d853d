#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <unordered_set>
#include <vector>

#include "poplar/Error.hpp"
#include "poplar/Executable.hpp"
#include "poplar/Graph.hpp"
#include "poplar/HostFunctionCallback.hpp"
#include "poplar/IeeeHalf.hpp"
#include "poplar/Module.hpp"
#include "poplar/ProfileValue.hpp"
#include "poplar/Quarter.hpp"
#include "poplar/RuntimeOptions.hpp"
#include "poplar/StreamCallback.hpp"

namespace pva {
class Report;
}
namespace gccs {
using poplar::ArrayRef;
}

namespace poplar {

/// Loads a compiled graph on a device and runs its programs. Accepts all options that the SDK
/// documents; JSON in POPLAR_ENGINE_OPTIONS overrides them. docs/poplar-api.md lists those that
/// have an effect.
///
/// A program of a replicated graph runs on all replicas. Each replica has its own variables,
/// streams and remote buffers; host memory holds the data of all replicas in order, replica 0
/// first. An error in one replica ends the run of all.
///
/// Callbacks of streams and host functions are called one after another, replica 0 first, on the
/// thread that calls `run`. With streamCallbacks.multiThreadMode = dedicated or collaborative and a
/// streamCallbacks.numWorkerThreads other than 0, each replica calls them on its own thread,
/// whatever that number is. A callback may then wait for another replica's, and callbacks that
/// share state need a lock.
class Engine {
 public:
  using ProgressFunc = poplar::ProgressFunc;

  Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt = {},
         ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
  Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt = {},
         ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
  /// The form of early SDKs, which also loads the engine.
  template <class Programs>
  Engine(const Device& device, const Graph& graph, const Programs& progs,
         const OptionFlags& opt = {})
      : Engine(graph, progs, opt) {
    load(device);
  }
  Engine(const Device& device, const Graph& graph, std::initializer_list<program::Program> progs,
         const OptionFlags& opt = {})
      : Engine(graph, progs, opt) {
    load(device);
  }
  Engine(Executable exe, const OptionFlags& opt = {});  // NOLINT: implicit as in the SDK
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  /// load does prepare, which here only checks the number of tiles (else poplar_error), and deploy.
  void prepare(const Device& device);
  void prepare(const Device& device, const RuntimeOptions& runOptions);
  void deploy();
  void load(const Device& device);
  void run(unsigned prog = 0, const std::string& debugName = "");
  void run(unsigned prog, const std::string& debugName, const RuntimeOptions& options);
  /// Called from another thread: ends the current run at its next loop iteration with
  /// application_runtime_error.
  void stop();
  void loadAndRun(const Device& device, unsigned prog = 0, const std::string& debugName = "") {
    load(device);
    run(prog, debugName);
  }

  /// Each copy of the stream moves the next block of the memory, and starts again at its end. A
  /// replicated stream's memory is divided equally among the replicas, with one block each if there
  /// is no `end`; all replicas read the same broadcast data.
  void connectStream(StringRef handle, void* begin);
  void connectStream(StringRef handle, void* begin, void* end);
  void connectStream(const DataStream& stream, void* begin) {
    connectStream(StringRef(stream.handle()), begin);
  }
  void connectStream(const DataStream& stream, void* begin, void* end) {
    connectStream(StringRef(stream.handle()), begin, end);
  }
  /// Serves all replicas, one after another; a broadcast block is fetched once for all.
  void connectStreamToCallback(StringRef handle, StreamCallbackHandle callback);
  /// `index` is the replica.
  void connectStreamToCallback(StringRef handle, unsigned index, StreamCallbackHandle callback);
  void connectStreamToCallback(const DataStream& stream, StreamCallbackHandle callback) {
    connectStreamToCallback(StringRef(stream.handle()), std::move(callback));
  }
  void connectHostFunction(StringRef handle, unsigned index, HostCallbackHandle callback);

  /// Copies from and to host memory, which holds the tensor of all replicas.
  void writeTensor(StringRef handle, const void* buf, const void* bufEnd);
  void readTensor(StringRef handle, void* buf, void* bufEnd);
  void writeTensor(StringRef handle, const void* buf);
  void readTensor(StringRef handle, void* buf);
  template <class T>
  void writeTensor(StringRef handle, ArrayRef<T> buf) {
    writeTensor(handle, buf.data(), buf.data() + buf.size());
  }

  template <class T>
  void readTensor(StringRef handle, ArrayRef<T> buf) {  // the SDK's form: writes it all the same
    auto* const begin = const_cast<T*>(buf.data());     // NOLINT
    readTensor(handle, begin, begin + buf.size());
  }
  /// Copies quarters and their metadata. Throw poplar_error for a handle of another type, and for a
  /// write of constant metadata.
  void writeTensor(StringRef handle, const QuarterMetadata& metadata, const void* buf,
                   const void* bufEnd);
  void readTensor(StringRef handle, QuarterMetadata& metadata, void* buf, void* bufEnd);
  template <class T>
  void connectStream(StringRef handle, const ArrayRef<T>& buf) {
    auto* const begin = const_cast<T*>(buf.data());  // NOLINT
    connectStream(handle, begin, begin + buf.size());
  }

  /// Copies one entry of one replica's remote buffer from and to host memory.
  void copyToRemoteBuffer(const void* src, StringRef handle, std::uint64_t repeatIndex,
                          unsigned replicationIndex = 0);
  void copyFromRemoteBuffer(StringRef handle, void* dst, std::uint64_t repeatIndex,
                            unsigned replicationIndex = 0);

  template <class T>
  void copyToRemoteBuffer(ArrayRef<T> src, StringRef handle, std::uint64_t repeatIndex,
                          unsigned replicationIndex = 0) {
    copyToRemoteBuffer(static_cast<const void*>(src.data()), handle, repeatIndex, replicationIndex);
  }
  template <class T>
  void copyFromRemoteBuffer(StringRef handle, ArrayRef<T> dst, std::uint64_t repeatIndex,
                            unsigned replicationIndex = 0) {
    copyFromRemoteBuffer(handle, const_cast<T*>(dst.data()), repeatIndex,  // NOLINT
                         replicationIndex);
  }

  void copyToRemoteBuffer(const void* src, const RemoteBuffer& buffer, std::uint64_t repeatIndex,
                          unsigned replicationIndex = 0) {
    copyToRemoteBuffer(src, StringRef(buffer.handle()), repeatIndex, replicationIndex);
  }
  void copyFromRemoteBuffer(const RemoteBuffer& buffer, void* dst, std::uint64_t repeatIndex,
                            unsigned replicationIndex = 0) {
    copyFromRemoteBuffer(StringRef(buffer.handle()), dst, repeatIndex, replicationIndex);
  }

  /// The options given on construction, and those of the environment.
  OptionFlags getEngineOptions() const;
  /// Makes later runs end with an error, one location per run, lowest tile first:
  /// unknown_runtime_error for UNKNOWN, unrecoverable_runtime_error for IPU_MEMORY_FAILURE,
  /// recoverable_runtime_error for links, time-outs, MEMORY_ERROR and IPUSOFTERR, else
  /// application_runtime_error. Throws poplar_error for a tile outside the program's target.
  void insertSimulatedError(ErrorCode error, const ErrorLocation& location);
  void eraseSimulatedError(const ErrorLocation& location);
  void clearSimulatedErrors();
  /// Tiles where errors can occur: all tiles of a replica, or those of a compute set's vertices.
  /// Throws poplar_error for a set without vertices, as in library functions of the model.
  std::vector<ErrorLocation> getSimulatedErrorLocations(unsigned prog,
                                                        unsigned replicaIndex = 0) const;
  std::vector<ErrorLocation> getSimulatedErrorLocations(StringRef computeSet,
                                                        unsigned replicaIndex = 0) const;

  /// Handles of the streams that the program reads and writes.
  std::vector<std::string> listStreams() const;
  /// Sets where PrintTensor prints; std::cerr by default. The stream must outlive the runs.
  void setPrintStream(std::ostream& stream);
  void setPrintTensorStream(std::ostream& stream) { setPrintStream(stream); }
  /// Writes the same bytes as Executable::serialize.
  void serializeExecutable(std::ostream& out) const;

  /// Host time, and the cycles of all runs so far.
  struct TimerTimePoint {
    std::chrono::steady_clock::time_point host;
    double cycles = 0;
  };
  TimerTimePoint getTimeStamp() const;
  std::string reportTiming(const TimerTimePoint& startPoint, const TimerTimePoint& endPoint) const;
  /// Prints the runs since the profile was reset, one line each: name, cycles.
  void reportIntervals(std::ostream& os) const;

  /// The model's profile of the graph, of the runs since the last reset, and of both, as
  /// "graphProfile" and "executionProfile". Returned as const so that programs can bind `auto&`.
  const ProfileValue getGraphProfile() const;      // NOLINT: constant on purpose
  const ProfileValue getExecutionProfile() const;  // NOLINT
  const ProfileValue getProfile() const;           // NOLINT
  void resetExecutionProfile();
  void enableExecutionProfiling();
  void disableExecutionProfiling();
  void printProfileSummary(std::ostream& os, const OptionFlags& opt = {}) const;
  /// The same profile for the readers of pva/pva.hpp. With autoReport.all or any autoReport.output*
  /// option, an engine writes it to profile.pop in autoReport.directory on construction, after each
  /// run (unless autoReport.streamAtEachRun = false) and on destruction.
  pva::Report getReport(bool reportExecution = true) const;
  /// For the library: the contents of a profile.pop.
  std::string reportBytes() const;

 private:
  void runWith(unsigned prog, const std::string& debugName, const OptionFlags& options);

  struct Impl;
  Impl& impl() const;  ///< throws if the engine was moved from
  std::unique_ptr<Impl> impl_;
};

/// Prints the summary of Engine::printProfileSummary from saved profiles.
void printProfileSummary(std::ostream& os, const ProfileValue& graphProfile,
                         const ProfileValue& executionProfile, const OptionFlags& opts = {});
void printGraphSummary(std::ostream& os, const ProfileValue& graphProfile,
                       const OptionFlags& opts = {});
void printExecutionSummary(std::ostream& os, const ProfileValue& graphProfile,
                           const ProfileValue& executionProfile, const OptionFlags& opts = {});

}  // namespace poplar
