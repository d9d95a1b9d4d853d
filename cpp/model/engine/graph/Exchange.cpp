#include "engine/graph/Exchange.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

namespace ipujax::engine {
namespace {

/// Up to this many runs, all are counted. For tensors with more: the sampled tiles, and the runs of
/// each.
constexpr std::uint64_t kRuns = 1 << 12;
constexpr std::uint64_t kTiles = 32;
constexpr std::uint64_t kRunsOfTile = 128;
constexpr std::ptrdiff_t kFewParts = 64;  ///< are sorted directly

/// Whether both are the same view of variables with the same mapping.
bool isLaidOutAlike(const GraphImpl& graph, const View& a, const View& b) {
  if (!a.isStrided() || !b.isStrided() || a.offset != b.offset || a.strides != b.strides)
    return false;
  const TileMap& from = *graph.variables[a.variable].map;
  const TileMap& to = *graph.variables[b.variable].map;
  if (&from == &to) return from.complete;  // linear mappings are shared
  return from.complete && from.elements == to.elements && from.regions == to.regions;
}

bool mayRepeat(const View& view) {
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] > 1 && view.strides[d] == 0) return true;
  return !view.isStrided() && std::ranges::any_of(view.pieces->views, mayRepeat);
}

/// Length of runs of consecutive elements in memory, from the view's last, compact dimensions.
std::uint64_t runOf(const View& view) {
  std::uint64_t run = 1;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    if (view.shape[d] != 1 && view.strides[d] != static_cast<std::int64_t>(run)) break;
    run *= view.shape[d];
  }
  if (view.isStrided()) return run;
  std::uint64_t shortest = run;
  for (const View& piece : view.pieces->views) shortest = std::min(shortest, runOf(piece));
  return shortest;
}

/// Both views with their dimensions in the order of `to`'s memory, so that its runs are long.
std::pair<View, View> inOrderOf(const View& from, const View& to) {
  if (from.shape != to.shape || to.isRowMajor()) return {from, to};
  std::vector<unsigned> order(to.shape.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](unsigned d) { return std::abs(to.strides[d]); });
  return {permuteView(from, order), permuteView(to, order)};
}

void grow(std::vector<double>& by_tile, std::uint32_t tile, double bytes) {
  if (by_tile.size() <= tile) by_tile.resize(tile + 1);
  by_tile[tile] += bytes;
}

/// Sorts a sequence of long sorted runs, such as the parts of a source that is walked repeatedly.
template <class T, class Less>
void sortRuns(std::span<T> all, const Less& less) {
  std::vector<std::ptrdiff_t> ends{0};
  while (ends.back() < std::ssize(all)) {
    const auto end = std::is_sorted_until(all.begin() + ends.back(), all.end(), less);
    ends.push_back(end - all.begin());
    if (ends.size() > 64) {
      std::ranges::sort(all, less);
      return;
    }
  }
  while (ends.size() > 2) {
    std::vector<std::ptrdiff_t> merged{0};
    for (std::size_t i = 2; i < ends.size(); i += 2) {
      std::inplace_merge(all.begin() + ends[i - 2], all.begin() + ends[i - 1],
                         all.begin() + ends[i], less);
      merged.push_back(ends[i]);
    }
    if (merged.back() != ends.back()) merged.push_back(ends.back());
    ends = std::move(merged);
  }
}

/// Whether equal keys are adjacent.
template <class T, class KeyOf>
bool isGrouped(const std::vector<T>& all, const KeyOf& keyOf) {
  std::vector<char> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t key = keyOf(all[i]);
    if (i > 0 && keyOf(all[i - 1]) == key) continue;
    if (seen.size() <= key) seen.resize(key + 1);
    if (std::exchange(seen[key], 1)) return false;
  }
  return true;
}

double mostOf(const std::vector<double>& by_tile) {
  // Several maxima at once, as each step of a single one would wait for the step before.
  std::array<double, 8> most{};
  std::size_t tile = 0;
  for (; tile + most.size() <= by_tile.size(); tile += most.size())
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], by_tile[tile + i]);
  for (; tile < by_tile.size(); ++tile) most[0] = std::max(most[0], by_tile[tile]);
  return std::ranges::max(most);
}

}  // namespace

/// Consecutive elements of a source on one tile, needed on another.
struct ExchangeCount::Part {
  std::uint32_t to_tile, variable;
  std::uint64_t begin, end;
  std::uint32_t from_tile;
};

/// Counts the moves of one operand, all of them or a sample.
class ExchangeCount::Operand {
 public:
  Operand(const GraphImpl& graph, const View& from, const View& to)
      : graph_(graph), variables_(graph.variables) {
    std::tie(from_, to_) = inOrderOf(from, to);
    repeats_ = mayRepeat(from_);
    dropRepeats();
    dropTurns();
    bytes_ = static_cast<double>(sizeOf(from_.type));
  }

  MovedBytes run() {
    const std::uint64_t all = to_.numElements();
    const std::uint64_t run = std::min(runOf(from_) * each_, runOf(to_));
    if (all / run <= kRuns)
      range(0, all);
    else
      sample(all, run);
    if (repeats_) countOnce();
    result_.total = moved_ * (static_cast<double>(all) / seen_);
    return std::move(result_);
  }

