#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/move/CopyWindows.hpp"

/// Loops of few elements that run as one kernel (docs/decisions/0017). Internal to the engine.
namespace ipujax::engine::loop {

constexpr std::size_t kMostSteps = 64;

/// Elements that the steps of a loop read or write together: one, or the width of the loop.
struct Cell {
  std::int64_t elements = 1;
  std::uint64_t step = 0;  ///< it has the memory of operand `operand` of this step
  std::uint32_t operand = 0;
  ElementType type = ElementType::kFloat;
  bool written = false;
  std::size_t last_write = 0;                   ///< orders the last writes of all cells
  bool isOne() const { return elements == 1; }  ///< holds for the whole width
};

/// One step of the loop, on cells.
struct Action {
  enum class Kind : std::uint8_t {
    kMap,       ///< cells: the program's inputs, then its outputs
    kCopy,      ///< cells: from, to
    kLoadRow,   ///< cells: index, to; the row of operand 0 that the index chooses
    kStoreRow,  ///< cells: index, from; the reverse
  };
  Kind kind = Kind::kMap;
  std::uint64_t step = 0;
  std::vector<std::uint32_t> cells;        ///< those read, then those written
  expr::ExprProgram program;               ///< of a kMap
  std::shared_ptr<const Windows> windows;  ///< of a row
  std::optional<expr::Op> combiner;        ///< of the old row and the stored one
  std::int64_t row_elements = 0;           ///< of a row; a stored one may have a cell of 1 for all

  std::uint32_t index() const { return cells[0]; }  ///< of a row
  std::uint32_t row() const { return cells[1]; }
  std::size_t numRead() const {
    if (kind == Kind::kMap) return program.numInputs();
    return kind == Kind::kStoreRow ? 2 : 1;
  }
  bool loads() const { return kind == Kind::kLoadRow || combiner.has_value(); }
};

/// A loop whose steps depend only on cells of one width, on single elements, and on rows of arrays.
struct LoopBody {
  std::int64_t width = 1;  ///< elements
  std::vector<Cell> cells;
  std::vector<Action> condition;
  std::vector<Action> body;
  std::int32_t predicate = -1;  ///< the cell that a while loop tests; -1 if the count is known
  bool repeats_while = true;    ///< the value of the predicate to continue
  std::uint64_t count = 0;
  /// An iteration may load a row that the previous one stored; otherwise they may run together.
  bool one_by_one = false;
};

/// The loop at a kRepeat or kRepeatWhile node as loops of one width each, which may run in turn.
/// All of them compute the single elements, which only the first one needs to store. Empty if the
/// loop is not of this kind, or has only single elements.
std::vector<LoopBody> findLoopBodies(const Image& image, std::uint32_t node);

}  // namespace ipujax::engine::loop
