#pragma once
#include <algorithm>
#include <complex>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/Kernel.hpp"

/// Kernels that apply one operation to each matrix of a batch, real or complex.
namespace ipujax::engine::batch {

/// LAPACK counts elements in 32 bits, and its work space is up to 2 n^2 of them.
constexpr std::int64_t kMostRows = 30000;

/// A value of a step in its kernel: copies items to dense memory and back. Matrices are copied
/// column by column (`load`, `store`) or row by row.
class Value {
 public:
  Value(const StepDesc& step, std::size_t first_operand, unsigned rank, bool complex);

  std::int64_t items() const { return items_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }  ///< 1 for a vector
  std::int64_t size() const { return rows_ * columns_; }
  /// The same with rows and columns exchanged: a row-major matrix is its column-major transpose.
  Value transposed() const;

  template <class T>  // float, double, complex of either, or std::int32_t
  void load(std::span<std::byte* const> pointers, std::int64_t item, T* out) const;
  template <class T>
  void store(std::span<std::byte* const> pointers, std::int64_t item, const T* in) const;
  template <class T>
  void fill(std::span<std::byte* const> pointers, std::int64_t item, T value) const;

 private:
  struct Part {
    std::size_t operand;
    std::int64_t row_stride;
    std::int64_t column_stride;
    std::vector<std::int64_t> batch_strides;
  };
  std::int64_t offset(const Part& part, std::int64_t item) const;

  std::vector<Part> parts_;
  std::vector<std::int64_t> batch_shape_;
  std::int64_t items_ = 1;
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
};

/// Declares the values of a step in order; the first is a matrix [..., rows, columns], and all have
/// its batch dimensions. All others except integers have its element type, float or double.
class ValuesCheck {
 public:
  enum class Kind : std::uint8_t { kLikeFirst, kReal, kComplex, kInteger };
  explicit ValuesCheck(StepCheck& check);

  /// Extents of the first value; a vector has one column.
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t small() const { return rows_ < columns_ ? rows_ : columns_; }
  bool isComplex() const { return complex_; }

  ValuesCheck& first(std::size_t rank, bool square = false, Kind kind = Kind::kLikeFirst);
  ValuesCheck& in(std::vector<std::int64_t> item, Kind kind = Kind::kLikeFirst);
  ValuesCheck& out(std::vector<std::int64_t> item, Kind kind = Kind::kLikeFirst);
  ValuesCheck& status() { return out({}, Kind::kInteger); }
  /// The extents of the next value's item, which has this rank; at most 30000 each.
  std::vector<std::int64_t> next(std::size_t rank) const;
  /// Checks that no value is left and that "flags" holds `num_flags` truth values.
  void end() const;
  void end(std::size_t num_flags) const;

 private:
  void take(const std::vector<std::int64_t>& item, Kind kind, bool written);

  StepCheck& check_;
  std::size_t value_ = 0;
  std::size_t operand_ = 0;
  std::vector<std::int64_t> batch_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 1;
  bool complex_ = false;
  ElementType real_ = ElementType::kFloat;
};

/// The values of a step in the order in which they were emitted.
std::vector<Value> valuesOf(const StepDesc& step);
/// Whether the step's first value is complex, and whether it is made of doubles.
bool isComplex(const StepDesc& step);
bool isDouble(const StepDesc& step);

/// Runs body(item) for all items on the pool's threads.
void forItems(RunContext& context, std::int64_t items, std::int64_t flops_per_item,
              const std::function<void(std::int64_t)>& body);

template <class T>
T nan() {
  constexpr auto kNan = std::numeric_limits<blas::Real<T>>::quiet_NaN();
  if constexpr (blas::kIsComplex<T>) {
    return {kNan, kNan};
  } else {
    return kNan;
  }
}

/// One item of a batch: its values by their numbers, in the thread's memory.
class Item {
 public:
  Item(const std::vector<Value>& values, std::span<std::byte* const> pointers, std::int64_t number)
      : values_(values), pointers_(pointers), number_(number) {}

  int rows(std::size_t i) const { return static_cast<int>(values_[i].rows()); }
  int columns(std::size_t i) const { return static_cast<int>(values_[i].columns()); }
  std::int64_t size(std::size_t i) const { return values_[i].size(); }

  template <class T>
  T* room(std::int64_t count) {
    return workspace_.get<T>(count);
  }
  template <class T>
  T* zeros(std::int64_t count) {
    T* memory = room<T>(count);
    std::fill(memory, memory + count, T(0));
    return memory;
  }
  template <class T>
  T* load(std::size_t i) {
    T* memory = room<T>(size(i));
    values_[i].load(pointers_, number_, memory);
    return memory;
  }
  /// Stores the values from number `i` on.
  template <class... T>
  void store(std::size_t i, const T*... memory) const {
    (values_[i++].store(pointers_, number_, memory), ...);
  }
  template <class T>
  void fill(std::size_t i, T value) const {
    values_[i].fill(pointers_, number_, value);
  }

 private:
  const std::vector<Value>& values_;
  std::span<std::byte* const> pointers_;
  std::int64_t number_;
  Workspace workspace_;
};

/// A kernel that calls body(item, T{}) for each item, T being float, double or complex of either;
/// `flops` is the work of one item.
template <class F>
std::unique_ptr<Kernel> make(const StepDesc& step, std::vector<Value> values, std::int64_t flops,
                             F body) {
  const auto kernel = [&]<class T>(T zero) {
    return kernelOf([values = std::move(values), flops, body, zero](
                        RunContext& context, std::span<std::byte* const> pointers) {
      forItems(context, values[0].items(), flops, [&](std::int64_t number) {
        Item item(values, pointers, number);
        body(item, zero);
      });
    });
  };
  if (isDouble(step)) return isComplex(step) ? kernel(std::complex<double>(0)) : kernel(0.0);
  return isComplex(step) ? kernel(std::complex<float>(0)) : kernel(0.0f);
}

}  // namespace ipujax::engine::batch
