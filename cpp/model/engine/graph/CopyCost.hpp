#pragma once
#include "engine/Cost.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// Cost of copying src to dst: an exchange where their mappings differ, and a copy on the tile
/// where they do not or where the elements must be rearranged. Step "engine.copy": operands (src,
/// dst).
Cost copyCost(const GraphScope& graph, const ViewPtr& src, const ViewPtr& dst);

}  // namespace ipujax::engine
