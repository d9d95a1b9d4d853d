#pragma once
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace popnn {
namespace experimental {

/// samplingRatio_: samples of a bin along each axis, 1 or more. alignedHeight_, alignedWidth_: bins
/// of a region. aligned_: whether coordinates shift by half a pixel; else regions are at least one
/// pixel wide and high. spatialScale_: pixels of the feature map per pixel of the image.
struct roiAlignParams {
  long unsigned int samplingRatio_, alignedHeight_, alignedWidth_;
  bool aligned_;
  float spatialScale_;
  roiAlignParams(long unsigned int samplingRatio, long unsigned int poolH, long unsigned int poolW,
                 bool aligned, float spatialScale)
      : samplingRatio_(samplingRatio),
        alignedHeight_(poolH),
        alignedWidth_(poolW),
        aligned_(aligned),
        spatialScale_(spatialScale) {}
};

/// RoIAlign (He et al., 2017): [regions, C, alignedHeight_, alignedWidth_], the means of the
/// bilinear samples of each region's bins. bottomData is [N, C, H, W] of FLOAT or HALF, bottomRois
/// [regions, 4] has x1, y1, x2, y2 in pixels of the image, bottomBatchIndex [regions] the image of
/// each. Each region has matrices of weights along y and x; the result is two products.
poplar::Tensor roiAlignFwd(poplar::Graph& graph, poplar::program::Sequence& prog,
                           poplar::Tensor& bottomData, poplar::Tensor& bottomRois,
                           poplar::Tensor& bottomBatchIndex, const roiAlignParams& params,
                           const poplar::DebugContext& debugContext = {});
/// The gradient of bottomData.
poplar::Tensor roiAlignInputGradient(poplar::Graph& graph, poplar::program::Sequence& prog,
                                     poplar::Tensor& bottomData, poplar::Tensor& bottomRois,
                                     poplar::Tensor& bottomBatchIndex, poplar::Tensor& topDataGrad,
                                     const roiAlignParams& params,
                                     const poplar::DebugContext& debugContext = {});

}  // namespace experimental
}  // namespace popnn
