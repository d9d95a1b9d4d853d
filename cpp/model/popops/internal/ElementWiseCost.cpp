#include "popops/internal/ElementWiseCost.hpp"

#include <algorithm>
#include <cmath>

#include "engine/graph/Planning.hpp"
#include "engine/graph/View.hpp"
#include "engine/ops/SoftwareArithmetic.hpp"
#include "poputil/exceptions.hpp"

namespace popops::elementwise {

namespace engine = ipujax::engine;
namespace expr = ipujax::engine::expr;
using engine::ceilDiv;

namespace {
using expr::Instruction;
using expr::Op;
using expr::Rate;
using expr::vectorOf;

Rate rateOf(Op op, ElementType operand, ElementType result) {
  if (isSoftware(operand)) return {softwareCycles(op, operand), 1};
  if (op != Op::kCast) return expr::rateOf(op, operand);
  return isSoftware(result) ? Rate{softwareCycles(op, result), 1} : expr::castRate(operand, result);
}

double roundUpTo6(double x) { return std::ceil(x / 6) * 6; }

/// Cycles of one library vertex: a single operation on inputs, or on an input and one scalar.
double singleVertex(const Instruction& i, ElementType operand, bool scalar, std::uint64_t n,
                    unsigned workers) {
  if (i.op == Op::kCast) return castCycles(operand, i.type, n, workers);
  const Rate rate = rateOf(i.op, operand, i.type);
  if (i.op == Op::kSelect || i.op == Op::kClamp)  // a plain vertex: one for each worker
    return kLaunchCycles + workers * (11 + rate.of(ceilDiv(n, workers)));
  if (expr::numOperands(i.op) == 1) return expr::unaryCycles(i.op, rate, n, workers);
  return scalar ? expr::scalarCycles(i.op, operand, rate, n, workers)
                : expr::binaryCycles(operand, rate, n, workers);
}
}  // namespace

double loopCycles(Op op, ElementType operand, ElementType result, std::uint64_t n) {
  return rateOf(op, operand, result).of(n);
}

double castCycles(ElementType from, ElementType to, std::uint64_t n, unsigned workers) {
  return expr::castCycles(rateOf(Op::kCast, from, to), n, workers);
}

double fillCycles(ElementType type, std::uint64_t n, unsigned workers) {
  return kLaunchCycles + workers * expr::fillCycles(type, ceilDiv(n, workers));
}

double scaledAddCycles(ElementType type, std::uint64_t n, unsigned workers) {
  return expr::scaledAddCycles(type, n, workers);
}

double vertexCycles(const ExprProgram& program, const std::vector<bool>& scalar, std::uint64_t n,
                    unsigned workers) {
  const auto is_scalar = [&](std::int32_t v) {
    const auto i = static_cast<std::size_t>(v);
    if (i < program.numInputs()) return i < scalar.size() && scalar[i];
    return program.instructions()[i - program.numInputs()].op == Op::kConstant;
  };
  std::vector<const Instruction*> work;
  for (const auto& i : program.instructions())
    if (i.op != Op::kConstant && i.op != Op::kBitcast) work.push_back(&i);
  if (work.empty()) {  // a copy
    const double bytes = static_cast<double>(n * sizeOf(program.outputTypes().front()));
    return kLaunchCycles + bytes / 8;
  }
  const auto operandOf = [&](const Instruction& i) { return program.typeOf(i.args[0]); };
  if (work.size() == 1) {
    const Instruction& i = *work.front();
    bool any = false;
    for (int a = 0; a < expr::numOperands(i.op); ++a)
      any = any || is_scalar(i.args[static_cast<std::size_t>(a)]);
    return singleVertex(i, operandOf(i), any, n, workers);
  }
  // A generated codelet keeps values in registers: each input and output moves once, one vector a
  // cycle, and an operation costs its loop less the load and store in it.
  const auto share = ceilDiv(n, workers);
  double worker = 0;
  for (std::size_t i = 0; i < program.numInputs(); ++i)
    if (!is_scalar(static_cast<std::int32_t>(i)))
      worker += static_cast<double>(ceilDiv(share, vectorOf(program.inputTypes()[i])));
  for (auto type : program.outputTypes())
    worker += static_cast<double>(ceilDiv(share, vectorOf(type)));
  for (const auto* i : work) {
    const Rate rate = rateOf(i->op, operandOf(*i), i->type);
    worker += Rate{std::max(1.0, rate.cycles - 2), rate.unit}.of(share);
  }
  return kLaunchCycles + roundUpTo6(20 + workers * worker);
}

namespace {
/// Whether `t` is one element broadcast everywhere.
bool isOneElement(const poplar::Tensor& t) {
  const engine::View& view = *t.view();
  if (t.numElements() < 2 || !view.isStrided()) return false;
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] != 1 && view.strides[d] != 0) return false;
  return true;
}
}  // namespace

