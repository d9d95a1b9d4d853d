#include "engine/kernels/conv/ConvSubproblem.hpp"

#include "engine/ThreadPool.hpp"
#include "engine/blas/Arithmetic.hpp"

namespace ipujax::engine::convolution {
namespace {

/// A group smaller than this does not fill a panel of columns.
constexpr std::int64_t kFewChannels = 32;
constexpr std::int64_t kManyGroups = 4;

bool pointwise(const Subproblem& p, int axis) {
  return p.kernel[axis] == 1 && p.stride[axis] == 1 && p.padding[axis] == 0 &&
         p.input[axis] == p.output[axis];
}

/// Joins axis `outer` into the last one where both are pointwise and lie side by side in memory.
void joinAxis(Subproblem& p, int outer) {
  if (p.output[outer] == 1 || !pointwise(p, outer) || !pointwise(p, 2)) return;
  if (p.in.space[outer] != p.input[2] * p.in.space[2]) return;
  if (p.out.space[outer] != p.output[2] * p.out.space[2]) return;
  for (auto* size : {&p.input, &p.output}) {
    (*size)[2] *= (*size)[outer];
    (*size)[outer] = 1;
  }
}

/// A 1x1 kernel makes one long line of all outputs; lines are then cut into tasks again.
Subproblem simplified(Subproblem p) {
  joinAxis(p, 1);
  if (p.output[1] == 1 && p.input[1] == 1) joinAxis(p, 0);
  const bool line = p.output[0] == 1 && p.output[1] == 1 && p.input[0] == 1 && p.input[1] == 1;
  if (line && pointwise(p, 2) && p.taps() == 1 && p.batch > 1) {
    const bool joined =
        p.in.batch == p.input[2] * p.in.space[2] && p.out.batch == p.output[2] * p.out.space[2];
    const std::int64_t total = p.batch * p.output[2];
    constexpr std::int64_t kLine = 112;
    if (joined && total % kLine == 0 && p.output[2] % kLine != 0) {
      p.batch = total / kLine;
      p.input[2] = p.output[2] = kLine;
      p.in.batch = kLine * p.in.space[2];
      p.out.batch = kLine * p.out.space[2];
    } else if (joined && p.output[2] < 56) {
      // Lines are joined by the largest factor of the batch that keeps them short.
      std::int64_t factor = 1;
      for (std::int64_t f = 2; f * p.output[2] <= 4 * kLine && f <= p.batch; ++f)
        if (p.batch % f == 0) factor = f;
      p.in.batch *= factor;
      p.out.batch *= factor;
      p.batch /= factor;
      p.input[2] *= factor;
      p.output[2] *= factor;
    }
  }
  return p;
}

template <class M>
void runAs(ThreadPool& pool, const Subproblem& problem) {
  const bool large_kernel = problem.taps() > 2 * problem.positions();
  // In a gradient of weights the batch plays the role of the input channels.
  const std::int64_t channels = large_kernel ? problem.batch : problem.in_channels;
  const bool few = channels * problem.out_channels < kFewChannels;
  using Sums = typename M::Sums;
  if (problem.groups >= kManyGroups && few) return runAlongGroups<Sums>(pool, problem);
  const bool batch_inside = problem.in.batch == 1 || problem.output[2] < 8;
  if (large_kernel && problem.batch >= 2 && batch_inside) return runAlongBatch<Sums>(pool, problem);
  runAlongLines<M>(pool, simplified(problem));
}

}  // namespace

void run(ThreadPool& pool, const Subproblem& problem) {
  if (problem.batch * problem.groups * problem.out_channels * problem.positions() == 0) return;
  blas::withArithmetic(blas::arithmeticOf(problem.in.type, problem.weights.type, problem.out.type),
                       [&]<class M>(M) { runAs<M>(pool, problem); });
}

}  // namespace ipujax::engine::convolution
