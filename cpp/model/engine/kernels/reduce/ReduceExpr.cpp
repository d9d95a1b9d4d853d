#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "engine/Half.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceArg.hpp"
#include "engine/kernels/reduce/ReduceBody.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/kernels/reduce/ReduceUnrolled.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popx.reduce": any body over any strided views. Operands: k inputs, k outputs
/// (contiguous), k initial values. The order of combination depends on shapes only, not on threads.
namespace ipujax::engine {

namespace {
using reduction::LoopDim;
using reduction::Odometer;
using reduction::volumeOf;

constexpr std::int64_t kSegment = 65536;  // elements of one output folded as one task
constexpr std::size_t kMax = TurnBuffers::kMaxValues;

struct Input {
  std::vector<LoopDim> kept;
  std::vector<LoopDim> reduced;
  std::size_t bytes = 1;
};

class VariadicReduce final : public Kernel {
 public:
  explicit VariadicReduce(const StepDesc& step)
      : VariadicReduce(step, expr::ExprProgram::fromIntegers(step.attributes.integers("expr"))) {}
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  VariadicReduce(const StepDesc& step, const expr::ExprProgram& program);
  struct Buffers;
  void findArg(const expr::ExprProgram& program);
  void runWide(ThreadPool& pool, std::span<std::byte* const> p) const;
  void wideBlock(std::span<std::byte* const> p, std::int64_t begin, std::int64_t n) const;
  void runNarrow(ThreadPool& pool, std::span<std::byte* const> p) const;
  void foldSegment(std::span<std::byte* const> p, std::int64_t output, std::int64_t begin,
                   std::int64_t end, std::byte* const* result) const;
  void gatherRun(const Input& input, const std::byte* in, std::int64_t begin, std::int64_t end,
                 std::byte* out) const;
  void argSegment(std::span<std::byte* const> p, std::int64_t output, std::int64_t begin,
                  std::int64_t end, std::byte* const* result) const;
  void argRun(const std::byte* first, const std::byte* indices, std::int64_t n,
              std::byte* const* result) const;
  void runArgRows(ThreadPool& pool, std::span<std::byte* const> p) const;
  void applyInit(std::span<std::byte* const> p, Buffers& buffers, std::int64_t begin,
                 std::int64_t n) const;

