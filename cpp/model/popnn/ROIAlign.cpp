#include "popnn/experimental/ROIAlign.hpp"

#include <string>

#include "poplin/MatMul.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Encoding.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::experimental {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::_3;
using pe::Const;

void checkShapes(const Tensor& data, const Tensor& rois, const Tensor& index,
                 const roiAlignParams& params) {
  const poplar::Type type = data.elementType();
  if (data.rank() == 4 && (type == poplar::FLOAT || type == poplar::HALF) && rois.rank() == 2 &&
      rois.dim(1) == 4 && index.numElements() == rois.dim(0) && params.samplingRatio_ > 0 &&
      params.alignedHeight_ > 0 && params.alignedWidth_ > 0)
    return;
  throw poputil::poplibs_error(
      "[popnn::experimental::roiAlign] needs data [N, C, H, W] of FLOAT or HALF, regions "
      "[regions, 4], an image for each, bins and a sampling ratio above 0; got " +
      data.shapeToString() + " " + type.toString() + ", " + rois.shapeToString() + ", " +
      index.shapeToString() + " and ratio " + std::to_string(params.samplingRatio_) + ".");
}

/// first, first + step, ...: n numbers as [1][n] of FLOAT.
Tensor countTo(Graph& graph, std::size_t n, float first, float step, const DebugContext& debug) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i);
  const Tensor t = graph.addConstant<float>(poplar::FLOAT, {1, n}, values, {debug, "count"});
  graph.setTileMapping(t, 0);
  return t;
}

/// The layer's matrices: along each axis [regions][bins][pixels], and the regions' images,
/// [regions][N].
class Matrices {
 public:
  Matrices(Graph& graph, Sequence& prog, const Tensor& data, const Tensor& rois,
           const Tensor& index, const roiAlignParams& params, const DebugContext& debug)
      : graph_(graph), prog_(prog), debug_(debug), params_(params), type_(data.elementType()) {
    checkShapes(data, rois, index, params);
    const Tensor corners = rois.elementType() == poplar::FLOAT
                               ? rois
                               : popops::cast(graph, rois, poplar::FLOAT, prog, {debug, "corners"});
    y = weights(corners.slice(1, 2, 1), corners.slice(3, 4, 1), params.alignedHeight_, data.dim(2));
    x = weights(corners.slice(0, 1, 1), corners.slice(2, 3, 1), params.alignedWidth_, data.dim(3));
    images = graph.addVariable(type_, {rois.dim(0), data.dim(0)},
                               poplar::VariableMappingMethod::LINEAR, {debug, "images"});
    const Tensor integers =
        index.elementType() == poplar::FLOAT || index.elementType() == poplar::HALF
            ? popops::cast(graph, index, poplar::UNSIGNED_INT, prog, {debug, "index"})
            : index;
    popops::encodeOneHot(graph, integers.flatten(), images, prog, {debug, "images"});
  }

  Tensor y, x, images;

 private:
  Tensor map(const pe::Expr& expression, const std::vector<Tensor>& ts) {
    return popops::map(graph_, expression, ts, prog_, {debug_, "weights"});
  }

  /// A bin's samples are evenly spaced; each interpolates between the pixels next to it. Samples
  /// more than a pixel outside are zero.
  Tensor weights(const Tensor& low, const Tensor& high, std::size_t bins, std::size_t pixels) {
    const std::size_t regions = low.dim(0), samples = params_.samplingRatio_;
    const float scale = params_.spatialScale_, shift = params_.aligned_ ? 0.5f : 0.0f;
    const Tensor begin = map(_1 * Const(scale) - Const(shift), {low});
    const pe::Any length = (_2 - _1) * Const(scale);
    const Tensor size = params_.aligned_ ? map(length, {low, high})
                                         : map(pe::Max(length, Const(1.0f)), {low, high});
    const float step = 1.0f / static_cast<float>(bins * samples);
    const Tensor at =
        map(_1 + _2 * _3, {begin, size, countTo(graph_, bins * samples, step / 2, step, debug_)})
            .expand({2});  // [regions][bins * samples][1]
    const auto last = static_cast<float>(pixels - 1);
    const pe::Any inside = pe::Clamp(_1, Const(0.0f), Const(last));
    const pe::Any outside = _1 < Const(-1.0f) || _1 > Const(last + 1);
    const pe::Any nearness = pe::Max(Const(1.0f) - pe::Abs(inside - _2), Const(0.0f)) *
                             Const(1.0f / static_cast<float>(samples));
    const Tensor each = map(pe::Cast(pe::Select(Const(0.0f), nearness, outside), type_),
                            {at, countTo(graph_, pixels, 0, 1, debug_).expand({0})});
    return popops::reduce(graph_, each.reshape({regions, bins, samples, pixels}), {2},
                          popops::Operation::ADD, prog_, {debug_, "samples"});
  }

