#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// What the issue slots of a vertex depend on besides its data: type, sizes and values.
std::string signatureOf(const VertexRecord& vertex);

/// The issue slots of vertices of a library that counts, of the worker that takes most: each runs
/// once, on zeros, in a process of its own, so that nothing that it does on data that is not its
/// own meets this one. None of a vertex that fails, or takes more than 2^26.
std::vector<SlotCount> countSlots(const CodeletLibrary& library,
                                  const std::vector<const VertexRecord*>& vertices);

}  // namespace ipujax::engine
