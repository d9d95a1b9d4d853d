#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/internal/Held.hpp"
#include "poplar/internal/StreamNames.hpp"

// The part of Graph that handles the host: streams, remote buffers, host functions.
namespace poplar {
namespace {

using ipujax::engine::GraphImpl;

DataStream addStream(GraphImpl& graph, StringRef handle, const Type& type, std::size_t elements,
                     DataStreamType direction,
                     ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE) {
  const std::string name(handle);
  for (const auto& other : graph.streams) {
    if (other.handle == name)
      throw stream_connection_error("[Graph] needs a new handle for each stream; got '" + name +
                                    "' again. Use another name.");
  }
  const auto id = static_cast<std::uint32_t>(graph.streams.size());
  ipujax::engine::Stream stream{id, name, type.storage(), elements,
                                direction == DataStreamType::HostToDeviceFIFO};
  stream.broadcasts = mode == ReplicatedStreamMode::BROADCAST;
  if (!stream.broadcasts) stream.parts = graph.parts.count;
  stream.elements *= stream.parts;
  graph.streams.push_back(std::move(stream));
  const auto replicas = static_cast<unsigned>(graph.replication_factor * graph.parts.count);
  return {id, name, type, elements, direction, mode, replicas};
}

[[noreturn]] void refuseStream(const char* getter, const std::string& handle) {
  throw poplar_error(std::string("[RemoteBuffer::") + getter +
                     "] needs a buffer that is made of streams; got '" + handle +
                     "', whose entries the model copies directly. Copy the buffer itself.");
}

/// The view that the host reads and writes for a tensor: all of its parts.
ipujax::engine::ViewPtr hostEndOf(GraphImpl& graph, const Tensor& t) {
  if (!t.valid() || t.graphImpl() != &graph)
    throw poplar_error(std::string("[Graph] needs a tensor of this graph for the host to read or "
                                   "write; got ") +
                       (t.valid() ? "one of another" : "an empty Tensor") +
                       ". Make it with this graph.");
  return graph.partsOf(*t.view()) > 1 ? graph.allParts(t.view()) : t.view();
}

}  // namespace

DataStream RemoteBuffer::getIpuToHostStream() const { refuseStream("getIpuToHostStream", handle_); }
DataStream RemoteBuffer::getHostToIpuStream() const { refuseStream("getHostToIpuStream", handle_); }

DataStream Graph::addHostToDeviceFIFO(StringRef handle, const Type& elementType,
                                      std::size_t numElements, ReplicatedStreamMode mode,
                                      const OptionFlags&) {
  return addStream(impl(), handle, elementType, numElements, DataStreamType::HostToDeviceFIFO,
                   mode);
}

DataStream Graph::addDeviceToHostFIFO(StringRef handle, const Type& elementType,
                                      std::size_t numElements, const OptionFlags&) {
  return addStream(impl(), handle, elementType, numElements, DataStreamType::DeviceToHostFIFO);
}

RemoteBuffer Graph::addRemoteBuffer(StringRef handle, const Type& elementType,
                                    std::size_t numElements, std::size_t repeats,
                                    bool rearrangeOnHost, bool optimiseMemory) {
  const std::string name(handle);
  if (numElements == 0 || repeats == 0 ||
      internal::held(impl_, "Graph").remote_buffers.contains(name)) {
    throw poplar_error(
        "[Graph::addRemoteBuffer] needs a new handle and at least one element; got '" + name +
        "' with " + std::to_string(repeats) + " entries of " + std::to_string(numElements) +
        ". Use another name or size.");
  }
  if (parts_ > 1) {
    throw graph_replication_error(
        "[Graph::addRemoteBuffer] needs a graph that createReplicatedGraph did not make; got '" +
        name + "' in a part of one. Make it with getTopLevelGraph or replication_factor.");
  }
  const auto view = impl().addRemote(elementType.storage(), {repeats, numElements}, name);
  internal::held(impl_, "Graph").remote_buffers[name] = view;
  return {name, elementType, numElements, repeats, view, rearrangeOnHost, optimiseMemory};
}

void Graph::createHostWrite(StringRef handle, const Tensor& t, bool) {
  if (t.hasMetadata() && !t.getMetadata().containsConstant())
    createHostWrite(internal::metadataHandle(std::string(handle)), t.getMetadata());
  if (!internal::held(impl_, "Graph")
           .host_writes.emplace(std::string(handle), hostEndOf(internal::held(impl_, "Graph"), t))
           .second)
    throw poplar_error("[Graph::createHostWrite] needs a new handle; got '" + std::string(handle) +
                       "' again. Use another name.");
}

void Graph::createHostRead(StringRef handle, const Tensor& t, bool) {
  if (t.hasMetadata())
    createHostRead(internal::metadataHandle(std::string(handle)), t.getMetadata());
  if (!internal::held(impl_, "Graph")
           .host_reads.emplace(std::string(handle), hostEndOf(internal::held(impl_, "Graph"), t))
           .second)
    throw poplar_error("[Graph::createHostRead] needs a new handle; got '" + std::string(handle) +
                       "' again. Use another name.");
}

HostFunction Graph::addHostFunction(StringRef handle, ArrayRef<HostFunctionArgument> inputs,
                                    ArrayRef<HostFunctionArgument> outputs) {
  const std::string name(handle);
  if (inputs.empty() && outputs.empty()) {
    throw poplar_error("[Graph::addHostFunction] '" + name +
                       "' needs at least one input or output; got none. Add one that tells the "
                       "host to run.");
  }
  std::vector<DataStream> in;
  std::vector<DataStream> out;
  for (const auto& [type, num_elements] : inputs) {
    in.push_back(addDeviceToHostFIFO(internal::hostFunctionStream(name, true, in.size()), type,
                                     num_elements));
  }
  for (const auto& [type, num_elements] : outputs) {
    out.push_back(addHostToDeviceFIFO(internal::hostFunctionStream(name, false, out.size()), type,
                                      num_elements));
  }
  return {name, std::move(in), std::move(out)};
}

}  // namespace poplar
