#include "engine/Emit.hpp"

#include <algorithm>
#include <numeric>

#include "engine/kernels/Copy.hpp"
#include "poplar/GraphImpl.hpp"
#include "poplar/ProgramNode.hpp"
#include "poplar/View.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::engine {
namespace {

using poplar::DebugContext;
using poplar::GraphImpl;
using poplar::ProgramNode;
using poplar::Tensor;
using poplar::View;

Tensor tensorOf(GraphImpl& graph, View view) {
  return {&graph, std::make_shared<const View>(std::move(view))};
}

poplar::ProgramNodePtr stepNode(poplar::Step step, const DebugContext& debug) {
  auto node = std::make_shared<ProgramNode>();
  node->kind = poplar::ProgramKind::kStep;
  node->step = std::move(step);
  node->debug = debug;
  return node;
}

void appendStridedCopy(GraphImpl& graph, ProgramNode& sequence, const Tensor& src,
                       const Tensor& dst, const DebugContext& debug) {
  poplar::Step step;
  step.kernel = "engine.copy";
  step.operands = {{src.view(), Access::kRead}, {dst.view(), Access::kWrite}};
  step.cost = copyCost(poplar::Graph::of(graph), src, dst);
  sequence.children.push_back(stepNode(std::move(step), debug));
}

/// A tensor whose elements lie in several pieces, and another of the same shape beside it, both
/// permuted so that the first walks its pieces in order. `whole` tells that all pieces are walked.
struct Walk {
  Tensor pieced;
  Tensor other;
  bool whole = false;
};

Walk walkInOrder(GraphImpl& graph, const Tensor& pieced, const Tensor& other) {
  const View& view = *pieced.view();
  std::vector<unsigned> order(view.shape.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return view.strides[a] > view.strides[b]; });
  Walk walk{tensorOf(graph, poplar::permuteView(view, order)),
            tensorOf(graph, poplar::permuteView(*other.view(), order))};
  const View& ordered = *walk.pieced.view();
  walk.whole = ordered.offset == 0 && ordered.isRowMajor() &&
               ordered.numElements() == ordered.pieces->starts.back();
  return walk;
}

/// A piece and the part of the other tensor that belongs to it, in one shape.
using Slices = std::vector<std::pair<Tensor, Tensor>>;

bool isStrided(const Tensor& tensor) { return tensor.view()->isStrided(); }

/// Pairs every piece with its part; empty where the pieces are not whole slices of the first
/// dimension, or where the two cannot be seen in one shape without a new piece.
Slices slicesOf(GraphImpl& graph, const Walk& walk) {
  if (!walk.whole || walk.pieced.rank() == 0) return {};
  const View& view = *walk.pieced.view();
  const std::size_t row = view.numElements() / view.shape[0];
  for (const auto start : view.pieces->starts) {
    if (start % row != 0) return {};
  }
  Slices slices;
  for (std::size_t i = 0; i < view.pieces->views.size(); ++i) {
    const Tensor part =
        walk.other.slice(view.pieces->starts[i] / row, view.pieces->starts[i + 1] / row, 0);
    const Tensor piece = tensorOf(graph, view.pieces->views[i]);
    const Tensor part_as_piece = part.reshape(piece.shape());
    const Tensor piece_as_part = piece.reshape(part.shape());
    if (isStrided(part_as_piece) || !isStrided(part)) {
      slices.emplace_back(piece, part_as_piece);
    } else if (isStrided(piece_as_part)) {
      slices.emplace_back(piece_as_part, part);
    } else {
      return {};
    }
  }
  return slices;
}

/// All pieces of `view`, row-major one after another, in a temporary.
Tensor joinPieces(GraphImpl& graph, ProgramNode& sequence, const View& view, bool fill,
                  const DebugContext& debug) {
  const auto& pieces = *view.pieces;
  Tensor joined = graph.addLinear(view.type, {pieces.starts.back()}, debug);
  for (std::size_t i = 0; fill && i < pieces.views.size(); ++i) {
    const Tensor piece = tensorOf(graph, pieces.views[i]);
    appendCopy(graph, sequence, piece,
               joined.slice(pieces.starts[i], pieces.starts[i + 1]).reshape(piece.shape()), debug);
  }
  return joined;
}

