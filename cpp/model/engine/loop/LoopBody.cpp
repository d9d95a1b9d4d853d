#include "engine/loop/LoopBody.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "engine/kernels/Kernel.hpp"
#include "engine/loop/Regions.hpp"

namespace ipujax::engine::loop {
namespace {

using expr::ExprProgram;

constexpr std::int64_t kMostElements = expr::ExprEvaluator::kBlock;
/// Fewer for while loops, which compute their condition for each element.
constexpr std::int64_t kMostElementsOfWhile = 64;
constexpr std::size_t kMostInstructions = 256;
constexpr std::size_t kMostWidths = 4;
constexpr std::size_t kMostCells = 512;  ///< all pairs are compared

/// Reads the steps of one loop; lives for one loop.
class Finder {
 public:
  explicit Finder(const Image& image) : image_(image) {}

  /// The loop, with cells of all widths.
  std::optional<LoopBody> find(const Node& node) {
    const bool counted = node.kind == NodeKind::kRepeat;
    most_elements_ = counted ? kMostElements : kMostElementsOfWhile;
    if (!counted) {
      if (!addSteps(node.children[0], loop_.condition)) return std::nullopt;
      if (!loaded_.empty() || !stored_.empty()) return std::nullopt;
      const auto cell = existingCell(regionOf(image_, node.predicate), node.predicate.type);
      if (!cell || node.predicate.type != ElementType::kBool) return std::nullopt;
      loop_.predicate = static_cast<std::int32_t>(*cell);
      loop_.repeats_while = node.value != 0;
    }
    loop_.count = counted ? node.value : 0;
    if (!addSteps(node.children[counted ? 0 : 1], loop_.body)) return std::nullopt;
    if (loop_.body.empty() || !rowsAreInOrder() || !readsAreFresh()) return std::nullopt;
    return std::move(loop_);
  }

 private:
  bool addSteps(std::uint32_t index, std::vector<Action>& into) {
    const Node& node = image_.nodes[index];
    if (node.kind == NodeKind::kSequence)
      return std::ranges::all_of(node.children, [&](auto child) { return addSteps(child, into); });
    if (node.kind != NodeKind::kStep || ++num_steps_ > kMostSteps) return false;
    const StepDesc& step = image_.steps[node.value];
    Action action;
    action.step = node.value;
    if (step.kernel == "engine.account") return true;  // does nothing on the host
    const KernelRole role = roleOf(step);
    const bool reads_row = role == KernelRole::kSliceOfRow || role == KernelRole::kSlices;
    const bool writes_row = role == KernelRole::kUpdateOfRow || role == KernelRole::kUpdates;
    const bool known = role == KernelRole::kElementwise ? addMap(step, action)
                       : step.kernel == "engine.copy"   ? addCopy(step, action)
                       : reads_row                      ? addRow(step, action, false)
                       : writes_row                     ? addRow(step, action, true)
                                                        : false;
    if (known) into.push_back(std::move(action));
    return known;
  }

  bool addMap(const StepDesc& step, Action& action) {
    action.program = ExprProgram::fromIntegers(step.attributes.integers("expr"));
    const ExprProgram& program = action.program;
    if (program.isRandom() || takesHalfApart(program)) return false;
    if (!addCells(step, action)) return false;
    num_instructions_ += program.instructions().size();
    return num_instructions_ <= kMostInstructions;
  }

  bool addCopy(const StepDesc& step, Action& action) {
    action.kind = Action::Kind::kCopy;
    return addCells(step, action);
  }

  bool addCells(const StepDesc& step, Action& action) {
    for (std::size_t o = 0; o < step.operands.size(); ++o) {
      const auto cell = cellOf(action.step, o, o >= action.numRead());
      if (!cell) return false;
      action.cells.push_back(*cell);
    }
    return true;
  }

