#include "engine/kernels/sort/SortKeys.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/kernels/sort/SortLoops.hpp"

namespace ipujax::engine {

namespace {

using expr::ExprProgram;
using expr::Instruction;
using expr::Op;

/// One side of a comparison: an input, and how its floats are made comparable.
struct Side {
  std::int32_t input = 0;
  FloatOrder order = FloatOrder::kCanonical;
};

/// Reads a comparator's program as a lexicographic order.
class KeyReader {
 public:
  explicit KeyReader(const ExprProgram& program)
      : program_(program), inputs_(static_cast<std::int32_t>(program.numInputs())) {}

  bool read(std::int32_t value, std::vector<SortKey>& keys) const {
    if (const auto key = comparison(value)) {
      keys.push_back(*key);
      return true;
    }
    const Instruction* either = at(value);
    if (!either || (either->op != Op::kLogicalOr && either->op != Op::kBitwiseOr)) return false;
    for (int side = 0; side < 2; ++side) {
      const auto first = comparison(either->args[side]);
      const Instruction* both = at(either->args[1 - side]);
      if (!first || !both || (both->op != Op::kLogicalAnd && both->op != Op::kBitwiseAnd)) continue;
      for (int other = 0; other < 2; ++other) {
        if (!isEqual(both->args[other], *first)) continue;
        const std::size_t size = keys.size();
        keys.push_back(*first);
        if (read(both->args[1 - other], keys)) return true;
        keys.resize(size);
      }
    }
    return false;
  }

 private:
  const Instruction* at(std::int32_t value) const { return program_.makerOf(value); }
  const Instruction* at(std::int32_t value, Op op) const {
    const Instruction* i = at(value);
    return i && i->op == op ? i : nullptr;
  }
  bool isConstant(std::int32_t value, std::int64_t low_bits, int bits) const {
    const Instruction* i = at(value, Op::kConstant);
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    return i && (static_cast<std::uint64_t>(i->immediate) & mask) ==
                    (static_cast<std::uint64_t>(low_bits) & mask);
  }
  bool isPositiveNan(std::int32_t value) const {
    const Instruction* i = at(value, Op::kConstant);
    if (!i) return false;
    if (i->type == ElementType::kHalf)
      return (i->immediate & 0xffff) > 0x7c00 && (i->immediate & 0x8000) == 0;
    const auto bits = static_cast<std::uint32_t>(i->immediate);
    return i->type == ElementType::kFloat && bits > 0x7f800000u && bits < 0x80000000u;
  }
  bool isPair(std::int32_t value, Op op, std::int32_t a, std::int32_t b) const {
    const Instruction* i = at(value, op);
    return i && ((i->args[0] == a && i->args[1] == b) || (i->args[0] == b && i->args[1] == a));
  }
  /// select(NaN, select(0, x, x == 0), x != x) of an input x.
  std::optional<std::int32_t> canonical(std::int32_t value) const {
    const Instruction* outer = at(value, Op::kSelect);
    if (!outer || !isPositiveNan(outer->args[0])) return std::nullopt;
    const Instruction* inner = at(outer->args[1], Op::kSelect);
    if (!inner || !isConstant(inner->args[0], 0, 32)) return std::nullopt;
    const std::int32_t x = inner->args[1];
    const Instruction* nan = at(outer->args[2]);
    const bool tests_nan =
        nan && ((nan->op == Op::kIsNan && nan->args[0] == x) ||
                (nan->op == Op::kNotEqual && nan->args[0] == x && nan->args[1] == x));
    const bool tests_zero = isPair(inner->args[2], Op::kEqual, x, inner->args[0]);
    if (x >= inputs_ || !tests_nan || !tests_zero) return std::nullopt;
    return x;
  }
  /// bits ^ ((bits >> (width - 1)) & ~sign): a float's integer in the total order.
  std::optional<Side> totalOrder(std::int32_t value) const {
    const Instruction* flipped = at(value, Op::kBitwiseXor);
    if (!flipped) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const std::int32_t bits = flipped->args[side];
      const Instruction* cast = at(bits, Op::kBitcast);
      const Instruction* masked = at(flipped->args[1 - side], Op::kBitwiseAnd);
      if (!cast || !masked || program_.typeOf(cast->args[0]) == cast->type) continue;
      if (cast->type != ElementType::kInt32 && cast->type != ElementType::kInt16) continue;
      const int width = static_cast<int>(8 * sizeOf(cast->type));
      for (int other = 0; other < 2; ++other) {
        const Instruction* sign = at(masked->args[other], Op::kShiftRightSignExtend);
        const bool whole =
            isConstant(masked->args[1 - other], (std::int64_t{1} << (width - 1)) - 1, width);
        if (!sign || !whole || sign->args[0] != bits) continue;
        if (!isConstant(sign->args[1], width - 1, width)) continue;
        if (const auto x = canonical(cast->args[0])) return Side{*x, FloatOrder::kCanonical};
        if (cast->args[0] < inputs_) return Side{cast->args[0], FloatOrder::kTotal};
      }
    }
    return std::nullopt;
  }
  std::optional<Side> sideOf(std::int32_t value) const {
    if (value < inputs_) return Side{value, FloatOrder::kCanonical};
    if (const auto x = canonical(value)) return Side{*x, FloatOrder::kCanonical};
    return totalOrder(value);
  }
  /// lhs < rhs or lhs > rhs of one operand, in any of the four spellings.
  std::optional<SortKey> comparison(std::int32_t value) const {
    const Instruction* i = at(value);
    if (!i || (i->op != Op::kLessThan && i->op != Op::kGreaterThan)) return std::nullopt;
    const auto a = sideOf(i->args[0]);
    const auto b = sideOf(i->args[1]);
    if (!a || !b || a->input / 2 != b->input / 2 || a->input == b->input) return std::nullopt;
    if (a->order != b->order) return std::nullopt;
    SortKey key;
    key.operand = static_cast<std::size_t>(a->input / 2);
    key.descending = (i->op == Op::kGreaterThan) != (a->input > b->input);
    key.order = a->order;
    return key;
  }
  bool isEqual(std::int32_t value, const SortKey& key) const {
    const Instruction* i = at(value, Op::kEqual);
    if (!i) return false;
    const auto a = sideOf(i->args[0]);
    const auto b = sideOf(i->args[1]);
    if (!a || !b || a->order != key.order || b->order != key.order) return false;
    const auto lhs = static_cast<std::int32_t>(2 * key.operand);
    return std::min(a->input, b->input) == lhs && std::max(a->input, b->input) == lhs + 1;
  }
  const ExprProgram& program_;
  std::int32_t inputs_;
};

template <class Bits, class F>
void mapAll(const std::byte* x, std::int64_t stride, std::uint32_t* out, std::int64_t n,
            const F& f) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      Bits bits;
      std::memcpy(&bits, x + i * static_cast<std::int64_t>(sizeof(Bits)), sizeof bits);
      out[i] = f(bits);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, x + i * stride * static_cast<std::int64_t>(sizeof(Bits)), sizeof bits);
    out[i] = f(bits);
  }
}

