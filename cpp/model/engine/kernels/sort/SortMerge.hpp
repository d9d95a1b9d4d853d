#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/expr/ExprProgram.hpp"

namespace ipujax::engine {

/// A stable merge sort by any comparator, which is evaluated on blocks of pairs: each element's
/// place in the neighbouring run is found by binary search, all elements side by side.
class MergeSort {
 public:
  MergeSort(const expr::ExprProgram& comparator);

  /// Sorts order[0..n), element numbers into columns[i] (operand i, contiguous). Whatever the
  /// comparator says, the result is a permutation.
  void run(const std::byte* const* columns, std::uint32_t* order, std::int64_t n) const;

 private:
  void rankBlock(const std::byte* const* columns, const std::uint32_t* order, std::int64_t width,
                 std::int64_t n, const std::int64_t* elements, std::int64_t count,
                 std::uint32_t* ranks, std::byte* scratch) const;

  expr::ExprEvaluator evaluator_;
  std::vector<std::size_t> bytes_;  ///< of operand i
  std::vector<bool> used_;          ///< by input
};

}  // namespace ipujax::engine
