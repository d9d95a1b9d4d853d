#include <algorithm>
#include <cmath>
#include <limits>
#include <popops/AllTrue.hpp>
#include <popops/Cast.hpp>
#include <popops/CircBuf.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ElementWiseUtil.hpp>
#include <popops/EncodingConstants.hpp>
#include <popops/Fill.hpp>
#include <popops/Gather.hpp>
#include <popops/GatherStatistics.hpp>
#include <popops/HostSliceTensor.hpp>
#include <popops/Loop.hpp>
#include <popops/NaN.hpp>
#include <popops/NormaliseImage.hpp>
#include <popops/Operation.hpp>
#include <popops/Rearrange.hpp>
#include <popops/ScalarMultiply.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Scatter.hpp>
#include <popops/SequenceSlice.hpp>
#include <popops/SplineBasis.hpp>
#include <popops/SplineWeighting.hpp>
#include <popops/UpdateScalarInRows.hpp>
#include <poputil/VarStructure.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;

TEST(all_true_and_nan_look_at_every_element) {
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    const std::size_t n = 1 + random() % 40;
    const std::size_t at = random() % n;
    auto values = randomFloats(random, n);
    const int kind = round % 3;  // nothing, NaN, infinity
    if (kind == 1) values[at] = std::numeric_limits<float>::quiet_NaN();
    if (kind == 2) values[at] = -std::numeric_limits<float>::infinity();
    Fixture f;
    const Tensor x = f.constant<float>({n}, values);
    const Tensor nan = popops::hasNaN(f.graph, x, f.prog);
    const Tensor either = popops::hasNaNOrInf(f.graph, x, f.prog);
    const Tensor small = popops::lt(f.graph, x, 2.5f, f.prog);
    const Tensor all = popops::allTrue(f.graph, small, f.prog);
    const auto found =
        f.run<char>(concat({nan.reshape({1}), either.reshape({1}), all.reshape({1})}));
    CHECK_EQ(found[0] != 0, kind == 1);
    CHECK_EQ(found[1] != 0, kind != 0);
    CHECK_EQ(found[2] != 0, kind != 1);
  }
  Fixture f;
  const Tensor ints = f.constant<int>({2}, {1, 2});
  CHECK_THROWS(popops::hasNaN(f.graph, ints, f.prog), "FLOAT or HALF");
  CHECK_THROWS(popops::allTrue(f.graph, ints, f.prog), "BOOL");
}

TEST(circular_buffers_remember) {
  Fixture f;
  popops::CircBuf buffer(f.graph, FLOAT, 3, {2});
  const Tensor x = f.constant<float>({2}, {0, 100});
  // Five additions: 1, 2, 3, 4, 5.
  f.prog.add(popops::countedLoop(f.graph, 5, [&](const Tensor&) {
    Sequence body;
    popops::addInPlace(f.graph, x, 1.0f, body);
    buffer.add(x, body);
    return body;
  }));
  std::vector<Tensor> past;
  const Tensor index = f.variable("index", {1}, UNSIGNED_INT);
  f.prog.add(Copy(buffer.getIndex(), index));
  for (unsigned i = 0; i < buffer.size(); ++i) past.push_back(buffer.prev(i, f.prog).expand({0}));
  const Tensor next = popops::cast(f.graph, index, FLOAT, f.prog);
  past.push_back(concat(next, next).expand({0}));
  CHECK(f.run(concat(past)) == (std::vector<float>{5, 105, 4, 104, 3, 103, 2, 2}));
  CHECK_THROWS(buffer.prev(3, f.prog), "fewer");
  CHECK_THROWS(popops::CircBuf(f.graph, FLOAT, 0, {2}), "at least 1");
}

TEST(outputs_of_elementwise_operations_lie_where_an_input_is_spread) {
  Fixture f;
  const Tensor spread = f.variable("spread", {64});
  const Tensor heaped = f.graph.addVariable(FLOAT, {64});
  f.graph.setTileMapping(heaped, 3);
  const Tensor out = popops::createOutputForElementWiseOp(f.graph, {heaped, spread}, HALF);
  CHECK(f.graph.getTileMapping(out) == f.graph.getTileMapping(spread));
  CHECK_THROWS(popops::createOutputForElementWiseOp(f.graph, {}, HALF), "an input");
  CHECK_THROWS(popops::createOutputForElementWiseOp(f.graph, {spread, spread.slice(0, 3)}, HALF),
               "one shape");
}

