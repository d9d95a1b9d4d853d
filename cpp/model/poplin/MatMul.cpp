#include "poplin/MatMul.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poplin/internal/Placing.hpp"
#include "poplin/internal/PlanOptions.hpp"
#include "poplin/internal/PlanningCacheImpl.hpp"
#include "popops/ScaledAdd.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

using ipujax::engine::Access;
using ipujax::engine::ElementType;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

std::string text(const Shape& shape) {
  std::ostringstream os;
  os << "[";
  for (std::size_t i = 0; i < shape.size(); ++i) os << (i ? ", " : "") << shape[i];
  os << "]";
  return os.str();
}

void checkShapes(const char* where, const Shape& a, const Shape& b, std::size_t rank) {
  const bool agree = a.size() == rank && b.size() == rank && a[rank - 1] == b[rank - 2] &&
                     (rank == 2 || a[0] == b[0]);
  if (agree) return;
  const std::string wanted = rank == 2 ? "A [M, K] and B [K, N]" : "A [G, M, K] and B [G, K, N]";
  throw poputil::poplibs_error(std::string("[poplin::") + where + "] needs " + wanted + "; got " +
                               text(a) + " and " + text(b) + ". Reshape the operands.");
}

Shape grouped(const Shape& shape) {
  return shape.size() == 3 ? shape : Shape{1, shape[0], shape[1]};
}

/// A planned product. A x B and its transpose are one problem: the larger operand is the weights,
/// so that the two take the same time.
struct Planned {
  plan::Plan plan;
  bool transposed = false;  ///< B is the plan's input and A its weights

  std::uint64_t elementsPerTile(bool lhs) const {
    return lhs != transposed ? plan.in_elements_per_tile : plan.weight_elements_per_tile;
  }
};

bool isTransposed(const Shape& a, const Shape& b) { return grouped(a)[1] > grouped(b)[2]; }

plan::Problem problemOf(ElementType in, Type out, const Shape& a, const Shape& b,
                        const PlanOptions& options) {
  const Shape lhs = grouped(a), rhs = grouped(b);
  plan::Problem p;
  p.groups = lhs[0];
  p.rows = p.row_length = std::min(lhs[1], rhs[2]);
  p.in_channels = lhs[2];
  p.out_channels = std::max(lhs[1], rhs[2]);
  p.input_elements = p.rows * p.in_channels;
  p.in_type = in;
  p.out_type = out.element();
  options.apply(p);
  return p;
}

/// The plan for operands that are placed as planned.
Planned planOf(const Graph& graph, const char* where, ElementType in, Type out, const Shape& a,
               const Shape& b, const OptionFlags& flags, PlanningCache* cache) {
  const auto problem = problemOf(in, out, a, b, PlanOptions::read(flags, where));
  return {planFor(problem, graph.getTarget(), cache), isTransposed(a, b)};
}

Planned planOf(const Graph& graph, ElementType in, Type out, const Tensor& a, const Tensor& b,
               const PlanOptions& options, PlanningCache* cache) {
  const auto problem = problemOf(in, out, a.shape(), b.shape(), options);
  const bool transposed = isTransposed(a.shape(), b.shape());
  return {planForOperands(graph, problem, transposed ? b : a, transposed ? a : b, cache),
          transposed};
}

Tensor asGroups(const Tensor& t) { return t.rank() == 3 ? t : t.expand({0}); }

/// For a step whose operands are A, B and C. A product that is added to C is first summed
/// separately.
ipujax::engine::VertexMemory memoryOf(const Planned& planned, bool accumulate) {
  auto memory = planned.plan.cost.vertex_memory;
  const auto renamed = [&](unsigned set) {
    const unsigned operands = planned.transposed ? (set & 1u) << 1 | (set & 2u) >> 1 : set & 3u;
    const unsigned result = accumulate ? 0 : set & 4u;
    return static_cast<std::uint16_t>((set & ~7u) | operands | result);
  };
  memory.interleaved = renamed(memory.interleaved);
  memory.first = renamed(memory.first);
  memory.second = renamed(memory.second);
  return memory;
}

