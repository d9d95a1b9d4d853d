#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/ElementType.hpp"
#include "engine/Rank.hpp"
#include "engine/image/Step.hpp"
#include "engine/image/StepCheck.hpp"

namespace ipujax::engine {

/// What happens to a window that does not lie entirely inside the large array; the numbers are part
/// of the executable format.
enum class Outside : std::uint8_t {
  kSkip,   ///< it is left out
  kClamp,  ///< its start indices are clamped so that it lies inside
  kWrap,   ///< it continues at the start of a dimension; see WrappedCopyKernel
  kFail,   ///< it ends the run with application_runtime_error
};
inline Outside outsideOf(const Attributes& attributes) {
  return static_cast<Outside>(attributes.integer("clamp"));
}

/// The windows of a large array that start indices choose, one for each element of the batch.
/// Gathers, scatters, and dynamic slices and updates walk over them.
///
/// Canonical shapes: indices [batch..., K], small [batch..., window...]. Attributes:
///   "window"   the large array's dimension for each window dimension
///   "map"      the large array's dimension for each of the K indices
///   "batching" the large array's dimension that moves with each batch dimension, or -1
///   "sizes"    the window's extent in each dimension of the large array
///   "clamp"    what happens to windows that do not lie inside: see Outside
class Windows {
 public:
  /// For a step that `check` accepted.
  Windows(const OperandDesc& large, const OperandDesc& indices, const OperandDesc& small,
          const Attributes& attributes);
  /// Refuses attributes that do not fit the operands, and windows that could leave the large array.
  static Outside check(const StepCheck& step, const OperandCheck& large,
                       const OperandCheck& indices, const OperandCheck& small);

  std::int64_t count() const { return count_; }
  std::int64_t windowElements() const { return window_elements_; }
  /// Extents and element strides of the window, on both sides.
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::int64_t>& largeStrides() const { return large_strides_; }
  const std::vector<std::int64_t>& smallStrides() const { return small_strides_; }
  /// True if windows with different start indices never overlap.
  bool disjoint() const { return disjoint_; }
  /// Number of different start positions (batching dimensions not counted).
  std::int64_t numStarts() const { return num_starts_; }

  /// Calls fn(large byte offset, small byte offset, start number) for the windows [begin, end), in
  /// order.
  template <class F>
  void forEach(const std::byte* indices, std::int64_t begin, std::int64_t end, const F& fn) const {
    withInteger(index_type_, [&]<class I>(I) { walk<I>(indices, begin, end, fn); });
  }
  /// The same for the first window alone.
  template <class F>
  void forFirst(const std::byte* indices, const F& fn) const {
    if (never_) return;
    withInteger(index_type_, [&]<class I>(I) { one<I>(indices, 0, 0, fn); });
  }

  template <class I>
  static std::int64_t read(const std::byte* p) {
    I value;
    std::memcpy(&value, p, sizeof(I));
    if constexpr (sizeof(I) == 8 && std::numeric_limits<I>::min() == 0) {
      if (value > static_cast<I>(std::numeric_limits<std::int64_t>::max())) {
        return std::numeric_limits<std::int64_t>::max();
      }
    }
    return static_cast<std::int64_t>(value);
  }
  /// `start` modulo `extent`, from 0 to extent - 1.
  static std::int64_t wrapped(std::int64_t start, std::int64_t extent) {
    if (start >= 0 && start < extent) return start;  // divisions are slow
    const std::int64_t rest = start % extent;
    return rest < 0 ? rest + extent : rest;
  }

 private:
  struct Batch {
    std::int64_t n, index, large, small;  ///< extent; bytes
  };
  struct Index {
    std::int64_t at;      ///< bytes from the first of the window's indices
    std::int64_t limit;   ///< largest start that lies inside; negative: none does
    std::int64_t stride;  ///< bytes of the large array per index
    std::int64_t number;  ///< start numbers per index
  };

  [[noreturn]] static void fail(std::int64_t start, std::int64_t limit);
  /// Windows that wrap have one element along each indexed dimension here.
  std::int64_t placed(std::int64_t start, std::int64_t limit) const {
    if (outside_ == Outside::kWrap) return wrapped(start, limit + 1);
    if (outside_ == Outside::kFail && (start < 0 || start > limit)) fail(start, limit);
    return std::clamp<std::int64_t>(start, 0, limit);
  }

