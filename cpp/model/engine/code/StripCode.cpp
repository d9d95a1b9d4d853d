#include "engine/code/StripCode.hpp"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "engine/code/Encoder.hpp"
#include "engine/code/StripEmitter.hpp"
#include "engine/simd/Isa.hpp"

namespace ipujax::engine::code {
namespace {

constexpr std::array kPointers{Gpr::kR8,  Gpr::kR9,  Gpr::kR10, Gpr::kR11, Gpr::kRdx,
                               Gpr::kRbx, Gpr::kR12, Gpr::kR13, Gpr::kR14, Gpr::kR15};
constexpr std::size_t kFirstSaved = 5;  ///< of these, the caller's

/// Makes the code of one program; lives for one.
class Generator final : StripEmitter {
 public:
  Generator(Encoder& out, const StripProgram& program, const StripPlacement& at, bool wide)
      : StripEmitter(out, program, at, wide), lanes_(wide ? 16 : 8) {
    findPointers();
  }

  void generate() {
    begin();
    loop(at_.copies());
    if (at_.copies() > 1) loop(1);
    end();
  }

 private:
  void findPointers() {
    for (const StripStep& step : program_) {
      const bool is_known = std::ranges::find(pointers_, step.number) != pointers_.end();
      if ((step.loads() || step.stores()) && !is_known && pointers_.size() < kPointers.size())
        pointers_.push_back(step.number);
    }
  }

  // Code ------------------------------------------------------------------------------------------

  /// Arguments: rdi: the pointers; rsi: n. rcx is the first element of the strip.
  void begin() {
    out_.push(Gpr::kRbp);
    out_.move(Gpr::kRbp, Gpr::kRsp);
    for (std::size_t p = kFirstSaved; p < pointers_.size(); ++p) out_.push(kPointers[p]);
    out_.add(Gpr::kRsp, -static_cast<std::int32_t>(at_.frameBytes()));
    out_.bitwiseAnd(Gpr::kRsp, -64);
    for (std::size_t v = 0; v < program_.size(); ++v)
      if (!at_.isVarying(v)) setUniform(v);
    for (std::size_t p = 0; p < pointers_.size(); ++p)
      out_.load(kPointers[p], {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * pointers_[p])});
    out_.zero(Gpr::kRcx);
  }

  void setUniform(std::size_t v) {
    const StripStep& step = program_[v];
    const auto& home = at_.home(v);
    const bool is_kept = home.reg != StripPlacement::kNowhere;
    const unsigned to = is_kept ? home.reg : kT3;
    if (step.op == StripOp::kNumber) {
      out_.setEax(step.number);
    } else {
      out_.load(Gpr::kRax, {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * step.number)});
      if (step.op == StripOp::kScalarMask) out_.setEaxByByte({Gpr::kRax});
    }
    if (step.op == StripOp::kScalar) {
      out_.vector(op::kBroadcast, to, 0, Address{Gpr::kRax});
    } else {
      out_.moveFromEax(kT4);
      out_.vector(op::kBroadcast, to, 0, kT4);
    }
    if (!is_kept) out_.vector(op::kMoveTo, to, 0, inFrame(home.frame));
  }

  void end() {
    const std::size_t saved = pointers_.size() > kFirstSaved ? pointers_.size() - kFirstSaved : 0;
    out_.addressOf(Gpr::kRsp, {Gpr::kRbp, 0, -static_cast<std::int32_t>(8 * saved)});
    for (std::size_t p = pointers_.size(); p-- > kFirstSaved;) out_.pop(kPointers[p]);
    out_.pop(Gpr::kRbp);
    out_.zeroUpper();
    out_.ret();
  }

  void loop(unsigned copies) {
    const auto elements = static_cast<std::int32_t>(copies * lanes_);
    const std::size_t top = out_.place();
    out_.addressOf(Gpr::kRax, {Gpr::kRcx, 0, elements});
    out_.compare(Gpr::kRax, Gpr::kRsi);
    const std::size_t done = out_.jumpIf(Condition::kGreater);
    for (std::size_t i = 0; i < program_.size(); ++i) {
      if (!at_.isInLoop(i)) continue;
      for (unsigned c = 0; c < copies; ++c) emit(i, c);
    }
    out_.add(Gpr::kRcx, elements);
    out_.jumpBack(top);
    out_.bind(done);
  }

  /// The address of this copy's elements; may change rax.
  Address memory(const StripStep& step, unsigned copy, int bytes) {
    const auto found = std::ranges::find(pointers_, step.number);
    Gpr base = Gpr::kRax;
    if (found != pointers_.end())
      base = kPointers[static_cast<std::size_t>(found - pointers_.begin())];
    else
      out_.load(base, {Gpr::kRdi, 0, static_cast<std::int32_t>(8 * step.number)});
    return {base, bytes, static_cast<std::int32_t>(copy * lanes_) * bytes};
  }

