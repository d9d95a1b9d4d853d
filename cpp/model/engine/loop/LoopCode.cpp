#include "engine/loop/LoopCode.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <type_traits>

#include "engine/code/StripPlacement.hpp"
#include "engine/expr/ExprChain.hpp"
#include "engine/loop/LoopBlock.hpp"
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {
namespace {

using code::Address;
using code::Condition;
using code::Encoder;
using code::Gpr;
using code::StripPlacement;

constexpr Gpr kBases = Gpr::kR13, kState = Gpr::kR14;
/// The bases that are used most; all of these registers belong to the caller.
constexpr std::array kKept{Gpr::kRbx, Gpr::kR12, Gpr::kR15};
constexpr std::size_t kMostDepth = 8;      ///< of loops
constexpr std::size_t kFrameBytes = 2048;  ///< for values that registers do not hold

bool runCall(const simd::ScalarOp* op, LoopState* state) noexcept {
  try {
    op->function(op, state->run, 0, 0.0f);
    return true;
  } catch (...) {  // machine code cannot be unwound
    state->error = std::current_exception();
    return false;
  }
}
void addTrips(LoopState* state, std::int64_t node, std::int64_t iterations) noexcept {
  state->run->trip_counts.add(static_cast<std::uint32_t>(node),
                              static_cast<std::uint64_t>(iterations));
}

/// Compiles all operations; lives for one loop.
class Compiler {
 public:
  Compiler(std::span<const CodeOp> ops, std::vector<std::int64_t>& constants)
      : ops_(ops), constants_(constants), out_(128) {}

  /// False if something does not fit.
  bool compile() {
    std::set<Key> wanted;
    findBlocks(nullptr, wanted);
    blocks_.clear();
    std::set<Key> ignored;
    findBlocks(&wanted, ignored);
    findKept();
    begin();
    run(0, 0);
    end();
    return fits_;
  }
  const std::vector<std::uint8_t>& bytes() const { return out_.bytes(); }
  std::vector<std::size_t> takeCalled() { return std::move(called_); }

 private:
  struct Piece {
    Block block;
    std::size_t end;  ///< the operation after it
  };

  /// Also finds the slots that blocks do not keep to themselves.
  void findBlocks(const std::set<Key>* wanted, std::set<Key>& reads) {
    for (std::size_t i = 0; i < ops_.size();) {
      BlockWriter writer(constants_, wanted);
      std::size_t j = i;
      while (j < ops_.size() && j - i < kMostInBlock && writer.add(ops_[j])) ++j;
      if (j > i) {
        Piece& piece = blocks_[i];
        piece = {writer.take(), j};
        reads.merge(piece.block.reads);
        i = j;
        continue;
      }
      const auto& [a, b, c, out] = ops_[i].operands;
      for (const Place* place : {&a, &b, &c, &out}) reads.insert(keyOf(*place));
      ++i;
    }
  }

  /// The bases that get registers, and whether all offsets have 32 bits.
  void findKept() {
    std::map<std::uint32_t, std::size_t> uses;
    const auto note = [&](const Place& place) {
      ++uses[place.base];
      constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
      fits_ &= place.offset >= -kMost && place.offset <= kMost;
    };
    for (const auto& [start, piece] : blocks_)
      for (const Place& place : piece.block.places) note(place);
    for (const CodeOp& op : ops_) {
      const auto& [a, b, c, out] = op.operands;
      for (const Place* place : {&a, &b, &c, &out}) note(*place);
      fits_ &= op.meaning.kind == Meaning::Kind::kRepeat ||
               op.immediate == static_cast<std::int32_t>(op.immediate);
    }
    for (const auto& [base, count] : uses) kept_.push_back(base);
    std::ranges::stable_sort(kept_, std::greater<>{}, [&](auto base) { return uses[base]; });
    if (kept_.size() > kKept.size()) kept_.resize(kKept.size());
  }

  Address addressOf(const Place& place, Gpr scratch = Gpr::kRax) {
    const auto found = std::ranges::find(kept_, place.base);
    if (found != kept_.end())
      scratch = kKept[static_cast<std::size_t>(found - kept_.begin())];
    else
      out_.load(scratch, {kBases, 0, static_cast<std::int32_t>(8 * place.base)});
    return {scratch, 0, static_cast<std::int32_t>(place.offset)};
  }
  static Address counterAt(std::size_t depth) {
    return {Gpr::kRsp, 0, static_cast<std::int32_t>(kFrameBytes + 8 * depth)};
  }

  /// Arguments: rdi: the bases; rsi: the LoopState.
  void begin() {
    out_.push(Gpr::kRbp);
    out_.move(Gpr::kRbp, Gpr::kRsp);
    for (const Gpr r : kSaved) out_.push(r);
    out_.add(Gpr::kRsp, -static_cast<std::int32_t>(kFrameBytes + 8 * kMostDepth));
    out_.bitwiseAnd(Gpr::kRsp, -64);
    out_.move(kBases, Gpr::kRdi);
    out_.move(kState, Gpr::kRsi);
    for (std::size_t i = 0; i < kept_.size(); ++i)
      out_.load(kKept[i], {kBases, 0, static_cast<std::int32_t>(8 * kept_[i])});
  }
  void end() {
    for (const std::size_t jump : to_end_) out_.bind(jump);
    out_.addressOf(Gpr::kRsp, {Gpr::kRbp, 0, -static_cast<std::int32_t>(8 * kSaved.size())});
    for (std::size_t i = kSaved.size(); i-- > 0;) out_.pop(kSaved[i]);
    out_.pop(Gpr::kRbp);
    out_.ret();
  }

  std::int64_t word(const CodeOp& op, std::size_t number) const {
    return constants_[static_cast<std::size_t>(op.operands.c.offset) / 8 + number];
  }
  std::size_t target(std::size_t i, std::size_t number) const {
    return i + static_cast<std::size_t>(word(ops_[i], number));
  }

  /// Operations from i to the end of their piece of code.
  void run(std::size_t i, std::size_t depth) {
    while (ops_[i].meaning.kind != Meaning::Kind::kEnd) {
      if (const auto found = blocks_.find(i); found != blocks_.end()) {
        emitBlock(found->second.block);
        i = found->second.end;
        continue;
      }
      switch (ops_[i].meaning.kind) {
        case Meaning::Kind::kRepeat:
          i = repeat(i, depth);
          break;
        case Meaning::Kind::kRepeatWhile:
          i = repeatWhile(i, depth);
          break;
        case Meaning::Kind::kBranch:
          i = branch(i, depth);
          break;
        case Meaning::Kind::kChoose:
          i = choose(i, depth);
          break;
        default:
          emitSingle(i);
          ++i;
      }
    }
  }

  void emitBlock(const Block& block) {
    const StripPlacement at(block.program, false, 1);
    fits_ &= at.frameBytes() <= kFrameBytes;
    const AddressOf address_of = [this](const Place& place, Gpr scratch) {
      return addressOf(place, scratch);
    };
    loop::emitBlock(out_, block, at, address_of);
  }

  void endIfCancelled() {
    out_.load(Gpr::kRax, {kState, 0, offsetof(LoopState, cancelled)});
    out_.compareByte({Gpr::kRax}, 0);
    to_end_.push_back(out_.jumpIf(Condition::kNotEqual));
  }

  std::size_t repeat(std::size_t i, std::size_t depth) {
    fits_ &= depth < kMostDepth;
    out_.setMemory(counterAt(depth), 0);
    const std::size_t top = out_.place();
    endIfCancelled();
    out_.setInteger(Gpr::kRax, ops_[i].immediate);
    out_.compareMemory(counterAt(depth), Gpr::kRax);
    const std::size_t done = out_.jumpIf(Condition::kGreaterEqual);
    run(i + 1, depth + 1);
    out_.addToMemory(counterAt(depth), 1);
    out_.jumpBack(top);
    out_.bind(done);
    return target(i, 0);
  }

  std::size_t repeatWhile(std::size_t i, std::size_t depth) {
    fits_ &= depth < kMostDepth;
    out_.setMemory(counterAt(depth), 0);
    const std::size_t top = out_.place();
    endIfCancelled();
    run(i + 1, depth + 1);
    const bool goes_on = word(ops_[i], 2) != 0;
    out_.compareByte(addressOf(ops_[i].operands.a), 0);
    const std::size_t done = out_.jumpIf(goes_on ? Condition::kEqual : Condition::kNotEqual);
    run(target(i, 0), depth + 1);
    out_.addToMemory(counterAt(depth), 1);
    out_.jumpBack(top);
    out_.bind(done);
    out_.move(Gpr::kRdi, kState);
    out_.setInteger(Gpr::kRsi, word(ops_[i], 3));
    out_.load(Gpr::kRdx, counterAt(depth));
    call(reinterpret_cast<std::uintptr_t>(&addTrips));
    return target(i, 1);
  }

  std::size_t branch(std::size_t i, std::size_t depth) {
    out_.compareByte(addressOf(ops_[i].operands.a), 0);
    const std::size_t otherwise = out_.jumpIf(Condition::kEqual);
    run(i + 1, depth);
    const std::size_t done = out_.jump();
    out_.bind(otherwise);
    run(target(i, 0), depth);
    out_.bind(done);
    return target(i, 1);
  }

  std::size_t choose(std::size_t i, std::size_t depth) {
    const CodeOp& op = ops_[i];
    const auto cases = static_cast<std::size_t>(op.immediate);
    out_.loadInteger(Gpr::kRax, addressOf(op.operands.a), op.meaning.bytes, true);
    std::vector<std::size_t> to_case, done;
    for (std::size_t k = 0; k < cases; ++k) {
      const std::int64_t value = word(op, 2 * k + 1);
      const auto number = static_cast<std::int32_t>(value);
      if (number != value) {  // no selector has it
        to_case.push_back(0);
        continue;
      }
      out_.compareNumber(Gpr::kRax, number);
      to_case.push_back(out_.jumpIf(Condition::kEqual));
    }
    run(target(i, 2 * cases + 1), depth);
    for (std::size_t k = 0; k < cases; ++k) {
      done.push_back(out_.jump());
      if (to_case[k] == 0) continue;
      out_.bind(to_case[k]);
      run(target(i, 2 * k + 2), depth);
    }
    for (const std::size_t jump : done) out_.bind(jump);
    return target(i, 0);
  }

  void call(std::uintptr_t function) {
    out_.setInteger(Gpr::kRax, static_cast<std::int64_t>(function));
    out_.call(Gpr::kRax);
  }

  void emitSingle(std::size_t i) {
    const CodeOp& op = ops_[i];
    switch (op.meaning.kind) {
      case Meaning::Kind::kCopy:
        if (op.meaning.bytes > 8 || !std::has_single_bit(op.meaning.bytes)) return callFunction(i);
        out_.loadInteger(Gpr::kRax, addressOf(op.operands.a), op.meaning.bytes, false);
        return storeResult(op, Gpr::kRax, op.meaning.bytes);
      case Meaning::Kind::kLoadElement:
        locate(op, false);
        out_.loadInteger(Gpr::kRax, {Gpr::kRdx}, op.meaning.bytes, false);
        return storeResult(op, Gpr::kRax, op.meaning.bytes);
      case Meaning::Kind::kLocate:
        locate(op, op.meaning.from_address);
        return storeResult(op, Gpr::kRdx, 8);
      case Meaning::Kind::kLoadAt:
        out_.load(Gpr::kRdx, addressOf(op.operands.a));
        out_.loadInteger(Gpr::kRax, {Gpr::kRdx, 0, static_cast<std::int32_t>(op.immediate)},
                         op.meaning.bytes, false);
        return storeResult(op, Gpr::kRax, op.meaning.bytes);
      case Meaning::Kind::kStoreAt:
        return storeAt(op);
      default:
        return callFunction(i);
    }
  }

  void storeResult(const CodeOp& op, Gpr from, std::size_t bytes) {
    out_.storeInteger(from, addressOf(op.operands.out, Gpr::kRcx), bytes);
  }

  /// rdx <- the address of b, or the one it holds, moved by the clamped index a.
  void locate(const CodeOp& op, bool from_address) {
    const ElementType index = op.meaning.index;
    const bool is_signed = withInteger(index, []<class I>(I) { return std::is_signed_v<I>; });
    out_.loadInteger(Gpr::kRax, addressOf(op.operands.a), sizeOf(index), is_signed);
    out_.zero(Gpr::kRcx);
    out_.compareNumber(Gpr::kRax, 0);
    out_.moveIf(Condition::kLess, Gpr::kRax, Gpr::kRcx);
    out_.setInteger(Gpr::kRcx, word(op, 0));
    out_.compare(Gpr::kRax, Gpr::kRcx);
    out_.moveIf(Condition::kGreater, Gpr::kRax, Gpr::kRcx);
    out_.setInteger(Gpr::kRcx, word(op, 1));
    out_.multiply(Gpr::kRax, Gpr::kRcx);
    if (from_address)
      out_.load(Gpr::kRdx, addressOf(op.operands.b, Gpr::kRdx));
    else
      out_.addressOf(Gpr::kRdx, addressOf(op.operands.b, Gpr::kRdx));
    out_.add(Gpr::kRdx, Gpr::kRax);
  }

  /// Nothing at a null address.
  void storeAt(const CodeOp& op) {
    out_.load(Gpr::kRdx, addressOf(op.operands.out));
    out_.compareNumber(Gpr::kRdx, 0);
    const std::size_t skip = out_.jumpIf(Condition::kEqual);
    out_.loadInteger(Gpr::kRax, addressOf(op.operands.a), op.meaning.bytes, false);
    out_.storeInteger(Gpr::kRax, {Gpr::kRdx, 0, static_cast<std::int32_t>(op.immediate)},
                      op.meaning.bytes);
    out_.bind(skip);
  }

  void callFunction(std::size_t i) {
    out_.load(Gpr::kRdi, {kState, 0, offsetof(LoopState, ops)});
    out_.add(Gpr::kRdi, static_cast<std::int32_t>(2 * called_.size() * sizeof(simd::ScalarOp)));
    called_.push_back(i);
    out_.move(Gpr::kRsi, kState);
    call(reinterpret_cast<std::uintptr_t>(&runCall));
    out_.bitwiseAnd(Gpr::kRax, 1);
    to_end_.push_back(out_.jumpIf(Condition::kEqual));
  }

  static constexpr std::array kSaved{Gpr::kRbx, Gpr::kR12, Gpr::kR13, Gpr::kR14, Gpr::kR15};
  static constexpr std::size_t kMostInBlock = 200;

  std::span<const CodeOp> ops_;
  std::vector<std::int64_t>& constants_;
  Encoder out_;
  std::map<std::size_t, Piece> blocks_;  ///< by their first operation
  std::vector<std::uint32_t> kept_;      ///< bases, in registers kKept
  std::vector<std::size_t> to_end_;      ///< jumps
  std::vector<std::size_t> called_;
  bool fits_ = true;
};

}  // namespace

LoopCode loopCode(std::span<const CodeOp> ops, std::vector<std::int64_t>& constants) {
  if (!expr::mayMakeCode()) return {};
  Compiler compiler(ops, constants);
  if (!compiler.compile()) return {};
  return {code::publish(compiler.bytes()), compiler.takeCalled()};
}

}  // namespace ipujax::engine::loop
