#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/ElementType.hpp"

namespace ipujax::engine {

struct Pieces;

/// Where the elements of a tensor are. Element (i0, i1, ...) is element
/// `offset + sum(i_k * strides[k])` of the source: a whole variable, or the row-major elements of
/// several views one after another (`pieces`), as for concat and general reshapes.
struct View {
  ElementType type = ElementType::kFloat;
  std::vector<std::size_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  std::uint32_t variable = 0;
  std::shared_ptr<const Pieces> pieces;  ///< null if the source is `variable`

  std::size_t numElements() const;
  bool isStrided() const { return pieces == nullptr; }
  bool isRowMajor() const;  ///< strides are those of a compact row-major array
  bool isContiguous() const { return isStrided() && isRowMajor(); }
};

using ViewPtr = std::shared_ptr<const View>;
inline ViewPtr share(View view) { return std::make_shared<const View>(std::move(view)); }

struct Pieces {
  std::vector<View> views;
  std::vector<std::size_t> starts;  ///< of each view in the joined elements; one more: the total
};

std::size_t elementsOf(std::span<const std::size_t> shape);
std::string shapeText(const std::vector<std::size_t>& shape);  ///< "{2,3}"
std::vector<std::int64_t> rowMajorStrides(const std::vector<std::size_t>& shape);
View wholeVariable(std::uint32_t variable, ElementType type, std::vector<std::size_t> shape);

View reshapeView(const View& view, std::vector<std::size_t> shape);
View permuteView(const View& view, const std::vector<unsigned>& permutation);
View sliceView(const View& view, unsigned dimension, std::size_t begin, std::size_t end);
View concatViews(const std::vector<View>& views, unsigned dimension);
/// If all elements lie in one piece, the view of that piece; otherwise the view itself.
View simplifyView(View view);

/// Calls fn(variable, begin, length) for the runs of consecutive memory elements that make
/// up row-major elements [first, first + count) of the view, in order.
using RunFn = std::function<void(std::uint32_t variable, std::int64_t begin, std::size_t length)>;
void forEachRun(const View& view, std::size_t first, std::size_t count, const RunFn& fn);
void forEachRun(const View& view, const RunFn& fn);

}  // namespace ipujax::engine
