#pragma once
#include <cstdint>

#include "poplar/OptionFlags.hpp"
#include "poplin/internal/Plan.hpp"

namespace poplin {

/// What matMul's and convolution's OptionFlags say. Names and defaults: poplibs ConvOptions.hpp,
/// MatMul.cpp and their documentation. Read and used: partialsType, availableMemoryProportion,
/// use128BitConvUnitLoad, enableMultiStageReduce, disableTransformations, tilesPerIPU, the pass and
/// planConstraints. Read and checked, without an effect on the model: see docs/guides/products.md.
struct PlanOptions {
  bool half_partials = false;
  bool wide_weight_load = false;
  bool multi_stage_reduce = true;
  bool transforms = true;
  /// The pass is that of a fully connected layer: operands that are moved are inside the limit.
  /// Else they are on top of it (poplibs ConvModel.cpp, addRearrangeBeforeSliceEstimate).
  bool fully_connected = false;
  /// Halves that stand for quarters, on tiles that multiply these. No option says it.
  bool quarter_operands = false;
  std::uint64_t tiles = 0;  ///< of an IPU; 0: all
  double memory_proportion = 0.6;
  plan::Constraints constraints{};

  /// Throws poplar::invalid_option for an unknown name or a value it cannot take.
  static PlanOptions read(const poplar::OptionFlags& options, const char* where);
  void apply(plan::Problem& problem) const;
};

}  // namespace poplin
