#pragma once
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/Emit.hpp"
#include "engine/Kernel.hpp"
#include "poplar/Graph.hpp"

/// For the library: steps that do one thing to each matrix of a batch, real or complex.
namespace popx {

/// The tensors of one value: {real}, or {real, imaginary} of one shape for complex numbers.
using Parts = std::vector<poplar::Tensor>;

namespace batch {

using Complex = std::complex<float>;

/// A value of a step: the last `rank` dimensions belong to one item, those before count items.
struct Input {
  Parts parts;
  unsigned rank = 2;
};
struct Output {
  std::vector<std::size_t> shape;
  unsigned rank = 2;
  bool complex = false;
  poplar::Type type = poplar::FLOAT;
};

/// Adds the step; its results are spread over all tiles.
std::vector<Parts> emit(poplar::Graph& graph, const std::string& kernel,
                        const std::vector<Input>& inputs, const std::vector<Output>& outputs,
                        ipujax::engine::Attributes attributes, ipujax::engine::Cost cost,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext);

/// Throws unless the value is {FLOAT} or {FLOAT, FLOAT} of one shape with at least `rank`
/// dimensions, the last two equal where `square`.
void check(const std::string& where, const Parts& value, unsigned rank, bool square = false);

std::vector<std::size_t> leading(const Parts& value, unsigned rank);  ///< the batch dimensions
std::uint64_t product(const std::vector<std::size_t>& shape);
/// `leading` followed by `item`.
std::vector<std::size_t> shapeOf(std::vector<std::size_t> leading,
                                 const std::vector<std::size_t>& item);

/// The account of a factorisation that goes through `steps` dependent steps in each item. Matrices
/// are spread over the tiles; each step broadcasts a column (or the like) to the tiles that share
/// the matrix, then updates what is left. Our estimate: one multiply-add a cycle and worker.
ipujax::engine::Cost cost(const poplar::Graph& graph, std::uint64_t items, std::uint64_t rows,
                          std::uint64_t columns, double steps, double flops_per_item, bool complex);

/// A value of a step in its kernel: copies items to dense memory and back. Matrices are copied
/// column by column (`load`, `store`) or row by row.
class Value {
 public:
  Value(const ipujax::engine::StepDesc& step, std::size_t first_operand, unsigned rank,
        bool complex);

  std::int64_t items() const { return items_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }  ///< 1 for a vector
  std::int64_t size() const { return rows_ * columns_; }
  /// The same with rows and columns exchanged: a row-major matrix is the transpose's columns.
  Value transposed() const;

  template <class T>  // float, Complex or std::int32_t
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
/// its batch dimensions.
class ValuesCheck {
 public:
  enum class Kind : std::uint8_t { kLikeFirst, kReal, kComplex, kInteger };
  explicit ValuesCheck(ipujax::engine::StepCheck& check);

  /// Of the first value; of a vector one column.
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
  /// No value is left, and "flags" are so many truth values.
  void end() const;
  void end(std::size_t num_flags) const;

 private:
  void take(const std::vector<std::int64_t>& item, Kind kind, bool written);

  ipujax::engine::StepCheck& check_;
  std::size_t value_ = 0;
  std::size_t operand_ = 0;
  std::vector<std::int64_t> batch_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 1;
  bool complex_ = false;
};

/// The values of a step in the order in which they were emitted.
std::vector<Value> valuesOf(const ipujax::engine::StepDesc& step);
/// Whether the step's first value is complex.
bool isComplex(const ipujax::engine::StepDesc& step);

/// Runs body(item) for all items on the pool's threads.
void forItems(ipujax::engine::RunContext& context, std::int64_t items, std::int64_t flops_per_item,
              const std::function<void(std::int64_t)>& body);

template <class T>
T nan() {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if constexpr (std::is_same_v<T, Complex>) {
    return {kNan, kNan};
  } else {
    return kNan;
  }
}

/// A factory for kernels that are class templates Item<T>(step), called for float or Complex:
/// `items()`, `flops()` and `run(pointers, item)`. The templates' names differ over all files: gcc
/// 12 takes two of one name for the same, even in anonymous namespaces.
template <template <class> class Item>
std::unique_ptr<ipujax::engine::Kernel> make(const ipujax::engine::StepDesc& step) {
  const auto kernel = [](auto item) {
    return ipujax::engine::kernelOf([item = std::move(item)](ipujax::engine::RunContext& context,
                                                             std::span<std::byte* const> pointers) {
      forItems(context, item.items(), item.flops(), [&](std::int64_t i) { item.run(pointers, i); });
    });
  };
  if (isComplex(step)) return kernel(Item<Complex>(step));
  return kernel(Item<float>(step));
}

}  // namespace batch
}  // namespace popx
