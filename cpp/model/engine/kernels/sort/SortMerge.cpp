#include "engine/kernels/sort/SortMerge.hpp"

#include <algorithm>
#include <cstring>

#include "engine/Workspace.hpp"

namespace ipujax::engine {

namespace {

constexpr std::int64_t kBlock = expr::ExprEvaluator::kBlock;
constexpr std::size_t kMaxInputs = 32;

void takeElements(std::size_t bytes, const std::byte* column, const std::uint32_t* index,
                  std::byte* out, std::int64_t n) {
  withBytes(bytes, [&]<class T>(T) {
    const T* x = reinterpret_cast<const T*>(column);
    T* o = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < n; ++i) o[i] = x[index[i]];
  });
}

}  // namespace

MergeSort::MergeSort(const expr::ExprProgram& comparator) : evaluator_(comparator) {
  for (std::size_t i = 0; i < comparator.numInputs(); ++i) {
    used_.push_back(comparator.usesInput(i));
    if (i % 2 == 0) bytes_.push_back(sizeOf(comparator.inputTypes()[i]));
  }
}

/// ranks[e] = how many elements of the right-hand run come before element e of the left-hand run.
void MergeSort::rankBlock(const std::byte* const* columns, const std::uint32_t* order,
                          std::int64_t width, std::int64_t n, const std::int64_t* elements,
                          std::int64_t count, std::uint32_t* ranks, std::byte* scratch) const {
  std::int64_t low[kBlock];
  std::int64_t high[kBlock];
  std::uint32_t left[kBlock];
  std::uint32_t right[kBlock];
  bool before[kBlock];
  Workspace workspace;
  std::byte* blocks = workspace.get(kMaxInputs * kBlock * 8);
  const std::byte* inputs[kMaxInputs];
  for (std::size_t i = 0; i < used_.size(); ++i) inputs[i] = blocks + i * kBlock * 8;
  const auto gather = [&](std::size_t input, const std::uint32_t* index) {
    if (!used_[input]) return;
    takeElements(bytes_[input / 2], columns[input / 2], index, blocks + input * kBlock * 8, count);
  };
  std::int64_t longest = 0;
  for (std::int64_t l = 0; l < count; ++l) {
    const std::int64_t run = elements[l] / (2 * width) * 2 * width;
    low[l] = run + width;
    high[l] = std::min(n, run + 2 * width);
    longest = std::max(longest, high[l] - low[l]);
    right[l] = order[elements[l]];
  }
  // Inputs are (left, right) pairs: here (candidate of the right-hand run, element).
  for (std::size_t i = 0; i < bytes_.size(); ++i) gather(2 * i + 1, right);
  std::byte* outputs[] = {reinterpret_cast<std::byte*>(before)};
  while (longest > 0) {
    for (std::int64_t l = 0; l < count; ++l) {
      left[l] = order[std::min((low[l] + high[l]) / 2, n - 1)];
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) gather(2 * i, left);
    evaluator_.runBlock(inputs, outputs, count, scratch);
    for (std::int64_t l = 0; l < count; ++l) {
      const std::int64_t middle = (low[l] + high[l]) / 2;
      const bool open = low[l] < high[l];
      low[l] = open && before[l] ? middle + 1 : low[l];
      high[l] = open && !before[l] ? middle : high[l];
    }
    longest /= 2;
  }
  for (std::int64_t l = 0; l < count; ++l) {
    const std::int64_t run = elements[l] / (2 * width) * 2 * width;
    ranks[elements[l]] = static_cast<std::uint32_t>(low[l] - (run + width));
  }
}

void MergeSort::run(const std::byte* const* columns, std::uint32_t* order, std::int64_t n) const {
  const auto size = static_cast<std::size_t>(n);
  Workspace workspace;
  auto* ranks = workspace.get<std::uint32_t>(2 * n);
  std::uint32_t* merged = ranks + size;
  std::byte* scratch = workspace.get(static_cast<std::int64_t>(evaluator_.scratchBytes()) + 64);
  evaluator_.prepare(nullptr, scratch);
  std::int64_t elements[kBlock];
  for (std::int64_t width = 1; width < n; width *= 2) {
    std::int64_t count = 0;
    for (std::int64_t e = 0; e < n; ++e) {
      const std::int64_t in_run = e % (2 * width);
      if (in_run >= width) {
        e += width - 1;
        continue;
      }
      if (e - in_run + width >= n) break;  // the last run has no neighbour
      elements[count++] = e;
      if (count == kBlock) {
        rankBlock(columns, order, width, n, elements, count, ranks, scratch);
        count = 0;
      }
    }
    if (count > 0) rankBlock(columns, order, width, n, elements, count, ranks, scratch);
    for (std::int64_t run = 0; run < n; run += 2 * width) {
      const std::int64_t middle = std::min(n, run + width);
      const std::int64_t end = std::min(n, run + 2 * width);
      std::int64_t out = run;
      std::int64_t right = middle;
      for (std::int64_t e = run; e < middle; ++e) {
        const std::int64_t limit = middle == end ? middle : middle + ranks[e];
        while (right < limit) merged[out++] = order[right++];
        merged[out++] = order[e];
      }
      while (right < end) merged[out++] = order[right++];
    }
    std::memcpy(order, merged, size * sizeof *order);
  }
}

}  // namespace ipujax::engine
