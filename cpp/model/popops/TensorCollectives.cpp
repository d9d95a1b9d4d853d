#include "popops/TensorCollectives.hpp"

#include <algorithm>
#include <sstream>

#include "popops/Reduce.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;

Operation operationOf(CollectiveOperator op) {
  switch (op) {
    case CollectiveOperator::ADD:
      return Operation::ADD;
    case CollectiveOperator::MUL:
      return Operation::MUL;
    case CollectiveOperator::MIN:
      return Operation::MIN;
    case CollectiveOperator::MAX:
      return Operation::MAX;
    case CollectiveOperator::LOGICAL_AND:
      return Operation::LOGICAL_AND;
    case CollectiveOperator::LOGICAL_OR:
      return Operation::LOGICAL_OR;
    case CollectiveOperator::SQUARE_ADD:
      return Operation::SQUARE_ADD;
    default:
      break;
  }
  std::ostringstream text;
  text << "[popops] needs an operator that reduces; got " << op << ". Use ADD, MIN or MAX.";
  throw poputil::poplibs_error(text.str());
}

void checkRows(const Graph& graph, const Tensor& t, const char* where) {
  const unsigned ipus = graph.getTarget().getNumIPUs();
  if (t.rank() >= 1 && t.dim(0) >= 1 && t.dim(0) <= ipus) return;
  throw poputil::poplibs_error(std::string("[popops::") + where +
                               "] needs a row for each IPU, at most " + std::to_string(ipus) +
                               "; got " + t.shapeToString() + ". Use one row for each IPU.");
}

/// A variable spread over the tiles of one IPU.
Tensor onIpu(Graph& graph, unsigned ipu, const poplar::Type& type, std::size_t elements,
             const poplar::DebugContext& debugContext) {
  const unsigned per_ipu = graph.getTarget().getTilesPerIPU();
  Graph part = graph.createVirtualGraph(ipu * per_ipu, (ipu + 1) * per_ipu);
  const Tensor t = part.addVariable(type, {elements}, debugContext);
  poputil::mapTensorLinearly(part, t);
  return t;
}

}  // namespace

CollectiveOperator operationToCollectiveOperator(const Operation& col) {
  for (const auto op : {CollectiveOperator::ADD, CollectiveOperator::MUL, CollectiveOperator::MIN,
                        CollectiveOperator::MAX, CollectiveOperator::LOGICAL_AND,
                        CollectiveOperator::LOGICAL_OR, CollectiveOperator::SQUARE_ADD})
    if (operationOf(op) == col) return op;
  std::ostringstream text;
  text << "[popops] needs an operation of collectives; got " << col << ". Use ADD, MIN or MAX.";
  throw poputil::poplibs_error(text.str());
}

Chunks reduceScatter(Graph& graph, const Tensor& toReduce, CollectiveOperator op, Sequence& prog,
                     const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  checkRows(graph, toReduce, "reduceScatter");
  const auto count = static_cast<unsigned>(toReduce.dim(0));
  const Tensor rows = toReduce.reshape({count, toReduce.numElements() / count});
  Chunks result(count);
  result.originalInput = toReduce;
  const std::size_t part = (rows.dim(1) + count - 1) / count;
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t begin = std::min(rows.dim(1), i * part);
    const Tensor in = rows.slice(begin, std::min(rows.dim(1), begin + part), 1);
    const Tensor out = onIpu(graph, i, rows.elementType(), in.dim(1), {debugContext, "part"});
    if (op == CollectiveOperator::LOCAL)
      prog.add(Copy(in[i], out, false, debugContext));
    else
      reduceWithOutput(graph, in, out, {0}, operationOf(op), prog, debugContext);
    result.chunks[i] = {out, i, 0};
  }
  return result;
}

Tensor allGather(Graph& graph, const Chunks& toGather, Sequence& prog,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  auto chunks = toGather.chunks;
  std::sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) {
    return a.index != b.index ? a.index < b.index : a.offset < b.offset;
  });
  std::vector<Tensor> parts;
  for (const Chunk& chunk : chunks) parts.push_back(chunk.tensor.flatten());
  if (parts.empty())
    throw poputil::poplibs_error("[popops::allGather] needs chunks; got none. Pass some.");
  const Tensor all = poplar::concat(parts);
  std::vector<Tensor> rows;
  for (unsigned i = 0; i < graph.getTarget().getNumIPUs(); ++i) {
    rows.push_back(onIpu(graph, i, all.elementType(), all.numElements(), debugContext).expand({0}));
    prog.add(Copy(all, rows.back().flatten(), false, debugContext));
  }
  return poplar::concat(rows);
}

Tensor allReduce(Graph& graph, const Tensor& toReduce, CollectiveOperator op, Sequence& prog,
                 const poplar::DebugContext& debugContext, const poplar::OptionFlags&) {
  checkRows(graph, toReduce, "allReduce");
  const Tensor result = graph.clone(toReduce, debugContext);
  if (op == CollectiveOperator::LOCAL) {
    prog.add(Copy(toReduce, result, false, debugContext));
    return result;
  }
  const Tensor reduced =
      reduce(graph, toReduce, {0}, operationOf(op), prog, {debugContext, "reduce"});
  prog.add(Copy(reduced.expand({0}).broadcast(static_cast<unsigned>(toReduce.dim(0)), 0), result,
                false, debugContext));
  return result;
}

}  // namespace popops
