#include "poplin/internal/Plan.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "engine/SoftwareArithmetic.hpp"
#include "engine/graph/Planning.hpp"
#include "poplin/internal/VertexCycles.hpp"

/// Variables, cost and bounds follow poplibs lib/poplin/ConvPlan.cpp and ConvModel.cpp; the search
/// walks split counts directly where poplibs runs a constraint solver.
namespace poplin::plan {
namespace {

using ipujax::engine::ceilDiv;
using ipujax::engine::Cost;
using ipujax::engine::ElementType;

constexpr std::uint64_t kTwoStages = 16;  ///< poplibs ConvReducePlan.cpp
constexpr std::uint64_t kThreeStages = 125;
/// Not published: the order of size of one assembled vertex with its entry code, and of its state.
constexpr std::uint64_t kCodeBytes = 1536;
constexpr std::uint64_t kStateBytes = 64;

/// Counts worth trying for a dimension of `grains`: about four an octave, each the smallest
/// split that gives its largest share.
struct Splits {
  std::array<std::uint64_t, 64> values{};
  std::size_t count = 0;
  Splits(std::uint64_t grains, std::uint64_t most) {
    const std::uint64_t limit = std::max<std::uint64_t>(1, std::min(grains, most));
    for (std::uint64_t s = 1; s <= limit && count < values.size();
         s = std::max(s + 1, s * 19 / 16)) {
      const std::uint64_t balanced = ceilDiv(grains, ceilDiv(grains, s));
      if (count == 0 || values[count - 1] != balanced) values[count++] = balanced;
    }
    const std::uint64_t last = ceilDiv(grains, ceilDiv(grains, limit));
    if (count < values.size() && values[count - 1] != last) values[count++] = last;
  }
  const std::uint64_t* begin() const { return values.data(); }
  const std::uint64_t* end() const { return values.data() + count; }
};

struct Grains {
  Vertex vertex;
  std::uint64_t group, in, out;
};

/// One way to share the work, and what follows from it.
struct Candidate {
  Grains grains{};
  bool expanded = false;
  std::uint64_t group_split = 1, row_split = 1, in_split = 1, out_split = 1, serial = 1;
  double cycles = 0, temporary = 0;
  bool fits = false;
};

/// The problem, perhaps with its kernel expanded into channels, and the sizes the cost needs again
/// and again.
class Model {
 public:
  Model(const Problem& problem, const poplar::Target& target, bool expanded)
      : target_(target), p_(problem), expanded_(expanded) {
    unexpanded_elements_ = problem.input_elements;
    if (expanded) {
      p_.in_channels *= p_.taps();
      p_.kernel_height = p_.kernel_width = 1;
      p_.input_elements = p_.rows * p_.in_channels;
    }
    in_size_ = ipujax::engine::sizeOf(p_.in_type);
    out_size_ = ipujax::engine::sizeOf(p_.out_type);
    partial_size_ = p_.half_partials ? 2 : std::max<std::size_t>(4, out_size_);
    limit_ = p_.memory_proportion * static_cast<double>(target.getBytesPerTile());
  }

  const Problem& problem() const { return p_; }

  std::vector<Grains> vertices() const {
    if (p_.in_type != ElementType::kHalf && p_.in_type != ElementType::kFloat)
      return {{Vertex::kInteger, 1, 1, 1}};
    const bool floats = p_.in_type == ElementType::kFloat;
    std::vector<Grains> list;
    list.push_back({Vertex::kAmp, 1, ampChain(floats), 16});
    list.push_back({Vertex::kHorizontalMac, 1, floats ? 1u : 2u, 1});
    const bool single = p_.in_channels == 1 && p_.out_channels == 1;
    if (!floats && p_.groups > 1 && p_.in_channels <= 4 && p_.out_channels <= 4 && p_.stride <= 2 &&
        p_.taps() > 1)
      list.push_back({Vertex::kSlic, 4 / p_.in_channels, p_.in_channels, p_.out_channels});
    if (!floats && p_.groups > 1 && single) list.push_back({Vertex::kVerticalMac, 4, 1, 1});
    if (p_.in_channels == 1 && p_.taps() == 1) list.push_back({Vertex::kOuterProduct, 1, 1, 1});
    return list;
  }

