// Gather, scatter and pad as XLA defines them, through the public API, against plain loops.
#include "Check.hpp"
#include "popops/Gather.hpp"
#include "popops/OnDevice.hpp"
#include "popops/Scatter.hpp"
#include "popx/Gather.hpp"
#include "popx/Pad.hpp"
#include "popx/Scatter.hpp"

using namespace poplar;
using Floats = std::vector<float>;
using Shape = std::vector<std::size_t>;

TEST(gather_along_an_axis) {
  OnDevice d;
  const Tensor t = d.iota({3, 4});
  const Tensor i = d.input<int>(INT, {2, 2}, {3, 0, -1, 9});
  const Tensor out = popops::gather(d.graph, t, i, 1, d.prog, {});
  CHECK(out.shape() == (Shape{3, 2, 2}));
  CHECK(d.read<float>(out) == (Floats{3, 0, 0, 3, 7, 4, 4, 7, 11, 8, 8, 11}));
}

TEST(gather_with_offset_dims_first) {
  // Rows 1 and 0 of columns 1..2, gathered as columns of the result: out[w, b].
  OnDevice d;
  const Tensor t = d.iota({3, 4});
  const Tensor i = d.input<unsigned>(UNSIGNED_INT, {2, 2}, {1, 0, 1, 9});  // vectors are columns
  popx::GatherDims dims;
  dims.index_vector_dim = 0;
  dims.start_index_map = {0, 1};
  dims.collapsed_slice_dims = {0};
  dims.slice_sizes = {1, 2};
  dims.offset_dims = {0};
  const Tensor out = popx::gather(d.graph, t, i, dims, d.prog);
  CHECK(out.shape() == (Shape{2, 2}));
  // b 0: row 1, column 1; b 1: row 0, column 9 -> 2
  CHECK(d.read<float>(out) == (Floats{5, 2, 6, 3}));
}

TEST(gather_with_batching_dims) {
  OnDevice d;
  const Tensor t = d.iota({2, 3, 4});
  const Tensor i = d.input<std::int8_t>(SIGNED_CHAR, {3, 2, 1}, {0, 1, 2, 3, 1, 100});
  popx::GatherDims dims;
  dims.index_vector_dim = 2;
  dims.start_index_map = {2};
  dims.operand_batching_dims = {0, 1};
  dims.start_indices_batching_dims = {1, 0};
  dims.slice_sizes = {1, 1, 1};
  dims.offset_dims = {2};
  const Tensor out = popx::gather(d.graph, t, i, dims, d.prog);
  CHECK(out.shape() == (Shape{3, 2, 1}));
  const auto values = d.read<float>(out);
  const int index[3][2] = {{0, 1}, {2, 3}, {1, 3}};
  for (int b = 0; b < 3; ++b) {
    for (int a = 0; a < 2; ++a)
      CHECK_EQ(values[static_cast<std::size_t>(b * 2 + a)],
               static_cast<float>(a * 12 + b * 4 + index[b][a]));
  }
}

TEST(gather_of_no_indices) {
  OnDevice d;
  const Tensor t = d.iota({3, 4});
  const Tensor i = d.graph.addVariable(INT, {0}, VariableMappingMethod::LINEAR);
  const Tensor out = popops::gather(d.graph, t, i, 0, d.prog, {});
  CHECK(out.shape() == (Shape{0, 4}));
}

TEST(gather_refuses_wrong_dims) {
  OnDevice d;
  const Tensor t = d.iota({3, 4});
  const Tensor i = d.input<int>(INT, {2, 1}, {0, 1});
  popx::GatherDims dims;
  dims.index_vector_dim = 1;
  dims.start_index_map = {0};
  dims.slice_sizes = {1, 5};
  CHECK_THROWS(popx::gather(d.graph, t, i, dims, d.prog), "slice sizes");
  dims.slice_sizes = {1, 4};
  CHECK_THROWS(popx::gather(d.graph, t, i, dims, d.prog), "offset dimension");
}

namespace {

popx::ScatterDims rows() {
  popx::ScatterDims dims;
  dims.index_vector_dim = 1;
  dims.update_window_dims = {1};
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  return dims;
}

}  // namespace

TEST(scatter_rows_in_order) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor i = d.input<int>(INT, {4}, {2, -1, 2, 3});
  const Tensor u = d.input<float>(FLOAT, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  popops::scatter(d.graph, t, i, u, 1, {1}, {0}, {0}, d.prog);
  CHECK(d.read<float>(t) == (Floats{0, 1, 2, 3, 5, 6}));
}

