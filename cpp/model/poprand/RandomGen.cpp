#include "poprand/RandomGen.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/graph/Emit.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/Planning.hpp"
#include "poplar/RandomSeed.hpp"
#include "poplar/exceptions.hpp"
#include "popops/ElementWise.hpp"
#include "popops/internal/WorkerSeeds.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace poprand {
namespace {

using ipujax::engine::Access;
using ipujax::engine::ceilDiv;
using ipujax::engine::Cost;
using ipujax::engine::StepSpec;
using poplar::Graph;
using poplar::Tensor;

void checkSeed(const Tensor& seed) {
  if (seed.rank() == 1 && seed.numElements() == 2 && seed.elementType() == poplar::UNSIGNED_INT)
    return;
  throw poputil::poplibs_error("[poprand] needs a seed of two UNSIGNED_INT; got " +
                               seed.shapeToString() + " of " + seed.elementType().toString() +
                               ". Reshape or cast it.");
}

void addSeed(Graph& graph, StepSpec& step, const Tensor* seed, std::uint32_t modifier) {
  if (seed) {
    checkSeed(*seed);
    step.operands.push_back({*seed, Access::kRead, true});
  } else {
    step.operands.push_back({popops::internal::workerSeeds(graph)[0][0], Access::kReadWrite, true});
  }
  step.attributes.set("modifier", static_cast<std::int64_t>(modifier));
}

/// Worker cycles by popops' name of the vertex, for vectors of 2 floats or 4 halves; poprand:
/// poprandCycleEstimators.cpp.
double workerCycles(const std::string& kind, double vectors, double alpha) {
  if (kind == "bernoulli") return 4 + vectors;
  if (kind == "dropout") return 6 + 144 + 2 * vectors;
  if (kind == "truncated_normal")
    return 4 + vectors * (11 * std::ceil(3 / std::max(alpha, 1.0)) + 5);
  return 4 + 4 * vectors + 132;
}

Cost costOf(const Graph& graph, const Tensor& out, const std::string& kind, double alpha = 1) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, out);
  if (placed.elements == 0) return cost;
  const auto vector = std::max<std::uint64_t>(1, 8 / target.getTypeSize(out.elementType()));
  const auto vectors = static_cast<double>(
      ceilDiv(placed.max_elements_per_tile, vector * target.getNumWorkerContexts()));
  addExchange(cost, target, {8.0 * static_cast<double>(placed.tiles_used), 8.0});
  addComputeSet(cost, target, 14 + 162, placed.tiles_used);  // set seed, before and after
  addComputeSet(cost, target, 11 + 6 * workerCycles(kind, vectors, alpha), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 300;
  return cost;
}

void checkType(const char* function, const poplar::Type& type, bool integers) {
  const bool good = type == poplar::FLOAT || type == poplar::HALF ||
                    (integers && (type == poplar::INT || type == poplar::UNSIGNED_INT));
  if (good) return;
  throw poputil::poplibs_error(std::string("[poprand::") + function + "] needs FLOAT or HALF" +
                               (integers ? ", INT or UNSIGNED_INT" : "") + "; got " +
                               type.toString() + ". Cast the result.");
}

void check(const char* function, bool good, const std::string& needs, double got) {
  if (good) return;
  throw poputil::poplibs_error(std::string("[poprand::") + function + "] needs " + needs +
                               "; got " + std::to_string(got) + ". Use such a value.");
}

struct Generate {
  const char* kind;
  double a = 0, b = 0, alpha = 1;
};

Tensor generate(Graph& graph, const Tensor* seed, std::uint32_t modifier, const Tensor& reference,
                const poplar::Type& type, const Generate& what, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext) {
  const Tensor out = graph.clone(type, reference, {debugContext, what.kind});
  StepSpec step;
  step.kernel = "poprand.generate";
  addSeed(graph, step, seed, modifier);
  step.operands.push_back({out, Access::kWrite, true});
  step.attributes.set("kind", std::string(what.kind)).set("a", what.a).set("b", what.b);
  step.attributes.set("alpha", what.alpha);
  step.cost = costOf(graph, out, what.kind, what.alpha);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return out;
}

}  // namespace

