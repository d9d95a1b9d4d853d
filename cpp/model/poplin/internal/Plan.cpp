#include "poplin/internal/Plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>
#include <vector>

#include "engine/graph/Planning.hpp"
#include "poplar/exceptions.hpp"
#include "poplin/internal/Candidate.hpp"

/// The search walks split counts directly, with bounds, where poplibs ConvPlan.cpp runs a
/// constraint solver. Its candidates depend only on shapes and types.
namespace poplin::plan {
namespace {

using ipujax::engine::ceilDiv;

constexpr std::uint64_t kMostSerial = 64;

/// Counts worth trying for a dimension of `grains`: about four per octave, each the smallest
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
  /// These counts, or only `wanted`, if set; none if there are too few grains for it.
  Splits(std::uint64_t grains, std::uint64_t most, std::uint64_t wanted) {
    if (wanted == 0) {
      *this = Splits(grains, most);
    } else if (wanted <= std::min(grains, most)) {
      values[count++] = wanted;
    }
  }
  const std::uint64_t* begin() const { return values.data(); }
  const std::uint64_t* end() const { return values.data() + count; }
};

bool meets(const Constraints& wanted, const Grains& grains) {
  const auto free = [](std::uint64_t asked, std::uint64_t has) {
    return asked == 0 || asked == has;
  };
  return (!wanted.vertex || *wanted.vertex == grains.vertex) &&
         free(wanted.group_grain, grains.group) && free(wanted.in_grain, grains.in) &&
         free(wanted.out_grain, grains.out);
}

/// Whether batch, field and output channels have at least as many elements as wanted parts. A swap
/// exchanges batch and output channels. Where each output has one input, as in products, batch and
/// field are one dimension.
bool holds(const Problem& p, const Constraints& wanted, Transform transform) {
  if (p.field.empty()) return true;
  if (wanted.field_split.size() > p.field.size()) return false;
  if (p.taps() == 1) return true;
  const std::uint64_t batch = transform.swapped ? p.out_channels : p.batch;
  const std::uint64_t channels = transform.swapped ? p.batch : p.out_channels;
  const auto parts = [](std::uint64_t n) { return std::max<std::uint64_t>(n, 1); };
  if (parts(wanted.batch_split) > batch) return false;
  // No overflow: a count is at most 2^32.
  if (parts(wanted.out_split) * parts(wanted.out_serial) > channels) return false;
  for (std::size_t d = 0; d < wanted.field_split.size(); ++d) {
    const bool is_flattened = transform.expanded && d + 1 == p.field.size();
    if (parts(wanted.field_split[d]) > (is_flattened ? p.rows : p.field[d])) return false;
  }
  return true;
}

/// The best candidate so far, over all models.
class Search {
 public:
  Search(std::uint64_t tiles, bool bounded, const Constraints& wanted)
      : tiles_(tiles), bounded_(bounded), wanted_(wanted) {}

  /// Tries all shares of all vertices of a model with `serial` slices of one dimension.
  void vertices(const Model& model, std::uint64_t serial) {
    for (const Grains& grains : model.vertices()) {
      if (!meets(wanted_, grains)) continue;
      if (isWanted(serial, 1)) slices(model, grains, serial, 1);
      if (serial > 1 && isWanted(1, serial)) slices(model, grains, 1, serial);
    }
  }

  const Candidate& best() const { return best_; }
  const Model* model() const { return model_; }  ///< null if nothing meets the constraints

 private:
  bool isWanted(std::uint64_t out_serial, std::uint64_t in_serial) const {
    return (wanted_.out_serial == 0 || wanted_.out_serial == out_serial) &&
           (wanted_.in_serial == 0 || wanted_.in_serial == in_serial);
  }

  /// Tries every share of one vertex with this many slices.
  void slices(const Model& model, const Grains& grains, std::uint64_t out_serial,
              std::uint64_t in_serial) {
    if (model.leastCycles(grains, out_serial * in_serial) >= bound()) return;
    const Problem& p = model.problem();
    const std::uint64_t out_grains = ceilDiv(p.out_channels, grains.out);
    const std::uint64_t in_grains = ceilDiv(p.in_channels, grains.in);
    if (out_grains < out_serial || in_grains < in_serial) return;
    const std::uint64_t group_grains = ceilDiv(p.groups, grains.group);
    const std::uint64_t most = std::min(group_grains, tiles_);
    Candidate c;
    c.grains = grains;
    c.out_serial = out_serial;
    c.in_serial = in_serial;
    if (wanted_.group_split > 0) {
      c.group_split = wanted_.group_split;
      if (c.group_split <= most) shares(model, c, out_grains, in_grains);
      return;
    }
    // The smallest shares of groups, and larger ones where they leave tiles for other splits.
    std::uint64_t previous = 0;
    for (std::uint64_t larger = 0; larger < 4; ++larger) {
      c.group_split = ceilDiv(group_grains, ceilDiv(group_grains, most) + larger);
      if (c.group_split == previous) break;
      previous = c.group_split;
      shares(model, c, out_grains, in_grains);
    }
  }

  void shares(const Model& model, Candidate& c, std::uint64_t out_grains, std::uint64_t in_grains) {
    const std::uint64_t left = tiles_ / c.group_split;
    channels(model, c, Splits(ceilDiv(out_grains, c.out_serial), left, wanted_.out_split),
             Splits(ceilDiv(in_grains, c.in_serial), left, wanted_.in_split), left);
  }

