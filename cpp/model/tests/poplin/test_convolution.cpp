#include <cmath>

#include "Check.hpp"
#include "OnDevice.hpp"
#include "poplin/Convolution.hpp"

/// Convolutions as Poplar programs; the kernel's own tests check it against the definition in every
/// detail.
namespace {

using poplar::FLOAT;
using poplar::Tensor;
using poplin::ConvParams;

std::size_t at(std::initializer_list<std::size_t> index, std::initializer_list<std::size_t> shape) {
  std::size_t offset = 0;
  auto size = shape.begin();
  for (const std::size_t i : index) offset = offset * *size++ + i;
  return offset;
}

/// Two spatial dimensions, index by index, after ConvUtil's getInputIndex.
struct Reference {
  ConvParams p;
  std::size_t channels_in() const { return p.getNumInputChans(); }
  std::size_t channels_out() const { return p.getNumOutputChans(); }

  /// fn(x index, weight index, output index) for each product.
  template <class F>
  void forEach(F fn) const {
    const std::size_t oh = p.getOutputSize(0), ow = p.getOutputSize(1);
    const std::size_t ih = p.inputFieldShape[0], iw = p.inputFieldShape[1];
    const std::size_t kh = p.kernelShape[0], kw = p.kernelShape[1];
    const std::size_t ci = p.inputChannelsPerConvGroup, co = p.outputChannelsPerConvGroup;
    const std::size_t groups = p.numConvGroups, batch = p.batchSize;
    for (unsigned y = 0; y < oh; ++y)
      for (unsigned x = 0; x < ow; ++x)
        for (unsigned a = 0; a < kh; ++a)
          for (unsigned b = 0; b < kw; ++b) {
            const unsigned i = poplin::getInputIndex(0, y, a, p);
            const unsigned j = poplin::getInputIndex(1, x, b, p);
            if (i == ~0U || j == ~0U) continue;
            for (std::size_t n = 0; n < batch; ++n)
              for (std::size_t g = 0; g < groups; ++g)
                for (std::size_t o = 0; o < co; ++o)
                  for (std::size_t c = 0; c < ci; ++c)
                    fn(at({n, g * ci + c, i, j}, {batch, groups * ci, ih, iw}),
                       at({g, o, c, a, b}, {groups, co, ci, kh, kw}),
                       at({n, g * co + o, y, x}, {batch, groups * co, oh, ow}));
          }
  }
};

ConvParams example(unsigned stride, unsigned dilation, bool flip, std::size_t groups) {
  ConvParams p(FLOAT, 3, {9, 8}, {3, 2}, 4, 5, groups);
  p.inputTransform.paddingLower = {1, 2};
  p.inputTransform.paddingUpper = {2, 1};
  p.kernelTransform.dilation = {dilation, 1};
  p.outputTransform.stride = {stride, stride};
  p.inputTransform.flip = {flip, false};
  p.kernelTransform.flip = {false, flip};
  p.outputTransform.truncationLower = {flip ? 1u : 0u, 0};
  return p;
}

void expectNear(const std::vector<double>& got, const std::vector<double>& want) {
  CHECK_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) CHECK_NEAR(got[i], want[i], 1e-4);
}

template <class F>
void forExamples(F fn) {
  for (const unsigned stride : {1u, 2u, 3u})
    for (const unsigned dilation : {1u, 2u})
      for (const bool flip : {false, true})
        for (const std::size_t groups : {1, 2}) fn(example(stride, dilation, flip, groups));
}

}  // namespace

TEST(convolution_forward) {
  forExamples([](const ConvParams& p) {
    OnDevice d;
    const Tensor in = d.fill(poplin::createInput(d.graph, p));
    const Tensor weights = d.fill(poplin::createWeights(d.graph, p));
    CHECK(in.isContiguous());
    CHECK(weights.isContiguous());
    const Tensor out = poplin::convolution(d.graph, in, weights, p, false, d.prog, "conv");
    std::vector<double> want(out.numElements());
    Reference{p}.forEach([&](std::size_t x, std::size_t w, std::size_t y) {
      want[y] += d.values(0)[x] * d.values(1)[w];
    });
    expectNear(d.read(out), want);
  });
}