/// Implements all four public products: writes `out`, or adds to it.
void addProduct(Graph& graph, const Tensor& a, const Tensor& b, const Tensor& out,
                const Planned& planned, Sequence& prog, double scale, bool accumulate,
                const DebugContext& debugContext) {
  const plan::Plan& plan = planned.plan;
  ipujax::engine::StepSpec spec;
  spec.kernel = "poplin.matmul";
  spec.operands = {{asGroups(a), Access::kRead, false},
                   {asGroups(b), Access::kRead, false},
                   {asGroups(out), accumulate ? Access::kReadWrite : Access::kWrite, false}};
  spec.attributes.set("half_block", static_cast<std::int64_t>(plan.chain));
  spec.attributes.set("scale", scale);
  spec.attributes.set("plan", plan.splits());
  spec.attributes.set("accumulate", std::int64_t{accumulate});
  spec.cost = plan.cost;
  spec.cost.vertex_memory = memoryOf(planned, accumulate);
  const ElementType multiplied =
      multipliedType(a.elementType(), b.elementType(), out.elementType());
  addWidening(spec.cost, graph, a, multiplied);
  addWidening(spec.cost, graph, b, multiplied);
  if (accumulate) {  // popops scaledAdd on each tile's part of C
    const double elements = static_cast<double>(plan.out_elements_per_tile);
    ipujax::engine::addComputeSet(spec.cost, graph.getTarget(), 80 + 3 * elements / 2, plan.tiles);
    spec.cost.flops += 2 * static_cast<double>(out.numElements());
  }
  ipujax::engine::emit(graph, prog, std::move(spec), debugContext);
}

/// The operands to multiply. Tiles that can multiply quarters use them; the model computes with
/// halves.
struct Factors {
  Factors(Graph& graph, const char* where, const Tensor& lhs, const Tensor& rhs, Sequence& prog,
          const DebugContext& debugContext, const OptionFlags& flags)
      : options(PlanOptions::read(flags, where)) {
    options.quarter_operands = lhs.hasMetadata() && rhs.hasMetadata() && multipliesQuarters(graph);
    a = withoutQuarters(graph, lhs, prog, debugContext, options.quarter_operands);
    b = withoutQuarters(graph, rhs, prog, debugContext, options.quarter_operands);
  }
  PlanOptions options;
  Tensor a, b;
};

Tensor product(Graph& graph, const char* where, std::size_t rank, const Tensor& lhs,
               const Tensor& rhs, Sequence& prog, Type out_type, const DebugContext& debugContext,
               const OptionFlags& flags, PlanningCache* cache) {
  checkShapes(where, lhs.shape(), rhs.shape(), rank);
  const Factors factors(graph, where, lhs, rhs, prog, debugContext, flags);
  const Tensor &a = factors.a, &b = factors.b;
  checkTypes(where, a.elementType(), "x", b.elementType(), out_type);
  const auto multiplied = multipliedType(a.elementType(), b.elementType(), out_type);
  const Planned planned = planOf(graph, multiplied, out_type, a, b, factors.options, cache);
  Shape shape = a.shape();
  shape.back() = b.shape().back();
  Tensor out = graph.addVariable(out_type, shape, debugContext);
  placeAsPlanned(graph, out, planned.plan.out_elements_per_tile);
  addProduct(graph, a, b, out, planned, prog, 1.0, false, debugContext);
  return out;
}

void accumulated(Graph& graph, const char* where, std::size_t rank, const Tensor& c, float k,
                 const Tensor& lhs, const Tensor& rhs, Sequence& prog,
                 const DebugContext& debugContext, const OptionFlags& flags, PlanningCache* cache) {
  checkShapes(where, lhs.shape(), rhs.shape(), rank);
  const Factors factors(graph, where, lhs, rhs, prog, debugContext, flags);
  const Tensor &a = factors.a, &b = factors.b;
  checkTypes(where, a.elementType(), "x", b.elementType(), c.elementType());
  Shape shape = a.shape();
  shape.back() = b.shape().back();
  if (c.shape() != shape)
    throw poputil::poplibs_error(std::string("[poplin::") + where + "] needs C of shape " +
                                 text(shape) + "; got " + text(c.shape()) + ". Reshape it.");
  if (!isFloating(c.elementType()))
    throw poplar::type_error(std::string("[poplin::") + where + "] needs FLOAT or HALF; got " +
                             c.elementType().toString() + ". Multiply and add instead.");
  const Planned planned =
      planOf(graph, a.elementType().element(), c.elementType(), a, b, factors.options, cache);
  addProduct(graph, a, b, c, planned, prog, static_cast<double>(k), true, debugContext);
}

