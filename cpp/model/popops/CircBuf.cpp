#include "popops/CircBuf.hpp"

#include <string>

#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

CircBuf::CircBuf(poplar::Graph& graph, const poplar::Type& dataType, unsigned size,
                 const std::vector<std::size_t>& shape, const poplar::DebugContext& debugContext)
    : graph_(graph), size_(size) {
  if (size == 0)
    throw poputil::poplibs_error("[popops::CircBuf] needs a size of at least 1; got 0.");
  const poplar::DebugContext context{debugContext, "CircBuf"};
  index_ = graph.addVariable(poplar::UNSIGNED_INT, {1}, {context, "index"});
  graph.setTileMapping(index_, 0);
  graph.setInitialValue(index_, 0u);
  std::vector<std::size_t> all{size};
  all.insert(all.end(), shape.begin(), shape.end());
  history_ = createSliceableTensor(graph, dataType, all, {0}, {1}, 0, {context, "history"});
}

poplar::Tensor CircBuf::prev(unsigned i, poplar::program::Sequence& seq,
                             const poplar::DebugContext& debugContext) {
  if (i >= size_) {
    throw poputil::poplibs_error("[popops::CircBuf::prev] needs fewer additions back than " +
                                 std::to_string(size_) + "; got " + std::to_string(i) + ".");
  }
  const poplar::DebugContext context{debugContext, "CircBuf/prev"};
  const auto at =
      map(graph_, expr::Rem(expr::Add(expr::_1, expr::Const(size_ - 1 - i)), expr::Const(size_)),
          {index_}, seq, context);
  return dynamicSlice(graph_, history_, at, {0}, {1}, seq, context).squeeze({0});
}

void CircBuf::add(const poplar::Tensor& t, poplar::program::Sequence& seq,
                  const poplar::DebugContext& debugContext) {
  const poplar::DebugContext context{debugContext, "CircBuf/add"};
  dynamicUpdate(graph_, history_, t.expand({0}), index_, {0}, {1}, seq, context);
  mapInPlace(graph_, expr::Rem(expr::Add(expr::_1, expr::Const(1u)), expr::Const(size_)), {index_},
             seq, context);
}

}  // namespace popops