  bool addRow(const StepDesc& step, Action& action, bool stores) {
    if (step.operands.size() != 3) return false;
    const OperandDesc& large = step.operands[0];
    if (stores && step.attributes.text("body") != "replace") {
      action.combiner = combinerOf(step.attributes.text("body"), large.type);
      if (!action.combiner) return false;
    }
    const OperandDesc& places = step.operands[1];
    const auto& sizes = step.attributes.integers("sizes");
    auto windows = std::make_shared<Windows>(large, places, step.operands[2], step.attributes);
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] < 1 || sizes[d] > large.shape[d]) return false;
    if (windows->count() != 1 || !isOnePiece(step.attributes, stores)) return false;
    if (!isRowMajor(windows->shape(), windows->largeStrides())) return false;
    if (!places.isContiguous() || !step.operands[2].isContiguousOrSingle()) return false;
    action.kind = stores ? Action::Kind::kStoreRow : Action::Kind::kLoadRow;
    if (places.numElements() != 1) return false;
    const auto index = cellOf(action.step, 1, false);
    const auto row = cellOf(action.step, 2, !stores);
    action.row_elements = windows->windowElements();
    if (!index || !row || action.row_elements > most_elements_) return false;
    action.cells = {*index, *row};
    action.windows = std::move(windows);
    const Region array = regionOf(image_, large);
    if (action.loads()) loaded_.push_back({array, stored_.size()});
    if (stores) stored_.push_back({array, action.row_elements});
    return true;
  }

  /// Whether the row is whole and contiguous wherever it begins, or else is not stored.
  static bool isOnePiece(const Attributes& attributes, bool stores) {
    const Outside outside = outsideOf(attributes);
    if (outside == Outside::kSkip) return stores;
    if (outside != Outside::kWrap) return outside == Outside::kClamp;
    const auto& sizes = attributes.integers("sizes");
    return std::ranges::all_of(attributes.integers("map"),
                               [&](auto d) { return sizes[static_cast<std::size_t>(d)] == 1; });
  }

  std::optional<std::uint32_t> existingCell(const Region& region, ElementType type) const {
    for (std::uint32_t c = 0; c < loop_.cells.size(); ++c)
      if (loop_.cells[c].type == type && regions_[c] == region) return c;
    return std::nullopt;
  }

  /// The cell of an operand, known or new; none if the operand is too wide or not one piece.
  std::optional<std::uint32_t> cellOf(std::uint64_t step, std::size_t number, bool written) {
    const OperandDesc& operand = image_.steps[step].operands[number];
    if (written ? !operand.isContiguous() : !operand.isContiguousOrSingle()) return std::nullopt;
    const OperandDesc::Extent extent = operand.extent();
    if (extent.elements < 1 || extent.elements > most_elements_) return std::nullopt;
    const Region region = regionOf(image_, operand, extent);
    auto found = existingCell(region, operand.type);
    if (!found) {
      if (loop_.cells.size() == kMostCells) return std::nullopt;
      found = static_cast<std::uint32_t>(loop_.cells.size());
      loop_.cells.push_back({.elements = extent.elements,
                             .step = step,
                             .operand = static_cast<std::uint32_t>(number),
                             .type = operand.type});
      regions_.push_back(region);
    }
    loop_.cells[*found].written |= written;
    return found;
  }

  /// Whether rows may be loaded before and stored after everything else in an iteration: no other
  /// step touches their arrays.
  bool rowsAreInOrder() {
    for (std::size_t c = 0; c < regions_.size(); ++c) {
      const auto overlaps = [&](const auto& row) { return row.array.overlaps(regions_[c]); };
      if (std::ranges::any_of(stored_, overlaps)) return false;
      if (loop_.cells[c].written && std::ranges::any_of(loaded_, overlaps)) return false;
    }
    for (std::size_t s = 0; s < stored_.size(); ++s) {
      for (const Loaded& loaded : loaded_) {
        if (!loaded.array.overlaps(stored_[s].array)) continue;
        if (loaded.num_stored > s) return false;
        loop_.one_by_one = true;
      }
      // Rows of another width are stored by another loop, many iterations at a time.
      for (std::size_t o = 0; o < s; ++o)
        if (stored_[o].width != stored_[s].width && stored_[o].array.overlaps(stored_[s].array))
          return false;
    }
    return true;
  }

