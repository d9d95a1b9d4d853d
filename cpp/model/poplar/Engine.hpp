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

/// Loads a compiled graph on a device and runs its programs. Options: those that the SDK documents
/// are accepted, and JSON in POPLAR_ENGINE_OPTIONS comes on top; docs/poplar-api.md says which have
/// an effect.
///
/// A program of a replicated graph runs on all replicas. Each has its own variables, streams and
/// remote buffers; memory that the host gives or takes holds them one after another, replica 0
/// first. An error of one replica ends the run of all.
///
/// Callbacks of streams and host functions are called one after another, replica 0 first, on the
/// thread that calls `run`. With streamCallbacks.multiThreadMode = dedicated or collaborative and a
/// streamCallbacks.numWorkerThreads other than 0, each replica calls them on a thread of its own,
/// however many that are: then a callback may wait for that of another replica, and those that
/// share state need a lock.
class Engine {
 public:
  using ProgressFunc = poplar::ProgressFunc;

  Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt = {},
         ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
  Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt = {},
         ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
  /// The form of early SDKs, whose engine is loaded when it is made.
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

  /// load is prepare, which the model does when it is constructed, and deploy.
  void prepare(const Device& device);
  void prepare(const Device& device, const RuntimeOptions& runOptions);
  void deploy();
  void load(const Device& device);
  void run(unsigned prog = 0, const std::string& debugName = "");
  void run(unsigned prog, const std::string& debugName, const RuntimeOptions& options);
  /// From another thread: a run in progress ends at its next loop iteration, by
  /// application_runtime_error.
  void stop();
  void loadAndRun(const Device& device, unsigned prog = 0, const std::string& debugName = "") {
    load(device);
    run(prog, debugName);
  }

  /// A copy of the stream moves the next block of the memory, which is started over at its end. A
  /// replicated stream has its memory in equal shares for the replicas, one block each without an
  /// end; what is broadcast is read by all replicas alike.
  void connectStream(StringRef handle, void* begin);
  void connectStream(StringRef handle, void* begin, void* end);
  void connectStream(const DataStream& stream, void* begin) {
    connectStream(StringRef(stream.handle()), begin);
  }
  void connectStream(const DataStream& stream, void* begin, void* end) {
    connectStream(StringRef(stream.handle()), begin, end);
  }
  /// To all replicas, one after another; a block that is broadcast is fetched once for all.
  void connectStreamToCallback(StringRef handle, StreamCallbackHandle callback);
  /// `index` is the replica's.
  void connectStreamToCallback(StringRef handle, unsigned index, StreamCallbackHandle callback);
  void connectStreamToCallback(const DataStream& stream, StreamCallbackHandle callback) {
    connectStreamToCallback(StringRef(stream.handle()), std::move(callback));
  }
  void connectHostFunction(StringRef handle, unsigned index, HostCallbackHandle callback);

  /// From and to memory of the host, of the size that the tensor has in all replicas.
  void writeTensor(StringRef handle, const void* buf, const void* bufEnd);
  void readTensor(StringRef handle, void* buf, void* bufEnd);
  void writeTensor(StringRef handle, const void* buf);
  void readTensor(StringRef handle, void* buf);
  template <class T>
  void writeTensor(StringRef handle, ArrayRef<T> buf) {
    writeTensor(handle, buf.data(), buf.data() + buf.size());
  }

  template <class T>
  void readTensor(StringRef handle, ArrayRef<T> buf) {  // the SDK's form: written all the same
    auto* const begin = const_cast<T*>(buf.data());     // NOLINT
    readTensor(handle, begin, begin + buf.size());
  }
  /// Quarters with their metadata, which constant ones must have already. Throw poplar_error where
  /// the handle is that of another type.
  void writeTensor(StringRef handle, const QuarterMetadata& metadata, const void* buf,
                   const void* bufEnd);
  void readTensor(StringRef handle, QuarterMetadata& metadata, void* buf, void* bufEnd);
  template <class T>
  void connectStream(StringRef handle, const ArrayRef<T>& buf) {
    auto* const begin = const_cast<T*>(buf.data());  // NOLINT
    connectStream(handle, begin, begin + buf.size());
  }

