#include "backends/poplar/Container.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "poplar/Executable.hpp"
#include "support/Seal.hpp"
#include "support/Serial.hpp"
#include "support/SignatureBytes.hpp"

namespace ipujax::poplar_backend {
namespace {

using runtime::ExecutableError;
using runtime::Is;
using runtime::members;

// The magic differs from the IPU Model's, so that neither build accepts the other's executables.
constexpr runtime::SealKind kSeal{
    {'I', 'P', 'U', 'J', 'A', 'X', 'P', 'X'}, 4, "an ipujax executable of a build against an SDK"};

constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

template <class A, Is<HostArraySpec> T>
void members(A& archive, T& array) {
  archive(array.dtype, array.shape);
}

template <class A, Is<HostCall> T>
void members(A& archive, T& call) {
  archive(call.handle, call.id);
  for (auto* arrays : {&call.arguments, &call.results})
    archive.list(*arrays, 16, [&](auto& array) { members(archive, array); });
}

template <class A, Is<RemoteArray> T>
void members(A& archive, T& array) {
  archive(array.index, array.handle, array.entries);
}

template <class A, Is<Container> T>
void members(A& archive, T& c) {
  members(archive, c.signature);
  archive.list(c.host_calls, 32, [&](auto& call) { members(archive, call); });
  for (auto* arrays : {&c.remote_inputs, &c.remote_outputs})
    archive.list(*arrays, 20, [&](auto& array) { members(archive, array); });
  archive(c.kept_inputs, c.tiles_per_ipu, c.ipus_per_replica, c.text, c.executable);
}

void need(bool good, const char* what) {
  if (!good)
    throw ExecutableError(std::string("[Executable] cannot be run: ") + what +
                          ". Compile it again.");
}

void verifyRemote(const std::vector<RemoteArray>& arrays,
                  const std::vector<runtime::TensorSpec>& specs) {
  std::set<std::uint32_t> indices;
  for (const auto& array : arrays) {
    need(array.index < specs.size() && indices.insert(array.index).second,
         "a remote buffer holds no argument or result, or one twice");
    const auto bytes = specs[array.index].bytes;
    need(array.entries > 0 && bytes % array.entries == 0, "a remote buffer has no whole entries");
  }
}

void verifyHostCalls(const Container& c) {
  need(c.signature.has_host_callbacks == !c.host_calls.empty(),
       "the host functions are not what the signature says");
  std::set<std::string> handles;
  for (const auto& call : c.host_calls) {
    need(handles.insert(call.handle).second, "two host functions have one handle");
    for (const auto* arrays : {&call.arguments, &call.results}) {
      for (const auto& array : *arrays) {
        std::int64_t elements = 1;
        for (const auto size : array.shape) {
          need(size >= 0 && size <= kMostElements, "an array of a host function has no size");
          elements *= size;
          need(elements <= kMostElements, "an array of a host function is too large");
        }
      }
    }
  }
}

void verifyKept(const Container& c) {
  std::set<std::uint32_t> indices;
  for (const auto& array : c.remote_inputs) indices.insert(array.index);
  for (const auto index : c.kept_inputs)
    need(index < c.signature.inputs.size() && indices.insert(index).second,
         "an argument that is kept is none, is named twice, or is in a remote buffer");
}

void verify(const Container& c) {
  runtime::verify(c.signature);
  need(c.ipus_per_replica > 0 && c.ipus_per_replica <= 4096, "a replica has no IPU");
  need(c.tiles_per_ipu > 0 && c.tiles_per_ipu <= (1 << 20), "an IPU has no tile");
  verifyHostCalls(c);
  verifyRemote(c.remote_inputs, c.signature.inputs);
  verifyRemote(c.remote_outputs, c.signature.outputs);
  verifyKept(c);
}

}  // namespace

bool HostArraySpec::isEmpty() const { return std::ranges::find(shape, 0) != shape.end(); }

std::string Container::seal() const {
  runtime::Writer contents;
  members(contents, *this);
  return runtime::seal(kSeal, contents.take());
}

Container Container::open(std::span<const std::byte> sealed) {
  try {
    runtime::Reader contents(runtime::unseal(kSeal, sealed));
    Container container;
    members(contents, container);
    if (!contents.atEnd()) throw std::out_of_range("bytes follow the end");
    verify(container);
    return container;
  } catch (const ExecutableError&) {
    throw;
  } catch (const std::exception& e) {
    throw ExecutableError(std::string("[Executable] cannot be read: ") + e.what() +
                          ". Compile it again.");
  }
}

std::string compile(const poplar::Graph& graph, const poplar::program::Program& program,
                    Container container, const poplar::OptionFlags& options) {
  const auto executable =
      poplar::compileGraph(graph, poplar::ArrayRef<poplar::program::Program>(&program, 1), options);
  std::ostringstream bytes;
  executable.serialize(bytes);
  container.executable = bytes.str();
  container.tiles_per_ipu = graph.getTarget().getTilesPerIPU();
  container.ipus_per_replica = graph.getTarget().getNumIPUs();
  return container.seal();
}

}  // namespace ipujax::poplar_backend
