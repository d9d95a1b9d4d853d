#include "popx/RemoteBuffer.hpp"

#include "poplar/exceptions.hpp"

namespace popx {
namespace {

using native::ProgramKind;
using native::ViewPtr;

std::size_t sizeOf(const poplar::RemoteBuffer& buffer) {
  return buffer.numElements() * buffer.getRepeats();
}

void addStream(ProgramKind kind, const poplar::DataStream& stream,
               const poplar::RemoteBuffer& buffer, poplar::program::Sequence& prog,
               const poplar::DebugContext& debug) {
  const std::size_t elements = sizeOf(buffer);
  if (stream.numElements() != elements || stream.elementType() != buffer.elementType()) {
    throw poplar::poplar_error(
        "[popx.RemoteBuffer] stream '" + stream.handle() + "' needs the " +
        std::to_string(elements) + " elements of " + buffer.elementType().toString() + " of '" +
        buffer.handle() + "'; got " + std::to_string(stream.numElements()) + " of " +
        stream.elementType().toString() + ". Make both of one type and size.");
  }
  auto node = native::makeNode(kind, debug);
  node->view = buffer;
  node->ids = {stream.id()};
  prog.add(poplar::program::Program(node));
}

void copyEntry(const poplar::Graph& graph, const poplar::RemoteBuffer& entries,
               const poplar::RemoteBuffer& one, const poplar::Tensor& offset, bool to_entry,
               poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  if (entries.elementType() != one.elementType() || offset.numElements() != 1 ||
      sizeOf(one) != entries.numElements()) {
    throw poplar::poplar_error(
        "[popx.RemoteBuffer] '" + one.handle() + "' needs the size and type of an entry of '" +
        entries.handle() + "', and one offset; got " + std::to_string(sizeOf(one)) +
        " elements and " + std::to_string(offset.numElements()) + " offsets. Use withRepeats.");
  }
  native::appendRemoteCopy(graph, prog, entries, one, offset, to_entry, debug);
}

}  // namespace

void copyRemoteBuffer(poplar::Graph& graph, const poplar::RemoteBuffer& src,
                      const poplar::RemoteBuffer& dst, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  if (src.elementType() != dst.elementType() || sizeOf(src) != sizeOf(dst)) {
    throw poplar::poplar_error("[popx.copyRemoteBuffer] needs buffers of one size and type; got '" +
                               src.handle() + "' and '" + dst.handle() +
                               "'. Add a buffer like the first.");
  }
  const ViewPtr to = dst;
  const ViewPtr& from = src;
  native::appendCopy(graph.impl(), prog, native::share(native::reshapeView(*from, to->shape)), to,
                     debugContext);
}

void readEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src,
               const poplar::RemoteBuffer& dst, const poplar::Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  copyEntry(graph, src, dst, offset, false, prog, debugContext);
}

void writeEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src,
                const poplar::RemoteBuffer& dst, const poplar::Tensor& offset,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  copyEntry(graph, dst, src, offset, true, prog, debugContext);
}

poplar::RemoteBuffer withRepeats(const poplar::RemoteBuffer& buffer, std::size_t repeats) {
  const ViewPtr& view = buffer;
  const std::size_t elements = sizeOf(buffer) / repeats;
  return {buffer.handle(),
          buffer.elementType(),
          elements,
          repeats,
          native::share(native::reshapeView(*view, {repeats, elements})),
          buffer.isRearrangeOnHost(),
          buffer.isOptimisedForMemory()};
}

void fillFromHost(const poplar::DataStream& stream, const poplar::RemoteBuffer& buffer,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  addStream(ProgramKind::kStreamIn, stream, buffer, prog, debugContext);
}

void giveToHost(const poplar::RemoteBuffer& buffer, const poplar::DataStream& stream,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  addStream(ProgramKind::kStreamOut, stream, buffer, prog, debugContext);
}

}  // namespace popx
