#include <poplin/MatMul.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

/// If operands share memory, functions read all of their inputs before they write.
using namespace poplar;
using namespace poplar::program;

namespace {
using Floats = std::vector<float>;
}

TEST(a_product_is_added_to_one_of_its_factors) {
  Fixture f;
  const Tensor a = f.constant<float>({2, 1, 2}, Floats{1, 2, 3, 4});
  const Tensor b = f.constant<float>({2, 2, 2}, Floats{1, 2, 3, 4, 1, 0, 0, 1});
  poplin::matMulGroupedAcc(f.graph, a, -1.0F, a, b, f.prog);
  CHECK(f.run<float>(a) == (Floats{1 - 7, 2 - 10, 0, 0}));
}

TEST(elements_are_added_to_their_neighbours) {
  Fixture f;
  const Tensor x = f.constant<float>({5}, Floats{1, 2, 3, 4, 5});
  popops::scaledAddTo(f.graph, x.slice(1, 5), x.slice(0, 4), 10.0F, f.prog);
  CHECK(f.run<float>(x) == (Floats{1, 12, 23, 34, 45}));
}

TEST(a_row_takes_the_sum_of_all_rows) {
  Fixture f;
  const Tensor x = f.constant<float>({3, 2}, Floats{1, 2, 3, 4, 5, 6});
  popops::reduceWithOutput(f.graph, x, x[1], {0}, {popops::Operation::ADD}, f.prog);
  CHECK(f.run<float>(x) == (Floats{1, 2, 9, 12, 5, 6}));
}

TEST(rows_of_a_table_are_added_to_others) {
  Fixture f;
  const Tensor table = f.constant<float>({4, 2}, Floats{1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor rows = f.constant<unsigned>({2, 1}, std::vector<unsigned>{1, 2});
  const Tensor one = f.constant<float>({}, Floats{1});
  popops::multiUpdateAdd(f.graph, table, table.slice(0, 2).expand({1}), rows, one, {0}, {1}, f.prog,
                         popops::SlicePlan(), {});
  CHECK(f.run<float>(table) == (Floats{1, 2, 4, 6, 8, 10, 7, 8}));
}

TEST(rows_are_copied_over_their_neighbours) {
  Fixture f;
  const Tensor x = f.constant<float>({4}, Floats{1, 2, 3, 4});
  f.prog.add(Copy(x.slice(0, 3), x.slice(1, 4)));
  CHECK(f.run<float>(x) == (Floats{1, 1, 2, 3}));
}
