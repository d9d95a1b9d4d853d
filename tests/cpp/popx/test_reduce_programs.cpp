#include <cmath>
#include <numeric>

#include "Check.hpp"
#include "ReduceModel.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "poplar/Executable.hpp"
#include "popops/Expr.hpp"
#include "popops/Iota.hpp"
#include "popops/Reduce.hpp"
#include "popops/Sort.hpp"
#include "popops/TopK.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popx/Expr.hpp"
#include "popx/Reduce.hpp"
#include "popx/ReduceWindow.hpp"
#include "popx/SelectAndScatter.hpp"
#include "popx/Sort.hpp"

using reduce_model::Model;
namespace pe = popops::expr;

namespace {

pe::PlaceHolder at(unsigned i) { return pe::PlaceHolder(i); }

poplar::Tensor scalar(Model& m, float value) {
  poplar::Tensor t = m.graph.addConstant<float>(poplar::FLOAT, {}, value, "scalar");
  m.graph.setTileMapping(t, 0);
  return t;
}

double cyclesOf(Model& m) {
  return poplar::compileGraph(m.graph, {m.prog}).image()->cost().cycles();
}

/// jax.lax.sort's key: one zero, one NaN, then the total order's integer.
pe::Expr jaxKey(const pe::Expr& x) {
  const pe::Expr zero = pe::Const(poplar::FLOAT, 0.0f);
  const pe::Expr one_zero = pe::Select(zero, x, pe::Equal(x, zero));
  const pe::Expr nan = pe::Const(poplar::FLOAT, std::nanf(""));
  const pe::Expr canonical = pe::Select(nan, one_zero, pe::NotEqual(x, x));
  const pe::Expr bits = popx::expr::Bitcast(canonical, poplar::INT);
  const pe::Expr sign = pe::ShrSE(bits, pe::Const(poplar::INT, 31));
  return pe::BitwiseXor(bits, pe::BitwiseAnd(sign, pe::Const(poplar::INT, 0x7fffffff)));
}

}  // namespace

TEST(jax_comparators_become_keys) {
  const auto keys = ipujax::engine::sortKeysOf(popops::internal::compileExpr(
      {pe::Lt(jaxKey(at(1)), jaxKey(at(2)))}, {poplar::FLOAT, poplar::FLOAT}));
  CHECK(keys && keys->size() == 1 && !(*keys)[0].descending);
  CHECK((*keys)[0].order == ipujax::engine::FloatOrder::kCanonical);
  const pe::Expr second = pe::Lt(jaxKey(at(3)), jaxKey(at(4)));
  const pe::Expr first = pe::Lt(jaxKey(at(1)), jaxKey(at(2)));
  const pe::Expr equal = pe::Equal(jaxKey(at(1)), jaxKey(at(2)));
  const auto two = ipujax::engine::sortKeysOf(popops::internal::compileExpr(
      {pe::Or(first, pe::And(equal, second))}, std::vector<poplar::Type>(4, poplar::FLOAT)));
  CHECK(two && two->size() == 2);
  const auto total = [](const pe::Expr& x) {
    const pe::Expr bits = popx::expr::Bitcast(x, poplar::INT);
    const pe::Expr sign = pe::ShrSE(bits, pe::Const(poplar::INT, 31));
    return pe::BitwiseXor(bits, pe::BitwiseAnd(sign, pe::Const(poplar::INT, 0x7fffffff)));
  };
  const auto plain = ipujax::engine::sortKeysOf(popops::internal::compileExpr(
      {pe::Gt(total(at(1)), total(at(2)))}, {poplar::FLOAT, poplar::FLOAT}));
  CHECK(plain && (*plain)[0].descending && (*plain)[0].order == ipujax::engine::FloatOrder::kTotal);
}