TEST(histograms_count_between_levels) {
  std::mt19937 random(2);
  for (int round = 0; round < 10; ++round) {
    const std::size_t n = random() % 50, levels = 1 + random() % 5;
    const auto values = randomFloats(random, n);
    auto bounds = randomFloats(random, levels);
    std::sort(bounds.begin(), bounds.end());
    const bool absolute = round % 2;
    std::vector<unsigned> wanted(levels + 1, 0);
    for (float x : values) {
      const float y = absolute ? std::abs(x) : x;
      ++wanted[static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), y) -
                                        bounds.begin())];
    }
    Fixture f;
    const Tensor in = f.constant<float>({n}, values), at = f.constant<float>({levels}, bounds);
    Tensor counts = popops::histogram(f.graph, in, at, absolute, f.prog);
    popops::histogram(f.graph, in, counts, true, at, absolute, f.prog);
    const Tensor floats =
        popops::histogram(f.graph, in, at, absolute, f.prog, {}, {{"useFloatArithmetic", "true"}});
    CHECK_EQ(floats.elementType(), FLOAT);
    const auto found = f.run<unsigned>(counts);
    for (std::size_t i = 0; i <= levels; ++i) CHECK_EQ(found[i], 2 * wanted[i]);
  }
  Fixture f;
  const Tensor x = f.constant<float>({2}, {1, 2});
  CHECK_THROWS(popops::histogram(f.graph, x, x, false, f.prog, {}, {{"bins", "3"}}), "bins");
  CHECK_THROWS(popops::histogram(f.graph, x, x.expand({0}), false, f.prog), "levels");
}

TEST(images_are_normalised_and_padded) {
  Fixture f;
  const Tensor image = popops::createNormaliseImageInput(f.graph, FLOAT, {2, 2, 3});
  f.graph.setInitialValue(image, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor offsets = f.constant<float>({3}, {1, 2, 3}),
               scales = f.constant<float>({3}, {2, 3, 4});
  const auto found = f.run(popops::normaliseImage(f.graph, f.prog, image, 0.5f, offsets, scales));
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned c = 0; c < 3; ++c) {
      const float wanted = (0.5f * static_cast<float>(3 * i + c) - static_cast<float>(c + 1)) *
                           static_cast<float>(c + 2);
      CHECK_EQ(found[4 * i + c], wanted);
    }
    CHECK_EQ(found[4 * i + 3], 0.0f);
  }
  CHECK_THROWS(popops::createNormaliseImageInput(f.graph, INT, {2, 3}), "UNSIGNED_CHAR");
  CHECK_THROWS(popops::normaliseImage(f.graph, f.prog, image, 1, scales.slice(0, 2), scales),
               "[3]");
}

TEST(runs_of_rows_are_copied) {
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    const std::size_t in = 1 + random() % 12, out = 12, width = 1 + random() % 4;
    const auto values = randomFloats(random, in * width),
               before = randomFloats(random, out * width);
    std::vector<unsigned> n, from, to;
    const bool zero = round % 2;
    auto wanted = zero ? std::vector<float>(out * width, 0) : before;
    for (unsigned at = 0; at < out;) {  // runs that do not overlap, with gaps
      const unsigned length = random() % (std::min<std::size_t>(in, out - at) + 1);
      const unsigned begin = random() % (in - length + 1);
      n.push_back(length), from.push_back(begin), to.push_back(at);
      for (unsigned i = 0; i < length * width; ++i)
        wanted[at * width + i] = values[begin * width + i];
      at += length + random() % 3 + (length == 0);
    }
    Fixture f;
    const Tensor t = f.constant<float>({out, width}, before);
    popops::sequenceSlice(
        f.graph, f.constant<float>({in, width}, values), t, f.constant<unsigned>({n.size()}, n),
        f.constant<unsigned>({n.size()}, from), f.constant<unsigned>({n.size()}, to), zero, f.prog);
    CHECK(f.run(t) == wanted);
  }
}

TEST(scalars_in_rows_are_decremented) {
  Fixture f;
  const Tensor x = f.constant<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  popops::updateScalarInRows(f.graph, x, f.constant<unsigned>({4}, {1, 0, MASKED_LABEL_CODE, 2}),
                             f.prog);
  const auto found = f.run(x);
  CHECK(std::vector<float>(found.begin(), found.begin() + 6) ==
        (std::vector<float>{1, 1, 2, 4, 5, 6}));
  CHECK(std::isnan(found[6]) && std::isnan(found[7]));
}

