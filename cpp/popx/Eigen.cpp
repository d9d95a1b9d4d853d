#include "popx/Eigen.hpp"

namespace popx {

namespace {

/// Checks A, and emits the step whose results have these shapes behind the batch dimensions.
struct Result {
  std::vector<std::size_t> shape;
  bool complex;
};

std::vector<Parts> emitSquare(poplar::Graph& graph, const std::string& name, const Parts& a,
                              native::Attributes::Integers flags,
                              const std::vector<Result>& results, double cubes,
                              poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) {
  const auto leading = batch::leading(a, 2);
  const std::uint64_t n = a[0].shape().back();
  const double size = static_cast<double>(n);
  std::vector<batch::Output> outputs;
  for (const Result& result : results) {
    outputs.push_back({batch::shapeOf(leading, result.shape),
                       static_cast<unsigned>(result.shape.size()), result.complex});
  }
  outputs.push_back({leading, 0, false, poplar::INT});
  native::Attributes attributes;
  attributes.set("flags", std::move(flags));
  return batch::emit(graph, "popx." + name, {{a, 2}}, outputs, std::move(attributes),
                     batch::cost(graph, batch::product(leading), n, n, 3 * size,
                                 cubes * size * size * size, a.size() == 2),
                     prog, {debugContext, name});
}

std::size_t sizeOf(const Parts& a) { return a[0].shape().back(); }

}  // namespace

// The multiples of n^3 are those of LAPACK's working note 41 and of Golub and Van Loan's book.

std::vector<Parts> eigh(poplar::Graph& graph, const Parts& a, bool lower,
                        poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  batch::check("popx::eigh", a, 2, true);
  const std::size_t n = sizeOf(a);
  return emitSquare(graph, "eigh", a, {lower}, {{{n, n}, a.size() == 2}, {{n}, false}}, 9, prog,
                    debugContext);
}

std::vector<Parts> tridiagonal(poplar::Graph& graph, const Parts& a, bool lower,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext) {
  batch::check("popx::tridiagonal", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(
      graph, "tridiagonal", a, {lower},
      {{{n, n}, complex}, {{n}, false}, {{n - (n > 0)}, false}, {{n - (n > 0)}, complex}}, 4.0 / 3,
      prog, debugContext);
}

std::vector<Parts> eig(poplar::Graph& graph, const Parts& a, bool left, bool right,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  batch::check("popx::eig", a, 2, true);
  const std::size_t n = sizeOf(a);
  return emitSquare(graph, "eig", a, {left, right}, {{{n}, true}, {{n, n}, true}, {{n, n}, true}},
                    left || right ? 25 : 10, prog, debugContext);
}

std::vector<Parts> schur(poplar::Graph& graph, const Parts& a, bool vectors,
                         poplar::program::Sequence& prog,
                         const poplar::DebugContext& debugContext) {
  batch::check("popx::schur", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(graph, "schur", a, {vectors},
                    {{{n, n}, complex}, {{n, n}, complex}, {{n}, true}}, vectors ? 25 : 10, prog,
                    debugContext);
}

std::vector<Parts> hessenberg(poplar::Graph& graph, const Parts& a, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext) {
  batch::check("popx::hessenberg", a, 2, true);
  const std::size_t n = sizeOf(a);
  const bool complex = a.size() == 2;
  return emitSquare(graph, "hessenberg", a, {}, {{{n, n}, complex}, {{n - (n > 0)}, complex}},
                    10.0 / 3, prog, debugContext);
}

}  // namespace popx
