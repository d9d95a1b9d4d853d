#pragma once
#include <cmath>
#include <cstdint>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// Random tensors with the shape and mapping of `reference`. `seed` is null or two UNSIGNED_INT.
/// With a seed, the numbers depend only on the seed, seedModifier and the element's index (on
/// hardware also on the tile mapping), so a call with the same seed repeats them. Without one, they
/// come from the generator that setSeed sets, which advances with every call. The model uses
/// Philox4x32, not the IPU's own generator: distributions are the same, numbers are not.
namespace poprand {

/// Keeps each element of `input` with keepProbability, multiplied by `scale`; sets others to 0.
poplar::Tensor dropout(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t seedModifier,
                       const poplar::Tensor& input, const poplar::Tensor& reference,
                       double keepProbability, double scale, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});
poplar::Tensor dropout(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t seedModifier,
                       const poplar::Tensor& input, const poplar::Tensor& reference,
                       double keepProbability, double scale, bool outputClonesRef,
                       poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});

/// Makes one choice for each element of `reference`, which broadcasts to `input`'s shape.
poplar::Tensor shapedDropout(poplar::Graph& graph, const poplar::Tensor* seed,
                             std::uint32_t seedModifier, const poplar::Tensor& input,
                             const poplar::Tensor& reference, double keepProbability, double scale,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {});

/// FLOAT or HALF in [minVal, maxVal], or INT or UNSIGNED_INT in minVal .. maxVal, both included.
poplar::Tensor uniform(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t seedModifier,
                       const poplar::Tensor& reference, const poplar::Type& outType, double minVal,
                       double maxVal, poplar::program::Sequence& prog,
                       const poplar::DebugContext& debugContext = {});

/// base ** uniform(log minVal, log maxVal); 1 <= minVal < maxVal.
poplar::Tensor logUniform(poplar::Graph& graph, const poplar::Tensor* seed,
                          std::uint32_t seedModifier, const poplar::Tensor& reference,
                          const poplar::Type& outType, double minVal, double maxVal,
                          poplar::program::Sequence& prog, double base = M_E,
                          const poplar::DebugContext& debugContext = {});

/// 1 with probability `prob`, else 0.
poplar::Tensor bernoulli(poplar::Graph& graph, const poplar::Tensor* seed,
                         std::uint32_t seedModifier, const poplar::Tensor& reference,
                         const poplar::Type& outType, double prob, poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext = {});

poplar::Tensor normal(poplar::Graph& graph, const poplar::Tensor* seed, std::uint32_t seedModifier,
                      const poplar::Tensor& reference, const poplar::Type& outType, double mean,
                      double stdDev, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {});

/// Normal, redrawn if further than alpha * stdDev from the mean; alpha >= 0.1.
poplar::Tensor truncatedNormal(poplar::Graph& graph, const poplar::Tensor* seed,
                               std::uint32_t seedModifier, const poplar::Tensor& reference,
                               const poplar::Type& outType, double mean, double stdDev,
                               double alpha, poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {});

// Forms of SDKs before 1.0, without a seed.
inline poplar::Tensor dropout(poplar::Graph& graph, const poplar::Tensor& input,
                              const poplar::Tensor& reference, double keepProbability, double scale,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {}) {
  return dropout(graph, nullptr, 0, input, reference, keepProbability, scale, prog, debugContext);
}
inline poplar::Tensor uniform(poplar::Graph& graph, const poplar::Tensor& reference,
                              const poplar::Type& outType, double minVal, double maxVal,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {}) {
  return uniform(graph, nullptr, 0, reference, outType, minVal, maxVal, prog, debugContext);
}
inline poplar::Tensor bernoulli(poplar::Graph& graph, const poplar::Tensor& reference,
                                const poplar::Type& outType, double prob,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {}) {
  return bernoulli(graph, nullptr, 0, reference, outType, prob, prog, debugContext);
}
inline poplar::Tensor normal(poplar::Graph& graph, const poplar::Tensor& reference,
                             const poplar::Type& outType, double mean, double stdDev,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {}) {
  return normal(graph, nullptr, 0, reference, outType, mean, stdDev, prog, debugContext);
}
inline poplar::Tensor truncatedNormal(poplar::Graph& graph, const poplar::Tensor& reference,
                                      const poplar::Type& outType, double mean, double stdDev,
                                      double alpha, poplar::program::Sequence& prog,
                                      const poplar::DebugContext& debugContext = {}) {
  return truncatedNormal(graph, nullptr, 0, reference, outType, mean, stdDev, alpha, prog,
                         debugContext);
}

/// Seeds the generators of all tiles from two UNSIGNED_INT.
void setSeed(poplar::Graph& graph, const poplar::Tensor& masterSeed, std::uint32_t seedModifier,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace poprand