  /// Whether cells may live outside of their memory: of cells that share memory, none is read after
  /// another was written.
  bool readsAreFresh() {
    std::vector<bool> stale(regions_.size(), false);
    const auto isFresh = [&](std::uint32_t c) { return !stale[c]; };
    const auto follow = [&](const std::vector<Action>& actions) {
      for (const Action& action : actions) {
        const auto [read, written] = readAndWritten(action);
        if (!std::ranges::all_of(read, isFresh)) return false;
        for (const auto c : written) {
          loop_.cells[c].last_write = ++time_;
          for (std::size_t o = 0; o < regions_.size(); ++o)
            if (o != c && regions_[o].overlaps(regions_[c])) stale[o] = true;
          stale[c] = false;
        }
      }
      return true;
    };
    const auto asks = [&] {
      return loop_.predicate < 0 || isFresh(static_cast<std::uint32_t>(loop_.predicate));
    };
    for (int iteration = 0; iteration < 2; ++iteration)
      if (!follow(loop_.condition) || !asks() || !follow(loop_.body)) return false;
    return follow(loop_.condition);
  }

  static std::pair<std::span<const std::uint32_t>, std::span<const std::uint32_t>> readAndWritten(
      const Action& action) {
    const auto cells = std::span(action.cells);
    return {cells.first(action.numRead()), cells.subspan(action.numRead())};
  }

  struct Loaded {
    Region array;
    std::size_t num_stored;  ///< rows stored before, in an iteration
  };
  struct Stored {
    Region array;
    std::int64_t width;  ///< elements of a row
  };

  const Image& image_;
  LoopBody loop_;
  std::vector<Region> regions_;  ///< by cell
  std::vector<Loaded> loaded_;
  std::vector<Stored> stored_;  ///< in order
  std::int64_t most_elements_ = kMostElements;
  std::size_t num_steps_ = 0;
  std::size_t num_instructions_ = 0;
  std::size_t time_ = 0;
};

/// The part of a loop that works on cells of one width and on single elements.
class Projection {
 public:
  Projection(const LoopBody& loop, std::int64_t width, bool is_first)
      : loop_(loop), is_first_(is_first), number_(loop.cells.size(), -1) {
    result_.width = width;
    result_.repeats_while = loop.repeats_while;
    result_.count = loop.count;
    result_.one_by_one = loop.one_by_one;
    for (std::size_t c = 0; c < loop.cells.size(); ++c) {
      if (!loop.cells[c].isOne() && loop.cells[c].elements != width) continue;
      number_[c] = static_cast<std::int32_t>(result_.cells.size());
      result_.cells.push_back(loop.cells[c]);
    }
    if (loop.predicate >= 0) result_.predicate = number_[static_cast<std::size_t>(loop.predicate)];
    result_.condition = project(loop.condition);
    result_.body = project(loop.body);
  }
  LoopBody take() { return std::move(result_); }

 private:
  std::vector<Action> project(const std::vector<Action>& actions) const {
    std::vector<Action> kept;
    for (const Action& action : actions) {
      const bool is_here =
          std::ranges::all_of(action.cells, [&](auto c) { return number_[c] >= 0; });
      if (!is_here || (action.kind == Action::Kind::kStoreRow && !isStoredHere(action))) continue;
      kept.push_back(action);
      for (auto& c : kept.back().cells) c = static_cast<std::uint32_t>(number_[c]);
    }
    return kept;
  }

  /// One of the loops stores each row: the one of its width, even if a single element fills it.
  bool isStoredHere(const Action& store) const {
    return store.row_elements == 1 ? is_first_ : store.row_elements == result_.width;
  }

  const LoopBody& loop_;
  bool is_first_;
  std::vector<std::int32_t> number_;  ///< here, by cell of the whole loop; -1: not here
  LoopBody result_;
};

}  // namespace

std::vector<LoopBody> findLoopBodies(const Image& image, std::uint32_t node) {
  const auto loop = Finder(image).find(image.nodes[node]);
  if (!loop) return {};
  std::set<std::int64_t> widths;
  for (const Cell& cell : loop->cells)
    if (!cell.isOne()) widths.insert(cell.elements);
  for (const Action& action : loop->body)
    if (action.row_elements > 1) widths.insert(action.row_elements);
  if (widths.empty() || widths.size() > (loop->one_by_one ? 1 : kMostWidths)) return {};
  std::vector<LoopBody> loops;
  for (const auto width : widths) loops.push_back(Projection(*loop, width, loops.empty()).take());
  return loops;
}

}  // namespace ipujax::engine::loop
