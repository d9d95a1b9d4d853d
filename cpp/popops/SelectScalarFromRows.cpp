#include "popops/SelectScalarFromRows.hpp"

#include <cstring>
#include <string>

#include "engine/Kernel.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"

namespace popops {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;
using ipujax::engine::Kernel;
using ipujax::engine::RunContext;
using ipujax::engine::StepDesc;

constexpr std::uint32_t kMaskedLabel = ~0u;  // popops: EncodingConstants.hpp

/// T: the bits of one element; zero is 0 and `nan` the bits of a NaN.
template <class T>
std::unique_ptr<Kernel> makeTyped(const StepDesc& step, T nan) {
  const auto rows = step.operands[0].shape[0];
  const auto columns = static_cast<std::uint32_t>(step.operands[0].shape[1]);
  const auto row = step.operands[0].strides[0];
  const auto column = step.operands[0].strides[1];
  const auto index = step.operands[1].strides[0];
  const auto to = step.operands[2].strides[0];
  return ipujax::engine::kernelOf([=](RunContext&, std::span<std::byte* const> p) {
    const auto* params = reinterpret_cast<const T*>(p[0]);
    const auto* indices = reinterpret_cast<const std::uint32_t*>(p[1]);
    auto* out = reinterpret_cast<T*>(p[2]);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::uint32_t at = indices[i * index];
      out[i * to] = at == kMaskedLabel ? T{0} : at < columns ? params[i * row + at * column] : nan;
    }
  });
}

std::unique_ptr<Kernel> makeSelect(const StepDesc& step) {
  if (sizeOf(step.operands[0].type) == 4) return makeTyped<std::uint32_t>(step, 0x7fc00000u);
  return makeTyped<std::uint16_t>(step, 0x7e00u);
}

void checkSelect(ipujax::engine::StepCheck& check) {
  check.operands(3);
  const auto params = check.read(0).isFloating().hasRank(2);
  check.read(1).isInteger().isOfBytes(4).hasShape({&params->shape[0], 1});
  check.written(2).hasTypeOf(params).hasShape({&params->shape[0], 1});
}

const ipujax::engine::RegisterKernel kSelect{"popops.select_scalar_from_rows", makeSelect,
                                             checkSelect};

Cost selectCost(const poplar::Graph& graph, const poplar::Tensor& params,
                const poplar::Tensor& indices, const poplar::Tensor& out) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, params);
  const auto rows = static_cast<double>(
      params.dim(1) ? ipujax::engine::ceilDiv(placed.max_elements_per_tile, params.dim(1)) : 0);
  addExchange(cost, target, ipujax::engine::exchangeBetween(graph, indices, out));
  // Estimate after popops' SelectFromInterval codelet: one index compared and one element loaded.
  addComputeSet(cost, target, 11 + 6.0 * (12 + 10 * rows), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 200;
  return cost;
}

}  // namespace

poplar::Tensor selectScalarFromRows(poplar::Graph& graph, const poplar::Tensor& params,
                                    const poplar::Tensor& indices, poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  const bool types =
      (params.elementType() == poplar::FLOAT || params.elementType() == poplar::HALF) &&
      (indices.elementType() == poplar::UNSIGNED_INT || indices.elementType() == poplar::INT);
  if (!types || params.rank() != 2 || indices.rank() != 1 || indices.dim(0) != params.dim(0)) {
    throw poplar::poplar_error(
        "[popops::selectScalarFromRows] needs params [n, columns] of FLOAT or HALF and indices [n] "
        "of UNSIGNED_INT; got " +
        params.shapeToString() + " " + params.elementType().toString() + " and " +
        indices.shapeToString() + " " + indices.elementType().toString() +
        ". Reshape or cast them.");
  }
  const auto out = graph.addVariable(params.elementType(), {params.dim(0)}, debugContext);
  poputil::mapTensorLinearly(graph, out);
  ipujax::engine::StepSpec step;
  step.kernel = "popops.select_scalar_from_rows";
  step.operands = {{params, Access::kRead}, {indices, Access::kRead}, {out, Access::kWrite}};
  step.cost = selectCost(graph, params, indices, out);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return out;
}

}  // namespace popops
