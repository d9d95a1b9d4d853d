// Copies between strided views, against a plain loop.
#include <algorithm>
#include <numeric>

#include "Check.hpp"
#include "StepDeclared.hpp"
#include "engine/graph/CopyCost.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "popops/OnDevice.hpp"
#include "popops/StepRunner.hpp"

using namespace step_runner;

namespace {

template <class T>
void copyCase(ElementType type, const Shape& shape, std::mt19937& g, bool broadcast) {
  Array<T> src(type, Access::kRead, shape, &g);
  Array<T> dst(type, Access::kWrite, shape, &g);
  if (broadcast && !shape.empty()) src.desc.strides[g() % shape.size()] = 0;
  for (auto& x : src.memory) x = static_cast<T>(g());
  for (auto& x : dst.memory) x = static_cast<T>(g());
  Array<T> expected = dst;
  each(shape, [&](const Shape& i) { expected.at(i) = src.at(i); });
  StepDesc step;
  step.kernel = "engine.copy";
  step.operands = {src.desc, dst.desc};
  run(step, {src.pointer(), dst.pointer()});
  CHECK(dst.memory == expected.memory);
}

}  // namespace

TEST(copy_random_views) {
  std::mt19937 g(3);
  for (int i = 0; i < 1500; ++i) {
    Shape shape;
    const int rank = static_cast<int>(g() % 5);
    const int most = rank <= 2 ? 90 : 9;
    for (int d = 0; d < rank; ++d)
      shape.push_back(g() % 25 == 0 ? 0 : 1 + static_cast<int>(g() % static_cast<unsigned>(most)));
    const bool broadcast = g() % 3 == 0;
    copyCase<std::uint8_t>(ElementType::kUInt8, shape, g, broadcast);
    copyCase<std::uint16_t>(ElementType::kHalf, shape, g, broadcast);
    copyCase<std::uint32_t>(ElementType::kInt32, shape, g, broadcast);
    copyCase<std::uint64_t>(ElementType::kUInt64, shape, g, broadcast);
  }
}

TEST(copy_large_transpose_on_several_threads) {
  std::mt19937 g(5);
  for (const Shape& shape : {Shape{700, 601}, Shape{64, 5, 900}, Shape{3, 70000}}) {
    copyCase<std::uint32_t>(ElementType::kInt32, shape, g, false);
    copyCase<std::uint8_t>(ElementType::kUInt8, shape, g, false);
  }
}

/// Separates interleaved real and imaginary parts and joins them; elements between do not change.
TEST(copy_from_and_to_pairs) {
  std::vector<std::uint32_t> pairs(2 * 100 + 2);
  std::iota(pairs.begin(), pairs.end(), 0u);
  const std::vector<std::int64_t> one{1};
  const std::vector<std::int64_t> two{2};
  const auto bytes = [](auto* p) { return reinterpret_cast<std::byte*>(p); };
  for (std::int64_t n = 0; n <= 100; ++n) {
    const std::vector<std::int64_t> shape{n};
    std::vector<std::uint32_t> line(101, 7u);
    StridedCopy(4, shape, two, one).run(bytes(pairs.data() + 1), bytes(line.data()));
    std::vector<std::uint32_t> back(2 * 100 + 2, 9u);
    StridedCopy(4, shape, one, two).run(bytes(line.data()), bytes(back.data()));
    for (std::int64_t i = 0; i <= 100; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK_EQ(line[at], i < n ? pairs[2 * at + 1] : 7u);
      CHECK_EQ(back[2 * at], i < n ? line[at] : 9u);
      CHECK_EQ(back[2 * at + 1], 9u);
    }
  }
}

TEST(copy_refuses_views_that_do_not_match) {
  Array<float> a(ElementType::kFloat, Access::kRead, {2, 3});
  Array<float> b(ElementType::kFloat, Access::kWrite, {3, 2});
  StepDesc step;
  step.kernel = "engine.copy";
  step.operands = {a.desc, b.desc};
  CHECK_THROWS(check::declared(step), "kernel engine.copy needs operand 1 to");
  const std::vector<std::int64_t> one{1};
  CHECK_THROWS(StridedCopy(3, one, one, one), "1, 2, 4 or 8");
}

TEST(copy_costs_exchange_only_between_tiles) {
  OnDevice d;
  const auto a = d.iota({1472, 64});
  const auto b =
      d.graph.addVariable(poplar::FLOAT, {1472, 64}, poplar::VariableMappingMethod::LINEAR);
  const Cost same = copyCost(d.graph, a, b);
  CHECK_EQ(same.exchange_bytes, 0.0);
  // 64 floats on each tile at 8 bytes a cycle, and the launch constant.
  CHECK(same.compute_cycles >= 32);
  CHECK(same.compute_cycles < 300);
  const auto c = d.graph.addVariable(poplar::FLOAT, {1472, 64});
  d.graph.setTileMapping(c, 0);
  const Cost moved = copyCost(d.graph, a, c);
  CHECK_NEAR(moved.exchange_bytes, 1471.0 * 256, 4096);
  CHECK(moved.exchange_cycles >= 1471.0 * 256 / 4);
}

TEST(a_copy_of_several_pieces_costs_what_it_costs_in_one) {
  OnDevice d;
  const auto on = [&](unsigned first, unsigned rows) {
    const auto t = d.graph.addVariable(poplar::FLOAT, {rows, 100});
    for (unsigned i = 0; i < rows; ++i) d.graph.setTileMapping(t[i], first + i);
    return t;
  };
  const auto cost = [&](const poplar::Tensor& from, const poplar::Tensor& to) {
    const auto node = makeNode(ProgramKind::kSequence, {});
    const GraphScope scope = d.graph;
    appendCopy(scope.impl, *node, from.view(), to.view(), {});
    Cost sum;
    for (const auto& child : node->children) sum += child->step.cost;
    return std::make_pair(sum, node->children.size());
  };
  std::vector<poplar::Tensor> rows;
  for (unsigned i = 0; i < 64; ++i) rows.push_back(on(i, 1));
  const auto pieces = poplar::concat(rows);
  for (const unsigned first : {0u, 32u, 500u}) {
    const auto [whole, one] = cost(on(0, 64), on(first, 64));
    for (const auto& [parts, steps] : {cost(pieces, on(first, 64)), cost(on(first, 64), pieces)}) {
      CHECK_EQ(one, 1u);
      CHECK_EQ(steps, 64u);
      CHECK_NEAR(parts.sync_cycles, whole.sync_cycles, 1e-6);
      CHECK_NEAR(parts.exchange_cycles, whole.exchange_cycles, 1e-6);
      CHECK_NEAR(parts.compute_cycles, whole.compute_cycles, 1e-6);
      CHECK_EQ(parts.exchange_bytes, whole.exchange_bytes);
    }
  }
}