Tensor input(Graph& graph, const char* where, std::size_t rank, bool lhs, Type in, Type out,
             const Shape& a, const Shape& b, const DebugContext& debugContext,
             const OptionFlags& flags, PlanningCache* cache) {
  checkShapes(where, a, b, rank);
  checkTypes(where, in, "x", in, out);
  const Planned planned =
      planOf(graph, where, multipliedType(in, in, out), out, a, b, flags, cache);
  Tensor t = graph.addVariable(in, lhs ? a : b, debugContext);
  placeAsPlanned(graph, t, planned.elementsPerTile(lhs));
  return t;
}

void report(std::ostream& out, const Graph& graph, const char* where, std::size_t rank, Type in,
            Type out_type, const Shape& a, const Shape& b, const OptionFlags& flags,
            PlanningCache* cache) {
  checkShapes(where, a, b, rank);
  const auto multiplied = multipliedType(in, in, out_type);
  out << planOf(graph, where, multiplied, out_type, a, b, flags, cache).plan.report() << "\n";
}

}  // namespace

Tensor matMul(Graph& graph, const Tensor& A, const Tensor& B, Sequence& prog,
              const Type& outputType, const DebugContext& debugContext, const OptionFlags& options,
              PlanningCache* cache) {
  return product(graph, "matMul", 2, A, B, prog, outputType, debugContext, options, cache);
}

Tensor matMul(Graph& graph, const Tensor& A, const Tensor& B, Sequence& prog,
              const DebugContext& debugContext, const OptionFlags& options, PlanningCache* cache) {
  return matMul(graph, A, B, prog, A.elementType(), debugContext, options, cache);
}

Tensor matMulGrouped(Graph& graph, const Tensor& A, const Tensor& B, Sequence& prog,
                     const Type& outputType, const DebugContext& debugContext,
                     const OptionFlags& options, PlanningCache* cache) {
  return product(graph, "matMulGrouped", 3, A, B, prog, outputType, debugContext, options, cache);
}

void matMulAcc(Graph& graph, const Tensor& C, float k, const Tensor& A, const Tensor& B,
               Sequence& prog, const DebugContext& debugContext, const OptionFlags& options,
               PlanningCache* cache) {
  accumulated(graph, "matMulAcc", 2, C, k, A, B, prog, debugContext, options, cache);
}

void matMulGroupedAcc(Graph& graph, const Tensor& C, float k, const Tensor& A, const Tensor& B,
                      Sequence& prog, const DebugContext& debugContext, const OptionFlags& options,
                      PlanningCache* cache) {
  accumulated(graph, "matMulGroupedAcc", 3, C, k, A, B, prog, debugContext, options, cache);
}

Tensor createMatMulInputLHS(Graph& graph, const Type& inputType, const Type& outputType,
                            const Shape& aShape, const Shape& bShape,
                            const DebugContext& debugContext, const OptionFlags& options,
                            PlanningCache* cache) {
  return input(graph, "createMatMulInputLHS", 2, true, inputType, outputType, aShape, bShape,
               debugContext, options, cache);
}

Tensor createMatMulInputLHS(Graph& graph, const Type& dataType, const Shape& aShape,
                            const Shape& bShape, const DebugContext& debugContext,
                            const OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputLHS(graph, dataType, dataType, aShape, bShape, debugContext, options,
                              cache);
}

