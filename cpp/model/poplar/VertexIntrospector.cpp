#include "poplar/VertexIntrospector.hpp"

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/PerfEstimateFunc.hpp"

namespace poplar {

std::size_t FieldData::getSizeAtIndex(std::size_t i) const {
  if (rank_ == 2 && i < sizes_.size()) return sizes_[i];
  throw poplar_error(
      "[FieldData::getSizeAtIndex] needs a list of vectors and one of its indices; "
      "got index " +
      std::to_string(i) + " of '" + name_ + "'. Use size() of other fields.");
}

double FieldData::valueAt(std::size_t i) const {
  if (i < values_.size()) return values_[i];
  throw poplar_error(
      "[FieldData::getInitialValue] needs a field with a value before the program "
      "runs; got '" +
      name_ + "'. Use its size alone.");
}

FieldData VertexIntrospector::getFieldInfo(const std::string& name) const {
  FieldData field;
  field.name_ = name;
  if (const auto edge = vertex_.edges.find(name); edge != vertex_.edges.end()) {
    const auto& views = edge->second.views;
    field.rank_ = edge->second.is_list ? 2 : views[0]->shape.empty() ? 0 : 1;
    field.sizes_.clear();
    for (const auto& view : views) field.sizes_.push_back(view ? view->numElements() : 0);
    if (field.rank_ < 2) {
      std::vector<double> values(field.sizes_[0]);
      if (Graph::of(graph_).getConstantValue(Tensor(&graph_, views[0]), values.data()))
        field.values_ = std::move(values);
    }
    return field;
  }
  const auto size = vertex_.sizes.find(name);
  const auto values = vertex_.values.find(name);
  if (size == vertex_.sizes.end() && values == vertex_.values.end())
    throw poplar_error("[VertexIntrospector] needs a field with an edge, a size or a value; got '" +
                       name + "' of " + vertex_.type + ". Connect or set it.");
  field.rank_ = size == vertex_.sizes.end() ? 0 : 1;
  if (field.rank_ == 1) field.sizes_ = {size->second};
  if (values != vertex_.values.end()) {
    field.values_.resize(field.sizes_[0]);
    for (const auto& [i, value] : values->second)
      if (i < field.values_.size()) field.values_[i] = value;
  }
  return field;
}

void Graph::registerPerfEstimator(StringRef vertexTypeName, PerfEstimateFunc f) {
  auto& store = impl().vertices;
  if (!store) store = std::make_shared<ipujax::engine::VertexStore>();
  store->estimators[ipujax::engine::normaliseTypeName(std::string(vertexTypeName))] =
      [graph = &impl(), target = target_,
       f = std::move(f)](const ipujax::engine::VertexRecord& vertex) {
        const auto estimate = f(VertexIntrospector(*graph, vertex), target);
        return std::pair(estimate.cycles, estimate.flops);
      };
}

namespace layout {

std::string to_string(Vector layout) {
  constexpr const char* kNames[] = {"NotAVector",  "Span",        "ShortSpan",   "OnePtr",
                                    "ScaledPtr32", "ScaledPtr64", "ScaledPtr128"};
  return kNames[static_cast<int>(layout)];
}

std::string to_string(VectorList layout) {
  constexpr const char* kNames[] = {"NotAVector",   "OnePtr", "ScaledPtr32",   "ScaledPtr64",
                                    "ScaledPtr128", "DeltaN", "DeltaNElements"};
  return kNames[static_cast<int>(layout)];
}

}  // namespace layout
}  // namespace poplar
