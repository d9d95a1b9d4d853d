#include "Check.hpp"
#include "popops/OnDevice.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Qr.hpp"
#include "popx/TriangularSolve.hpp"
#include "popx/Type.hpp"

/// Matrices of doubles, which only the model factorises.

TEST(matrices_of_two_types_are_refused) {
  OnDevice d;
  const auto square = d.iota({4, 4});
  const auto wide = d.graph.addVariable(popx::DOUBLE, {4, 4}, "wide");
  CHECK_THROWS(popx::cholesky(d.graph, {square, wide}, true, d.prog), "parts of one type");
  CHECK_THROWS(popx::triangularSolve(d.graph, {square}, {wide}, {}, d.prog), "fitting");
  CHECK_THROWS(popx::householderMultiply(d.graph, {wide}, {wide.flatten().slice(0, 4)}, {square},
                                         true, false, d.prog),
               "a matrix that Q fits");
}

TEST(results_have_the_type_of_the_matrix) {
  OnDevice d;
  const auto a = d.graph.addVariable(popx::DOUBLE, {2, 4, 4}, "a");
  for (const auto& parts : popx::eig(d.graph, {a}, true, true, d.prog)) {
    const bool status = parts[0].rank() == 1;
    for (const auto& part : parts)
      CHECK(part.elementType() == (status ? poplar::INT : popx::DOUBLE));
  }
}
