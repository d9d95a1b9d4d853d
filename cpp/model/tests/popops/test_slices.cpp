#include "Check.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/OnDevice.hpp"
#include "popops/OneHot.hpp"
#include "popops/SelectScalarFromRows.hpp"

using namespace poplar;
using Floats = std::vector<float>;

TEST(dynamic_slices_go_on_at_the_start) {
  for (const std::size_t rows : {1, 3, 5}) {
    for (const int start : {-6, -1, 0, 1, 3, 4, 5, 104}) {
      OnDevice d;
      const Tensor t = d.iota({5, 4});
      const Tensor offset = d.input<int>(INT, {1}, {start});
      const Tensor s = popops::dynamicSlice(d.graph, t, offset, {0}, {rows}, d.prog);
      CHECK(s.shape() == (std::vector<std::size_t>{rows, 4}));
      const auto values = d.read<float>(s);
      for (std::size_t i = 0; i < 4 * rows; ++i)
        CHECK_EQ(values[i], static_cast<float>((4 * (start + 10) + static_cast<int>(i)) % 20));
    }
  }
}

TEST(dynamic_slices_and_updates_wrap_in_several_dims) {
  const int n[] = {3, 4, 2}, size[] = {2, 3, 2};
  for (int x = 0; x < n[0]; ++x) {
    for (int z = 0; z < n[2]; ++z) {
      OnDevice d;
      const Tensor t = d.iota({3, 4, 2});
      const auto starts = {static_cast<unsigned>(z), static_cast<unsigned>(x), 3u};
      const Tensor offset = d.input<unsigned>(UNSIGNED_INT, {3}, starts);
      const Tensor slice = popops::dynamicSlice(d.graph, t, offset, {2, 0, 1}, {2, 2, 3}, d.prog);
      const Tensor negative = popops::neg(d.graph, slice, d.prog);
      popops::dynamicUpdate(d.graph, t, negative, offset, {2, 0, 1}, {2, 2, 3}, d.prog);
      const auto values = d.read<float>(concat(slice.flatten(), t.flatten()));
      Floats expected(12), whole(24);
      for (std::size_t i = 0; i < 24; ++i) whole[i] = static_cast<float>(i);
      for (int i = 0, at = 0; i < size[0]; ++i)
        for (int j = 0; j < size[1]; ++j)
          for (int k = 0; k < size[2]; ++k, ++at) {
            const int from = ((x + i) % n[0] * n[1] + (3 + j) % n[1]) * n[2] + (z + k) % n[2];
            expected[static_cast<std::size_t>(at)] = static_cast<float>(from);
            whole[static_cast<std::size_t>(from)] = -static_cast<float>(from);
          }
      expected.insert(expected.end(), whole.begin(), whole.end());
      CHECK(values == expected);
    }
  }
}

TEST(options_of_slices_that_go_on_at_the_start) {
  const poplar::OptionFlags remap{{"remapOutOfBoundIndices", "true"}};
  for (const auto& [start, first] : {std::pair{4u, 8.0f}, {5u, 0.0f}, {7u, 0.0f}}) {
    OnDevice d;
    const Tensor t = d.iota({5, 2});
    const Tensor offset = d.input<unsigned>(UNSIGNED_INT, {1}, {start});
    const Tensor s = popops::dynamicSlice(d.graph, t, offset, {0}, {2}, d.prog, {}, remap);
    CHECK_EQ(d.read<float>(s)[0], first);
  }
}

TEST(a_loop_that_goes_round_its_rows) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor at = d.input<unsigned>(UNSIGNED_INT, {1}, {1});
  const Tensor sums = d.input<float>(FLOAT, {1, 2}, {0, 0});
  program::Sequence body;
  popops::addInPlace(d.graph, sums, popops::dynamicSlice(d.graph, t, at, {0}, {1}, body), body);
  popops::dynamicUpdate(d.graph, t, sums, at, {0}, {1}, body);
  popops::addInPlace(d.graph, at, 1u, body);
  d.prog.add(program::Repeat(4, body));
  // Rows 1, 2, 0, 1: the last one adds to what the first left there.
  CHECK(d.read<float>(t) == (Floats{6, 9, 8, 12, 6, 8}));
}

TEST(dynamic_slice_of_two_dims_in_any_order) {
  OnDevice d;
  const Tensor t = d.iota({3, 4, 5});
  const Tensor offset = d.input<unsigned>(UNSIGNED_INT, {2}, {2, 1});
  const Tensor s =
      popops::dynamicSlice(d.graph, t.dimShuffle({2, 1, 0}), offset, {0, 2}, {3, 1}, d.prog);
  const auto values = d.read<float>(s);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j)
      CHECK_EQ(values[static_cast<std::size_t>(i * 4 + j)],
               static_cast<float>(1 * 20 + j * 5 + 2 + i));
  }
}

TEST(dynamic_slice_of_nothing) {
  OnDevice d;
  const Tensor t = d.iota({5, 4});
  const Tensor offset = d.input<int>(INT, {1}, {1});
  const Tensor s = popops::dynamicSlice(d.graph, t, offset, {0}, {0}, d.prog);
  CHECK_EQ(s.numElements(), 0u);
  CHECK_EQ(d.read<float>(t)[3], 3.0f);
}

