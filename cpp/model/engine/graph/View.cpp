#include "engine/graph/View.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "engine/Errors.hpp"

namespace ipujax::engine {

std::size_t elementsOf(std::span<const std::size_t> shape) {
  constexpr std::size_t kMost = std::numeric_limits<std::int64_t>::max();
  if (std::ranges::find(shape, std::size_t{0}) != shape.end()) return 0;
  std::size_t elements = 1;
  for (const std::size_t size : shape) {
    if (size > kMost / elements)
      throw poplar_error(
          "[Tensor] needs a shape of fewer than 2^63 elements; got a product of sizes beyond that. "
          "Use a smaller shape.");
    elements *= size;
  }
  return elements;
}

std::size_t View::numElements() const { return elementsOf(shape); }

bool View::isRowMajor() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= static_cast<std::int64_t>(shape[i]);
  }
  return true;
}

std::string shapeText(const std::vector<std::size_t>& shape) {
  std::string text = "{";
  for (const std::size_t size : shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "}";
}

std::vector<std::int64_t> rowMajorStrides(const std::vector<std::size_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= static_cast<std::int64_t>(shape[i]);
  }
  return strides;
}

View wholeVariable(std::uint32_t variable, ElementType type, std::vector<std::size_t> shape) {
  View view;
  view.type = type;
  view.strides = rowMajorStrides(shape);
  view.shape = std::move(shape);
  view.variable = variable;
  return view;
}

namespace {

View joined(std::vector<View> views, ElementType type, std::vector<std::size_t> shape) {
  auto pieces = std::make_shared<Pieces>();
  pieces->starts.push_back(0);
  for (const auto& view : views)
    pieces->starts.push_back(pieces->starts.back() + view.numElements());
  pieces->views = std::move(views);
  View view = wholeVariable(0, type, std::move(shape));
  view.pieces = std::move(pieces);
  return view;
}

/// The strides that show `view` in `shape` without moving elements, if there are any.
std::optional<std::vector<std::int64_t>> stridesFor(const View& view,
                                                    const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> old_shape;
  std::vector<std::int64_t> old_strides;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1) continue;
    old_shape.push_back(view.shape[i]);
    old_strides.push_back(view.strides[i]);
  }
  std::vector<std::int64_t> strides(shape.size(), 0);
  std::size_t o = 0;
  std::size_t n = 0;
  while (o < old_shape.size() && n < shape.size()) {
    std::size_t o_end = o;
    std::size_t n_end = n;
    std::size_t old_size = old_shape[o_end++];
    std::size_t new_size = shape[n_end++];
    while (old_size != new_size) {
      if (new_size < old_size) {
        new_size *= shape[n_end++];
      } else {
        old_size *= old_shape[o_end++];
      }
    }
    for (std::size_t k = o; k + 1 < o_end; ++k) {
      if (old_strides[k] != old_strides[k + 1] * static_cast<std::int64_t>(old_shape[k + 1]))
        return std::nullopt;
    }
    std::int64_t stride = old_strides[o_end - 1];
    for (std::size_t k = n_end; k-- > n;) {
      strides[k] = stride;
      stride *= static_cast<std::int64_t>(shape[k]);
    }
    o = o_end;
    n = n_end;
  }
  return strides;
}

struct Reach {
  std::int64_t low;
  std::int64_t high;
};

Reach reachOf(const View& view) {
  Reach reach{view.offset, view.offset};
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const std::int64_t span = static_cast<std::int64_t>(view.shape[i] - 1) * view.strides[i];
    (span < 0 ? reach.low : reach.high) += span;
  }
  return reach;
}

}  // namespace

View simplifyView(View view) {
  while (view.pieces && view.numElements() != 0) {
    const auto& starts = view.pieces->starts;
    const Reach reach = reachOf(view);
    const auto next =
        std::upper_bound(starts.begin(), starts.end(), static_cast<std::size_t>(reach.low));
    const std::size_t k = static_cast<std::size_t>(next - starts.begin()) - 1;
    if (static_cast<std::size_t>(reach.high) >= starts[k + 1]) return view;
    const View& piece = view.pieces->views[k];
    const auto start = static_cast<std::int64_t>(starts[k]);
    if (piece.isRowMajor()) {
      view.offset += piece.offset - start;
      view.variable = piece.variable;
      view.pieces = piece.pieces;
      continue;
    }
    if (view.isRowMajor() && view.offset == start && view.numElements() == piece.numElements()) {
      if (auto strides = stridesFor(piece, view.shape)) {
        View same = piece;
        same.type = view.type;
        same.shape = view.shape;
        same.strides = std::move(*strides);
        return same;
      }
    }
    if (starts.size() > 2) {
      view.offset -= start;
      view.pieces = std::make_shared<Pieces>(Pieces{{piece}, {0, piece.numElements()}});
    }
    return view;
  }
  return view;
}

