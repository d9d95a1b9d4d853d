#pragma once
#include <cstdint>

#include "poplar/OptionFlags.hpp"
#include "poplin/internal/Plan.hpp"

namespace poplin {

/// The OptionFlags of matMul and convolution. Names and defaults: poplibs ConvOptions.hpp,
/// MatMul.cpp and their documentation. Read and used: partialsType, availableMemoryProportion,
/// use128BitConvUnitLoad, enableMultiStageReduce, disableTransformations, tilesPerIPU, the pass and
/// planConstraints. Read and checked, but without effect on the model: see docs/guides/products.md.
struct PlanOptions {
  bool half_partials = false;
  bool wide_weight_load = false;
  bool multi_stage_reduce = true;
  bool transforms = true;
  /// The pass is that of a fully connected layer: moved operands count towards the memory limit.
  /// Else they come on top of it (poplibs ConvModel.cpp, addRearrangeBeforeSliceEstimate).
  bool fully_connected = false;
  /// Halves stand for quarters, on tiles that multiply these. No option sets it.
  bool quarter_operands = false;
  std::uint64_t tiles = 0;  ///< of an IPU; 0: all
  double memory_proportion = 0.6;
  plan::Constraints constraints{};

  /// Throws poplar::invalid_option for an unknown name or a value it cannot take.
  static PlanOptions read(const poplar::OptionFlags& options, const char* where);
  void apply(plan::Problem& problem) const;
};

}  // namespace poplin