  /// n windows along the innermost batch dimension.
  template <class I, class F>
  void line(const std::byte* indices, std::int64_t large, std::int64_t small, std::int64_t n,
            const F& fn) const {
    const Batch step = batch_.empty() ? Batch{1, 0, 0, 0} : batch_.back();
    switch (indices_.size()) {
      case 1:
        return shortLine<I, 1>(step, indices, large, small, n, fn);
      case 2:
        return shortLine<I, 2>(step, indices, large, small, n, fn);
      case 3:
        return shortLine<I, 3>(step, indices, large, small, n, fn);
      default:
        break;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      one<I>(indices, large, small, fn);
      indices += step.index;
      large += step.large;
      small += step.small;
    }
  }

  /// The same for few indices, as nearly all windows have: one loop for each way to place them,
  /// and on copies, since what it writes could be this object.
  template <class I, std::size_t kIndices, class F>
  void shortLine(const Batch& step, const std::byte* indices, std::int64_t large,
                 std::int64_t small, std::int64_t n, const F& fn) const {
    std::array<Index, kIndices> each;
    std::copy_n(indices_.begin(), kIndices, each.begin());
    const auto run = [=](const auto& place) {
      const std::byte* at = indices;
      std::int64_t row = large, to = small;
      for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t from = row, number = 0;
        bool is_inside = true;
        for (const Index& index : each) {
          std::int64_t start = place(read<I>(at + index.at), index.limit);
          const bool fits =
              static_cast<std::uint64_t>(start) <= static_cast<std::uint64_t>(index.limit);
          start &= -std::int64_t{fits};  // far outside, products would overflow
          is_inside &= fits;
          from += start * index.stride;
          number += start * index.number;
        }
        if (is_inside) fn(from, to, number);
        at += step.index;
        row += step.large;
        to += step.small;
      }
    };
    if (outside_ == Outside::kSkip)
      return run([](std::int64_t start, std::int64_t) { return start; });
    if (outside_ == Outside::kClamp)
      return run([](std::int64_t start, std::int64_t limit) {
        return std::clamp<std::int64_t>(start, 0, limit);
      });
    run([this](std::int64_t start, std::int64_t limit) { return placed(start, limit); });
  }

  template <class I, class F>
  void one(const std::byte* indices, std::int64_t large, std::int64_t small, const F& fn) const {
    std::int64_t number = 0;
    for (const Index& index : indices_) {
      std::int64_t start = read<I>(indices + index.at);
      if (outside_ != Outside::kSkip) {
        start = placed(start, index.limit);
      } else if (start < 0 || start > index.limit) {
        return;
      }
      large += start * index.stride;
      number += start * index.number;
    }
    fn(large, small, number);
  }

  template <class I, class F>
  void walk(const std::byte* indices, std::int64_t begin, std::int64_t end, const F& fn) const {
    if (begin >= end || never_) return;
    const std::size_t rank = batch_.size();
    std::array<std::int64_t, kMostRank> at;
    std::int64_t large = 0;
    std::int64_t small = 0;
    std::int64_t rest = begin;
    for (std::size_t d = rank; d-- > 0;) {
      at[d] = rest % batch_[d].n;
      rest /= batch_[d].n;
      indices += at[d] * batch_[d].index;
      large += at[d] * batch_[d].large;
      small += at[d] * batch_[d].small;
    }
    for (std::int64_t i = begin;;) {
      const std::int64_t left = rank == 0 ? 1 : batch_[rank - 1].n - at[rank - 1];
      const std::int64_t n = std::min(left, end - i);
      line<I>(indices, large, small, n, fn);
      i += n;
      if (i == end) return;
      // The innermost dimension is done: go back to its start and advance the others.
      for (std::size_t d = rank; d-- > 0;) {
        const std::int64_t steps = d + 1 == rank ? left : 1;
        indices += batch_[d].index * steps;
        large += batch_[d].large * steps;
        small += batch_[d].small * steps;
        if ((at[d] += steps) < batch_[d].n) break;
        indices -= batch_[d].index * batch_[d].n;
        large -= batch_[d].large * batch_[d].n;
        small -= batch_[d].small * batch_[d].n;
        at[d] = 0;
      }
    }
  }

  std::vector<Batch> batch_;
  std::vector<Index> indices_;
  std::vector<std::int64_t> shape_, large_strides_, small_strides_;
  std::int64_t count_ = 1;
  std::int64_t window_elements_ = 1;
  std::int64_t num_starts_ = 1;
  ElementType index_type_ = ElementType::kInt32;
  Outside outside_ = Outside::kClamp;
  bool never_ = false;  ///< the window is larger than the array, or empty
  bool disjoint_ = true;
};

}  // namespace ipujax::engine
