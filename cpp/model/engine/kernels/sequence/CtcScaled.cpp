#include "engine/kernels/sequence/CtcScaled.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/kernels/sequence/Ctc.hpp"

namespace ipujax::engine::ctc {
namespace {

/// One sequence with L labels, thus L + 1 blanks around them, in T steps.
class Scaled {
 public:
  explicit Scaled(const Problem& problem)
      : p_(problem),
        T(problem.steps),
        L(problem.labels),
        rows_(workspace_.get<double>((problem.gradient ? T + 1 : 2) * rowSize())),
        emitted_(workspace_.get<double>((problem.gradient ? T : kStepsAtOnce) * emittedSize())),
        skip_(workspace_.get<double>(L + 2)),
        gathered_(workspace_.get<float>(kStepsAtOnce * emittedSize())),
        row_(workspace_.get<float>(problem.are_logits ? p_.classes : 0)),
        columns_(workspace_.get<std::uint32_t>(L)),
        ranges_(workspace_.get<Reach>((T + kStepsAtOnce - 1) / kStepsAtOnce)) {
    for (std::int64_t k = 0; k < L + 2; ++k)
      skip_[k] = k > 0 && k < L && p_.label[k] != p_.blank && p_.label[k] != p_.label[k - 1];
    for (std::int64_t k = 0; k < L; ++k) {
      const bool inside = p_.label[k] < p_.classes;
      columns_[k] = inside ? p_.label[k] : static_cast<std::uint32_t>(p_.blank);
      if (!inside) outside_.push_back(k);
    }
  }

  bool run() {
    States states = row(0);
    clearAround(states, {0, 1, 0, 1});
    states.blank[0] = 1.0;
    states.label[0] = 0.0;
    Reach reach{};
    for (std::int64_t t = 0; t < T; ++t) {
      if (t % kStepsAtOnce == 0 && !emit(t)) return false;
      const States next = row(t + 1);
      const StateWindow window = windowAt(t);
      loops().forward(states, emittedAt(t), window, next);
      if (!stays(t, next, window, reach, exponent_)) return false;
      clearAround(next, window);
      states = next;
    }
    const double blank = T > 0 ? windowAt(T - 1).blank_end > L ? states.blank[L] : 0.0 : 1.0;
    const double found = blank + (L > 0 ? states.label[L - 1] : 0.0);
    *p_.loss = found > 0.0 ? static_cast<float>(-std::log(found) - exponent_ * std::log(2.0))
                           : std::numeric_limits<float>::infinity();
    if (p_.gradient == nullptr) return true;
    if (found > 0.0) return back();
    for (std::int64_t t = 0; t < T; ++t) std::fill_n(p_.gradient + t * p_.stride, p_.classes, 0.0f);
    return true;
  }

 private:
  static constexpr std::int64_t kStepsAtOnce = 16;
  static constexpr float kMostLog = 300.0f;  ///< in magnitude, of what is emitted
  static constexpr int kFewest = 500;        ///< bits between the largest state and the least

  /// Bounds of exponents: those above 0 are at least 2^least and at most 2^most.
  struct Reach {
    double least, most;
  };
  // Two more of each kind, in front and behind.
  std::int64_t rowSize() const { return 2 * (L + 3); }
  std::int64_t emittedSize() const { return L + 2; }
  States row(std::int64_t t) const {
    double* at = rows_ + (p_.gradient ? t : t % 2) * rowSize();
    return {at + 1, at + 1 + L + 3};
  }
  /// Of step t: the labels, a 0, and the blank.
  Emitted emittedAt(std::int64_t t) const {
    const double* at = emittedRow(t);
    return {at[L + 1], at, skip_};
  }
  double* emittedRow(std::int64_t t) const {
    return emitted_ + (p_.gradient ? t : t % kStepsAtOnce) * emittedSize();
  }

  /// What the kStepsAtOnce steps from `begin` emit; false where it is not in the range of floats.
  bool emit(std::int64_t begin) {
    const std::int64_t n = std::min(kStepsAtOnce, T - begin);
    if (!(p_.are_logits ? emitLogits(begin, n) : emitLogs(begin, n))) return false;
    for (std::int64_t i = 0; i < n; ++i) emittedRow(begin + i)[L] = 0.0;
    return true;
  }

  /// Of a step's classes: those of the labels, `one` for labels that are no class, `beside`, the
  /// blank.
  void gather(const float* classes, float one, float beside, float* to) const {
    for (std::int64_t k = 0; k < L; ++k) to[k] = classes[columns_[k]];
    for (const std::int64_t k : outside_) to[k] = one;
    to[L] = beside;
    to[L + 1] = classes[p_.blank];
  }

  /// The exponentials of all steps at once: those of few would be slower.
  bool emitLogs(std::int64_t begin, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      gather(p_.data + (begin + i) * p_.stride, 0.0f, 0.0f, gathered_ + i * emittedSize());
    const KeyRange found = loops().range(gathered_, n * emittedSize());
    if (found.least < keyOf(-kMostLog) || found.most > keyOf(kMostLog)) return false;
    constexpr double kLog2E = 1.4426950408889634;
    ranges_[begin / kStepsAtOnce] = {valueOf(found.least) * kLog2E, valueOf(found.most) * kLog2E};
    loops().emit(gathered_, emittedRow(begin), n * emittedSize());
    return true;
  }

