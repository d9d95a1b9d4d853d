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

/// One host function of one replica: the arguments received so far, and the results of the call.
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
    : image_(std::move(image)), shared_(image_->streams.size()), printed_(&std::cerr) {
  const std::uint32_t replicas = image_->signature.num_replicas;
  for (const auto& stream : image_->streams)
    lanes_.emplace_back(std::size_t{replicas} * stream.parts);
}

void EngineStreams::print(const std::string& line) {
  const std::lock_guard lock(print_mutex_);
  *printed_ << line << std::endl;
}

std::vector<std::string> EngineStreams::handles() const {
  std::vector<std::string> found;
  for (const auto& stream : image_->streams) {
    const auto begins = [&](std::string_view prefix) { return stream.handle.starts_with(prefix); };
    const bool is_own = begins("write:") || begins("read:") || begins("to_remote:") ||
                        begins("from_remote:") || begins("call:");
    if (!is_own) found.push_back(stream.handle);
  }
  return found;
}

std::size_t EngineStreams::numberOf(const std::string& handle) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (image_->streams[i].handle == handle) return i;
  }
  throw stream_connection_error("[Engine] needs the handle of a stream; got '" + handle +
                                "'. Use the handle of a stream of the graph.");
}

unsigned EngineStreams::lanesOf(std::size_t stream) const {
  return image_->streams[stream].broadcasts ? 1 : static_cast<unsigned>(lanes_[stream].size());
}

EngineStreams::Lane& EngineStreams::laneOf(const std::string& handle, std::size_t stream,
                                           unsigned lane) {
  if (lane < lanesOf(stream)) return lanes_[stream][lane];
  throw stream_connection_error(
      "[Engine] needs one of " + std::to_string(lanesOf(stream)) + " replicas of '" + handle +
      "'; got replica " + std::to_string(lane) +
      (image_->streams[stream].broadcasts ? ". Connect a stream that is broadcast once."
                                          : ". Use a replica below that number."));
}

std::uint64_t EngineStreams::bytesOf(const std::string& handle) const {
  const std::size_t stream = numberOf(handle);
  const auto& spec = image_->streams[stream];
  return spec.bytes / spec.parts * lanesOf(stream);
}

void EngineStreams::connect(const std::string& handle, void* begin, void* end) {
  auto* const first = static_cast<std::byte*>(begin);
  const std::uint64_t size =
      end < begin ? 0 : static_cast<std::uint64_t>(static_cast<std::byte*>(end) - first);
  if (size < bytesOf(handle)) {
    throw stream_connection_error("[Engine::connectStream] '" + handle + "' needs " +
                                  std::to_string(bytesOf(handle)) + " bytes; got " +
                                  std::to_string(size) + ". Pass a buffer of that size.");
  }
  const std::size_t stream = numberOf(handle);
  const std::uint64_t share = size / lanesOf(stream);
  const bool broadcasts = image_->streams[stream].broadcasts;
  auto& lanes = lanes_[stream];
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::byte* const at = first + (broadcasts ? 0 : i * share);
    lanes[i] = {at, at + share, at, {}};
  }
}

void EngineStreams::connect(const std::string& handle, unsigned replica, void* begin) {
  const std::size_t stream = numberOf(handle);
  auto* const first = static_cast<std::byte*>(begin);
  laneOf(handle, stream, replica) = {first, first + image_->streams[stream].bytes, first, {}};
}

void EngineStreams::connect(const std::string& handle, const StreamCallbackHandle& callback) {
  const std::size_t stream = numberOf(handle);
  for (unsigned lane = 0; lane < lanesOf(stream); ++lane) connectLane(handle, lane, callback);
}

void EngineStreams::connectLane(const std::string& handle, unsigned lane,
                                StreamCallbackHandle callback) {
  const std::size_t stream = numberOf(handle);
  Lane& to = laneOf(handle, stream, lane);
  if (callback.operator->() == nullptr)
    throw stream_connection_error("[Engine::connectStreamToCallback] needs a callback for '" +
                                  handle + "'; got null. Pass a function or a StreamCallback.");
  to.callback = std::move(callback);
  has_callbacks_ = true;
}