Tensor uniform(Graph& graph, const Tensor* seed, std::uint32_t seedModifier,
               const Tensor& reference, const poplar::Type& outType, double minVal, double maxVal,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkType("uniform", outType, true);
  check("uniform", minVal <= maxVal, "minVal <= maxVal = " + std::to_string(maxVal), minVal);
  return generate(graph, seed, seedModifier, reference, outType, {"uniform", minVal, maxVal}, prog,
                  debugContext);
}

Tensor logUniform(Graph& graph, const Tensor* seed, std::uint32_t seedModifier,
                  const Tensor& reference, const poplar::Type& outType, double minVal,
                  double maxVal, poplar::program::Sequence& prog, double base,
                  const poplar::DebugContext& debugContext) {
  checkType("logUniform", outType, true);
  check("logUniform", minVal >= 1 && maxVal > minVal, "1 <= minVal < maxVal", minVal);
  check("logUniform", base > 0 && base != 1, "a positive base that is not 1", base);
  // base ** u with u in log_base of the interval is e ** u with u in its natural log.
  return generate(graph, seed, seedModifier, reference, outType, {"log_uniform", minVal, maxVal},
                  prog, debugContext);
}

Tensor bernoulli(Graph& graph, const Tensor* seed, std::uint32_t seedModifier,
                 const Tensor& reference, const poplar::Type& outType, double prob,
                 poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkType("bernoulli", outType, true);
  check("bernoulli", prob >= 0 && prob <= 1, "a probability", prob);
  return generate(graph, seed, seedModifier, reference, outType, {"bernoulli", prob}, prog,
                  debugContext);
}

Tensor normal(Graph& graph, const Tensor* seed, std::uint32_t seedModifier, const Tensor& reference,
              const poplar::Type& outType, double mean, double stdDev,
              poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkType("normal", outType, false);
  return generate(graph, seed, seedModifier, reference, outType, {"normal", mean, stdDev}, prog,
                  debugContext);
}

Tensor truncatedNormal(Graph& graph, const Tensor* seed, std::uint32_t seedModifier,
                       const Tensor& reference, const poplar::Type& outType, double mean,
                       double stdDev, double alpha, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext) {
  checkType("truncatedNormal", outType, false);
  // With a narrower band, nearly every draw is rejected.
  check("truncatedNormal", alpha >= 0.1, "an alpha of at least 0.1", alpha);
  return generate(graph, seed, seedModifier, reference, outType,
                  {"truncated_normal", mean, stdDev, alpha}, prog, debugContext);
}

Tensor dropout(Graph& graph, const Tensor* seed, std::uint32_t seedModifier, const Tensor& input,
               const Tensor& reference, double keepProbability, double scale, bool outputClonesRef,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkType("dropout", input.elementType(), false);
  check("dropout", keepProbability >= 0 && keepProbability <= 1, "a probability", keepProbability);
  if (reference.shape() != input.shape()) {
    throw poputil::poplibs_error("[poprand::dropout] needs a reference of the input's shape; got " +
                                 reference.shapeToString() + " for " + input.shapeToString() +
                                 ". Use shapedDropout to broadcast.");
  }
  const Tensor out = graph.clone(input.elementType(), outputClonesRef ? reference : input,
                                 {debugContext, "dropout"});
  StepSpec step;
  step.kernel = "poprand.dropout";
  addSeed(graph, step, seed, seedModifier);
  step.operands.push_back({out, Access::kWrite, true});
  step.operands.push_back({input, Access::kRead, true});
  step.attributes.set("keep", keepProbability).set("scale", scale);
  step.cost = costOf(graph, out, "dropout");
  addExchange(step.cost, graph.getTarget(), ipujax::engine::exchangeBetween(graph, input, out));
  step.in_place = {{2, 1}};
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return out;
}

Tensor dropout(Graph& graph, const Tensor* seed, std::uint32_t seedModifier, const Tensor& input,
               const Tensor& reference, double keepProbability, double scale,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  return dropout(graph, seed, seedModifier, input, reference, keepProbability, scale, true, prog,
                 debugContext);
}

