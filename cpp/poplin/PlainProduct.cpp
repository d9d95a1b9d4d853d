#include "poplin/PlainProduct.hpp"

#include <cstring>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "poplar/exceptions.hpp"

namespace poplin::host {
namespace {

using ipujax::engine::ElementType;
using ipujax::engine::OperandDesc;
using ipujax::engine::StepDesc;

template <class T, class Sum>
void widen(const std::byte* data, std::int64_t stride, std::int64_t count, Sum* out) {
  const T* in = reinterpret_cast<const T*>(data);
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Sum>(in[i * stride]);
}

template <class Sum>
using WidenFn = void (*)(const std::byte*, std::int64_t, std::int64_t, Sum*);

template <class Sum>
WidenFn<Sum> widenOf(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return widen<std::int8_t, Sum>;
    case ElementType::kBool:
    case ElementType::kUInt8:
      return widen<std::uint8_t, Sum>;
    case ElementType::kInt16:
      return widen<std::int16_t, Sum>;
    case ElementType::kUInt16:
      return widen<std::uint16_t, Sum>;
    case ElementType::kInt32:
      return widen<std::int32_t, Sum>;
    case ElementType::kUInt32:
      return widen<std::uint32_t, Sum>;
    case ElementType::kInt64:
      return widen<std::int64_t, Sum>;
    case ElementType::kUInt64:
      return widen<std::uint64_t, Sum>;
    case ElementType::kDouble:
      return widen<double, Sum>;
    default:
      throw poplar::type_error("[poplin::matMul] needs integers or DOUBLE; got " +
                               std::string(nameOf(type)) + ". Cast the operands.");
  }
}

/// Sums in `Sum`: unsigned, modulo 2^32 or 2^64, which is right for every integer of at most so
/// many bits; or double.
template <class Sum>
class PlainProduct final : public ipujax::engine::Kernel {
 public:
  explicit PlainProduct(const StepDesc& step)
      : a_(step.operands[0]),
        b_(step.operands[1]),
        c_(step.operands[2]),
        widen_a_(widenOf<Sum>(a_.type)),
        widen_b_(widenOf<Sum>(b_.type)) {}

  void run(ipujax::engine::RunContext& context,
           std::span<std::byte* const> pointers) const override {
    const std::int64_t m = a_.shape[1], k = a_.shape[2], n = b_.shape[2];
    if (m * n == 0) return;
    std::vector<Sum> right(static_cast<std::size_t>(k * n));
    for (std::int64_t g = 0; g < a_.shape[0]; ++g) {
      const auto* b = at(pointers[1], b_, g * b_.strides[0]);
      for (std::int64_t i = 0; i < k; ++i)
        widen_b_(at(b, b_, i * b_.strides[1]), b_.strides[2], n, right.data() + i * n);
      const auto* a = at(pointers[0], a_, g * a_.strides[0]);
      auto* c = pointers[2] + g * c_.strides[0] * size(c_);
      context.pool.parallelFor(m, (1 << 14) / (k * n + 1) + 1,
                               [&](std::int64_t begin, std::int64_t end) {
                                 std::vector<Sum> left(static_cast<std::size_t>(k));
                                 std::vector<Sum> sums(static_cast<std::size_t>(n));
                                 for (std::int64_t i = begin; i < end; ++i)
                                   row(at(a, a_, i * a_.strides[1]), right, left, sums,
                                       c + i * c_.strides[1] * size(c_));
                               });
    }
  }

 private:
  static std::int64_t size(const OperandDesc& d) {
    return static_cast<std::int64_t>(sizeOf(d.type));
  }
  static const std::byte* at(const std::byte* base, const OperandDesc& d, std::int64_t elements) {
    return base + elements * size(d);
  }

  void row(const std::byte* a, const std::vector<Sum>& right, std::vector<Sum>& left,
           std::vector<Sum>& sums, std::byte* c) const {
    const auto k = static_cast<std::int64_t>(left.size());
    const auto n = static_cast<std::int64_t>(sums.size());
    widen_a_(a, a_.strides[2], k, left.data());
    std::fill(sums.begin(), sums.end(), Sum(0));
    Sum* s = sums.data();
    for (std::int64_t i = 0; i < k; ++i) {
      const Sum x = left[static_cast<std::size_t>(i)];
      const Sum* b = right.data() + i * n;
      for (std::int64_t j = 0; j < n; ++j) s[j] += x * b[j];
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const Sum value = c_.type == ElementType::kBool ? Sum(s[j] != Sum(0)) : s[j];
      std::memcpy(c + j * c_.strides[2] * size(c_), &value, sizeOf(c_.type));
    }
  }

  OperandDesc a_, b_, c_;
  WidenFn<Sum> widen_a_, widen_b_;
};

}  // namespace

std::unique_ptr<ipujax::engine::Kernel> makePlainProduct(const StepDesc& step) {
  const ElementType out = step.operands[2].type;
  if (out == ElementType::kDouble) return std::make_unique<PlainProduct<double>>(step);
  if (sizeOf(out) == 8) return std::make_unique<PlainProduct<std::uint64_t>>(step);
  return std::make_unique<PlainProduct<std::uint32_t>>(step);
}

}  // namespace poplin::host
