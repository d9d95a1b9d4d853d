#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include "Check.hpp"
#include "engine/ThreadPool.hpp"
#include "engine/blas/Pack.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/ConvGeometry.hpp"

/// The host kernel against the definition, which applies the transforms to whole arrays.
namespace {

using namespace ipujax::engine;
using ipujax::engine::convolution::AxisTransform;
using Dims = std::vector<std::int64_t>;

std::int64_t product(const Dims& dims) {
  std::int64_t n = 1;
  for (auto d : dims) n *= d;
  return n;
}

Dims rowMajor(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Strides of `shape` where `order` lists the dimensions from outermost to innermost in memory.
Dims stridesIn(const Dims& shape, const std::vector<std::size_t>& order) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= shape[order[i]];
  }
  return strides;
}

/// A dense array of doubles, row-major.
struct Dense {
  Dims shape, strides;
  std::vector<double> data;
  explicit Dense(Dims s)
      : shape(std::move(s)),
        strides(rowMajor(shape)),
        data(static_cast<std::size_t>(product(shape))) {}
  double& at(const Dims& index) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    return data[static_cast<std::size_t>(offset)];
  }
};

template <class F>
void forEach(const Dims& shape, F f) {
  if (product(shape) == 0) return;
  Dims index(shape.size(), 0);
  for (;;) {
    f(index);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// Truncates, dilates, pads and flips spatial axis `axis` of t, in this order.
Dense transformed(Dense t, std::size_t axis, const AxisTransform::Side& side) {
  Dims shape = t.shape;
  const std::int64_t kept = shape[axis] - side.truncation_lower - side.truncation_upper;
  const std::int64_t dilated = kept == 0 ? 0 : (kept - 1) * side.dilation + 1;
  shape[axis] = dilated + side.padding_lower + side.padding_upper;
  Dense out(shape);
  const std::int64_t size = shape[axis];
  forEach(t.shape, [&](const Dims& index) {
    const std::int64_t i = index[axis] - side.truncation_lower;
    if (i < 0 || i >= kept) return;
    Dims to = index;
    to[axis] = side.padding_lower + i * side.dilation;
    if (side.flip) to[axis] = size - 1 - to[axis];
    out.at(to) = t.at(index);
  });
  return out;
}

/// in [N, G, Ci, s...], weights [G, Co, Ci, k...] -> [N, G, Co, o...]
Dense oracle(Dense in, Dense weights, const std::vector<AxisTransform>& axes) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    in = transformed(in, a + 3, axes[a].input);
    weights = transformed(weights, a + 3, axes[a].kernel);
  }
  Dims shape{in.shape[0], in.shape[1], weights.shape[1]};
  Dims kernel{in.shape[2]};
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto& o = axes[a].output;
    const std::int64_t full =
        in.shape[a + 3] - weights.shape[a + 3] + 1 - o.truncation_lower - o.truncation_upper;
    const std::int64_t kept = full <= 0 ? 0 : (full + o.stride - 1) / o.stride;
    shape.push_back(kept + o.padding_lower + o.padding_upper);
    kernel.push_back(weights.shape[a + 3]);
  }
  /// Offsets of each product's operands from those of the first.
  struct Tap {
    std::int64_t in, weights;
  };
  std::vector<Tap> taps;
  forEach(kernel, [&](const Dims& k) {
    Tap tap{k[0] * in.strides[2], k[0] * weights.strides[2]};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      tap.in += k[a + 1] * in.strides[a + 3];
      tap.weights += k[a + 1] * weights.strides[a + 3];
    }
    taps.push_back(tap);
  });
  Dense out(shape);
  forEach(shape, [&](const Dims& index) {
    std::int64_t x = index[0] * in.strides[0] + index[1] * in.strides[1];
    const std::int64_t w = index[1] * weights.strides[0] + index[2] * weights.strides[1];
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const auto& o = axes[a].output;
      const std::int64_t j = index[a + 3] - o.padding_lower;
      if (j < 0 || j >= shape[a + 3] - o.padding_lower - o.padding_upper) return;
      x += (o.truncation_lower + j * o.stride) * in.strides[a + 3];
    }
    double sum = 0;
    for (const Tap& tap : taps)
      sum += in.data[static_cast<std::size_t>(x + tap.in)] *
             weights.data[static_cast<std::size_t>(w + tap.weights)];
    out.at(index) = sum;
  });
  return out;
}

struct Case {
  Dims in, weights;
  std::vector<AxisTransform> axes;
  std::vector<std::size_t> in_order, weight_order, out_order;
  ElementType in_type = ElementType::kFloat;
  ElementType out_type = ElementType::kFloat;
  std::optional<ElementType> weight_type;  ///< if it is not in_type
  bool half_partials = false;
};