View reshapeView(const View& view, std::vector<std::size_t> shape) {
  if (view.numElements() == 0) {
    View empty = view;
    empty.strides = rowMajorStrides(shape);
    empty.shape = std::move(shape);
    return empty;
  }
  if (auto strides = stridesFor(view, shape)) {
    View same = view;
    same.shape = std::move(shape);
    same.strides = std::move(*strides);
    return same;
  }
  return joined({view}, view.type, std::move(shape));
}

View permuteView(const View& view, const std::vector<unsigned>& permutation) {
  View result = view;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    result.shape[i] = view.shape[permutation[i]];
    result.strides[i] = view.strides[permutation[i]];
  }
  return result;
}

View sliceView(const View& view, unsigned dimension, std::size_t begin, std::size_t end) {
  View result = view;
  result.shape[dimension] = end - begin;
  result.offset += static_cast<std::int64_t>(begin) * view.strides[dimension];
  return simplifyView(std::move(result));
}

View concatViews(const std::vector<View>& views, unsigned dimension) {
  const View& first = views.front();
  std::vector<unsigned> to_front(first.shape.size());
  std::iota(to_front.begin(), to_front.end(), 0u);
  std::rotate(to_front.begin(), to_front.begin() + dimension, to_front.begin() + dimension + 1);
  std::vector<unsigned> back(to_front.size());
  for (std::size_t i = 0; i < to_front.size(); ++i) back[to_front[i]] = static_cast<unsigned>(i);

  std::vector<View> parts;
  std::size_t total = 0;
  for (const auto& view : views) {
    total += view.shape[dimension];
    if (view.numElements() != 0) parts.push_back(permuteView(view, to_front));
  }
  std::vector<std::size_t> shape = permuteView(first, to_front).shape;
  shape[0] = total;
  if (parts.empty()) {
    View empty = permuteView(first, to_front);
    empty.shape = shape;
    return permuteView(empty, back);
  }
  return permuteView(simplifyView(joined(std::move(parts), first.type, std::move(shape))), back);
}

namespace {

void forEachElementRun(const View& view, std::size_t first, std::size_t count,
                       const std::function<void(std::int64_t, std::size_t)>& fn) {
  const std::size_t rank = view.shape.size();
  // The trailing dimensions that are compact make one run.
  std::size_t inner = 1;
  std::size_t outer_rank = rank;
  while (outer_rank > 0 && (view.shape[outer_rank - 1] == 1 ||
                            view.strides[outer_rank - 1] == static_cast<std::int64_t>(inner))) {
    inner *= view.shape[outer_rank - 1];
    --outer_rank;
  }
  std::vector<std::size_t> index(outer_rank);
  std::size_t rest = first / inner;
  for (std::size_t i = outer_rank; i-- > 0;) {
    index[i] = rest % view.shape[i];
    rest /= view.shape[i];
  }
  std::size_t within = first % inner;
  while (count > 0) {
    std::int64_t position = view.offset + static_cast<std::int64_t>(within);
    for (std::size_t i = 0; i < outer_rank; ++i)
      position += static_cast<std::int64_t>(index[i]) * view.strides[i];
    const std::size_t length = std::min(count, inner - within);
    fn(position, length);
    count -= length;
    within = 0;
    for (std::size_t i = outer_rank; i-- > 0;) {
      if (++index[i] < view.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace

void forEachRun(const View& view, std::size_t first, std::size_t count, const RunFn& fn) {
  if (count == 0) return;
  if (view.isStrided()) {
    forEachElementRun(view, first, count, [&](std::int64_t begin, std::size_t length) {
      fn(view.variable, begin, length);
    });
    return;
  }
  const Pieces& pieces = *view.pieces;
  forEachElementRun(view, first, count, [&](std::int64_t begin, std::size_t length) {
    auto position = static_cast<std::size_t>(begin);
    while (length > 0) {
      const auto next = std::upper_bound(pieces.starts.begin(), pieces.starts.end(), position);
      const std::size_t k = static_cast<std::size_t>(next - pieces.starts.begin()) - 1;
      const std::size_t part = std::min(length, pieces.starts[k + 1] - position);
      forEachRun(pieces.views[k], position - pieces.starts[k], part, fn);
      position += part;
      length -= part;
    }
  });
}

void forEachRun(const View& view, const RunFn& fn) { forEachRun(view, 0, view.numElements(), fn); }

}  // namespace ipujax::engine
