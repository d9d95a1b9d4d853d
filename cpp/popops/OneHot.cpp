#include "popops/OneHot.hpp"

#include <cstring>
#include <string>

#include "engine/Kernel.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "poplar/exceptions.hpp"

namespace popops {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;
using ipujax::engine::ElementType;
using ipujax::engine::Kernel;
using ipujax::engine::RunContext;
using ipujax::engine::StepDesc;

template <class I>
std::int64_t readIndex(const std::byte* p) {
  I value;
  std::memcpy(&value, p, sizeof(I));
  return static_cast<std::int64_t>(value);  // an unsigned mask becomes negative or too large
}

using ReadIndex = std::int64_t (*)(const std::byte*);

ReadIndex indexReader(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return readIndex<std::int8_t>;
    case ElementType::kUInt8:
      return readIndex<std::uint8_t>;
    case ElementType::kInt16:
      return readIndex<std::int16_t>;
    case ElementType::kUInt16:
      return readIndex<std::uint16_t>;
    case ElementType::kInt32:
      return readIndex<std::int32_t>;
    case ElementType::kUInt32:
      return readIndex<std::uint32_t>;
    case ElementType::kInt64:
      return readIndex<std::int64_t>;
    case ElementType::kUInt64:
      return readIndex<std::uint64_t>;
    default:
      return nullptr;
  }
}

/// Operands: indices, on, off, encoded. T: the bits of one element.
template <class T>
std::unique_ptr<Kernel> makeTyped(const StepDesc& step) {
  const ReadIndex read = indexReader(step.operands[0].type);
  const auto rows = step.operands[3].shape[0];
  const auto columns = step.operands[3].shape[1];
  const auto index =
      step.operands[0].strides[0] * static_cast<std::int64_t>(sizeOf(step.operands[0].type));
  const auto row = step.operands[3].strides[0];
  const auto column = step.operands[3].strides[1];
  return ipujax::engine::kernelOf([=](RunContext& context, std::span<std::byte* const> p) {
    const T on = *reinterpret_cast<const T*>(p[1]);
    const T off = *reinterpret_cast<const T*>(p[2]);
    auto* out = reinterpret_cast<T*>(p[3]);
    const std::int64_t grain = 1 + 65536 / (columns + 1);
    context.pool.parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) out[i * row + j * column] = off;
        const std::int64_t at = read(p[0] + i * index);
        if (at >= 0 && at < columns) out[i * row + at * column] = on;
      }
    });
  });
}

std::unique_ptr<Kernel> makeOneHot(const StepDesc& step) {
  switch (sizeOf(step.operands[3].type)) {
    case 1:
      return makeTyped<std::uint8_t>(step);
    case 2:
      return makeTyped<std::uint16_t>(step);
    case 4:
      return makeTyped<std::uint32_t>(step);
    default:
      return makeTyped<std::uint64_t>(step);
  }
}

void checkOneHot(ipujax::engine::StepCheck& check) {
  check.operands(4);
  const auto encoded = check.written(3).hasRank(2);
  check.read(0).isInteger().hasShape({&encoded->shape[0], 1});
  check.read(1).isOne().hasTypeOf(encoded);
  check.read(2).isOne().hasTypeOf(encoded);
}

const ipujax::engine::RegisterKernel kOneHot{"popops.one_hot", makeOneHot, checkOneHot};

Cost oneHotCost(const poplar::Graph& graph, const poplar::Tensor& encoded) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, encoded);
  if (placed.elements == 0) return cost;
  const auto indices = ipujax::engine::ceilDiv(placed.max_elements_per_tile, encoded.dim(1));
  const auto bytes = static_cast<double>(4 * indices);
  addExchange(cost, target, {bytes * static_cast<double>(placed.tiles_used), bytes});
  // popops: popopsCycleEstimators.cpp: one-hot 11 + 74 per index, after a fill of the output.
  const auto vector = std::max<std::uint64_t>(1, 8 / target.getTypeSize(encoded.elementType()));
  const auto filled =
      ipujax::engine::ceilDiv(placed.max_elements_per_tile, vector * target.getNumWorkerContexts());
  addComputeSet(cost, target,
                11 + 6.0 * (26 + static_cast<double>(filled)) + 74.0 * static_cast<double>(indices),
                placed.tiles_used);
  cost.vertex_state_bytes = 28;
  cost.code_bytes = 250;
  return cost;
}

}  // namespace

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::Tensor& on, const poplar::Tensor& off,
                  const poplar::DebugContext& debugContext) {
  const bool good = indices.rank() == 1 && encoded.rank() == 2 &&
                    indices.dim(0) == encoded.dim(0) && on.numElements() == 1 &&
                    off.numElements() == 1 && on.elementType() == encoded.elementType() &&
                    off.elementType() == encoded.elementType() &&
                    indexReader(indices.elementType().element()) != nullptr;
  if (!good) {
    throw poplar::poplar_error(
        "[popops::encodeOneHot] needs integer indices [n], encoded [n, classes] and one-element on "
        "and off of encoded's type; got indices " +
        indices.shapeToString() + ", encoded " + encoded.shapeToString() +
        ". Reshape or cast them.");
  }
  ipujax::engine::StepSpec step;
  step.kernel = "popops.one_hot";
  step.operands = {{indices, Access::kRead},
                   {on, Access::kRead},
                   {off, Access::kRead},
                   {encoded, Access::kWrite}};
  step.cost = oneHotCost(graph, encoded);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
}

void encodeOneHot(poplar::Graph& graph, const poplar::Tensor& indices,
                  const poplar::Tensor& encoded, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debugContext) {
  const poplar::Type type = encoded.elementType();
  const auto on = graph.addConstant<unsigned>(type, {1}, 1u, {debugContext, "on"});
  const auto off = graph.addConstant<unsigned>(type, {1}, 0u, {debugContext, "off"});
  graph.setTileMapping(on, 0);
  graph.setTileMapping(off, 0);
  encodeOneHot(graph, indices, encoded, prog, on, off, debugContext);
}

}  // namespace popops