  ReduceBody body_;
  std::vector<Input> inputs_;
  std::size_t k_;
  bool wide_;  ///< lanes over results, else over pieces of the reduced elements
  std::int64_t outputs_ = 1;
  std::int64_t reduced_ = 1;
  const reduction::Loops* loops_ = nullptr;  ///< if the body is argmax or argmin
  ArgScan scan_ = nullptr;
  std::unique_ptr<const UnrolledReduce> unrolled_;  ///< if there is little to do
};

/// Where a task keeps its blocks: accumulators in turns, left and right operands, and the
/// evaluator's registers.
struct VariadicReduce::Buffers {
  Buffers(const ReduceBody& body, std::int64_t lanes)
      : turns(body, lanes, workspace),
        pairs(body, lanes, workspace),
        scratch(body.scratchIn(workspace)) {}
  std::byte* const* left() const { return pairs.now(); }
  std::byte* const* right() const { return pairs.next(); }
  Workspace workspace;
  TurnBuffers turns;
  TurnBuffers pairs;
  std::byte* scratch;
};

VariadicReduce::VariadicReduce(const StepDesc& step, const expr::ExprProgram& program)
    : body_(program), k_(program.numOutputs()), wide_(step.attributes.integer("wide") != 0) {
  const auto& dims = step.attributes.integers("dims");
  for (std::size_t i = 0; i < k_; ++i) {
    const auto& operand = step.operands[i];
    Input input;
    input.bytes = sizeOf(operand.type);
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
      const LoopDim dim{operand.shape[d], operand.strides[d], 0};
      const bool reduced = std::count(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) > 0;
      (reduced ? input.reduced : input.kept).push_back(dim);
    }
    for (auto* loops : {&input.kept, &input.reduced}) {
      if (loops->empty()) loops->push_back({});
    }
    outputs_ = volumeOf(input.kept);
    reduced_ = volumeOf(input.reduced);
    inputs_.push_back(std::move(input));
  }
  findArg(program);
  if (!loops_ && wide_) unrolled_ = UnrolledReduce::make(step, program);
}

void VariadicReduce::findArg(const expr::ExprProgram& program) {
  const auto arg = argReducerOf(program);
  if (!arg || reduced_ == 0) return;
  for (const Input& input : inputs_) {
    if (input.reduced.size() != 1 || (input.reduced[0].in != 1 && reduced_ > 1)) return;
  }
  const ArgTable& table = IPUJAX_PICK(kArgTable);
  const ElementType type =
      program.typeOf(0) == ElementType::kInt32 ? ElementType::kInt32 : ElementType::kFloat;
  scan_ = type == ElementType::kFloat ? table.floats : table.ints;
  loops_ = reduction::loopsFor(*arg, type);
}

void VariadicReduce::applyInit(std::span<std::byte* const> p, Buffers& buffers, std::int64_t begin,
                               std::int64_t n) const {
  std::byte* outs[kMax];
  for (std::size_t i = 0; i < k_; ++i) {
    simd::fill(buffers.left()[i], p[2 * k_ + i], inputs_[i].bytes, n);
    outs[i] = p[k_ + i] + begin * static_cast<std::int64_t>(inputs_[i].bytes);
    if (reduced_ == 0) std::memcpy(outs[i], buffers.left()[i], n * inputs_[i].bytes);
  }
  if (reduced_ > 0) {
    body_.apply(buffers.left(), buffers.turns.now(), outs, n, buffers.scratch);
  }
}

void VariadicReduce::run(RunContext& context, std::span<std::byte* const> p) const {
  if (outputs_ == 0) return;
  if (unrolled_) {
    unrolled_->run(p);
  } else if (loops_ && reduced_ <= kSegment) {
    runArgRows(context.pool, p);
  } else if (!loops_ && wide_) {
    runWide(context.pool, p);
  } else {
    runNarrow(context.pool, p);
  }
}

void VariadicReduce::runWide(ThreadPool& pool, std::span<std::byte* const> p) const {
  // A block ends with the innermost kept loop, so that it can be read in place.
  const std::int64_t row = inputs_[0].kept.back().n;
  const std::int64_t unit = row >= 64 ? row : outputs_;
  const std::int64_t lanes = std::clamp<std::int64_t>(outputs_ / 8, 64, ReduceBody::kLanes);
  const std::int64_t per_unit = (unit + lanes - 1) / lanes;
  const std::int64_t blocks = outputs_ / unit * per_unit;
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / (lanes * (reduced_ + 1)));
  pool.parallelFor(blocks, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const std::int64_t at = b % per_unit * lanes;
      wideBlock(p, b / per_unit * unit + at, std::min(lanes, unit - at));
    }
  });
}

void VariadicReduce::wideBlock(std::span<std::byte* const> p, std::int64_t begin,
                               std::int64_t n) const {
  Buffers buffers(body_, ReduceBody::kLanes);
  std::int64_t offsets[kMax][ReduceBody::kLanes];
  std::int64_t stride[kMax];
  for (std::size_t i = 0; i < k_; ++i) {
    Odometer at(inputs_[i].kept, begin);
    for (std::int64_t l = 0; l < n; ++l, at.next()) offsets[i][l] = at.in;
    stride[i] = n > 1 ? offsets[i][1] - offsets[i][0] : 1;
    for (std::int64_t l = 1; l < n; ++l) {
      if (offsets[i][l] - offsets[i][l - 1] != stride[i]) {
        stride[i] = std::numeric_limits<std::int64_t>::max();
        break;
      }
    }
  }
  const auto gather = [&](std::size_t i, std::int64_t at, std::byte* out) {
    const std::size_t size = inputs_[i].bytes;
    if (stride[i] != std::numeric_limits<std::int64_t>::max()) {
      const auto first = (offsets[i][0] + at) * static_cast<std::int64_t>(size);
      simd::gatherStrided(p[i] + first, stride[i], out, size, n);
      return;
    }
    for (std::int64_t l = 0; l < n; ++l) {
      std::memcpy(out + l * size, p[i] + (offsets[i][l] + at) * static_cast<std::int64_t>(size),
                  size);
    }
  };
  Odometer at[kMax];
  for (std::size_t i = 0; i < k_ && reduced_ > 0; ++i) at[i] = Odometer(inputs_[i].reduced, 0);
  for (std::int64_t r = 0; r < reduced_; ++r) {
    const std::byte* values[kMax];
    for (std::size_t i = 0; i < k_; ++i) {
      std::byte* out = r == 0 ? buffers.turns.now()[i] : buffers.right()[i];
      const auto size = static_cast<std::int64_t>(inputs_[i].bytes);
      if (r > 0 && stride[i] == 1) {
        values[i] = p[i] + (offsets[i][0] + at[i].in) * size;
      } else {
        gather(i, at[i].in, out);
        values[i] = out;
      }
      at[i].next();
    }
    if (r == 0) continue;
    body_.apply(buffers.turns.now(), values, buffers.turns.next(), n, buffers.scratch);
    buffers.turns.flip();
  }
  applyInit(p, buffers, begin, n);
}

