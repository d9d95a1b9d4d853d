#include "Check.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "popx/Layout.hpp"

using namespace poplar;

TEST(a_clone_has_the_layout_of_its_original_and_a_transposed_view_has_another) {
  Graph graph{IPUModel().createDevice().getTarget()};
  const Tensor t = graph.addVariable(INT, {6, 8}, VariableMappingMethod::LINEAR, "t");
  const Tensor joined = concat(t, t, 0);
  const Tensor whole = graph.clone(joined, {}, TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
  CHECK(popx::sameLayout(whole, joined));
  CHECK(!popx::sameLayout(t.dimShuffle({1, 0}), graph.addVariable(INT, {8, 6})));
}