Tensor overlay(GraphImpl& graph, const Tensor& joined, View view) {
  view.pieces = nullptr;
  view.variable = joined.view()->variable;
  return tensorOf(graph, std::move(view));
}

void copyFromPieces(GraphImpl& graph, ProgramNode& sequence, const Tensor& src, const Tensor& dst,
                    const DebugContext& debug) {
  const Slices slices = slicesOf(graph, walkInOrder(graph, src, dst));
  for (const auto& [piece, part] : slices) appendCopy(graph, sequence, piece, part, debug);
  if (!slices.empty()) return;
  const Tensor joined = joinPieces(graph, sequence, *src.view(), true, debug);
  appendCopy(graph, sequence, overlay(graph, joined, *src.view()), dst, debug);
}

void copyToPieces(GraphImpl& graph, ProgramNode& sequence, const Tensor& src, const Tensor& dst,
                  const DebugContext& debug) {
  const Walk walk = walkInOrder(graph, dst, src);
  const Slices slices = slicesOf(graph, walk);
  for (const auto& [piece, part] : slices) appendCopy(graph, sequence, part, piece, debug);
  if (!slices.empty()) return;
  const View& view = *dst.view();
  const Tensor joined = joinPieces(graph, sequence, view, !walk.whole, debug);
  appendCopy(graph, sequence, src, overlay(graph, joined, view), debug);
  for (std::size_t i = 0; i < view.pieces->views.size(); ++i) {
    const Tensor piece = tensorOf(graph, view.pieces->views[i]);
    appendCopy(
        graph, sequence,
        joined.slice(view.pieces->starts[i], view.pieces->starts[i + 1]).reshape(piece.shape()),
        piece, debug);
  }
}

bool suits(const Use& use) {
  const View& view = *use.tensor.view();
  return view.isStrided() && (!use.contiguous || view.isRowMajor());
}

}  // namespace

void appendCopy(GraphImpl& graph, ProgramNode& sequence, const Tensor& src, const Tensor& dst,
                const DebugContext& debug) {
  if (src.numElements() == 0) return;
  if (!dst.view()->isStrided()) {
    copyToPieces(graph, sequence, src, dst, debug);
  } else if (!src.view()->isStrided()) {
    copyFromPieces(graph, sequence, src, dst, debug);
  } else {
    appendStridedCopy(graph, sequence, src, dst, debug);
  }
}

void emit(poplar::Graph& graph, poplar::program::Sequence& prog, StepSpec spec,
          const DebugContext& debugContext) {
  GraphImpl& impl = graph.impl();
  ProgramNode& sequence = *prog.node();
  poplar::Step step;
  std::vector<std::pair<Tensor, Tensor>> write_back;
  for (const auto& use : spec.operands) {
    if (!use.tensor.valid())
      throw poplar::poplar_error("[" + spec.kernel + "] got an empty Tensor");
    Tensor tensor = use.tensor;
    if (!suits(use)) {
      tensor = impl.addLinear(use.tensor.elementType(), use.tensor.shape(), debugContext);
      if (use.access != Access::kWrite)
        appendCopy(impl, sequence, use.tensor, tensor, debugContext);
      if (use.access != Access::kRead) write_back.emplace_back(tensor, use.tensor);
    }
    step.operands.push_back({tensor.view(), use.access});
  }
  step.kernel = std::move(spec.kernel);
  step.attributes = std::move(spec.attributes);
  step.cost = spec.cost;
  step.in_place = std::move(spec.in_place);
  sequence.children.push_back(stepNode(std::move(step), debugContext));
  for (const auto& [from, to] : write_back) appendCopy(impl, sequence, from, to, debugContext);
}

}  // namespace ipujax::engine