void VariadicReduce::runNarrow(ThreadPool& pool, std::span<std::byte* const> p) const {
  const std::int64_t segments = (reduced_ + kSegment - 1) / kSegment;
  const auto slots = static_cast<std::size_t>(outputs_ * segments);
  Workspace workspace;
  std::byte* memory = workspace.get(static_cast<std::int64_t>(slots * k_) * 8);
  pool.parallelFor(outputs_ * segments, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      std::byte* result[kMax];
      for (std::size_t i = 0; i < k_; ++i) {
        result[i] = memory + (i * slots + static_cast<std::size_t>(t)) * 8;
      }
      const std::int64_t begin = t % segments * kSegment;
      const std::int64_t end = std::min(reduced_, begin + kSegment);
      if (loops_) {
        argSegment(p, t / segments, begin, end, result);
      } else {
        foldSegment(p, t / segments, begin, end, result);
      }
    }
  });
  Buffers buffers(body_, ReduceBody::kLanes);
  for (std::int64_t o = 0; o < outputs_; ++o) {
    for (std::int64_t s = 0; s < segments; ++s) {
      const std::byte* values[kMax];
      for (std::size_t i = 0; i < k_; ++i) {
        values[i] = memory + (i * slots + static_cast<std::size_t>(o * segments + s)) * 8;
        if (s == 0) std::memcpy(buffers.turns.now()[i], values[i], inputs_[i].bytes);
      }
      if (s == 0) continue;
      body_.apply(buffers.turns.now(), values, buffers.turns.next(), 1, buffers.scratch);
      buffers.turns.flip();
    }
    applyInit(p, buffers, o, 1);
  }
}

void VariadicReduce::gatherRun(const Input& input, const std::byte* in, std::int64_t begin,
                               std::int64_t end, std::byte* out) const {
  const LoopDim inner = input.reduced.back();
  const std::span<const LoopDim> outer(input.reduced.data(), input.reduced.size() - 1);
  const auto size = static_cast<std::int64_t>(input.bytes);
  Odometer at(outer, begin / inner.n);
  for (std::int64_t t = begin; t < end; at.next()) {
    const std::int64_t first = t % inner.n;
    const std::int64_t n = std::min(inner.n - first, end - t);
    simd::gatherStrided(in + (at.in + first * inner.in) * size, inner.in, out, input.bytes, n);
    out += n * size;
    t += n;
  }
}

void VariadicReduce::foldSegment(std::span<std::byte* const> p, std::int64_t output,
                                 std::int64_t begin, std::int64_t end,
                                 std::byte* const* result) const {
  // Lane j folds its own consecutive piece, so that the order of the elements is kept.
  Buffers buffers(body_, ReduceBody::kLanes);
  const std::int64_t n = end - begin;
  const std::int64_t lanes = std::clamp<std::int64_t>(n / 16, 1, ReduceBody::kLanes / 2);
  const std::int64_t piece = n / lanes;
  const std::int64_t rest = n - piece * lanes;
  const std::byte* source[kMax];
  for (std::size_t i = 0; i < k_; ++i) {
    const Odometer at(inputs_[i].kept, output);
    const auto size = static_cast<std::int64_t>(inputs_[i].bytes);
    const std::byte* in = p[i] + at.in * size;
    if (inputs_[i].reduced.size() == 1 && inputs_[i].reduced[0].in == 1) {
      source[i] = in + begin * size;
    } else {
      std::byte* copy = buffers.workspace.get(kSegment * 8);
      gatherRun(inputs_[i], in, begin, end, copy);
      source[i] = copy;
    }
  }
  for (std::int64_t t = 0; t < piece; ++t) {
    for (std::size_t i = 0; i < k_; ++i) {
      std::byte* out = t == 0 ? buffers.turns.now()[i] : buffers.right()[i];
      simd::gatherStrided(source[i] + t * static_cast<std::int64_t>(inputs_[i].bytes), piece, out,
                          inputs_[i].bytes, lanes);
    }
    if (t == 0) continue;
    body_.apply(buffers.turns.now(), buffers.right(), buffers.turns.next(), lanes, buffers.scratch);
    buffers.turns.flip();
  }
  // The remaining elements, fewer than there are lanes, come last, one per lane.
  for (std::size_t i = 0; i < k_; ++i) {
    const std::size_t size = inputs_[i].bytes;
    std::memcpy(buffers.turns.now()[i] + lanes * size, source[i] + piece * lanes * size,
                rest * size);
  }
  foldLanes(body_, buffers.turns, buffers.left(), buffers.right(), lanes + rest, buffers.scratch);
  for (std::size_t i = 0; i < k_; ++i) {
    std::memcpy(result[i], buffers.turns.now()[i], inputs_[i].bytes);
  }
}

