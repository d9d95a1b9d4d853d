#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Quarter.hpp"

namespace poplar {

/// Creates one element of QUARTER_METADATA on tile 0: a constant, or a variable with an initial
/// value. Throws poplar_error for a scale outside [-32, 31].
Tensor createConstantMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext = {});
Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext = {});
/// Reads the scale, one INT, when the program runs; a value outside [-32, 31] ends the run.
Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format,
                                    const Tensor& fp8Scale, program::Sequence& prog,
                                    const DebugContext& debugContext = {});
void setMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, const Tensor& fp8Scale,
                       const Tensor& metadataOut, program::Sequence& prog,
                       const DebugContext& debugContext = {});

}  // namespace poplar
