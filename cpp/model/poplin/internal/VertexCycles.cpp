#include "poplin/internal/VertexCycles.hpp"

#include <algorithm>

#include "engine/Machine.hpp"
#include "engine/graph/Planning.hpp"

namespace poplin {
namespace {

constexpr double kLaunch = 11;  ///< supervisor entry of a MultiVertex

using ipujax::engine::ceilDiv;
double real(std::uint64_t n) { return static_cast<double>(n); }

/// Cycles to load the units' weights once: 16 units x 32 bytes, or 8 x 32 for float partials.
double weightLoad(const VertexWork& w) {
  const double bytes = real(ampUnits(w.float_input, w.float_partials)) * 32;
  return bytes / (w.wide_weight_load ? 16 : 8);
}

/// One worker's pass over n rows with a 1x1 kernel; `later` passes of a vertex keep a worker's
/// state and add to its outputs.
double pointwiseWorker(std::uint64_t n, bool float_input, bool later) {
  // poplibs conv1x1WorkerRetentionSavings
  const double retained = !float_input && later ? 7 : 0;
  if (float_input) {
    // Clearing the outputs costs a separate store. 32 + 8 n is fitted to products measured on a
    // Bow (cpp/model/tests/data/gemm_points.csv); poplibs has 22 + 8 n from three rows on.
    return later ? 32 + 8 * real(n) : 48 + 8 * real(n) + 8 * std::max(0.0, real(n) - 3);
  }
  if (n == 0) return 22;
  if (n == 1) return 33 - retained;
  if (n == 2) return 42 - retained;
  return 38 + 4 * (real(n) - 3) - retained;
}

double lineWorker(std::uint64_t n, bool float_input) {
  if (n == 0) return 17;
  if (n == 1) return 33;
  if (n == 2) return 44;
  return 45 + (float_input ? 8 : 4) * (real(n) - 3);
}

struct Blocks {
  double in, out, passes, groups;
};

Blocks blocksOf(const VertexWork& w) {
  const std::uint64_t units = ampUnits(w.float_input, w.float_partials);
  const std::uint64_t out_group = std::max<std::uint64_t>(units, 16);
  return {real(ceilDiv(w.in_channels, ampChain(w.float_input, w.quarter_input))),
          real(ceilDiv(w.out_channels, out_group)), real(ceilDiv(out_group, units)),
          real(w.conv_groups)};
}

double pointwiseAmp(const VertexWork& w) {
  const Blocks b = blocksOf(w);
  const std::uint64_t n = ceilDiv(w.rows, w.workers);
  const double load = weightLoad(w);
  const double adding = w.workers * pointwiseWorker(n, w.float_input, true);
  const double zeroing = w.workers * pointwiseWorker(n, w.float_input, false);
  const double later = (b.in - 1) * (15 + b.out * (19 + b.passes * (6 + load + adding)));
  const double first = 11 + b.out * (18 + b.passes * (7 + load + zeroing));
  return 50 + w.workers * (7 + 3 * (b.in * b.groups - 1)) + b.groups * (13 + later + first);
}

double kernelAmp(const VertexWork& w) {
  const Blocks b = blocksOf(w);
  const std::uint64_t lines = ceilDiv(w.rows, std::max<std::uint64_t>(w.row_length, 1));
  // Workers get whole lines if there are enough, else lines are cut.
  const std::uint64_t parts = std::max<std::uint64_t>(1, lines / w.workers);
  const std::uint64_t length = ceilDiv(ceilDiv(w.rows, w.workers), parts);
  const double worker = 17 + real(parts) * (3 + lineWorker(length, w.float_input)) - 9;
  const double kernel = real(w.kernel_height * w.kernel_width);
  const double inner =
      real(w.kernel_height) * (14 + real(w.kernel_width) * (12 + b.passes * (weightLoad(w) + 18))) +
      kernel * b.passes * w.workers * worker;
  const double zero = w.workers * (real(ceilDiv(w.rows * w.out_channels, w.workers * 2)) + 15);
  return 109 + 54 + 60 + zero * b.groups + b.groups * 17 * b.out +
         b.groups * (16 + b.in * (14 + b.out * (14 + inner)));
}

}  // namespace

std::uint64_t ampUnits(bool float_input, bool float_partials) {
  return !float_input && float_partials ? 8 : 16;
}

std::uint64_t ampChain(bool float_input, bool quarter_input) {
  return quarter_input ? 32 : float_input ? 8 : 16;  // poplibs: 8 quarters in a load of 8 bytes
}

double ampCycles(const VertexWork& w) {
  return w.kernel_height * w.kernel_width == 1 ? pointwiseAmp(w) : kernelAmp(w);
}

double slicCycles(const VertexWork& w) {
  const double kernel_rows = real(w.kernel_height * ceilDiv(w.kernel_width, 4));
  const double groups = real(ceilDiv(w.conv_groups * w.in_channels, 4));
  const std::uint64_t lines = ceilDiv(w.rows, std::max<std::uint64_t>(w.row_length, 1));
  const double parts = real(std::max<std::uint64_t>(1, ceilDiv(lines, w.workers)));
  const double length = real(ceilDiv(w.rows, w.workers)) / parts;
  const double worker = 21 + parts * (25 + std::max(0.0, length - 5));
  return kLaunch + groups * kernel_rows * (34 + w.workers * worker);
}

double horizontalMacCycles(const VertexWork& w) {
  const double dot = real(ceilDiv(w.in_channels, w.float_input ? 1 : 2));
  const double rows = real(ceilDiv(w.rows, w.workers));
  const double kernel = real(w.kernel_height * w.kernel_width);
  const double worker = 16 + (kernel == 1 ? 13 : 19) + rows * (7 + real(w.out_channels) * dot);
  return (w.float_input ? 58 : 65) + real(w.conv_groups) * (48 + kernel * w.workers * worker);
}

double verticalMacCycles(const VertexWork& w) {
  const double rows = real(ceilDiv(w.rows, w.workers));
  const double kernel = real(w.kernel_height * w.kernel_width);
  const double vectors = std::max(1.0, real(w.conv_groups) / 8);
  const double worker = 25 + vectors * rows * (7 + 3 + 3 * (kernel - 1) * 0.5);
  return 100 + w.workers * worker;
}

double outerProductCycles(const VertexWork& w) {
  const double rows = real(ceilDiv(w.rows, w.workers));
  const double channels = real(w.out_channels);
  const double line =
      w.float_input ? 6 + std::max(0.0, channels - 6) / 2 : 6 + std::max(0.0, channels - 12) / 4;
  return kLaunch + w.workers * (25 + real(w.conv_groups) * (11 + rows * line));
}

double integerMacCycles(const VertexWork& w) {
  const double macs = real(ceilDiv(w.rows * w.conv_groups, w.workers)) * real(w.out_channels) *
                      real(w.in_channels * w.kernel_height * w.kernel_width);
  return kLaunch + w.workers * (20 + w.multiply_add_cycles * macs);
}

double reduceAddCycles(std::uint64_t outputs, std::uint64_t depth, bool half_partials,
                       unsigned workers) {
  const double loops = real(ceilDiv(outputs, workers * (half_partials ? 8 : 4)));
  return kLaunch + workers * (32 + (3 * real(depth) + 9) * loops);
}

double castCycles(std::uint64_t elements, std::uint64_t in_size, std::uint64_t out_size,
                  unsigned workers) {
  const std::uint64_t per_worker = ceilDiv(elements, workers);
  const std::uint64_t widest = std::max(in_size, out_size);
  return workers * (26 + real(ceilDiv(per_worker * widest, 8)));
}

double inverseStdDeviationCycles(std::uint64_t elements, std::uint64_t grain, unsigned workers) {
  const std::uint64_t grains = ceilDiv(elements, grain);
  const std::uint64_t vertices =
      std::clamp<std::uint64_t>(grains / 2, 1, std::max<std::uint64_t>(1, workers));
  const std::uint64_t share = std::min(elements, ceilDiv(grains, vertices) * grain);
  constexpr double kPerPair = 3 + 2;  // multiply, add and subtract a pair; roots one by one
  return kLaunch + workers * (6 + 4 + kPerPair * real(ceilDiv(share, 2)));
}

double ampVertexCycles(std::uint64_t rows, bool float_partials) {
  VertexWork work(ipujax::engine::machineByName("bow").worker_contexts);
  work.rows = rows;
  work.in_channels = work.out_channels = 16;
  work.float_partials = float_partials;
  work.wide_weight_load = true;
  return ampCycles(work);
}

}  // namespace poplin