engine::Cost costOf(const poplar::Graph& graph, const ExprProgram& program,
                    const std::vector<poplar::Tensor>& inputs,
                    const std::vector<poplar::Tensor>& outputs,
                    const std::function<double(std::uint64_t)>& cycles) {
  engine::Cost cost;
  const poplar::Tensor& out = outputs.front();
  const std::uint64_t elements = out.numElements();
  if (elements == 0) return cost;
  const auto& target = graph.getTarget();
  engine::ExchangeCount moved(graph);
  std::vector<bool> scalar;
  for (const auto& in : inputs) {
    scalar.push_back(isOneElement(in));
    moved.add(in, out);
  }
  const engine::Exchange exchange = moved.result();
  addExchange(cost, target, exchange);
  const engine::Placement place = engine::placementOf(graph, out);
  const unsigned workers = target.getNumWorkerContexts();
  const auto on_tile = [&](std::uint64_t n) {
    if (cycles) return cycles(n);
    if (inputs.empty()) return fillCycles(program.outputTypes().front(), n, workers);
    return vertexCycles(program, scalar, n, workers);
  };
  addComputeSet(cost, target, on_tile(place.max_elements_per_tile), place.tiles_used,
                on_tile(ceilDiv(elements, place.tiles_used)));
  std::size_t ops = 0;
  for (const auto& i : program.instructions()) ops += i.op != Op::kConstant;
  cost.flops = static_cast<double>(elements) * static_cast<double>(ops);
  cost.temporary_bytes = static_cast<std::uint64_t>(exchange.worst_tile_bytes);
  cost.received_bytes = cost.temporary_bytes;
  // Our estimate: a 4-byte edge for each operand, the vertex's entry and a 4-byte count; code of
  // about eight bundles for each operation beside entry, work division and loop control.
  cost.vertex_state_bytes = 4 * (inputs.size() + outputs.size()) + 8;
  cost.code_bytes = 160 + 64 * ops;
  return cost;
}

}  // namespace popops::elementwise

namespace popops {

double elementwiseCycles(const std::string& op, const poplar::Type& type, std::uint64_t n,
                         unsigned workers) {
  namespace expr = ipujax::engine::expr;
  using ipujax::engine::ElementType;
  const ElementType t = type.element();
  if (op == "scaled_add") return elementwise::scaledAddCycles(t, n, workers);
  if (op == "fill") return elementwise::fillCycles(t, n, workers);
  for (int k = 0; k < expr::kOpCount; ++k) {
    const auto known = static_cast<expr::Op>(k);
    if (op != nameOf(known) || expr::numOperands(known) == 0 || known == expr::Op::kCast ||
        known == expr::Op::kBitcast || known == expr::Op::kReducePrecision)
      continue;
    const auto count = static_cast<std::size_t>(expr::numOperands(known));
    std::vector<ElementType> types(count, t);
    if (known == expr::Op::kSelect) types[2] = ElementType::kBool;
    expr::ExprBuilder builder(types);
    std::vector<std::int32_t> args;
    for (std::size_t i = 0; i < count; ++i) args.push_back(builder.input(i));
    builder.output(builder.apply(known, args));
    return elementwise::vertexCycles(builder.build(), {}, n, workers);
  }
  throw poputil::poplibs_error(
      "[popops::elementwiseCycles] needs the name of an operation such as "
      "\"add\"; got '" +
      op + "'. Use a name of ElementwiseOps.def.");
}

}  // namespace popops
