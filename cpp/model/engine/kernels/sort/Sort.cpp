#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "engine/kernels/sort/SortMerge.hpp"
#include "engine/simd/VectorOps.hpp"

/// The kernel "popx.sort": k operands sorted together along one dimension, by keys or by any
/// comparator; rows are spread over the threads.
namespace ipujax::engine {

namespace {
using reduction::LoopDim;
using reduction::Odometer;

constexpr std::int64_t kRadixFrom = 512;  // shorter rows are sorted by comparison
constexpr std::size_t kMostOperands = 16;

int keyBits(ElementType type) { return static_cast<int>(8 * sizeOf(type)); }

struct Operand {
  ElementType type;
  std::int64_t bytes;
  std::int64_t in_stride;
  std::int64_t out_stride;
  std::vector<LoopDim> rows;
};

class Sorter final : public Kernel {
 public:
  explicit Sorter(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  void sortRow(std::span<const std::byte* const> in, std::span<std::byte* const> out) const;
  void orderByKeys(std::span<const std::byte* const> in, std::uint32_t* order) const;
  void orderByComparator(std::span<const std::byte* const> in, std::uint32_t* order) const;
  void applyOrder(const Operand& operand, const std::byte* in, std::byte* out,
                  const std::uint32_t* order) const;

  std::vector<Operand> operands_;
  std::vector<SortKey> keys_;
  std::optional<MergeSort> merge_;
  std::int64_t n_ = 0;
  std::int64_t rows_ = 1;
};

Sorter::Sorter(const StepDesc& step) {
  const auto dim = static_cast<std::size_t>(step.attributes.integer("dim"));
  const std::size_t k = step.operands.size() / 2;
  n_ = step.operands[0].shape[dim];
  for (std::size_t i = 0; i < k; ++i) {
    const auto& in = step.operands[i];
    const auto& out = step.operands[k + i];
    Operand operand{
        in.type, static_cast<std::int64_t>(sizeOf(in.type)), in.strides[dim], out.strides[dim], {}};
    for (std::size_t d = 0; d < in.shape.size(); ++d) {
      if (d != dim) operand.rows.push_back({in.shape[d], in.strides[d], out.strides[d]});
    }
    rows_ = reduction::volumeOf(operand.rows);
    operands_.push_back(std::move(operand));
  }
  if (step.attributes.has("keys")) {
    keys_ = sortKeysFrom(step.attributes.integers("keys"));
  } else {
    merge_.emplace(expr::ExprProgram::fromIntegers(step.attributes.integers("expr")));
  }
}

void Sorter::run(RunContext& context, std::span<std::byte* const> pointers) const {
  if (n_ == 0 || rows_ == 0) return;
  const std::int64_t grain = std::max<std::int64_t>(1, 1024 / n_);
  context.pool.parallelFor(rows_, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t k = operands_.size();
    for (std::int64_t r = begin; r < end; ++r) {
      const std::byte* in[kMostOperands];
      std::byte* out[kMostOperands];
      for (std::size_t i = 0; i < k; ++i) {
        const Odometer at(operands_[i].rows, r);
        in[i] = pointers[i] + at.in * operands_[i].bytes;
        out[i] = pointers[k + i] + at.out * operands_[i].bytes;
      }
      sortRow({in, k}, {out, k});
    }
  });
}

void Sorter::sortRow(std::span<const std::byte* const> in, std::span<std::byte* const> out) const {
  Workspace workspace;
  auto* order = workspace.get<std::uint32_t>(n_ + 16);
  if (merge_) {
    orderByComparator(in, order);
  } else {
    orderByKeys(in, order);
  }
  for (std::size_t i = 0; i < operands_.size(); ++i) applyOrder(operands_[i], in[i], out[i], order);
}

/// Sorts by the least significant key first; each pass is stable.
void Sorter::orderByKeys(std::span<const std::byte* const> in, std::uint32_t* order) const {
  const auto n = static_cast<std::size_t>(n_);
  Workspace workspace;
  auto* packed = workspace.get<std::uint64_t>(2 * n_);
  std::uint64_t* spare = packed + n;
  std::byte* mapped = workspace.get(n_ * 8);
  std::uint32_t* narrow = reinterpret_cast<std::uint32_t*>(mapped);
  std::uint64_t* wide = reinterpret_cast<std::uint64_t*>(mapped);
  bool first = true;
  const auto pass = [&](int bits, const auto& keyAt) {
    for (std::size_t i = 0; i < n; ++i) {
      packed[i] = static_cast<std::uint64_t>(keyAt(first ? i : order[i])) << 32 | i;
    }
    if (n_ < kRadixFrom) {
      std::sort(packed, packed + n);
    } else {
      radixSort(packed, spare, n_, 32, bits);
    }
    std::uint32_t* next = reinterpret_cast<std::uint32_t*>(spare);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::uint32_t>(packed[i]);
      next[i] = first ? at : order[at];
    }
    std::memcpy(order, next, n * sizeof *order);
    first = false;
  };
  for (std::size_t k = keys_.size(); k-- > 0;) {
    const SortKey& key = keys_[k];
    const Operand& operand = operands_[key.operand];
    if (operand.bytes == 8) {
      mapKeys64(in[key.operand], operand.in_stride, operand.type, key, wide, n_);
      pass(32, [&](std::size_t i) { return static_cast<std::uint32_t>(wide[i]); });
      pass(32, [&](std::size_t i) { return static_cast<std::uint32_t>(wide[i] >> 32); });
    } else {
      mapKeys32(in[key.operand], operand.in_stride, operand.type, key, narrow, n_);
      pass(keyBits(operand.type), [&](std::size_t i) { return narrow[i]; });
    }
  }
}

void Sorter::orderByComparator(std::span<const std::byte* const> in, std::uint32_t* order) const {
  Workspace workspace;
  const std::byte* pointers[kMostOperands];
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    pointers[i] = in[i];
    if (operands_[i].in_stride == 1) continue;
    std::byte* column = workspace.get(n_ * 8);
    simd::gatherStrided(in[i], operands_[i].in_stride, column, operands_[i].bytes, n_);
    pointers[i] = column;
  }
  std::iota(order, order + n_, 0u);
  merge_->run(pointers, order, n_);
}

