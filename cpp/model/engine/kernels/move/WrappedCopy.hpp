#pragma once
#include <cstdint>
#include <vector>

#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "engine/kernels/move/CopyWindows.hpp"

namespace ipujax::engine {

/// Copies one window with Outside::kWrap out of a large array or into it, in up to two parts along
/// each indexed dimension. Operands: large, indices, small.
class WrappedCopyKernel final : public Kernel {
 public:
  explicit WrappedCopyKernel(const StepDesc& step);
  /// Refuses the steps that Windows accepts but this kernel does not support.
  static void check(const StepCheck& step);
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  /// A dimension that has an index.
  struct Sliced {
    std::size_t dim;      ///< of the window
    std::int64_t at;      ///< bytes of its index from the first one
    std::int64_t extent;  ///< of the large array
  };
  struct Part {
    std::byte* large;
    std::byte* small;
    std::vector<CopyDim> dims;
  };

  void copyParts(ThreadPool& pool, const std::int64_t* starts, std::size_t sliced,
                 const Part& part) const;
  void copy(ThreadPool& pool, const StridedCopy& copy, std::byte* large, std::byte* small) const;

  bool into_large_;
  std::size_t element_bytes_;
  ElementType index_type_;
  std::vector<CopyDim> dims_;  ///< of the whole window
  std::vector<Sliced> sliced_;
  StridedCopy whole_;
};

}  // namespace ipujax::engine
