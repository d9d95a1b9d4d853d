#pragma once

namespace poplar {

/// How Graph::serialize writes; the model writes neither, and says so.
enum class SerializationFormat { Binary, CapnProto };

}  // namespace poplar