Tensor createMatMulInputRHS(Graph& graph, const Type& inputType, const Type& outputType,
                            const Shape& aShape, const Shape& bShape,
                            const DebugContext& debugContext, const OptionFlags& options,
                            PlanningCache* cache) {
  return input(graph, "createMatMulInputRHS", 2, false, inputType, outputType, aShape, bShape,
               debugContext, options, cache);
}

Tensor createMatMulInputRHS(Graph& graph, const Type& dataType, const Shape& aShape,
                            const Shape& bShape, const DebugContext& debugContext,
                            const OptionFlags& options, PlanningCache* cache) {
  return createMatMulInputRHS(graph, dataType, dataType, aShape, bShape, debugContext, options,
                              cache);
}

Tensor createMatMulGroupedInputLHS(Graph& graph, const Type& inputType, const Type& outputType,
                                   const Shape& aShape, const Shape& bShape,
                                   const DebugContext& debugContext, const OptionFlags& options,
                                   PlanningCache* cache) {
  return input(graph, "createMatMulGroupedInputLHS", 3, true, inputType, outputType, aShape, bShape,
               debugContext, options, cache);
}

Tensor createMatMulGroupedInputRHS(Graph& graph, const Type& inputType, const Type& outputType,
                                   const Shape& aShape, const Shape& bShape,
                                   const DebugContext& debugContext, const OptionFlags& options,
                                   PlanningCache* cache) {
  return input(graph, "createMatMulGroupedInputRHS", 3, false, inputType, outputType, aShape,
               bShape, debugContext, options, cache);
}

namespace {

Tensor outputOf(Graph& graph, const char* where, std::size_t rank, const Type& in, const Type& out,
                const Shape& a, const Shape& b, const DebugContext& debugContext,
                const OptionFlags& options, PlanningCache* cache) {
  checkShapes(where, a, b, rank);
  const auto planned = planOf(graph, where, multipliedType(in, in, out), out, a, b, options, cache);
  Shape shape = a;
  shape.back() = b.back();
  Tensor t = graph.addVariable(out, shape, debugContext);
  placeAsPlanned(graph, t, planned.plan.out_elements_per_tile);
  return t;
}

/// A copy of B, mapped as the product expects it.
Tensor arranged(Graph& graph, std::size_t rank, const Shape& a, const Tensor& b, Sequence& prog,
                const Type& out, const DebugContext& debugContext, const OptionFlags& options,
                PlanningCache* cache) {
  const DebugContext context{debugContext, "preArranged"};
  Tensor t = input(graph, "preArrangeMatMulInputRHS", rank, false, b.elementType(), out, a,
                   b.shape(), context, options, cache);
  prog.add(poplar::program::Copy(b, t, false, context));
  return t;
}

}  // namespace

void matMulWithOutput(Graph& graph, const Tensor& A, const Tensor& B, Tensor& C, Sequence& prog,
                      const DebugContext& debugContext, const OptionFlags& options,
                      PlanningCache* cache) {
  prog.add(poplar::program::Copy(
      matMul(graph, A, B, prog, C.elementType(), debugContext, options, cache), C));
}

void matMulGroupedWithOutput(Graph& graph, const Tensor& A, const Tensor& B, Tensor& C,
                             Sequence& prog, const DebugContext& debugContext,
                             const OptionFlags& options, PlanningCache* cache) {
  prog.add(poplar::program::Copy(
      matMulGrouped(graph, A, B, prog, C.elementType(), debugContext, options, cache), C));
}

void matMulAcc(Graph& graph, const Tensor& C, const Tensor& k, const Tensor& A, const Tensor& B,
               Sequence& prog, const DebugContext& debugContext, const OptionFlags& options,
               PlanningCache* cache) {
  const Tensor product = matMul(graph, A, B, prog, C.elementType(), debugContext, options, cache);
  popops::scaledAddTo(graph, C, product, k, prog, debugContext);
}

void matMulGroupedAcc(Graph& graph, const Tensor& C, const Tensor& k, const Tensor& A,
                      const Tensor& B, Sequence& prog, const DebugContext& debugContext,
                      const OptionFlags& options, PlanningCache* cache) {
  const Tensor product =
      matMulGrouped(graph, A, B, prog, C.elementType(), debugContext, options, cache);
  popops::scaledAddTo(graph, C, product, k, prog, debugContext);
}

