#include "poplar/Tensor.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "engine/graph/GraphImpl.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

using ipujax::engine::elementsOf;
using ipujax::engine::GraphImpl;
using ipujax::engine::shapeText;
using ipujax::engine::View;

namespace {

void checkDim(const View& view, unsigned dimension, const char* where) {
  if (dimension >= view.shape.size()) {
    throw index_error(std::string("[") + where + "] needs a dimension of a tensor of shape " +
                      shapeText(view.shape) + "; got " + std::to_string(dimension) +
                      ". Use a number below the rank.");
  }
}

View retyped(View view, ipujax::engine::ElementType type) {
  view.type = type;
  if (view.isStrided()) return view;
  auto pieces = std::make_shared<ipujax::engine::Pieces>(*view.pieces);
  for (View& piece : pieces->views) piece = retyped(std::move(piece), type);
  view.pieces = std::move(pieces);
  return view;
}

}  // namespace

Tensor::Tensor(GraphImpl* graph, std::shared_ptr<const View> view)
    : graph_(graph), view_(std::move(view)) {}

const View& Tensor::v() const {
  if (!view_)
    throw poplar_error(
        "[Tensor] needs a tensor of a graph; got an empty Tensor. Make it with addVariable.");
  return *view_;
}

Tensor Tensor::with(View view) const {
  Tensor result(graph_, std::make_shared<const View>(std::move(view)));
  result.metadata_ = metadata_;
  result.is_metadata_ = is_metadata_;
  return result;
}

Type Tensor::elementType() const {
  if (metadata_) return QUARTER;
  return is_metadata_ ? QUARTER_METADATA : Type(v().type);
}
const std::vector<std::size_t>& Tensor::shape() const { return v().shape; }
std::size_t Tensor::numElements() const { return v().numElements(); }

std::size_t Tensor::dim(unsigned i) const {
  checkDim(v(), i, "Tensor::dim");
  return v().shape[i];
}

Tensor Tensor::operator[](std::size_t i) const& {
  return slice(i, i + 1, 0).squeeze(std::vector<std::size_t>{0});
}

Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor result = *this;
  for (std::size_t i : indices) result = result[i];
  return result;
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  checkDim(v(), dimension, "Tensor::slice");
  if (begin > end || end > v().shape[dimension]) {
    throw index_error(
        "[Tensor::slice] needs begin <= end <= " + std::to_string(v().shape[dimension]) +
        " in dimension " + std::to_string(dimension) + " of shape " + shapeText(v().shape) +
        "; got " + std::to_string(begin) + ", " + std::to_string(end) +
        ". Use bounds within the dimension.");
  }
  return with(sliceView(v(), dimension, begin, end));
}

Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  if (begin.size() != end.size() || begin.size() > v().shape.size())
    throw index_error(
        "[Tensor::slice] needs one begin and end per dimension; got other numbers. Pass both for "
        "every dimension.");
  Tensor result = *this;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] != 0 || end[i] != v().shape[i])
      result = result.slice(begin[i], end[i], static_cast<unsigned>(i));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(ArrayRef<Interval> intervals, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const auto& interval : intervals) result.push_back(slice(interval, dimension));
  return result;
}

std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>>& intervals,
                                   unsigned dimension) const {
  std::vector<Tensor> result;
  for (const auto& list : intervals) {
    result.push_back(list.empty() ? slice(0, 0, dimension)
                                  : concat(slices(ArrayRef<Interval>(list), dimension), dimension));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(const ArrayRef<unsigned>& indices, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const unsigned i : indices) result.push_back(slice(i, std::size_t{i} + 1, dimension));
  return result;
}

Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  checkDim(v(), dimension, "Tensor::upsample");
  std::vector<std::size_t> shape = v().shape;
  shape[dimension] *= scale;
  return expand({dimension + std::size_t{1}}).broadcast(scale, dimension + 1).reshape(shape);
}

Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  checkDim(v(), dimension, "Tensor::subSample");
  if (stride == 0)
    throw index_error(
        "[Tensor::subSample] needs a stride of at least 1; got 0. Use 1 to take every element.");
  View view = v();
  view.shape[dimension] = (view.shape[dimension] + stride - 1) / stride;
  view.strides[dimension] *= stride;
  return with(simplifyView(std::move(view)));
}

Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  std::vector<std::size_t> target = shape.cloneAsVector();
  if (elementsOf(target) != numElements()) {
    throw poplar_error("[Tensor::reshape] needs a shape of " + std::to_string(numElements()) +
                       " elements for " + shapeText(v().shape) + "; got " + shapeText(target) +
                       ". Use a shape with as many elements.");
  }
  return with(reshapeView(v(), std::move(target)));
}

