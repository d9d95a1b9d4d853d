#include "popops/Loop.hpp"

#include "popops/Fill.hpp"
#include "poputil/Loop.hpp"

namespace popops {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

Sequence countedLoop(Graph& graph, std::size_t begin, std::size_t end, std::size_t step,
                     const CountedLoopBodyType& body, const poplar::DebugContext& debugContext) {
  if (step == 0 || begin >= end) {
    throw poputil::poplibs_error(
        "[popops::countedLoop] needs begin < end and a step above 0; got " + std::to_string(begin) +
        ", " + std::to_string(end) + ", " + std::to_string(step) +
        ". Leave a loop without rounds out.");
  }
  const Tensor counter = graph.addVariable(poplar::UNSIGNED_INT, {1}, {debugContext, "counter"});
  graph.setTileMapping(counter, 0);
  Sequence prog(debugContext);
  fill(graph, counter, prog, static_cast<unsigned>(begin), {debugContext, "begin"});
  Sequence round({body(counter)}, debugContext);
  addInPlace(graph, counter, static_cast<unsigned>(step), round, {debugContext, "next"});
  const std::size_t rounds = (end - begin + step - 1) / step;
  prog.add(poplar::program::Repeat(static_cast<unsigned>(rounds), round, debugContext));
  return prog;
}

Sequence countedLoop(Graph& graph, std::size_t count, const CountedLoopBodyType& body,
                     const poplar::DebugContext& debugContext) {
  return countedLoop(graph, 0, count, 1, body, debugContext);
}

Sequence countedForLoop(Graph& graph, const Tensor& count, int initialCount,
                        const Tensor& countLimit, int countStep,
                        const poplar::program::Program& body,
                        const poplar::DebugContext& debugContext) {
  const poplar::Type type = count.elementType();
  if (type != countLimit.elementType() || (type != poplar::INT && type != poplar::UNSIGNED_INT)) {
    throw poputil::poplibs_error(
        "[popops::countedForLoop] needs a count and a limit of one type, INT or UNSIGNED_INT; "
        "got " +
        type.toString() + " and " + countLimit.elementType().toString() + ". Cast one of them.");
  }
  Sequence prog(debugContext);
  fill(graph, count, prog, initialCount, {debugContext, "begin"});
  Sequence goesOn(debugContext);
  const Tensor predicate =
      neq(graph, count.reshape({}), countLimit.reshape({}), goesOn, {debugContext, "goesOn"});
  Sequence round({body}, debugContext);
  addInPlace(graph, count, countStep, round, {debugContext, "next"});
  prog.add(poplar::program::RepeatWhileTrue(goesOn, predicate, round, debugContext));
  return prog;
}

Sequence countedForLoop(Graph& graph, int initialCount, const Tensor& countLimit, int countStep,
                        const poplar::program::Program& body,
                        const poplar::DebugContext& debugContext) {
  const Tensor count = graph.addVariable(countLimit.elementType(), {}, {debugContext, "counter"});
  graph.setTileMapping(count, 0);
  return countedForLoop(graph, count, initialCount, countLimit, countStep, body, debugContext);
}

}  // namespace popops

namespace poputil {

poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t begin, std::size_t end,
                                      std::size_t step, const poplar::DebugContext& debugContext,
                                      const CountedLoopBodyType& body) {
  return popops::countedLoop(graph, begin, end, step, body, debugContext);
}

poplar::program::Sequence countedLoop(poplar::Graph& graph, std::size_t count,
                                      const poplar::DebugContext& debugContext,
                                      const CountedLoopBodyType& body) {
  return popops::countedLoop(graph, count, body, debugContext);
}

}  // namespace poputil
