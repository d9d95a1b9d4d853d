#include "popx/TriangularSolve.hpp"

#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "poplar/exceptions.hpp"

namespace popx {

namespace {

namespace engine = ipujax::engine;

/// BLAS sees the rows as columns, so it solves X^T op(A)^T = B^T: the other side, the other
/// triangle.
template <class T>
class TriangularSolveItem {
 public:
  explicit TriangularSolveItem(const engine::StepDesc& step)
      : values_(batch::valuesOf(step)), flags_(step.attributes.integers("flags")) {
    for (auto& value : values_) value = value.transposed();
    flags_[0] = flags_[0] == 'L' ? 'R' : 'L';
    flags_[1] = flags_[1] == 'L' ? 'U' : 'L';
  }

  std::int64_t items() const { return values_[1].items(); }
  std::int64_t flops() const { return values_[0].rows() * values_[1].size(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    engine::Workspace workspace;
    auto* a = workspace.get<T>(values_[0].size());
    auto* b = workspace.get<T>(values_[1].size());
    values_[0].load(pointers, item, a);
    values_[1].load(pointers, item, b);
    engine::blas::trsm(flag(0), flag(1), flag(2), flag(3), static_cast<int>(values_[1].rows()),
                       static_cast<int>(values_[1].columns()), a, b);
    values_[2].store(pointers, item, b);
  }

 private:
  char flag(std::size_t i) const { return static_cast<char>(flags_[i]); }

  std::vector<batch::Value> values_;
  engine::Attributes::Integers flags_;  // LAPACK's letters: side, triangle, transposition, diagonal
};

void checkTriangularSolve(engine::StepCheck& check) {
  const auto& flags = check.integers("flags", 4);
  const std::string allowed[] = {"LR", "LU", "NTC", "UN"};
  for (std::size_t i = 0; i < 4; ++i)
    check.need(flags[i] > 0 && flags[i] < 128 &&
                   allowed[i].find(static_cast<char>(flags[i])) != std::string::npos,
               "LAPACK's letters");
  batch::ValuesCheck values(check);
  values.first(2, true);
  const auto b = values.next(2);
  check.need(b[flags[0] == 'L' ? 0 : 1] == values.rows(), "a right side that fits the triangle");
  values.in(b).out(b).end();
}
const engine::RegisterKernel kTriangle{"popx.triangularSolve", batch::make<TriangularSolveItem>,
                                       checkTriangularSolve};

template <class T>
class TridiagonalSolveItem {
 public:
  explicit TridiagonalSolveItem(const engine::StepDesc& step)
      : values_(batch::valuesOf(step)), perturb_(step.attributes.integer("perturb") != 0) {}

