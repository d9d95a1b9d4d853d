#include "poplar/Engine.hpp"

#include <fstream>
#include <ostream>

#include "engine/Image.hpp"
#include "engine/Session.hpp"
#include "poplar/exceptions.hpp"
#include "poplar/internal/EngineOptions.hpp"
#include "poplar/internal/EngineProfile.hpp"
#include "poplar/internal/EngineStreams.hpp"

namespace poplar {

using ipujax::engine::Image;
struct Engine::Impl {
  explicit Impl(const Executable& exe)
      : image(exe.image()),
        streams(image),
        session(image, std::make_shared<ipujax::engine::DeviceMemory>()) {}

  /// A report that cannot be written must not end a program that has done its work.
  ~Impl() {
    if (report_file.empty()) return;
    try {
      std::ofstream(report_file, std::ios::binary) << log.report(*image);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void enter(const std::string& name) {
    for (std::size_t i = 0; i < image->entry_points.size(); ++i) {
      if (image->entry_points[i] != name) continue;
      const auto selector = static_cast<std::int32_t>(i);
      const void* const inputs[] = {&selector};
      try {
        session.run(inputs, {}, nullptr, &streams);
      } catch (const poplar_error&) {
        throw;
      } catch (const std::exception& e) {
        throw application_runtime_error(e.what());
      }
      return;
    }
    throw poplar_error("[Engine] needs the handle of a host read or write, or a program; got '" +
                       name + "'. Create it before the graph is compiled.");
  }

  std::shared_ptr<const Image> image;
  internal::EngineStreams streams;
  ipujax::engine::Session session;
  internal::RunLog log;
  bool loaded = false;
  std::string report_file;  ///< written at the end; empty: none
};

Engine::Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt,
               ProgressFunc progressCallBack, const DebugContext& debugContext)
    : Engine(graph, ArrayRef<program::Program>(&prog, 1), opt, std::move(progressCallBack),
             debugContext) {}
Engine::Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt,
               ProgressFunc progressCallBack, const DebugContext& debugContext)
    : Engine(compileGraph(graph, progs, opt, std::move(progressCallBack), debugContext), opt) {}
Engine::Engine(Executable exe, const OptionFlags& opt) : impl_(std::make_unique<Impl>(exe)) {
  internal::checkEngineOptions(opt);
  impl_->report_file = internal::reportFile(opt);
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

void Engine::prepare(const Device&) {}
void Engine::deploy() {
  impl_->enter("load");
  impl_->loaded = true;
}
void Engine::load(const Device& device) {
  prepare(device);
  deploy();
}

void Engine::run(unsigned prog, const std::string& debugName) {
  if (!impl_->loaded) throw poplar_error("[Engine::run] needs a loaded engine. Call load first.");
  const std::string entry = std::to_string(prog);
  impl_->enter(entry);
  const auto trips = impl_->session.tripMeans();
  impl_->log.add(debugName.empty() ? "program " + entry : debugName, entry,
                 internal::costOfEntry(*impl_->image, entry, trips));
}

void Engine::connectStream(StringRef handle, void* begin) {
  connectStream(handle, begin,
                static_cast<std::byte*>(begin) + impl_->streams.bytesOf(std::string(handle)));
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  impl_->streams.connect(std::string(handle), begin, end);
}

void Engine::connectStreamToCallback(StringRef handle, StreamCallbackHandle callback) {
  impl_->streams.connect(std::string(handle), std::move(callback));
}

void Engine::connectStreamToCallback(StringRef handle, unsigned index,
                                     StreamCallbackHandle callback) {
  internal::checkReplica(index);
  connectStreamToCallback(handle, std::move(callback));
}

void Engine::connectHostFunction(StringRef handle, unsigned index, HostCallbackHandle callback) {
  internal::checkReplica(index);
  impl_->streams.connectFunction(std::string(handle), std::move(callback));
}

void Engine::writeTensor(StringRef handle, const void* buf, const void* bufEnd) {
  // The stream only reads from it.
  const std::string stream = "write:" + std::string(handle);
  connectStream(stream, const_cast<void*>(buf), const_cast<void*>(bufEnd));  // NOLINT
  impl_->enter(stream);
}

void Engine::readTensor(StringRef handle, void* buf, void* bufEnd) {
  const std::string stream = "read:" + std::string(handle);
  connectStream(stream, buf, bufEnd);
  impl_->enter(stream);
}

void Engine::writeTensor(StringRef handle, const void* buf) {
  const std::uint64_t bytes = impl_->streams.bytesOf("write:" + std::string(handle));
  writeTensor(handle, buf, static_cast<const std::byte*>(buf) + bytes);
}

void Engine::readTensor(StringRef handle, void* buf) {
  const std::uint64_t bytes = impl_->streams.bytesOf("read:" + std::string(handle));
  readTensor(handle, buf, static_cast<std::byte*>(buf) + bytes);
}

void Engine::copyToRemoteBuffer(const void* src, StringRef handle, std::uint64_t repeatIndex,
                                unsigned) {
  auto entry = static_cast<std::int32_t>(repeatIndex);
  const std::string name = "to_remote:" + std::string(handle);
  connectStream(name + ".entry", &entry);
  connectStream(name, const_cast<void*>(src));  // NOLINT: the stream only reads from it
  impl_->enter(name);
}

void Engine::copyFromRemoteBuffer(StringRef handle, void* dst, std::uint64_t repeatIndex,
                                  unsigned) {
  auto entry = static_cast<std::int32_t>(repeatIndex);
  const std::string name = "from_remote:" + std::string(handle);
  connectStream(name + ".entry", &entry);
  connectStream(name, dst);
  impl_->enter(name);
}

std::vector<std::string> Engine::listStreams() const { return impl_->streams.handles(); }
void Engine::setPrintStream(std::ostream& stream) { impl_->streams.printTo(stream); }
void Engine::serializeExecutable(std::ostream& out) const {
  Executable(impl_->image).serialize(out);
}

Engine::TimerTimePoint Engine::getTimeStamp() const {
  return {std::chrono::steady_clock::now(), impl_->log.allCycles()};
}

std::string Engine::reportTiming(const TimerTimePoint& startPoint,
                                 const TimerTimePoint& endPoint) const {
  const std::chrono::duration<double> host = endPoint.host - startPoint.host;
  const double cycles = endPoint.cycles - startPoint.cycles;
  return "Host: " + std::to_string(host.count()) +
         " s; device: " + std::to_string(static_cast<std::uint64_t>(cycles)) + " cycles, " +
         std::to_string(cycles / impl_->image->clock_hz) + " s";
}

void Engine::reportIntervals(std::ostream& os) const { impl_->log.print(os); }

ProfileValue Engine::getGraphProfile() const { return internal::graphProfile(*impl_->image); }
ProfileValue Engine::getExecutionProfile() const {
  return impl_->log.profile(impl_->image->clock_hz);
}
ProfileValue Engine::getProfile() const {
  return ProfileValue::Map{{"graphProfile", getGraphProfile()},
                           {"executionProfile", getExecutionProfile()}};
}
void Engine::resetExecutionProfile() { impl_->log.reset(); }
void Engine::enableExecutionProfiling() { impl_->log.enable(true); }
void Engine::disableExecutionProfiling() { impl_->log.enable(false); }

std::string Engine::reportBytes() const { return impl_->log.report(*impl_->image); }

void Engine::printProfileSummary(std::ostream& os, const OptionFlags& opt) const {
  poplar::printProfileSummary(os, getGraphProfile(), getExecutionProfile(), opt);
}

}  // namespace poplar
