#include <poplar/Engine.hpp>
#include <poplar/TensorRearranger.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Rearrange.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VarStructure.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;

TEST(a_rearranger_orders_tensors_by_memory_and_back) {
  Fixture f;
  const Tensor a = f.graph.addVariable(FLOAT, {3, 4}, VariableMappingMethod::LINEAR);
  const Tensor b = f.graph.addVariable(FLOAT, {2, 2}, VariableMappingMethod::LINEAR);
  const Tensor mixed =
      concat({a.transpose().slice(1, 4).flatten(), b.flatten(), a.slice(0, 1, 1).flatten()});
  const TensorRearranger r = f.graph.getSimplifyingRearranger(mixed);
  CHECK(r.valid() && !TensorRearranger().valid());
  const Tensor ordered = r.rearrange(mixed);
  CHECK_EQ(ordered.getContiguousRegions().size(), 2U);  // of a, and of b
  CHECK(ordered.slice(0, 12).isContiguous());
  CHECK(r.undoRearrangement(ordered).getVarRegions() == mixed.getVarRegions());
  // Intervals: the elements of mixed[2, 7) are the same ones in the new order.
  std::vector<std::size_t> place(16);  // in mixed, of each element of the new order
  const Tensor numbers = f.graph.addVariable(INT, {16}, VariableMappingMethod::LINEAR);
  const auto regions = r.rearrange(numbers).getVarRegions();
  std::size_t at = 0;
  for (const auto& region : regions)
    for (std::size_t i = region.interval.begin(); i < region.interval.end(); ++i) place[at++] = i;
  std::vector<std::size_t> seen;
  for (const Interval& i : r.rearrange(std::vector<Interval>{{2, 7}}))
    for (std::size_t k = i.begin(); k < i.end(); ++k) seen.push_back(place[k]);
  CHECK(seen == (std::vector<std::size_t>{2, 3, 4, 5, 6}));
  const auto back = r.undoRearrangement(r.rearrange(std::vector<Interval>{{2, 7}}));
  CHECK(back == (std::vector<Interval>{{2, 7}}));
  CHECK_THROWS(r.rearrange(b), "16 elements");
  CHECK_THROWS(r.rearrange(a.reinterpret(INT)), "16 elements");
}

TEST(clones_variables_and_rows_by_index) {
  Fixture f;
  const Tensor t = f.constant<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor clones =
      f.graph.cloneN(INT, t, 4, "clones", TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                     TensorCloneDuplicationMethod::DUPLICATE_BY_TILE_CONTIGUOUS_REGION);
  CHECK(clones.elementType() == INT);
  CHECK_EQ(clones.shapeToString(), "{4,2,3}");
  CHECK(clones.isParallelWriteable());
  CHECK(f.graph.getTileMapping(clones[3]) == f.graph.getTileMapping(t));
  CHECK_THROWS(f.graph.cloneN(t, 0), "1 or more");
  const auto var = t[1].getVarRegions().front().var;
  CHECK(f.graph.getVariable(var) == t.flatten());
  CHECK_EQ(std::hash<VariableRef>()(var), var.hash());
  CHECK_EQ(Type(FLOAT).hash(), std::hash<Type>()(FLOAT));
  CHECK(Type(FLOAT).hash() != Type(INT).hash());
  const std::vector<unsigned> rows = {1, 0, 1};
  const auto parts = t.slices(ArrayRef<unsigned>(rows));
  CHECK(parts.size() == 3 && parts[0] == t.slice(1, 2) && parts[1] == t.slice(0, 1));
  const auto values = f.run(concat(parts));
  CHECK(values == (std::vector<float>{4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(groups_end_at_tiles) {
  Fixture f(4);
  const Tensor in = f.graph.addVariable(FLOAT, {32, 16});
  poputil::mapTensorLinearly(f.graph, in, 8, 8);  // eight rows on each tile
  using Groups = std::vector<poputil::GroupingInfo>;
  CHECK(poputil::detectDimGroupings(f.graph, in) == (Groups{{1, 16}, {0, 8}}));
  const Tensor columns = popops::rearrange::regroupIfPossible(f.graph, in, f.prog, {0, 16});
  CHECK(poputil::detectDimGroupings(f.graph, columns) == (Groups{{0, 16}, {1, 8}}));
  CHECK(popops::rearrange::regroupIfPossible(f.graph, in, f.prog, {0, 7}) == in);
  CHECK(popops::rearrange::regroupIfPossible(f.graph, in, f.prog, {1, 16}) == in);
}

TEST(tensors_of_another_graph_are_refused) {
  Fixture f;
  Fixture other;
  const Tensor x = f.variable("x", {4});
  const Tensor y = other.variable("y", {4});
  CHECK_THROWS(popops::add(f.graph, x, y, f.prog), "one of another");
  CHECK_THROWS(popops::addInPlace(f.graph, y, x, f.prog), "one of another");
  CHECK_THROWS(popops::add(f.graph, x, Tensor(), f.prog), "empty Tensor");
  CHECK_THROWS(popops::cast(f.graph, y, HALF, f.prog), "one of another");
  CHECK_THROWS(popops::reduce(f.graph, y, {0}, popops::Operation::ADD, f.prog), "one of another");
}
