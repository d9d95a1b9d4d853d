#include "popx/checks/RemoteBuffer.hpp"

#include "poplar/exceptions.hpp"

namespace popx::remote {

std::size_t sizeOf(const poplar::RemoteBuffer& buffer) {
  return buffer.numElements() * buffer.getRepeats();
}

std::size_t entrySize(const poplar::RemoteBuffer& buffer, std::size_t repeats) {
  const std::size_t elements = sizeOf(buffer);
  if (repeats == 0 || elements % repeats != 0)
    throw poplar::poplar_error("[popx.withRepeats] needs a number that divides the " +
                               std::to_string(elements) + " elements of '" + buffer.handle() +
                               "'; got " + std::to_string(repeats) + ". Check the entries.");
  return elements / repeats;
}

void checkStream(const poplar::DataStream& stream, const poplar::RemoteBuffer& buffer) {
  const std::size_t elements = sizeOf(buffer);
  if (stream.numElements() != elements || stream.elementType() != buffer.elementType()) {
    throw poplar::poplar_error(
        "[popx.RemoteBuffer] stream '" + stream.handle() + "' needs the " +
        std::to_string(elements) + " elements of " + buffer.elementType().toString() + " of '" +
        buffer.handle() + "'; got " + std::to_string(stream.numElements()) + " of " +
        stream.elementType().toString() + ". Make both of one type and size.");
  }
}

void checkEntry(const poplar::RemoteBuffer& entries, const std::string& name, std::size_t elements,
                const poplar::Type& type, const poplar::Tensor& offset) {
  if (entries.elementType() != type || offset.numElements() != 1 ||
      elements != entries.numElements()) {
    throw poplar::poplar_error(
        "[popx.RemoteBuffer] " + name + " needs the size and type of an entry of '" +
        entries.handle() + "', and one offset; got " + std::to_string(elements) + " elements and " +
        std::to_string(offset.numElements()) + " offsets. Use withRepeats.");
  }
}

void checkSame(const poplar::RemoteBuffer& src, const poplar::RemoteBuffer& dst) {
  if (src.elementType() != dst.elementType() || sizeOf(src) != sizeOf(dst)) {
    throw poplar::poplar_error("[popx.copyRemoteBuffer] needs buffers of one size and type; got '" +
                               src.handle() + "' and '" + dst.handle() +
                               "'. Add a buffer like the first.");
  }
}

}  // namespace popx::remote