  struct Share {
    std::uint64_t groups, rows, in, out, tiles;
    std::uint64_t in_elements, weight_elements, partials;
  };

  Share shareOf(const Candidate& c) const {
    Share s{};
    s.groups = ceilDiv(ceilDiv(p_.groups, c.grains.group), c.group_split) * c.grains.group;
    s.groups = std::min(s.groups, p_.groups);
    s.rows = ceilDiv(p_.rows, c.row_split);
    s.in = ceilDiv(ceilDiv(p_.in_channels, c.grains.in), c.in_split) * c.grains.in;
    s.out = ceilDiv(ceilDiv(p_.out_channels, c.grains.out), c.out_split * c.serial) * c.grains.out;
    s.tiles = c.group_split * c.row_split * c.in_split * c.out_split;
    const double field = static_cast<double>(p_.input_elements) /
                         static_cast<double>(std::max<std::uint64_t>(p_.in_channels * p_.rows, 1));
    // A kernel larger than one element also reads its neighbours' rows.
    const std::uint64_t halo =
        p_.taps() == 1 ? 0 : (p_.kernel_height - 1) * std::min(p_.row_length, s.rows);
    s.in_elements = s.groups * s.in *
                    (static_cast<std::uint64_t>(static_cast<double>(s.rows) * field) + halo + 1);
    s.weight_elements = s.groups * s.in * s.out * p_.taps();
    s.partials = s.groups * s.rows * s.out;
    return s;
  }

