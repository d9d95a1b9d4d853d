#include "engine/loop/LoopBlock.hpp"

#include <algorithm>

#include "engine/code/StripEmitter.hpp"
#include "engine/expr/StripOps.hpp"

namespace ipujax::engine::loop {
namespace {

using code::Address;
using code::Encoder;
using code::Gpr;
using code::StripBuilder;
using code::StripOp;
using code::StripPlacement;
using code::StripProgram;
using code::StripStep;

constexpr std::uint32_t kConstantBase = 0, kSlotBase = 1;

bool isMask(ElementType type) { return type == ElementType::kBool; }
ElementType thirdType(const simd::MapKey& key) {
  return key.op == expr::Op::kSelect ? ElementType::kBool : key.operand;
}

bool isHeld(ElementType type) {
  const ElementType held = simd::blockType(type);
  return isMask(held) || held == ElementType::kFloat || held == ElementType::kInt32 ||
         held == ElementType::kUInt32;
}

/// Whether two places, of at most 4 bytes, share memory.
bool overlaps(const Place& a, const Place& b) {
  return a.base == b.base && a.offset < b.offset + 4 && b.offset < a.offset + 4;
}

/// Emits the steps of a block for single values: one lane of a vector.
class BlockEmitter final : code::StripEmitter {
 public:
  BlockEmitter(Encoder& out, const Block& block, const StripPlacement& at,
               const AddressOf& address_of)
      : StripEmitter(out, block.program, at, false), block_(block), address_of_(address_of) {}
  void emitAll() {
    for (std::size_t i = 0; i < block_.program.size(); ++i) emit(i, 0);
  }

 private:
  Address memory(const StripStep& step, Gpr scratch = Gpr::kRax) const {
    return address_of_(block_.places[step.number], scratch);
  }
  void load(const StripStep& step, unsigned to, unsigned) override {
    if (step.op == StripOp::kLoad) return out_.vector(kMoveOne, to, 0, memory(step));
    out_.loadInteger(Gpr::kRax, memory(step), 1, false);
    out_.negateEax();
    out_.moveFromEax(to);
  }
  void store(const StripStep& step, unsigned from, unsigned) override {
    if (step.op == StripOp::kStore) return out_.vector(kMoveOneTo, from, 0, memory(step));
    out_.moveToEax(from);
    out_.negateEax();
    out_.storeInteger(Gpr::kRax, memory(step, Gpr::kRcx), 1);
  }
  static constexpr code::Opcode kMoveOne{2, 1, 0x10}, kMoveOneTo{2, 1, 0x11};

  const Block& block_;
  const AddressOf& address_of_;
};

}  // namespace

bool BlockWriter::add(const CodeOp& op) {
  if (op.meaning.kind == Meaning::Kind::kCopy) return copy(op);
  if (op.meaning.kind != Meaning::Kind::kValue) return false;
  const simd::MapKey& key = op.meaning.key;
  const Place* args[] = {&op.operands.a, &op.operands.b, &op.operands.c};
  const ElementType types[] = {key.operand, key.operand, thirdType(key)};
  const int count = expr::numOperands(key.op);
  const auto divisor = count > 1 ? constantAt(op.operands.b) : std::nullopt;
  if (!isHeld(key.operand) || !isHeld(key.result)) return false;
  if (!expr::hasStrip(key.op, key.operand, key.result, divisor)) return false;
  expr::StripOperands operands;
  for (std::size_t a = 0; a < static_cast<std::size_t>(count); ++a) {
    operands[a].value = valueAt(*args[a], isMask(types[a]));
    if (!isMask(types[a])) operands[a].constant = constantAt(*args[a]);
  }
  write(op.operands.out, isMask(key.result),
        *expr::addOperation(builder_, key.op, key.operand, key.result, operands));
  return true;
}

Block BlockWriter::take() {
  for (const Pending& p : pending_) {
    if (p.place.base == kSlotBase && wanted_ && !wanted_->contains(keyOf(p.place))) continue;
    addStore(p);
  }
  block_.program = withoutNumbers(builder_.take());
  return std::move(block_);
}

std::optional<std::uint32_t> BlockWriter::constantAt(const Place& place) const {
  if (place.base != kConstantBase || place.offset % 8 != 0) return {};
  return static_cast<std::uint32_t>(constants_[static_cast<std::size_t>(place.offset) / 8]);
}

/// A byte is copied as a mask if it is known to be one; others keep their bits.
bool BlockWriter::copy(const CodeOp& op) {
  const auto known = known_.find(keyOf(op.operands.a));
  const bool is_mask = known != known_.end() && known->second.is_mask;
  if (op.meaning.bytes != (is_mask ? 1u : 4u)) return false;
  write(op.operands.out, is_mask, valueAt(op.operands.a, is_mask));
  return true;
}

std::uint32_t BlockWriter::numberOf(const Place& place) {
  const auto found = std::ranges::find(block_.places, place);
  if (found != block_.places.end())
    return static_cast<std::uint32_t>(found - block_.places.begin());
  block_.places.push_back(place);
  return static_cast<std::uint32_t>(block_.places.size() - 1);
}

StripBuilder::Value BlockWriter::valueAt(const Place& place, bool is_mask) {
  const auto known = known_.find(keyOf(place));
  if (known != known_.end() && known->second.is_mask == is_mask) return known->second.value;
  flush(place);
  block_.reads.insert(keyOf(place));
  const auto value =
      builder_.memory(is_mask ? StripOp::kLoadMask : StripOp::kLoad, numberOf(place));
  known_[keyOf(place)] = {value, is_mask};
  return value;
}

/// Stores all that is pending, before memory is read that some of it changes.
void BlockWriter::flush(const Place& place) {
  if (std::ranges::none_of(pending_, [&](const auto& p) { return overlaps(p.place, place); }))
    return;
  for (const Pending& p : pending_) addStore(p);
  pending_.clear();
}

/// Values are stored at the end, in the order of their last writes.
void BlockWriter::write(const Place& place, bool is_mask, StripBuilder::Value value) {
  std::erase_if(known_, [&](const auto& entry) {
    return overlaps({entry.first.first, entry.first.second}, place);
  });
  known_[keyOf(place)] = {value, is_mask};
  std::erase_if(pending_,
                [&](const Pending& p) { return p.place == place && p.is_mask == is_mask; });
  pending_.push_back({place, is_mask, value});
}

/// Numbers that formulas need are constants in memory.
StripProgram BlockWriter::withoutNumbers(StripProgram program) {
  for (StripStep& step : program) {
    if (step.op != StripOp::kNumber) continue;
    const auto number = static_cast<std::int64_t>(step.number);
    auto found = std::ranges::find(constants_, number);
    if (found == constants_.end()) found = constants_.insert(found, number);
    step = {StripOp::kLoad, {-1, -1, -1}, 0};
    step.number = numberOf({kConstantBase, 8 * (found - constants_.begin())});
  }
  return program;
}

void BlockWriter::addStore(const Pending& pending) {
  builder_.memory(pending.is_mask ? StripOp::kStoreMask : StripOp::kStore, numberOf(pending.place),
                  pending.value);
}

void emitBlock(Encoder& out, const Block& block, const StripPlacement& at,
               const AddressOf& address_of) {
  BlockEmitter(out, block, at, address_of).emitAll();
}

}  // namespace ipujax::engine::loop
