#include "popops/internal/ElementWiseCost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/SoftwareArithmetic.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/graph/View.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::engine::elementwise {

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
struct Rates {
  Rate f32, f16;
};
struct RealRow {
  Op op;
  Rates rates;
};

/// popops: popopsCycleEstimators.cpp, its loops; "natural" loops as cycles + 4 per vector.
constexpr RealRow kRealRows[] = {
    {Op::kExp, {{6, 2}, {4, 4}}},
    {Op::kExp2, {{6, 2}, {4, 4}}},
    {Op::kLog, {{12, 2}, {4, 4}}},
    {Op::kTanh, {{12, 2}, {4, 4}}},
    {Op::kSigmoid, {{12, 2}, {6, 4}}},
    {Op::kRelu, {{3, 2}, {3, 4}}},
    {Op::kSqrt, {{10, 2}, {23, 4}}},
    {Op::kRsqrt, {{8, 2}, {19, 4}}},
    {Op::kInverse, {{6, 2}, {15, 4}}},
    {Op::kNegate, {{2, 2}, {2, 4}}},
    {Op::kSquare, {{2, 2}, {2, 4}}},
    {Op::kErf, {{41, 1}, {13, 1}}},
    {Op::kGeluErf, {{22, 1}, {16, 1}}},
    {Op::kSin, {{2304, 1}, {25, 1}}},  // the C library's, for float
    {Op::kCos, {{2304, 1}, {25, 1}}},  // the C library's, for float
    {Op::kTan, {{5104, 1}, {5704, 1}}},
    {Op::kAsin, {{106, 1}, {106, 1}}},
    {Op::kExpm1, {{9, 2}, {8, 4}}},
    {Op::kLog1p, {{22, 2}, {22, 4}}},
    {Op::kCbrt, {{31, 2}, {21, 4}}},
    {Op::kFloor, {{6, 2}, {6, 4}}},
    {Op::kCeil, {{6, 2}, {6, 4}}},
    {Op::kRound, {{6, 2}, {6, 4}}},
    {Op::kNearbyInt, {{6, 2}, {6, 4}}},
    {Op::kTrunc, {{3, 2}, {11, 4}}},
    {Op::kIsNan, {{7, 2}, {7, 4}}},
    {Op::kIsInf, {{9, 2}, {9, 4}}},
    {Op::kIsFinite, {{9, 2}, {9, 4}}},
    {Op::kSignum, {{9, 2}, {9, 4}}},
    {Op::kAbs, {{5, 1}, {5, 1}}},
    {Op::kAdd, {{3, 2}, {3, 4}}},
    {Op::kSubtract, {{3, 2}, {3, 4}}},
    {Op::kMultiply, {{3, 2}, {3, 4}}},
    {Op::kDivide, {{10, 2}, {21, 4}}},
    {Op::kMaximum, {{3, 2}, {4, 4}}},
    {Op::kMinimum, {{3, 2}, {4, 4}}},
    {Op::kEqual, {{14, 4}, {9, 4}}},
    {Op::kNotEqual, {{14, 4}, {9, 4}}},
    {Op::kLessThan, {{14, 4}, {9, 4}}},
    {Op::kLessThanEqual, {{14, 4}, {9, 4}}},
    {Op::kGreaterThan, {{14, 4}, {9, 4}}},
    {Op::kGreaterThanEqual, {{14, 4}, {9, 4}}},
    {Op::kPower, {{312, 1}, {325, 1}}},
    {Op::kRemainder, {{133, 2}, {300, 4}}},
    {Op::kAtan2, {{272, 2}, {578, 4}}},
    {Op::kInvStdDevToVariance, {{12, 2}, {23, 4}}},
    {Op::kVarianceToInvStdDev, {{12, 2}, {23, 4}}},
    {Op::kSelect, {{5, 1}, {5, 1}}},
    {Op::kClamp, {{2, 2}, {2, 4}}},
    // No estimator of poplibs has these. Our estimate: the library functions they would call.
    {Op::kAcos, {{106, 1}, {106, 1}}},
    {Op::kAtan, {{106, 1}, {106, 1}}},
    {Op::kSinh, {{40, 1}, {40, 1}}},
    {Op::kCosh, {{40, 1}, {40, 1}}},
    {Op::kAcosh, {{60, 1}, {60, 1}}},
    {Op::kAsinh, {{60, 1}, {60, 1}}},
    {Op::kAtanh, {{60, 1}, {60, 1}}},
    {Op::kErfc, {{60, 1}, {60, 1}}},
    {Op::kErfInv, {{60, 1}, {60, 1}}},
    {Op::kLogGamma, {{400, 1}, {400, 1}}},
    {Op::kRoundToBFloat16, {{12, 2}, {12, 4}}},
    {Op::kReducePrecision, {{12, 2}, {12, 4}}},
    {Op::kRandomBits, {{12, 2}, {12, 4}}},
};
constexpr Rates kOtherRates = {{4, 2}, {4, 4}};

