#include "poplar/Engine.hpp"

#include <cstring>
#include <ostream>

#include "engine/Image.hpp"
#include "engine/Kernel.hpp"
#include "engine/Session.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

using ipujax::engine::Image;

namespace {

/// One connected stream: memory walked block by block and started over at its end, or a callback.
struct Connection {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  std::byte* at = nullptr;
  std::function<void(void*)> callback;
};

class EngineStreams final : public ipujax::engine::HostStreams {
 public:
  explicit EngineStreams(std::shared_ptr<const Image> image)
      : image_(std::move(image)), connections_(image_->streams.size()) {}

  Connection& find(const std::string& handle) { return connections_[numberOf(handle)]; }
  std::uint64_t bytesOf(const std::string& handle) const {
    return image_->streams[numberOf(handle)].bytes;
  }

  void read(std::uint32_t stream, void* device, std::uint64_t bytes) override {
    Connection& c = connected(stream);
    if (c.callback) return c.callback(device);
    std::memcpy(device, advance(c, bytes), bytes);
  }

  void write(std::uint32_t stream, const void* device, std::uint64_t bytes) override {
    Connection& c = connected(stream);
    if (c.callback) {
      // A callback may write what it is given; the device's memory is not its to change.
      std::vector<std::byte> block(bytes);
      std::memcpy(block.data(), device, bytes);
      return c.callback(block.data());
    }
    std::memcpy(advance(c, bytes), device, bytes);
  }

 private:
  std::size_t numberOf(const std::string& handle) const {
    for (std::size_t i = 0; i < connections_.size(); ++i)
      if (image_->streams[i].handle == handle) return i;
    throw stream_connection_error("[Engine] needs the handle of a stream; got '" + handle +
                                  "'. Use the handle of a stream of the graph.");
  }

  Connection& connected(std::uint32_t stream) {
    Connection& c = connections_[stream];
    if (!c.begin && !c.callback) {
      throw stream_connection_error("[Engine] needs every stream connected; got '" +
                                    image_->streams[stream].handle +
                                    "', which is not. Call connectStream first.");
    }
    return c;
  }

  static std::byte* advance(Connection& c, std::uint64_t bytes) {
    if (c.at + bytes > c.end) c.at = c.begin;
    std::byte* block = c.at;
    c.at += bytes;
    return block;
  }

  std::shared_ptr<const Image> image_;
  std::vector<Connection> connections_;
};

}  // namespace

struct Engine::Impl {
  explicit Impl(const Executable& exe)
      : image(exe.image()),
        streams(image),
        session(image, std::make_shared<ipujax::engine::DeviceMemory>()) {}

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
  EngineStreams streams;
  ipujax::engine::Session session;
  bool loaded = false;
};

Engine::Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt)
    : Engine(graph, ArrayRef<program::Program>(&prog, 1), opt) {}
Engine::Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt)
    : Engine(compileGraph(graph, progs, opt)) {}
Engine::Engine(Executable exe, const OptionFlags&) : impl_(std::make_unique<Impl>(exe)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

void Engine::load(const Device&) {
  impl_->enter("load");
  impl_->loaded = true;
}

void Engine::run(unsigned prog, const std::string&) {
  if (!impl_->loaded) throw poplar_error("[Engine::run] needs a loaded engine. Call load first.");
  impl_->enter(std::to_string(prog));
}

void Engine::connectStream(StringRef handle, void* begin) {
  connectStream(handle, begin,
                static_cast<std::byte*>(begin) + impl_->streams.bytesOf(std::string(handle)));
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  const std::string name(handle);
  const auto size =
      static_cast<std::uint64_t>(static_cast<std::byte*>(end) - static_cast<std::byte*>(begin));
  Connection& c = impl_->streams.find(name);
  if (size < impl_->streams.bytesOf(name)) {
    throw stream_connection_error("[Engine::connectStream] '" + name + "' needs " +
                                  std::to_string(impl_->streams.bytesOf(name)) + " bytes; got " +
                                  std::to_string(size) + ". Pass a buffer of that size.");
  }
  c = {static_cast<std::byte*>(begin),
       static_cast<std::byte*>(end),
       static_cast<std::byte*>(begin),
       {}};
}

void Engine::connectStreamToCallback(StringRef handle, std::function<void(void*)> callback) {
  impl_->streams.find(std::string(handle)).callback = std::move(callback);
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

void Engine::printProfileSummary(std::ostream& os, const OptionFlags&) const {
  const auto cost = impl_->image->cost();
  const auto& memory = impl_->image->memory;
  os << "Cycles (longest program): " << cost.cycles() << " (compute " << cost.compute_cycles
     << ", exchange " << cost.exchange_cycles << ", sync " << cost.sync_cycles << ")\n"
     << "Exchange bytes: " << cost.exchange_bytes << "\n"
     << "Memory on the fullest tile (" << memory.worst_tile << "): " << memory.worst_tile_bytes
     << " of " << memory.tile_capacity << " bytes\n";
}

}  // namespace poplar