Tensor createMatMulOutput(Graph& graph, const Type& inputType, const Type& outputType,
                          const Shape& aShape, const Shape& bShape,
                          const DebugContext& debugContext, const OptionFlags& options,
                          PlanningCache* cache) {
  return outputOf(graph, "createMatMulOutput", 2, inputType, outputType, aShape, bShape,
                  debugContext, options, cache);
}

Tensor createMatMulOutput(Graph& graph, const Type& dataType, const Shape& aShape,
                          const Shape& bShape, const DebugContext& debugContext,
                          const OptionFlags& options, PlanningCache* cache) {
  return createMatMulOutput(graph, dataType, dataType, aShape, bShape, debugContext, options,
                            cache);
}

Tensor createMatMulGroupedOutput(Graph& graph, const Type& inputType, const Type& outputType,
                                 const Shape& aShape, const Shape& bShape,
                                 const DebugContext& debugContext, const OptionFlags& options,
                                 PlanningCache* cache) {
  return outputOf(graph, "createMatMulGroupedOutput", 3, inputType, outputType, aShape, bShape,
                  debugContext, options, cache);
}

Tensor preArrangeMatMulInputRHS(Graph& graph, const Shape& aShape, const Tensor& B, Sequence& prog,
                                const Type& outputType, const DebugContext& debugContext,
                                const OptionFlags& options, PlanningCache* cache) {
  return arranged(graph, 2, aShape, B, prog, outputType, debugContext, options, cache);
}

Tensor preArrangeMatMulInputRHS(Graph& graph, const Shape& aShape, const Tensor& B, Sequence& prog,
                                const DebugContext& debugContext, const OptionFlags& options,
                                PlanningCache* cache) {
  return arranged(graph, 2, aShape, B, prog, B.elementType(), debugContext, options, cache);
}

Tensor preArrangeMatMulGroupedInputRHS(Graph& graph, const Shape& aShape, const Tensor& B,
                                       Sequence& prog, const Type& outputType,
                                       const DebugContext& debugContext, const OptionFlags& options,
                                       PlanningCache* cache) {
  return arranged(graph, 3, aShape, B, prog, outputType, debugContext, options, cache);
}

Tensor transposeGroupedMatrix(const Tensor& A) { return A.dimShuffle({0, 2, 1}); }

void preplanMatMuls(const std::set<MatMulPlanParams>& matmuls, PlanningCache& cache) {
  for (const auto& [target, params, options] : matmuls) {
    checkShapes("preplanMatMuls", params.aShape, params.bShape, params.aShape.size());
    const auto read = PlanOptions::read(options ? *options : OptionFlags(), "preplanMatMuls");
    const auto multiplied = multipliedType(params.inputType, params.inputType, params.outputType);
    planFor(problemOf(multiplied, params.outputType, params.aShape, params.bShape, read), *target,
            &cache);
  }
}

void matMulReportPlan(std::ostream& out, const Graph& graph, const Type& inputType,
                      const Type& outputType, const Shape& aShape, const Shape& bShape,
                      const OptionFlags& options, PlanningCache* cache) {
  report(out, graph, "matMulReportPlan", 2, inputType, outputType, aShape, bShape, options, cache);
}

void matMulGroupedReportPlan(std::ostream& out, const Graph& graph, const Type& inputType,
                             const Type& outputType, const Shape& aShape, const Shape& bShape,
                             const OptionFlags& options, PlanningCache* cache) {
  report(out, graph, "matMulGroupedReportPlan", 3, inputType, outputType, aShape, bShape, options,
         cache);
}

double matMulCycles(const poplar::Target& target, std::size_t m, std::size_t k, std::size_t n,
                    const Type& type, const OptionFlags& options) {
  const PlanOptions read = PlanOptions::read(options, "matMulCycles");
  return plan::makePlan(problemOf(type.element(), type, {m, k}, {k, n}, read), target)
      .cost.cycles();
}

}  // namespace poplin
