#pragma once
#include "engine/image/Image.hpp"
#include "poplar/ProfileValue.hpp"

namespace poplar::internal {

/// What is known of a compiled graph before it runs, by the names that Poplar's graph profile has
/// (docs.graphcore.ai, "Poplar Profile Data"): target, graph, vertexTypes, computeSets, programs
/// and memory, and the model's account of the longest program. A library function of the model is a
/// compute set by the name of its debug context, with a vertex on each tile where the account has
/// it compute. Edges and exchanges by tile are not kept and have no entry.
ProfileValue graphProfile(const ipujax::engine::Image& image);

}  // namespace poplar::internal
