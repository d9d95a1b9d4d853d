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

/// One sequence of T steps with L labels, and so L + 1 blanks around them.
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
  static constexpr float kMostLog = 300.0f;  ///< largest magnitude of an emitted logarithm
  static constexpr int kFewest = 500;        ///< bits between the largest state and the least

  /// Bounds of exponents: nonzero values are at least 2^least and at most 2^most.
  struct Reach {
    double least, most;
  };
  // Rows have padding before and after the elements of each kind.
  std::int64_t rowSize() const { return 2 * (L + 3); }
  std::int64_t emittedSize() const { return L + 2; }
  States row(std::int64_t t) const {
    double* at = rows_ + (p_.gradient ? t : t % 2) * rowSize();
    return {at + 1, at + 1 + L + 3};
  }
  /// Emissions of step t: the labels, a 0, and the blank.
  Emitted emittedAt(std::int64_t t) const {
    const double* at = emittedRow(t);
    return {at[L + 1], at, skip_};
  }
  double* emittedRow(std::int64_t t) const {
    return emitted_ + (p_.gradient ? t : t % kStepsAtOnce) * emittedSize();
  }

  /// Computes the emissions of kStepsAtOnce steps from `begin`; false if one is out of range.
  bool emit(std::int64_t begin) {
    const std::int64_t n = std::min(kStepsAtOnce, T - begin);
    if (!(p_.are_logits ? emitLogits(begin, n) : emitLogs(begin, n))) return false;
    for (std::int64_t i = 0; i < n; ++i) emittedRow(begin + i)[L] = 0.0;
    return true;
  }

  /// Gathers from a step's classes: those of the labels (`one` for a label that is not a class),
  /// `beside`, and the blank.
  void gather(const float* classes, float one, float beside, float* to) const {
    for (std::int64_t k = 0; k < L; ++k) to[k] = classes[columns_[k]];
    for (const std::int64_t k : outside_) to[k] = one;
    to[L] = beside;
    to[L + 1] = classes[p_.blank];
  }

  /// Takes the exponentials of all steps at once, which is faster than a few at a time.
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

  /// States that step t can reach and from which the last label or blank can still be reached.
  StateWindow windowAt(std::int64_t t) const {
    const std::int64_t first = L - (T - t);
    return {first < 0 ? 0 : first + 1, std::min(L, t) + 1, std::max<std::int64_t>(first, 0),
            std::min(L - 1, t) + 1};
  }
  static void clearAround(const States& s, const StateWindow& w) {
    s.blank[w.blank_begin - 1] = s.blank[w.blank_end] = 0.0;
    s.label[w.label_begin - 1] = s.label[w.label_end] = 0.0;
  }

  /// Keeps states within the range of doubles. Each new state sums up to three states times an
  /// emission of step t, which bounds its growth; states are read only once the bounds pass
  /// kFewest, before which no step can leave the range. Returns false if they do not fit.
  bool stays(std::int64_t t, const States& s, const StateWindow& w, Reach& reach,
             double& exponent) const {
    constexpr double kMostTerms = 1.6;  // log2(3)
    const Reach& emitted = ranges_[t / kStepsAtOnce];
    reach.least += emitted.least;
    reach.most += emitted.most + kMostTerms;
    return (reach.least > -kFewest && reach.most < kFewest) || scale(s, w, reach, exponent);
  }

  /// Scales the largest to [1, 2); false if a nonzero one is too small, or one too large or NaN.
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
    if (!p_.are_logits) {  // else emitLogits has put the probabilities here
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
  float* gathered_;                    ///< of kStepsAtOnce steps, in the order of the emissions
  float* row_;                         ///< exponentials of a step's logits
  std::uint32_t* columns_;             ///< classes of the labels
  std::vector<std::int64_t> outside_;  ///< labels that are not classes
  Reach* ranges_;                      ///< of the emissions of kStepsAtOnce steps
  double exponent_ = 0.0;
};

}  // namespace

bool lossByProbabilities(const Problem& problem) {
  if (problem.labels > problem.steps) return false;
  return Scaled(problem).run();
}

}  // namespace ipujax::engine::ctc
