#pragma once
#include "engine/graph/Emit.hpp"
#include "engine/kernels/move/CopyWindows.hpp"

namespace ipujax::engine {

/// Appends the copy of entries `offsets` [k] of a remote buffer [repeats, n] to or from a tensor of
/// k n elements; of the whole buffer where there are no offsets. One transfer, or two through an
/// IPU where the tensor, too, is in the host's memory. `outside` says what becomes of offsets of
/// entries that do not exist.
void appendRemoteCopy(const GraphScope& graph, ProgramNode& sequence, const ViewPtr& buffer,
                      const ViewPtr& tensor, const ViewPtr& offsets, bool to_remote,
                      Outside outside, const DebugContext& debugContext);

}  // namespace ipujax::engine
