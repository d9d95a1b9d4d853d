#include "popx/Fft.hpp"

#include <cmath>
#include <string>

#include "popops/ElementWise.hpp"
#include "popops/Expr.hpp"
#include "popx/checks/Fft.hpp"
#include "popx/hardware/ItemStep.hpp"

namespace popx {

namespace {

using poplar::FLOAT;
using poplar::Tensor;

constexpr std::size_t kLongestLine = 512;  ///< that one worker transforms, unless it is prime

/// exp(-2 pi i k / n) for k = indices[0], indices[1] ..., as pairs.
Tensor rootsOf(Graph& graph, std::size_t n, const std::vector<std::size_t>& indices,
               const DebugContext& debugContext) {
  std::vector<float> values;
  for (const std::size_t k : indices) {
    const double angle = -2 * std::acos(-1.0) * static_cast<double>(k % n) / static_cast<double>(n);
    values.push_back(static_cast<float>(std::cos(angle)));
    values.push_back(static_cast<float>(std::sin(angle)));
  }
  const Tensor roots =
      graph.addConstant<float>(FLOAT, {indices.size(), 2}, values, {debugContext, "roots"});
  graph.setTileMapping(roots, 0);
  return roots;
}

/// Transforms the rows of {re, im} [lines, n]; the inverse transforms {im, re}.
class Lines {
 public:
  Lines(Graph& graph, Sequence& prog, const DebugContext& debugContext)
      : graph_(graph), prog_(prog), debug_context_(debugContext) {}

  Parts transform(const Parts& a, float scale) const {
    const std::size_t lines = a[0].dim(0), n = a[0].dim(1);
    if (lines * n == 0) return a;
    if (const std::size_t inner = splitOf(n); inner > 1) return inTwo(a, n / inner, inner, scale);
    const std::size_t workers =
        graph_.getTarget().getNumTiles() * graph_.getTarget().getNumWorkerContexts();
    const std::size_t each = (lines + workers - 1) / workers;
    const std::size_t even = lines / each * each;
    std::vector<Parts> groups;
    if (even > 0) groups.push_back(rows(slice(a, 0, even), each, scale));
    if (even < lines) groups.push_back(rows(slice(a, even, lines), lines - even, scale));
    if (groups.size() == 1) return groups[0];
    return {poplar::concat(groups[0][0], groups[1][0]), poplar::concat(groups[0][1], groups[1][1])};
  }

 private:
  static Parts slice(const Parts& a, std::size_t begin, std::size_t end) {
    return {a[0].slice(begin, end, 0), a[1].slice(begin, end, 0)};
  }

  /// The factor nearest to the square root of a length that is too long for one worker, or 1.
  static std::size_t splitOf(std::size_t n) {
    if (n <= kLongestLine) return 1;
    std::size_t best = 1;
    for (std::size_t factor = 2; factor * factor <= n; ++factor)
      if (n % factor == 0) best = factor;
    return best;
  }

  /// Transforms `each` lines per vertex.
  Parts rows(const Parts& a, std::size_t each, float scale) const {
    const std::size_t lines = a[0].dim(0), n = a[0].dim(1);
    ItemStep step(graph_, "popx::fft", lines / each, prog_, debug_context_);
    const Parts grouped = {a[0].reshape({lines / each, each * n}),
                           a[1].reshape({lines / each, each * n})};
    const Tensor values = step.copy(grouped, 1);
    std::vector<std::size_t> indices(n);
    for (std::size_t k = 0; k < n; ++k) indices[k] = k;
    const Tensor roots = rootsOf(graph_, n, indices, debug_context_).flatten();
    const double elements = static_cast<double>(each * n);
    step.run(
        "Fourier", "FourierLines",
        {{"lines", values}, {"room", step.room(FLOAT, 2 * n)}, {"twiddles", step.shared(roots)}},
        {{"count", static_cast<double>(each)}, {"n", static_cast<double>(n)}, {"scale", scale}},
        8 * elements * factorSum(n));
    return partsOf(values, {lines, n}, true);
  }

  /// The sum of the passes' radices.
  static double factorSum(std::size_t n) {
    double sum = 0;
    for (std::size_t factor = 2; n > 1; ++factor) {
      for (; n % factor == 0; n /= factor) sum += static_cast<double>(factor);
      if (factor * factor > n && n > 1) return sum + static_cast<double>(n);
    }
    return sum;
  }

  /// Lines of rows * columns elements: transforms the columns, turns each element, and transforms
  /// the rows.
  Parts inTwo(const Parts& a, std::size_t rows, std::size_t columns, float scale) const {
    const std::size_t lines = a[0].dim(0), n = rows * columns;
    const auto turned = [](const Parts& parts, std::vector<std::size_t> shape,
                           std::vector<std::size_t> last) {
      Parts result;
      for (const Tensor& part : parts)
        result.push_back(part.reshape(shape).dimShuffle({0, 2, 1}).reshape(last));
      return result;
    };
    const Parts first =
        transform(turned(a, {lines, rows, columns}, {lines * columns, rows}), scale);
    std::vector<std::size_t> indices;
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t k = 0; k < rows; ++k) indices.push_back(j * k);
    const Tensor roots = rootsOf(graph_, n, indices, debug_context_);
    const Parts times = multiply(first, roots, lines);
    const Parts second =
        transform(turned(times, {lines, columns, rows}, {lines * rows, columns}), 1.0f);
    return turned(second, {lines, rows, columns}, {lines, n});
  }

