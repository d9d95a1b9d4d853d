#include "engine/loop/LoopBody.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "engine/Kernel.hpp"

namespace ipujax::engine::loop {
namespace {

using expr::ExprProgram;
using expr::Instruction;
using expr::Op;
using Cells = std::vector<std::uint32_t>;

constexpr std::int64_t kMostElements = expr::ExprEvaluator::kBlock;
/// Of while loops fewer: they compute their condition for each element.
constexpr std::int64_t kMostElementsOfWhile = 64;
constexpr std::size_t kMostInstructions = 256;
constexpr std::size_t kMostWidths = 4;
constexpr std::size_t kMostCells = 512;  ///< each is compared with each
/// An operand whose elements are cells.
constexpr std::int64_t kMostElementsApart = 64;
/// A step takes about as long as so many instructions on one element.
constexpr std::size_t kInstructionsOfStep = 16;

/// Bytes [begin, end) of one address space: the arena, the constants, or an array of the caller's.
struct Region {
  std::uint64_t space = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool overlaps(const Region& o) const {
    return space == o.space && begin < o.end && o.begin < end;
  }
  friend bool operator==(const Region&, const Region&) = default;
};

/// Elements of an operand's buffer.
Region regionOf(const Image& image, const OperandDesc& operand, OperandDesc::Extent extent) {
  const BufferDesc& buffer = image.buffers[operand.buffer];
  const auto bytes = static_cast<std::int64_t>(sizeOf(operand.type));
  Region region;
  std::int64_t base = 0;
  if (buffer.kind == BufferKind::kArena || buffer.kind == BufferKind::kConstant) {
    region.space = buffer.kind == BufferKind::kArena ? 0 : 1;
    base = static_cast<std::int64_t>(buffer.offset);
  } else {
    region.space = 2 + operand.buffer;
  }
  region.begin = base + extent.first * bytes;
  region.end = region.begin + extent.elements * bytes;
  return region;
}
Region regionOf(const Image& image, const OperandDesc& operand) {
  return regionOf(image, operand, operand.extent());
}

/// Where each element lies, counted from the first one, in row-major order.
std::vector<std::int64_t> elementsOf(const OperandDesc& operand) {
  std::vector<std::int64_t> found{0};
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    std::vector<std::int64_t> inner;
    for (const std::int64_t at : found)
      for (std::int64_t i = 0; i < operand.shape[d]; ++i)
        inner.push_back(at + i * operand.strides[d]);
    found = std::move(inner);
  }
  return found;
}

/// A half's bits are exact only while it is a half: between operations it is held as a float.
bool takesHalfApart(const ExprProgram& program) {
  const auto& instructions = program.instructions();
  return std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& i) {
    return i.op == Op::kBitcast &&
           (i.type == ElementType::kHalf || program.typeOf(i.args[0]) == ElementType::kHalf);
  });
}

/// What an update does, where it is one instruction: of floats no minimum, as that of zeros of both
/// signs is either.
std::optional<Op> combinerOf(const std::string& update, ElementType type) {
  const bool is_bool = type == ElementType::kBool;
  if (update == "and") return is_bool ? Op::kLogicalAnd : Op::kBitwiseAnd;
  if (update == "or") return is_bool ? Op::kLogicalOr : Op::kBitwiseOr;
  if (update == "add" && !is_bool) return Op::kAdd;
  if (update == "mul" && !is_bool) return Op::kMultiply;
  if (type == ElementType::kFloat || type == ElementType::kHalf) return std::nullopt;
  if (update == "min" && !is_bool) return Op::kMinimum;
  if (update == "max" && !is_bool) return Op::kMaximum;
  return std::nullopt;
}

/// What the cells of a loop are.
enum class CellsAre : std::uint8_t { kOperands, kElements };

/// Reads the steps of one loop; lives for one loop.
class Finder {
 public:
  Finder(const Image& image, CellsAre cells) : image_(image), cells_are_(cells) {}

