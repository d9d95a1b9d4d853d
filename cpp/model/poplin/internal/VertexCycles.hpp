#pragma once
#include <cstdint>

/// Tile cycles of the matrix and convolution vertices on the largest tile's share. Formulas after
/// poplibs lib/poplin/PerformanceEstimation.hpp and poplinCycleEstimators.cpp.
namespace poplin {

/// What one vertex works on: all counts are of one tile.
struct VertexWork {
  explicit VertexWork(unsigned worker_contexts) : workers(worker_contexts) {}

  unsigned workers;              ///< of the tile
  std::uint64_t rows = 1;        ///< outputs (batch x field) of one group and channel
  std::uint64_t row_length = 1;  ///< of those, in one line of the field
  std::uint64_t conv_groups = 1;
  std::uint64_t in_channels = 1;
  std::uint64_t out_channels = 1;
  std::uint64_t kernel_height = 1;
  std::uint64_t kernel_width = 1;
  bool float_input = false;
  bool quarter_input = false;
  bool float_partials = true;
  /// Weights loaded 16 bytes a cycle from interleaved memory (option use128BitConvUnitLoad).
  bool wide_weight_load = false;
  /// Worker cycles of one multiply and add where neither AMP nor MAC units do it.
  double multiply_add_cycles = 7;  // popops: one integer multiply or add in compiled code
};

/// Output channels the accumulating matrix product units hold at one time.
std::uint64_t ampUnits(bool float_input, bool float_partials);
/// Input channels of one pass: the length of the units' chain.
std::uint64_t ampChain(bool float_input, bool quarter_input = false);

double ampCycles(const VertexWork& work);
double slicCycles(const VertexWork& work);
double horizontalMacCycles(const VertexWork& work);
double verticalMacCycles(const VertexWork& work);
double outerProductCycles(const VertexWork& work);
/// A plain loop, for integers: no published vertex multiplies them.
double integerMacCycles(const VertexWork& work);

/// Adds `depth` lists of `outputs` partials (poplin ReduceAdd).
double reduceAddCycles(std::uint64_t outputs, std::uint64_t depth, bool half_partials,
                       unsigned workers);
double castCycles(std::uint64_t elements, std::uint64_t in_size, std::uint64_t out_size,
                  unsigned workers);

/// Cycles of InverseStdDeviation vertices on a tile with `elements` of a vector. A worker gets two
/// or more grains of `grain` elements (poplinCycleEstimators.cpp, and computeInvStdDev of
/// Norms.cpp).
double inverseStdDeviationCycles(std::uint64_t elements, std::uint64_t grain, unsigned workers);

/// One AMP vertex with 16 x 16 half weights in interleaved memory over `rows` rows: the case that
/// was measured on hardware (tessellate-ipu, notebook "IPU Peak Flops").
double ampVertexCycles(std::uint64_t rows, bool float_partials = false);

}  // namespace poplin