TEST(every_function_runs_in_a_program) {
  Model m;
  const auto x = m.variable(poplar::FLOAT, {2, 4}, "x");
  const auto line = m.variable(poplar::INT, {4}, "line");
  popops::iota(m.graph, line, 3, m.prog);
  const auto product =
      popx::reduce(m.graph, {x.transpose()}, {scalar(m, 2)}, {pe::Mul(at(1), at(2))}, {0}, m.prog);
  popx::Window window = popx::Window::of({1, 4});
  window.padding_low[1] = 3;
  const auto sums =
      popx::reduceWindow(m.graph, {x}, {scalar(m, 0)}, {pe::Add(at(1), at(2))}, window, m.prog);
  const auto sorted = popx::sort(m.graph, {x, line.reshape({1, 4}).broadcast(2, 0)}, 1,
                                 pe::Lt(jaxKey(at(1)), jaxKey(at(2))), true, m.prog);
  const auto best = popops::topKWithPermutation(m.graph, m.prog, x,
                                                {2, true, popops::SortOrder::DESCENDING, true});
  const auto least =
      popops::topK(m.graph, m.prog, x, {2, false, popops::SortOrder::DESCENDING, true});
  popx::Window pairs = popx::Window::of({1, 2});
  pairs.strides[1] = 2;
  const auto scattered =
      popx::selectAndScatter(m.graph, x, x.slice(0, 2, 1), scalar(m, 0), pe::Gte(at(1), at(2)),
                             pe::Add(at(1), at(2)), pairs, m.prog);
  std::vector<float> in{4, 1, 3, 2, 5, 6, 8, 7};
  std::vector<std::int32_t> l(4), order(8);
  std::vector<float> p(2), s(8), o(8), b(4), w(4), g(8);
  std::vector<std::uint32_t> i(4);
  m.run({{x, in.data()}}, {{line, l.data()},
                           {product[0], p.data()},
                           {sums[0], s.data()},
                           {sorted[0], o.data()},
                           {sorted[1], order.data()},
                           {best.first, b.data()},
                           {best.second, i.data()},
                           {least, w.data()},
                           {scattered, g.data()}});
  CHECK(l == std::vector<std::int32_t>({3, 4, 5, 6}));
  CHECK(p == std::vector<float>({48, 3360}));
  CHECK(s == std::vector<float>({4, 5, 8, 10, 5, 11, 19, 26}));
  CHECK(o == std::vector<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(order == std::vector<std::int32_t>({4, 6, 5, 3, 3, 4, 6, 5}));
  CHECK(b == std::vector<float>({4, 3, 8, 7}));
  CHECK(i == std::vector<std::uint32_t>({0, 2, 2, 3}));
  CHECK(w == std::vector<float>({2, 1, 6, 5}));
  CHECK(g == std::vector<float>({4, 0, 1, 0, 0, 5, 6, 0}));
}

TEST(costs_grow_with_the_work) {
  const auto cycles = [](std::size_t n, const auto& f) {
    Model m;
    const auto x = m.variable(poplar::FLOAT, {n}, "x");
    f(m, x);
    return cyclesOf(m);
  };
  const auto sum = [](Model& m, const poplar::Tensor& x) {
    popops::reduce(m.graph, x, {0}, popops::Operation::ADD, m.prog);
  };
  const auto sort = [](Model& m, const poplar::Tensor& x) { popops::sort(m.graph, x, 0, m.prog); };
  const auto top = [](Model& m, const poplar::Tensor& x) {
    popops::topK(m.graph, m.prog, x, {4, true, popops::SortOrder::DESCENDING});
  };
  const auto window = [](Model& m, const poplar::Tensor& x) {
    popx::Window w = popx::Window::of({8});
    popx::reduceWindow(m.graph, {x}, {scalar(m, 0)}, {pe::Add(at(1), at(2))}, w, m.prog);
  };
  const std::size_t small = 1 << 12;
  const std::size_t large = 1 << 21;
  CHECK(cycles(large, sum) > cycles(small, sum));
  CHECK(cycles(large, sort) > 3 * cycles(small, sort));
  CHECK(cycles(large, top) > cycles(small, top));
  CHECK(cycles(large, top) < cycles(large, sort));
  CHECK(cycles(large, window) > cycles(small, window));
  CHECK(cycles(small, sum) > 2 * 126);
}