void EngineStreams::connectFunction(const std::string& handle, unsigned lane,
                                    const HostCallbackHandle& callback) {
  const auto call = std::make_shared<HostCall>(HostCall{{}, {}, callback});
  const std::string in = hostFunctionStream(handle, true, {});
  const std::string out = hostFunctionStream(handle, false, {});
  for (const auto& stream : image_->streams) {
    if (stream.handle.starts_with(in)) call->inputs.emplace_back(stream.bytes / stream.parts);
    if (stream.handle.starts_with(out)) call->outputs.emplace_back(stream.bytes / stream.parts);
  }
  if (call->inputs.empty() && call->outputs.empty()) {
    throw stream_connection_error(
        "[Engine::connectHostFunction] needs a function of the graph; got '" + handle +
        "'. Use the handle given to addHostFunction.");
  }
  const bool calls_at_input = call->outputs.empty();
  for (std::size_t i = 0; i < call->inputs.size(); ++i) {
    const bool calls = calls_at_input && i + 1 == call->inputs.size();
    connectLane(hostFunctionStream(handle, true, i), lane, [call, i, calls](void* p) {
      std::memcpy(call->inputs[i].data(), p, call->inputs[i].size());
      if (calls) call->run();
    });
  }
  for (std::size_t i = 0; i < call->outputs.size(); ++i) {
    connectLane(hostFunctionStream(handle, false, i), lane, [call, i](void* p) {
      if (i == 0) call->run();  // every argument has arrived
      std::memcpy(p, call->outputs[i].data(), call->outputs[i].size());
    });
  }
}

void EngineStreams::begin(bool threads_for_callbacks) {
  threads_for_callbacks_ = threads_for_callbacks;
  for (Shared& shared : shared_) {
    shared.blocks.clear();
    shared.first = 0;
    shared.taken.clear();
  }
}

void EngineStreams::fetch(Lane& lane, void* block, std::uint64_t bytes) {
  if (!lane.callback) {
    if (bytes > 0) std::memcpy(block, advance(lane, bytes), bytes);
    return;
  }
  (*lane.callback)->fetch(block);
  (*lane.callback)->complete();
}

/// A callback of a broadcast stream makes each block once, for the first replica that asks.
void EngineStreams::fetchShared(std::uint32_t stream, std::uint32_t replica, void* device,
                                std::uint64_t bytes) {
  Shared& shared = shared_[stream];
  const std::lock_guard lock(shared.mutex);
  shared.taken.resize(lanes_[stream].size());
  const std::uint64_t wanted = shared.taken[replica]++;
  if (wanted == shared.first + shared.blocks.size()) {
    std::vector<std::byte> block(bytes);
    fetch(connected(stream, 0), block.data(), bytes);
    shared.blocks.push_back(std::move(block));
  }
  std::memcpy(device, shared.blocks[wanted - shared.first].data(), bytes);
  while (!shared.blocks.empty() && std::ranges::min(shared.taken) > shared.first) {
    shared.blocks.pop_front();
    ++shared.first;
  }
}

void EngineStreams::read(std::uint32_t stream, std::uint32_t replica, void* device,
                         std::uint64_t bytes) {
  const auto& spec = image_->streams[stream];
  if (spec.broadcasts && lanes_[stream][0].callback)
    return fetchShared(stream, replica, device, bytes);
  const std::uint64_t part = bytes / spec.parts;
  for (std::uint32_t p = 0; p < spec.parts; ++p)
    fetch(connected(stream, replica * spec.parts + p), static_cast<std::byte*>(device) + p * part,
          part);
}

void EngineStreams::write(std::uint32_t stream, std::uint32_t replica, const void* device,
                          std::uint64_t bytes) {
  const std::uint32_t parts = image_->streams[stream].parts;
  const std::uint64_t part = bytes / parts;
  for (std::uint32_t p = 0; p < parts; ++p) {
    const auto* from = static_cast<const std::byte*>(device) + p * part;
    Lane& lane = connected(stream, replica * parts + p);
    if (!lane.callback) {
      if (part > 0) std::memcpy(advance(lane, part), from, part);
      continue;
    }
    // A callback may write to its block, but must not change the device's memory.
    std::vector<std::byte> block(from, from + part);
    (*lane.callback)->fetch(block.data());
    (*lane.callback)->complete();
  }
}

EngineStreams::Lane& EngineStreams::connected(std::uint32_t stream, std::size_t lane) {
  Lane& found = lanes_[stream][lane];
  // Empty memory may be a null pointer.
  if (!found.begin && !found.callback && image_->streams[stream].bytes > 0) {
    const std::string replica =
        lanesOf(stream) > 1 ? " of replica " + std::to_string(lane) : std::string();
    throw stream_connection_error("[Engine] needs every stream connected; got '" +
                                  image_->streams[stream].handle + "'" + replica +
                                  ", which is not. Call connectStream first.");
  }
  return found;
}

std::byte* EngineStreams::advance(Lane& lane, std::uint64_t bytes) {
  if (lane.at + bytes > lane.end) lane.at = lane.begin;
  std::byte* block = lane.at;
  lane.at += bytes;
  return block;
}

}  // namespace poplar::internal