void Sorter::applyOrder(const Operand& operand, const std::byte* in, std::byte* out,
                        const std::uint32_t* order) const {
  withBytes(static_cast<std::size_t>(operand.bytes), [&]<class T>(T) {
    const T* x = reinterpret_cast<const T*>(in);
    T* y = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < n_; ++i)
      y[i * operand.out_stride] = x[order[i] * operand.in_stride];
  });
}

void checkKeys(const StepCheck& check, std::size_t operands) {
  const auto& keys = check.integers("keys");
  check.need(!keys.empty() && keys.size() % 3 == 0, "keys of three integers");
  for (std::size_t i = 0; i < keys.size(); i += 3) {
    check.need(keys[i] >= 0 && keys[i] < static_cast<std::int64_t>(operands), "keys it has");
    check.need((keys[i + 1] | 1) == 1 && (keys[i + 2] | 1) == 1, "keys of a known order");
  }
}

void checkSort(StepCheck& check) {
  const std::size_t k = check.numOperands() / 2;
  check.need(k > 0 && k <= kMostOperands, "1 to 16 operands");
  check.operands(2 * k);
  const auto first = check.read(0);
  check.integer("dim", 0, first.rank() - 1);
  std::vector<ElementType> pairs;
  for (std::size_t i = 0; i < k; ++i) {
    const auto in = check.read(i).hasShapeOf(first);
    check.written(k + i).hasShapeOf(first).hasTypeOf(in);
    pairs.insert(pairs.end(), 2, in->type);
  }
  if (check.step().attributes.has("keys")) return checkKeys(check, k);
  check.program("expr", pairs, {ElementType::kBool});
}
const RegisterKernel kSort{"popx.sort", makeKernel<Sorter>, checkSort};

}  // namespace

}  // namespace ipujax::engine