TEST(convolution_gradient_of_the_input) {
  forExamples([](const ConvParams& p) {
    OnDevice d;
    const auto field = p.getOutputFieldShape();
    const Tensor dy = d.random(FLOAT, {p.batchSize, p.getNumOutputChans(), field[0], field[1]});
    const Tensor weights = d.fill(poplin::createWeights(d.graph, p));
    const ConvParams back = poplin::getGradientParams(p);
    const Tensor dx = poplin::convolution(d.graph, dy, weights, back, true, d.prog);
    std::vector<double> want(dx.numElements());
    Reference{p}.forEach([&](std::size_t x, std::size_t w, std::size_t y) {
      want[x] += d.values(0)[y] * d.values(1)[w];
    });
    expectNear(d.read(dx), want);
  });
}

TEST(convolution_gradient_of_the_weights) {
  forExamples([](const ConvParams& p) {
    OnDevice d;
    const auto field = p.getOutputFieldShape();
    const Tensor dy = d.random(FLOAT, {p.batchSize, p.getNumOutputChans(), field[0], field[1]});
    const Tensor in = d.fill(poplin::createInput(d.graph, p));
    const Tensor dw = poplin::calculateWeightDeltas(d.graph, dy, in, p, d.prog);
    std::vector<double> want(dw.numElements());
    Reference{p}.forEach([&](std::size_t x, std::size_t w, std::size_t y) {
      want[w] += d.values(0)[y] * d.values(1)[x];
    });
    expectNear(d.read(dw), want);
  });
}

TEST(convolution_keeps_channels_last) {
  OnDevice d;
  ConvParams p(FLOAT, 2, {6, 7}, {3, 3}, 5, 4, 1);
  const Tensor nhwc = d.random(FLOAT, {2, 6, 7, 5});
  const Tensor weights = d.random(FLOAT, {3, 3, 5, 4});  // [kh, kw, ci, co]
  const Tensor out =
      poplin::convolution(d.graph, nhwc.dimShuffle({0, 3, 1, 2}),
                          weights.dimShuffle({3, 2, 0, 1}).expand({0}), p, false, d.prog);
  CHECK(out.dimShuffle({0, 2, 3, 1}).isContiguous());
  const auto got = d.read(out.dimShuffle({0, 2, 3, 1}));
  std::vector<double> want(got.size());
  Reference{p}.forEach([&](std::size_t x, std::size_t w, std::size_t y) {
    const std::size_t c = x / 42 % 5, o = w / 45;  // [n, c, 42], [o, c, 9], [n, o, 20]
    const std::size_t from = (x / 210 * 42 + x % 42) * 5 + c;
    const std::size_t to = (y / 80 * 20 + y % 20) * 4 + o;
    want[to] += d.values(0)[from] * d.values(1)[(w % 9 * 5 + c) * 4 + o];
  });
  expectNear(got, want);
}

TEST(convolution_refuses_what_it_cannot_do) {
  OnDevice d;
  ConvParams p(FLOAT, 2, {6, 7}, {3, 3}, 5, 4, 1);
  const Tensor in = d.random(FLOAT, {2, 5, 6, 8});
  const Tensor weights = d.random(FLOAT, {1, 4, 5, 3, 3});
  CHECK_THROWS(poplin::convolution(d.graph, in, weights, p, false, d.prog), "[2, 5, 6, 7]");
  CHECK_THROWS(poplin::createInput(d.graph, p, "x", {{"nonsense", "1"}}), "nonsense");
  p.outputTransform.stride = {1};
  CHECK_THROWS(poplin::createInput(d.graph, p), "one entry per spatial dimension");
  p.outputTransform.stride = {1, 0};
  CHECK_THROWS(poplin::createInput(d.graph, p), "at least 1");
}