constexpr auto kRealRates = [] {
  std::array<Rates, expr::kOpCount> rates;
  rates.fill(kOtherRates);
  for (const RealRow& row : kRealRows) rates[static_cast<std::size_t>(row.op)] = row.rates;
  return rates;
}();

/// Integers and bool, same source.
Rate wholeRate(Op op, ElementType type) {
  const bool wide = sizeOf(type) == 8;
  const bool is_signed = type == ElementType::kInt8 || type == ElementType::kInt16 ||
                         type == ElementType::kInt32 || type == ElementType::kInt64;
  switch (op) {
    case Op::kDivide:
    case Op::kRemainder:
      return {is_signed ? 277.0 : 265.0, 1};
    case Op::kPower:
      return {312, 1};
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLessThan:
    case Op::kLessThanEqual:
    case Op::kGreaterThan:
    case Op::kGreaterThanEqual:
      return type == ElementType::kBool ? Rate{18, 4} : Rate{24, 4};
    case Op::kLogicalAnd:
    case Op::kLogicalOr:
      return {5, 4};
    case Op::kLogicalNot:
      return {17, 4};
    case Op::kSelect:
      return {5, 1};
    case Op::kClamp:
      return {7, 1};
    default:
      return {wide ? 11.0 : 7.0, 1};
  }
}

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
  switch (op) {
    case Op::kConstant:
    case Op::kBitcast:
      return {0, 1};
    case Op::kCast:
      return castRate(operand, result);
    case Op::kFromBFloat16:
    case Op::kToBFloat16:
      return {6, 2};
    default:
      break;
  }
  if (!isReal(operand)) return wholeRate(op, operand);
  const Rates& rates = kRealRates[static_cast<std::size_t>(op)];
  return operand == ElementType::kHalf ? rates.f16 : rates.f32;
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

double vertexCycles(const expr::ExprProgram& program, const std::vector<bool>& scalar,
                    std::uint64_t n, unsigned workers) {
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
  const ipujax::engine::View& view = *t.view();
  if (t.numElements() < 2 || !view.isStrided()) return false;
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] != 1 && view.strides[d] != 0) return false;
  return true;
}
}  // namespace

Cost costOf(const poplar::Graph& graph, const expr::ExprProgram& program,
            const std::vector<poplar::Tensor>& inputs, const std::vector<poplar::Tensor>& outputs,
            const std::function<double(std::uint64_t)>& cycles) {
  Cost cost;
  const poplar::Tensor& out = outputs.front();
  const std::uint64_t elements = out.numElements();
  if (elements == 0) return cost;
  const auto& target = graph.getTarget();
  Exchange exchange;
  std::vector<bool> scalar;
  for (const auto& in : inputs) {
    scalar.push_back(isOneElement(in));
    const Exchange moved = exchangeBetween(graph, in, out);
    exchange.bytes += moved.bytes;
    exchange.worst_tile_bytes += moved.worst_tile_bytes;
  }
  addExchange(cost, target, exchange);
  const Placement place = placementOf(graph, out);
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
  // Our estimate: a 4-byte edge for each operand, the vertex's entry and a 4-byte count; code of
  // about eight bundles for each operation beside entry, work division and loop control.
  cost.vertex_state_bytes = 4 * (inputs.size() + outputs.size()) + 8;
  cost.code_bytes = 160 + 64 * ops;
  return cost;
}

}  // namespace ipujax::engine::elementwise

namespace popops {

double elementwiseCycles(const std::string& op, const poplar::Type& type, std::uint64_t n) {
  using namespace ipujax::engine;
  constexpr unsigned kWorkers = 6;
  const ElementType t = type.element();
  if (op == "scaled_add") return elementwise::scaledAddCycles(t, n, kWorkers);
  if (op == "fill") return elementwise::fillCycles(t, n, kWorkers);
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
    return elementwise::vertexCycles(builder.build(), {}, n, kWorkers);
  }
  throw poplar::poplar_error(
      "[popops::elementwiseCycles] needs the name of an operation such as "
      "\"add\"; got '" +
      op + "'.");
}

}  // namespace popops
