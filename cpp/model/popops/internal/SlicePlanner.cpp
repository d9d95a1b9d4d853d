#include "popops/internal/SlicePlanner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/graph/Planning.hpp"
#include "popops/internal/WindowCost.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {
namespace {

constexpr std::size_t kIndexBytes = 4;
constexpr std::size_t kPartialBytes = 4;  // updates of several tiles are added up in FLOAT

using ipujax::engine::ceilDiv;

struct Estimate {
  double cycles = 0;
  double temporary_bytes = 0;
};

/// Estimates the cost of a partition from a tile's share of the work.
class Estimator {
 public:
  Estimator(const poplar::Target& target, const SliceTable& table, const SliceOptions& options,
            std::size_t grain)
      : target_(target),
        table_(table),
        options_(options),
        bytes_(target.getTypeSize(table.type)),
        vector_(std::max<std::size_t>(1, 8 / bytes_)),
        perfect_bytes_(ceilDiv(table.entries * ceilDiv(table.elements, grain) * table.groups,
                               target.getNumTiles()) *
                       grain * bytes_) {}

  Estimate of(const SlicePartition& p) const {
    Share share;
    share.groups = ceilDiv(table_.groups, p.groups);
    share.lookups = ceilDiv(table_.lookups, p.lookups);
    share.rows = ceilDiv(table_.entries, p.rows);
    share.elements = ceilDiv(ceilDiv(table_.elements, p.grain), p.columns) * p.grain;
    const std::size_t table_bytes = share.rows * share.elements * bytes_ * share.groups;
    // A table that is not spread evenly is assumed to be moved to the tiles that use it.
    share.moved_bytes = table_bytes - std::min(table_bytes, perfect_bytes_);
    Estimate slice, update;
    if (options_.used_for_slice) slice = ofSlice(p, share, table_bytes);
    if (options_.used_for_update) update = ofUpdate(p, share);
    return {slice.cycles + update.cycles, std::max(slice.temporary_bytes, update.temporary_bytes)};
  }

 private:
  struct Share {
    std::size_t groups, lookups, rows, elements, moved_bytes;
  };

  double exchange(std::size_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(target_.getExchangeBytesPerCycle());
  }
  double compute(SliceWork work, const Share& share, std::size_t lookups, double in_range) const {
    const auto workers = static_cast<double>(target_.getNumWorkerContexts());
    const auto found = std::min(lookups, static_cast<std::size_t>(std::ceil(in_range)));
    return workers * sliceVertexCycles(work, share.elements, lookups, found, vector_, bytes_) *
           static_cast<double>(share.groups);
  }
  /// The fraction of the indices that select one of `rows`.
  double partOf(double rows) const {
    return options_.all_indices_equal ? 1 : rows / static_cast<double>(table_.entries);
  }

  Estimate ofSlice(const SlicePartition& p, const Share& share, std::size_t table_bytes) const {
    const std::size_t workers = target_.getNumWorkerContexts();
    const std::size_t each = ceilDiv(share.lookups, workers);
    const double part = partOf(static_cast<double>(share.rows));
    const std::size_t base_bytes = std::max(p.lookups > 1 ? table_bytes : 0, share.moved_bytes);
    Estimate made;
    made.cycles = exchange(base_bytes) +
                  compute(SliceWork::kRead, share, each, static_cast<double>(each) * part);
    const std::size_t index_bytes = share.lookups * kIndexBytes * share.groups;
    made.temporary_bytes = static_cast<double>(base_bytes + index_bytes);
    if (p.rows == 1) return made;
    // Each part of the rows gives a candidate; a second stage selects from them.
    const std::size_t second = ceilDiv(share.lookups, p.rows);
    const std::size_t row_bytes = share.elements * bytes_ * share.groups;
    const std::size_t second_each = ceilDiv(second, workers);
    made.cycles +=
        exchange(p.rows * second * row_bytes) +
        compute(SliceWork::kRead, share, second_each, static_cast<double>(second_each) * part);
    const std::size_t first_bytes = share.lookups * row_bytes;
    made.temporary_bytes = std::max(made.temporary_bytes + static_cast<double>(first_bytes),
                                    static_cast<double>(first_bytes + p.rows * second * row_bytes +
                                                        second * kIndexBytes * share.groups));
    return made;
  }

