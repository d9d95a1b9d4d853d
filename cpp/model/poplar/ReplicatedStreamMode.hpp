#pragma once

namespace poplar {

/// Whether each replica reads blocks of its own from a stream, or all read the same.
enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

}  // namespace poplar