/// Maps a float's bits to an unsigned integer in the same order; `infinity` is the bits of
/// +infinity.
template <class Bits, bool kTotal>
std::uint32_t floatKey(Bits bits, Bits infinity, std::uint32_t flip) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  if constexpr (!kTotal) {
    const Bits magnitude = static_cast<Bits>(bits & ~kSign);
    if (magnitude == 0) bits = 0;
    if (magnitude > infinity) bits = static_cast<Bits>(~kSign);
  }
  const Bits ordered = static_cast<Bits>((bits & kSign) ? ~bits : bits | kSign);
  return static_cast<std::uint32_t>(ordered) ^ flip;
}

template <class Bits>
void mapFloats(const std::byte* x, std::int64_t stride, Bits infinity, const SortKey& key,
               std::uint32_t* out, std::int64_t n) {
  const std::uint32_t flip = key.descending ? (sizeof(Bits) == 4 ? ~0u : 0xffffu) : 0u;
  if (key.order == FloatOrder::kTotal) {
    mapAll<Bits>(x, stride, out, n,
                 [=](Bits b) { return floatKey<Bits, true>(b, infinity, flip); });
  } else {
    mapAll<Bits>(x, stride, out, n,
                 [=](Bits b) { return floatKey<Bits, false>(b, infinity, flip); });
  }
}

template <class Bits>
void mapIntegers(const std::byte* x, std::int64_t stride, bool is_signed, bool descending,
                 std::uint32_t* out, std::int64_t n) {
  const auto all = static_cast<Bits>(~Bits{0});
  const auto sign = static_cast<Bits>(is_signed ? Bits{1} << (8 * sizeof(Bits) - 1) : 0);
  const std::uint32_t flip = static_cast<Bits>(descending ? all ^ sign : sign);
  mapAll<Bits>(x, stride, out, n, [=](Bits b) { return static_cast<std::uint32_t>(b) ^ flip; });
}

}  // namespace

