#include "popx/SelectAndScatter.hpp"

#include <string>

#include "poplar/exceptions.hpp"
#include "popx/Pad.hpp"
#include "popx/hardware/MapOne.hpp"
#include "popx/hardware/Window.hpp"

namespace popx {
namespace {

namespace pe = expr;
using poplar::Tensor;
using poplar::program::Copy;

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poplar::poplar_error("[popx::selectAndScatter] needs " + needs + "; got " + got + ". " +
                             fix);
}

/// Views of the same place in every window, one place after another.
class Places {
 public:
  Places(const Window& window, std::vector<std::size_t> in, std::vector<std::size_t> out)
      : window_(window), in_(std::move(in)), out_(std::move(out)) {}

  int count() const {
    std::int64_t n = 1;
    for (const auto size : window_.sizes) n *= size;
    return static_cast<int>(n);
  }

  /// The elements of a padded tensor at this place.
  Tensor view(Tensor padded, int place) const {
    const auto at = coordinates(place);
    for (unsigned d = 0; d < at.size(); ++d) {
      const auto stride = static_cast<std::size_t>(window_.strides[d]);
      const auto begin = static_cast<std::size_t>(at[d]);
      const std::size_t end = out_[d] == 0 ? begin : begin + (out_[d] - 1) * stride + 1;
      padded = padded.slice(begin, end, d).subSample(static_cast<unsigned>(stride), d);
    }
    return padded;
  }

  /// For each window, whether this place of it is in the operand and not in the padding.
  Tensor inside(poplar::Graph& graph, int place, const poplar::DebugContext& debug) const {
    const auto at = coordinates(place);
    std::vector<unsigned char> are = {1};
    for (std::size_t d = 0; d < at.size(); ++d) {
      std::vector<unsigned char> more;
      for (const auto is : are) {
        for (std::size_t o = 0; o < out_[d]; ++o) {
          const auto i =
              static_cast<std::int64_t>(o) * window_.strides[d] + at[d] - window_.padding_low[d];
          more.push_back(is && i >= 0 && i < static_cast<std::int64_t>(in_[d]));
        }
      }
      are = std::move(more);
    }
    const Tensor t = graph.addConstant<unsigned char>(
        poplar::BOOL, out_, poplar::ArrayRef<unsigned char>(are), {debug, "inside"});
    graph.setTileMapping(t, 0);
    return t;
  }

 private:
  std::vector<std::int64_t> coordinates(int place) const {
    std::vector<std::int64_t> at(window_.sizes.size());
    for (std::size_t d = at.size(); d-- > 0; place /= static_cast<int>(window_.sizes[d]))
      at[d] = place % window_.sizes[d];
    return at;
  }

  const Window& window_;
  const std::vector<std::size_t> in_, out_;
};

void check(const Tensor& operand, const Tensor& source, const Tensor& init, const Window& window) {
  windows::check("popx::selectAndScatter", window, operand.rank());
  for (std::size_t d = 0; d < window.sizes.size(); ++d)
    if (window.base_dilations[d] != 1 || window.window_dilations[d] != 1)
      refuse("a window without dilation", "one", "Dilate the operand first.");
  const auto type = operand.elementType();
  if (source.elementType() != type || init.elementType() != type || init.numElements() != 1)
    refuse("one type, and a scalar initial value",
           type.toString() + ", " + source.elementType().toString() + ", " +
               init.elementType().toString(),
           "Cast them.");
  for (std::size_t d = 0; d < window.sizes.size(); ++d) {
    const auto padded = static_cast<std::int64_t>(operand.shape()[d]) + window.padding_low[d] +
                        window.padding_high[d] - window.sizes[d];
    const auto windows = padded < 0 ? 0 : padded / window.strides[d] + 1;
    if (source.rank() != operand.rank() || windows != static_cast<std::int64_t>(source.shape()[d]))
      refuse("one source value a window",
             source.shapeToString() + " for " + operand.shapeToString(), "Check the window.");
  }
}

}  // namespace

/// First finds which place each window selects, place by place. Then adds the sources, the last
/// place first, so that an element receives them in their own order.
Tensor selectAndScatter(poplar::Graph& graph, const Tensor& operand, const Tensor& source,
                        const Tensor& init, const pe::Expr& select, const pe::Expr& scatter,
                        const Window& window, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext) {
  check(operand, source, init, window);
  const auto map = [&](const pe::Expr& e, const std::vector<Tensor>& ts) {
    return mapOne(graph, e, ts, prog, debugContext);
  };
  const std::vector<std::int64_t> gaps(operand.rank(), 0);
  std::vector<std::int64_t> cut_low, cut_high;
  for (const auto low : window.padding_low) cut_low.push_back(-low);
  for (const auto high : window.padding_high) cut_high.push_back(-high);
  const Tensor padded =
      pad(graph, operand, init, window.padding_low, window.padding_high, gaps, prog, debugContext);
  const Places places(window, operand.shape(), source.shape());
  const Tensor result = graph.addVariable(operand.elementType(), padded.shape(),
                                          poplar::VariableMappingMethod::LINEAR, debugContext);
  prog.add(Copy(init.reshape({1}).broadcast(static_cast<unsigned>(result.numElements()), 0),
                result.flatten(), false, debugContext));
  if (source.numElements() > 0) {
    Tensor best = places.view(padded, 0);
    Tensor chosen = map(pe::Select(pe::Const(0), pe::Const(-1), pe::_1),
                        {places.inside(graph, 0, debugContext)});
    for (int place = 1; place < places.count(); ++place) {
      const Tensor candidate = places.view(padded, place);
      const Tensor keeps = map(select, {best, candidate});
      const Tensor takes = map(pe::_1 && (pe::_2 < pe::Const(0) || !pe::_3),
                               {places.inside(graph, place, debugContext), chosen, keeps});
      best = map(pe::Select(pe::_1, pe::_2, pe::_3), {candidate, best, takes});
      chosen = map(pe::Select(pe::Const(place), pe::_1, pe::_2), {chosen, takes});
    }
    for (int place = places.count(); place-- > 0;) {
      const Tensor view = places.view(result, place);
      const Tensor added = map(scatter, {view, source});
      const Tensor next =
          map(pe::Select(pe::_1, pe::_2, pe::_3 == pe::Const(place)), {added, view, chosen});
      prog.add(Copy(next, view, false, debugContext));
    }
  }
  return pad(graph, result, init, cut_low, cut_high, gaps, prog, debugContext);
}

}  // namespace popx