  Graph& graph_;
  Sequence& prog_;
  DebugContext debug_;
  const roiAlignParams& params_;
  poplar::Type type_;
};

}  // namespace

Tensor roiAlignFwd(Graph& graph, Sequence& prog, Tensor& bottomData, Tensor& bottomRois,
                   Tensor& bottomBatchIndex, const roiAlignParams& params,
                   const DebugContext& debugContext) {
  const Matrices m(graph, prog, bottomData, bottomRois, bottomBatchIndex, params, debugContext);
  const std::size_t R = bottomRois.dim(0), N = bottomData.dim(0), C = bottomData.dim(1),
                    H = bottomData.dim(2), W = bottomData.dim(3), h = params.alignedHeight_,
                    w = params.alignedWidth_;
  const poplar::Type type = bottomData.elementType();
  const Tensor images = poplin::matMul(graph, m.images, bottomData.reshape({N, C * H * W}), prog,
                                       {debugContext, "images"});
  const Tensor rows =
      poplin::matMulGrouped(graph, images.reshape({R, C * H, W}), m.x.dimShuffle({0, 2, 1}), prog,
                            type, {debugContext, "alongX"});  // [R][C * H][w]
  const Tensor columns = rows.reshape({R, C, H, w}).dimShuffle({0, 2, 1, 3});
  return poplin::matMulGrouped(graph, m.y, columns.reshape({R, H, C * w}), prog, type,
                               {debugContext, "alongY"})
      .reshape({R, h, C, w})
      .dimShuffle({0, 2, 1, 3});
}

Tensor roiAlignInputGradient(Graph& graph, Sequence& prog, Tensor& bottomData, Tensor& bottomRois,
                             Tensor& bottomBatchIndex, Tensor& topDataGrad,
                             const roiAlignParams& params, const DebugContext& debugContext) {
  const Matrices m(graph, prog, bottomData, bottomRois, bottomBatchIndex, params, debugContext);
  const std::size_t R = bottomRois.dim(0), C = bottomData.dim(1), H = bottomData.dim(2),
                    W = bottomData.dim(3), h = params.alignedHeight_, w = params.alignedWidth_;
  if (topDataGrad.shape() != std::vector<std::size_t>{R, C, h, w})
    throw poputil::poplibs_error(
        "[popnn::experimental::roiAlign] needs gradients of the output's shape; got " +
        topDataGrad.shapeToString() + ". Pass the gradient of roiAlignFwd's result.");
  const poplar::Type type = bottomData.elementType();
  const Tensor columns = topDataGrad.dimShuffle({0, 2, 1, 3}).reshape({R, h, C * w});
  const Tensor rows = poplin::matMulGrouped(graph, m.y.dimShuffle({0, 2, 1}), columns, prog, type,
                                            {debugContext, "alongY"});  // [R][H][C * w]
  const Tensor spread = rows.reshape({R, H, C, w}).dimShuffle({0, 2, 1, 3});
  const Tensor images = poplin::matMulGrouped(graph, spread.reshape({R, C * H, w}), m.x, prog, type,
                                              {debugContext, "alongX"});  // [R][C * H][W]
  return poplin::matMul(graph, m.images.transpose(), images.reshape({R, C * H * W}), prog,
                        {debugContext, "images"})
      .reshape(bottomData.shape());
}

}  // namespace popnn::experimental
