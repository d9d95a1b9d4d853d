#include "popx/Eigen.hpp"

#include "popx/MatrixBatch.hpp"

namespace popx {

namespace {

/// A result's shape after the batch dimensions: [n, n], [n] or [n - 1].
enum class Size { kMatrix, kLine, kBetween };
enum class Numbers { kReal, kComplex, kAsGiven };
struct Result {
  Size size;
  Numbers numbers;
};
constexpr Result kMatrix{Size::kMatrix, Numbers::kAsGiven};
constexpr Result kComplexMatrix{Size::kMatrix, Numbers::kComplex};
constexpr Result kRealLine{Size::kLine, Numbers::kReal};
constexpr Result kComplexLine{Size::kLine, Numbers::kComplex};
constexpr Result kRealBetween{Size::kBetween, Numbers::kReal};
constexpr Result kBetween{Size::kBetween, Numbers::kAsGiven};

/// Checks A, and emits the step with these results and the status.
std::vector<Parts> emitSquare(Graph& graph, const std::string& name, const Parts& a,
                              native::Attributes::Integers flags,
                              const std::vector<Result>& results, double cubes, Sequence& prog,
                              const DebugContext& debugContext) {
  const batch::Matrices given("popx::" + name, a, true);
  const std::size_t n = given.n;
  std::vector<batch::Output> outputs;
  for (const auto [size, numbers] : results) {
    const bool complex =
        numbers == Numbers::kAsGiven ? given.complex : numbers == Numbers::kComplex;
    if (size == Size::kMatrix) {
      outputs.push_back({a[0].shape(), 2, complex});
    } else {
      const std::size_t length = size == Size::kLine || n == 0 ? n : n - 1;
      outputs.push_back({batch::shapeOf(given.leading, {length}), 1, complex});
    }
  }
  outputs.push_back(batch::status(given));
  native::Attributes attributes;
  attributes.set("flags", std::move(flags));
  const double size = static_cast<double>(n);
  return batch::emit(graph, "popx." + name, {{a, 2}}, outputs, std::move(attributes),
                     batch::cost(graph, given, 3 * size, cubes * size * size * size), prog,
                     {debugContext, name});
}

}  // namespace

// The multiples of n^3 are those of LAPACK's working note 41 and of Golub and Van Loan's book.

std::vector<Parts> eigh(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                        const DebugContext& debugContext) {
  return emitSquare(graph, "eigh", a, {lower}, {kMatrix, kRealLine}, 9, prog, debugContext);
}

std::vector<Parts> tridiagonal(Graph& graph, const Parts& a, bool lower, Sequence& prog,
                               const DebugContext& debugContext) {
  return emitSquare(graph, "tridiagonal", a, {lower}, {kMatrix, kRealLine, kRealBetween, kBetween},
                    4.0 / 3, prog, debugContext);
}

std::vector<Parts> eig(Graph& graph, const Parts& a, bool left, bool right, Sequence& prog,
                       const DebugContext& debugContext) {
  return emitSquare(graph, "eig", a, {left, right}, {kComplexLine, kComplexMatrix, kComplexMatrix},
                    left || right ? 25 : 10, prog, debugContext);
}

std::vector<Parts> schur(Graph& graph, const Parts& a, bool vectors, Sequence& prog,
                         const DebugContext& debugContext) {
  return emitSquare(graph, "schur", a, {vectors}, {kMatrix, kMatrix, kComplexLine},
                    vectors ? 25 : 10, prog, debugContext);
}

std::vector<Parts> hessenberg(Graph& graph, const Parts& a, Sequence& prog,
                              const DebugContext& debugContext) {
  return emitSquare(graph, "hessenberg", a, {}, {kMatrix, kBetween}, 10.0 / 3, prog, debugContext);
}

}  // namespace popx