  /// Of all widths at once.
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
    const bool by_elements = cells_are_ == CellsAre::kElements;
    if (by_elements && num_instructions_ > kInstructionsOfStep * num_steps_) return std::nullopt;
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
                       : role == KernelRole::kPad       ? addPad(step, action)
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
    num_instructions_ += program.instructions().size() * (action.cells.size() / action.numCells());
    return num_instructions_ <= kMostInstructions;
  }

  bool addCopy(const StepDesc& step, Action& action) {
    action.kind = Action::Kind::kCopy;
    return addCells(step, action);
  }

  bool addCells(const StepDesc& step, Action& action) {
    std::vector<Cells> operands;
    for (std::size_t o = 0; o < step.operands.size(); ++o) {
      operands.push_back(cellsOf(action.step, o, o >= action.numRead()));
      if (operands.back().empty()) return false;
    }
    const std::size_t elements = operands.back().size();
    for (const Cells& cells : operands)
      if (cells.size() != elements) return false;
    for (std::size_t e = 0; e < elements; ++e)
      for (const Cells& cells : operands) action.cells.push_back(cells[e]);
    return elementsAreApart(operands, action.numRead());
  }

  /// No element is written that is read for another one.
  static bool elementsAreApart(const std::vector<Cells>& operands, std::size_t num_read) {
    const auto isReadElsewhere = [&](std::uint32_t cell, std::size_t element) {
      for (std::size_t o = 0; o < num_read; ++o)
        for (std::size_t e = 0; e < operands[o].size(); ++e)
          if (e != element && operands[o][e] == cell) return true;
      return false;
    };
    for (std::size_t o = num_read; o < operands.size(); ++o)
      for (std::size_t e = 0; e < operands[o].size(); ++e)
        if (isReadElsewhere(operands[o][e], e)) return false;
    return true;
  }

  /// Of elements: copies of the operand's and of the value.
  bool addPad(const StepDesc& step, Action& action) {
    if (cells_are_ != CellsAre::kElements) return false;
    action.kind = Action::Kind::kCopy;
    const Cells from = cellsOf(action.step, 0, false);
    const Cells value = cellsOf(action.step, 1, false);
    const Cells to = cellsOf(action.step, 2, true);
    if (from.empty() || value.empty() || to.empty()) return false;
    for (const auto c : to) action.cells.insert(action.cells.end(), {value[0], c});
    OperandDesc inside = step.operands[0];
    std::int64_t first = 0;
    std::int64_t stride = 1;
    for (std::size_t d = inside.shape.size(); d-- > 0;) {
      first += step.attributes.integers("start")[d] * stride;
      inside.strides[d] = step.attributes.integers("step")[d] * stride;
      stride *= step.operands[2].shape[d];
    }
    const auto places = elementsOf(inside);
    for (std::size_t i = 0; i < from.size(); ++i)
      action.cells[2 * static_cast<std::size_t>(first + places[i])] = from[i];
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
    action.num_indices = static_cast<std::size_t>(places.numElements());
    action.cells = cellsOf(action.step, 1, false);
    // As one cell the indices are one value.
    if (action.cells.empty() || action.cells.size() != action.num_indices) return false;
    const Cells row = cellsOf(action.step, 2, !stores);
    action.cells.insert(action.cells.end(), row.begin(), row.end());
    action.row_elements = windows->windowElements();
    if (row.empty() || action.row_elements > most_elements_) return false;
    action.windows = std::move(windows);
    const Region array = regionOf(image_, large);
    if (action.loads()) loaded_.push_back({array, stored_.size()});
    if (stores) stored_.push_back({array, action.row_elements});
    return true;
  }

  /// Wherever the row begins, all of it is there, with nothing between; or it is not stored.
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

  /// The cells that an operand is, in row-major order; none where it is of another kind or width.
  Cells cellsOf(std::uint64_t step, std::size_t number, bool written) {
    const OperandDesc& operand = image_.steps[step].operands[number];
    Cell cell{.step = step, .operand = static_cast<std::uint32_t>(number), .type = operand.type};
    if (cells_are_ == CellsAre::kOperands) {
      if (written ? !operand.isContiguous() : !operand.isContiguousOrSingle()) return {};
      const OperandDesc::Extent extent = operand.extent();
      if (extent.elements < 1 || extent.elements > most_elements_) return {};
      cell.elements = extent.elements;
      const auto found = cellAt(cell, regionOf(image_, operand, extent), written);
      return found ? Cells{*found} : Cells{};
    }
    if (operand.numElements() > kMostElementsApart) return {};
    Cells cells;
    for (const std::int64_t at : elementsOf(operand)) {
      cell.offset = at * static_cast<std::int64_t>(sizeOf(operand.type));
      const auto found = cellAt(cell, regionOf(image_, operand, {operand.offset + at, 1}), written);
      if (!found) return {};
      cells.push_back(*found);
    }
    return cells;
  }

  /// The cell there, known or new.
  std::optional<std::uint32_t> cellAt(const Cell& cell, const Region& region, bool written) {
    auto found = existingCell(region, cell.type);
    if (!found) {
      if (loop_.cells.size() == kMostCells) return std::nullopt;
      found = static_cast<std::uint32_t>(loop_.cells.size());
      loop_.cells.push_back(cell);
      regions_.push_back(region);
    }
    loop_.cells[*found].written |= written;
    return found;
  }

  /// Rows may be moved before (loaded) and after (stored) all else of an iteration: nobody else
  /// touches their arrays.
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

  /// Cells may live apart from their memory: where several share it, none is read after another was
  /// written.
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

  static std::pair<Cells, Cells> readAndWritten(const Action& action) {
    Cells read;
    Cells written;
    const auto add = [](Cells& to, std::span<const std::uint32_t> cells) {
      to.insert(to.end(), cells.begin(), cells.end());
    };
    switch (action.kind) {
      case Action::Kind::kMap:
      case Action::Kind::kCopy:
        for (std::size_t at = 0; at < action.cells.size(); at += action.numCells()) {
          const auto element = std::span(action.cells).subspan(at, action.numCells());
          add(read, element.first(action.numRead()));
          add(written, element.subspan(action.numRead()));
        }
        break;
      case Action::Kind::kLoadRow:
        add(read, action.indices());
        add(written, action.row());
        break;
      case Action::Kind::kStoreRow:
        add(read, action.cells);
        break;
    }
    return {std::move(read), std::move(written)};
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
  CellsAre cells_are_;
  LoopBody loop_;
  std::vector<Region> regions_;  ///< by cell
  std::vector<Loaded> loaded_;
  std::vector<Stored> stored_;  ///< in order
  std::int64_t most_elements_ = kMostElements;
  std::size_t num_steps_ = 0;
  std::size_t num_instructions_ = 0;
  std::size_t time_ = 0;
};