bool isSigned(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kInt16 || type == ElementType::kInt32 ||
         type == ElementType::kInt64;
}

/// x wrapped to the type.
std::int64_t wrapped(std::int64_t x, ElementType type) {
  const auto spare = 64 - 8 * static_cast<int>(sizeOf(type));
  const auto shifted = static_cast<std::uint64_t>(x) << spare;
  return isSigned(type) ? static_cast<std::int64_t>(shifted) >> spare
                        : static_cast<std::int64_t>(shifted >> spare);
}

/// Random values of a type: floats are small multiples of `unit`; integers are small enough for
/// exact sums in double, but sums wrap in 32 bits.
double drawn(std::mt19937& random, ElementType type, double unit) {
  std::uniform_int_distribution<int> digit(-4, 4), wide(-(1 << 17), 1 << 17);
  if (!blas::isInteger(type)) return digit(random) * unit;
  const int x = wide(random);
  return static_cast<double>(wrapped(isSigned(type) ? x : std::abs(x), type));
}

std::vector<std::byte> store(Dense& values, ElementType type, const Dims& strides) {
  const auto size = static_cast<std::int64_t>(sizeOf(type));
  std::vector<std::byte> bytes(static_cast<std::size_t>(product(values.shape) * size + 8));
  forEach(values.shape, [&](const Dims& index) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    if (blas::isInteger(type)) {
      const auto x = static_cast<std::int64_t>(values.at(index));
      std::memcpy(bytes.data() + offset * size, &x, sizeOf(type));
    } else {
      if (type == ElementType::kDouble) {
        std::memcpy(bytes.data() + offset * size, &values.at(index), sizeof(double));
        return;
      }
      const auto x = static_cast<float>(values.at(index));
      blas::storeRow(&x, bytes.data(), type, offset, 1, 1);
    }
  });
  return bytes;
}

double read(const std::vector<std::byte>& bytes, ElementType type, std::int64_t offset) {
  if (blas::isInteger(type)) {
    std::int64_t x = 0;
    std::memcpy(&x, bytes.data() + offset * static_cast<std::int64_t>(sizeOf(type)), sizeOf(type));
    return static_cast<double>(wrapped(x, type));
  }
  if (type == ElementType::kDouble) return reinterpret_cast<const double*>(bytes.data())[offset];
  float x = 0;
  blas::loadRow(bytes.data(), type, offset, 1, 1, &x);
  return static_cast<double>(x);
}

std::string describe(const Case& c) {
  std::ostringstream os;
  os << "in";
  for (auto d : c.in) os << " " << d;
  os << ", weights";
  for (auto d : c.weights) os << " " << d;
  os << ", axes";
  for (auto i : ipujax::engine::convolution::encode(c.axes)) os << " " << i;
  os << ", types " << nameOf(c.in_type) << " x " << nameOf(c.weight_type.value_or(c.in_type))
     << " -> " << nameOf(c.out_type);
  return os.str();
}

void verify(const Case& c, unsigned seed) {
  std::mt19937 random(seed);
  const ElementType weight_type = c.weight_type.value_or(c.in_type);
  Dense in(c.in), weights(c.weights);
  for (auto& x : in.data) x = drawn(random, c.in_type, 0.125);
  for (auto& x : weights.data) x = drawn(random, weight_type, 0.25);
  Dense expected = oracle(in, weights, c.axes);
  StepDesc step;
  step.kernel = "poplin.convolution";
  const auto add = [&](ElementType type, Access access, const Dims& shape,
                       const std::vector<std::size_t>& order) {
    OperandDesc desc;
    desc.type = type;
    desc.access = access;
    desc.shape = shape;
    desc.strides = stridesIn(shape, order);
    step.operands.push_back(desc);
  };
  add(c.in_type, Access::kRead, c.in, c.in_order);
  add(weight_type, Access::kRead, c.weights, c.weight_order);
  add(c.out_type, Access::kWrite, expected.shape, c.out_order);
  step.attributes.set("axes", ipujax::engine::convolution::encode(c.axes));
  step.attributes.set("half_partials", std::int64_t{c.half_partials});
  auto in_bytes = store(in, c.in_type, step.operands[0].strides);
  auto weight_bytes = store(weights, weight_type, step.operands[1].strides);
  Dense garbage(expected.shape);
  for (auto& x : garbage.data) x = 77;
  auto out_bytes = store(garbage, c.out_type, step.operands[2].strides);
  std::byte* pointers[] = {in_bytes.data(), weight_bytes.data(), out_bytes.data()};
  RunContext context{ThreadPool::shared()};
  KernelRegistry::instance().make(step)->run(context, pointers);
  const double tolerance = c.half_partials ? 0.5 : c.out_type == ElementType::kHalf ? 0.02 : 1e-4;
  forEach(expected.shape, [&](const Dims& index) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * step.operands[2].strides[d];
    const double got = read(out_bytes, c.out_type, offset);
    double want = expected.at(index);
    if (blas::isInteger(c.out_type)) {
      want = static_cast<double>(wrapped(static_cast<std::int64_t>(want), c.out_type));
      if (got != want) check::fail(__FILE__, __LINE__, describe(c), ": ", got, " is not ", want);
    }
    if (!(std::abs(got - want) <= tolerance * (1 + std::abs(want) * 0.1)))
      check::fail(__FILE__, __LINE__, describe(c), ": ", got, " is not ", want);
  });
}

