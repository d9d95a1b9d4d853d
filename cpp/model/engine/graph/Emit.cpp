#include "engine/graph/Emit.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "engine/Errors.hpp"
#include "engine/graph/CopyCost.hpp"
#include "engine/graph/Exchange.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/image/Overlap.hpp"

namespace ipujax::engine {
namespace {

ProgramNodePtr stepNode(Step step, const DebugContext& debug) {
  auto node = makeNode(ProgramKind::kStep, debug);
  node->step = std::move(step);
  return node;
}

Footprint footprintOf(const View& view) {
  OperandDesc operand;
  operand.type = view.type;
  operand.shape.assign(view.shape.begin(), view.shape.end());
  operand.strides = view.strides;
  Footprint footprint;
  footprint.assign(operand, view.offset * static_cast<std::int64_t>(sizeOf(view.type)));
  return footprint;
}

/// Whether one of two strided views may be read while the other is written: they have no element in
/// common, or are the same elements and the reader may work in place.
bool mayBeRead(const View& read, const View& written, bool may_replace) {
  if (read.variable != written.variable) return true;
  const Footprint a = footprintOf(read), b = footprintOf(written);
  return areApart(a, b) || (may_replace && isSame(a, b));
}

void appendStridedCopy(GraphImpl& graph, ProgramNode& sequence, const ViewPtr& src,
                       const ViewPtr& dst, const DebugContext& debug) {
  if (!mayBeRead(*src, *dst, true)) {
    const ViewPtr held = graph.addTemporary(*src, src->shape, debug);
    appendStridedCopy(graph, sequence, src, held, debug);
    return appendStridedCopy(graph, sequence, held, dst, debug);
  }
  Step step;
  step.kernel = "engine.copy";
  step.operands = {{src, Access::kRead}, {dst, Access::kWrite}};
  step.cost = copyCost({graph, graph.system}, src, dst);
  sequence.children.push_back(stepNode(std::move(step), debug));
}

/// A view whose elements lie in several pieces, and another view of the same shape, both permuted
/// so that the first walks its pieces in order. `whole`: it walks all of its pieces.
struct Walk {
  View pieced;
  View other;
  bool whole = false;
};

Walk walkInOrder(const View& view, const View& other) {
  std::vector<unsigned> order(view.shape.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](unsigned a, unsigned b) { return view.strides[a] > view.strides[b]; });
  Walk walk{permuteView(view, order), permuteView(other, order)};
  const View& ordered = walk.pieced;
  walk.whole = ordered.offset == 0 && ordered.isRowMajor() &&
               ordered.numElements() == ordered.pieces->starts.back();
  return walk;
}

/// A piece and the part of the other view that belongs to it, in one shape.
using Slices = std::vector<std::pair<ViewPtr, ViewPtr>>;

/// Pairs every piece with its part; empty if the pieces are not whole slices of the first
/// dimension, or if the two cannot be viewed in one shape without a new piece.
Slices slicesOf(const Walk& walk) {
  const View& view = walk.pieced;
  if (!walk.whole || view.shape.empty()) return {};
  const std::size_t row = view.numElements() / view.shape[0];
  for (const auto start : view.pieces->starts) {
    if (start % row != 0) return {};
  }
  Slices slices;
  for (std::size_t i = 0; i < view.pieces->views.size(); ++i) {
    const View part =
        sliceView(walk.other, 0, view.pieces->starts[i] / row, view.pieces->starts[i + 1] / row);
    const View& piece = view.pieces->views[i];
    View part_as_piece = reshapeView(part, piece.shape);
    View piece_as_part = reshapeView(piece, part.shape);
    if (part_as_piece.isStrided() || !part.isStrided()) {
      slices.emplace_back(share(piece), share(std::move(part_as_piece)));
    } else if (piece_as_part.isStrided()) {
      slices.emplace_back(share(std::move(piece_as_part)), share(part));
    } else {
      return {};
    }
  }
  return slices;
}

/// Piece i of `view` in a temporary that holds all of them, row-major one after another.
ViewPtr partOf(const ViewPtr& joined, const View& view, std::size_t i) {
  const auto& pieces = *view.pieces;
  return share(reshapeView(sliceView(*joined, 0, pieces.starts[i], pieces.starts[i + 1]),
                           pieces.views[i].shape));
}

/// Adds such a temporary; copies all pieces of `view` to it if `fill` is set.
ViewPtr joinPieces(GraphImpl& graph, ProgramNode& sequence, const View& view, bool fill,
                   const DebugContext& debug) {
  const auto& pieces = *view.pieces;
  const ViewPtr joined = graph.addTemporary(view, {pieces.starts.back()}, debug);
  for (std::size_t i = 0; fill && i < pieces.views.size(); ++i)
    appendCopy(graph, sequence, share(pieces.views[i]), partOf(joined, view, i), debug);
  return joined;
}

ViewPtr overlay(const ViewPtr& joined, View view) {
  view.pieces = nullptr;
  view.variable = joined->variable;
  return share(std::move(view));
}

/// Appends copies between pieces and their parts that form one copy, with one exchange and one
/// compute set. Each has its share of that cost, since some may turn out to need no copy.
void appendSlices(GraphImpl& graph, ProgramNode& sequence, const Slices& slices, bool into_pieces,
                  const DebugContext& debug) {
  const std::size_t begin = sequence.children.size();
  for (const auto& [piece, part] : slices)
    appendCopy(graph, sequence, into_pieces ? part : piece, into_pieces ? piece : part, debug);
  const std::span steps = std::span(sequence.children).subspan(begin);
  Cost alone;
  double slowest = 0;
  ExchangeCount count({graph, graph.system});
  for (const auto& node : steps) {
    alone += node->step.cost;
    slowest = std::max(slowest, node->step.cost.compute_cycles);
    count.add(node->step.operands[0].view, node->step.operands[1].view);
  }
  const bool one_each = steps.size() == slices.size();
  if (steps.size() < 2 || !one_each || alone.link_bytes > 0) return;
  const Exchange exchange = count.result();
  Cost together;
  addExchange(together, graph.system, exchange);
  if (alone.compute_cycles > 0) {
    const double landed = exchange.worst_landed_bytes / graph.system.machine.memcpy_bytes_per_cycle;
    addComputeSet(together, graph.system, std::clamp(landed, slowest, alone.compute_cycles), 0);
  }
  const auto share = [](double& cycles, double all, double wanted) {
    if (all > 0) cycles *= wanted / all;
  };
  for (const auto& node : steps) {
    Cost& cost = node->step.cost;
    share(cost.compute_cycles, alone.compute_cycles, together.compute_cycles);
    share(cost.mean_compute_cycles, alone.compute_cycles, together.compute_cycles);
    share(cost.exchange_cycles, alone.exchange_cycles, together.exchange_cycles);
    share(cost.sync_cycles, alone.sync_cycles, together.sync_cycles);
  }
}

void copyFromPieces(GraphImpl& graph, ProgramNode& sequence, const ViewPtr& src, const ViewPtr& dst,
                    const DebugContext& debug) {
  const Slices slices = slicesOf(walkInOrder(*src, *dst));
  appendSlices(graph, sequence, slices, false, debug);
  if (!slices.empty()) return;
  const ViewPtr joined = joinPieces(graph, sequence, *src, true, debug);
  appendCopy(graph, sequence, overlay(joined, *src), dst, debug);
}

void copyToPieces(GraphImpl& graph, ProgramNode& sequence, const ViewPtr& src, const ViewPtr& dst,
                  const DebugContext& debug) {
  const Walk walk = walkInOrder(*dst, *src);
  const Slices slices = slicesOf(walk);
  appendSlices(graph, sequence, slices, true, debug);
  if (!slices.empty()) return;
  const ViewPtr joined = joinPieces(graph, sequence, *dst, !walk.whole, debug);
  appendCopy(graph, sequence, src, overlay(joined, *dst), debug);
  for (std::size_t i = 0; i < dst->pieces->views.size(); ++i)
    appendCopy(graph, sequence, partOf(joined, *dst, i), share(dst->pieces->views[i]), debug);
}

/// Drops the dimensions along which both views repeat their elements.
std::pair<ViewPtr, ViewPtr> withoutRepeats(const ViewPtr& src, const ViewPtr& dst) {
  View from = *src;
  View to = *dst;
  for (std::size_t i = 0; i < from.shape.size(); ++i)
    if (from.strides[i] == 0 && to.strides[i] == 0) from.shape[i] = to.shape[i] = 1;
  return {share(std::move(from)), share(std::move(to))};
}

/// Libraries read all operands before they write, so operands that a step would overwrite while it
/// reads them are copied first.
void copyOverwritten(GraphImpl& graph, ProgramNode& sequence, Step& step,
                     const DebugContext& debug) {
  const auto is_overwritten = [&](std::uint32_t read) {
    for (std::uint32_t i = 0; i < step.operands.size(); ++i) {
      if (step.operands[i].access == Access::kRead) continue;
      const bool may_replace = std::ranges::count(step.in_place, std::pair(read, i)) != 0;
      if (!mayBeRead(*step.operands[read].view, *step.operands[i].view, may_replace)) return true;
    }
    return false;
  };
  for (std::uint32_t read = 0; read < step.operands.size(); ++read) {
    auto& operand = step.operands[read];
    if (operand.access != Access::kRead || !is_overwritten(read)) continue;
    const ViewPtr copy = graph.addTemporary(*operand.view, operand.view->shape, debug);
    appendCopy(graph, sequence, operand.view, copy, debug);
    operand.view = copy;
  }
}

bool suits(const Use& use) {
  return use.view->isStrided() && (!use.contiguous || use.view->isRowMajor());
}

}  // namespace