/// What a loop does with cells of one width and with single elements.
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

  /// Each row is stored by one of the loops: that of its width, which a single element may fill.
  bool isStoredHere(const Action& store) const {
    return store.row_elements == 1 ? is_first_ : store.row_elements == result_.width;
  }

  const LoopBody& loop_;
  bool is_first_;
  std::vector<std::int32_t> number_;  ///< here, by cell of the whole loop; -1: not here
  LoopBody result_;
};

}  // namespace

namespace {

/// Loops whose cells are operands, one for each width.
std::vector<LoopBody> loopsByWidth(const Image& image, const Node& node) {
  const auto loop = Finder(image, CellsAre::kOperands).find(node);
  if (!loop) return {};
  std::set<std::int64_t> widths;
  for (const Cell& cell : loop->cells)
    if (!cell.isOne()) widths.insert(cell.elements);
  for (const Action& action : loop->body)
    if (action.row_elements > 1) widths.insert(action.row_elements);
  if (widths.empty()) widths.insert(1);
  if (widths.size() > (loop->one_by_one ? 1 : kMostWidths)) return {};
  std::vector<LoopBody> loops;
  for (const auto width : widths) loops.push_back(Projection(*loop, width, loops.empty()).take());
  return loops;
}

}  // namespace

std::vector<LoopBody> findLoopBodies(const Image& image, std::uint32_t node) {
  auto loops = loopsByWidth(image, image.nodes[node]);
  if (!loops.empty()) return loops;
  if (auto loop = Finder(image, CellsAre::kElements).find(image.nodes[node]))
    loops.push_back(*std::move(loop));
  return loops;
}

}  // namespace ipujax::engine::loop
