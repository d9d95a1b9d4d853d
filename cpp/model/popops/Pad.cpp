#include "popops/Pad.hpp"

#include <algorithm>
#include <string>

#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/TileMap.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

using poplar::concat;
using poplar::Graph;
using poplar::Tensor;
using Padding = std::vector<std::ptrdiff_t>;

[[noreturn]] void refuse(const std::string& needs, const std::string& got) {
  throw poputil::poplibs_error("[popops::pad] needs " + needs + "; got " + got + ".");
}

void checkLengths(const Tensor& t, const Padding& lower, const Padding& upper) {
  if (lower.size() == t.rank() && upper.size() == t.rank()) return;
  refuse("padding for each of the " + std::to_string(t.rank()) + " dimensions",
         std::to_string(lower.size()) + " and " + std::to_string(upper.size()));
}

/// `t` without the elements that negative padding removes.
Tensor truncated(const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim) {
  if (dim >= t.rank()) refuse("a dimension below " + std::to_string(t.rank()), std::to_string(dim));
  const auto size = static_cast<std::ptrdiff_t>(t.dim(dim));
  const auto begin = std::max<std::ptrdiff_t>(-lower, 0);
  const auto end = size - std::max<std::ptrdiff_t>(-upper, 0);
  if (begin > end) {
    refuse("at most " + std::to_string(size) + " elements removed",
           std::to_string(begin + size - end));
  }
  return t.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(end), dim);
}

Tensor repeated(const Tensor& element, const Tensor& like, std::ptrdiff_t count, unsigned dim) {
  auto shape = like.shape();
  shape[dim] = static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 0));
  Tensor all = element.flatten().reshape(std::vector<std::size_t>(shape.size(), 1));
  for (unsigned d = 0; d < shape.size(); ++d)
    all = all.broadcast(static_cast<unsigned>(shape[d]), d);
  return all;
}

Tensor withConstant(const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim,
                    const Tensor& val) {
  const Tensor kept = truncated(t, lower, upper, dim);
  return concat({repeated(val, kept, lower, dim), kept, repeated(val, kept, upper, dim)}, dim);
}

template <class T>
Tensor constantOf(Graph& graph, const Tensor& t, T val, padding::MappingMethod method) {
  const Tensor constant = graph.addConstant(t.elementType(), {1}, val, "pad");
  if (method == padding::MappingMethod::NONE)  // addConstant maps it
    graph.impl().variables[constant.view()->variable].map = ipujax::engine::unmapped(1);
  else
    graph.setTileMapping(constant, 0);
  return constant;
}

/// A constant for `count` slices of `kept` along dim, each mapped as the edge slice.
template <class T>
Tensor constantNextTo(Graph& graph, const Tensor& kept, const Tensor& edge, std::ptrdiff_t count,
                      unsigned dim, T val) {
  auto shape = kept.shape();
  shape[dim] = static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 0));
  const Tensor made = graph.addConstant(kept.elementType(), shape, val, "pad");
  graph.setTileMapping(made, 0);
  if (edge.numElements() == 0) return made;
  const auto mapping = graph.getTileMapping(edge, false);
  for (std::size_t i = 0; i < shape[dim]; ++i) {
    const Tensor slice = made.slice(i, i + 1, dim).flatten();
    for (unsigned tile = 0; tile < mapping.size(); ++tile)
      for (const auto& region : mapping[tile]) graph.setTileMapping(slice.slice(region), tile);
  }
  return made;
}

template <class T>
Tensor withConstant(Graph& graph, const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper,
                    unsigned dim, T val, padding::MappingMethod method) {
  if (method != padding::MappingMethod::EDGE)
    return withConstant(t, lower, upper, dim, constantOf(graph, t, val, method));
  const Tensor kept = truncated(t, lower, upper, dim);
  const std::size_t n = kept.dim(dim);
  return concat({constantNextTo(graph, kept, kept.slice(0, n > 0, dim), lower, dim, val), kept,
                 constantNextTo(graph, kept, kept.slice(n - (n > 0), n, dim), upper, dim, val)},
                dim);
}

template <class T>
Tensor withConstants(Graph& graph, const Tensor& t, const Padding& lower, const Padding& upper,
                     T val, padding::MappingMethod method) {
  if (method != padding::MappingMethod::EDGE)
    return pad(graph, t, lower, upper, constantOf(graph, t, val, method), method);
  checkLengths(t, lower, upper);
  Tensor padded = t;
  for (unsigned d = 0; d < t.rank(); ++d)
    padded = withConstant(graph, padded, lower[d], upper[d], d, val, method);
  return padded;
}

}  // namespace

Tensor pad(Graph&, const Tensor& t, const Padding& lower, const Padding& upper, const Tensor& val,
           padding::MappingMethod) {
  checkLengths(t, lower, upper);
  if (val.numElements() != 1 || val.elementType() != t.elementType()) {
    refuse("one element of " + t.elementType().toString(),
           val.shapeToString() + " of " + val.elementType().toString());
  }
  Tensor padded = t;
  for (unsigned d = 0; d < t.rank(); ++d) padded = withConstant(padded, lower[d], upper[d], d, val);
  return padded;
}

Tensor pad(Graph& graph, const Tensor& t, const Padding& lower, const Padding& upper, float val,
           padding::MappingMethod method) {
  return withConstants(graph, t, lower, upper, val, method);
}

Tensor pad(Graph& graph, const Tensor& t, const Padding& lower, const Padding& upper, int val,
           padding::MappingMethod method) {
  return withConstants(graph, t, lower, upper, val, method);
}

Tensor pad(Graph&, const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim,
           const Tensor& val, padding::MappingMethod) {
  return withConstant(t, lower, upper, dim, val);
}

Tensor pad(Graph& graph, const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim,
           float val, padding::MappingMethod method) {
  return withConstant(graph, t, lower, upper, dim, val, method);
}

Tensor pad(Graph& graph, const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim,
           int val, padding::MappingMethod method) {
  return withConstant(graph, t, lower, upper, dim, val, method);
}

Tensor pad(const Tensor& t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim,
           padding::Type type) {
  const Tensor kept = truncated(t, lower, upper, dim);
  const std::size_t before = static_cast<std::size_t>(std::max<std::ptrdiff_t>(lower, 0));
  const std::size_t after = static_cast<std::size_t>(std::max<std::ptrdiff_t>(upper, 0));
  const std::size_t n = kept.dim(dim);
  const std::size_t needed = type == padding::Type::REFLECT ? std::max(before, after) + 1 : 1;
  if (type == padding::Type::CONSTANT) refuse("EDGE or REFLECT", "CONSTANT without a value");
  if (n < needed && before + after > 0)
    refuse("at least " + std::to_string(needed) + " elements", std::to_string(n));
  if (type == padding::Type::REFLECT) {
    return concat(
        {kept.slice(before > 0, before + 1, dim).slice(0, before, dim).reverse(dim), kept,
         kept.slice(n - 1 - after, n - (after > 0), dim).slice(0, after, dim).reverse(dim)},
        dim);
  }
  return concat({kept.slice(0, before > 0, dim).broadcast(static_cast<unsigned>(before), dim), kept,
                 kept.slice(n - (after > 0), n, dim).broadcast(static_cast<unsigned>(after), dim)},
                dim);
}

Tensor pad(const Tensor& t, const Padding& lower, const Padding& upper, padding::Type type) {
  checkLengths(t, lower, upper);
  Tensor padded = t;
  for (unsigned d = 0; d < t.rank(); ++d) padded = pad(padded, lower[d], upper[d], d, type);
  return padded;
}

}  // namespace popops
