#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Quarter.hpp"

namespace poplar {

/// Tensors of metadata for quarters. Both throw poplar_error: the model's tensors have no quarters.
Tensor createConstantMetadataTensor(Graph& graph, QuarterMetadata::Format format, int scale);
Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format format, int scale);

}  // namespace poplar
