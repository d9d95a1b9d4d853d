#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/blas/Gemm.hpp"
#include "engine/kernels/Kernel.hpp"

/// Code shared by the kernels of LSTM and GRU layers. Sizes: T steps, B sequences, I inputs,
/// O outputs; everything is float. Pre-activations of a step are rows of units side by side.
namespace ipujax::engine::recurrent {

enum class Activation : std::uint8_t { kSigmoid, kHardSigmoid, kRelu, kTanh };
inline constexpr int kActivations = 4;

/// Rows of n values that one backward step of an LSTM reads and writes.
struct LstmBack {
  const float *forget, *input, *output, *candidate, *tanh, *before;  ///< kept by the forward pass
  const float* grad;                                                 ///< of the output
  float* cell;  ///< gradient of the cell state, in and out
  float *to_forget, *to_input, *to_output, *to_candidate;  ///< gradients of the pre-activations
};
/// Rows of n values that one backward step of a GRU reads and writes.
struct GruBack {
  const float *reset, *update, *candidate, *before;
  const float* memory;  ///< null unless the layer has `after`
  float attention;      ///< 0 without attention
  bool with_attention;
  const float* grad;  ///< of the output
  float *to_update, *to_candidate;
  float *to_reset, *to_memory;  ///< written only with a memory
  float* direct;                ///< grad times the share that the update gate keeps
};

/// Loops over n values of a row, chosen for this CPU, by activation.
struct Loops {
  void (*activate[kActivations])(float* x, std::int64_t n);
  /// grad *= the activation's slope, from its result.
  void (*slope[kActivations])(const float* result, float* grad, std::int64_t n);
  /// c = f c + i g, tanh = activation(c), h = o tanh.
  void (*lstm[kActivations])(const float* f, const float* i, const float* o, const float* g,
                             float* c, float* tanh, float* h, std::int64_t n);
  void (*lstmBack[kActivations][kActivations])(const LstmBack& rows, std::int64_t n);
  /// h = s h + (1 - s) c with s = u - u * attention.
  void (*gru)(const float* u, const float* c, float attention, float* h, std::int64_t n);
  /// A backward step without the part of the reset gate's gradient that needs a matrix product.
  /// Returns the attention's gradient.
  float (*gruBack[kActivations][kActivations])(const GruBack& rows, std::int64_t n);
  void (*multiply)(const float* a, const float* b, float* out, std::int64_t n);
  void (*multiplyAdd)(const float* a, const float* b, float* sum, std::int64_t n);
};
const Loops& loops();

/// Weights [units, rows, O] as one matrix [rows, units * O], where unit u is the one at place
/// at[u]; a copy unless they already have this layout.
const float* asMatrix(const OperandDesc& weights, const std::byte* data,
                      std::span<const std::int64_t> at, Workspace& workspace);
/// The same transposed, [units * O, rows].
const float* asTransposed(const OperandDesc& weights, const std::byte* data,
                          std::span<const std::int64_t> at, Workspace& workspace);

inline blas::ConstMatrix rowsOf(const float* data, std::int64_t row) {
  return {data, ElementType::kFloat, row, 1};
}
inline blas::Matrix rowsInto(float* data, std::int64_t row) {
  return {data, ElementType::kFloat, row, 1};
}

/// Weights [k, n] that all steps multiply by, packed if there are enough steps.
class StepWeights {
 public:
  StepWeights() = default;
  StepWeights(const blas::ConstMatrix& matrix, std::int64_t k, std::int64_t n, std::int64_t steps,
              Workspace& workspace)
      : matrix_(matrix), k_(k), n_(n) {
    constexpr std::int64_t kManySteps = 8;
    if (steps < kManySteps) return;
    packed_ = workspace.get<float>(blas::packedSize(k, n));
    blas::packRight(matrix, k, n, packed_);
  }
  void setIn(blas::Gemm& gemm) const {
    gemm.k = k_;
    gemm.n = n_;
    gemm.b = matrix_;
    gemm.packed = packed_;
  }
  std::int64_t rows() const { return k_; }
  std::int64_t columns() const { return n_; }

 private:
  blas::ConstMatrix matrix_ = {};
  float* packed_ = nullptr;
  std::int64_t k_ = 0, n_ = 0;
};

/// The product of one step: on this thread unless it is large, since steps wait for each other.
inline void stepProduct(ThreadPool* pool, const blas::Gemm& gemm) {
  constexpr std::int64_t kSharedWork = 1 << 22;  // multiply-adds
  blas::gemm(gemm.m * gemm.n * gemm.k < kSharedWork ? nullptr : pool, gemm);
}

/// x W + b of sequences [begin, end), in rows of `row` units, computed for a few steps at a time:
/// the results stay in the L2 cache, and the weights are read once for many rows.
class StepInputs {
 public:
  /// x [steps, batch, inputs]; biases [row].
  StepInputs(const float* x, const float* biases, const StepWeights& weights, std::int64_t steps,
             std::int64_t batch, std::int64_t begin, std::int64_t end)
      : x_(x + begin * weights.rows()),
        biases_(biases),
        weights_(weights),
        steps_(steps),
        batch_(batch),
        rows_(end - begin) {
    constexpr std::int64_t kUnits = 1 << 15, kRows = 64;
    const std::int64_t row = weights.columns();
    const std::int64_t most = std::max(kUnits / std::max<std::int64_t>(1, row), kRows);
    at_once_ = std::clamp<std::int64_t>(most / std::max<std::int64_t>(1, rows_), 1,
                                        std::max<std::int64_t>(1, steps));
    together_ = workspace_.get<float>(at_once_ * rows_ * weights.rows());
    units_ = workspace_.get<float>(at_once_ * rows_ * row);
  }