  void channels(const Model& model, Candidate& c, const Splits& outs, const Splits& ins,
                std::uint64_t tiles) {
    const std::uint64_t all_rows = model.problem().rows;
    for (const std::uint64_t out : outs) {
      for (const std::uint64_t in : ins) {
        const std::uint64_t left = tiles / (out * in);
        if (left == 0) break;
        c.out_split = out;
        c.in_split = in;
        std::uint64_t previous = 0;
        for (const std::uint64_t rows : {left, left / 2}) {
          if (rows == 0) continue;
          c.row_split = rowSplit(all_rows, std::min(rows, all_rows));
          if (c.row_split == 0 || c.row_split == previous) continue;
          previous = c.row_split;
          consider(model, c);
        }
      }
    }
  }

  /// The fewest parts with the same largest share as `most` parts; 0 if none meets the constraints.
  std::uint64_t rowSplit(std::uint64_t rows, std::uint64_t most) const {
    const std::uint64_t of = std::max<std::uint64_t>(wanted_.rows_multiple, 1);
    if (most < of) return 0;
    const std::uint64_t parts = ceilDiv(rows, ceilDiv(rows, most / of * of));
    return ceilDiv(parts, of) * of;
  }

  void consider(const Model& model, Candidate& c) {
    for (const bool stays : {false, true}) {
      if (stays && c.out_serial == 1) break;
      c.input_stays = stays;
      model.evaluate(c, bound());
      if (model_ && !better(c)) continue;
      best_ = c;
      model_ = &model;
    }
  }

  /// Candidates that take at least this many cycles are not better.
  double bound() const {
    return bounded_ && best_.fits ? best_.cycles : std::numeric_limits<double>::infinity();
  }

  bool better(const Candidate& c) const {
    if (c.fits != best_.fits) return c.fits;
    if (!c.fits && c.temporary != best_.temporary) return c.temporary < best_.temporary;
    return c.cycles < best_.cycles;
  }

  std::uint64_t tiles_;
  bool bounded_;
  const Constraints& wanted_;
  Candidate best_;
  const Model* model_ = nullptr;
};

std::vector<Model> modelsOf(const Problem& p, const poplar::Target& target) {
  std::vector<Model> models;
  const bool expands = p.taps() > 1;
  const auto add = [&](Transform transform) {
    const Constraints& wanted = p.constraints;
    if (wanted.swapped && *wanted.swapped != transform.swapped) return;
    if (expands && wanted.expanded && *wanted.expanded != transform.expanded) return;
    if (!holds(p, wanted, transform)) return;
    models.emplace_back(p, target, transform);
  };
  add({});
  if (!p.transforms) return models;
  if (expands) add({.expanded = true});
  add({.expanded = expands, .swapped = true});
  return models;
}

/// Numbers of slices worth trying, in order, including those asked for.
std::vector<std::uint64_t> serialSplits(const Constraints& wanted) {
  std::vector<std::uint64_t> found{wanted.out_serial, wanted.in_serial};
  std::erase(found, 0);
  for (std::uint64_t serial = 1; serial <= kMostSerial; serial *= 2) found.push_back(serial);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

[[noreturn]] void refuse(const Problem& p) {
  std::ostringstream os;
  os << "[poplin] needs planConstraints that a plan can meet; got none for a product of "
     << p.groups << " groups, " << p.rows << " rows (a batch of " << p.batch << "), "
     << p.in_channels << " input and " << p.out_channels << " output channels, and " << p.taps()
     << " kernel elements. Relax them, or limit them to other products.";
  throw no_plan(os.str());
}

}  // namespace

const char* nameOf(Vertex vertex) {
  constexpr const char* kNames[] = {"AMP", "SLIC", "HMAC", "VMAC", "OUTER_PRODUCT", "INTEGER"};
  return kNames[static_cast<std::size_t>(vertex)];
}

Plan makePlan(const Problem& problem, const poplar::Target& target, bool bounded) {
  const std::string arch = target.getTargetArchString();
  if (problem.quarters && arch != "ipu21")
    throw poplar::invalid_option(
        "[poplin] needs an IPU21 (C600) for products of quarters: only its tiles multiply floats "
        "of "
        "8 bits; got " +
        arch + ". Multiply halves.");
  Problem p = problem;
  for (auto* n :
       {&p.rows, &p.groups, &p.in_channels, &p.out_channels, &p.kernel_height, &p.kernel_width})
    *n = std::max<std::uint64_t>(*n, 1);
  const std::vector<Model> models = modelsOf(p, target);
  const std::uint64_t tiles = target.getNumTiles();
  Search search(p.tiles == 0 ? tiles : std::min(p.tiles, tiles), bounded, p.constraints);
  for (const std::uint64_t serial : serialSplits(p.constraints))
    for (const Model& model : models) search.vertices(model, serial);
  if (search.model() == nullptr) refuse(p);
  Plan plan = search.model()->planOf(search.best());
  const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
  plan.cost.flops = 2 * real(problem.groups) * real(problem.rows) * real(problem.in_channels) *
                    real(problem.out_channels) * real(problem.taps());
  return plan;
}

std::string Plan::splits() const {
  std::ostringstream os;
  os << "vertex " << nameOf(vertex) << (expanded ? ", kernel expanded into channels" : "")
     << (swapped ? ", operands swapped" : "") << "; split: groups " << group_split << ", rows "
     << row_split << ", input channels " << in_split << ", output channels " << out_split
     << "; serial: input channels " << in_serial << ", output channels " << out_serial << "; tiles "
     << tiles;
  return os.str();
}

std::string Plan::report() const {
  std::ostringstream os;
  os << splits() << "; cycles " << cost.cycles() << " (compute " << cost.compute_cycles
     << ", exchange " << cost.exchange_cycles << ", sync " << cost.sync_cycles
     << "); temporary bytes " << cost.temporary_bytes
     << (fits ? "" : " (more than the options allow)");
  return os.str();
}

}  // namespace poplin::plan