  Estimate ofUpdate(const SlicePartition& p, const Share& share) const {
    const std::size_t workers = target_.getNumWorkerContexts();
    const bool combines = options_.update.has_value();
    // Each worker has some of the rows, and looks at all indices.
    const double part = partOf(static_cast<double>(ceilDiv(share.rows, workers)));
    const std::size_t sent_bytes =
        p.rows > 1 ? share.lookups * share.elements * kPartialBytes * share.groups : 0;
    Estimate made;
    made.cycles = 2 * exchange(share.moved_bytes) + exchange(sent_bytes) +
                  compute(combines ? SliceWork::kAccumulate : SliceWork::kWrite, share,
                          share.lookups, static_cast<double>(share.lookups) * part);
    made.temporary_bytes = static_cast<double>(share.moved_bytes + sent_bytes +
                                               share.lookups * kIndexBytes * share.groups);
    if (p.lookups == 1) return made;
    // Each part of the lookups zeroes partial sums, which are reduced and added to the table.
    const std::size_t partials = share.rows * share.elements * share.groups;
    const auto per_cycle = static_cast<double>(target_.getVectorWidth(poplar::FLOAT));
    const auto own = static_cast<double>(ceilDiv(partials, p.lookups));
    made.cycles += static_cast<double>(partials) / per_cycle + exchange(partials * kPartialBytes) +
                   own * static_cast<double>(p.lookups) / per_cycle + own / per_cycle;
    made.temporary_bytes += 2 * static_cast<double>(partials * kPartialBytes);
    return made;
  }

  const poplar::Target& target_;
  const SliceTable& table_;
  const SliceOptions& options_;
  const std::size_t bytes_, vector_, perfect_bytes_;
};

/// The numbers of parts of `size`, up to `most`, that give parts of different sizes; or only the
/// one that the options ask for.
std::vector<std::size_t> splits(const SliceOptions& options, const char* name, std::size_t size,
                                std::size_t most) {
  most = std::max<std::size_t>(1, std::min(size, most));
  if (const auto wanted = options.constraints.find(name); wanted != options.constraints.end()) {
    if (wanted->second > most) return {};
    return {wanted->second};
  }
  std::vector<std::size_t> found;
  for (std::size_t parts = 1; parts <= most;) {
    found.push_back(parts);
    const std::size_t each = ceilDiv(size, parts);
    if (each <= 1) break;
    parts = ceilDiv(size, each - 1);  // the fewest parts that are smaller
  }
  return found;
}

std::size_t grainOf(const poplar::Target& target, const SliceTable& table,
                    const SliceOptions& options) {
  const std::size_t bytes = target.getTypeSize(table.type);
  const auto wanted = options.constraints.find("unslicedGrainSize");
  const std::size_t grain =
      wanted != options.constraints.end()
          ? wanted->second
          : ceilDiv(std::lcm<std::size_t>(target.getDataPathWidth() / 8, bytes), bytes);
  return std::max<std::size_t>(1, std::min(grain, table.elements));
}

}  // namespace

SlicePartition choosePartition(const poplar::Target& target, const SliceTable& table,
                               const SliceOptions& options) {
  if (!options.used_for_slice && !options.used_for_update)
    throw poputil::poplibs_error(
        "[popops::embedding::plan] needs usedForSlice or usedForUpdate; got neither. Leave one of "
        "them true.");
  SlicePartition p;
  p.grain = grainOf(target, table, options);
  if (table.groups * table.entries * table.elements == 0) return p;
  const std::size_t tiles = target.getNumTiles();
  const std::size_t lookups = std::max<std::size_t>(1, table.lookups);
  const bool may_split_lookups = !options.used_for_update || options.update.has_value();
  const double most_bytes =
      options.memory_proportion * static_cast<double>(target.getBytesPerTile());
  const Estimator estimator(target, table, options, p.grain);
  std::optional<SlicePartition> best, best_that_fits;
  double cycles = 0, cycles_that_fits = 0;
  const auto consider = [&] {
    const Estimate made = estimator.of(p);
    if (!best || made.cycles < cycles) best = p, cycles = made.cycles;
    if (made.temporary_bytes > most_bytes) return;
    if (!best_that_fits || made.cycles < cycles_that_fits)
      best_that_fits = p, cycles_that_fits = made.cycles;
  };
  for (std::size_t g : splits(options, "groupSplit", table.groups, tiles)) {
    p.groups = g;
    for (std::size_t c :
         splits(options, "unslicedDimSplit", ceilDiv(table.elements, p.grain), tiles / g)) {
      p.columns = c;
      // Parts of less than two rows are not worth their second stage.
      for (std::size_t r : splits(options, "slicedDimSplit", table.entries,
                                  std::min(ceilDiv(table.entries, 2), tiles / (g * c)))) {
        p.rows = r;
        for (std::size_t l :
             splits(options, "lookupSplit", may_split_lookups ? lookups : 1, tiles / (g * c * r))) {
          p.lookups = l;
          consider();
        }
      }
    }
  }
  if (best_that_fits) return *best_that_fits;
  if (best) return *best;
  throw poputil::poplibs_error(
      "[popops::embedding::plan] needs planConstraints that a plan can have on " +
      std::to_string(tiles) + " tiles; got others. Split less.");
}

}  // namespace popops::internal