  /// Units of step t, [end - begin, row]; t counts up from 0. The caller may write to them.
  float* at(std::int64_t t, ThreadPool* pool) {
    if (t % at_once_ == 0) weigh(t, std::min(at_once_, steps_ - t), pool);
    return units_ + t % at_once_ * rows_ * weights_.columns();
  }

 private:
  void weigh(std::int64_t t, std::int64_t count, ThreadPool* pool) {
    const std::int64_t row = weights_.columns(), inputs = weights_.rows();
    for (std::int64_t i = 0; i < count * rows_; ++i) std::copy_n(biases_, row, units_ + i * row);
    if (inputs == 0) return;
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(x_ + (t + i) * batch_ * inputs, rows_ * inputs, together_ + i * rows_ * inputs);
    blas::Gemm gemm;
    gemm.accumulate = true;
    gemm.m = count * rows_;
    weights_.setIn(gemm);
    gemm.a = rowsOf(together_, inputs);
    gemm.c = rowsInto(units_, row);
    stepProduct(pool, gemm);
  }

  const float *x_, *biases_;
  const StepWeights& weights_;
  std::int64_t steps_, batch_, rows_, at_once_;
  Workspace workspace_;
  float *together_, *units_;
};

/// Runs loop(pool, begin, end) over all sequences, which are independent. Many are split into
/// parts, each run on one thread with a null pool; few are run as one part with the pool.
template <class Loop>
void forSequences(ThreadPool& pool, std::int64_t batch, std::int64_t work, const Loop& loop) {
  constexpr std::int64_t kFewestRows = 4, kThreadWork = 1 << 20;  // multiply-adds
  const std::int64_t grain =
      std::max<std::int64_t>(kFewestRows, kThreadWork / std::max<std::int64_t>(work, 1));
  if (batch < 2 * grain) return loop(&pool, 0, batch);
  pool.parallelFor(batch, grain,
                   [&](std::int64_t begin, std::int64_t end) { loop(nullptr, begin, end); });
}

/// A layer of `kUnits` units: steps T, sequences B, inputs I, outputs O, the places of the units
/// in the weights, and the attributes that checkLayer checks.
template <std::size_t kUnits>
struct LayerOf {
  std::int64_t T = 0, B = 0, I, O;
  std::array<std::int64_t, kUnits> at{};
  int gate, activation;
  bool full, limited;

  LayerOf(const StepDesc& step, const OperandDesc& weights)
      : I(weights.shape[1]),
        O(weights.shape[2]),
        gate(static_cast<int>(step.attributes.integer("gate"))),
        activation(static_cast<int>(step.attributes.integer("activation"))),
        full(step.attributes.integer("full") != 0),
        limited(step.attributes.integer("limited") != 0) {
    const auto& order = step.attributes.integers("at");
    std::copy(order.begin(), order.end(), at.begin());
  }
  std::int64_t state() const { return B * O; }
};

inline std::size_t bytesOf(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

/// The number of steps of each sequence: `desc` is [B] or [1], or null for all steps.
class Limits {
 public:
  Limits(const OperandDesc* desc, std::int64_t steps)
      : steps_(steps), stride_(desc && desc->numElements() > 1 ? desc->strides[0] : 0) {}
  std::int64_t of(const std::byte* data, std::int64_t sequence) const {
    if (data == nullptr) return steps_;
    std::uint32_t limit = 0;
    std::memcpy(&limit, data + sequence * stride_ * 4, 4);
    return std::min<std::int64_t>(limit, steps_);
  }

 private:
  std::int64_t steps_, stride_;
};

/// Checks the attributes that all these steps share: `at`, a place for each of `units`, `gate`,
/// `activation`, `full` and `limited`. Returns whether there are limits.
bool checkLayer(StepCheck& check, std::size_t units);
void checkLimits(StepCheck& check, std::size_t operand, std::int64_t batch);
using Sizes = std::vector<std::int64_t>;
void checkRead(StepCheck& check, std::size_t operand, const Sizes& shape, bool packed = true);
void checkWritten(StepCheck& check, std::size_t operand, const Sizes& shape);

inline const float* floats(const std::byte* data) { return reinterpret_cast<const float*>(data); }
inline float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }

}  // namespace ipujax::engine::recurrent
