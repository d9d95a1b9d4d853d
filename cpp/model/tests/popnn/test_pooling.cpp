#include <cmath>

#include "Check.hpp"
#include "ReduceModel.hpp"
#include "popnn/Pooling.hpp"

using namespace popnn;
using popnn::pooling::PoolParams;
using reduce_model::Model;

namespace {

struct Case {
  std::vector<std::size_t> field{5, 6};
  std::vector<std::size_t> kernel{3, 2};
  std::vector<unsigned> stride{2, 1};
  std::vector<int> lower{1, 0};
  std::vector<int> upper{0, 1};
  std::size_t channels = 3;
  std::size_t batch = 2;
  std::size_t rows = 0, columns = 0;
  std::vector<float> x, y, gradient, dx;

  PoolParams params(PoolingType type) const {
    return {type, field, kernel, stride, lower, upper, channels, batch, poplar::FLOAT};
  }
  /// f(plane offset of x, plane offset of y, output row, output column).
  template <class F>
  void windows(const F& f) const {
    for (std::size_t p = 0; p < batch * channels; ++p) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          f(p * field[0] * field[1], (p * rows + r) * columns + c, r, c);
        }
      }
    }
  }
  template <class F>
  void taps(std::size_t r, std::size_t c, const F& f) const {
    for (std::size_t i = 0; i < kernel[0]; ++i) {
      for (std::size_t j = 0; j < kernel[1]; ++j) {
        const int y0 = static_cast<int>(r * stride[0] + i) - lower[0];
        const int x0 = static_cast<int>(c * stride[1] + j) - lower[1];
        if (y0 < 0 || x0 < 0 || y0 >= static_cast<int>(field[0]) ||
            x0 >= static_cast<int>(field[1])) {
          continue;
        }
        f(static_cast<std::size_t>(y0) * field[1] + static_cast<std::size_t>(x0));
      }
    }
  }

  void run(PoolingType type, bool scaled) {
    const PoolParams p = params(type);
    const auto out_field = p.getOutputFieldShape();
    rows = out_field[0];
    columns = out_field[1];
    Model m;
    const auto in = m.variable(poplar::FLOAT, {batch, channels, field[0], field[1]}, "in");
    const auto g = m.variable(poplar::FLOAT, {batch, channels, rows, columns}, "g");
    x.resize(in.numElements());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 5);
    gradient.resize(g.numElements());
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 4 + 1);
    const auto out = pooling::pool(m.graph, p, in, m.prog);
    const auto back = type == PoolingType::MAX
                          ? pooling::poolInputGradient(m.graph, p, in, out, g, scaled, m.prog)
                          : pooling::poolInputGradient(m.graph, p, 1, g, m.prog);
    y.resize(out.numElements());
    dx.resize(x.size());
    m.run({{in, x.data()}, {g, gradient.data()}}, {{out, y.data()}, {back, dx.data()}});
  }
};

}  // namespace

TEST(pooling_and_its_gradient_match_a_loop) {
  for (PoolingType type : {PoolingType::MAX, PoolingType::AVG, PoolingType::SUM}) {
    for (bool scaled : {false, true}) {
      Case c;
      c.run(type, scaled);
      std::vector<float> dx(c.x.size());
      c.windows([&](std::size_t base, std::size_t at, std::size_t row, std::size_t column) {
        float sum = 0;
        float best = -1e30f;
        int count = 0;
        c.taps(row, column, [&](std::size_t i) {
          sum += c.x[base + i];
          best = std::max(best, c.x[base + i]);
          ++count;
        });
        const bool max = type == PoolingType::MAX;
        CHECK_NEAR(c.y[at], max ? best : type == PoolingType::AVG ? sum / count : sum, 1e-6);
        int takers = 0;
        c.taps(row, column, [&](std::size_t i) { takers += !max || c.x[base + i] == best; });
        const bool divides = type == PoolingType::AVG || (max && scaled);
        c.taps(row, column, [&](std::size_t i) {
          if (max && c.x[base + i] != best) return;
          dx[base + i] += divides ? c.gradient[at] / takers : c.gradient[at];
        });
      });
      for (std::size_t i = 0; i < dx.size(); ++i) CHECK_NEAR(c.dx[i], dx[i], 1e-5);
    }
  }
}

TEST(pooling_refuses_what_does_not_fit) {
  Model m;
  const Case c;
  const auto wrong = m.variable(poplar::FLOAT, {2, 3, 5, 5}, "in");
  CHECK_THROWS(pooling::pool(m.graph, c.params(PoolingType::MAX), wrong, m.prog), "shape 2 3 5 6");
}
