#pragma once

namespace poplar {

/// How Graph::serialize and serializeTensors write: as text, or as bytes of the model's own that
/// deserializeTensors reads back (the SDK's are those of Cap'n Proto).
enum class SerializationFormat { JSON, Binary, CapnProto = Binary };

}  // namespace poplar
