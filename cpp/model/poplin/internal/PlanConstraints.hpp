#pragma once
#include <string>

#include "poplin/internal/Plan.hpp"

namespace poplin {

/// The option planConstraints: a JSON object as poplibs lib/poplin/ConvOptions.cpp takes it.
///
///   {"method": "AMP", "inChansPerGroup": 16,
///    "0": {"transform": {"swapOperands": false, "expandDims": []},
///          "partition": {"convGroupSplit": 1, "batchSplit": 2, "fieldSplit": {"0": 4},
///                        "inChanSplit": {"parallel": 3, "serial": 1},
///                        "outChanSplit": {"parallel": 8, "serial": 2}}}}
///
/// batchSplit and fieldSplit together divide the rows: a plan splits them into a multiple of their
/// product. A plain number for input or output channels is their parallel split.
///
/// Throws poplar::invalid_option for other text, and plan::no_plan for constraints that no plan of
/// the model can meet: splits of the kernel, parts of it as channels, levels other than "0".
/// Whether a product can meet the rest is known when it is planned.
plan::Constraints readConstraints(const char* where, const std::string& json);

}  // namespace poplin
