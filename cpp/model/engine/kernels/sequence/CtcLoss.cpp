#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/sequence/Ctc.hpp"
#include "engine/kernels/sequence/CtcScaled.hpp"
#include "engine/simd/Isa.hpp"

/// The host kernel "popnn.ctc_loss". Reads log-probabilities [T, B, C], labels [B, L], data lengths
/// and label lengths [B], as unsigned integers; writes losses [B] and, with `gradient`, gradients
/// [T, B, C]. Attributes: `blank`, `gradient`, `softmax` (gradients are those of the logits) and
/// `logits` (the input is logits).
/// It sums probabilities where the range of doubles suffices (CtcScaled), and logarithms
/// elsewhere.
namespace ipujax::engine {
namespace ctc {

IPUJAX_DECLARE_SIMD(Loops ctcLoops())

const Loops& loops() {
  static const Loops found = IPUJAX_PICK(ctcLoops)();
  return found;
}

}  // namespace ctc

namespace {

using ctc::kLogZero;

class CtcLoss final : public Kernel {
 public:
  explicit CtcLoss(const StepDesc& step)
      : T(step.operands[0].shape[0]),
        B(step.operands[0].shape[1]),
        C(step.operands[0].shape[2]),
        L(step.operands[1].shape[1]),
        blank_(static_cast<std::uint32_t>(step.attributes.integer("blank"))),
        with_gradient_(step.attributes.integer("gradient") != 0),
        with_softmax_(step.attributes.integer("softmax") != 0),
        are_logits_(step.attributes.integer("logits") != 0) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const std::int64_t work = std::max<std::int64_t>(1, T * (2 * L + 1 + C / 4));
    context.pool.parallelFor(B, (1 << 12) / work + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) sequence(p, b);
    });
  }

 private:
  /// The states of one sequence: labels with blanks around them. Rows have two more in front.
  struct States {
    std::int64_t steps, n;
    const float* logs;  ///< of step t at t * step
    std::int64_t step;
    std::uint32_t* classes;
    float *skip, *back_skip, *emit, *forward, *back, *row;
    std::int64_t stride() const { return n + 2; }
  };

  static std::uint32_t at(std::span<std::byte* const> p, std::size_t operand, std::int64_t i) {
    return reinterpret_cast<const std::uint32_t*>(p[operand])[i];
  }

  void sequence(std::span<std::byte* const> p, std::int64_t b) const {
    const auto* data = reinterpret_cast<const float*>(p[0]) + b * C;
    auto* loss = reinterpret_cast<float*>(p[4]) + b;
    float* gradient = with_gradient_ ? reinterpret_cast<float*>(p[5]) + b * C : nullptr;
    const std::int64_t steps = std::min<std::int64_t>(at(p, 2, b), T),
                       labels = std::min<std::int64_t>(at(p, 3, b), L);
    const ctc::Problem problem{
        .steps = steps,
        .labels = labels,
        .classes = C,
        .stride = B * C,
        .data = data,
        .are_logits = are_logits_,
        .label = reinterpret_cast<const std::uint32_t*>(p[1]) + b * L,
        .blank = blank_,
        .with_softmax = with_softmax_,
        .loss = loss,
        .gradient = gradient,
    };
    if (ctc::lossByProbabilities(problem)) {
      for (std::int64_t t = steps; with_gradient_ && t < T; ++t)
        std::fill_n(gradient + t * B * C, C, 0.0f);
      return;
    }
    Workspace workspace;
    States s{};
    s.steps = steps;
    s.n = 2 * labels + 1;
    s.logs = data;
    s.step = B * C;
    if (are_logits_) {
      s.logs = logSoftmax(data, steps, workspace);
      s.step = C;
    }
    prepare(p, b, s, workspace);
    if (std::any_of(s.emit, s.emit + s.steps * s.n, [](float x) { return std::isnan(x); }))
      return spoil(loss, gradient, steps);
    const float total = forward(s);
    const bool possible = total > kLogZero / 2;
    *loss = possible ? -total : std::numeric_limits<float>::infinity();
    if (with_gradient_) differentiate(gradient, s, total, possible ? s.steps : 0);
  }

  /// Log-probabilities of a sequence's steps, [steps, C].
  const float* logSoftmax(const float* logits, std::int64_t steps, Workspace& workspace) const {
    float* logs = workspace.get<float>(steps * C);
    for (std::int64_t t = 0; t < steps; ++t) {
      const float* from = logits + t * B * C;
      float* to = logs + t * C;
      const auto [most, sum] = ctc::loops().exponentials(from, to, C);
      const auto log = static_cast<float>(std::log(sum));
      for (std::int64_t c = 0; c < C; ++c) to[c] = from[c] - most - log;
    }
    return logs;
  }

  /// Sets the loss and the gradient of the sequence's steps to NaN.
  void spoil(float* loss, float* gradient, std::int64_t steps) const {
    *loss = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t t = 0; with_gradient_ && t < T; ++t)
      std::fill_n(gradient + t * B * C, C, t < steps ? *loss : 0.0f);
  }

  void differentiate(float* gradient, States& s, float total, std::int64_t counted) const {
    if (counted > 0) backward(s);
    for (std::int64_t t = 0; t < T; ++t) {
      float* to = gradient + t * B * C;
      if (t < counted && with_softmax_)
        ctc::loops().exp(s.logs + t * s.step, to, C);
      else
        std::fill(to, to + C, 0.0f);
      if (t >= counted) continue;
      const std::int64_t row = t * s.stride() + 2;
      ctc::loops().posterior(s.forward + row, s.back + row, s.emit + t * s.n, total, s.row, s.n);
      float sum = 0.0f;  // 1 except for rounding, which is large for large logarithms
      for (std::int64_t i = 0; i < s.n; ++i) sum += s.row[i];
      for (std::int64_t i = 0; i < s.n; ++i)
        if (s.classes[i] < C) to[s.classes[i]] -= s.row[i] / sum;
    }
  }

  void prepare(std::span<std::byte* const> p, std::int64_t b, States& s,
               Workspace& workspace) const {
    s.classes = workspace.get<std::uint32_t>(s.n);
    s.skip = workspace.get<float>(s.n);
    s.back_skip = workspace.get<float>(s.n);
    s.row = workspace.get<float>(std::max(s.n, s.stride()));
    s.emit = workspace.get<float>(std::max<std::int64_t>(s.steps, 1) * s.n);
    s.forward = workspace.get<float>((with_gradient_ ? s.steps + 1 : 2) * s.stride());
    if (with_gradient_) s.back = workspace.get<float>((s.steps + 1) * s.stride());
    for (std::int64_t i = 0; i < s.n; ++i) s.classes[i] = i % 2 ? at(p, 1, b * L + i / 2) : blank_;
    for (std::int64_t i = 0; i < s.n; ++i) {
      const bool skips = i >= 2 && s.classes[i] != blank_ && s.classes[i] != s.classes[i - 2];
      s.skip[i] = skips ? 0.0f : kLogZero;
    }
    // The backward pass reverses the states: its state i is state n - 1 - i.
    for (std::int64_t i = 0; i < s.n; ++i) s.back_skip[i] = i >= 2 ? s.skip[s.n + 1 - i] : kLogZero;
    for (std::int64_t t = 0; t < s.steps; ++t)
      for (std::int64_t i = 0; i < s.n; ++i)
        s.emit[t * s.n + i] =
            s.classes[i] < C ? std::max(s.logs[t * s.step + s.classes[i]], kLogZero) : 0.0f;
  }

  /// Sums over alignments up to each step; returns the logarithm of the total.
  float forward(States& s) const {
    float* first = s.row;
    std::fill(first, first + s.stride(), kLogZero);
    first[2] = 0.0f;
    const float* now = first;
    for (std::int64_t t = 0; t < s.steps; ++t) {
      float* next = s.forward + (with_gradient_ ? t : t % 2) * s.stride();
      next[0] = next[1] = kLogZero;
      ctc::loops().step(now + 2, s.skip, s.emit + t * s.n, next + 2, s.n);
      now = next;
    }
    const float last = now[s.n + 1], before = s.n > 1 ? now[s.n] : kLogZero;
    const float most = std::max(last, before);
    return most + std::log(std::exp(last - most) + std::exp(before - most));
  }

  /// Sums over alignments from each step on, computed with the states in reverse order.
  void backward(States& s) const {
    Workspace workspace;
    float* now = workspace.get<float>(s.stride());
    float* next = workspace.get<float>(s.stride());
    float* emit = workspace.get<float>(s.n);
    std::fill(now, now + s.stride(), kLogZero);
    now[2] = 0.0f;
    next[0] = next[1] = kLogZero;
    for (std::int64_t t = s.steps - 1; t >= 0; --t) {
      std::reverse_copy(s.emit + t * s.n, s.emit + (t + 1) * s.n, emit);
      ctc::loops().step(now + 2, s.back_skip, emit, next + 2, s.n);
      std::reverse_copy(next + 2, next + s.stride(), s.back + t * s.stride() + 2);
      std::swap(now, next);
    }
  }

  std::int64_t T, B, C, L;
  std::uint32_t blank_;
  bool with_gradient_, with_softmax_, are_logits_;
};

void checkCtcLoss(StepCheck& check) {
  const bool with_gradient = check.flag("gradient");
  check.operands(with_gradient ? 6 : 5);
  const bool with_softmax = check.flag("softmax"), are_logits = check.flag("logits");
  check.need(!with_gradient || with_softmax || !are_logits, "gradients of the logits");
  const auto data = check.read(0).hasRank(3).isOf(ElementType::kFloat).isContiguous();
  const std::int64_t B = data->shape[1], C = data->shape[2];
  check.integer("blank", 0, C - 1);
  const auto labels = check.read(1).hasRank(2).isInteger().isOfBytes(4).isContiguous();
  check.need(labels->shape[0] == B, "labels for each sequence");
  for (const std::size_t lengths : {2, 3})
    check.read(lengths).isInteger().isOfBytes(4).isContiguous().hasShape(std::vector{B});
  check.written(4).isOf(ElementType::kFloat).isContiguous().hasShape(std::vector{B});
  if (with_gradient) check.written(5).isOf(ElementType::kFloat).isContiguous().hasShapeOf(data);
}

const RegisterKernel kCtcLoss{"popnn.ctc_loss", makeKernel<CtcLoss>, checkCtcLoss};

}  // namespace
}  // namespace ipujax::engine