Tensor Tensor::reshapePartial(unsigned beginIndex, unsigned endIndex,
                              ArrayRef<std::size_t> newDims) const {
  const auto& old = v().shape;
  if (beginIndex > endIndex || endIndex > old.size())
    throw index_error(
        "[Tensor::reshapePartial] needs a range of dimensions; got one outside the rank. Use begin "
        "<= end <= rank.");
  std::vector<std::size_t> shape(old.begin(), old.begin() + beginIndex);
  shape.insert(shape.end(), newDims.begin(), newDims.end());
  shape.insert(shape.end(), old.begin() + endIndex, old.end());
  return reshape(shape);
}

Tensor Tensor::flatten() const { return reshape(std::vector<std::size_t>{numElements()}); }

Tensor Tensor::flatten(unsigned dimBegin, unsigned dimEnd) const {
  const auto& old = v().shape;
  if (dimBegin > dimEnd || dimEnd > old.size())
    throw index_error(
        "[Tensor::flatten] needs a range of dimensions; got one outside the rank. Use begin < end "
        "<= rank.");
  const std::size_t joined = elementsOf(std::span(old).subspan(dimBegin, dimEnd - dimBegin));
  return reshapePartial(dimBegin, dimEnd, std::vector<std::size_t>{joined});
}

Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  std::vector<unsigned> sorted = permutation.cloneAsVector();
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == v().shape.size();
  for (std::size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == i;
  if (!valid) {
    throw poplar_error("[Tensor::dimShuffle] needs a permutation of the dimensions of " +
                       shapeText(v().shape) + "; got another list. Name each dimension once.");
  }
  return with(permuteView(v(), permutation.cloneAsVector()));
}

Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const {
  if (source.size() != destination.size())
    throw poplar_error(
        "[Tensor::dimShufflePartial] needs as many sources as destinations; got different numbers. "
        "Pass one destination for each source.");
  const std::size_t rank = v().shape.size();
  std::vector<unsigned> permutation(rank, ~0u);
  std::vector<bool> taken(rank, false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    checkDim(v(), source[i], "Tensor::dimShufflePartial");
    checkDim(v(), destination[i], "Tensor::dimShufflePartial");
    permutation[destination[i]] = source[i];
    taken[source[i]] = true;
  }
  unsigned next = 0;
  for (auto& dimension : permutation) {
    if (dimension != ~0u) continue;
    while (taken[next]) ++next;
    dimension = next++;
  }
  return dimShuffle(permutation);
}

Tensor Tensor::dimRoll(unsigned dimIdx, unsigned newIdx) const {
  return dimShufflePartial(std::vector<unsigned>{dimIdx}, std::vector<unsigned>{newIdx});
}

Tensor Tensor::transpose() const {
  if (rank() != 2)
    throw poplar_error("[Tensor::transpose] needs a matrix; got " + shapeText(v().shape) +
                       ". Use dimShuffle for other ranks.");
  return dimShuffle(std::vector<unsigned>{1, 0});
}

Tensor Tensor::reverse(unsigned dimension) const {
  checkDim(v(), dimension, "Tensor::reverse");
  View view = v();
  if (view.shape[dimension] > 0) {
    view.offset += static_cast<std::int64_t>(view.shape[dimension] - 1) * view.strides[dimension];
    view.strides[dimension] = -view.strides[dimension];
  }
  return with(std::move(view));
}

Tensor Tensor::broadcast(unsigned n, unsigned dimension) const {
  checkDim(v(), dimension, "Tensor::broadcast");
  View view = v();
  if (view.shape[dimension] == 1) {
    view.shape[dimension] = n;
    view.strides[dimension] = 0;
    return with(std::move(view));
  }
  std::vector<std::size_t> shape = view.shape;
  shape[dimension] *= n;
  view.shape.insert(view.shape.begin() + dimension, n);
  view.strides.insert(view.strides.begin() + dimension, 0);
  return with(reshapeView(view, std::move(shape)));
}

void Tensor::broadcastToMatch(ArrayRef<std::size_t> shape) {
  if (rank() > shape.size())
    throw poplar_error("[Tensor::broadcastToMatch] needs a rank of at most " +
                       std::to_string(shape.size()) + "; got " + shapeText(v().shape) +
                       ". Flatten or squeeze it first.");
  View view = v();
  const std::size_t missing = shape.size() - view.shape.size();
  view.shape.insert(view.shape.begin(), missing, 1);
  view.strides.insert(view.strides.begin(), missing, 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (view.shape[i] == shape[i]) continue;
    if (view.shape[i] != 1)
      throw poplar_error("[Tensor::broadcastToMatch] needs sizes that agree or are 1; got " +
                         shapeText(v().shape) + " for " + shapeText(shape.cloneAsVector()) +
                         ". Reshape it first.");
    view.shape[i] = shape[i];
    view.strides[i] = 0;
  }
  *this = with(std::move(view));
}