void appendCopy(GraphImpl& graph, ProgramNode& sequence, const ViewPtr& src, const ViewPtr& dst,
                const DebugContext& debug) {
  if (src->numElements() == 0) return;
  if (!dst->isStrided()) {
    copyToPieces(graph, sequence, src, dst, debug);
  } else if (!src->isStrided()) {
    copyFromPieces(graph, sequence, src, dst, debug);
  } else {
    const auto [from, to] = withoutRepeats(src, dst);
    appendStridedCopy(graph, sequence, from, to, debug);
  }
}

void emit(const GraphScope& graph, ProgramNode& sequence, StepSpec spec,
          const DebugContext& debugContext) {
  Step step;
  std::vector<std::pair<ViewPtr, ViewPtr>> write_back;
  for (const auto& use : spec.operands) {
    if (!use.view)
      throw poplar_error(
          "[" + spec.kernel +
          "] needs tensors of a graph; got an empty Tensor. Make it with addVariable.");
    if (use.graph && use.graph != &graph.impl)
      throw poplar_error("[" + spec.kernel +
                         "] needs tensors of the graph that it adds to; got one of another. Make "
                         "all of them with one graph.");
    ViewPtr view = use.view;
    if (!suits(use)) {
      view = graph.impl.addTemporary(*use.view, use.view->shape, debugContext);
      if (use.access != Access::kWrite)
        appendCopy(graph.impl, sequence, use.view, view, debugContext);
      if (use.access != Access::kRead) write_back.emplace_back(view, use.view);
    }
    step.operands.push_back({view, use.access});
  }
  step.kernel = std::move(spec.kernel);
  step.attributes = std::move(spec.attributes);
  if (graph.impl.traps.any()) step.attributes.set(kFloatTraps, maskOf(graph.impl.traps));
  step.cost = spec.cost;
  step.in_place = std::move(spec.in_place);
  copyOverwritten(graph.impl, sequence, step, debugContext);
  sequence.children.push_back(stepNode(std::move(step), debugContext));
  for (const auto& [from, to] : write_back)
    appendCopy(graph.impl, sequence, from, to, debugContext);
}

}  // namespace ipujax::engine