constexpr std::size_t kLayouts = 3;

/// 0: as given; 1: channels last; 2: first dimension last (a weight gradient's operands).
std::vector<std::size_t> layout(std::size_t kind, std::size_t rank, bool weights) {
  std::vector<std::size_t> order;
  if (kind == 0) {
    for (std::size_t d = 0; d < rank; ++d) order.push_back(d);
  } else if (kind == 1) {
    if (!weights) order.push_back(0);
    for (std::size_t d = 3; d < rank; ++d) order.push_back(d);
    if (weights) {
      order.insert(order.end(), {2, 0, 1});
    } else {
      order.insert(order.end(), {1, 2});
    }
  } else {
    order.push_back(2);
    for (std::size_t d = 3; d < rank; ++d) order.push_back(d);
    order.insert(order.end(), {1, 0});
    if (weights) std::swap(order[order.size() - 1], order[order.size() - 2]);
  }
  return order;
}

struct Random {
  std::mt19937 engine;
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }
};

Case randomCase(Random& r) {
  const std::int64_t rank = r(1, 3);
  Case c;
  const bool depthwise = r(0, 3) == 0;
  const std::int64_t groups = depthwise ? r(4, 20) : r(0, 2) == 0 ? r(2, 3) : 1;
  const std::int64_t ci = depthwise ? r(1, 2) : r(0, 3) ? r(1, 9) : r(16, 40);
  const std::int64_t co = depthwise ? r(1, 2) : r(0, 3) ? r(1, 9) : r(16, 70);
  c.in = {r(0, 2) ? r(1, 5) : r(8, 40), groups, ci};
  c.weights = {groups, co, ci};
  for (std::int64_t a = 0; a < rank; ++a) {
    AxisTransform t;
    const bool plain = r(0, 1) == 0;
    const std::int64_t kernel = r(1, 4) == 1 ? r(4, 9) : r(1, 3);
    std::int64_t size = r(1, rank == 3 ? 6 : 12);
    t.input.padding_lower = r(0, 2);
    t.input.padding_upper = r(0, 2);
    if (!plain) {
      t.input.dilation = r(1, 3);
      t.kernel.dilation = r(1, 2);
      t.input.flip = r(0, 2) == 0;
      t.kernel.flip = r(0, 2) == 0;
      t.kernel.padding_lower = r(0, 3) == 0;
      t.kernel.padding_upper = r(0, 3) == 0;
      t.input.truncation_lower = r(0, 3) == 0 ? 1 : 0;
      t.kernel.truncation_upper = kernel > 1 && r(0, 3) == 0 ? 1 : 0;
      t.output.truncation_lower = r(0, 3) == 0 ? 1 : 0;
      t.output.truncation_upper = r(0, 3) == 0 ? 2 : 0;
      t.output.padding_lower = r(0, 4) == 0 ? 1 : 0;
      t.output.padding_upper = r(0, 4) == 0 ? 2 : 0;
      size += t.input.truncation_lower;
    }
    t.output.stride = r(0, 2) ? 1 : r(1, 3);
    const std::int64_t needed = (kernel - 1) * t.kernel.dilation + 3;
    while ((size - 1 - t.input.truncation_lower) * t.input.dilation + 1 + t.input.padding_lower +
               t.input.padding_upper <
           needed)
      ++size;
    c.in.push_back(size);
    c.weights.push_back(kernel);
    c.axes.push_back(t);
  }
  const auto full = static_cast<std::size_t>(rank + 3);
  c.in_order = layout(static_cast<std::size_t>(r(0, kLayouts - 1)), full, false);
  c.weight_order = layout(static_cast<std::size_t>(r(0, kLayouts - 1)), full, true);
  c.out_order = layout(static_cast<std::size_t>(r(0, kLayouts - 1)), full, false);
  return c;
}