  void load(const StripStep& step, unsigned to, unsigned copy) override {
    if (step.op == StripOp::kLoad) return out_.vector(op::kMove, to, 0, memory(step, copy, 4));
    if (step.op == StripOp::kLoadHalf)
      return out_.vector(op::kFromHalf, to, 0, memory(step, copy, 2));
    if (step.op == StripOp::kLoadBFloat16) {
      out_.vector(op::kFromShorts, kT3, 0, memory(step, copy, 2));
      return shiftByNumber(kLeft, to, kT3, 16);
    }
    out_.vector(op::kFromBytes, kT3, 0, memory(step, copy, 1));
    if (wide_) {
      out_.vector(op::kTest, 1, kT3, kT3);
      return out_.vector(op::kMaskToVector, to, 0, 1u);
    }
    out_.vector(op::kXor, kT4, kT4, kT4);
    out_.vector(op::kGreaterInt, to, kT3, kT4);
  }

  void store(const StripStep& step, unsigned from, unsigned copy) override {
    if (step.op == StripOp::kStore) return out_.vector(op::kMoveTo, from, 0, memory(step, copy, 4));
    if (step.op == StripOp::kStoreHalf)
      return out_.vector(op::kToHalf, from, 0, memory(step, copy, 2), 0);
    const bool is_short = step.op == StripOp::kStoreBFloat16;
    shiftByNumber(kRight, kT3, from, is_short ? 16 : 31);
    const Address at = memory(step, copy, is_short ? 2 : 1);
    if (wide_) return out_.vector(is_short ? op::kToShorts : op::kToBytes, kT3, 0, at);
    out_.vector(op::kExtractHigh, kT3, 0, kT4, 1);
    if (is_short) {
      out_.shortVector(op::kPackUnsignedWords, kT3, kT3, kT4);
      return out_.shortVector(op::kMoveTo, kT3, 0, at);
    }
    out_.shortVector(op::kPackWords, kT3, kT3, kT4);
    out_.shortVector(op::kPackBytes, kT3, kT3, kT3);
    out_.shortVector(op::kMoveLowTo, kT3, 0, at);
  }

  const unsigned lanes_;
  std::vector<std::uint32_t> pointers_;  ///< numbers of the memory in kPointers
};

/// Less than a page of a stack's guard, and what a thread surely has.
constexpr std::size_t kMostFrameBytes = 4096;

std::string keyOf(const StripProgram& program) {
  std::string key;
  for (const StripStep& step : program) {
    key += static_cast<char>(step.op);
    for (const auto a : step.args) key.append(reinterpret_cast<const char*>(&a), sizeof a);
    key.append(reinterpret_cast<const char*>(&step.number), sizeof step.number);
  }
  return key;
}

}  // namespace

std::int64_t stripLanes() {
  if (isa() == Isa::kBaseline || !isAvailable()) return 0;
  return isa() == Isa::kAvx512 ? 16 : 8;
}

std::vector<std::uint8_t> stripBytes(const StripProgram& program, bool wide) {
  Encoder out(wide ? 512 : 256);
  const StripPlacement at(program, wide);
  Generator(out, program, at, wide).generate();
  return out.bytes();
}

namespace {

/// Code by program. A fork takes the lock, so that the child finds it free and the map whole.
struct Known {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const Code>> code;

  static Known& shared() {
    static Known& known = *new Known;  // never destroyed: threads may run at exit
    return known;
  }

 private:
  Known() {
    ::pthread_atfork([] { shared().mutex.lock(); }, [] { shared().mutex.unlock(); },
                     [] { shared().mutex.unlock(); });
  }
};
Known& kKnown = Known::shared();

}  // namespace

std::shared_ptr<const Code> stripCode(const StripProgram& program) {
  constexpr std::size_t kMost = 1000;
  if (stripLanes() == 0) return nullptr;
  std::string key = keyOf(program);
  {
    const std::scoped_lock lock(kKnown.mutex);
    const auto found = kKnown.code.find(key);
    if (found != kKnown.code.end())
      if (auto code = found->second.lock()) return code;
  }
  const bool wide = isa() == Isa::kAvx512;
  if (StripPlacement(program, wide).frameBytes() > kMostFrameBytes) return nullptr;
  auto code = publish(stripBytes(program, wide));
  const std::scoped_lock lock(kKnown.mutex);
  if (kKnown.code.size() > kMost)
    std::erase_if(kKnown.code, [](const auto& e) { return e.second.expired(); });
  kKnown.code[std::move(key)] = code;
  return code;
}

}  // namespace ipujax::engine::code
