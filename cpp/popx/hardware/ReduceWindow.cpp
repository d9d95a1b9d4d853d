#include "popx/ReduceWindow.hpp"

#include <algorithm>

#include "popx/Pad.hpp"
#include "popx/hardware/Fold.hpp"
#include "popx/hardware/Window.hpp"

namespace popx {
namespace {

using poplar::Tensor;
using Tensors = std::vector<Tensor>;

bool adds(const Window& window) {
  const auto some = [](const std::vector<std::int64_t>& values, std::int64_t most) {
    return std::any_of(values.begin(), values.end(), [&](auto value) { return value > most; });
  };
  return some(window.padding_low, 0) || some(window.padding_high, 0) ||
         some(window.base_dilations, 1);
}

/// Whether a result does not depend on how often an initial value is combined into it.
bool isIdempotent(const std::vector<expr::Expr>& body) {
  const auto& node = *body[0].node();
  if (body.size() > 1 || node.kind != expr::Node::Kind::kOp || node.args.size() != 2) return false;
  for (const auto& argument : node.args)
    if (argument->kind != expr::Node::Kind::kPlaceHolder) return false;
  return node.args[0]->immediate != node.args[1]->immediate &&
         (node.op == expr::Op::kMaximum || node.op == expr::Op::kMinimum ||
          node.op == expr::Op::kLogicalAnd || node.op == expr::Op::kLogicalOr);
}

/// A body of k values that skips padding, which an additional BOOL value marks. Operands: k earlier
/// values, k later ones, then whether the earlier and the later are elements.
std::vector<expr::Expr> withoutPadding(const std::vector<expr::Expr>& body) {
  using namespace expr;
  const auto k = static_cast<unsigned>(body.size());
  const PlaceHolder any_earlier(2 * k + 1), any_later(2 * k + 2);
  std::vector<Expr> made;
  for (unsigned i = 0; i < k; ++i)
    made.push_back(Select(Select(body[i], PlaceHolder(k + i + 1), any_earlier), PlaceHolder(i + 1),
                          any_later));
  made.push_back(any_earlier || any_later);
  return made;
}

/// Folds along dimensions, one after another.
class Fold {
 public:
  /// `marked`: the last tensor is true for elements and false for padding.
  Fold(poplar::Graph& graph, const std::vector<expr::Expr>& body, bool marked,
       poplar::program::Sequence& prog, const poplar::DebugContext& debug)
      : graph_(graph),
        body_(marked ? withoutPadding(body) : body),
        marked_(marked),
        prog_(prog),
        debug_(debug) {}

  /// Folds every window of `size` elements that lie `dilation` apart. `parts` holds windows of 1,
  /// 2, 4 elements ...; those whose sizes add up to `size` are combined in order.
  Tensors along(unsigned dim, const Tensors& ts, std::size_t size, std::size_t dilation) const {
    Tensors parts = ts, folded;
    const std::size_t count = ts[0].dim(dim) - (size - 1) * dilation;
    std::size_t begin = 0;
    for (std::size_t part = 1; part <= size; part *= 2) {
      if (size & part) {
        const Tensors next = slices(parts, dim, begin * dilation, count);
        folded = folded.empty() ? next : combine(folded, next);
        begin += part;
      }
      if (2 * part > size) break;
      const std::size_t left = parts[0].dim(dim) - part * dilation;
      parts = combine(slices(parts, dim, 0, left), slices(parts, dim, part * dilation, left));
    }
    return folded;
  }

  Tensors combine(Tensors earlier, Tensors later) const {
    if (!marked_) return fold::combine(graph_, earlier, later, body_, prog_, debug_);
    const Tensor any_earlier = earlier.back();
    earlier.pop_back();
    later.insert(later.end() - 1, any_earlier);
    return fold::combine(graph_, earlier, later, body_, prog_, debug_);
  }

 private:
  static Tensors slices(const Tensors& ts, unsigned dim, std::size_t begin, std::size_t count) {
    Tensors sliced;
    for (const Tensor& t : ts) sliced.push_back(t.slice(begin, begin + count, dim));
    return sliced;
  }

  poplar::Graph& graph_;
  const std::vector<expr::Expr> body_;
  const bool marked_;
  poplar::program::Sequence& prog_;
  const poplar::DebugContext& debug_;
};

}  // namespace

Tensors reduceWindow(poplar::Graph& graph, const Tensors& ins, const Tensors& inits,
                     const std::vector<expr::Expr>& body, const Window& window,
                     poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  fold::check("popx::reduceWindow", ins, inits, body);
  windows::check("popx::reduceWindow", window, ins[0].rank());
  std::vector<std::int64_t> gaps;
  for (const auto dilation : window.base_dilations) gaps.push_back(dilation - 1);
  Tensors values, first;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    first.push_back(inits[i].reshape({}));
    values.push_back(pad(graph, ins[i], first[i], window.padding_low, window.padding_high, gaps,
                         prog, debugContext));
  }
  const bool marked = adds(window) && !isIdempotent(body);
  if (marked) {
    const auto constant = [&](bool value) {
      const Tensor t = graph.addConstant<bool>(poplar::BOOL, {}, value, {debugContext, "inside"});
      graph.setTileMapping(t, 0);
      return t;
    };
    Tensor inside = constant(true);
    first.push_back(inside);
    for (unsigned d = 0; d < ins[0].rank(); ++d)
      inside = inside.expand({d}).broadcast(static_cast<unsigned>(ins[0].dim(d)), d);
    values.push_back(pad(graph, inside, constant(false), window.padding_low, window.padding_high,
                         gaps, prog, debugContext));
  }
  const Fold fold(graph, body, marked, prog, debugContext);
  for (unsigned dim = values[0].rank(); dim-- > 0;) {
    const auto size = static_cast<std::size_t>(window.sizes[dim]);
    const auto dilation = static_cast<std::size_t>(window.window_dilations[dim]);
    if (values[0].dim(dim) < (size - 1) * dilation + 1) {
      for (Tensor& t : values) t = t.slice(0, 0, dim);  // no window fits
      continue;
    }
    values = fold.along(dim, values, size, dilation);
    const auto stride = static_cast<unsigned>(window.strides[dim]);
    for (Tensor& t : values) t = t.subSample(stride, dim);
  }
  values = fold.combine(first, values);
  values.resize(ins.size());
  return values;
}

}  // namespace popx
