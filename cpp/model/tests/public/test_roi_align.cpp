#include <algorithm>
#include <cmath>
#include <popnn/experimental/ROIAlign.hpp>
#include <popops/Cast.hpp>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;
using popnn::experimental::roiAlignParams;

namespace {

/// RoIAlign by the loops of its authors, in double.
Values reference(const Values& data, const std::vector<std::size_t>& shape,
                 const std::vector<float>& rois, const std::vector<unsigned>& images,
                 const roiAlignParams& p) {
  const auto C = shape[1], H = shape[2], W = shape[3];
  const auto pixel = [&](std::size_t n, std::size_t c, double y, double x) -> double {
    if (y < -1 || y > static_cast<double>(H) || x < -1 || x > static_cast<double>(W)) return 0;
    y = std::max(y, 0.0), x = std::max(x, 0.0);
    auto y0 = static_cast<std::size_t>(y), x0 = static_cast<std::size_t>(x);
    std::size_t y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= H - 1) y = static_cast<double>(y0 = y1 = H - 1);
    if (x0 >= W - 1) x = static_cast<double>(x0 = x1 = W - 1);
    const double dy = y - static_cast<double>(y0), dx = x - static_cast<double>(x0);
    const double* at = &data[(n * C + c) * H * W];
    return (1 - dy) * ((1 - dx) * at[y0 * W + x0] + dx * at[y0 * W + x1]) +
           dy * ((1 - dx) * at[y1 * W + x0] + dx * at[y1 * W + x1]);
  };
  Values found;
  for (std::size_t r = 0; r < images.size(); ++r) {
    const float* roi = &rois[4 * r];
    const double shift = p.aligned_ ? 0.5 : 0, scale = p.spatialScale_;
    const double x = roi[0] * scale - shift, y = roi[1] * scale - shift;
    double w = roi[2] * scale - shift - x, h = roi[3] * scale - shift - y;
    if (!p.aligned_) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const auto s = static_cast<double>(p.samplingRatio_);
    for (std::size_t c = 0; c < C; ++c)
      for (std::size_t i = 0; i < p.alignedHeight_; ++i)
        for (std::size_t j = 0; j < p.alignedWidth_; ++j) {
          double sum = 0;
          for (std::size_t a = 0; a < p.samplingRatio_; ++a)
            for (std::size_t b = 0; b < p.samplingRatio_; ++b) {
              const double row = static_cast<double>(i) + (static_cast<double>(a) + 0.5) / s,
                           column = static_cast<double>(j) + (static_cast<double>(b) + 0.5) / s;
              sum += pixel(images[r], c, y + row * h / static_cast<double>(p.alignedHeight_),
                           x + column * w / static_cast<double>(p.alignedWidth_));
            }
          found.push_back(sum / (s * s));
        }
  }
  return found;
}

}  // namespace

TEST(regions_are_aligned_and_their_gradients_spread) {
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    const std::vector<std::size_t> shape{1 + random() % 3, 1 + random() % 3, 2 + random() % 5,
                                         2 + random() % 5};
    const std::size_t regions = 1 + random() % 4, n = shape[0] * shape[1] * shape[2] * shape[3];
    const roiAlignParams params(1 + random() % 3, 1 + random() % 3, 1 + random() % 3, round % 2,
                                round % 3 ? 1.0f : 0.5f);
    const auto data = randomFloats(random, n);
    std::vector<float> rois;
    std::vector<unsigned> images;
    for (std::size_t r = 0; r < regions; ++r) {
      const auto corner = randomFloats(random, 2);
      const auto size = randomFloats(random, 2);
      for (const float v : corner) rois.push_back(2 * v);  // some lie outside
      for (std::size_t i = 0; i < 2; ++i)
        rois.push_back(rois[4 * r + i] + 4 * std::abs(size[i]) + 0.1f);
      images.push_back(static_cast<unsigned>(random() % shape[0]));
    }
    Fixture f;
    Tensor in = f.constant<float>(shape, data), boxes = f.constant<float>({regions, 4}, rois),
           index = f.constant<unsigned>({regions}, images);
    const Tensor out = popnn::experimental::roiAlignFwd(f.graph, f.prog, in, boxes, index, params);
    const auto slopes = randomFloats(random, out.numElements());
    Tensor grad = f.constant<float>(out.shape(), slopes);
    const Tensor back =
        popnn::experimental::roiAlignInputGradient(f.graph, f.prog, in, boxes, index, grad, params);
    const auto found = f.run(flat({out, back}));
    const auto run = [&](const Values& at) { return reference(at, shape, rois, images, params); };
    const Values v(data.begin(), data.end());
    checkFrom(found, 0, run(v));
    checkFrom(found, out.numElements(), differences(run, v, {slopes.begin(), slopes.end()}));
    const roiAlignParams none(0, 1, 1, true, 1);
    CHECK_THROWS(popnn::experimental::roiAlignFwd(f.graph, f.prog, in, boxes, index, none),
                 "ratio above 0");
    if (out.shape() != shape)
      CHECK_THROWS(
          popnn::experimental::roiAlignInputGradient(f.graph, f.prog, in, boxes, index, in, params),
          "output's shape");
  }
}
