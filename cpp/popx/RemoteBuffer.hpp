#pragma once
#include <string>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// Operations on remote buffers that public programs lack.
namespace popx {

/// Copies all of `src` to `dst`, of the same size. If nothing else needs `src` any more, both
/// become one buffer; else the data passes through an IPU, and counts twice. On hardware it always
/// does, in pieces of whole entries of both.
void copyRemoteBuffer(poplar::Graph& graph, const poplar::RemoteBuffer& src,
                      const poplar::RemoteBuffer& dst, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

/// Copies entry `offset` of `src` to `dst`, which has as many elements; to a buffer through an IPU.
/// An offset outside selects the nearest entry, unlike in program::Copy.
void readEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src, const poplar::Tensor& dst,
               const poplar::Tensor& offset, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext = {});
void readEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src,
               const poplar::RemoteBuffer& dst, const poplar::Tensor& offset,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// Copies `src` to entry `offset` of `dst`, with the offset treated likewise.
void writeEntry(poplar::Graph& graph, const poplar::Tensor& src, const poplar::RemoteBuffer& dst,
                const poplar::Tensor& offset, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext = {});
void writeEntry(poplar::Graph& graph, const poplar::RemoteBuffer& src,
                const poplar::RemoteBuffer& dst, const poplar::Tensor& offset,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// The same values as `repeats` entries: on the model the same memory, on hardware a copy with the
/// given handle, if the entries differ.
poplar::RemoteBuffer withRepeats(poplar::Graph& graph, const poplar::RemoteBuffer& buffer,
                                 std::size_t repeats, const std::string& handle,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});

/// The host fills the buffer before later steps run, without an IPU. On hardware it adds nothing:
/// the caller runs Engine::copyToRemoteBuffer before the program and, for the next function,
/// Engine::copyFromRemoteBuffer after it.
void fillFromHost(const poplar::DataStream& stream, const poplar::RemoteBuffer& buffer,
                  poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

/// The host reads the final contents of the buffer, without an IPU.
void giveToHost(const poplar::RemoteBuffer& buffer, const poplar::DataStream& stream,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace popx
