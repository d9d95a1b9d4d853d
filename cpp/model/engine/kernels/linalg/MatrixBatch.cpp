#include "engine/kernels/linalg/MatrixBatch.hpp"

#include <algorithm>

#include "engine/Workspace.hpp"
#include "engine/simd/Transpose.hpp"

namespace ipujax::engine::batch {

Value::Value(const StepDesc& step, std::size_t first_operand, unsigned rank, bool complex) {
  for (std::size_t i = 0; i < (complex ? 2u : 1u); ++i) {
    const auto& operand = step.operands[first_operand + i];
    const auto& strides = operand.strides;
    const std::size_t dims = operand.shape.size();
    Part part{first_operand + i, 0, 0, {strides.begin(), strides.end() - rank}};
    if (rank == 1) part.row_stride = strides[dims - 1];
    if (rank == 2) {
      part.row_stride = strides[dims - 2];
      part.column_stride = strides[dims - 1];
    }
    parts_.push_back(std::move(part));
  }
  const auto& shape = step.operands[first_operand].shape;
  batch_shape_.assign(shape.begin(), shape.end() - rank);
  for (const auto d : batch_shape_) items_ *= d;
  if (rank >= 1) rows_ = shape[shape.size() - rank];
  if (rank == 2) columns_ = shape.back();
}

Value Value::transposed() const {
  Value other = *this;
  std::swap(other.rows_, other.columns_);
  for (Part& part : other.parts_) std::swap(part.row_stride, part.column_stride);
  return other;
}

std::int64_t Value::offset(const Part& part, std::int64_t item) const {
  std::int64_t at = 0;
  for (std::size_t d = batch_shape_.size(); d-- > 0;) {
    at += item % batch_shape_[d] * part.batch_strides[d];
    item /= batch_shape_[d];
  }
  return at;
}

namespace {

/// Copies rows x columns elements from strided to strided memory. Inlined, so that the strides of
/// the dense side are constants.
template <class T>
[[gnu::always_inline]] inline void copyMatrix(std::int64_t rows, std::int64_t columns,
                                              const T* from, std::int64_t from_row,
                                              std::int64_t from_column, T* to, std::int64_t to_row,
                                              std::int64_t to_column) {
  constexpr std::int64_t kBytes = sizeof(T);
  static_assert(kBytes == 4 || kBytes == 8);
  const auto transpose = [&](std::int64_t num_rows, std::int64_t num_columns,
                             std::int64_t from_stride, std::int64_t to_stride) {
    simd::copyKernels().transpose[sizeof(T) == 8 ? 3 : 2](
        reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), num_rows,
        num_columns, from_stride * kBytes, to_stride * kBytes);
  };
  if (from_row == 1 && to_row == 1) {
    for (std::int64_t c = 0; c < columns; ++c)
      std::copy_n(from + c * from_column, rows, to + c * to_column);
  } else if (from_column == 1 && to_row == 1 && rows > 1) {
    transpose(columns, rows, from_row, to_column);
  } else if (from_row == 1 && to_column == 1 && rows > 1) {
    transpose(rows, columns, from_column, to_row);
  } else {
    for (std::int64_t c = 0; c < columns; ++c) {
      const T* x = from + c * from_column;
      T* y = to + c * to_column;
      for (std::int64_t r = 0; r < rows; ++r) y[r * to_row] = x[r * from_row];
    }
  }
}

/// The real type that T consists of, and the number of them.
template <class T>
using Element = blas::Real<T>;
template <class T>
constexpr std::int64_t kParts = sizeof(T) / sizeof(Element<T>);

}  // namespace

template <class T>
void Value::load(std::span<std::byte* const> pointers, std::int64_t item, T* out) const {
  using E = Element<T>;
  E* to = reinterpret_cast<E*>(out);
  for (const Part& part : parts_) {
    const E* from = reinterpret_cast<const E*>(pointers[part.operand]) + offset(part, item);
    copyMatrix(rows_, columns_, from, part.row_stride, part.column_stride, to++, kParts<T>,
               rows_ * kParts<T>);
  }
  if (kParts<T> == 2 && parts_.size() == 1) {
    for (std::int64_t i = 0; i < size(); ++i) to[2 * i] = 0;
  }
}

template <class T>
void Value::store(std::span<std::byte* const> pointers, std::int64_t item, const T* in) const {
  using E = Element<T>;
  const E* from = reinterpret_cast<const E*>(in);
  for (const Part& part : parts_) {
    E* to = reinterpret_cast<E*>(pointers[part.operand]) + offset(part, item);
    copyMatrix(rows_, columns_, from++, kParts<T>, rows_ * kParts<T>, to, part.row_stride,
               part.column_stride);
  }
}