 private:
  /// Removes the last dimensions where they only repeat one element.
  void dropRepeats() {
    while (!from_.shape.empty() && (from_.shape.back() == 1 || from_.strides.back() == 0)) {
      each_ *= from_.shape.back();
      from_.shape.pop_back();
      from_.strides.pop_back();
    }
  }

  /// Removes the first dimensions where they only repeat all that follows.
  void dropTurns() {
    std::size_t first = 0;
    while (first < from_.shape.size() && (from_.shape[first] == 1 || from_.strides[first] == 0))
      ++first;
    from_.shape.erase(from_.shape.begin(), from_.shape.begin() + first);
    from_.strides.erase(from_.strides.begin(), from_.strides.begin() + first);
    turn_ = from_.numElements();
  }

  /// Counts some evenly spaced runs of as many elements as are on a tile.
  void sample(std::uint64_t all, std::uint64_t run) {
    const std::uint64_t used =
        to_.isStrided() ? variables_[to_.variable].map->tiles_used : graph_.system.numTiles();
    const std::uint64_t tiles = std::clamp<std::uint64_t>(used, 1, all);
    const std::uint64_t each = (all + tiles - 1) / tiles;
    const std::uint64_t taken = repeats_ ? each : std::min(each, kRunsOfTile * run);
    const std::uint64_t chosen = std::min(tiles, kTiles);
    weight_ = static_cast<double>(each) / static_cast<double>(taken);
    is_sample_ = true;
    for (std::uint64_t i = 0; i < chosen; ++i) {
      const std::uint64_t first = i * tiles / chosen * each;
      if (first < all) range(first, std::min(taken, all - first));
    }
  }

  /// Counts elements [first, first + count) of the views.
  void range(std::size_t first, std::size_t count) {
    seen_ += static_cast<double>(count) * weight_;
    forEachRun(to_, first, count, [&](std::uint32_t variable, std::int64_t begin, std::size_t n) {
      const auto at = static_cast<std::uint64_t>(begin);
      variables_[variable].map->forEachPart(
          at, at + n, [&](std::uint32_t tile, std::uint64_t b, std::uint64_t e) {
            if (tile != TileMap::kUnmapped) part(tile, first + (b - at), e - b);
          });
      first += n;
    });
  }

  /// The same, for elements that are all needed on one tile.
  void part(std::uint32_t tile, std::size_t first, std::size_t count) {
    count = (first + count - 1) / each_ + 1 - first / each_;
    first = first / each_ % turn_;
    if (repeats_ && count >= turn_)
      return takeAll(tile, static_cast<double>(count) / static_cast<double>(turn_));
    const std::size_t before_end = std::min(count, turn_ - first);
    forEachSource(first, before_end, [&](Part part) { piece(part, tile); });
    forEachSource(0, count - before_end, [&](Part part) { piece(part, tile); });
  }

  /// Calls fn for parts of elements [first, first + count) of the source, without their to_tile.
  template <class F>
  void forEachSource(std::size_t first, std::size_t count, const F& fn) const {
    if (count == 0) return;
    forEachRun(from_, first, count,
               [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
                 const auto at = static_cast<std::uint64_t>(begin);
                 variables_[variable].map->forEachPart(
                     at, at + length, [&](std::uint32_t source, std::uint64_t b, std::uint64_t e) {
                       fn(Part{0, variable, b, e, source});
                     });
               });
  }

  /// Counts a tile that needs all of the source, `turns` times. In a broadcast many tiles do, so
  /// the source is looked up once for all of them.
  void takeAll(std::uint32_t tile, double turns) {
    if (wants_all_.empty()) {
      std::vector<Part> parts;
      forEachSource(0, turn_, [&](Part part) { parts.push_back(part); });
      forEachOnce(parts, [&](const Part& part, double bytes) {
        all_ += bytes;
        if (part.from_tile != TileMap::kUnmapped) grow(held_, part.from_tile, bytes);
      });
    }
    const double held = tile < held_.size() ? held_[tile] : 0;
    grow(result_.kept, tile, held * turns);
    if (wants_all_.size() <= tile) wants_all_.resize(tile + 1);
    if (std::exchange(wants_all_[tile], 1)) return;
    ++num_want_all_;
    receive(tile, all_ - held);
  }

  void piece(Part part, std::uint32_t tile) {
    part.to_tile = tile;
    const double bytes = static_cast<double>(part.end - part.begin) * bytes_ * weight_;
    if (part.from_tile == part.to_tile) return grow(result_.kept, part.to_tile, bytes);
    if (repeats_) return parts_.push_back(part);
    receive(part.to_tile, bytes);
    send(part.from_tile, bytes);
  }

  void receive(std::uint32_t tile, double bytes) {
    grow(result_.received, tile, bytes);
    moved_ += bytes;
  }

  /// A sample does not tell which tile sends most.
  void send(std::uint32_t tile, double bytes) {
    if (tile != TileMap::kUnmapped && !is_sample_) grow(result_.sent, tile, bytes);
  }

