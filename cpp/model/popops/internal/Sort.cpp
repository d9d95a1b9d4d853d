#include "popops/internal/Sort.hpp"

#include <bit>
#include <cmath>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {

namespace engine = ipujax::engine;
using poplar::Tensor;

namespace {

constexpr std::size_t kMaxOperands = 16;

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poputil::poplibs_error("[popops::sort] needs " + needs + "; got " + got + ". " + fix);
}

void check(const std::vector<Tensor>& operands, unsigned dim) {
  if (operands.empty() || operands.size() > kMaxOperands) {
    refuse("1 to 16 operands", std::to_string(operands.size()), "Sort fewer together.");
  }
  for (const Tensor& t : operands) {
    if (t.shape() != operands[0].shape()) {
      refuse("operands of one shape", t.shapeToString() + " and " + operands[0].shapeToString(),
             "Broadcast them.");
    }
  }
  if (dim >= operands[0].rank()) {
    refuse("a dimension below " + std::to_string(operands[0].rank()), std::to_string(dim),
           "Sort along an existing one.");
  }
}

std::vector<Tensor> emitSort(poplar::Graph& graph, const std::vector<Tensor>& operands,
                             unsigned dim, engine::StepSpec spec, double comparator_cycles,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext) {
  std::vector<Tensor> outs;
  std::size_t bytes = 0;
  for (const Tensor& t : operands) {
    outs.push_back(
        graph.clone(t, {debugContext, "sorted"}, poplar::TensorCloneMethod::CREATE_NEW_ORDER));
    bytes += graph.getTarget().getTypeSize(t.elementType());
    spec.operands.push_back({t, engine::Access::kRead, false});
  }
  for (const Tensor& t : outs) spec.operands.push_back({t, engine::Access::kWrite, false});
  spec.kernel = "popx.sort";
  spec.attributes.set("dim", std::int64_t{dim});
  const std::uint64_t n = operands[0].dim(dim);
  const std::uint64_t rows = n == 0 ? 0 : operands[0].numElements() / n;
  spec.cost = bitonicCost(graph, rows, n, n, bytes, comparator_cycles);
  engine::emit(graph, prog, std::move(spec), {debugContext, "sort"});
  return outs;
}

}  // namespace

engine::Cost bitonicCost(const poplar::Graph& graph, std::uint64_t rows, std::uint64_t n,
                         std::uint64_t kept, std::size_t element_bytes, double comparator_cycles) {
  engine::Cost cost;
  cost.code_bytes = 512;  // our estimate of CompareAndSwapAtDistance's code
  if (rows == 0 || n < 2) return cost;
  const poplar::Target& target = graph.getTarget();
  const double elements = static_cast<double>(rows * n);
  const double tiles = std::min<double>(target.getNumTiles(), std::ceil(elements / 2));
  const double per_tile = std::ceil(elements / tiles);
  const int stages = std::bit_width(n - 1);
  const int kept_stages = std::max<int>(1, std::bit_width(kept > 1 ? kept - 1 : std::uint64_t{1}));
  // Top k: runs of k are sorted, then halved: each later merge is one exchange and log2 k steps.
  double steps = 0;
  for (int s = 1; s <= stages; ++s) steps += std::min(s, kept_stages + 1);
  // Compare-and-swap vertices: 19 + 6 (41 + pairs * cycles); popopsCycleEstimators.cpp.
  const double worker_pairs = std::ceil(per_tile / 2 / 6);
  const double compute = 19 + 6 * (41 + worker_pairs * comparator_cycles);
  const double bytes = per_tile * static_cast<double>(element_bytes);
  const double local_steps = std::min(steps, std::floor(std::log2(std::max(per_tile, 1.0))));
  engine::Cost step;
  engine::addComputeSet(step, target, compute, static_cast<std::uint64_t>(tiles));
  engine::Cost moving = step;
  if (tiles > 1) engine::addExchange(moving, target, {bytes * tiles, bytes});
  for (int i = 0; i < static_cast<int>(steps); ++i) cost += i < local_steps ? step : moving;
  cost.temporary_bytes = static_cast<std::uint64_t>(2 * bytes);
  if (tiles > 1) cost.received_bytes = static_cast<std::uint64_t>(bytes);
  cost.vertex_state_bytes = static_cast<std::uint64_t>(steps) * 32;  // our estimate, one a step
  cost.code_bytes = 512;
  cost.flops = elements * steps / 2;
  return cost;
}

std::vector<Tensor> sort(poplar::Graph& graph, const std::vector<Tensor>& operands, unsigned dim,
                         const std::vector<engine::SortKey>& keys, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  check(operands, dim);
  if (keys.empty()) refuse("at least one key", "none", "Name an operand to sort by.");
  for (const engine::SortKey& key : keys) {
    if (key.operand >= operands.size()) {
      refuse("keys among its operands", std::to_string(key.operand), "Count from 0.");
    }
  }
  engine::StepSpec spec;
  spec.attributes.set("keys", engine::toIntegers(keys));
  // popopsCycleEstimators.cpp: 13 cycles for float keys, 12 integer; 17 with values, 26 with more
  // than one key.
  const double cycles = keys.size() > 1 ? 26 : operands.size() > 1 ? 17 : 13;
  return emitSort(graph, operands, dim, std::move(spec), cycles, prog, debugContext);
}

std::vector<Tensor> sort(poplar::Graph& graph, const std::vector<Tensor>& operands, unsigned dim,
                         const popops::expr::Expr& comparator, bool,  // stable: always
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  check(operands, dim);
  std::vector<poplar::Type> types;
  for (const Tensor& t : operands) types.insert(types.end(), 2, t.elementType());
  const auto program = compileExpr({comparator}, types);
  if (program.outputTypes()[0] != engine::ElementType::kBool) {
    refuse("a comparator that gives BOOL", poplar::Type(program.outputTypes()[0]).toString(),
           "Compare the values.");
  }
  if (const auto keys = engine::sortKeysOf(program)) {
    return sort(graph, operands, dim, *keys, prog, debugContext);
  }
  engine::StepSpec spec;
  spec.attributes.set("expr", program.toIntegers());
  const double cycles = 11 + static_cast<double>(program.instructions().size());
  return emitSort(graph, operands, dim, std::move(spec), cycles, prog, debugContext);
}

}  // namespace popops::internal