Case plainCase(Dims in, Dims weights, std::int64_t padding, std::int64_t stride = 1,
               std::int64_t in_dilation = 1, std::int64_t kernel_dilation = 1) {
  Case c;
  c.in = std::move(in);
  c.weights = std::move(weights);
  for (std::size_t a = 3; a < c.in.size(); ++a) {
    AxisTransform t;
    t.input.padding_lower = t.input.padding_upper = padding;
    t.input.dilation = in_dilation;
    t.kernel.dilation = kernel_dilation;
    t.output.stride = stride;
    c.axes.push_back(t);
  }
  c.in_order = layout(1, c.in.size(), false);
  c.weight_order = layout(1, c.in.size(), true);
  c.out_order = layout(1, c.in.size(), false);
  return c;
}

}  // namespace

TEST(convolution_random_transforms_and_layouts_match_the_definition) {
  Random r{std::mt19937(7)};
  for (unsigned i = 0; i < 400; ++i) verify(randomCase(r), i);
}

TEST(convolution_half_matches_the_definition) {
  Random r{std::mt19937(8)};
  for (unsigned i = 0; i < 100; ++i) {
    Case c = randomCase(r);
    c.in_type = c.out_type = ElementType::kHalf;
    verify(c, i);
    c.half_partials = true;
    verify(c, i);
  }
}

TEST(convolution_integers_are_exact) {
  Random r{std::mt19937(9)};
  constexpr ElementType kTypes[] = {ElementType::kInt8,   ElementType::kUInt8, ElementType::kInt16,
                                    ElementType::kUInt16, ElementType::kInt32, ElementType::kUInt32,
                                    ElementType::kInt64,  ElementType::kUInt64};
  for (unsigned i = 0; i < 200; ++i) {
    Case c = randomCase(r);
    c.in_type = kTypes[r(0, 7)];
    if (r(0, 3) == 0) c.weight_type = kTypes[r(0, 7)];
    c.out_type = r(0, 1) ? c.in_type : kTypes[r(0, 7)];
    verify(c, i);
  }
}

TEST(convolution_integers_of_network_shapes_are_exact) {
  for (const ElementType out : {ElementType::kInt8, ElementType::kInt32, ElementType::kInt64}) {
    for (Case c : {plainCase({2, 1, 3, 20, 20}, {1, 16, 3, 7, 7}, 3, 2),
                   plainCase({1, 1, 40, 9, 9}, {1, 34, 40, 3, 3}, 1),
                   plainCase({14, 1, 33, 8, 8}, {1, 32, 33, 1, 1}, 0),
                   plainCase({4, 1, 16, 8, 8}, {1, 24, 16, 3, 3}, 2, 1, 2),
                   plainCase({2, 32, 1, 12, 12}, {32, 1, 1, 3, 3}, 1),
                   plainCase({9, 1, 5, 16, 16}, {1, 7, 5, 16, 16}, 1)}) {
      c.in_type = ElementType::kInt8;
      c.out_type = out;
      verify(c, 3);
    }
  }
}

TEST(convolution_doubles_match_the_definition) {
  Random r{std::mt19937(10)};
  for (unsigned i = 0; i < 60; ++i) {
    Case c = randomCase(r);
    c.in_type = c.out_type = ElementType::kDouble;
    verify(c, i);
  }
}

TEST(convolution_network_shapes) {
  verify(plainCase({4, 1, 3, 32, 32}, {1, 16, 3, 3, 3}, 1), 1);
  verify(plainCase({2, 1, 64, 16, 16}, {1, 48, 64, 3, 3}, 1, 2), 2);
  verify(plainCase({2, 1, 32, 9, 9}, {1, 80, 32, 1, 1}, 0), 3);
  verify(plainCase({14, 1, 32, 8, 8}, {1, 32, 32, 1, 1}, 0), 4);
  verify(plainCase({4, 1, 16, 8, 8}, {1, 24, 16, 3, 3}, 2, 1, 2), 5);
  verify(plainCase({2, 32, 1, 12, 12}, {32, 1, 1, 3, 3}, 1), 6);
}

TEST(convolution_weight_gradient_shapes) {
  for (const std::int64_t stride : {1, 2}) {
    Case c = plainCase({24, 1, 20, 16, 16}, {1, 40, 20, 16 / stride, 16 / stride}, 1, 1, 1, stride);
    for (auto& t : c.axes) t.input.padding_lower = 1, t.input.padding_upper = stride == 1 ? 1 : 0;
    for (std::size_t kind = 0; kind < kLayouts; ++kind) {
      c.in_order = layout(kind, 5, false);
      c.weight_order = layout(kind, 5, true);
      verify(c, static_cast<unsigned>(kind));
    }
  }
}

TEST(convolution_without_taps_is_zero) {
  verify(plainCase({1, 1, 2, 3, 3}, {1, 2, 2, 1, 1}, 0, 1, 3), 1);
  verify(plainCase({2, 1, 2}, {1, 3, 2}, 0), 2);
  verify(plainCase({2, 1, 2, 3, 2, 2, 3}, {1, 3, 2, 2, 1, 2, 2}, 1), 3);
}
