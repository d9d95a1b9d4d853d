#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/code/StripCode.hpp"
#include "engine/simd/Isa.hpp"

/// Random programs as machine code against their operations one by one, for AVX2 and, where the
/// CPU has it, AVX-512: few values and more than registers hold, any number of arrays.
namespace {

using namespace ipujax::engine;
using code::Rounding;
using code::StripBuilder;
using code::StripOp;
using code::StripProgram;
using code::StripStep;

using Bits = std::uint32_t;

float floatOf(Bits bits) { return std::bit_cast<float>(bits); }
Bits bitsOf(float x) { return std::bit_cast<Bits>(x); }
Bits maskOf(bool is_true) { return is_true ? ~Bits{0} : 0; }

/// The definition of an operation of two floats; NaNs are compared as equal.
Bits ofFloats(StripOp op, Bits a, Bits b) {
  const float x = floatOf(a), y = floatOf(b);
  switch (op) {
    case StripOp::kAdd:
      return bitsOf(x + y);
    case StripOp::kSubtract:
      return bitsOf(x - y);
    case StripOp::kMultiply:
      return bitsOf(x * y);
    case StripOp::kDivide:
      return bitsOf(x / y);
    case StripOp::kLargerOrSecond:
      return x > y ? a : b;
    case StripOp::kSmallerOrSecond:
      return x < y ? a : b;
    case StripOp::kEqual:
      return maskOf(x == y);
    case StripOp::kLess:
      return maskOf(x < y);
    case StripOp::kLessEqual:
      return maskOf(x <= y);
    default:
      CHECK(op == StripOp::kUnordered);
      return maskOf(std::isnan(x) || std::isnan(y));
  }
}

Bits ofIntegers(StripOp op, Bits a, Bits b) {
  const auto i = static_cast<std::int32_t>(a), j = static_cast<std::int32_t>(b);
  switch (op) {
    case StripOp::kAddInt:
      return a + b;
    case StripOp::kSubtractInt:
      return a - b;
    case StripOp::kMultiplyInt:
      return a * b;
    case StripOp::kHighProductInt:
      return static_cast<Bits>(std::int64_t{i} * j >> 32);
    case StripOp::kHighProductUInt:
      return static_cast<Bits>(std::uint64_t{a} * b >> 32);
    case StripOp::kShiftLeft:
      return b < 32 ? a << b : 0;
    case StripOp::kShiftRight:
      return b < 32 ? a >> b : 0;
    case StripOp::kShiftRightSign:
      return static_cast<Bits>(i >> std::min(b, Bits{31}));
    case StripOp::kRotateLeft:
      return std::rotl(a, static_cast<int>(b & 31));
    case StripOp::kLargerInt:
      return static_cast<Bits>(std::max(i, j));
    case StripOp::kSmallerInt:
      return static_cast<Bits>(std::min(i, j));
    case StripOp::kLargerUInt:
      return std::max(a, b);
    case StripOp::kSmallerUInt:
      return std::min(a, b);
    case StripOp::kEqualInt:
      return maskOf(a == b);
    case StripOp::kLessInt:
      return maskOf(i < j);
    case StripOp::kLessUInt:
      return maskOf(a < b);
    case StripOp::kAnd:
      return a & b;
    case StripOp::kOr:
      return a | b;
    default:
      CHECK(op == StripOp::kXor);
      return a ^ b;
  }
}

Bits ofOne(const StripStep& step, Bits a) {
  const float x = floatOf(a);
  switch (step.op) {
    case StripOp::kSquareRoot:
      return bitsOf(std::sqrt(x));
    case StripOp::kRoundToHalf:
      return bitsOf(halfToFloat(floatToHalf(x)));
    case StripOp::kIntToFloat:
      return bitsOf(static_cast<float>(static_cast<std::int32_t>(a)));
    case StripOp::kTruncateToInt:
      return x >= -0x1p31F && x < 0x1p31F ? static_cast<Bits>(static_cast<std::int32_t>(x))
                                          : 0x80000000U;
    default:
      break;
  }
  switch (static_cast<Rounding>(step.number)) {
    case Rounding::kNearestEven:
      return bitsOf(std::nearbyint(x));
    case Rounding::kDown:
      return bitsOf(std::floor(x));
    case Rounding::kUp:
      return bitsOf(std::ceil(x));
    default:
      return bitsOf(std::trunc(x));
  }
}

constexpr StripOp kUnary[] = {StripOp::kSquareRoot, StripOp::kRoundToHalf, StripOp::kIntToFloat,
                              StripOp::kTruncateToInt, StripOp::kRoundWhole};
bool isUnary(StripOp op) { return std::ranges::find(kUnary, op) != std::end(kUnary); }
bool givesMask(StripOp op) {
  return (op >= StripOp::kEqual && op <= StripOp::kUnordered) ||
         (op >= StripOp::kEqualInt && op <= StripOp::kLessUInt) || op == StripOp::kLoadMask ||
         op == StripOp::kScalarMask;
}
std::size_t bytesOf(StripOp op) {
  switch (op) {
    case StripOp::kLoadMask:
    case StripOp::kScalarMask:
    case StripOp::kStoreMask:
      return 1;
    case StripOp::kLoadHalf:
    case StripOp::kLoadBFloat16:
    case StripOp::kStoreHalf:
    case StripOp::kStoreBFloat16:
      return 2;
    default:
      return 4;
  }
}
bool givesInteger(StripOp op) {
  return (op >= StripOp::kAddInt && op <= StripOp::kSmallerUInt) || op == StripOp::kTruncateToInt ||
         (op >= StripOp::kAnd && op <= StripOp::kXor);
}

/// Arrays of 4, 2 and 1 bytes per element, and a program on them.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed), length_(16 * (1 + pick(12))) {
    const std::size_t sources = 1 + pick(seed % 7 == 0 ? 30 : 6);
    for (std::size_t i = 0; i < sources; ++i) addSource();
    const std::size_t steps = 1 + pick(seed % 5 == 0 ? 120 : 20);
    for (std::size_t i = 0; i < steps; ++i) addStep();
    const std::size_t stores = 1 + pick(4);
    for (std::size_t i = 0; i < stores; ++i) addStore();
    program_ = builder_.take();
  }

  const StripProgram& program() const { return program_; }
  using Memory = std::vector<std::vector<std::byte>>;
  const Memory& memory() const { return memory_; }
  std::size_t length() const { return length_; }

  Memory want() const {
    Memory memory = memory_;
    std::vector<Bits> values(program_.size());
    for (std::size_t k = 0; k < length(); ++k)
      for (std::size_t i = 0; i < program_.size(); ++i) evaluate(program_[i], i, k, values, memory);
    return memory;
  }

  /// NaNs of one array made equal.
  static void tidy(const StripProgram& program, Memory& memory) {
    for (const StripStep& step : program) {
      if (step.op != StripOp::kStore && step.op != StripOp::kStoreHalf) continue;
      auto& bytes = memory[step.number];
      for (std::size_t at = 0; step.op == StripOp::kStore && at + 4 <= bytes.size(); at += 4) {
        float x;
        std::memcpy(&x, &bytes[at], 4);
        if (std::isnan(x)) std::memset(&bytes[at], 0x7f, 4);
      }
      for (std::size_t at = 0; step.op == StripOp::kStoreHalf && at + 2 <= bytes.size(); at += 2) {
        std::uint16_t h;
        std::memcpy(&h, &bytes[at], 2);
        if ((h & 0x7fffU) > 0x7c00U) std::memset(&bytes[at], 0x7f, 2);
      }
    }
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }

  Bits number() {
    const float special[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-40F, 65519.0F, 3e9F, -3e9F};
    const Bits whole[] = {0, 1, 2, 31, 32, 33, ~Bits{0}, 0x80000000U, 0x7fffffffU};
    switch (pick(5)) {
      case 0:
        return bitsOf(special[pick(std::size(special))]);
      case 1:
        return whole[pick(std::size(whole))];
      case 2:
        return static_cast<Bits>(random_());
      default:
        return bitsOf(static_cast<float>(pick(8000)) / 500.0F - 8.0F);
    }
  }

  std::uint32_t addMemory(StripOp op, bool is_scalar) {
    const std::size_t element = bytesOf(op);
    const std::size_t n = is_scalar ? 1 : length();
    std::vector<std::byte> bytes(element * n);
    for (std::size_t k = 0; k < n; ++k) {
      Bits bits = number();
      if (element == 1) bits = static_cast<Bits>(pick(2));
      if (element == 2) bits = op == StripOp::kLoadHalf ? floatToHalf(floatOf(bits)) : bits >> 16;
      std::memcpy(&bytes[k * element], &bits, element);
    }
    memory_.push_back(std::move(bytes));
    return static_cast<std::uint32_t>(memory_.size() - 1);
  }

  void addSource() {
    const auto op = static_cast<StripOp>(pick(static_cast<std::size_t>(StripOp::kNumber) + 1));
    if (op == StripOp::kNumber) return give(op, builder_.bits(number()));
    const bool is_scalar = StripStep{op}.isUniform();
    give(op, builder_.memory(op, addMemory(op, is_scalar)));
  }

  /// Floats, integers and masks are kept apart, since which NaN an operation gives is not defined.
  void give(StripOp op, StripBuilder::Value v) {
    const bool is_any = op <= StripOp::kNumber && bytesOf(op) == 4;
    if (givesMask(op))
      masks_.push_back(v);
    else if (is_any ? pick(2) == 0 : givesInteger(op))
      integers_.push_back(v);
    else
      floats_.push_back(v);
  }

  StripBuilder::Value anyOf(std::vector<StripBuilder::Value>& values) {
    if (values.empty()) values.push_back(builder_.bits(number()));
    return values[pick(values.size())];
  }
  StripBuilder::Value operandOf(StripOp op) {
    const bool takes_integer = (op >= StripOp::kAddInt && op <= StripOp::kIntToFloat) ||
                               (op >= StripOp::kAnd && op <= StripOp::kXor);
    return anyOf(takes_integer ? integers_ : floats_);
  }

  void addStep() {
    const auto first = static_cast<std::size_t>(StripOp::kAdd);
    const auto op =
        static_cast<StripOp>(first + pick(static_cast<std::size_t>(StripOp::kSelect) + 1 - first));
    const auto operand = [&] { return operandOf(op); };
    if (op == StripOp::kSelect) {
      if (masks_.empty()) return;
      auto& values = pick(2) ? integers_ : floats_;
      const auto a = anyOf(values), b = anyOf(values);
      values.push_back(builder_.add(op, masks_[pick(masks_.size())], a, b));
    } else if (op == StripOp::kMultiplyAdd) {
      give(op, builder_.add(op, operand(), operand(), operand()));
    } else if (op == StripOp::kRoundWhole) {
      give(op, builder_.add(op, operand(), -1, -1, static_cast<std::uint32_t>(pick(4))));
    } else if (isUnary(op)) {
      give(op, builder_.add(op, operand()));
    } else if (op == StripOp::kHighProductInt || op == StripOp::kHighProductUInt) {
      give(op, builder_.add(op, operand(), builder_.bits(number())));
    } else if (op == StripOp::kRotateLeft) {
      const auto count = builder_.add(StripOp::kAnd, operand(), builder_.bits(31));
      give(op, builder_.add(op, operand(), count));
    } else if (op >= StripOp::kAnd && op <= StripOp::kXor && masks_.size() > 1 && pick(2)) {
      masks_.push_back(builder_.add(op, masks_[pick(masks_.size())], masks_[pick(masks_.size())]));
    } else {
      give(op, builder_.add(op, operand(), operand()));
    }
  }

  void addStore() {
    if (!masks_.empty() && pick(3) == 0) {
      builder_.memory(StripOp::kStoreMask, addMemory(StripOp::kStoreMask, false),
                      masks_[pick(masks_.size())]);
    } else if (pick(4) == 0) {
      const StripOp op = pick(2) ? StripOp::kStoreHalf : StripOp::kStoreBFloat16;
      builder_.memory(op, addMemory(op, false),
                      anyOf(op == StripOp::kStoreHalf ? floats_ : integers_));
    } else {
      auto& values = pick(2) ? integers_ : floats_;
      const auto v = pick(2) || values.empty() ? anyOf(values) : values.back();
      builder_.memory(StripOp::kStore, addMemory(StripOp::kStore, false), v);
    }
  }

  static Bits loaded(StripOp op, const std::byte* at) {
    Bits raw = 0;
    std::memcpy(&raw, at, bytesOf(op));
    if (givesMask(op)) return maskOf(raw != 0);
    if (op == StripOp::kLoadHalf) return bitsOf(halfToFloat(static_cast<std::uint16_t>(raw)));
    return bytesOf(op) == 2 ? raw << 16 : raw;
  }

  static void store(StripOp op, Bits value, std::byte* at) {
    if (op == StripOp::kStoreMask) value &= 1U;
    if (op == StripOp::kStoreHalf) value = floatToHalf(floatOf(value));
    if (op == StripOp::kStoreBFloat16) value >>= 16;
    std::memcpy(at, &value, bytesOf(op));
  }

  static void evaluate(const StripStep& step, std::size_t i, std::size_t k,
                       std::vector<Bits>& values, Memory& memory) {
    const auto arg = [&](std::size_t a) { return values[static_cast<std::size_t>(step.args[a])]; };
    const std::size_t element = step.isUniform() ? 0 : k * bytesOf(step.op);
    if (step.stores()) return store(step.op, arg(0), &memory[step.number][element]);
    if (step.op == StripOp::kNumber)
      values[i] = step.number;
    else if (step.op < StripOp::kStore)
      values[i] = loaded(step.op, &memory[step.number][element]);
    else if (step.op == StripOp::kMultiplyAdd)
      values[i] = bitsOf(std::fma(floatOf(arg(0)), floatOf(arg(1)), floatOf(arg(2))));
    else if (step.op == StripOp::kSelect)
      values[i] = arg(0) ? arg(1) : arg(2);
    else if (isUnary(step.op))
      values[i] = ofOne(step, arg(0));
    else if (step.op <= StripOp::kUnordered)
      values[i] = ofFloats(step.op, arg(0), arg(1));
    else
      values[i] = ofIntegers(step.op, arg(0), arg(1));
  }

  std::mt19937_64 random_;
  std::size_t length_;
  StripBuilder builder_;
  std::vector<StripBuilder::Value> floats_, integers_, masks_;
  StripProgram program_;
  Memory memory_;
};