  bool emitLogits(std::int64_t begin, std::int64_t n) {
    constexpr float kLeast = 1e-34f;
    const Loops& loop = loops();
    for (std::int64_t i = 0; i < n; ++i) {
      const double sum = loop.exponentials(p_.data + (begin + i) * p_.stride, row_, p_.classes).sum;
      if (!(sum < std::numeric_limits<double>::infinity())) return false;
      const double scale = 1.0 / sum;
      if (p_.gradient != nullptr)
        loop.scaled(row_, static_cast<float>(scale), p_.gradient + (begin + i) * p_.stride,
                    p_.classes);
      float* to = gathered_ + i * emittedSize();
      gather(row_, static_cast<float>(sum), 1.0f, to);
      loop.widened(to, scale, emittedRow(begin + i), emittedSize());
    }
    const KeyRange found = loops().range(gathered_, n * emittedSize());
    if (found.least < keyOf(kLeast)) return false;
    const double classes = static_cast<double>(p_.classes);
    ranges_[begin / kStepsAtOnce] = {std::log2(valueOf(found.least) / classes), 0.0};
    return true;
  }

  /// What is reached by step t, and can be at the last label or blank after the last step.
  StateWindow windowAt(std::int64_t t) const {
    const std::int64_t first = L - (T - t);
    return {first < 0 ? 0 : first + 1, std::min(L, t) + 1, std::max<std::int64_t>(first, 0),
            std::min(L - 1, t) + 1};
  }
  static void clearAround(const States& s, const StateWindow& w) {
    s.blank[w.blank_begin - 1] = s.blank[w.blank_end] = 0.0;
    s.label[w.label_begin - 1] = s.label[w.label_end] = 0.0;
  }

  /// Keeps states within the range of doubles, of which a step with what step t emits makes others:
  /// each of up to three. They are looked at where they may be beyond kFewest, before which no
  /// step can leave the range. False where they do not fit.
  bool stays(std::int64_t t, const States& s, const StateWindow& w, Reach& reach,
             double& exponent) const {
    constexpr double kMostTerms = 1.6;  // log2(3)
    const Reach& emitted = ranges_[t / kStepsAtOnce];
    reach.least += emitted.least;
    reach.most += emitted.most + kMostTerms;
    return (reach.least > -kFewest && reach.most < kFewest) || scale(s, w, reach, exponent);
  }

  /// Makes the largest 1 to 2; false where a probability above 0 is too small or none is a number.
  static bool scale(const States& s, const StateWindow& w, Reach& reach, double& exponent) {
    constexpr int kBias = 1023;
    const Extent extent = loops().extent(s, w);
    if (extent.most == 0) return true;  // there is no alignment
    const int most = static_cast<int>(extent.most >> 52) - kBias;
    const int least = static_cast<int>((extent.least + 1) >> 52) - kBias;
    if (most > kBias - 1 || least < most - kFewest) return false;
    const double factor = std::bit_cast<double>(static_cast<std::int64_t>(kBias - most) << 52);
    for (std::int64_t k = w.blank_begin; k < w.blank_end; ++k) s.blank[k] *= factor;
    for (std::int64_t k = w.label_begin; k < w.label_end; ++k) s.label[k] *= factor;
    exponent += most;
    reach = {static_cast<double>(least - most), 1.0};
    return true;
  }

  bool back() {
    Workspace workspace;
    double* memory = workspace.get<double>(2 * rowSize());
    std::fill_n(memory, 2 * rowSize(), 0.0);
    States states{memory + 1, memory + 1 + L + 3}, next = states;
    next.blank += rowSize();
    next.label += rowSize();
    double* label = workspace.get<double>(L);
    StateWindow window{L, L + 1, L > 0 ? L - 1 : 0, L};
    clearAround(states, window);
    states.blank[L] = 1.0;
    if (L > 0) states.label[L - 1] = 1.0;
    double unused = 0.0;
    Reach reach{};
    for (std::int64_t t = T - 1; t >= 0; --t) {
      window = windowAt(t);
      write(t, states, window, label);
      if (t == 0) break;
      window = windowAt(t - 1);
      loops().backward(states, emittedAt(t), window, next);
      if (!stays(t, next, window, reach, unused)) return false;
      clearAround(next, window);
      std::swap(states, next);
    }
    return true;
  }

  void write(std::int64_t t, const States& behind, const StateWindow& window, double* label) {
    float* to = p_.gradient + t * p_.stride;
    if (!p_.are_logits) {  // else what is emitted has put the probabilities here
      if (p_.with_softmax)
        loops().exp(p_.data + t * p_.stride, to, p_.classes);
      else
        std::fill_n(to, p_.classes, 0.0f);
    }
    const auto [labels, blanks] = loops().both(row(t + 1), behind, window, label);
    const double share = 1.0 / (labels + blanks);
    to[p_.blank] -= static_cast<float>(blanks * share);
    for (std::int64_t k = window.label_begin; k < window.label_end; ++k)
      if (p_.label[k] < p_.classes) to[p_.label[k]] -= static_cast<float>(label[k] * share);
  }

  const Problem& p_;
  std::int64_t T, L;
  Workspace workspace_;
  double *rows_, *emitted_, *skip_;
  float* gathered_;                    ///< of kStepsAtOnce steps, in the order of what is emitted
  float* row_;                         ///< exponentials of a step's logits
  std::uint32_t* columns_;             ///< classes of the labels
  std::vector<std::int64_t> outside_;  ///< labels that are no class
  Reach* ranges_;                      ///< of what kStepsAtOnce steps emit
  double exponent_ = 0.0;
};

}  // namespace

bool lossByProbabilities(const Problem& problem) {
  if (problem.labels > problem.steps) return false;
  return Scaled(problem).run();
}

}  // namespace ipujax::engine::ctc
