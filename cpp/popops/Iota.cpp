#include "popops/Iota.hpp"

#include <cmath>

#include "engine/Half.hpp"
#include "engine/Kernel.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/kernels/ReduceLoops.hpp"
#include "poplar/exceptions.hpp"

namespace popops {

namespace {

namespace engine = ipujax::engine;
using engine::ElementType;
using engine::reduction::LoopDim;
using engine::reduction::Odometer;

template <class T>
void fillLine(std::byte* out, std::int64_t stride, std::int64_t start, std::int64_t n) {
  T* values = reinterpret_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) values[i * stride] = static_cast<T>(start + i);
}

void fillHalfLine(std::byte* out, std::int64_t stride, std::int64_t start, std::int64_t n) {
  std::uint16_t* values = reinterpret_cast<std::uint16_t*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    values[i * stride] = engine::floatToHalf(static_cast<float>(start + i));
  }
}

using Line = void (*)(std::byte*, std::int64_t, std::int64_t, std::int64_t);

Line lineOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return fillLine<float>;
    case ElementType::kHalf:
      return fillHalfLine;
    default:
      break;
  }
  switch (sizeOf(type)) {
    case 1:
      return fillLine<std::uint8_t>;
    case 2:
      return fillLine<std::uint16_t>;
    case 4:
      return fillLine<std::uint32_t>;
    default:
      return fillLine<std::uint64_t>;
  }
}

std::unique_ptr<engine::Kernel> makeIota(const engine::StepDesc& step) {
  const auto& out = step.operands[0];
  const auto dim = static_cast<std::size_t>(step.attributes.integer("dim"));
  const std::int64_t start = step.attributes.integer("start");
  std::vector<LoopDim> others;
  for (std::size_t d = 0; d < out.shape.size(); ++d) {
    if (d != dim) others.push_back({out.shape[d], 0, out.strides[d]});
  }
  return engine::kernelOf([others, start, line = lineOf(out.type), n = out.shape[dim],
                           stride = out.strides[dim],
                           bytes = static_cast<std::int64_t>(sizeOf(out.type))](
                              engine::RunContext&, std::span<std::byte* const> pointers) {
    const std::int64_t lines = engine::reduction::volumeOf(others);
    if (lines == 0) return;
    Odometer at(others, 0);
    for (std::int64_t i = 0; i < lines; ++i, at.next()) {
      line(pointers[0] + at.out * bytes, stride, start, n);
    }
  });
}

void checkIota(engine::StepCheck& check) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  check.operands(1);
  check.integer("dim", 0, check.written(0).rank() - 1);
  check.integer("start", -kMost, kMost);
}
const engine::RegisterKernel kIota{"popops.iota", makeIota, checkIota};

}  // namespace

void iotaAlong(poplar::Graph& graph, const poplar::Tensor& t, unsigned dim, std::int64_t start,
               poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  if (dim >= t.rank() || t.elementType() == poplar::BOOL) {
    throw poplar::poplar_error("[popops::iota] needs a tensor of numbers with dimension " +
                               std::to_string(dim) + "; got " + t.elementType().toString() + " " +
                               t.shapeToString() + ". Check the tensor.");
  }
  engine::StepSpec spec;
  spec.kernel = "popops.iota";
  spec.operands = {{t, engine::Access::kWrite, false}};
  spec.attributes.set("dim", std::int64_t{dim}).set("start", start);
  if (t.numElements() > 0) {
    // popopsCycleEstimators.cpp: 14 + 3 worker cycles a vector.
    const poplar::Target& target = graph.getTarget();
    const engine::Placement at = engine::placementOf(graph, t);
    const double vector = target.getVectorWidth(t.elementType());
    const double worker = std::ceil(static_cast<double>(at.max_elements_per_tile) / 6 / vector);
    engine::addComputeSet(spec.cost, target, 11 + 6 * (14 + 3 * worker), at.tiles_used);
  }
  spec.cost.vertex_state_bytes = 6 * 12;
  spec.cost.code_bytes = 120;  // our estimate
  engine::emit(graph, prog, std::move(spec), {debugContext, "iota"});
}

}  // namespace popops