namespace {

/// The polynomials of B-splines by their recursion, in double.
double bspline(unsigned degree, int i, double x) {
  if (degree == 0) return x >= i && x < i + 1 ? 1 : 0;
  return (x - i) / degree * bspline(degree - 1, i, x) +
         (i + degree + 1 - x) / degree * bspline(degree - 1, i + 1, x);
}

}  // namespace

TEST(splines_sum_over_their_grid) {
  std::mt19937 random(4);
  for (unsigned degree = 1; degree <= 3; ++degree) {
    const std::size_t edges = 5, dims = 2, count = (degree + 1) * (degree + 1);
    std::vector<float> pseudo(edges * dims);
    for (auto& x : pseudo) x = std::uniform_real_distribution<float>(0, 0.99f)(random);
    const std::vector<int> size{static_cast<int>(degree) + 2, 5};
    const std::vector<unsigned char> open{1, 0};
    Fixture f;
    const Tensor basis = f.variable("basis", {edges, count}),
                 index = f.variable("index", {edges, count}, INT);
    popops::splineBasis(f.graph, f.constant<float>({edges, dims}, pseudo),
                        f.constant<int>({dims}, size), f.constant<unsigned char>({dims}, open),
                        basis, index, degree, f.prog);
    const std::size_t in = 3, out = 2, kernel = static_cast<std::size_t>(size[0] * size[1]);
    const auto x = randomFloats(random, edges * in), w = randomFloats(random, kernel * in * out);
    const Tensor weighted =
        popops::splineWeighting(f.graph, f.constant<float>({edges, in}, x),
                                f.constant<float>({kernel, in, out}, w), basis, index, f.prog);
    const auto found = f.run(weighted);
    for (std::size_t e = 0; e < edges; ++e) {
      for (std::size_t o = 0; o < out; ++o) {
        double wanted = 0;
        for (std::size_t s = 0; s < count; ++s) {
          double factor = 1;
          int at = 0, stride = 1;
          unsigned k = static_cast<unsigned>(s);
          for (std::size_t d = 0; d < dims; ++d, k /= degree + 1) {
            const double v = static_cast<double>(pseudo[e * dims + d]) *
                             (size[d] - static_cast<int>(degree) * open[d]);
            const int cell = static_cast<int>(v);
            const int which = static_cast<int>(k % (degree + 1));
            // The first spline that is not zero in the cell is the one that begins `degree` before
            // it.
            factor *= bspline(degree, which - static_cast<int>(degree), v - cell);
            at += (cell + which) % size[d] * stride;
            stride *= size[d];
          }
          for (std::size_t i = 0; i < in; ++i)
            wanted += factor * x[e * in + i] * w[(static_cast<std::size_t>(at) * in + i) * out + o];
        }
        CHECK_NEAR(found[e * out + o], wanted, 1e-5);
      }
    }
  }
}

TEST(splines_of_halves_lie_in_the_cell_of_the_exact_coordinate) {
  // At 8.999 of 10 cells, which is 9 as a half.
  const float just_below = 1843.0f / 2048;
  for (const auto type : {HALF, FLOAT}) {
    Fixture f;
    const Tensor basis = f.variable("basis", {1, 2}, type),
                 index = f.variable("index", {1, 2}, INT);
    popops::splineBasis(f.graph, f.constant<float>({1, 1}, {just_below}, type),
                        f.constant<int>({1}, {10}), f.constant<unsigned char>({1}, {0}), basis,
                        index, 1, f.prog);
    const Tensor wide = popops::cast(f.graph, basis, FLOAT, f.prog);
    const Tensor cells = popops::cast(f.graph, index, FLOAT, f.prog);
    const auto found = f.run(concat(wide.flatten(), cells.flatten()));
    const float inside = just_below * 10 - 8;
    CHECK(std::abs(found[0] - (1 - inside)) < 1e-4f && std::abs(found[1] - inside) < 1e-3f);
    CHECK(found[2] == 8 && found[3] == 9);
  }
}