template <class T>
void Value::fill(std::span<std::byte* const> pointers, std::int64_t item, T value) const {
  Workspace workspace;
  T* held = workspace.get<T>(size());
  std::fill(held, held + size(), value);
  store(pointers, item, held);
}

#define IPUJAX_INSTANTIATE(T)                                                            \
  template void Value::load(std::span<std::byte* const>, std::int64_t, T*) const;        \
  template void Value::store(std::span<std::byte* const>, std::int64_t, const T*) const; \
  template void Value::fill(std::span<std::byte* const>, std::int64_t, T) const;
IPUJAX_INSTANTIATE(float)
IPUJAX_INSTANTIATE(double)
IPUJAX_INSTANTIATE(std::complex<float>)
IPUJAX_INSTANTIATE(std::complex<double>)
IPUJAX_INSTANTIATE(std::int32_t)
#undef IPUJAX_INSTANTIATE

ValuesCheck::ValuesCheck(StepCheck& check) : check_(check) {
  check.need(check.integers("ranks").size() == check.integers("complex").size(),
             "a rank and a kind of each value");
}

std::vector<std::int64_t> ValuesCheck::next(std::size_t rank) const {
  const auto operand = check_.anyAccess(operand_);
  check_.need(operand->shape.size() >= rank, "values of their rank");
  const std::vector<std::int64_t> item(operand->shape.end() - static_cast<std::ptrdiff_t>(rank),
                                       operand->shape.end());
  for (const std::int64_t d : item) check_.need(d <= kMostRows, "smaller matrices");
  return item;
}

ValuesCheck& ValuesCheck::first(std::size_t rank, bool square, Kind kind) {
  const auto item = next(rank);
  const auto& shape = check_.anyAccess(operand_)->shape;
  batch_.assign(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(rank));
  rows_ = item[0];
  if (rank == 2) columns_ = item[1];
  check_.need(!square || rows_ == columns_, "square matrices");
  const auto& complex = check_.integers("complex");
  check_.need(!complex.empty() && (complex[0] == 0 || complex[0] == 1), "a kind of its values");
  complex_ = complex[0] != 0;
  if (check_.anyAccess(operand_)->type == ElementType::kDouble) real_ = ElementType::kDouble;
  return in(item, kind);
}

ValuesCheck& ValuesCheck::in(std::vector<std::int64_t> item, Kind kind) {
  take(item, kind, false);
  return *this;
}

ValuesCheck& ValuesCheck::out(std::vector<std::int64_t> item, Kind kind) {
  take(item, kind, true);
  return *this;
}

void ValuesCheck::take(const std::vector<std::int64_t>& item, Kind kind, bool written) {
  const auto& ranks = check_.integers("ranks");
  check_.need(value_ < ranks.size() && ranks[value_] == static_cast<std::int64_t>(item.size()),
              "values of their rank");
  const bool complex = kind == Kind::kComplex || (kind == Kind::kLikeFirst && complex_);
  check_.need(check_.integers("complex")[value_] == (complex ? 1 : 0), "values of their kind");
  auto shape = batch_;
  shape.insert(shape.end(), item.begin(), item.end());
  for (int part = 0; part < (complex ? 2 : 1); ++part) {
    const auto operand = written ? check_.written(operand_) : check_.read(operand_);
    operand.hasShape(shape).isOf(kind == Kind::kInteger ? ElementType::kInt32 : real_);
    ++operand_;
  }
  ++value_;
}

void ValuesCheck::end() const {
  check_.operands(operand_);
  check_.integers("ranks", value_);
}

void ValuesCheck::end(std::size_t num_flags) const {
  for (const std::int64_t flag : check_.integers("flags", num_flags))
    check_.need(flag == 0 || flag == 1, "flags that are 0 or 1");
  end();
}

std::vector<Value> valuesOf(const StepDesc& step) {
  const auto& ranks = step.attributes.integers("ranks");
  const auto& complex = step.attributes.integers("complex");
  std::vector<Value> values;
  std::size_t operand = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    values.emplace_back(step, operand, static_cast<unsigned>(ranks[i]), complex[i] != 0);
    operand += complex[i] != 0 ? 2 : 1;
  }
  return values;
}

bool isComplex(const StepDesc& step) { return step.attributes.integers("complex")[0] != 0; }

bool isDouble(const StepDesc& step) { return step.operands[0].type == ElementType::kDouble; }

void forItems(RunContext& context, std::int64_t items, std::int64_t flops_per_item,
              const std::function<void(std::int64_t)>& body) {
  constexpr std::int64_t kWorthAThread = 20000;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kWorthAThread / std::max<std::int64_t>(1, flops_per_item));
  context.pool.parallelFor(items, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace ipujax::engine::batch
