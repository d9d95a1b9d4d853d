#pragma once

namespace poplar {

/// Format of Graph::serialize (JSON or CBOR) and serializeTensors (JSON, or the model's own binary
/// format, which deserializeTensors reads back). The SDK's binary format is Cap'n Proto.
enum class SerializationFormat { JSON, Binary, CapnProto = Binary };

}  // namespace poplar
