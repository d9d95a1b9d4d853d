#pragma once
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::build {

/// Throws invalid_tile_mapping if an element of the view, which a program copies, is on no tile.
/// Remote variables need no tile.
void needTiles(const GraphImpl& graph, const View& view, const DebugContext& copy);

}  // namespace ipujax::engine::build
