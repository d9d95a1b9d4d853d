#include "popx/RemoteBuffer.hpp"

#include <numeric>
#include <vector>

#include "poplar/exceptions.hpp"
#include "popops/Loop.hpp"
#include "popx/checks/RemoteBuffer.hpp"
#include "popx/hardware/MapOne.hpp"

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

/// 0, 1, 2 ...
Tensor numbersOf(Graph& graph, std::size_t n, const poplar::DebugContext& debug) {
  std::vector<unsigned> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Tensor offsets = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {numbers.size()},
                                                     numbers, {debug, "offsets"});
  graph.setTileMapping(offsets, 0);
  return offsets;
}

Copy readAll(Graph& graph, const RemoteBuffer& buffer, const Tensor& t,
             const poplar::DebugContext& debug) {
  const Tensor entries = t.reshape({buffer.getRepeats(), buffer.numElements()});
  return Copy(buffer, entries, numbersOf(graph, buffer.getRepeats(), debug), debug);
}

Copy writeAll(Graph& graph, const Tensor& t, const RemoteBuffer& buffer,
              const poplar::DebugContext& debug) {
  const Tensor entries = t.reshape({buffer.getRepeats(), buffer.numElements()});
  return Copy(entries, buffer, numbersOf(graph, buffer.getRepeats(), debug), debug);
}

/// The index of the entry nearest to an offset.
Tensor nearest(Graph& graph, const RemoteBuffer& buffer, const Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  const auto last = static_cast<unsigned>(buffer.getRepeats() - 1);
  if (offset.elementType() == poplar::UNSIGNED_INT)
    return mapOne(graph, expr::Min(expr::_1, expr::Const(last)), {offset}, prog, debug);
  return mapOne(graph, expr::Clamp(expr::_1, expr::Const(0), expr::Const(static_cast<int>(last))),
                {offset}, prog, debug);
}

}  // namespace

void copyRemoteBuffer(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst,
                      poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkSame(src, dst);
  if (remote::sizeOf(src) == 0) return;
  const std::size_t piece = std::lcm(src.numElements(), dst.numElements());
  const Tensor room = graph.addVariable(
      src.elementType(), {piece}, poplar::VariableMappingMethod::LINEAR, {debugContext, "piece"});
  const Tensor from = room.reshape({piece / src.numElements(), src.numElements()});
  const Tensor to = room.reshape({piece / dst.numElements(), dst.numElements()});
  const auto copyPiece = [&](const Tensor& number) {
    poplar::program::Sequence body;
    const auto entries = [&](const Tensor& t) {
      return mapOne(graph,
                    expr::Cast(expr::_1, poplar::UNSIGNED_INT) *
                            expr::Const(static_cast<unsigned>(t.dim(0))) +
                        expr::_2,
                    {number, numbersOf(graph, t.dim(0), debugContext)}, body, debugContext);
    };
    body.add(Copy(src, from, entries(from), debugContext));
    body.add(Copy(to, dst, entries(to), debugContext));
    return body;
  };
  prog.add(popops::countedLoop(graph, remote::sizeOf(src) / piece, copyPiece, debugContext));
}

void readEntry(Graph& graph, const RemoteBuffer& src, const Tensor& dst, const Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkEntry(src, "a tensor", dst.numElements(), dst.elementType(), offset);
  prog.add(Copy(src, dst, nearest(graph, src, offset, prog, debugContext), debugContext));
}

void readEntry(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst, const Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkEntry(src, "'" + dst.handle() + "'", remote::sizeOf(dst), dst.elementType(), offset);
  const Tensor entry = roomFor(graph, dst, debugContext);
  readEntry(graph, src, entry.flatten(), offset, prog, debugContext);
  prog.add(writeAll(graph, entry, dst, debugContext));
}

void writeEntry(Graph& graph, const Tensor& src, const RemoteBuffer& dst, const Tensor& offset,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  remote::checkEntry(dst, "a tensor", src.numElements(), src.elementType(), offset);
  prog.add(Copy(src, dst, nearest(graph, dst, offset, prog, debugContext), debugContext));
}

void writeEntry(Graph& graph, const RemoteBuffer& src, const RemoteBuffer& dst,
                const Tensor& offset, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  remote::checkEntry(dst, "'" + src.handle() + "'", remote::sizeOf(src), src.elementType(), offset);
  const Tensor entry = roomFor(graph, src, debugContext);
  prog.add(readAll(graph, src, entry, debugContext));
  writeEntry(graph, entry.flatten(), dst, offset, prog, debugContext);
}

RemoteBuffer withRepeats(Graph& graph, const RemoteBuffer& buffer, std::size_t repeats,
                         const std::string& handle, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  const std::size_t elements = remote::entrySize(buffer, repeats);
  if (repeats == buffer.getRepeats()) return buffer;
  const RemoteBuffer copy = graph.addRemoteBuffer(handle, buffer.elementType(), elements, repeats);
  copyRemoteBuffer(graph, buffer, copy, prog, debugContext);
  return copy;
}

/// The memory is the host's, which writes there without a program.
void fillFromHost(const poplar::DataStream& stream, const RemoteBuffer& buffer,
                  poplar::program::Sequence& /*prog*/,
                  const poplar::DebugContext& /*debugContext*/) {
  remote::checkStream(stream, buffer);
}

void giveToHost(const RemoteBuffer& buffer, const poplar::DataStream& stream,
                poplar::program::Sequence& /*prog*/, const poplar::DebugContext& /*debugContext*/) {
  remote::checkStream(stream, buffer);
}

}  // namespace popx
