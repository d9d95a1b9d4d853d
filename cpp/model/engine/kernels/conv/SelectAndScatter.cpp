#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/Errors.hpp"
#include "engine/Rank.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/SelectAndScatterLoops.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine {
using expr::ExprEvaluator;
using expr::ExprProgram;
using expr::Op;
namespace {

constexpr std::int64_t kLanes = ExprEvaluator::kBlock;
constexpr std::int64_t kMaxTaps = 64;  // a window longer than that is rare

/// Lanes are elements of the plain dimensions (channels, batch): each has windows of its own. A
/// task is a block of lanes; within it windows go in row-major order, all lanes side by side.
class Scatterer final : public Kernel {
 public:
  explicit Scatterer(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  struct Lane {
    std::int64_t operand, source, result;
  };
  void runLanes(std::span<std::byte* const> p, std::int64_t begin, std::int64_t n) const;
  void runPicks(std::span<std::byte* const> p, const Lane* lanes, std::int64_t n) const;
  void runGeneral(std::span<std::byte* const> p, const Lane* lanes, std::int64_t n) const;
  Lane laneAt(std::int64_t lane) const;
  template <class F>
  void forEachWindow(const F& f) const;

  ElementType type_;
  std::int64_t bytes_;
  bool fast_ = false;  ///< floats, select is >=, scatter is +
  ExprEvaluator select_;
  ExprEvaluator scatter_;
  std::vector<WindowDim> windows_;            ///< in: operand strides, out: source strides
  std::vector<std::int64_t> result_strides_;  ///< of windows_
  std::vector<WindowDim> plain_;
  std::vector<std::int64_t> plain_results_;
  std::int64_t lanes_ = 1;
  std::int64_t num_windows_ = 1;
  std::int64_t elements_ = 1;
};

ExprProgram programOf(const StepDesc& step, const char* name) {
  return ExprProgram::fromIntegers(step.attributes.integers(name));
}

Scatterer::Scatterer(const StepDesc& step)
    : type_(step.operands[0].type),
      bytes_(static_cast<std::int64_t>(sizeOf(type_))),
      select_(programOf(step, "select")),
      scatter_(programOf(step, "scatter")),
      elements_(step.operands[3].numElements()) {
  const Window window = Window::from(step.attributes.integers("window"));
  const ExprProgram select = programOf(step, "select");
  fast_ = type_ == ElementType::kFloat && window.volume() <= kMaxTaps &&
          select.isBinary(Op::kGreaterThanEqual) && programOf(step, "scatter").isBinary(Op::kAdd);
  const auto dims = windowDims(window, step.operands[0], step.operands[1]);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int64_t stride = step.operands[3].strides[d];
    (dims[d].plain ? plain_ : windows_).push_back(dims[d]);
    (dims[d].plain ? plain_results_ : result_strides_).push_back(stride);
    (dims[d].plain ? lanes_ : num_windows_) *= dims[d].m;
  }
  fast_ = fast_ && windows_.size() <= 2;
}

Scatterer::Lane Scatterer::laneAt(std::int64_t lane) const {
  Lane at{0, 0, 0};
  for (std::size_t d = plain_.size(); d-- > 0;) {
    const std::int64_t i = lane % plain_[d].m;
    lane /= plain_[d].m;
    at.operand += i * plain_[d].in_stride;
    at.source += i * plain_[d].out_stride;
    at.result += i * plain_results_[d];
  }
  return at;
}

void Scatterer::run(RunContext& context, std::span<std::byte* const> p) const {
  // Operands: operand, source, init, result (contiguous).
  simd::fill(p[3], p[2], static_cast<std::size_t>(bytes_), elements_);
  if (elements_ == 0 || num_windows_ == 0 || lanes_ == 0) return;
  // Where a row of lanes is contiguous, a block is a part of it.
  const std::int64_t row = plain_.empty() ? 1 : plain_.back().m;
  const std::int64_t unit = row >= 8 ? row : lanes_;
  const std::int64_t size = std::min<std::int64_t>({unit, kLanes, 64});
  const std::int64_t per_unit = (unit + size - 1) / size;
  context.pool.parallelFor(lanes_ / unit * per_unit, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t at = t % per_unit * size;
      runLanes(p, t / per_unit * unit + at, std::min(size, unit - at));
    }
  });
}

void Scatterer::runLanes(std::span<std::byte* const> p, std::int64_t begin, std::int64_t n) const {
  Lane lanes[kLanes];
  for (std::int64_t l = 0; l < n; ++l) lanes[l] = laneAt(begin + l);
  if (!fast_) return runGeneral(p, lanes, n);
  runPicks(p, lanes, n);
}

/// Calls f(source offset, taps) for every window; taps(g) calls g(operand offset, result offset)
/// for every element under the window, in order.
template <class F>
void Scatterer::forEachWindow(const F& f) const {
  std::int64_t index[kMostRank] = {};
  const std::size_t rank = windows_.size();
  for (std::int64_t w = 0; w < num_windows_; ++w) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < rank; ++d) source += index[d] * windows_[d].out_stride;
    const auto taps = [&](const auto& g) {
      const auto walk = [&](const auto& self, std::size_t d, std::int64_t in,
                            std::int64_t result) -> void {
        if (d == rank) return g(in, result);
        const WindowDim& dim = windows_[d];
        const std::int64_t start = index[d] * dim.stride - dim.low;
        const std::int64_t first = std::max<std::int64_t>(start, 0);
        const std::int64_t end = std::min(start + dim.size, dim.n);
        for (std::int64_t i = first; i < end; ++i) {
          self(self, d + 1, in + i * dim.in_stride, result + i * result_strides_[d]);
        }
      };
      walk(walk, 0, 0, 0);
    };
    f(source, taps);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < windows_[d].m) break;
      index[d] = 0;
    }
  }
}

