#include <algorithm>
#include <optional>

#include "engine/build/Occurrences.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"

/// An elementwise step whose only reader is a reduction runs inside it, a block at a time:
///
///   popx.map      %a, %b -> %t           engine.account
///   popops.reduce %t -> %r               engine.reduce_mapped %a, %b -> %r
///
/// The account of the tiles is made before, so it includes both steps.
namespace ipujax::engine::build {
namespace {

/// Below this the elements stay in the caches between the two steps anyway.
constexpr std::int64_t kLeastElements = 8192;
/// Shorter rows would be evaluated a few elements at a time.
constexpr std::int64_t kLeastRow = 64;

/// A view as rows and columns.
struct Matrix {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

class Fuser {
 public:
  explicit Fuser(Draft& draft) : draft_(draft), occurrences_(draft) {}

  void run(const Span& span) {
    if (span.kind == Span::Kind::kSequence) {
      for (const Span& child : span.children) {
        if (child.kind == Span::Kind::kLeaf) tryReduction(span, child.begin);
      }
    }
    for (const Span& child : span.children) run(child);
  }

 private:
  /// The step at a position; null for a predicate and for a removed step.
  StepDesc* stepAt(std::uint32_t position) {
    const auto step = draft_.occurrences[position].step;
    if (step < 0) return nullptr;
    if (draft_.step_removed[static_cast<std::size_t>(step)]) return nullptr;
    return &draft_.image.steps[static_cast<std::size_t>(step)];
  }

  void tryReduction(const Span& sequence, std::uint32_t position) {
    StepDesc* reduce = stepAt(position);
    if (!reduce || roleOf(*reduce) != KernelRole::kReduction) return;
    const std::uint32_t between = draft_.find(reduce->operands[0].buffer);
    const auto producer = onlyWriter(between, position);
    if (!producer || !isIn(sequence, *producer)) return;
    if (!occurrences_.together(*producer, position)) return;
    StepDesc* map = stepAt(*producer);
    if (!map || roleOf(*map) != KernelRole::kElementwise) return;
    const auto matrix = matrixOf(*map, *reduce);
    if (!matrix || !holdStill(*map, *producer, position)) return;
    // Random bits depend on how the elements are cut into calls.
    if (expr::ExprProgram::fromIntegers(map->attributes.integers("expr")).isRandom()) return;
    for (std::size_t i = 0; i + 1 < map->operands.size(); ++i)
      keepAlive(draft_.find(map->operands[i].buffer), occurrences_.last(position));
    merge(*map, *reduce, *matrix);
  }

  /// The position of the only write, if `reader` is the only read and no one else sees the storage;
  /// both may occur several times.
  std::optional<std::uint32_t> onlyWriter(std::uint32_t storage, std::uint32_t reader) const {
    const Storage& s = draft_.storages[storage];
    const auto& accesses = draft_.accesses[storage];
    if (s.input >= 0 || s.output >= 0 || s.constant || s.persistent) return std::nullopt;
    std::optional<std::uint32_t> found;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const bool writes = i % 2 == 0;
      if (accesses[i].kind != (writes ? AccessKind::kWriteAll : AccessKind::kRead) ||
          stepOf(accesses[i]) != (writes ? stepOf(accesses[0]) : stepOf({reader})))
        return std::nullopt;
      if (accesses[i].position == reader) found = accesses[i - 1].position;
    }
    return found;
  }

  std::int64_t stepOf(const StorageAccess& access) const {
    return draft_.occurrences[access.position].step;
  }

  static bool isIn(const Span& sequence, std::uint32_t position) {
    const auto found =
        std::lower_bound(sequence.children.begin(), sequence.children.end(), position,
                         [](const Span& child, std::uint32_t p) { return child.end <= p; });
    return found != sequence.children.end() && found->kind == Span::Kind::kLeaf &&
           found->begin == position;
  }

