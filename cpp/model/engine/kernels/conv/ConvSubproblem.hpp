#pragma once
#include <array>
#include <cstdint>

#include "engine/ElementType.hpp"

namespace ipujax::engine {
class ThreadPool;
}

namespace ipujax::engine::convolution {

/// A strided view of one operand: strides in elements, three spatial axes (absent ones have size
/// 1).
struct ConvView {
  void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t batch = 0;  ///< weights: stride of the output channel
  std::int64_t group = 0;
  std::int64_t channel = 0;  ///< weights: stride of the input channel
  std::array<std::int64_t, 3> space{};
};

/// A convolution without input dilation, flips or truncation: input i = o * stride + k * dilation
/// - padding, zero outside [0, in).
struct Subproblem {
  ConvView in, weights, out;
  std::int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  std::array<std::int64_t, 3> input{1, 1, 1}, kernel{1, 1, 1}, output{1, 1, 1};
  std::array<std::int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, padding{0, 0, 0};
  bool half_partials = false;

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t positions() const { return output[0] * output[1] * output[2]; }
  std::int64_t work() const {
    return batch * groups * in_channels * out_channels * taps() * positions();
  }
};

constexpr std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Runs on the pool, in the arithmetic of the types.
void run(ThreadPool& pool, const Subproblem& problem);

/// The three ways `run` chooses from; M is an arithmetic (engine/blas/Arithmetic.hpp). Pairs of
/// shorts run along lines only: the others multiply them as Ints.
template <class M>
void runAlongLines(ThreadPool& pool, const Subproblem& problem);
template <class M>
void runAlongBatch(ThreadPool& pool, const Subproblem& problem);
template <class M>
void runAlongGroups(ThreadPool& pool, const Subproblem& problem);

}  // namespace ipujax::engine::convolution