Tensor Tensor::expand(ArrayRef<std::size_t> indices) const {
  std::vector<std::size_t> at = indices.cloneAsVector();
  std::sort(at.rbegin(), at.rend());
  View view = v();
  for (std::size_t i : at) {
    if (i > view.shape.size())
      throw index_error(
          "[Tensor::expand] needs indices up to the rank; got a larger one. Use the rank to add a "
          "last dimension.");
    view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(i), 1);
    view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(i), 0);
  }
  return with(std::move(view));
}

Tensor Tensor::squeeze(ArrayRef<std::size_t> indices) const {
  std::vector<std::size_t> at = indices.cloneAsVector();
  std::sort(at.rbegin(), at.rend());
  View view = v();
  for (std::size_t i : at) {
    if (i >= view.shape.size() || view.shape[i] != 1)
      throw poplar_error("[Tensor::squeeze] needs dimensions of size 1 of " + shapeText(v().shape) +
                         "; got " + std::to_string(i) + ". Leave out other dimensions.");
    view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(i));
    view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return with(std::move(view));
}

Tensor Tensor::squeeze() const {
  std::vector<std::size_t> ones;
  for (std::size_t i = 0; i < shape().size(); ++i) {
    if (shape()[i] == 1) ones.push_back(i);
  }
  return squeeze(ones);
}

Tensor Tensor::reinterpret(const Type& type) const {
  if (type.requiresMetadata() ? !hasMetadata() : sizeOf(type.storage()) != sizeOf(v().type)) {
    throw type_error("[Tensor::reinterpret] needs a type of the same size as " +
                     elementType().toString() + "; got " + type.toString() +
                     ". Use popops::cast to convert values.");
  }
  if (type.requiresMetadata()) return *this;
  const Tensor result(graph_, std::make_shared<const View>(retyped(v(), type.storage())));
  return type == QUARTER_METADATA ? result.asMetadata() : result;
}

std::string Tensor::shapeToString() const { return shapeText(v().shape); }

void Tensor::dump() const { dump(std::cout); }
void Tensor::dump(std::ostream& os) const { os << *this << '\n'; }

bool Tensor::operator==(const Tensor& o) const {
  if (!view_ || !o.view_) return view_ == o.view_;
  const View& a = v();
  const View& b = o.v();
  if (graph_ != o.graph_ || elementType() != o.elementType() || a.shape != b.shape) return false;
  const bool same_view = a.strides == b.strides && a.offset == b.offset && a.pieces == b.pieces &&
                         (a.pieces || a.variable == b.variable);
  return same_view || getVarRegions() == o.getVarRegions();
}

std::ostream& operator<<(std::ostream& os, const Tensor& tensor) {
  return os << tensor.elementType() << " " << tensor.shapeToString();
}

Tensor concat(ArrayRef<Tensor> ts, unsigned dimension) {
  if (ts.empty())
    throw poplar_error("[concat] needs at least one tensor; got none. Pass the tensors to join.");
  std::vector<View> views;
  for (const auto& t : ts) {
    bool match =
        t.elementType() == ts[0].elementType() && t.rank() == ts[0].rank() && dimension < t.rank();
    for (unsigned i = 0; match && i < t.rank(); ++i)
      match = i == dimension || t.dim(i) == ts[0].dim(i);
    if (!match) {
      throw poplar_error("[concat] needs tensors of one type and shape but for dimension " +
                         std::to_string(dimension) + "; got " + ts[0].shapeToString() + " and " +
                         t.shapeToString() + ". Reshape or cast them first.");
    }
    if (t.graphImpl() != ts[0].graphImpl())
      throw poplar_error(
          "[concat] needs tensors of one graph; got some of two. Make all of them with one graph.");
    if (t.hasMetadata() && t.getMetadata() != ts[0].getMetadata())
      throw tensor_metadata_error(
          "[concat] needs quarters with the same tensor of metadata; got two of them. Cast one.");
    views.push_back(*t.view());
  }
  const Tensor joined(ts[0].graphImpl(),
                      std::make_shared<const View>(concatViews(views, dimension)));
  if (ts[0].hasMetadata()) return joined.asQuarters(ts[0].getMetadata());
  return ts[0].elementType() == QUARTER_METADATA ? joined.asMetadata() : joined;
}

Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension) {
  return concat(std::vector<Tensor>{first, second}, dimension);
}

Tensor append(const Tensor& first, const Tensor& second, unsigned dimension) {
  return concat(first, second.expand(std::vector<std::size_t>{dimension}), dimension);
}

Tensor append(const Tensor& first, const Tensor& second) { return append(first, second, 0); }

}  // namespace poplar