  /// One entry of one replica's remote buffer from and to memory of the host.
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

  /// The options that the engine was made with, and those of the environment.
  OptionFlags getEngineOptions() const;
  /// Errors that the next run ends with, once for each location: by application_runtime_error where
  /// a program can cause it, else by unrecoverable_runtime_error, or by recoverable_runtime_error
  /// for links and time-outs. Throw poplar_error for a tile that the program's target does not
  /// have.
  void insertSimulatedError(ErrorCode error, const ErrorLocation& location);
  void eraseSimulatedError(const ErrorLocation& location);
  void clearSimulatedErrors();
  /// Where a program's errors can be: the tiles of a replica. Of a compute set: those of its
  /// vertices; throws poplar_error where there are none, as in library functions of the model.
  std::vector<ErrorLocation> getSimulatedErrorLocations(unsigned prog,
                                                        unsigned replicaIndex = 0) const;
  std::vector<ErrorLocation> getSimulatedErrorLocations(StringRef computeSet,
                                                        unsigned replicaIndex = 0) const;

  /// The handles of the streams that the program copies from and to.
  std::vector<std::string> listStreams() const;
  /// Where PrintTensor prints; at first std::cerr. The stream must outlive the runs.
  void setPrintStream(std::ostream& stream);
  void setPrintTensorStream(std::ostream& stream) { setPrintStream(stream); }
  /// What Executable::serialize writes.
  void serializeExecutable(std::ostream& out) const;

  /// The host's time, and the cycles of all runs so far.
  struct TimerTimePoint {
    std::chrono::steady_clock::time_point host;
    double cycles = 0;
  };
  TimerTimePoint getTimeStamp() const;
  std::string reportTiming(const TimerTimePoint& startPoint, const TimerTimePoint& endPoint) const;
  /// The runs since the profile was reset, one line each: name, cycles.
  void reportIntervals(std::ostream& os) const;

  /// The model's account: of the graph, of the runs since the profile was reset, and both as
  /// "graphProfile" and "executionProfile". Constant, so that `auto&` binds, as programs have it.
  const ProfileValue getGraphProfile() const;      // NOLINT: constant on purpose
  const ProfileValue getExecutionProfile() const;  // NOLINT
  const ProfileValue getProfile() const;           // NOLINT
  void resetExecutionProfile();
  void enableExecutionProfiling();
  void disableExecutionProfiling();
  void printProfileSummary(std::ostream& os, const OptionFlags& opt = {}) const;
  /// The same account for the readers of pva/pva.hpp. With autoReport.all, or another option of
  /// autoReport.output*, an engine writes it to autoReport.directory as profile.pop when it is
  /// made, after each run (unless autoReport.streamAtEachRun = false) and at its end.
  pva::Report getReport(bool reportExecution = true) const;
  /// For the library: what a profile.pop holds.
  std::string reportBytes() const;

 private:
  void runWith(unsigned prog, const std::string& debugName, const OptionFlags& options);

  struct Impl;
  Impl& impl() const;  ///< throws where the engine was moved from
  std::unique_ptr<Impl> impl_;
};

/// What Engine::printProfileSummary prints, from profiles that were kept.
void printProfileSummary(std::ostream& os, const ProfileValue& graphProfile,
                         const ProfileValue& executionProfile, const OptionFlags& opts = {});
void printGraphSummary(std::ostream& os, const ProfileValue& graphProfile,
                       const OptionFlags& opts = {});
void printExecutionSummary(std::ostream& os, const ProfileValue& graphProfile,
                           const ProfileValue& executionProfile, const OptionFlags& opts = {});

}  // namespace poplar
