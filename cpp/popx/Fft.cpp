#include "popx/Fft.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "popx/Type.hpp"
#include "popx/checks/Fft.hpp"

namespace popx {

namespace {
using poplar::Tensor;

static_assert(static_cast<int>(FftType::IRFFT) == static_cast<int>(native::FftType::IRFFT));

/// The number of elements, and of levels of butterflies: the sum of log2 over the lengths, where a
/// length with a large prime factor counts its two transforms of twice the size.
struct Work {
  double elements = 1;
  double levels = 0;
};

Work workOf(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& lengths,
            bool real) {
  Work work{static_cast<double>(native::elementsOf(shape))};
  for (const auto length : lengths) {
    const auto n = static_cast<std::int64_t>(length);
    if (n < 2) continue;
    if (native::largestPrimeFactor(n) > native::kLargestRadix) {
      const auto m = static_cast<double>(std::bit_ceil(2 * length - 1));
      work.levels += 2 * m / static_cast<double>(n) * std::log2(m);
    } else {
      work.levels += std::log2(static_cast<double>(n));
    }
  }
  if (real) work.elements /= 2;
  return work;
}

/// Per element in a radix-2 butterfly: 10 flops on 2 elements. Our estimates: f32v2 arithmetic
/// with its loads and stores; double in software, whose workers take turns.
double butterflyCycles(const poplar::Type& type) {
  return type == DOUBLE ? 2.5 * native::softwareMultiplyAddCycles(type.element()) : 5;
}

/// Passes are radix 4; those that need more elements than a tile holds exchange all of them.
native::Cost costOf(const Graph& graph, const Work& work, const poplar::Type& type) {
  native::Cost cost;
  cost.code_bytes = 4096;  // our estimate of radix 2, 3, 4, 5 and general codelets
  if (work.elements < 1) return cost;
  const poplar::Target& target = graph.getTarget();
  const double tiles = std::clamp<double>(std::ceil(work.elements / 32), 1, target.getNumTiles());
  const double per_tile = std::ceil(work.elements / tiles);
  const double passes = std::max(1.0, std::ceil(work.levels / 2));
  const double local = std::max(1.0, std::log2(per_tile) / 2);
  const double exchanges = tiles > 1 ? std::ceil(passes / local) : 0;
  const double bytes = per_tile * 2 * static_cast<double>(target.getTypeSize(type));
  for (int i = 0; i < static_cast<int>(passes); ++i) {
    native::addComputeSet(cost, target,
                          butterflyCycles(type) * per_tile * work.levels / passes + 60,
                          static_cast<std::uint64_t>(tiles));
  }
  for (int i = 0; i < static_cast<int>(exchanges); ++i) {
    native::addExchange(cost, target, {bytes * tiles, bytes});
  }
  cost.flops = 5 * work.elements * work.levels;
  cost.temporary_bytes = static_cast<std::uint64_t>(2 * bytes);
  if (exchanges > 0) cost.received_bytes = static_cast<std::uint64_t>(bytes);
  cost.vertex_state_bytes = 64;  // our estimate
  return cost;
}

}  // namespace

Parts fft(Graph& graph, const Parts& a, FftType type, const std::vector<std::size_t>& lengths,
          Sequence& prog, const DebugContext& debugContext) {
  const auto shape = fourier::resultShape(a, type, lengths);
  const bool real = fourier::isReal(type, false) || fourier::isReal(type, true);
  const auto& full = type == FftType::IRFFT ? shape : a[0].shape();
  native::StepSpec spec;
  spec.kernel = "popx.fft";
  spec.attributes.set("type", static_cast<std::int64_t>(type));
  spec.attributes.set("lengths", native::Attributes::Integers(lengths.begin(), lengths.end()));
  spec.cost = costOf(graph, workOf(full, lengths, real), a[0].elementType());
  for (const Tensor& part : a) spec.operands.push_back({part, native::Access::kRead, true});
  Parts result;
  for (int i = 0; i < (fourier::isReal(type, true) ? 1 : 2); ++i) {
    result.push_back(graph.addVariable(
        a[0].elementType(), shape, poplar::VariableMappingMethod::LINEAR, {debugContext, "fft"}));
    spec.operands.push_back({result.back(), native::Access::kWrite, true});
  }
  native::emit(graph, prog, std::move(spec), {debugContext, "fft"});
  return result;
}

}  // namespace popx
