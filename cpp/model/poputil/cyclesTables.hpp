#pragma once
#include <string>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/PerfEstimateFunc.hpp"
#include "poplar/Target.hpp"
#include "poplar/VertexIntrospector.hpp"
#include "poputil/VertexTemplates.hpp"
#include "poputil/exceptions.hpp"

// Macros with which libraries of codelets define their estimators: a function for each codelet,
// fields read by name, and a table. Source: PopLibs include/poputil/cyclesTables.hpp.
#define MAKE_PERF_ESTIMATOR_NAME(codelet) getPerfEstimateFor##codelet
#define CYCLE_ESTIMATOR_ENTRY_NOPARAMS(ns, codelet) \
  ::poputil::internal::makePerfEstimatorEntry(#ns "::" #codelet, MAKE_PERF_ESTIMATOR_NAME(codelet))
#define CYCLE_ESTIMATOR_ENTRY(ns, codelet, ...)                  \
  ::poputil::internal::makePerfEstimatorEntry(#ns "::" #codelet, \
                                              MAKE_PERF_ESTIMATOR_NAME(codelet), __VA_ARGS__)
#define CODELET_FIELD(field) const auto field = vertex.getFieldInfo(#field)
#define CODELET_SCALAR_VAL(field, type) \
  const auto field = vertex.getFieldInfo(#field).getInitialValue<type>(target);
#define CODELET_VECTOR_VALS(field, type) \
  const auto field = vertex.getFieldInfo(#field).getInitialValues<type>(target);

namespace poputil {
namespace internal {

using PerfEstimatorTable = std::vector<std::pair<std::string, poplar::PerfEstimateFunc>>;

/// The row of `codelet`<args...>: `estimate(vertex, target, args...)`.
template <typename F, typename... Args>
std::pair<std::string, poplar::PerfEstimateFunc> makePerfEstimatorEntry(const std::string& codelet,
                                                                        F estimate, Args... args) {
  return {templateVertex(codelet, args...),
          [estimate, args...](const poplar::VertexIntrospector& vertex,
                              const poplar::Target& target) -> poplar::VertexPerfEstimate {
            return estimate(vertex, target, args...);
          }};
}

inline void registerPerfFunctions(poplar::Graph& graph, const PerfEstimatorTable& table) {
  for (const auto& [codelet, estimate] : table) graph.registerPerfEstimator(codelet, estimate);
}

}  // namespace internal
}  // namespace poputil
