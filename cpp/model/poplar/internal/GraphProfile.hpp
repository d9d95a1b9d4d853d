#pragma once
#include "engine/image/Image.hpp"
#include "poplar/ProfileValue.hpp"

namespace poplar::internal {

/// Profile of a compiled graph before it runs, with the names of Poplar's graph profile
/// (docs.graphcore.ai, "Poplar Profile Data"): target, graph, vertexTypes, computeSets, programs
/// and memory, and the model's cost of the longest program. A library function of the model is a
/// compute set named after its debug context, with a vertex on each tile that computes in the cost
/// model. Edges and exchanges by tile are not kept and have no entry.
ProfileValue graphProfile(const ipujax::engine::Image& image);

}  // namespace poplar::internal
