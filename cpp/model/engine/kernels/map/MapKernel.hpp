#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/Kernel.hpp"

/// Code shared by the kernels of elementwise steps: an expression over strided views.
namespace ipujax::engine::maps {

constexpr std::int64_t kBlock = expr::ExprEvaluator::kBlock;

/// The iteration space after sorting by the first output's memory order and merging dimensions
/// that all operands can walk as one. strides[operand][dim], in elements.
struct Space {
  std::vector<std::int64_t> shape;
  std::vector<std::vector<std::int64_t>> strides;
};

/// Elements worth waking a thread for.
std::int64_t grainOf(const expr::ExprProgram& program);

class MapKernel : public Kernel {
 public:
  MapKernel(const StepDesc& step, const expr::ExprProgram& program, const Space& space,
            const std::vector<bool>& uniform)
      : num_inputs_(program.numInputs()),
        num_operands_(step.operands.size()),
        evaluator_(program, uniform),
        grain_(grainOf(program)),
        space_(space) {
    for (const auto& o : step.operands) bytes_.push_back(static_cast<std::int64_t>(sizeOf(o.type)));
  }

 protected:
  /// `first`: the number of the first element, from which random expressions draw; 0 in kernels
  /// that never get such expressions.
  void evaluate(std::byte* const* operands, std::int64_t n, std::int64_t first = 0) const {
    evaluator_.run({const_cast<const std::byte* const*>(operands), num_inputs_},
                   {operands + num_inputs_, num_operands_ - num_inputs_}, n,
                   static_cast<std::uint64_t>(first));
  }
  /// Runs part(begin, end) for all units of `unit_elements` elements each, on threads if worth it.
  template <class Part>
  void runUnits(RunContext& context, std::int64_t units, std::int64_t unit_elements,
                const Part& part) const {
    if (units * unit_elements <= grain_)
      part(std::int64_t{0}, units);
    else
      context.pool.parallelFor(units, std::max<std::int64_t>(1, grain_ / unit_elements), part);
  }

  std::size_t num_inputs_;
  std::size_t num_operands_;
  expr::ExprEvaluator evaluator_;
  std::int64_t grain_;  ///< elements
  Space space_;
  std::vector<std::int64_t> bytes_;  ///< of an element of each operand
};

/// Pointers of one call; a few live on the stack.
class Pointers {
 public:
  explicit Pointers(std::span<std::byte* const> from) {
    if (from.size() > kFew) {
      many_.assign(from.begin(), from.end());
      data_ = many_.data();
    } else {
      std::copy(from.begin(), from.end(), few_);
    }
  }
  /// `count` null pointers.
  explicit Pointers(std::size_t count) {
    if (count > kFew) {
      many_.resize(count);
      data_ = many_.data();
    } else {
      std::fill_n(few_, count, nullptr);
    }
  }
  Pointers(const Pointers&) = delete;
  std::byte** data() { return data_; }
  std::byte*& operator[](std::size_t i) { return data_[i]; }

 private:
  static constexpr std::size_t kFew = 24;
  std::byte* few_[kFew];
  std::vector<std::byte*> many_;
  std::byte** data_ = few_;
};

/// Steps through the outer dimensions of a space, keeping each operand's pointer.
class Cursor {
 public:
  Cursor(const Space& space, std::size_t rank, const std::vector<std::int64_t>& bytes,
         std::span<std::byte* const> base)
      : space_(space), rank_(rank), bytes_(bytes), pointers_(base), index_(rank, 0) {}

  void seek(std::int64_t position) {
    for (std::size_t d = rank_; d-- > 0;) {
      const std::int64_t at = position % space_.shape[d];
      position /= space_.shape[d];
      move(d, at - index_[d]);
      index_[d] = at;
    }
  }
  void next() {
    for (std::size_t d = rank_; d-- > 0;) {
      if (++index_[d] < space_.shape[d]) {
        move(d, 1);
        return;
      }
      move(d, 1 - space_.shape[d]);
      index_[d] = 0;
    }
  }
  std::byte** data() { return pointers_.data(); }

 private:
  void move(std::size_t d, std::int64_t by) {
    for (std::size_t o = 0; o < bytes_.size(); ++o)
      pointers_[o] += by * space_.strides[o][d] * bytes_[o];
  }

  const Space& space_;
  std::size_t rank_;
  const std::vector<std::int64_t>& bytes_;
  Pointers pointers_;
  std::vector<std::int64_t> index_;
};

/// Whether rows are short and contiguous, except for inputs that repeat one row, such as biases.
bool haveRepeatedRows(const Space& space, std::size_t num_inputs);

/// For views without a common memory order, of one or more dimensions.
std::unique_ptr<Kernel> makeTiledMap(const StepDesc& step, const expr::ExprProgram& program,
                                     const Space& space, const std::vector<bool>& uniform);

/// The same if some operands are transposed and others are not; otherwise null.
std::unique_ptr<Kernel> makeStripMap(const StepDesc& step, const expr::ExprProgram& program,
                                     const Space& space, const std::vector<bool>& uniform);

/// Copies rows x cols elements of `size` bytes; strides in bytes.
void copy(const std::byte* src, std::int64_t src_row, std::int64_t src_col, std::byte* dst,
          std::int64_t dst_row, std::int64_t dst_col, std::int64_t rows, std::int64_t cols,
          std::int64_t size);

}  // namespace ipujax::engine::maps
