#include "popx/ReduceWindow.hpp"

#include "popx/Pad.hpp"
#include "popx/hardware/Fold.hpp"
#include "popx/hardware/Window.hpp"

namespace popx {
namespace {

using poplar::Tensor;
using Tensors = std::vector<Tensor>;

/// Folds along dimensions, one after another.
class Fold {
 public:
  Fold(poplar::Graph& graph, const std::vector<expr::Expr>& body, poplar::program::Sequence& prog,
       const poplar::DebugContext& debug)
      : graph_(graph), body_(body), prog_(prog), debug_(debug) {}

  /// Every window of `size` elements that lie `dilation` apart. `parts` holds ever larger ones, of
  /// 1, 2, 4 elements ...; those that `size` is the sum of follow one another in the result.
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

  Tensors combine(const Tensors& earlier, const Tensors& later) const {
    return fold::combine(graph_, earlier, later, body_, prog_, debug_);
  }

 private:
  static Tensors slices(const Tensors& ts, unsigned dim, std::size_t begin, std::size_t count) {
    Tensors sliced;
    for (const Tensor& t : ts) sliced.push_back(t.slice(begin, begin + count, dim));
    return sliced;
  }

  poplar::Graph& graph_;
  const std::vector<expr::Expr>& body_;
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
  const Fold fold(graph, body, prog, debugContext);
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
  return fold.combine(first, values);
}

}  // namespace popx
