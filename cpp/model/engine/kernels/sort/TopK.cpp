#include <algorithm>
#include <cstring>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "engine/kernels/sort/SortLoops.hpp"

/// The kernel "popops.topk".
namespace ipujax::engine {
namespace {

using reduction::LoopDim;
using reduction::Odometer;

/// Operands: keys, selected keys (contiguous), then optionally indices (contiguous), or values and
/// selected values (contiguous).
class TopKKernel final : public Kernel {
 public:
  explicit TopKKernel(const StepDesc& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  void select(const std::byte* row, std::uint64_t* best) const;
  std::uint64_t* selectLong(const std::uint32_t* keys, std::uint64_t* buffer) const;

  ElementType type_;
  SortKey key_;
  bool reversed_;
  std::int64_t k_;
  std::int64_t n_;
  std::int64_t stride_;
  std::int64_t rows_ = 1;
  std::vector<LoopDim> row_dims_;
  bool indices_;
  bool values_;
  std::vector<LoopDim> value_dims_;
  std::int64_t value_stride_ = 0;
  std::size_t value_bytes_ = 0;
};

TopKKernel::TopKKernel(const StepDesc& step)
    : type_(step.operands[0].type),
      reversed_(step.attributes.integer("reversed") != 0),
      k_(step.attributes.integer("k")),
      indices_(step.attributes.text("extra") == "indices"),
      values_(step.attributes.text("extra") == "values") {
  const auto& in = step.operands[0];
  key_.descending = step.attributes.integer("largest") != 0;
  key_.order = FloatOrder::kTotal;
  n_ = in.shape.back();
  stride_ = in.strides.back();
  for (std::size_t d = 0; d + 1 < in.shape.size(); ++d) {
    row_dims_.push_back({in.shape[d], in.strides[d], 0});
    if (values_) value_dims_.push_back({in.shape[d], step.operands[2].strides[d], 0});
  }
  rows_ = reduction::volumeOf(row_dims_);
  if (values_) {
    value_stride_ = step.operands[2].strides.back();
    value_bytes_ = sizeOf(step.operands[2].type);
  }
}

/// A full buffer is cut to the k best; new candidates must then beat the worst of these.
std::uint64_t* TopKKernel::selectLong(const std::uint32_t* keys, std::uint64_t* buffer) const {
  const std::int64_t capacity = 2 * k_ + 256;
  std::int64_t size = 0;
  std::uint64_t limit = ~std::uint64_t{0};
  constexpr std::int64_t kChunk = 64;
  const SortLoops& loops = sortLoops();
  for (std::int64_t begin = 0; begin < n_; begin += kChunk) {
    begin = loops.next_candidate(keys, begin, n_, static_cast<std::uint32_t>(limit >> 32));
    const std::int64_t end = std::min(n_, begin + kChunk);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t candidate =
          static_cast<std::uint64_t>(keys[i]) << 32 | static_cast<std::uint32_t>(i);
      if (candidate < limit) buffer[size++] = candidate;
    }
    if (size + kChunk > capacity) {
      std::nth_element(buffer, buffer + k_ - 1, buffer + size);
      size = k_;
      limit = buffer[k_ - 1];
    }
  }
  std::nth_element(buffer, buffer + k_ - 1, buffer + size);
  return buffer;
}

void TopKKernel::select(const std::byte* row, std::uint64_t* best) const {
  const auto n = static_cast<std::size_t>(n_);
  Workspace workspace;
  auto* keys = workspace.get<std::uint32_t>(n_ + 16);
  mapKeys32(row, stride_, type_, key_, keys, n_);
  auto* packed = workspace.get<std::uint64_t>(2 * n_ + 1024);
  if (n_ > 4 * k_ + 512) {
    selectLong(keys, packed);
    std::sort(packed, packed + k_);
  } else {
    for (std::size_t i = 0; i < n; ++i) packed[i] = static_cast<std::uint64_t>(keys[i]) << 32 | i;
    if (n_ > 1024) {
      radixSort(packed, packed + n, n_, 32, static_cast<int>(8 * sizeOf(type_)));
    } else {
      std::partial_sort(packed, packed + k_, packed + n);
    }
  }
  std::memcpy(best, packed, static_cast<std::size_t>(k_) * sizeof *best);
}

void TopKKernel::run(RunContext& context, std::span<std::byte* const> p) const {
  if (k_ == 0 || rows_ == 0) return;
  const std::size_t bytes = sizeOf(type_);
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / n_);
  context.pool.parallelFor(rows_, grain, [&](std::int64_t begin, std::int64_t end) {
    Workspace workspace;
    auto* best = workspace.get<std::uint64_t>(k_ + 8);
    for (std::int64_t r = begin; r < end; ++r) {
      const std::byte* row = p[0] + Odometer(row_dims_, r).in * static_cast<std::int64_t>(bytes);
      const std::byte* values =
          values_ ? p[2] + Odometer(value_dims_, r).in * static_cast<std::int64_t>(value_bytes_)
                  : nullptr;
      select(row, best);
      for (std::int64_t j = 0; j < k_; ++j) {
        const std::int64_t slot = r * k_ + (reversed_ ? k_ - 1 - j : j);
        const auto index = static_cast<std::uint32_t>(best[j]);
        std::memcpy(p[1] + slot * static_cast<std::int64_t>(bytes),
                    row + index * stride_ * static_cast<std::int64_t>(bytes), bytes);
        if (indices_) std::memcpy(p[2] + slot * 4, &index, 4);
        if (values_) {
          const auto size = static_cast<std::int64_t>(value_bytes_);
          std::memcpy(p[3] + slot * size, values + index * value_stride_ * size, value_bytes_);
        }
      }
    }
  });
}

void checkTopK(StepCheck& check) {
  const auto keys = check.read(0);
  check.need(keys.rank() > 0 && sizeOf(keys->type) <= 4, "keys of at most 32 bits in rows");
  const std::int64_t n = keys->shape.back();
  const std::int64_t k = check.integer("k", 0, n);
  const std::int64_t selected = n == 0 ? 0 : keys->numElements() / n * k;
  check.flag("largest");
  check.flag("reversed");
  const std::string& extra = check.text("extra", {"", "indices", "values"});
  check.written(1).hasTypeOf(keys).isContiguous().hasElements(selected);
  if (extra.empty()) return check.operands(2);
  if (extra == "indices") {
    check.written(2).isOfBytes(4).isContiguous().hasElements(selected);
    return check.operands(3);
  }
  const auto values = check.read(2).hasShapeOf(keys);
  check.written(3).hasTypeOf(values).isContiguous().hasElements(selected);
  check.operands(4);
}
const RegisterKernel kTopK{"popops.topk", makeKernel<TopKKernel>, checkTopK};

}  // namespace
}  // namespace ipujax::engine
