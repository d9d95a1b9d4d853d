#include <algorithm>
#include <optional>

#include "engine/build/Occurrences.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/kernels/move/Turn.hpp"

/// A buffer is a FIFO if a program only reads its oldest row and writes the newest value in that
/// row's place. On the tiles both are copies; on the host the row and the two values exchange their
/// memory:
///
///   popops.dynamic_slice  %fifo, %place -> %oldest    engine.turn %place, %newest, %oldest, %rows
///   popops.dynamic_update %fifo, %place, %newest      engine.account
///
/// The account of the tiles is made before, so it includes both copies.
namespace ipujax::engine::build {
namespace {

/// Copying shorter rows takes no longer than exchanging them.
constexpr std::uint64_t kLeastBytes = 4096;

class FifoTurner {
 public:
  explicit FifoTurner(Draft& draft) : draft_(draft), occurrences_(draft) {}

  void run() {
    for (std::uint32_t p = 0; p < draft_.occurrences.size(); ++p) tryTurn(p);
  }

 private:
  std::int64_t stepOf(std::uint32_t position) const { return draft_.occurrences[position].step; }
  StepDesc& stepAt(std::uint32_t position) {
    return draft_.image.steps[static_cast<std::size_t>(stepOf(position))];
  }

  void tryTurn(std::uint32_t reads) {
    if (stepOf(reads) < 0 || roleOf(stepAt(reads)) != KernelRole::kSliceOfRow) return;
    StepDesc& slice = stepAt(reads);
    const auto writes = writerAfter(draft_.find(slice.operands[0].buffer), reads);
    if (!writes || !occurrences_.together(reads, *writes)) return;
    StepDesc& update = stepAt(*writes);
    const OperandDesc& place = slice.operands[1];
    const OperandDesc& oldest = slice.operands[2];
    const OperandDesc& newest = update.operands[2];
    if (!isRow(slice, oldest) || !isRow(update, newest) || !isSame(place, update.operands[1]))
      return;
    const Outside outside = outsideOf(slice.attributes);
    if (outside == Outside::kSkip || outside != outsideOf(update.attributes)) return;
    if (place.type != ElementType::kUInt32 || !isExchangeable(oldest)) return;
    const std::uint32_t from = draft_.find(newest.buffer);
    if (from == draft_.find(oldest.buffer) || from == draft_.find(place.buffer)) return;
    if (touched(from, reads, *writes) || written(draft_.find(place.buffer), reads, *writes)) return;
    turn(slice, update, reads, isExchangeable(newest) && isDead(from, *writes));
  }

  /// The only step besides the reader that accesses a FIFO, if that step writes it.
  std::optional<std::uint32_t> writerAfter(std::uint32_t fifo, std::uint32_t reader) const {
    const Storage& storage = draft_.storages[fifo];
    if (storage.input >= 0 || storage.output >= 0 || storage.persistent) return std::nullopt;
    std::optional<std::uint32_t> writer;
    for (const auto& access : draft_.accesses[fifo]) {
      const std::int64_t step = stepOf(access.position);
      if (step == stepOf(reader)) continue;
      if (writer && step != stepOf(*writer)) return std::nullopt;
      if (!writer) writer = access.position;
    }
    if (!writer || *writer < reader || stepOf(*writer) < 0) return std::nullopt;
    const StepDesc& step = draft_.image.steps[static_cast<std::size_t>(stepOf(*writer))];
    const bool puts = roleOf(step) == KernelRole::kUpdateOfRow && step.operands.size() == 3 &&
                      step.attributes.text("body") == "replace" &&
                      draft_.find(step.operands[0].buffer) == fifo &&
                      draft_.find(step.operands[2].buffer) != fifo;
    return puts ? writer : std::nullopt;
  }

  std::uint64_t bytesOf(const OperandDesc& o) const {
    return static_cast<std::uint64_t>(o.numElements()) * sizeOf(o.type);
  }

  /// Whether the value is one row of the FIFO that the step reads or writes as a whole.
  bool isRow(const StepDesc& step, const OperandDesc& value) const {
    const OperandDesc& fifo = step.operands[0];
    if (fifo.shape.empty() || !draft_.isWhole(fifo) || bytesOf(value) < kLeastBytes) return false;
    std::vector<std::int64_t> row = fifo.shape;
    row[0] = 1;
    return step.attributes.integers("map") == Attributes::Integers{0} &&
           step.attributes.integers("sizes") == row && value.shape == row &&
           step.operands[1].numElements() == 1;
  }

