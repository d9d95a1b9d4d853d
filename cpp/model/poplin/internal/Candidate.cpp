#include "poplin/internal/Candidate.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/graph/Planning.hpp"
#include "engine/ops/SoftwareArithmetic.hpp"
#include "poplin/internal/VertexCycles.hpp"

namespace poplin::plan {
namespace {

using ipujax::engine::ceilDiv;
using ipujax::engine::Cost;
using ipujax::engine::ElementType;

constexpr std::uint64_t kTwoStages = 16;  ///< poplibs ConvReducePlan.cpp
constexpr std::uint64_t kThreeStages = 125;
/// Not published: approximate size of one assembled vertex with its entry code, and of its state.
constexpr std::uint64_t kCodeBytes = 1536;
constexpr std::uint64_t kStateBytes = 64;

constexpr double kEndless = std::numeric_limits<double>::infinity();

double real(std::uint64_t n) { return static_cast<double>(n); }

std::uint64_t power(std::uint64_t base, int exponent) {
  std::uint64_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// The fraction that a tile lacks of a share that `tiles` tiles read.
double missing(std::uint64_t tiles) { return 1.0 - 1.0 / real(tiles); }

}  // namespace

/// The largest tile's part of one slice.
struct Model::Share {
  std::uint64_t groups, rows, in, out, tiles;
  std::uint64_t in_elements, weight_elements, partials;
};

struct Model::Reduction {
  double exchange = 0, compute = 0, bytes = 0;
  int stages = 0;
};

/// Cycles of a whole run, and those that its loop over slices repeats.
struct Model::Phases {
  double compute = 0, exchange = 0, sync = 0;
  double repeated_exchange = 0, repeated_sync = 0;
  double exchange_bytes = 0;  ///< of one tile
  double cycles() const { return compute + exchange + sync; }
};

Model::Model(const Problem& problem, const poplar::Target& target, Transform transform)
    : target_(target),
      p_(problem),
      transform_(transform),
      in_size_(problem.quarters ? 1 : ipujax::engine::sizeOf(problem.in_type)),
      out_size_(ipujax::engine::sizeOf(problem.out_type)),
      partial_size_(problem.half_partials ? 2 : std::max<std::uint64_t>(4, out_size_)),
      limit_(problem.memory_proportion * real(target.getBytesPerTile())),
      sync_(target.getMaxIPUSyncDelay()),
      bus_(target.getExchangeBytesPerCycle()),
      memcpy_(target.getMemcpyBytesPerCycle()) {
  original_in_ = p_.input_elements * p_.groups;
  original_weights_ = p_.groups * p_.in_channels * p_.out_channels * p_.taps();
  if (transform.expanded) {
    p_.in_channels *= p_.taps();
    p_.kernel_height = p_.kernel_width = 1;
    p_.input_elements = p_.rows * p_.in_channels;
  }
  if (transform.swapped) {
    std::swap(p_.rows, p_.out_channels);
    p_.row_length = p_.rows;
    p_.input_elements = p_.rows * p_.in_channels;
  }
}

std::vector<Grains> Model::vertices() const {
  if (p_.in_type != ElementType::kHalf && p_.in_type != ElementType::kFloat)
    return {{Vertex::kInteger, 1, 1, 1}};
  if (p_.quarters) return {{Vertex::kAmp, 1, ampChain(false, true), 16}};
  const bool floats = p_.in_type == ElementType::kFloat;
  std::vector<Grains> list;
  list.push_back({Vertex::kAmp, 1, ampChain(floats), 16});
  const bool single = p_.in_channels == 1 && p_.out_channels == 1;
  // With one group or one kernel element these two still work, but are slower than others.
  const bool wants_slic = p_.constraints.vertex == Vertex::kSlic;
  const bool wants_vertical = p_.constraints.vertex == Vertex::kVerticalMac;
  if (!floats && p_.in_channels <= 4 && p_.out_channels <= 4 && p_.stride <= 2 &&
      (wants_slic || (p_.groups > 1 && p_.taps() > 1)))
    list.push_back({Vertex::kSlic, 4 / p_.in_channels, p_.in_channels, p_.out_channels});
  if (!floats && single && (wants_vertical || p_.groups > 1))
    list.push_back({Vertex::kVerticalMac, 4, 1, 1});
  if (p_.in_channels == 1 && p_.taps() == 1) list.push_back({Vertex::kOuterProduct, 1, 1, 1});
  list.push_back({Vertex::kHorizontalMac, 1, floats ? 1u : 2u, 1});
  return list;
}

Model::Share Model::shareOf(const Candidate& c) const {
  Share s{};
  s.groups = ceilDiv(ceilDiv(p_.groups, c.grains.group), c.group_split) * c.grains.group;
  s.groups = std::min(s.groups, p_.groups);
  s.rows = ceilDiv(p_.rows, c.row_split);
  s.in = ceilDiv(ceilDiv(p_.in_channels, c.grains.in), c.in_split * c.in_serial) * c.grains.in;
  s.out = ceilDiv(ceilDiv(p_.out_channels, c.grains.out), c.out_split * c.out_serial);
  s.out *= c.grains.out;
  s.tiles = c.group_split * c.row_split * c.in_split * c.out_split;
  const double field = real(p_.input_elements) / std::max(real(p_.in_channels * p_.rows), 1.0);
  // A kernel larger than one element also reads its neighbours' rows.
  const std::uint64_t halo =
      p_.taps() == 1 ? 0 : (p_.kernel_height - 1) * std::min(p_.row_length, s.rows);
  s.in_elements = s.groups * s.in * (static_cast<std::uint64_t>(real(s.rows) * field) + halo + 1);
  s.weight_elements = s.groups * s.in * s.out * p_.taps();
  s.partials = s.groups * s.rows * s.out;
  return s;
}

double Model::vertexCycles(const Candidate& c, const Share& s) const {
  VertexWork work(target_.getNumWorkerContexts());
  work.rows = s.rows;
  work.row_length = std::min(p_.row_length, s.rows);
  work.conv_groups = s.groups;
  work.in_channels = s.in;
  work.out_channels = s.out;
  work.kernel_height = p_.kernel_height;
  work.kernel_width = p_.kernel_width;
  if (ipujax::engine::isSoftware(p_.in_type))
    work.multiply_add_cycles = ipujax::engine::softwareMultiplyAddCycles(p_.in_type);
  work.float_input = p_.in_type == ElementType::kFloat;
  work.quarter_input = p_.quarters;
  work.float_partials = !p_.half_partials;
  work.wide_weight_load = p_.wide_weight_load;
  switch (c.grains.vertex) {
    case Vertex::kAmp:
      return ampCycles(work);
    case Vertex::kSlic:
      return slicCycles(work);
    case Vertex::kHorizontalMac:
      return horizontalMacCycles(work);
    case Vertex::kVerticalMac:
      return verticalMacCycles(work);
    case Vertex::kOuterProduct:
      return outerProductCycles(work);
    case Vertex::kInteger:
      return integerMacCycles(work);
  }
  return 0;
}

double Model::busFor(const Candidate& c) const {
  return c.out_split % target_.getTilesPerSharedExchangeBus() == 0 ? 2 * bus_ : bus_;
}

double Model::inputBytes(const Candidate& c, const Share& s) const {
  return real(s.in_elements * in_size_) * (transform_.expanded ? 1.0 : missing(c.out_split));
}

double Model::weightBytes(const Candidate& c, const Share& s) const {
  return real(s.weight_elements * in_size_) * missing(c.row_split);
}

Model::Reduction Model::reduction(const Candidate& c, const Share& s) const {
  Reduction r;
  std::uint64_t depth = c.in_split;
  r.stages = depth == 1 ? 0 : depth < kTwoStages ? 1 : depth < kThreeStages ? 2 : 3;
  if (!p_.multi_stage_reduce) r.stages = std::min(r.stages, 1);
  std::uint64_t partials = s.partials;
  for (int stage = 0; stage < r.stages; ++stage) {
    std::uint64_t factor = depth;
    if (const int left = r.stages - stage; left > 1) {
      factor = 2;  // the depth's root of order `left`
      while (power(factor, left) < depth) ++factor;
    }
    const std::uint64_t outputs = ceilDiv(partials, factor);
    const double bytes = real(outputs * (factor - 1) * partial_size_);
    r.bytes += bytes;
    r.exchange += bytes / bus_;
    r.compute += reduceAddCycles(outputs, factor, p_.half_partials, target_.getNumWorkerContexts());
    partials = outputs;
    depth = ceilDiv(depth, factor);
  }
  return r;
}

bool Model::castNeeded(const Candidate& c) const {
  const bool reduces_last = c.in_split > 1 && c.in_serial == 1;  // and casts as it writes
  return !reduces_last && out_size_ != partial_size_ && p_.in_type != ElementType::kInt32;
}

/// poplibs ConvModel.cpp: operands are moved and regrouped before the loop over slices. The loop
/// slices, transfers, multiplies and reduces; then it adds to earlier slices' sums or writes its
/// part of the result.
Model::Phases Model::phasesOf(const Candidate& c, const Share& s) const {
  Phases phases;
  const double turns = real(c.serial());
  const unsigned workers = target_.getNumWorkerContexts();
  if (const double bytes = movedBytes(c, s, true); bytes > 0) {
    // A swap regroups element by element, other moves in whole loads.
    const double rate = transform_.swapped ? std::min(memcpy_, real(in_size_)) : memcpy_;
    phases.exchange += bytes / bus_;
    phases.compute += bytes * 5 / 4 / rate;
    phases.sync += 2 * sync_;
    phases.exchange_bytes += bytes;
  }
  const Reduction r = reduction(c, s);
  const double input = inputBytes(c, s), weights = weightBytes(c, s);
  const double input_turns = c.input_stays ? 1 : turns;
  const double outer_exchange = phases.exchange, outer_sync = phases.sync;
  phases.compute += turns * (vertexCycles(c, s) + r.compute);
  phases.exchange += input_turns * input / busFor(c) + turns * (weights / bus_ + r.exchange);
  phases.exchange_bytes += input_turns * input + turns * (weights + r.bytes);
  phases.sync += turns * sync_ * 2 * (1 + r.stages);
  const std::uint64_t outputs = ceilDiv(s.partials, c.in_split);
  if (castNeeded(c)) {
    const double casts = real(c.out_serial);
    phases.compute += casts * castCycles(outputs, partial_size_, out_size_, workers);
    phases.sync += casts * sync_;
  }
  if (turns > 1) {
    const double slices = real(s.weight_elements * in_size_) / real(c.row_split) / memcpy_;
    phases.compute += turns * slices;
    if (c.out_serial > 1) phases.compute += turns * real(outputs * out_size_) / memcpy_;
    phases.sync += turns * sync_;
  }
  if (c.in_serial > 1) {
    phases.compute += turns * real(s.in_elements * in_size_) / real(c.out_split) / memcpy_;
    phases.compute += (turns - 1) * reduceAddCycles(outputs, 2, p_.half_partials, workers);
    phases.sync += (turns - 1) * sync_;
  }
  phases.repeated_exchange = (phases.exchange - outer_exchange) * (turns - 1) / turns;
  phases.repeated_sync = (phases.sync - outer_sync) * (turns - 1) / turns;
  return phases;
}

std::uint64_t Model::inElementsPerTile(const Candidate& c, const Share& s) const {
  if (transform_.expanded || transform_.swapped)
    return ceilDiv(original_in_, target_.getNumTiles());
  return ceilDiv(s.in_elements * c.in_serial, c.out_split);
}

std::uint64_t Model::weightElementsPerTile(const Candidate& c, const Share& s) const {
  if (transform_.swapped) return ceilDiv(original_weights_, target_.getNumTiles());
  return ceilDiv(s.weight_elements * c.serial(), c.row_split);
}

/// Counts operands that lie elsewhere, if `moves`, and those that a transform regroups.
double Model::movedBytes(const Candidate& c, const Share& s, bool moves) const {
  const bool input_moves = (moves && p_.in_moved) || transform_.swapped;
  const double input = input_moves ? real(inElementsPerTile(c, s) * in_size_) : 0;
  return input + movedWeights(c, s, moves);
}

double Model::movedWeights(const Candidate& c, const Share& s, bool moves) const {
  const bool weights_move = (moves && p_.weights_moved) || transform_.swapped;
  return weights_move ? real(weightElementsPerTile(c, s) * in_size_) : 0;
}

bool Model::writesResult(const Candidate& c) const {
  return c.in_split == 1 && !castNeeded(c) && c.serial() == 1;
}

/// The maximum over regrouping from one buffer to another, multiplying and reducing. Moved operands
/// stay while they are multiplied, and with slices until the last.
Model::Temporary Model::temporaryOf(const Candidate& c, const Share& s, bool moves) const {
  const bool looped = c.serial() > 1;
  const double moved = movedBytes(c, s, moves);
  const double moved_weights = movedWeights(c, s, moves);
  const double partials = real(s.partials * partial_size_);
  const double sums = c.in_serial > 1 ? real(ceilDiv(s.partials, c.in_split) * partial_size_) : 0;
  const double input = inputBytes(c, s);
  const double weights = weightBytes(c, s);
  const Temporary rearrange{2 * moved, 2 * moved, 0, 2 * moved_weights};
  const Temporary multiply{moved + sums + input + weights + (writesResult(c) ? 0 : partials), moved,
                           input + weights, moved_weights, weights};
  const double stays = looped ? moved : 0;
  const double input_stays = c.input_stays ? input : 0;
  const Temporary reduce{stays + input_stays + sums + 2 * partials, stays, input_stays + partials,
                         looped ? moved_weights : 0};
  Temporary most = multiply;
  if (rearrange.bytes > most.bytes) most = rearrange;
  if (c.in_split > 1 && reduce.bytes > most.bytes) most = reduce;
  return most;
}

/// The most multiplications that a tile can do in one cycle.
double Model::fastest(Vertex vertex) const {
  if (vertex == Vertex::kInteger) return 1;
  if (vertex == Vertex::kHorizontalMac) return 2;
  if (vertex == Vertex::kSlic) return 64;
  if (vertex != Vertex::kAmp || p_.in_type == ElementType::kFloat) return 16;
  if (p_.quarters) return 128;
  return p_.half_partials ? 64 : 32;
}

double Model::leastCycles(const Grains& grains, std::uint64_t serial) const {
  const double all = real(p_.groups) * real(p_.rows) * real(p_.in_channels) *
                     real(p_.out_channels) * real(p_.taps());
  return all / fastest(grains.vertex) / target_.getNumTiles() + real(serial) * 2 * sync_;
}

void Model::evaluate(Candidate& c, double most) const {
  const Share s = shareOf(c);
  c.temporary = temporaryOf(c, s, p_.limits_moves).bytes;
  c.fits = c.temporary <= limit_;
  if (!c.fits && most < kEndless) return;
  const double turns = real(c.serial());
  const double macs = real(s.weight_elements) * real(s.rows) / fastest(c.grains.vertex);
  c.cycles = inputBytes(c, s) * (c.input_stays ? 1 : turns) / busFor(c) +
             turns * (weightBytes(c, s) / bus_ + macs + 2 * sync_);
  if (c.cycles <= most) c.cycles = phasesOf(c, s).cycles();
}

/// Mean work of a busy tile over the largest: 1 minus the waste of rounding up to grains.
double Model::balance(const Candidate& c, const Share& s) const {
  const double all = real(p_.groups) * real(p_.rows) * real(p_.in_channels) * real(p_.out_channels);
  const double shared =
      real(s.groups) * real(s.rows) * real(s.in) * real(s.out) * real(s.tiles) * real(c.serial());
  return std::min(1.0, all / std::max(shared, 1.0));
}

Plan Model::planOf(const Candidate& c) const {
  const Share s = shareOf(c);
  const Phases phases = phasesOf(c, s);
  Plan plan;
  plan.vertex = c.grains.vertex;
  plan.expanded = transform_.expanded;
  plan.swapped = transform_.swapped;
  plan.group_split = c.group_split;
  plan.row_split = c.row_split;
  plan.in_split = c.in_split;
  plan.out_split = c.out_split;
  plan.out_serial = c.out_serial;
  plan.in_serial = c.in_serial;
  plan.tiles = s.tiles;
  plan.fits = c.fits;
  // Halves that stand for quarters are summed as floats.
  plan.chain = p_.half_partials && !p_.quarters ? s.in * p_.taps() : 0;
  plan.in_elements_per_tile = inElementsPerTile(c, s);
  plan.weight_elements_per_tile = weightElementsPerTile(c, s);
  plan.out_elements_per_tile = ceilDiv(s.partials * c.out_serial, c.in_split);
  Cost& cost = plan.cost;
  cost.compute_cycles = phases.compute;
  cost.mean_compute_cycles = phases.compute * balance(c, s) * real(s.tiles) / target_.getNumTiles();
  cost.exchange_cycles = phases.exchange;
  cost.sync_cycles = phases.sync;
  cost.repeated_exchange_cycles = phases.repeated_exchange;
  cost.repeated_sync_cycles = phases.repeated_sync;
  cost.exchange_bytes = real(s.tiles) * phases.exchange_bytes;
  const Temporary temporary = temporaryOf(c, s, true);
  cost.raiseTemporaries(static_cast<std::uint64_t>(temporary.bytes),
                        static_cast<std::uint64_t>(temporary.rearranged),
                        static_cast<std::uint64_t>(temporary.received));
  cost.vertex_memory = vertexMemoryOf(c, temporary);
  cost.vertex_state_bytes =
      kStateBytes + 8 * (ceilDiv(s.in, c.grains.in) + ceilDiv(s.out, c.grains.out)) * s.groups;
  cost.code_bytes = kCodeBytes;
  return plan;
}

}  // namespace poplin::plan