TEST(scatter_add_rows) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor i = d.input<int>(INT, {4}, {2, -1, 2, 3});
  const Tensor u = d.input<float>(FLOAT, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  popx::scatter(d.graph, {t}, i, {u}, rows(), "add", d.prog);
  CHECK(d.read<float>(t) == (Floats{0, 1, 2, 3, 10, 13}));
}

TEST(scatter_of_transposed_operand_and_updates) {
  OnDevice d;
  const Tensor t = d.iota({2, 3});
  const Tensor i = d.input<int>(INT, {2}, {2, 0});
  const Tensor u = d.input<float>(FLOAT, {2, 2}, {10, 20, 30, 40});
  popx::scatter(d.graph, {t.transpose()}, i, {u.transpose()}, rows(), "add", d.prog);
  CHECK(d.read<float>(t) == (Floats{20, 1, 12, 43, 4, 35}));
}

TEST(scatter_of_several_operands_of_different_types) {
  OnDevice d;
  const Tensor a = d.iota({4});
  const Tensor b = d.input<std::uint8_t>(UNSIGNED_CHAR, {4}, {1, 1, 1, 1});
  const Tensor i = d.input<int>(INT, {2}, {3, 1});
  const Tensor u = d.input<float>(FLOAT, {2}, {50, 60});
  const Tensor v = d.input<std::uint8_t>(UNSIGNED_CHAR, {2}, {7, 8});
  popx::ScatterDims dims;
  dims.index_vector_dim = 1;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  popx::scatter(d.graph, {a, b}, i, {u, v}, dims, "replace", d.prog);
  OnDevice& same = d;
  CHECK(same.read<std::uint8_t>(b) == (std::vector<std::uint8_t>{1, 8, 1, 7}));
}

TEST(scatter_checks_its_operands) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor i = d.input<int>(INT, {2}, {0, 1});
  const Tensor u = d.input<int>(INT, {2, 2}, {1, 2, 3, 4});
  CHECK_THROWS(popx::scatter(d.graph, {t}, i, {u}, rows(), "add", d.prog), "type");
  CHECK_THROWS(popx::scatter(d.graph, {t}, i, {}, rows(), "add", d.prog), "updates");
}

namespace {

Floats padded(std::size_t n, std::int64_t low, std::int64_t high, std::int64_t interior) {
  Floats dilated;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) dilated.insert(dilated.end(), static_cast<std::size_t>(interior), -1.0f);
    dilated.push_back(static_cast<float>(i));
  }
  const auto edge = [](std::int64_t e) { return static_cast<std::size_t>(e > 0 ? e : 0); };
  dilated.insert(dilated.begin(), edge(low), -1.0f);
  dilated.insert(dilated.end(), edge(high), -1.0f);
  dilated.erase(dilated.begin(), dilated.begin() + static_cast<std::ptrdiff_t>(edge(-low)));
  dilated.resize(dilated.size() - edge(-high));
  return dilated;
}

}  // namespace

TEST(pad_all_small_cases) {
  for (std::int64_t low = -3; low <= 3; ++low) {
    for (std::int64_t high = -3; high <= 3; ++high) {
      for (std::int64_t interior = 0; interior <= 2; ++interior) {
        const std::int64_t size = low + high + 3 + 2 * interior;
        if (size < 1) continue;
        OnDevice d;
        const Tensor t = d.iota({3});
        const Tensor value = d.input<float>(FLOAT, {}, {-1});
        const Tensor out = popx::pad(d.graph, t, value, {low}, {high}, {interior}, d.prog);
        CHECK(d.read<float>(out) == padded(3, low, high, interior));
      }
    }
  }
}

TEST(pad_two_dims_and_refusals) {
  OnDevice d;
  const Tensor t = d.iota({2, 2});
  const Tensor value = d.input<float>(FLOAT, {}, {9});
  const Tensor out = popx::pad(d.graph, t, value, {1, -1}, {0, 2}, {0, 0}, d.prog);
  CHECK(d.read<float>(out) == (Floats{9, 9, 9, 1, 9, 9, 3, 9, 9}));
  CHECK_THROWS(popx::pad(d.graph, t, value, {-3, 0}, {0, 0}, {0, 0}, d.prog), "negative");
  CHECK_THROWS(popx::pad(d.graph, t, value, {0}, {0}, {0}, d.prog), "each dimension");
}