RandomProgram::Memory got(const RandomProgram& random, bool wide) {
  RandomProgram::Memory memory = random.memory();
  std::vector<std::byte*> at;
  for (auto& bytes : memory) at.push_back(bytes.data());
  const auto code = code::publish(code::stripBytes(random.program(), wide));
  code->run(at.data(), static_cast<std::int64_t>(random.length()));
  return memory;
}

}  // namespace

TEST(code_of_strips_does_what_its_operations_do) {
  if (code::stripLanes() == 0) return;  // no AVX2, or a sanitizer
  for (unsigned seed = 0; seed < 4000; ++seed) {
    const RandomProgram random(seed);
    auto want = random.want();
    RandomProgram::tidy(random.program(), want);
    for (const bool wide : {false, true}) {
      if (wide && isa() != Isa::kAvx512) continue;
      auto found = got(random, wide);
      RandomProgram::tidy(random.program(), found);
      if (found != want) check::fail(__FILE__, __LINE__, "seed ", seed, wide ? " wide" : "");
    }
  }
}

/// The pages of code are shared with the child, so that both must not write to the same ones.
TEST(a_child_of_a_fork_makes_code_of_its_own) {
  if (code::stripLanes() == 0) return;
  const RandomProgram before(11), in_child(12), in_parent(13);
  const auto does = [](const RandomProgram& random) {
    auto want = random.want(), found = got(random, false);
    RandomProgram::tidy(random.program(), want);
    RandomProgram::tidy(random.program(), found);
    return found == want;
  };
  CHECK(does(before));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(does(in_child) && does(before) ? 0 : 1);
  CHECK(does(in_parent));
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(does(in_parent));
}

TEST(programs_with_equal_steps_share_their_code) {
  if (code::stripLanes() == 0) return;
  const RandomProgram one(3), same(3), other(4);
  const auto code = code::stripCode(one.program());
  CHECK(code == code::stripCode(same.program()));
  CHECK(code != code::stripCode(other.program()));
}
