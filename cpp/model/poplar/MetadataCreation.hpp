#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Quarter.hpp"

namespace poplar {

/// QUARTER_METADATA of one element on tile 0: a constant, or a variable with an initial value.
/// Throw poplar_error for a scale outside [-32, 31].
Tensor createConstantMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext = {});
Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext = {});
/// With a scale that one INT says when the program runs; another than these ends the run.
Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format,
                                    const Tensor& fp8Scale, program::Sequence& prog,
                                    const DebugContext& debugContext = {});
void setMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, const Tensor& fp8Scale,
                       const Tensor& metadataOut, program::Sequence& prog,
                       const DebugContext& debugContext = {});

}  // namespace poplar
