#include "poplar/Engine.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>

#include "engine/codelets/VertexStep.hpp"
#include "engine/image/Image.hpp"
#include "engine/run/Session.hpp"
#include "poplar/exceptions.hpp"
#include "poplar/internal/EngineOptions.hpp"
#include "poplar/internal/EngineProfile.hpp"
#include "poplar/internal/EngineStreams.hpp"
#include "poplar/internal/GraphProfile.hpp"
#include "poplar/internal/Held.hpp"
#include "poplar/internal/JsonOptions.hpp"
#include "poplar/internal/StreamNames.hpp"

namespace poplar {

using ipujax::engine::Image;
struct Engine::Impl {
  explicit Impl(const Executable& exe)
      : image((internal::held(exe.image(), "Executable"), exe.image())),
        streams(image),
        session(image, memories(image->signature)) {}

  using Memories = std::vector<std::shared_ptr<ipujax::engine::DeviceMemory>>;
  static Memories memories(const ipujax::engine::Signature& signature) {
    Memories made(signature.num_replicas);
    for (auto& memory : made) memory = std::make_shared<ipujax::engine::DeviceMemory>();
    return made;
  }

  ~Impl() { writeReport(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Renames a finished file, so that readers always find a whole report. A failure to write it
  /// must not end a program that has done its work.
  void writeReport() const noexcept {
    if (report_file.empty()) return;
    try {
      const std::string part = report_file + ".part";
      std::ofstream(part, std::ios::binary) << log.report(*image, options);
      std::filesystem::rename(part, report_file);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  /// Runs an entry point on one replica, or on all of them.
  void enter(const std::string& name, std::optional<unsigned> replica = {},
             bool threads_for_callbacks = false) {
    const std::int32_t selector = selectorOf(name);
    const void* const inputs[] = {&selector};
    const ipujax::engine::Arrays arrays{inputs, {}};
    const Running running(*this);
    streams.begin(threads_for_callbacks);
    try {
      if (replica) {
        session.runOne(*replica, arrays, &streams);
      } else {
        const std::vector all(image->signature.num_replicas, arrays);
        session.run(all, nullptr, &streams);
      }
    } catch (const poplar_error&) {
      throw;
    } catch (const std::exception& e) {
      throw application_runtime_error(e.what());
    }
  }

  /// Marks a run as in progress during its lifetime. A stop that came as the run before ended does
  /// not stop this one.
  struct Running {
    explicit Running(Impl& the_engine) : engine(the_engine) {
      const std::lock_guard lock(engine.mutex);
      if (engine.runs)
        throw poplar_error(
            "[Engine] needs the program that runs to end first; got a call of its callback or of "
            "another thread. Call the engine after run().");
      engine.runs = true;
      engine.session.forgetCancel();
    }
    ~Running() {
      const std::lock_guard lock(engine.mutex);
      engine.runs = false;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    Impl& engine;
  };

  void stop() {
    const std::lock_guard lock(mutex);
    if (runs) session.cancel();
  }

  bool hasEntryPoint(const std::string& name) const {
    const auto& names = image->entry_points;
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// Programs are entry points named by their index.
  void needProgram(const std::string& entry) const {
    if (hasEntryPoint(entry)) return;
    std::size_t programs = 0;
    while (hasEntryPoint(std::to_string(programs))) ++programs;
    throw poplar_error("[Engine::run] needs a program below " + std::to_string(programs) +
                       ", the number of programs that the engine has; got " + entry +
                       ". Use the place in the list that it was made with.");
  }

  std::int32_t selectorOf(const std::string& name) const {
    const auto& names = image->entry_points;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
    throw poplar_error("[Engine] needs the handle of a host read or write, or a program; got '" +
                       name + "'. Create it before the graph is compiled.");
  }

  /// Number of entries of the remote buffer that this entry point reads or writes.
  std::uint64_t entriesOf(const std::string& entry_point) const {
    for (const auto& step : image->steps) {
      const bool moves =
          step.kernel == "engine.remote_write" || step.kernel == "engine.remote_read";
      if (moves && image->debug[step.debug].name == entry_point)
        return static_cast<std::uint64_t>(step.operands[0].shape.at(0));
    }
    return 0;
  }

  /// Moves one entry of one replica's remote buffer to or from host memory.
  void copyEntry(const char* direction, StringRef buffer, void* memory, std::uint64_t repeat,
                 unsigned replica) {
    const auto handle = buffer.cloneAsString();
    const std::string name = direction + handle;
    if (!hasEntryPoint(name)) {
      throw poplar_error("[Engine] needs the handle of a remote buffer; got '" + handle +
                         "'. Create it before the graph is compiled.");
    }
    if (replica >= image->signature.num_replicas) {
      throw poplar_error("[Engine] needs one of " + std::to_string(image->signature.num_replicas) +
                         " replicas; got replica " + std::to_string(replica) +
                         ". Use a replica below that number.");
    }
    const std::uint64_t entries = entriesOf(name);
    if (repeat >= entries) {
      throw poplar_error("[Engine] needs one of the " + std::to_string(entries) +
                         " entries of remote buffer '" + handle + "'; got " +
                         std::to_string(repeat) + ". Use a repeat index below that number.");
    }
    auto entry = static_cast<std::int32_t>(repeat);
    streams.connect(name + ".entry", replica, &entry);
    streams.connect(name, replica, memory);
    enter(name, replica);
  }

  std::shared_ptr<const Image> image;
  internal::EngineStreams streams;
  ipujax::engine::Session session;
  internal::RunLog log;
  bool loaded = false;
  std::mutex mutex;         ///< guards runs
  bool runs = false;        ///< a program
  std::string report_file;  ///< empty: none
  bool reports_each_run = true;
  OptionFlags options;
  OptionFlags run_options;  ///< for runs without options
  std::map<ErrorLocation, ErrorCode> simulated_errors;

  unsigned numTiles() const { return image->num_tiles * image->signature.num_replicas; }

  void throwSimulatedError() {
    if (simulated_errors.empty()) return;
    const auto [location, code] = *simulated_errors.begin();
    simulated_errors.erase(simulated_errors.begin());
    const std::string text = "[Engine::run] a simulated error on tile " +
                             std::to_string(location.getTile()) + ": " +
                             errorCodeToString(code).cloneAsString();
    switch (code) {
      case ErrorCode::LINK_DOWN:
        throw recoverable_runtime_error(text, RecoveryAction::LINK_RESET);
      case ErrorCode::HOST_LINK_DOWN:
        throw recoverable_runtime_error(text, RecoveryAction::FULL_RESET);
      case ErrorCode::HOST_SYNC_TIMEOUT:
      case ErrorCode::MEMORY_ERROR:
      case ErrorCode::IPUSOFTERR:
        throw recoverable_runtime_error(text, RecoveryAction::IPU_RESET);
      case ErrorCode::IPU_MEMORY_FAILURE:
        throw unrecoverable_runtime_error(text);
      case ErrorCode::UNKNOWN:
        throw unknown_runtime_error(text);
      default:
        throw application_runtime_error(text);
    }
  }
};

Engine::Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt,
               ProgressFunc progressCallBack, const DebugContext& debugContext)
    : Engine(graph, ArrayRef<program::Program>(&prog, 1), opt, std::move(progressCallBack),
             debugContext) {}
Engine::Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt,
               ProgressFunc progressCallBack, const DebugContext& debugContext)
    : Engine(compileGraph(graph, progs, opt, std::move(progressCallBack), debugContext), opt) {}
Engine::Impl& Engine::impl() const { return internal::held(impl_, "Engine"); }

Engine::Engine(Executable exe, const OptionFlags& opt) : impl_(std::make_unique<Impl>(exe)) {
  const internal::EngineOptions options = internal::engineOptions(opt);
  impl_->report_file = internal::reportFile(options);
  impl_->options = options.flags;
  impl_->run_options = RuntimeOptions(OptionFlags()).flags();
  internal::threadsForCallbacks(impl_->options, impl_->run_options);  // throws for invalid values
  impl_->reports_each_run = options.reports_each_run;
  impl_->log.enable(options.records_runs);
  impl_->writeReport();
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

RuntimeOptions::RuntimeOptions(const OptionFlags& options)
    : options_(internal::withEnvironment(options, "POPLAR_RUNTIME_OPTIONS")) {
  internal::checkRuntimeOptions(options_);
}

void Engine::prepare(const Device& device) {
  const Target& target = device.getTarget();
  const unsigned tiles = target.getNumIPUs() * target.getTilesPerIPU();
  if (tiles != impl().numTiles())
    throw poplar_error("[Engine::load] needs a device of the graph's target, with " +
                       std::to_string(impl_->numTiles()) + " tiles; got one with " +
                       std::to_string(tiles) + ". Make both for one target.");
}
void Engine::prepare(const Device& device, const RuntimeOptions&) { prepare(device); }
void Engine::stop() { impl().stop(); }
void Engine::deploy() {
  impl().enter("load");
  impl().loaded = true;
}
void Engine::load(const Device& device) {
  prepare(device);
  deploy();
}

void Engine::run(unsigned prog, const std::string& debugName) {
  runWith(prog, debugName, impl().run_options);
}

void Engine::run(unsigned prog, const std::string& debugName, const RuntimeOptions& options) {
  runWith(prog, debugName, options.flags());
}

void Engine::runWith(unsigned prog, const std::string& debugName, const OptionFlags& options) {
  if (!impl().loaded) throw poplar_error("[Engine::run] needs a loaded engine. Call load first.");
  const std::string entry = std::to_string(prog);
  impl().needProgram(entry);
  impl().throwSimulatedError();
  impl().enter(entry, {}, internal::threadsForCallbacks(impl().options, options));
  const auto trips = impl().session.tripMeans();
  impl().log.add(debugName.empty() ? "program " + entry : debugName, entry,
                 internal::costOfEntry(*impl().image, entry, trips), trips);
  if (impl().reports_each_run) impl().writeReport();
}

void Engine::connectStream(StringRef handle, void* begin) {
  connectStream(handle, begin,
                static_cast<std::byte*>(begin) + impl().streams.bytesOf(std::string(handle)));
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  impl().streams.connect(std::string(handle), begin, end);
}

void Engine::connectStreamToCallback(StringRef handle, StreamCallbackHandle callback) {
  impl().streams.connect(std::string(handle), callback);
}

void Engine::connectStreamToCallback(StringRef handle, unsigned index,
                                     StreamCallbackHandle callback) {
  impl().streams.connectLane(std::string(handle), index, std::move(callback));
}

void Engine::connectHostFunction(StringRef handle, unsigned index, HostCallbackHandle callback) {
  impl().streams.connectFunction(std::string(handle), index, callback);
}

void Engine::writeTensor(StringRef handle, const void* buf, const void* bufEnd) {
  // The stream only reads from it.
  const std::string stream = "write:" + std::string(handle);
  connectStream(stream, const_cast<void*>(buf), const_cast<void*>(bufEnd));  // NOLINT
  impl().enter(stream);
}

void Engine::readTensor(StringRef handle, void* buf, void* bufEnd) {
  const std::string stream = "read:" + std::string(handle);
  connectStream(stream, buf, bufEnd);
  impl().enter(stream);
}

void Engine::writeTensor(StringRef handle, const void* buf) {
  const std::uint64_t bytes = impl().streams.bytesOf("write:" + std::string(handle));
  writeTensor(handle, buf, static_cast<const std::byte*>(buf) + bytes);
}

void Engine::readTensor(StringRef handle, void* buf) {
  const std::uint64_t bytes = impl().streams.bytesOf("read:" + std::string(handle));
  readTensor(handle, buf, static_cast<std::byte*>(buf) + bytes);
}

void Engine::writeTensor(StringRef handle, const QuarterMetadata& metadata, const void* buf,
                         const void* bufEnd) {
  const std::uint8_t bits = metadata.getBinary();
  const std::vector<std::uint8_t> all(impl().image->signature.num_replicas, bits);
  writeTensor(internal::metadataHandle(std::string(handle)), all.data(), all.data() + all.size());
  writeTensor(handle, buf, bufEnd);
}

void Engine::readTensor(StringRef handle, QuarterMetadata& metadata, void* buf, void* bufEnd) {
  std::vector<std::uint8_t> all(impl().image->signature.num_replicas);
  readTensor(internal::metadataHandle(std::string(handle)), all.data(), all.data() + all.size());
  metadata = QuarterMetadata(all[0]);
  readTensor(handle, buf, bufEnd);
}

OptionFlags Engine::getEngineOptions() const { return impl().options; }

void Engine::insertSimulatedError(ErrorCode error, const ErrorLocation& location) {
  if (location.getTile() >= impl().numTiles())
    throw poplar_error("[Engine::insertSimulatedError] needs a tile below " +
                       std::to_string(impl().numTiles()) + "; got " +
                       std::to_string(location.getTile()) + ". Use a tile of the program.");
  if (error != ErrorCode::NONE) impl().simulated_errors[location] = error;
}
void Engine::eraseSimulatedError(const ErrorLocation& location) {
  impl().simulated_errors.erase(location);
}
void Engine::clearSimulatedErrors() { impl().simulated_errors.clear(); }

std::vector<ErrorLocation> Engine::getSimulatedErrorLocations(unsigned prog,
                                                              unsigned replicaIndex) const {
  impl().selectorOf(std::to_string(prog));  // throws if there is no such program
  std::vector<ErrorLocation> locations;
  const unsigned tiles = impl().image->num_tiles;
  for (unsigned tile = 0; tile < tiles; ++tile) locations.emplace_back(replicaIndex * tiles + tile);
  return locations;
}
std::vector<ErrorLocation> Engine::getSimulatedErrorLocations(StringRef computeSet,
                                                              unsigned replicaIndex) const {
  const Image& image = *impl().image;
  std::set<std::int64_t> tiles;
  for (const auto& step : image.steps) {
    if (step.debug >= image.debug.size() || computeSet != image.debug[step.debug].name) continue;
    for (const auto& vertex : ipujax::engine::placedVertices(step)) tiles.insert(vertex.tile);
  }
  if (tiles.empty())
    throw poplar_error(
        "[Engine::getSimulatedErrorLocations] needs the name of a compute set with vertices; got "
        "'" +
        computeSet.cloneAsString() + "'. Use the number of the program.");
  std::vector<ErrorLocation> locations;
  for (const auto tile : tiles)
    locations.emplace_back(replicaIndex * image.num_tiles + static_cast<unsigned>(tile));
  return locations;
}

void Engine::copyToRemoteBuffer(const void* src, StringRef handle, std::uint64_t repeatIndex,
                                unsigned replicationIndex) {
  impl().copyEntry("to_remote:", handle,
                   const_cast<void*>(src),  // NOLINT: the stream only reads from it
                   repeatIndex, replicationIndex);
}

void Engine::copyFromRemoteBuffer(StringRef handle, void* dst, std::uint64_t repeatIndex,
                                  unsigned replicationIndex) {
  impl().copyEntry("from_remote:", handle, dst, repeatIndex, replicationIndex);
}

std::vector<std::string> Engine::listStreams() const { return impl().streams.handles(); }
void Engine::setPrintStream(std::ostream& stream) { impl().streams.printTo(stream); }
void Engine::serializeExecutable(std::ostream& out) const {
  Executable(impl().image).serialize(out);
}

Engine::TimerTimePoint Engine::getTimeStamp() const {
  return {std::chrono::steady_clock::now(), impl().log.allCycles()};
}

std::string Engine::reportTiming(const TimerTimePoint& startPoint,
                                 const TimerTimePoint& endPoint) const {
  const std::chrono::duration<double> host = endPoint.host - startPoint.host;
  const double cycles = endPoint.cycles - startPoint.cycles;
  return "Host: " + std::to_string(host.count()) +
         " s; device: " + std::to_string(static_cast<std::uint64_t>(cycles)) + " cycles, " +
         std::to_string(cycles / impl().image->clock_hz) + " s";
}

void Engine::reportIntervals(std::ostream& os) const { impl().log.print(os); }

const ProfileValue Engine::getGraphProfile() const { return internal::graphProfile(*impl().image); }
const ProfileValue Engine::getExecutionProfile() const {
  return impl().log.profile(impl().image->clock_hz);
}
const ProfileValue Engine::getProfile() const {
  return ProfileValue::Map{{"graphProfile", getGraphProfile()},
                           {"executionProfile", getExecutionProfile()}};
}
void Engine::resetExecutionProfile() { impl().log.reset(); }
void Engine::enableExecutionProfiling() { impl().log.enable(true); }
void Engine::disableExecutionProfiling() { impl().log.enable(false); }

std::string Engine::reportBytes() const { return impl().log.report(*impl().image, impl().options); }

void Engine::printProfileSummary(std::ostream& os, const OptionFlags& opt) const {
  poplar::printProfileSummary(os, getGraphProfile(), getExecutionProfile(), opt);
}

}  // namespace poplar

std::size_t std::hash<poplar::RuntimeOptions>::operator()(
    const poplar::RuntimeOptions& options) const {
  std::size_t seed = 0;
  for (const auto& [option, value] : options.flags())
    seed = seed * 31 + std::hash<std::string>()(option + '=' + value);
  return seed;
}
