#pragma once
#include "engine/graph/Emit.hpp"
#include "engine/kernels/move/CopyWindows.hpp"

namespace ipujax::engine {

/// Appends the copy of entries `offsets` [k] of a remote buffer [repeats, n] to or from a tensor of
/// k n elements, or of the whole buffer without offsets. It is one transfer, or two through an IPU
/// if the tensor is also in the host's memory. `outside` tells how to treat offsets of entries that
/// do not exist.
void appendRemoteCopy(const GraphScope& graph, ProgramNode& sequence, const ViewPtr& buffer,
                      const ViewPtr& tensor, const ViewPtr& offsets, bool to_remote,
                      Outside outside, const DebugContext& debugContext);

}  // namespace ipujax::engine
