#include <popops/Cast.hpp>
#include <popops/Pad.hpp>
#include <vector>

#include "Check.hpp"
#include "Fixture.hpp"

/// popops::pad by its public name.
using namespace poplar;

TEST(padding_adds_removes_repeats_and_mirrors) {
  Fixture f;
  const Tensor x = f.constant<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor constant = popops::pad(f.graph, x, {0, -1}, {1, 2}, 9.0f);
  const Tensor edge = popops::pad(x, 2, 1, 1, popops::padding::Type::EDGE);
  const Tensor mirrored = popops::pad(x, 2, 1, 1, popops::padding::Type::REFLECT);
  const Tensor value = f.constant<float>({1}, {7});
  const Tensor given = popops::pad(f.graph, x[0], 1, 0, 0, value);
  CHECK(constant.shape() == (std::vector<std::size_t>{3, 4}));
  const auto found = f.run(concat({constant.flatten(), edge[0], mirrored[1], given}));
  CHECK(found == (std::vector<float>{2, 3, 9, 9, 5, 6, 9, 9, 9, 9, 9, 9, 1, 1,
                                     1, 2, 3, 3, 6, 5, 4, 5, 6, 5, 7, 1, 2, 3}));
  CHECK_THROWS(popops::pad(f.graph, x, {1}, {1}), "each of the 2");
  CHECK_THROWS(popops::pad(f.graph, x, -2, -2, 1), "at most 3");
  CHECK_THROWS(popops::pad(x, 3, 0, 1, popops::padding::Type::REFLECT), "at least 4");
}

TEST(padding_without_a_mapping_lies_on_no_tile_until_it_is_mapped) {
  Fixture f;
  const Tensor x = f.constant<float>({3}, {1, 2, 3});
  const auto none = popops::padding::MappingMethod::NONE;
  const Tensor all = popops::pad(f.graph, x, {2}, {1}, 9.0f, none);
  const Tensor one = popops::pad(f.graph, x, 0, 1, 0, 8.0f, none);
  bool mapped = true;
  for (const Tensor& padding : {all.slice(0, 2), all.slice(5, 6), one.slice(3, 4)}) {
    for (const auto& tile : f.graph.getTileMapping(padding, &mapped)) CHECK(tile.empty());
    CHECK(!mapped);
  }
  CHECK_THROWS(f.graph.getTileMapping(all), "got an element on none");
  f.graph.setTileMapping(all, 2);
  f.graph.setTileMapping(one, 3);
  CHECK(f.run(concat(all, one)) == (std::vector<float>{9, 9, 1, 2, 3, 9, 1, 2, 3, 8}));
}

TEST(constant_padding_lies_where_its_edge_lies_when_asked) {
  using Method = popops::padding::MappingMethod;
  for (const bool is_int : {false, true}) {
    Fixture f(4);
    const Tensor t =
        is_int ? f.constant<int>({2, 2}, {1, 2, 3, 4}) : f.constant<float>({2, 2}, {1, 2, 3, 4});
    for (unsigned i = 0; i < 4; ++i) f.graph.setTileMapping(t.flatten()[i], i);
    const Tensor padded = is_int ? popops::pad(f.graph, t, {1, 0}, {0, 2}, 7, Method::EDGE)
                                 : popops::pad(f.graph, t, {1, 0}, {0, 2}, 7.0f, Method::EDGE);
    for (unsigned row = 0; row < 3; ++row)
      for (unsigned column = 0; column < 4; ++column) {
        const unsigned tile = 2 * (row < 2 ? 0 : 1) + std::min(column, 1U);
        CHECK_EQ(f.graph.getTileMapping(padded[row][column])[tile].size(), 1U);
      }
    CHECK(f.run(popops::cast(f.graph, padded, FLOAT, f.prog)) ==
          (std::vector<float>{7, 7, 7, 7, 1, 2, 7, 7, 3, 4, 7, 7}));
  }
}
