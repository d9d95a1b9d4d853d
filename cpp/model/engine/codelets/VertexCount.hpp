#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// All that the issue slots of a vertex depend on besides its data: type, sizes and values.
std::string signatureOf(const VertexRecord& vertex);

/// The issue slots of vertices of a library that counts, for the worker that takes most. Each
/// vertex runs once, on zeros, in a separate process, so that its accesses beyond its own data do
/// not affect this one. None for a vertex that fails, or takes more than 2^26.
std::vector<SlotCount> countSlots(const CodeletLibrary& library,
                                  const std::vector<const VertexRecord*>& vertices);

}  // namespace ipujax::engine
