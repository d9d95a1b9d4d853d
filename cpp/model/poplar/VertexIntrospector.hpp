#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "poplar/Target.hpp"
#include "poplar/Type.hpp"
#include "poplar/VectorLayout.hpp"

namespace ipujax::engine {
class GraphImpl;
struct VertexRecord;
}  // namespace ipujax::engine

namespace poplar {

/// A vertex field as an estimator sees it: sizes, and values if known when the graph is compiled.
class FieldData {
 public:
  class SizeT {
   public:
    explicit SizeT(std::size_t size) : size_(size) {}
    std::size_t size() const { return size_; }

   private:
    std::size_t size_;
  };

  const std::string& name() const { return name_; }
  unsigned rank() const { return rank_; }  ///< 0: a scalar; 1: a vector; 2: a list of vectors
  std::size_t size() const { return rank_ == 2 ? sizes_.size() : sizes_[0]; }
  /// Size of one vector of a list; throws poplar_error for other fields.
  std::size_t getSizeAtIndex(std::size_t i) const;
  SizeT operator[](std::size_t i) const { return SizeT(getSizeAtIndex(i)); }
  /// The model's vectors are a pointer and a size; the codelet's layout only counts in its state.
  layout::Vector getProfilerVectorLayout(std::size_t /*nestingLevel*/) const {
    return rank_ == 0 ? layout::Vector::NotAVector : layout::Vector::Span;
  }
  layout::VectorList getProfilerVectorListLayout() const { return layout::VectorList::NotAVector; }
  /// Throw poplar_error if the value is not known before the program runs.
  template <typename T>
  T getInitialValue(const Target&) const {
    return static_cast<T>(valueAt(0));
  }
  template <typename T>
  std::vector<T> getInitialValues(const Target&) const {
    std::vector<T> values;
    for (std::size_t i = 0; i < size(); ++i) values.push_back(static_cast<T>(valueAt(i)));
    return values;
  }

 private:
  friend class VertexIntrospector;
  double valueAt(std::size_t i) const;
  std::string name_;
  unsigned rank_ = 0;
  std::vector<std::size_t> sizes_{1};
  std::vector<double> values_;  ///< empty: not known
};

/// A vertex as an estimator of its cycles sees it.
class VertexIntrospector {
 public:
  /// Throws poplar_error for a field without an edge, a size or a value.
  FieldData getFieldInfo(const std::string& name) const;

  /// For the library.
  VertexIntrospector(ipujax::engine::GraphImpl& graph, const ipujax::engine::VertexRecord& vertex)
      : graph_(graph), vertex_(vertex) {}

 private:
  ipujax::engine::GraphImpl& graph_;
  const ipujax::engine::VertexRecord& vertex_;
};

}  // namespace poplar