  static bool isSame(const OperandDesc& a, const OperandDesc& b) {
    return a.buffer == b.buffer && a.offset == b.offset && a.type == b.type;
  }

  bool isExchangeable(const OperandDesc& value) const {
    const Storage& s = draft_.storages[draft_.find(value.buffer)];
    const bool is_bound = s.input >= 0 || s.output >= 0 || s.constant || s.persistent;
    return draft_.isWhole(value) && !is_bound && !draft_.graph->variables[s.variable].is_remote;
  }

  bool touched(std::uint32_t storage, std::uint32_t from, std::uint32_t to) const {
    return std::ranges::any_of(draft_.accesses[storage], [&](const StorageAccess& access) {
      return access.position > from && access.position < to;
    });
  }

  bool written(std::uint32_t storage, std::uint32_t from, std::uint32_t to) const {
    return std::ranges::any_of(draft_.accesses[storage], [&](const StorageAccess& access) {
      return access.kind != AccessKind::kRead && access.position > from && access.position < to;
    });
  }

  /// Whether the value that a step reads is not read again, wherever the step occurs.
  bool isDead(std::uint32_t storage, std::uint32_t reader) const {
    return std::ranges::none_of(draft_.accesses[storage], [&](const StorageAccess& access) {
      if (stepOf(access.position) != stepOf(reader)) return false;
      const std::uint64_t after = 2 * std::uint64_t{access.position} + 1;
      return std::ranges::any_of(draft_.live[storage], [&](const Segment& segment) {
        return segment.begin <= after && after <= segment.end;
      });
    });
  }

  void turn(StepDesc& slice, StepDesc& update, std::uint32_t reads, bool dies) {
    StepDesc turn;
    turn.kernel = TurnKernel::kName;
    turn.cost = slice.cost;
    turn.debug = slice.debug;
    turn.attributes.set("clamp", slice.attributes.integer("clamp"));
    turn.operands = {slice.operands[1], update.operands[2], slice.operands[2]};
    if (dies) turn.operands[TurnKernel::kNewest].access = Access::kReadWrite;
    OperandDesc row = slice.operands[2];
    row.access = Access::kReadWrite;
    const OperandDesc fifo = slice.operands[0];
    for (std::int64_t i = 0; i < fifo.shape[0]; ++i) {
      row.buffer = addRow(draft_.find(fifo.buffer), bytesOf(row));
      turn.operands.push_back(row);
    }
    for (std::uint32_t p = reads; p < draft_.occurrences.size(); ++p) {
      if (stepOf(p) != stepOf(reads)) continue;
      for (const OperandDesc& o : turn.operands)
        if (o.access == Access::kReadWrite) note(draft_.find(o.buffer), p);
    }
    for (const OperandDesc& o : turn.operands)
      if (o.access != Access::kRead) liveAlways(draft_.find(o.buffer));
    slice = std::move(turn);
    update.kernel = "engine.account";
    update.operands.clear();
    update.in_place.clear();
  }

  std::uint32_t addRow(std::uint32_t fifo, std::uint64_t bytes) {
    const auto row = static_cast<std::uint32_t>(draft_.storages.size());
    Storage storage;
    storage.variable = draft_.storages[fifo].variable;
    storage.bytes = bytes;
    draft_.storages.push_back(storage);
    draft_.accesses.emplace_back();
    draft_.live.emplace_back();
    draft_.residents.emplace_back();
    draft_.merged_into.push_back(row);
    return row;
  }

  void note(std::uint32_t storage, std::uint32_t position) {
    auto& accesses = draft_.accesses[storage];
    const auto at = std::ranges::upper_bound(accesses, position, {}, &StorageAccess::position);
    accesses.insert(at, {{position, AccessKind::kRead}, {position, AccessKind::kWriteSome}});
  }

  /// Keeps a storage live throughout: its memory belongs to other buffers at other times.
  void liveAlways(std::uint32_t storage) {
    draft_.live[storage] = {{0, 2 * std::uint64_t{draft_.root.end}}};
  }

  Draft& draft_;
  Occurrences occurrences_;
};

}  // namespace

void turnFifos(Draft& draft) { FifoTurner(draft).run(); }

}  // namespace ipujax::engine::build