  Parts multiply(const Parts& a, const Tensor& roots, std::size_t lines) const {
    const auto spread = [&](std::size_t part) {
      return roots.slice(part, part + 1, 1)
          .flatten()
          .expand({0})
          .broadcast(static_cast<unsigned>(lines), 0)
          .reshape(a[0].shape());
    };
    namespace pe = popops::expr;
    const std::vector<Tensor> all = {a[0], a[1], spread(0), spread(1)};
    const pe::Mul re_re(pe::_1, pe::_3), im_im(pe::_2, pe::_4), re_im(pe::_1, pe::_4),
        im_re(pe::_2, pe::_3);
    return {popops::map(graph_, pe::Sub(re_re, im_im), all, prog_, debug_context_),
            popops::map(graph_, pe::Add(re_im, im_re), all, prog_, debug_context_)};
  }

  Graph& graph_;
  Sequence& prog_;
  DebugContext debug_context_;
};

/// Transforms dimension `dim` of both parts by `lines`.
Parts transformDim(const Lines& lines, const Parts& a, unsigned dim, float scale) {
  const unsigned rank = a[0].rank();
  std::vector<unsigned> order;
  for (unsigned d = 0; d < rank; ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  std::vector<unsigned> back(rank);
  for (unsigned d = 0; d < rank; ++d) back[order[d]] = d;
  const auto shape = a[0].dimShuffle(order).shape();
  const std::size_t n = shape.back();
  const std::size_t count = n == 0 ? 0 : a[0].numElements() / n;
  Parts rows;
  for (const Tensor& part : a) rows.push_back(part.dimShuffle(order).reshape({count, n}));
  Parts result;
  for (const Tensor& part : lines.transform(rows, scale))
    result.push_back(part.reshape(shape).dimShuffle(back));
  return result;
}

Tensor zerosLike(Graph& graph, const Tensor& t, const DebugContext& debugContext) {
  const Tensor zero = graph.addConstant<float>(FLOAT, {}, 0.0f, {debugContext, "zero"});
  graph.setTileMapping(zero, 0);
  return zero.expand({0}).broadcast(static_cast<unsigned>(t.numElements()), 0).reshape(t.shape());
}

/// The imaginary parts of real numbers' coefficients, with zeros for the first, and for the last of
/// an even length.
Tensor withoutEnds(Graph& graph, const Tensor& im, std::size_t n,
                   const DebugContext& debugContext) {
  const unsigned last = im.rank() - 1;
  const std::size_t half = n / 2 + 1;
  const Tensor zero = zerosLike(graph, im.slice(0, 1, last), debugContext);
  if (n < 2) return zero;
  if (n % 2 == 1) return poplar::concat({zero, im.slice(1, half, last)}, last);
  return poplar::concat({zero, im.slice(1, half - 1, last), zero}, last);
}

/// All n coefficients of real numbers from the first n / 2 + 1 along the last dimension.
Parts wholeSpectrum(Graph& graph, const Parts& a, std::size_t n, Sequence& prog,
                    const DebugContext& debugContext) {
  const unsigned last = a[0].rank() - 1;
  const std::size_t mirrored = n - a[0].dim(last);
  const auto mirror = [&](const Tensor& t) { return t.slice(1, mirrored + 1, last).reverse(last); };
  const Tensor im = withoutEnds(graph, a[1], n, debugContext);
  if (mirrored == 0) return {a[0], im};
  const Tensor negative = popops::map(graph, popops::expr::Neg(popops::expr::_1), {mirror(im)},
                                      prog, {debugContext, "conjugate"});
  return {poplar::concat({a[0], mirror(a[0])}, last), poplar::concat({im, negative}, last)};
}

}  // namespace

Parts fft(Graph& graph, const Parts& a, FftType type, const std::vector<std::size_t>& lengths,
          Sequence& prog, const DebugContext& debugContext) {
  const auto shape = fourier::resultShape(a, type, lengths);
  const DebugContext debug(debugContext, "fft");
  const bool real_in = fourier::isReal(type, false), real_out = fourier::isReal(type, true);
  const bool inverse = type == FftType::IFFT || real_out;
  if (batch::elementsOf(shape) == 0 || batch::elementsOf(lengths) == 0) {
    const Tensor none = graph.addConstant<float>(FLOAT, shape, 0.0f, debug);
    graph.setTileMapping(none, 0);
    return real_out ? Parts{none} : Parts{none, none};
  }
  Parts values = real_in ? Parts{a[0], zerosLike(graph, a[0], debug)} : a;
  const Lines lines(graph, prog, debug);
  const unsigned last = a[0].rank() - 1;
  const auto first = static_cast<unsigned>(a[0].rank() - lengths.size());
  const auto over = [&](unsigned dim, std::size_t n) {
    if (!inverse) {
      values = transformDim(lines, values, dim, 1.0f);
      return;
    }
    const float scale = 1.0f / static_cast<float>(n);
    const Parts swapped = transformDim(lines, {values[1], values[0]}, dim, scale);
    values = {swapped[1], swapped[0]};
  };
  if (!real_out) over(last, lengths.back());
  if (real_in) {
    for (Tensor& part : values) part = part.slice(0, lengths.back() / 2 + 1, last);
  }
  for (unsigned dim = first; dim < last; ++dim) over(dim, lengths[dim - first]);
  if (!real_out) return values;
  values = wholeSpectrum(graph, values, lengths.back(), prog, debug);
  over(last, lengths.back());
  return {values[0]};
}

}  // namespace popx