  std::int64_t items() const { return values_[3].items(); }
  std::int64_t flops() const { return 8 * values_[3].size(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    const std::int64_t n = values_[3].rows();
    engine::Workspace workspace;
    auto* lower = workspace.get<T>(3 * n);
    T* diagonal = lower + n;
    T* upper = diagonal + n;
    auto* b = workspace.get<T>(values_[3].size());
    values_[0].load(pointers, item, lower);
    values_[1].load(pointers, item, diagonal);
    values_[2].load(pointers, item, upper);
    values_[3].load(pointers, item, b);
    const std::int32_t status = solve(static_cast<int>(n), static_cast<int>(values_[3].columns()),
                                      lower + 1, diagonal, upper, b);
    values_[4].store(pointers, item, b);
    values_[5].store(pointers, item, &status);
  }

 private:
  int solve(int n, int columns, T* lower, T* diagonal, T* upper, T* b) const {
    if constexpr (std::is_same_v<T, float>) {
      if (perturb_) return engine::blas::gtsvPerturbed(n, columns, lower, diagonal, upper, b);
    }
    return engine::blas::gtsv(n, columns, lower, diagonal, upper, b);
  }

  std::vector<batch::Value> values_;
  bool perturb_;
};

void checkTridiagonalSolve(engine::StepCheck& check) {
  batch::ValuesCheck values(check);
  values.first(1);
  const std::int64_t n = values.rows();
  values.in({n}).in({n});
  const auto b = values.next(2);
  check.need(b[0] == n, "a right side as long as the diagonals");
  check.need(!check.flag("perturb") || !values.isComplex(), "real numbers to perturb pivots");
  values.in(b).out(b).status().end();
}
const engine::RegisterKernel kTridiagonal{"popx.tridiagonalSolve",
                                          batch::make<TridiagonalSolveItem>, checkTridiagonalSolve};

[[noreturn]] void refuse(const std::string& where, const std::string& needs,
                         const std::string& got) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got +
                             ". Make their shapes agree.");
}

}  // namespace

Parts triangularSolve(poplar::Graph& graph, const Parts& a, const Parts& b,
                      const TriangularSolveParams& params, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext) {
  const std::string where = "popx::triangularSolve";
  batch::check(where, a, 2, true);
  batch::check(where, b, 2);
  const auto& shape = b[0].shape();
  const std::uint64_t n = a[0].shape().back();
  if (a.size() != b.size() || batch::leading(a, 2) != batch::leading(b, 2) ||
      shape[shape.size() - (params.left_side ? 2 : 1)] != n) {
    refuse(where, "a triangle and a right side of fitting shapes and kinds",
           a[0].shapeToString() + " and " + b[0].shapeToString());
  }
  engine::Attributes attributes;
  attributes.set(
      "flags", engine::Attributes::Integers{params.left_side ? 'L' : 'R', params.lower ? 'L' : 'U',
                                            params.transpose, params.unit_diagonal ? 'U' : 'N'});
  const std::uint64_t items = batch::product(batch::leading(b, 2));
  const std::uint64_t rows = shape[shape.size() - 2];
  const double elements = static_cast<double>(rows * shape.back());
  const double size = static_cast<double>(n);
  return batch::emit(graph, "popx.triangularSolve", {{a, 2}, {b, 2}}, {{shape, 2, b.size() == 2}},
                     std::move(attributes),
                     batch::cost(graph, items, rows, shape.back(), size,
                                 size * elements + size * size / 2, b.size() == 2),
                     prog, {debugContext, "triangularSolve"})[0];
}

std::vector<Parts> tridiagonalSolve(poplar::Graph& graph, const Parts& lower, const Parts& diagonal,
                                    const Parts& upper, const Parts& b, bool perturb,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) {
  const std::string where = "popx::tridiagonalSolve";
  batch::check(where, b, 2);
  std::vector<std::size_t> line(b[0].shape().begin(), b[0].shape().end() - 1);
  for (const Parts* part : {&lower, &diagonal, &upper}) {
    if (part->size() != b.size() || (*part)[0].shape() != line) {
      refuse(where, "three diagonals as long as the right side",
             (*part)[0].shapeToString() + " and " + b[0].shapeToString());
    }
  }
  if (perturb && b.size() == 2) refuse(where, "real numbers to perturb pivots", "complex ones");
  engine::Attributes attributes;
  attributes.set("perturb", std::int64_t{perturb});
  const auto batch_shape = batch::leading(b, 2);
  const std::uint64_t n = line.back();
  const std::uint64_t columns = b[0].shape().back();
  return batch::emit(
      graph, "popx.tridiagonalSolve", {{lower, 1}, {diagonal, 1}, {upper, 1}, {b, 2}},
      {{b[0].shape(), 2, b.size() == 2}, {batch_shape, 0, false, poplar::INT}},
      std::move(attributes),
      // Columns of B are independent; along n there is nothing to share.
      batch::cost(graph, batch::product(batch_shape) * std::max<std::uint64_t>(columns, 1), n, 1, 1,
                  8 * static_cast<double>(n), b.size() == 2),
      prog, {debugContext, "tridiagonalSolve"});
}

}  // namespace popx
