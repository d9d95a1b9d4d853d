#include "popops/internal/ElementWiseCost.hpp"

#include <algorithm>
#include <cmath>

#include "engine/SoftwareArithmetic.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/graph/View.hpp"
#include "poputil/exceptions.hpp"

namespace popops::elementwise {

namespace engine = ipujax::engine;
namespace expr = ipujax::engine::expr;
using engine::ceilDiv;

namespace {
using expr::Instruction;
using expr::Op;

bool isReal(ElementType t) { return t == ElementType::kFloat || t == ElementType::kHalf; }

/// Elements in a 64-bit vector; integers go one by one.
std::uint64_t vectorOf(ElementType t) {
  return t == ElementType::kHalf ? 4 : t == ElementType::kFloat ? 2 : 1;
}

/// Cycles of a worker's loop for `unit` elements, loads and stores included.
struct Rate {
  double cycles;
  double unit;
};
constexpr Rate rate(double cycles, double unit) { return {cycles, unit}; }
/// Of an operation, by the type of its operand.
struct Rates {
  Rate f32{4, 2}, f16{4, 4};
  Rate of_signed{7, 1}, of_unsigned{7, 1}, of_bool{7, 1};
};
constexpr Rates kRates[] = {
#define OP(Name, name, operands, traits, api, cycles) \
  [] {                                                \
    Rates r;                                          \
    cycles return r;                                  \
  }(),
#define REAL(f32_cycles, f32_unit, f16_cycles, f16_unit) \
  r.f32 = rate(f32_cycles, f32_unit);                    \
  r.f16 = rate(f16_cycles, f16_unit);
#define WHOLE(signed_cycles, unsigned_cycles, bool_cycles, unit) \
  r.of_signed = rate(signed_cycles, unit);                       \
  r.of_unsigned = rate(unsigned_cycles, unit);                   \
  r.of_bool = rate(bool_cycles, unit);
#include "engine/expr/ElementwiseOps.def"
};

/// castW without its constant: float to half four in two cycles, half to float two in one, half
/// and 8 bits four in nine, others one by one.
Rate castRate(ElementType from, ElementType to) {
  if (from == ElementType::kFloat && to == ElementType::kHalf) return {2, 4};
  if (from == ElementType::kHalf && to == ElementType::kFloat) return {1, 2};
  if ((from == ElementType::kHalf && sizeOf(to) == 1) ||
      (to == ElementType::kHalf && sizeOf(from) == 1))
    return {9, 4};
  return {5, 1};
}

Rate rateOf(Op op, ElementType operand, ElementType result) {
  if (isSoftware(operand)) return {softwareCycles(op, operand), 1};
  if (op == Op::kCast && isSoftware(result)) return {softwareCycles(op, result), 1};
  if (op == Op::kCast) return castRate(operand, result);
  const Rates& rates = kRates[static_cast<std::size_t>(op)];
  switch (operand) {
    case ElementType::kFloat:
      return rates.f32;
    case ElementType::kHalf:
      return rates.f16;
    case ElementType::kBool:
      return rates.of_bool;
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
      return rates.of_signed;
    default:
      return rates.of_unsigned;
  }
}

double singleConstant(Op op, ElementType operand, bool scalar) {
  const int operands = expr::numOperands(op);
  if (operands == 1) return op == Op::kExp ? 33 : 17;
  if (scalar) return 20;
  return operand == ElementType::kFloat ? 29 : 26;
}

double roundUpTo6(double x) { return std::ceil(x / 6) * 6; }

double workerShare(std::uint64_t n, unsigned workers) {
  return static_cast<double>(ceilDiv(n, workers));
}

/// One library vertex: a single operation on inputs, or on an input and one scalar.
double singleVertex(const Instruction& i, ElementType operand, bool scalar, std::uint64_t n,
                    unsigned workers) {
  const auto share = static_cast<std::uint64_t>(workerShare(n, workers));
  if (i.op == Op::kCast) return castCycles(operand, i.type, n, workers);
  if (i.op == Op::kSelect || i.op == Op::kClamp)  // a plain vertex: one for each worker
    return kLaunchCycles + workers * (11 + loopCycles(i.op, operand, i.type, share));
  const bool linear = i.op == Op::kAdd || i.op == Op::kSubtract || i.op == Op::kMultiply;
  double loop = loopCycles(i.op, operand, i.type, share);
  if (scalar && isReal(operand) && linear)  // one load fewer: 2 cycles per vector
    loop = static_cast<double>(ceilDiv(share, vectorOf(operand))) * 2;
  const double setup = expr::numOperands(i.op) == 1 ? 20 : 11;
  return kLaunchCycles + setup + workers * (singleConstant(i.op, operand, scalar) + loop);
}
}  // namespace

double loopCycles(Op op, ElementType operand, ElementType result, std::uint64_t n) {
  const Rate rate = rateOf(op, operand, result);
  return std::ceil(static_cast<double>(n) / rate.unit) * rate.cycles;
}

double castCycles(ElementType from, ElementType to, std::uint64_t n, unsigned workers) {
  const double worker = 19 + loopCycles(Op::kCast, from, to, ceilDiv(n, workers));
  return kLaunchCycles + 12 + workers * (worker + 18);
}

double fillCycles(ElementType type, std::uint64_t n, unsigned workers) {
  const double share = workerShare(n, workers);
  double worker = 0;
  switch (sizeOf(type)) {
    case 1:
      worker = share < 64 ? 28 + share / 4 : 39 + share / 8;
      break;
    case 2:
      worker = 26 + share / 4;
      break;
    default:
      worker = 23 + share / 2;
  }
  return kLaunchCycles + workers * std::ceil(worker);
}

double scaledAddCycles(ElementType type, std::uint64_t n, unsigned workers) {
  if (!isReal(type)) {
    const auto share = ceilDiv(n, workers);
    return kSupervisorLaunchCycles + 13 +
           workers * static_cast<double>(53 + 26 * (share / 3) + 6 + 26 * (share % 3) + 14);
  }
  const std::uint64_t vectors = n / vectorOf(type);
  const auto share = static_cast<double>(vectors / workers);
  const bool uneven = vectors % workers != 0 || n % vectorOf(type) != 0;
  const double supervisor = 21 + 11 + (uneven ? 13 : 7) + 12 + 6;
  const double loop = 3 * std::max(0.0, share - 1);
  return kSupervisorLaunchCycles + supervisor + workers * (18 + 6 + loop + (uneven ? 2 : 0));
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
    worker += std::ceil(static_cast<double>(share) / rate.unit) * std::max(1.0, rate.cycles - 2);
  }
  return kLaunchCycles + roundUpTo6(20 + workers * worker);
}

namespace {
/// One element seen everywhere.
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