  /// The map's result as rows and columns, of which either are reduced; none if this does not hold,
  /// or if an operand is neither contiguous nor constant along the columns.
  static std::optional<Matrix> matrixOf(const StepDesc& map, const StepDesc& reduce) {
    const OperandDesc& made = map.operands.back();
    const OperandDesc& taken = reduce.operands[0];
    if (map.operands.size() < 2 || map.operands[map.operands.size() - 2].access != Access::kRead)
      return std::nullopt;  // several results
    if (made.numElements() < kLeastElements || taken.numElements() != made.numElements())
      return std::nullopt;
    if (made.type != taken.type || !made.isContiguous() || !taken.isContiguous())
      return std::nullopt;
    const auto split = splitOf(taken, reduce.attributes.integers("dims"));
    if (!split) return std::nullopt;
    Matrix matrix;
    for (std::size_t d = 0; d < taken.shape.size(); ++d)
      (d < *split ? matrix.rows : matrix.columns) *= taken.shape[d];
    if (matrix.columns < kLeastRow) return std::nullopt;
    for (std::size_t i = 0; i + 1 < map.operands.size(); ++i) {
      const OperandDesc& o = map.operands[i];
      const bool still = o.strideOf(0, o.shape.size()) == 0;
      if (still || o.isContiguous()) continue;
      if (o.shape != taken.shape || !o.strideOf(0, *split)) return std::nullopt;
      const auto along = o.strideOf(*split, o.shape.size());
      if (along != 0 && along != 1) return std::nullopt;
    }
    return matrix;
  }

  /// Where the reduced dimensions end or begin, if they are the first ones or the last.
  static std::optional<std::size_t> splitOf(const OperandDesc& in, std::vector<std::int64_t> dims) {
    std::sort(dims.begin(), dims.end());
    const std::size_t rank = in.shape.size();
    const auto isRun = [&](std::size_t from) {
      for (std::size_t k = 0; k < dims.size(); ++k) {
        if (dims[k] != static_cast<std::int64_t>(from + k)) return false;
      }
      return true;
    };
    if (dims.empty()) return std::nullopt;
    if (isRun(rank - dims.size())) return rank - dims.size();
    if (isRun(0)) return dims.size();
    return std::nullopt;
  }

  /// Whether the map's operands are unchanged when the reduction runs.
  bool holdStill(const StepDesc& map, std::uint32_t from, std::uint32_t to) const {
    for (std::size_t i = 0; i + 1 < map.operands.size(); ++i) {
      for (const auto& access : draft_.accesses[draft_.find(map.operands[i].buffer)]) {
        if (access.kind != AccessKind::kRead && access.position > from && access.position <= to)
          return false;
      }
    }
    return true;
  }

  void keepAlive(std::uint32_t storage, std::uint32_t position) {
    auto& live = draft_.live[storage];
    if (!live.empty()) live.back().end = std::max(live.back().end, 2 * std::uint64_t{position});
  }

  static void merge(StepDesc& map, StepDesc& reduce, const Matrix& matrix) {
    const auto inputs = static_cast<std::int64_t>(map.operands.size()) - 1;
    const OperandDesc taken = reduce.operands[0];
    const auto split = *splitOf(taken, reduce.attributes.integers("dims"));
    Attributes::Integers strides;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const OperandDesc& o = map.operands[static_cast<std::size_t>(i)];
      const bool still = o.strideOf(0, o.shape.size()) == 0;
      const bool dense = !still && o.isContiguous();
      strides.push_back(still ? 0 : dense ? matrix.columns : *o.strideOf(0, split));
      strides.push_back(still ? 0 : dense ? 1 : *o.strideOf(split, o.shape.size()));
    }
    for (const char* name : {"init", "scale"}) {
      const std::int64_t operand = reduce.attributes.integer(name);
      if (operand >= 0) reduce.attributes.set(name, operand + inputs - 1);
    }
    const auto dims = reduce.attributes.integers("dims");
    const bool rows_vanish = std::count(dims.begin(), dims.end(), 0) > 0 && split > 0;
    reduce.kernel = "engine.reduce_mapped";
    reduce.attributes.set("expr", map.attributes.integers("expr"))
        .set("rows", matrix.rows)
        .set("columns", matrix.columns)
        .set("strides", strides)
        .set("rows_vanish", std::int64_t{rows_vanish});
    std::vector<OperandDesc> operands(map.operands.begin(), map.operands.end() - 1);
    operands.insert(operands.end(), reduce.operands.begin() + 1, reduce.operands.end());
    reduce.operands = std::move(operands);
    reduce.in_place.clear();
    map.kernel = "engine.account";
    map.operands.clear();
    map.in_place.clear();
  }

  Draft& draft_;
  Occurrences occurrences_;
};

}  // namespace

void fuseReductions(Draft& draft) { Fuser(draft).run(draft.root); }

}  // namespace ipujax::engine::build