  bool wantsAll(std::uint32_t tile) const { return tile < wants_all_.size() && wants_all_[tile]; }

  /// Whether some other tile needs all that a tile has.
  bool sendsAll(std::uint32_t tile) const {
    return num_want_all_ > (wantsAll(tile) ? std::size_t{1} : std::size_t{0});
  }

  /// Calls fn(part, bytes) for the elements of parts, once each.
  template <class F>
  void forEachOnce(std::vector<Part>& parts, const F& fn) const {
    sortParts(parts);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (i == 0 || parts[i - 1].to_tile != part.to_tile || parts[i - 1].variable != part.variable)
        end = 0;
      const std::uint64_t begin = std::max(part.begin, end);
      if (begin < part.end) fn(part, static_cast<double>(part.end - begin) * bytes_);
      end = std::max(end, part.end);
    }
  }

  /// Groups parts by tile and sorts each group. They mostly come tile by tile, so that few are
  /// sorted at a time.
  static void sortParts(std::vector<Part>& parts) {
    const auto tileOf = [](const Part& part) { return part.to_tile; };
    if (!isGrouped(parts, tileOf)) std::ranges::stable_sort(parts, {}, tileOf);
    for (auto first = parts.begin(); first != parts.end();) {
      const auto last = std::find_if(
          first, parts.end(), [&](const Part& part) { return part.to_tile != first->to_tile; });
      const auto less = [](const Part& a, const Part& b) {
        return std::tie(a.variable, a.begin) < std::tie(b.variable, b.begin);
      };
      if (last - first <= kFewParts)
        std::sort(first, last, less);
      else
        sortRuns(std::span(first, last), less);
      first = last;
    }
  }

  /// Keeps only the longest of the parts that begin at the same element, in order. This is for a
  /// small source that many tiles need: it has few elements for its many parts. Others stay.
  static void keepLongest(std::vector<Part>& parts) {
    if (parts.empty()) return;
    const auto [least, most] = std::ranges::minmax(parts, {}, &Part::begin);
    const bool is_one = std::ranges::all_of(
        parts, [&](const Part& part) { return part.variable == parts.front().variable; });
    if (!is_one || most.begin - least.begin > parts.size()) return;
    std::vector<const Part*> longest(most.begin - least.begin + 1);
    for (const Part& part : parts) {
      const Part*& known = longest[part.begin - least.begin];
      if (known == nullptr || known->end < part.end) known = &part;
    }
    std::vector<Part> kept;
    for (const Part* part : longest)
      if (part != nullptr) kept.push_back(*part);
    parts = std::move(kept);
  }

  /// Counts the elements that a tile needs, and those that a tile sends, once each.
  void countOnce() {
    for (std::uint32_t tile = 0; tile < held_.size(); ++tile)
      if (sendsAll(tile)) send(tile, held_[tile]);
    std::erase_if(parts_, [&](const Part& part) { return wantsAll(part.to_tile); });
    forEachOnce(parts_, [&](const Part& part, double bytes) { receive(part.to_tile, bytes); });
    std::erase_if(parts_, [&](const Part& part) { return sendsAll(part.from_tile); });
    for (Part& part : parts_) part.to_tile = 0;
    keepLongest(parts_);
    forEachOnce(parts_, [&](const Part& part, double bytes) { send(part.from_tile, bytes); });
  }

  const GraphImpl& graph_;
  const std::vector<Variable>& variables_;
  View from_, to_;
  bool repeats_ = false;
  double bytes_ = 1;
  std::size_t each_ = 1;  ///< how often each element of from_ repeats in a row
  std::size_t turn_ = 1;  ///< elements of from_, after which they repeat
  bool is_sample_ = false;
  double weight_ = 1;  ///< elements that each counted one stands for
  double seen_ = 0, moved_ = 0;
  MovedBytes result_;
  std::vector<Part> parts_;
  double all_ = 0;               ///< bytes of the source
  std::vector<double> held_;     ///< of these, by tile
  std::vector<char> wants_all_;  ///< by tile
  std::size_t num_want_all_ = 0;
};

void ExchangeCount::add(const ViewPtr& from, const ViewPtr& to) {
  if (from->numElements() == 0 || isLaidOutAlike(graph_, *from, *to)) return;
  graph_.counted_exchanges.add(moved_, graph_.variables, *from, *to,
                               [&] { return Operand(graph_, *from, *to).run(); });
}

Exchange ExchangeCount::result() const {
  const auto& [total, received, sent, kept] = moved_;
  const double most_received = mostOf(received);
  const double most_kept = mostOf(kept);
  double landed = std::max(most_received, most_kept);  // of tiles that have only one of the two
  if (most_kept > 0)
    for (std::size_t tile = 0; tile < std::min(received.size(), kept.size()); ++tile)
      landed = std::max(landed, received[tile] + kept[tile]);
  return {total, most_received, mostOf(sent), most_kept, landed};
}

Exchange exchangeBetween(const GraphScope& graph, const ViewPtr& from, const ViewPtr& to) {
  ExchangeCount count(graph);
  count.add(from, to);
  return count.result();
}

}  // namespace ipujax::engine