std::optional<std::vector<SortKey>> sortKeysOf(const ExprProgram& comparator) {
  std::vector<SortKey> keys;
  if (!KeyReader(comparator).read(comparator.outputs()[0], keys)) return std::nullopt;
  for (const SortKey& key : keys) {  // double has no keys: it is sorted by comparison
    if (comparator.inputTypes()[2 * key.operand] == ElementType::kDouble) return std::nullopt;
  }
  return keys;
}

Attributes::Integers toIntegers(const std::vector<SortKey>& keys) {
  Attributes::Integers integers;
  for (const SortKey& key : keys) {
    integers.push_back(static_cast<std::int64_t>(key.operand));
    integers.push_back(key.descending);
    integers.push_back(static_cast<std::int64_t>(key.order));
  }
  return integers;
}

std::vector<SortKey> sortKeysFrom(const Attributes::Integers& integers) {
  std::vector<SortKey> keys;
  for (std::size_t i = 0; i + 3 <= integers.size(); i += 3) {
    keys.push_back({static_cast<std::size_t>(integers[i]), integers[i + 1] != 0,
                    static_cast<FloatOrder>(integers[i + 2])});
  }
  return keys;
}

void mapKeys32(const std::byte* x, std::int64_t stride, ElementType type, const SortKey& key,
               std::uint32_t* out, std::int64_t n) {
  const bool down = key.descending;
  switch (type) {
    case ElementType::kFloat:
      if (stride == 1) {
        const SortLoops& loops = sortLoops();
        const bool total = key.order == FloatOrder::kTotal;
        const auto map = total ? loops.total_keys : loops.canonical_keys;
        return map(reinterpret_cast<const std::uint32_t*>(x), down ? ~0u : 0u, out, n);
      }
      return mapFloats<std::uint32_t>(x, stride, 0x7f800000u, key, out, n);
    case ElementType::kHalf:
      return mapFloats<std::uint16_t>(x, stride, 0x7c00u, key, out, n);
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return mapIntegers<std::uint32_t>(x, stride, type == ElementType::kInt32, down, out, n);
    case ElementType::kInt16:
    case ElementType::kUInt16:
      return mapIntegers<std::uint16_t>(x, stride, type == ElementType::kInt16, down, out, n);
    default:
      return mapIntegers<std::uint8_t>(x, stride, type == ElementType::kInt8, down, out, n);
  }
}

void mapKeys64(const std::byte* x, std::int64_t stride, ElementType type, const SortKey& key,
               std::uint64_t* out, std::int64_t n) {
  const std::uint64_t sign = type == ElementType::kInt64 ? std::uint64_t{1} << 63 : 0;
  const std::uint64_t flip = key.descending ? ~sign : sign;
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint64_t bits;
    std::memcpy(&bits, x + i * stride * 8, sizeof bits);
    out[i] = bits ^ flip;
  }
}

void radixSort(std::uint64_t* values, std::uint64_t* scratch, std::int64_t n, int shift, int bits) {
  constexpr int kDigit = 11;
  constexpr std::uint64_t kMask = (1u << kDigit) - 1;
  constexpr int kMaxPasses = 3;
  const int passes = (bits + kDigit - 1) / kDigit;
  std::array<std::array<std::uint32_t, kMask + 1>, kMaxPasses> counts;
  for (int p = 0; p < passes; ++p) counts[p].fill(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t v = values[i] >> shift;
    for (int p = 0; p < passes; ++p) ++counts[p][(v >> (p * kDigit)) & kMask];
  }
  std::uint64_t* from = values;
  std::uint64_t* to = scratch;
  for (int p = 0; p < passes; ++p) {
    auto& count = counts[p];
    const int at = shift + p * kDigit;
    if (count[(values[0] >> at) & kMask] == n) continue;  // one digit only: already in order
    std::uint32_t sum = 0;
    for (std::uint32_t& c : count) sum += std::exchange(c, sum);
    for (std::int64_t i = 0; i < n; ++i) to[count[(from[i] >> at) & kMask]++] = from[i];
    std::swap(from, to);
  }
  if (from != values) std::memcpy(values, from, static_cast<std::size_t>(n) * sizeof *values);
}

}  // namespace ipujax::engine
