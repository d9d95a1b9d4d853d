#include "popx/RemoteBuffer.hpp"

#include <numeric>
#include <vector>

#include "poplar/exceptions.hpp"
#include "popx/checks/RemoteBuffer.hpp"

namespace popx {

namespace {

using poplar::Graph;
using poplar::RemoteBuffer;
using poplar::Tensor;
using poplar::program::Copy;

/// Room on the tiles for all entries of a buffer, [repeats, elements].
Tensor roomFor(Graph& graph, const RemoteBuffer& buffer, const poplar::DebugContext& debug) {
  return graph.addVariable(buffer.elementType(), {buffer.getRepeats(), buffer.numElements()},
                           poplar::VariableMappingMethod::LINEAR, {debug, "entries"});
}

/// The numbers of all entries.
Tensor offsetsOf(Graph& graph, const RemoteBuffer& buffer, const poplar::DebugContext& debug) {
  std::vector<unsigned> numbers(buffer.getRepeats());
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Tensor offsets = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {numbers.size()},
                                                     numbers, {debug, "offsets"});
  graph.setTileMapping(offsets, 0);
  return offsets;
}

Copy readAll(Graph& graph, const RemoteBuffer& buffer, const Tensor& t,
             const poplar::DebugContext& debug) {
  const Tensor entries = t.reshape({buffer.getRepeats(), buffer.numElements()});
  return Copy(buffer, entries, offsetsOf(graph, buffer, debug), debug);
}

Copy writeAll(Graph& graph, const Tensor& t, const RemoteBuffer& buffer,
              const poplar::DebugContext& debug) {
  const Tensor entries = t.reshape({buffer.getRepeats(), buffer.numElements()});
  return Copy(entries, buffer, offsetsOf(graph, buffer, debug), debug);
}

}  // namespace

void copyRemoteBuffer(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkSame(src, dst);
  const Tensor all = roomFor(graph, src, debugContext);
  prog.add(readAll(graph, src, all, debugContext));
  prog.add(writeAll(graph, all, dst, debugContext));
}

void readEntry(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst, const Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkEntry(src, dst, offset);
  const Tensor entry = roomFor(graph, dst, debugContext);
  prog.add(Copy(src, entry.flatten(), offset, debugContext));
  prog.add(writeAll(graph, entry, dst, debugContext));
}

void writeEntry(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst,
                const Tensor& offset, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  remote::checkEntry(dst, src, offset);
  const Tensor entry = roomFor(graph, src, debugContext);
  prog.add(readAll(graph, src, entry, debugContext));
  prog.add(Copy(entry.flatten(), dst, offset, debugContext));
}

}  // namespace popx