Tensor shapedDropout(Graph& graph, const Tensor* seed, std::uint32_t seedModifier,
                     const Tensor& input, const Tensor& reference, double keepProbability,
                     double scale, poplar::program::Sequence& prog,
                     const poplar::DebugContext& debugContext) {
  checkType("shapedDropout", input.elementType(), false);
  check("shapedDropout", keepProbability >= 0 && keepProbability <= 1, "a probability",
        keepProbability);
  const std::size_t rank = input.rank();
  std::vector<std::int64_t> mask(rank, 1);
  for (unsigned d = 0; d < reference.rank(); ++d) {
    const std::size_t at = rank - reference.rank() + d;
    const bool fits =
        reference.rank() <= rank &&
        (reference.dim(d) == 1 || reference.dim(d) == input.dim(static_cast<unsigned>(at)));
    if (!fits) {
      throw poputil::poplibs_error(
          "[poprand::shapedDropout] needs a reference that broadcasts to " + input.shapeToString() +
          "; got " + reference.shapeToString() + ". Use sizes that agree or are 1.");
    }
    mask[at] = static_cast<std::int64_t>(reference.dim(d));
  }
  const Tensor out = graph.clone(input.elementType(), input, {debugContext, "shapedDropout"});
  StepSpec step;
  step.kernel = "poprand.shaped_dropout";
  addSeed(graph, step, seed, seedModifier);
  step.operands.push_back({out, Access::kWrite, true});
  step.operands.push_back({input, Access::kRead, true});
  step.attributes.set("keep", keepProbability).set("scale", scale).set("mask_shape", mask);
  step.cost = costOf(graph, out, "dropout") + costOf(graph, reference, "bernoulli");
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return out;
}

void setSeed(Graph& graph, const Tensor& masterSeed, std::uint32_t seedModifier,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  checkSeed(masterSeed);
  StepSpec step;
  step.kernel = "poprand.set_seed";
  step.operands = {{masterSeed, Access::kRead, true},
                   {popops::internal::workerSeeds(graph), Access::kWrite, true}};
  step.attributes.set("modifier", static_cast<std::int64_t>(seedModifier));
  const auto& target = graph.getTarget();
  addExchange(step.cost, target, {8.0 * target.getNumTiles(), 8.0});
  addComputeSet(step.cost, target, 14 + 162, target.getNumTiles());  // poprand: SetSeed
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

}  // namespace poprand

namespace poplar {
namespace {

/// The worker states of the graph's tiles, which may be only some of the device's.
Tensor seedsOf(Graph& graph) {
  const Tensor all = popops::internal::workerSeeds(graph);
  const unsigned tiles = graph.getTarget().getNumTiles();
  if (tiles == all.dim(0)) return all;
  std::vector<Tensor> mine;
  for (unsigned tile = 0; tile < tiles; ++tile)
    mine.push_back(all[graph.convertVirtualTileToPhysicalTile(tile)].expand({0}));
  return concat(mine);
}

}  // namespace

Tensor getHwSeeds(Graph& graph, program::Sequence& prog, const DebugContext& debugContext) {
  const Tensor state = seedsOf(graph);
  const Tensor found = graph.clone(state, debugContext);
  prog.add(program::Copy(state, found));
  return found;
}

void setHwSeeds(Graph& graph, const Tensor& hwSeeds, program::Sequence& prog, const DebugContext&) {
  const Tensor state = seedsOf(graph);
  if (hwSeeds.shape() != state.shape() || hwSeeds.elementType() != UNSIGNED_INT) {
    throw poplar_error("[poplar::setHwSeeds] needs UNSIGNED_INT of tiles, workers and 4, " +
                       state.shapeToString() + "; got " + hwSeeds.elementType().toString() + " " +
                       hwSeeds.shapeToString() +
                       ". Use what getHwSeeds gives, or poprand::setSeed.");
  }
  prog.add(program::Copy(hwSeeds, state));
}

}  // namespace poplar