TEST(dynamic_update_in_place) {
  OnDevice d;
  const Tensor t = d.iota({5, 2});
  const Tensor s = d.input<float>(FLOAT, {2, 2}, {-1, -2, -3, -4});
  const Tensor offset = d.input<unsigned>(UNSIGNED_INT, {1}, {4});
  popops::dynamicUpdate(d.graph, t, s, offset, {0}, {2}, d.prog);
  CHECK(d.read<float>(t) == (Floats{-3, -4, 2, 3, 4, 5, 6, 7, -1, -2}));
}

TEST(dynamic_slices_check_their_shapes) {
  OnDevice d;
  const Tensor t = d.iota({5, 2});
  const Tensor offset = d.input<int>(INT, {1}, {0});
  CHECK_THROWS(popops::dynamicSlice(d.graph, t, offset, {2}, {1}, d.prog), "within t");
  CHECK_THROWS(popops::dynamicSlice(d.graph, t, offset, {0}, {6}, d.prog), "within t");
  CHECK_THROWS(popops::dynamicSlice(d.graph, t, offset, {0, 1}, {1, 1}, d.prog), "one offset");
  CHECK_THROWS(popops::dynamicUpdate(d.graph, t, t, offset, {0}, {1}, d.prog), "slice's shape");
}

TEST(multi_slice_with_duplicates) {
  OnDevice d;
  const Tensor t = d.iota({4, 3});
  const Tensor offsets = d.input<unsigned>(UNSIGNED_INT, {4, 1}, {2, 0, 2, 9});
  const Tensor s = popops::multiSlice(d.graph, t, offsets, {0}, {1}, d.prog, {}, {});
  CHECK(s.shape() == (std::vector<std::size_t>{4, 1, 3}));
  CHECK(d.read<float>(s) == (Floats{6, 7, 8, 0, 1, 2, 6, 7, 8, 9, 10, 11}));
}

TEST(multi_update_skips_what_is_outside) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor s = d.input<float>(FLOAT, {3, 1, 2}, {10, 11, 20, 21, 30, 31});
  const Tensor offsets = d.input<unsigned>(UNSIGNED_INT, {3, 1}, {2, 3, 2});
  popops::multiUpdate(d.graph, t, s, offsets, {0}, {1}, d.prog, {}, {});
  CHECK(d.read<float>(t) == (Floats{0, 1, 2, 3, 30, 31}));
}

TEST(multi_update_add_scales) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor s = d.input<float>(FLOAT, {3, 1, 2}, {10, 11, 20, 21, 30, 31});
  const Tensor offsets = d.input<unsigned>(UNSIGNED_INT, {3, 1}, {2, 3, 2});
  const Tensor scale = d.input<float>(FLOAT, {}, {0.5f});
  popops::multiUpdateAdd(d.graph, t, s, offsets, scale, {0}, {1}, d.prog, {}, {});
  CHECK(d.read<float>(t) == (Floats{0, 1, 2, 3, 24, 26}));
}

TEST(multi_update_max) {
  OnDevice d;
  const Tensor t = d.iota({3, 2});
  const Tensor s = d.input<float>(FLOAT, {2, 1, 2}, {-1, 9, 3, 1});
  const Tensor offsets = d.input<unsigned>(UNSIGNED_INT, {2, 1}, {1, 1});
  popops::multiUpdateMax(d.graph, t, s, offsets, {0}, {1}, d.prog, {}, {});
  CHECK(d.read<float>(t) == (Floats{0, 1, 3, 9, 4, 5}));
}

TEST(sliceable_tensor_has_its_shape_and_is_spread) {
  OnDevice d;
  const Tensor t = popops::createSliceableTensor(d.graph, FLOAT, {16, 1000}, {0}, {1});
  CHECK(t.shape() == (std::vector<std::size_t>{16, 1000}));
  const auto mapping = d.graph.getTileMapping(t[0]);
  std::size_t used = 0;
  for (const auto& tile : mapping) used += tile.empty() ? 0 : 1;
  CHECK(used >= 250);
}

TEST(select_scalar_from_rows) {
  OnDevice d;
  const Tensor t = d.iota({4, 3});
  const Tensor i = d.input<unsigned>(UNSIGNED_INT, {4}, {2, 0, ~0u, 3});
  const auto values = d.read<float>(popops::selectScalarFromRows(d.graph, t, i, d.prog));
  CHECK_EQ(values[0], 2.0f);
  CHECK_EQ(values[1], 3.0f);
  CHECK_EQ(values[2], 0.0f);
  CHECK(std::isnan(values[3]));
}

TEST(one_hot) {
  OnDevice d;
  const Tensor i = d.input<unsigned>(UNSIGNED_INT, {4}, {2, 0, ~0u, 3});
  const Tensor encoded = d.graph.addVariable(FLOAT, {4, 3}, VariableMappingMethod::LINEAR);
  popops::encodeOneHot(d.graph, i, encoded, d.prog);
  CHECK(d.read<float>(encoded) == (Floats{0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
}