TEST(regrouped_tensors_have_the_wanted_groups) {
  std::mt19937 random(5);
  for (int round = 0; round < 8; ++round) {
    const unsigned dim = random() % 3, size = 4;
    std::vector<std::size_t> shape{4 * (1 + random() % 3), 4 * (1 + random() % 3),
                                   4 * (1 + random() % 3)};
    const std::size_t n = shape[0] * shape[1] * shape[2];
    const auto values = randomFloats(random, n);
    Fixture f;
    const Tensor x = f.constant<float>(shape, values);
    const Tensor y = popops::rearrange::regroupIfPossible(f.graph, x, f.prog, {dim, size});
    CHECK_EQ(poputil::detectDimGroupings(f.graph, y)[0].first, dim);
    CHECK_EQ(poputil::detectDimGroupings(f.graph, y)[0].second % size, 0u);
    const Tensor z = popops::rearrange::regroupIfBeneficial(f.graph, x, y, f.prog);
    CHECK(poputil::detectDimGroupings(f.graph, z)[0].first == dim);
    CHECK(f.run(concat(y.flatten(), z.flatten())) == [&] {
      auto twice = values;
      twice.insert(twice.end(), values.begin(), values.end());
      return twice;
    }());
  }
  Fixture f;
  const ComputeSet cs = f.graph.addComputeSet("transpose");
  const Tensor x = f.constant<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor t = popops::rearrange::partialTranspose(f.graph, x, cs);
  f.prog.add(Execute(cs));
  CHECK(f.run(t) == (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(tensors_for_the_host_are_spread) {
  Fixture f;
  const auto made = popops::createHostSliceableTensor(f.graph, FLOAT, {3, 16}, true);
  CHECK_EQ(made.indices.numElements(), 3u);
  CHECK(made.tensor.shape() == (std::vector<std::size_t>{3, 16}));
  CHECK_THROWS(popops::createHostSliceableTensor(f.graph, FLOAT, {3}, true), "[indices, length]");
}

TEST(outputs_of_elementwise_operations_prefer_tiles_then_fewer_regions) {
  Fixture f;
  const Tensor whole = f.variable("whole", {8, 8});
  const Tensor turned = f.variable("turned", {8, 8}).transpose();
  const auto pick = [&](const std::vector<Tensor>& inputs) {
    const Tensor out = popops::createOutputForElementWiseOp(f.graph, inputs, FLOAT);
    return f.graph.getTileMapping(out);
  };
  CHECK(pick({turned, turned}) == f.graph.getTileMapping(turned));
  const Tensor row = f.graph.addVariable(FLOAT, {1, 8}, VariableMappingMethod::LINEAR);
  const Tensor repeated = row.broadcast(8, 0);
  CHECK(pick({repeated, whole}) == f.graph.getTileMapping(whole));
  CHECK(pick({repeated}) != f.graph.getTileMapping(repeated));
}

TEST(operations_are_read_as_they_are_written) {
  using popops::Operation;
  for (const auto op :
       {Operation::ADD, Operation::MUL, Operation::MIN, Operation::MAX, Operation::LOGICAL_AND,
        Operation::LOGICAL_OR, Operation::SQUARE_ADD, Operation::LOG_ADD}) {
    std::stringstream text;
    text << op;
    Operation read = op == Operation::ADD ? Operation::MUL : Operation::ADD;
    text >> read;
    CHECK(read == op);
  }
  std::stringstream text("nothing");
  Operation read;
  CHECK_THROWS(text >> read, "nothing");
}

TEST(compute_sets_fill_the_regions_they_are_given) {
  Fixture f(4);
  const Tensor t = f.constant<float>({6}, {1, 2, 3, 4, 5, 6});
  const Tensor u = f.constant<int>({2}, {1, 2});
  const auto cs = f.graph.addComputeSet("fill");
  popops::fill(f.graph, t, std::vector<Interval>{{1, 2}, {4, 6}}, 2, cs, 9.0f);
  popops::fill(f.graph, t, std::vector<std::vector<Interval>>{{}, {{0, 1}}}, cs, -1.0f);
  popops::fill(f.graph, u, 0, cs, 7);
  f.prog.add(Execute(cs));
  const Tensor ints = popops::cast(f.graph, u, FLOAT, f.prog);
  CHECK(f.run(concat(t, ints)) == (std::vector<float>{-1, 9, 3, 4, 9, 9, 7, 7}));
}

TEST(scaled_additions_take_a_form_and_subtract) {
  using Form = popops::ScaledAddSpecialisation;
  const std::vector<float> a{1, -2, 4}, b{0.5f, 3, -8};
  for (const bool is_tensor : {false, true})
    for (const auto type : {FLOAT, HALF}) {
      Fixture f;
      const Tensor x = f.constant<float>({1}, {0.25f}, type), y = f.constant<float>({1}, {2}, type);
      const Tensor B = f.constant<float>({3}, b, type);
      std::vector<Tensor> all;
      for (int i = 0; i < 3; ++i) all.push_back(f.constant<float>({3}, a, type));
      const auto second = type == HALF ? Form::X_MINUS_AX_PLUS_BY : Form::DEFAULT;
      if (is_tensor) {
        popops::scaledAddTo(f.graph, all[0], x, B, y, f.prog, Form::DEFAULT);
        popops::scaledAddTo(f.graph, all[1], x, B, y, f.prog, second);
        popops::scaledSubtractFrom(f.graph, all[2], x, B, y, f.prog);
      } else {
        popops::scaledAddTo(f.graph, all[0], 0.25f, B, 2.0f, f.prog, Form::DEFAULT);
        popops::scaledAddTo(f.graph, all[1], 0.25f, B, 2.0f, f.prog, second);
        popops::scaledSubtractFrom(f.graph, all[2], 0.25f, B, 2.0f, f.prog);
      }
      if (type == FLOAT)
        CHECK_THROWS(
            popops::scaledAddTo(f.graph, all[0], 0.5f, B, 1.0f, f.prog, Form::X_MINUS_AX_PLUS_BY),
            "HALF");
      std::vector<float> wanted;
      for (int kind = 0; kind < 3; ++kind)
        for (std::size_t i = 0; i < a.size(); ++i)
          wanted.push_back((kind == 1 && type == HALF ? 0.75f : 0.25f) * a[i] +
                           (kind == 2 ? -2 : 2) * b[i]);
      CHECK(f.run(popops::cast(f.graph, concat(all), FLOAT, f.prog)) == wanted);
    }
}

TEST(scatters_combine_windows_by_a_function) {
  std::mt19937 random(9);
  for (int round = 0; round < 4; ++round) {
    const std::size_t n = 1 + random() % 6;
    Fixture f;
    auto values = randomFloats(random, 5 * 4);
    const auto news = randomFloats(random, n * 4);
    std::vector<int> rows;
    for (std::size_t i = 0; i < n; ++i) rows.push_back(static_cast<int>(random() % 7) - 1);
    const Tensor operand = f.constant<float>({5, 4}, values);
    popops::UpdateComputationFunc larger = [](Graph& graph, Tensor& window, Tensor& update,
                                              Sequence& prog) {
      return popops::max(graph, window, update, prog);
    };
    popops::scatter(f.graph, operand, f.constant<int>({n}, rows), f.constant<float>({n, 4}, news),
                    1, {1}, {0}, {0}, larger, f.prog);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; rows[i] >= 0 && rows[i] < 5 && k < 4; ++k)
        values[4 * rows[i] + k] = std::max(values[4 * rows[i] + k], news[4 * i + k]);
    CHECK(f.run(operand) == values);
  }
}

TEST(scales_that_are_no_halves_multiply_in_float) {
  std::mt19937 random(11);
  const auto a = randomFloats(random, 200), b = randomFloats(random, 200);
  using Form = popops::ScaledAddSpecialisation;
  for (const float scale : {0.5f, 0.1f, -3.3f, 0.0f}) {
    for (const char* tolerance : {"1e-6", "0.01"}) {
      const OptionFlags options{{"scaleFloatToHalfTolerance", tolerance}};
      Fixture f;
      const Tensor A = f.constant<float>({200}, a, HALF), B = f.constant<float>({200}, b, HALF);
      const Tensor s = f.constant<float>({}, {scale}), two = f.constant<float>({}, {0.75f});
      std::vector<Tensor> made;
      for (int i = 0; i < 6; ++i) {
        made.push_back(f.graph.clone(A));
        f.prog.add(Copy(A, made.back()));
      }
      popops::scaledAddTo(f.graph, made[0], B, scale, f.prog, {}, options);
      popops::scaledAddTo(f.graph, made[1], B, s, f.prog, {}, options);
      popops::scaledSubtractFrom(f.graph, made[2], B, -scale, f.prog, {}, options);
      popops::scaledSubtractFrom(f.graph, made[3], B, s, f.prog, {}, options);
      popops::scaledAddTo(f.graph, made[4], 0.75f, B, scale, f.prog, Form::DEFAULT, {}, options);
      popops::scaledAddTo(f.graph, made[5], two, B, s, f.prog, {}, options);
      made.insert(made.end(), {A, B});
      const auto got = f.run(popops::cast(f.graph, concat(made), FLOAT, f.prog));
      const auto half = [&](float x) {
        std::uint16_t bits = 0;
        copyFloatToDeviceHalf(f.graph.getTarget(), &x, &bits, 1);
        copyDeviceHalfToFloat(f.graph.getTarget(), &bits, &x, 1);
        return x;
      };
      const bool is_half = tolerance[0] == '0' || half(scale) == scale;
      const float used = is_half ? half(scale) : scale;
      for (std::size_t i = 0; i < 200; ++i) {
        const float x = got[6 * 200 + i], y = got[7 * 200 + i];
        const float sum = half(x + half(used * y)), rest = half(x - half(used * y));
        const float both =
            is_half ? half(half(0.75f * x) + half(used * y)) : half(0.75f * x + used * y);
        const float wanted[] = {sum, sum, sum, rest, both, both};
        for (std::size_t form = 0; form < 6; ++form) CHECK_EQ(got[form * 200 + i], wanted[form]);
      }
    }
  }
  Fixture f;
  const Tensor A = f.constant<float>({2}, {1, 2}, HALF);
  CHECK_THROWS(popops::scaledAddTo(f.graph, A, A, 1.0f, f.prog, {}, {{"colour", "red"}}),
               "unknown option");
  CHECK_THROWS(popops::scaledAddTo(f.graph, A, A, A, f.prog), "one element");
}

TEST(slices_at_constant_offsets) {
  Fixture f;
  const Tensor t = f.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<unsigned> at{2, 0, 2};
  const Tensor rows = popops::multiSlice(f.graph, t, at, 0, f.prog);
  CHECK(rows.shape() == (std::vector<std::size_t>{3, 1, 2}));
  const Tensor scale = f.constant<float>({}, {0.5f});
  const Tensor sum = f.constant<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  popops::multiUpdateAdd(f.graph, sum, rows, at, scale, 0, f.prog);
  CHECK(f.run(concat(rows.flatten(), sum.flatten())) ==
        (std::vector<float>{5, 6, 1, 2, 5, 6, 1.5f, 3, 3, 4, 10, 12}));
}

TEST(scalars_and_halves_multiply_in_either_order) {
  Fixture f;
  const Tensor a = f.constant<float>({3}, {1, -2, 4}, HALF);
  const Tensor b = f.constant<float>({1}, {0.5f});
  const Tensor product = popops::scalarMultiply(f.graph, b, a, f.prog);
  CHECK(product.elementType() == HALF && product.shape() == a.shape());
  CHECK_THROWS(popops::scalarMultiplyInplace(f.graph, b, a, f.prog), "scalarMultiplyInplace");
  popops::scalarMultiplyInplace(f.graph, a, b, f.prog);
  CHECK(f.run(popops::cast(f.graph, concat(product, a), FLOAT, f.prog)) ==
        (std::vector<float>{0.5f, -1, 2, 0.5f, -1, 2}));
}

TEST(results_lack_leading_dimensions_of_their_operands) {
  Fixture f;
  const Tensor scalar = f.constant<float>({}, {1});
  const Tensor row = f.constant<float>({2}, {2, 3});
  popops::addInPlace(f.graph, scalar, f.constant<float>({1, 1}, {4}), f.prog);
  popops::mulInPlace(f.graph, row, f.constant<float>({1, 2}, {10, 20}), f.prog);
  CHECK_THROWS(popops::addInPlace(f.graph, scalar, row, f.prog), "shape {2} and type float");
  const Tensor wide = f.constant<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS(popops::mapWithOutput(f.graph, popops::expr::_1 * 2.0f, {wide},
                                     f.graph.addVariable(FLOAT, {3, 2}), f.prog),
               "{2,3} and {3,2}");
  CHECK(f.run(concat(scalar.flatten(), row)) == (std::vector<float>{5, 20, 60}));
}

TEST(gathers_read_index_0_for_windows_outside) {
  Fixture f;
  const Tensor t = f.constant<int>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor at = f.constant<int>({4, 2}, {2, 7, 2, 1, -1, 1, 2147483647, 0});
  const Tensor one = popops::gather(f.graph, t, at, 1, {1, 2}, {1, 1}, {}, {0, 1}, f.prog);
  const Tensor row = f.constant<int>({2}, {3, 1});
  const Tensor rows = popops::gather(f.graph, t, row, 1, {1}, {1, 3}, {0}, {0}, f.prog);
  CHECK(f.run<int>(concat(one.flatten(), rows.flatten())) ==
        (std::vector<int>{7, 8, 2, 1, 1, 2, 3, 4, 5, 6}));
}
