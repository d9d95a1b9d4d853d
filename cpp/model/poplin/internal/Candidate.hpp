#pragma once
#include <cstdint>
#include <vector>

#include "poplin/internal/Plan.hpp"

/// One way to split a product over the tiles, its cycles and its memory. Variables, cost and bounds
/// follow poplibs lib/poplin/ConvModel.cpp.
namespace poplin::plan {

/// A vertex and the least numbers of groups and channels that it works on.
struct Grains {
  Vertex vertex = Vertex::kAmp;
  std::uint64_t group = 1, in = 1, out = 1;
};

struct Candidate {
  Grains grains{};
  std::uint64_t group_split = 1, row_split = 1, in_split = 1, out_split = 1;
  std::uint64_t out_serial = 1, in_serial = 1;
  /// With slices of output channels: the input is sent once and stays, or is sent for each slice.
  bool input_stays = false;
  double cycles = 0, temporary = 0;
  bool fits = false;

  std::uint64_t serial() const { return out_serial * in_serial; }
};

/// Transforms of the operands before the product is split.
struct Transform {
  bool expanded = false;
  bool swapped = false;
};

/// The problem after a transform, and the sizes that all costs use.
class Model {
 public:
  Model(const Problem& problem, const poplar::Target& target, Transform transform);

  const Problem& problem() const { return p_; }
  std::vector<Grains> vertices() const;

  /// No candidate of this vertex and number of slices takes fewer cycles.
  double leastCycles(const Grains& grains, std::uint64_t serial) const;
  /// Sets temporary, fits and cycles. `most` is infinite until a candidate fits. Then those that do
  /// not fit get no cycles, and those sure to take more than `most` get a lower bound.
  void evaluate(Candidate& candidate, double most) const;
  Plan planOf(const Candidate& candidate) const;

 private:
  struct Share;
  struct Phases;
  struct Reduction;

  double fastest(Vertex vertex) const;
  Share shareOf(const Candidate& c) const;
  double vertexCycles(const Candidate& c, const Share& s) const;
  Reduction reduction(const Candidate& c, const Share& s) const;
  Phases phasesOf(const Candidate& c, const Share& s) const;
  /// Bytes that a tile receives for one slice: its share minus what it already has.
  double inputBytes(const Candidate& c, const Share& s) const;
  double weightBytes(const Candidate& c, const Share& s) const;
  double busFor(const Candidate& c) const;
  bool castNeeded(const Candidate& c) const;
  /// Bytes on one tile of the operands that are moved before the first slice.
  double movedBytes(const Candidate& c, const Share& s, bool moves) const;
  double movedWeights(const Candidate& c, const Share& s, bool moves) const;
  std::uint64_t inElementsPerTile(const Candidate& c, const Share& s) const;
  std::uint64_t weightElementsPerTile(const Candidate& c, const Share& s) const;
  struct Temporary {
    double bytes, rearranged, received;                   ///< the first includes the others
    double weights_rearranged = 0, weights_received = 0;  ///< parts of the last two
  };
  /// Temporaries at their maximum.
  Temporary temporaryOf(const Candidate& c, const Share& s, bool moves) const;
  /// Whether the vertices write the result itself, and no partials.
  bool writesResult(const Candidate& c) const;
  /// Operands are 0 (input), 1 (weights) and 2 (result).
  ipujax::engine::VertexMemory vertexMemoryOf(const Candidate& c, const Temporary& t) const;
  double balance(const Candidate& c, const Share& s) const;

  const poplar::Target& target_;
  Problem p_;
  Transform transform_;
  std::uint64_t original_in_ = 1, original_weights_ = 1;  ///< elements, before the transform
  std::uint64_t in_size_, out_size_, partial_size_;
  double limit_, sync_, bus_, memcpy_;
};

}  // namespace poplin::plan
