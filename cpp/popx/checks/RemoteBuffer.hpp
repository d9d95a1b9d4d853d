#pragma once
#include <cstddef>
#include <string>

#include "popx/RemoteBuffer.hpp"

/// For the library: the checks of popx's functions of remote buffers.
namespace popx::remote {

std::size_t sizeOf(const poplar::RemoteBuffer& buffer);  ///< elements of all entries

/// Elements of one of `repeats` entries. Throws if these do not divide the buffer.
std::size_t entrySize(const poplar::RemoteBuffer& buffer, std::size_t repeats);

/// Throws unless the stream has the size and type of the buffer.
void checkStream(const poplar::DataStream& stream, const poplar::RemoteBuffer& buffer);
/// Throws unless the copied data, called `name`, has the size and type of one entry, and there is
/// one offset.
void checkEntry(const poplar::RemoteBuffer& entries, const std::string& name, std::size_t elements,
                const poplar::Type& type, const poplar::Tensor& offset);
/// Throws unless the buffers have one size and type.
void checkSame(const poplar::RemoteBuffer& src, const poplar::RemoteBuffer& dst);

}  // namespace popx::remote
