#pragma once
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/Interval.hpp"
#include "poplar/Type.hpp"
#include "poplar/VariableRef.hpp"

namespace ipujax::engine {
class GraphImpl;
struct View;
}  // namespace ipujax::engine

namespace poplar {

class Graph;

/// How Tensor::upsample fills in elements.
enum class UpsampleMethod { REPEAT };

/// A view over elements of the graph's variables: shape, type, and where each element is.
/// Copying a Tensor copies the view, never data. All members that return a Tensor are free.
class Tensor {
 public:
  Tensor() = default;
  /// For the library: a tensor over `view`. Users get tensors from a Graph.
  Tensor(ipujax::engine::GraphImpl* graph, std::shared_ptr<const ipujax::engine::View> view);
  /// For the library: reinterprets the bytes as quarters with `metadata`, or as such metadata.
  Tensor asQuarters(const Tensor& metadata) const;
  Tensor asMetadata() const;

  bool valid() const { return view_ != nullptr; }
  Type elementType() const;
  unsigned rank() const { return static_cast<unsigned>(shape().size()); }
  const std::vector<std::size_t>& shape() const;
  std::size_t dim(unsigned i) const;
  std::size_t numElements() const;

  Tensor operator[](std::size_t i) const&;
  Tensor index(ArrayRef<std::size_t> indices) const;
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension = 0) const;
  Tensor slice(const Interval& region, unsigned dimension = 0) const {
    return slice(region.begin(), region.end(), dimension);
  }
  Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  std::vector<Tensor> slices(ArrayRef<Interval> intervals, unsigned dimension = 0) const;
  std::vector<Tensor> slices(const std::vector<std::vector<Interval>>& intervals,
                             unsigned dimension = 0) const;  ///< each list concatenated
  std::vector<Tensor> slices(const ArrayRef<unsigned>& indices, unsigned dimension = 0) const;
  /// Repeats every element `scale` times along the dimension.
  Tensor upsample(unsigned scale, unsigned dimension,
                  UpsampleMethod method = UpsampleMethod::REPEAT) const;
  Tensor subSample(unsigned stride, unsigned dimension) const;
  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor reshapePartial(unsigned beginIndex, unsigned endIndex,
                        ArrayRef<std::size_t> newDims) const;
  Tensor flatten() const;
  Tensor flatten(unsigned dimBegin, unsigned dimEnd) const;
  Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  Tensor dimRoll(unsigned dimIdx, unsigned newIdx = 0) const;
  Tensor transpose() const;
  Tensor reverse(unsigned dimension) const;
  Tensor broadcast(unsigned n, unsigned dimension) const;
  void broadcastToMatch(ArrayRef<std::size_t> shape);  ///< numpy rules, in place on the view
  Tensor expand(ArrayRef<std::size_t> indices) const;
  Tensor squeeze(ArrayRef<std::size_t> indices) const;
  Tensor squeeze() const;
  Tensor reinterpret(const Type& type) const;  ///< to a type of the same size

  bool isContiguous() const;         ///< one run of one variable, row-major
  bool isParallelWriteable() const;  ///< no element appears twice
  bool containsAliases() const { return !isParallelWriteable(); }
  bool containsConstant() const;
  bool intersectsWith(const Tensor& other) const;  ///< may share an element (conservative)
  /// Maximal runs of elements in consecutive memory, as intervals of the flattened tensor.
  std::vector<Interval> getContiguousRegions() const;
  /// The same as intervals of variables.
  std::vector<VariableInterval> getVarRegions() const;

  std::string shapeToString() const;
  void dump() const;                  ///< writes what operator<< does to stdout
  void dump(std::ostream& os) const;  ///< the same to `os`
  /// Writes the intervals of variables that hold the elements, one per line.
  void outputRegions(std::ostream& os) const;
  void dumpRegions() const;  ///< the same to stdout
  std::string getDebugStr() const;
  std::string getVarStr() const;  ///< names of its variables, in order
  /// Format and scale of quarters: one element of QUARTER_METADATA. Throws tensor_metadata_error
  /// for a tensor of another type.
  Tensor getMetadata() const;
  bool hasMetadata() const { return metadata_ != nullptr; }
  bool operator==(const Tensor& o) const;
  bool operator!=(const Tensor& o) const { return !(*this == o); }

  /// For the library.
  const std::shared_ptr<const ipujax::engine::View>& view() const { return view_; }
  operator const std::shared_ptr<const ipujax::engine::View>&() const { return view_; }  // NOLINT
  ipujax::engine::GraphImpl* graphImpl() const { return graph_; }

 private:
  const ipujax::engine::View& v() const;
  Tensor with(ipujax::engine::View view) const;
  ipujax::engine::GraphImpl* graph_ = nullptr;
  std::shared_ptr<const ipujax::engine::View> view_;
  std::shared_ptr<const Tensor> metadata_;  ///< only for quarters
  bool is_metadata_ = false;
};

std::ostream& operator<<(std::ostream& os, const Tensor& tensor);

/// Concatenates along an existing dimension.
Tensor concat(ArrayRef<Tensor> ts, unsigned dimension = 0);
Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension = 0);
inline Tensor concat(std::initializer_list<Tensor> ts, unsigned dimension = 0) {
  return concat(ArrayRef<Tensor>(ts), dimension);
}
/// Appends one slice: `second` has one dimension less than `first`.
Tensor append(const Tensor& first, const Tensor& second, unsigned dimension);
Tensor append(const Tensor& first, const Tensor& second);

}  // namespace poplar
