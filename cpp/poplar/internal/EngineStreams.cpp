#include "poplar/internal/EngineStreams.hpp"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string_view>
#include <utility>

#include "poplar/exceptions.hpp"
#include "poplar/internal/StreamNames.hpp"

namespace poplar::internal {

using ipujax::engine::Image;

namespace {

/// One host function: what has arrived of its arguments, and its results once it was called.
struct HostCall {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> outputs;
  HostCallbackHandle function;

  void run() {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const auto& block : inputs) in.push_back(block.data());
    for (auto& block : outputs) out.push_back(block.data());
    function(in, out);
  }
};

}  // namespace

EngineStreams::EngineStreams(std::shared_ptr<const Image> image)
    : image_(std::move(image)), connections_(image_->streams.size()), printed_(&std::cerr) {}

void EngineStreams::print(const std::string& line) { *printed_ << line << std::endl; }

std::vector<std::string> EngineStreams::handles() const {
  std::vector<std::string> found;
  for (const auto& stream : image_->streams) {
    const auto begins = [&](std::string_view prefix) { return stream.handle.starts_with(prefix); };
    const bool is_own = begins("write:") || begins("read:") || begins("to_remote:") ||
                        begins("from_remote:");  // of the engine's own entry points
    if (!is_own) found.push_back(stream.handle);
  }
  return found;
}

std::size_t EngineStreams::numberOf(const std::string& handle) const {
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (image_->streams[i].handle == handle) return i;
  }
  throw stream_connection_error("[Engine] needs the handle of a stream; got '" + handle +
                                "'. Use the handle of a stream of the graph.");
}

std::uint64_t EngineStreams::bytesOf(const std::string& handle) const {
  return image_->streams[numberOf(handle)].bytes;
}

void EngineStreams::connect(const std::string& handle, void* begin, void* end) {
  auto* const first = static_cast<std::byte*>(begin);
  auto* const last = static_cast<std::byte*>(end);
  const auto size = static_cast<std::uint64_t>(last - first);
  if (size < bytesOf(handle)) {
    throw stream_connection_error("[Engine::connectStream] '" + handle + "' needs " +
                                  std::to_string(bytesOf(handle)) + " bytes; got " +
                                  std::to_string(size) + ". Pass a buffer of that size.");
  }
  connections_[numberOf(handle)] = {first, last, first, {}};
}

void EngineStreams::connect(const std::string& handle, StreamCallbackHandle callback) {
  connections_[numberOf(handle)].callback = std::move(callback);
}

void EngineStreams::connectFunction(const std::string& handle, HostCallbackHandle callback) {
  const auto call = std::make_shared<HostCall>(HostCall{{}, {}, std::move(callback)});
  const std::string in = hostFunctionStream(handle, true, {});
  const std::string out = hostFunctionStream(handle, false, {});
  for (const auto& stream : image_->streams) {
    if (stream.handle.starts_with(in)) call->inputs.emplace_back(stream.bytes);
    if (stream.handle.starts_with(out)) call->outputs.emplace_back(stream.bytes);
  }
  if (call->inputs.empty() && call->outputs.empty()) {
    throw stream_connection_error(
        "[Engine::connectHostFunction] needs a function of the graph; got '" + handle +
        "'. Use the handle given to addHostFunction.");
  }
  const bool calls_at_input = call->outputs.empty();
  for (std::size_t i = 0; i < call->inputs.size(); ++i) {
    const bool calls = calls_at_input && i + 1 == call->inputs.size();
    connect(hostFunctionStream(handle, true, i), [call, i, calls](void* p) {
      std::memcpy(call->inputs[i].data(), p, call->inputs[i].size());
      if (calls) call->run();
    });
  }
  for (std::size_t i = 0; i < call->outputs.size(); ++i) {
    connect(hostFunctionStream(handle, false, i), [call, i](void* p) {
      if (i == 0) call->run();  // every argument has arrived
      std::memcpy(p, call->outputs[i].data(), call->outputs[i].size());
    });
  }
}

void EngineStreams::read(std::uint32_t stream, void* device, std::uint64_t bytes) {
  Connection& c = connected(stream);
  if (!c.callback) {
    std::memcpy(device, advance(c, bytes), bytes);
    return;
  }
  (*c.callback)->fetch(device);
  (*c.callback)->complete();
}

void EngineStreams::write(std::uint32_t stream, const void* device, std::uint64_t bytes) {
  Connection& c = connected(stream);
  if (!c.callback) {
    std::memcpy(advance(c, bytes), device, bytes);
    return;
  }
  // A callback may write what it is given; the device's memory is not its to change.
  std::vector<std::byte> block(bytes);
  std::memcpy(block.data(), device, bytes);
  (*c.callback)->fetch(block.data());
  (*c.callback)->complete();
}

EngineStreams::Connection& EngineStreams::connected(std::uint32_t stream) {
  Connection& c = connections_[stream];
  if (!c.begin && !c.callback) {
    throw stream_connection_error("[Engine] needs every stream connected; got '" +
                                  image_->streams[stream].handle +
                                  "', which is not. Call connectStream first.");
  }
  return c;
}

std::byte* EngineStreams::advance(Connection& c, std::uint64_t bytes) {
  if (c.at + bytes > c.end) c.at = c.begin;
  std::byte* block = c.at;
  c.at += bytes;
  return block;
}

}  // namespace poplar::internal
