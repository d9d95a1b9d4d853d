#pragma once

namespace poplar {

/// Whether each replica reads its own blocks from a stream, or all read the same blocks.
enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

}  // namespace poplar