  double vertexCycles(const Candidate& c, const Share& s) const {
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

  /// Bytes one tile receives before it computes: its shares less the part that is there already.
  double exchangeCycles(const Candidate& c, const Share& s) const {
    const double bus = target_.getExchangeBytesPerCycle();
    const double input_bus =
        c.out_split % target_.getTilesPerSharedExchangeBus() == 0 ? 2 * bus : bus;
    return inputBytes(c, s) / input_bus + weightBytes(c, s) / bus;
  }
  double inputBytes(const Candidate& c, const Share& s) const {
    const double share = 1.0 - 1.0 / static_cast<double>(c.out_split);
    const double gathered = expanded_ ? 1.0 : share;
    return static_cast<double>(s.in_elements * in_size_) * gathered;
  }
  double weightBytes(const Candidate& c, const Share& s) const {
    const double share = 1.0 - 1.0 / static_cast<double>(c.row_split);
    return static_cast<double>(s.weight_elements * in_size_) * share;
  }

  struct Reduction {
    double exchange = 0, compute = 0, bytes = 0;
    int stages = 0;
  };

  Reduction reduction(const Candidate& c, const Share& s) const {
    Reduction r;
    std::uint64_t depth = c.in_split;
    r.stages = depth == 1 ? 0 : depth < kTwoStages ? 1 : depth < kThreeStages ? 2 : 3;
    std::uint64_t partials = s.partials;
    for (int stage = 0; stage < r.stages; ++stage) {
      std::uint64_t factor = depth;
      if (const int left = r.stages - stage; left > 1) {
        factor = 2;  // the depth's root of order `left`
        while (power(factor, left) < depth) ++factor;
      }
      const std::uint64_t outputs = ceilDiv(partials, factor);
      const double bytes = static_cast<double>(outputs * (factor - 1) * partial_size_);
      r.bytes += bytes;
      r.exchange += bytes / target_.getExchangeBytesPerCycle();
      r.compute +=
          reduceAddCycles(outputs, factor, p_.half_partials, target_.getNumWorkerContexts());
      partials = outputs;
      depth = ceilDiv(depth, factor);
    }
    return r;
  }

  double castOf(const Share& s) const {
    return castCycles(s.partials, partial_size_, out_size_, target_.getNumWorkerContexts());
  }

  void evaluate(Candidate& c) const {
    const Share s = shareOf(c);
    const Reduction r = reduction(c, s);
    const double sync = target_.getMaxIPUSyncDelay();
    double once = exchangeCycles(c, s) + vertexCycles(c, s) + r.exchange + r.compute;
    once += sync * 2 * (1 + r.stages);
    if (castNeeded(c)) once += castOf(s) + sync;
    c.cycles = once * static_cast<double>(c.serial);
    c.temporary = std::max(multiplyBytes(c, s), reductionBytes(c, s));
    c.fits = c.temporary <= limit_;
  }

  double multiplyBytes(const Candidate& c, const Share& s) const {
    const bool is_result = c.in_split == 1 && !castNeeded(c) && c.serial == 1;
    const double partials = is_result ? 0 : static_cast<double>(s.partials * partial_size_);
    return inputBytes(c, s) + weightBytes(c, s) + partials;
  }

  double reductionBytes(const Candidate& c, const Share& s) const {
    return c.in_split == 1 ? 0 : 2 * static_cast<double>(s.partials * partial_size_);
  }

  bool castNeeded(const Candidate& c) const {
    return c.in_split == 1 && out_size_ != partial_size_ && p_.in_type != ElementType::kInt32;
  }

  Plan planOf(const Candidate& c) const {
    const Share s = shareOf(c);
    const Reduction r = reduction(c, s);
    Plan plan;
    plan.vertex = c.grains.vertex;
    plan.expanded = expanded_;
    plan.group_split = c.group_split;
    plan.row_split = c.row_split;
    plan.in_split = c.in_split;
    plan.out_split = c.out_split;
    plan.serial_split = c.serial;
    plan.tiles = s.tiles;
    plan.fits = c.fits;
    plan.chain = p_.half_partials ? s.in * p_.taps() : 0;
    const std::uint64_t tiles = target_.getNumTiles();
    plan.in_elements_per_tile = ceilDiv(s.in_elements, c.out_split);
    if (expanded_) plan.in_elements_per_tile = ceilDiv(unexpanded_elements_ * p_.groups, tiles);
    plan.weight_elements_per_tile = ceilDiv(s.weight_elements * c.serial, c.row_split);
    plan.out_elements_per_tile = ceilDiv(s.partials * c.serial, c.in_split);
    plan.in_move_bytes = static_cast<double>(plan.in_elements_per_tile * in_size_);
    plan.weight_move_bytes = static_cast<double>(plan.weight_elements_per_tile * in_size_);
    Cost& cost = plan.cost;
    const double serial = static_cast<double>(c.serial);
    const double sync = target_.getMaxIPUSyncDelay();
    const double cast = castNeeded(c) ? castOf(s) : 0;
    cost.compute_cycles = serial * (vertexCycles(c, s) + r.compute + cast);
    const double busy = static_cast<double>(s.tiles) / static_cast<double>(tiles);
    cost.mean_compute_cycles = cost.compute_cycles * busy * balance(c, s);
    cost.exchange_cycles = serial * (exchangeCycles(c, s) + r.exchange);
    cost.sync_cycles = serial * sync * (2 * (1 + r.stages) + (cast > 0 ? 1 : 0));
    cost.repeated_exchange_cycles = cost.exchange_cycles * (serial - 1) / serial;
    cost.repeated_sync_cycles = cost.sync_cycles * (serial - 1) / serial;
    cost.exchange_bytes =
        serial * static_cast<double>(s.tiles) * (inputBytes(c, s) + weightBytes(c, s) + r.bytes);
    plan.multiply_bytes = static_cast<std::uint64_t>(multiplyBytes(c, s));
    plan.reduce_bytes = static_cast<std::uint64_t>(reductionBytes(c, s));
    cost.temporary_bytes = std::max(plan.multiply_bytes, plan.reduce_bytes);
    cost.vertex_state_bytes =
        kStateBytes + 8 * (ceilDiv(s.in, c.grains.in) + ceilDiv(s.out, c.grains.out)) * s.groups;
    cost.code_bytes = kCodeBytes;
    return plan;
  }

 private:
  static std::uint64_t power(std::uint64_t base, int exponent) {
    std::uint64_t result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
  }

  /// Work of the mean busy tile over the largest: what rounding up to grains wastes.
  double balance(const Candidate& c, const Share& s) const {
    const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
    const double all =
        real(p_.groups) * real(p_.rows) * real(p_.in_channels) * real(p_.out_channels);
    const double shared =
        real(s.groups) * real(s.rows) * real(s.in) * real(s.out) * real(s.tiles) * real(c.serial);
    return std::min(1.0, all / std::max(shared, 1.0));
  }

  const poplar::Target& target_;
  Problem p_;
  bool expanded_;
  std::uint64_t unexpanded_elements_ = 1;
  std::uint64_t in_size_, out_size_, partial_size_;
  double limit_;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits && a.temporary != b.temporary) return a.temporary < b.temporary;
  return a.cycles < b.cycles;
}

/// Tries every share for one vertex of one model.
void search(const Model& model, const Grains& grains, bool expanded, std::uint64_t serial,
            std::uint64_t tiles, Candidate& best, bool& found) {
  const Problem& p = model.problem();
  const std::uint64_t group_grains = ceilDiv(p.groups, grains.group);
  const std::uint64_t most = std::min(group_grains, tiles);
  const std::uint64_t group_split = ceilDiv(group_grains, ceilDiv(group_grains, most));
  Candidate c;
  c.grains = grains;
  c.expanded = expanded;
  c.serial = serial;
  c.group_split = group_split;
  const std::uint64_t per_group = tiles / group_split;
  const std::uint64_t out_grains = ceilDiv(p.out_channels, grains.out);
  if (out_grains < serial && serial > 1) return;
  const Splits in_splits(ceilDiv(p.in_channels, grains.in), per_group);
  for (const std::uint64_t out : Splits(ceilDiv(out_grains, serial), per_group)) {
    for (const std::uint64_t in : in_splits) {
      const std::uint64_t left = per_group / (out * in);
      if (left == 0) break;
      std::uint64_t previous = 0;
      for (const std::uint64_t rows : {left, left / 2}) {
        if (rows == 0) continue;
        c.out_split = out;
        c.in_split = in;
        c.row_split = ceilDiv(p.rows, ceilDiv(p.rows, std::min(rows, p.rows)));
        if (c.row_split == previous) continue;
        previous = c.row_split;
        model.evaluate(c);
        if (!found || better(c, best)) best = c;
        found = true;
      }
    }
  }
}

}  // namespace

const char* nameOf(Vertex vertex) {
  constexpr const char* kNames[] = {"AMP", "SLIC", "HMAC", "VMAC", "OUTER_PRODUCT", "INTEGER"};
  return kNames[static_cast<std::size_t>(vertex)];
}

Plan makePlan(const Problem& problem, const poplar::Target& target) {
  Problem p = problem;
  for (auto* n :
       {&p.rows, &p.groups, &p.in_channels, &p.out_channels, &p.kernel_height, &p.kernel_width})
    *n = std::max<std::uint64_t>(*n, 1);
  std::vector<Model> models;
  models.emplace_back(p, target, false);
  if (p.taps() > 1) models.emplace_back(p, target, true);
  Candidate best;
  bool found = false;
  constexpr std::uint64_t kMostSerial = 64;
  for (std::uint64_t serial = 1; serial <= kMostSerial; serial *= 2) {
    for (std::size_t m = 0; m < models.size(); ++m)
      for (const auto& grains : models[m].vertices())
        search(models[m], grains, m == 1, serial, target.getNumTiles(), best, found);
    if (best.fits) break;
  }
  Plan plan = models[best.expanded ? 1 : 0].planOf(best);
  const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
  plan.cost.flops = 2 * real(problem.groups) * real(problem.rows) * real(problem.in_channels) *
                    real(problem.out_channels) * real(problem.taps());
  return plan;
}

std::string Plan::report() const {
  std::ostringstream os;
  os << "vertex " << nameOf(vertex) << (expanded ? ", kernel expanded into channels" : "")
     << "; split: groups " << group_split << ", rows " << row_split << ", input channels "
     << in_split << ", output channels " << out_split << ", serial " << serial_split << "; tiles "
     << tiles << "; cycles " << cost.cycles() << " (compute " << cost.compute_cycles
     << ", exchange " << cost.exchange_cycles << ", sync " << cost.sync_cycles
     << "); temporary bytes " << cost.temporary_bytes
     << (fits ? "" : " (more than the options allow)");
  return os.str();
}

}  // namespace poplin::plan