/// At most two windowed dimensions: the innermost two, the others being trivial.
void Scatterer::runPicks(std::span<std::byte* const> p, const Lane* lanes, std::int64_t n) const {
  static const auto picked = IPUJAX_PICK(pick);
  const float* operand = reinterpret_cast<const float*>(p[0]);
  const float* source = reinterpret_cast<const float*>(p[1]);
  float* result = reinterpret_cast<float*>(p[3]);
  bool contiguous = true;
  bool beside = true;  // the source values too
  for (std::int64_t l = 1; l < n; ++l) {
    contiguous &=
        lanes[l].operand == lanes[0].operand + l && lanes[l].result == lanes[0].result + l;
    beside &= lanes[l].source == lanes[0].source + l;
  }
  const WindowDim none;
  const std::size_t rank = windows_.size();
  const WindowDim& rows = rank == 2 ? windows_[0] : none;
  const WindowDim& columns = rank > 0 ? windows_[rank - 1] : none;
  PickWindow window{};
  window.operand_row = rows.in_stride;
  window.operand_column = columns.in_stride;
  window.result_row = rank == 2 ? result_strides_[0] : 0;
  window.result_column = rank > 0 ? result_strides_[rank - 1] : 0;
  const std::int64_t step = contiguous ? n : 1;
  float values[kLanes];
  for (std::int64_t first = 0; first < n; first += step) {
    const Lane& lane = lanes[first];
    for (std::int64_t r = 0; r < rows.m; ++r) {
      const std::int64_t top = std::max<std::int64_t>(r * rows.stride - rows.low, 0);
      window.rows = std::min(r * rows.stride - rows.low + rows.size, rows.n) - top;
      for (std::int64_t c = 0; c < columns.m; ++c) {
        const std::int64_t start = c * columns.stride - columns.low;
        const std::int64_t left = std::max<std::int64_t>(start, 0);
        window.columns = std::min(start + columns.size, columns.n) - left;
        if (window.rows <= 0 || window.columns <= 0) continue;
        window.operand = operand + lane.operand + top * rows.in_stride + left * columns.in_stride;
        const float* from = source + r * rows.out_stride + c * columns.out_stride;
        window.source = from + lane.source;
        if (step > 1 && !beside) {
          for (std::int64_t l = 0; l < n; ++l) values[l] = from[lanes[l].source];
          window.source = values;
        }
        window.result =
            result + lane.result + top * window.result_row + left * window.result_column;
        picked(window, step);
      }
    }
  }
}

void Scatterer::runGeneral(std::span<std::byte* const> p, const Lane* lanes, std::int64_t n) const {
  const auto size = static_cast<std::size_t>(bytes_);
  Workspace workspace;
  std::byte* memory = workspace.get(5 * kLanes * 8);
  std::byte* best = memory;
  std::byte* next = memory + kLanes * 8;
  std::byte* there = memory + 2 * kLanes * 8;
  std::byte* value = memory + 3 * kLanes * 8;
  std::byte* sum = memory + 4 * kLanes * 8;
  bool keep[kLanes];
  std::int64_t chosen[kLanes];
  const auto gather = [&](const std::byte* from, std::int64_t Lane::*member, std::int64_t at,
                          std::byte* out) {
    for (std::int64_t l = 0; l < n; ++l) {
      std::memcpy(out + l * bytes_, from + (lanes[l].*member + at) * bytes_, size);
    }
  };
  forEachWindow([&](std::int64_t at, const auto& taps) {
    bool first = true;
    taps([&](std::int64_t in, std::int64_t place) {
      gather(p[0], &Lane::operand, in, first ? best : next);
      if (first) {
        std::fill_n(chosen, n, place);
        first = false;
        return;
      }
      const std::byte* inputs[] = {best, next};
      std::byte* outputs[] = {reinterpret_cast<std::byte*>(keep)};
      select_.run(inputs, outputs, n);
      for (std::int64_t l = 0; l < n; ++l) {
        if (keep[l]) continue;
        std::memcpy(best + l * bytes_, next + l * bytes_, size);
        chosen[l] = place;
      }
    });
    if (first) return;
    for (std::int64_t l = 0; l < n; ++l) {
      std::memcpy(there + l * bytes_, p[3] + (lanes[l].result + chosen[l]) * bytes_, size);
    }
    gather(p[1], &Lane::source, at, value);
    const std::byte* inputs[] = {there, value};
    std::byte* outputs[] = {sum};
    scatter_.run(inputs, outputs, n);
    for (std::int64_t l = 0; l < n; ++l) {
      std::memcpy(p[3] + (lanes[l].result + chosen[l]) * bytes_, sum + l * bytes_, size);
    }
  });
}

void checkScatterer(StepCheck& check) {
  check.operands(4);
  const auto operand = check.read(0);
  const auto source = check.read(1).hasTypeOf(operand);
  check.read(2).hasTypeOf(operand).isOne();
  check.written(3).hasTypeOf(operand).hasShapeOf(operand).isContiguous();
  const Window window = Window::check(check, operand, source);
  for (std::size_t d = 0; d < window.rank(); ++d)
    check.need(window.base_dilations[d] == 1 && window.window_dilations[d] == 1,
               "a window without dilation");
  const ElementType type = operand->type;
  check.program("select", {type, type}, {ElementType::kBool});
  check.program("scatter", {type, type}, {type});
}
const RegisterKernel kScatterer{"popx.select_and_scatter", makeKernel<Scatterer>, checkScatterer};

}  // namespace
}  // namespace ipujax::engine
