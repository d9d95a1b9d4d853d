#pragma once
#include "poplar/OptionFlags.hpp"
#include "poplin/internal/Plan.hpp"

namespace poplin {

/// What matMul's and convolution's OptionFlags say. Names and defaults: poplibs ConvOptions.hpp
/// and the documentation of poplin::matMul. Options that steer only PopLibs' own search are read,
/// checked and change nothing here.
struct PlanOptions {
  bool half_partials = false;
  bool wide_weight_load = false;
  double memory_proportion = 0.6;

  /// Throws poplar::invalid_option for an unknown name or a value it cannot take.
  static PlanOptions read(const poplar::OptionFlags& options, const char* where);
  void apply(plan::Problem& problem) const;
};

}  // namespace poplin
