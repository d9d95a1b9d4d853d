#include "popx/RemoteBuffer.hpp"

#include "popx/Native.hpp"
#include "popx/checks/RemoteBuffer.hpp"

namespace popx {
namespace {

using native::ProgramKind;
using native::ViewPtr;

void addStream(ProgramKind kind, const poplar::DataStream& stream,
               const poplar::RemoteBuffer& buffer, poplar::program::Sequence& prog,
               const poplar::DebugContext& debug) {
  remote::checkStream(stream, buffer);
  auto node = native::makeNode(kind, debug);
  node->view = buffer;
  node->ids = {stream.id()};
  prog.add(poplar::program::Program(node));
}

void copyEntry(const poplar::Graph& graph, const poplar::RemoteBuffer& entries,
               const poplar::RemoteBuffer& one, const poplar::Tensor& offset, bool to_entry,
               poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  remote::checkEntry(entries, "'" + one.handle() + "'", remote::sizeOf(one), one.elementType(),
                     offset);
  native::appendRemoteCopy(graph, prog, entries, one, offset, to_entry, native::Outside::kClamp,
                           debug);
}

void copyEntry(const poplar::Graph& graph, const poplar::RemoteBuffer& entries,
               const poplar::Tensor& one, const poplar::Tensor& offset, bool to_entry,
               poplar::program::Sequence& prog, const poplar::DebugContext& debug) {
  remote::checkEntry(entries, "a tensor", one.numElements(), one.elementType(), offset);
  native::appendRemoteCopy(graph, prog, entries, one, offset, to_entry, native::Outside::kClamp,
                           debug);
}

}  // namespace

void copyRemoteBuffer(poplar::Graph& graph, const poplar::RemoteBuffer& src,
                      const poplar::RemoteBuffer& dst, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  remote::checkSame(src, dst);
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

void readEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src, const poplar::Tensor& dst,
               const poplar::Tensor& offset, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext) {
  copyEntry(graph, src, dst, offset, false, prog, debugContext);
}

void writeEntry(poplar::Graph& graph, const poplar::Tensor& src, const poplar::RemoteBuffer& dst,
                const poplar::Tensor& offset, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  copyEntry(graph, dst, src, offset, true, prog, debugContext);
}

poplar::RemoteBuffer withRepeats(poplar::Graph& /*graph*/, const poplar::RemoteBuffer& buffer,
                                 std::size_t repeats, const std::string& /*handle*/,
                                 poplar::program::Sequence& /*prog*/,
                                 const poplar::DebugContext& /*debugContext*/) {
  const ViewPtr& view = buffer;
  const std::size_t elements = remote::entrySize(buffer, repeats);
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