/// For a body that argReducerOf knows: finds the extreme value first, then where it is.
void VariadicReduce::argSegment(std::span<std::byte* const> p, std::int64_t output,
                                std::int64_t begin, std::int64_t end,
                                std::byte* const* result) const {
  const auto size = static_cast<std::int64_t>(inputs_[0].bytes);
  const std::byte* values = p[0] + (Odometer(inputs_[0].kept, output).in + begin) * size;
  const std::byte* indices = p[1] + (Odometer(inputs_[1].kept, output).in + begin) * 4;
  argRun(values, indices, end - begin, result);
}

void VariadicReduce::argRun(const std::byte* first, const std::byte* indices, std::int64_t n,
                            std::byte* const* result) const {
  const std::size_t size = inputs_[0].bytes;
  const std::byte* values = first;
  Workspace workspace;
  if (size == 2) {  // halves are compared as floats
    auto* staged = workspace.get<float>(n);
    simd::halfToFloat(reinterpret_cast<const std::uint16_t*>(first), staged, n);
    values = reinterpret_cast<const std::byte*>(staged);
  }
  std::uint64_t best = loops_->identity;
  loops_->row(values, n, &best);
  float as_float;
  std::memcpy(&as_float, &best, sizeof as_float);
  std::int64_t at = 0;
  std::int32_t index = 0;
  if (loops_->acc == ElementType::kFloat && std::isnan(as_float)) {
    const float* x = reinterpret_cast<const float*>(values);
    while (!std::isnan(x[at])) ++at;
    index = reinterpret_cast<const std::int32_t*>(indices)[at];
  } else {
    const ArgMatch match = scan_(values, indices, &best, n);
    at = match.last;
    index = static_cast<std::int32_t>(match.index);
  }
  std::memcpy(result[0], first + at * static_cast<std::int64_t>(size), size);
  std::memcpy(result[1], &index, 4);
}

void VariadicReduce::runArgRows(ThreadPool& pool, std::span<std::byte* const> p) const {
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / reduced_);
  const auto size = static_cast<std::int64_t>(inputs_[0].bytes);
  pool.parallelFor(outputs_, grain, [&](std::int64_t begin, std::int64_t end) {
    Buffers buffers(body_, ReduceBody::kLanes);
    Odometer values(inputs_[0].kept, begin);
    Odometer indices(inputs_[1].kept, begin);
    for (std::int64_t o = begin; o < end;) {
      const std::int64_t n = std::min(ReduceBody::kLanes, end - o);
      for (std::int64_t l = 0; l < n; ++l, values.next(), indices.next()) {
        std::byte* const result[] = {buffers.turns.now()[0] + l * size,
                                     buffers.turns.now()[1] + l * 4};
        argRun(p[0] + values.in * size, p[1] + indices.in * 4, reduced_, result);
      }
      applyInit(p, buffers, o, n);
      o += n;
    }
  });
}

void checkReduce(StepCheck& check) {
  const std::size_t k = ReduceBody::check(check);
  check.flag("wide");
  check.written(k).hasElements(reduction::checkKept(check));
}
const RegisterKernel kReduce{"popx.reduce", makeKernel<VariadicReduce>, checkReduce,
                             KernelRole::kReductionByProgram};

}  // namespace

}  // namespace ipujax::engine
