#include <pybind11/native_enum.h>

#include "bindings/bindings.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Fft.hpp"
#include "popx/Lu.hpp"
#include "popx/Qr.hpp"
#include "popx/Svd.hpp"
#include "popx/TriangularSolve.hpp"

using popx::Parts;

namespace {

void bindSolve(py::module_ m) {
  m.def("cholesky", &popx::cholesky, "graph"_a, "a"_a, "lower"_a, "prog"_a, debugArg(),
        "block_size"_a = 0);
  m.def(
      "triangularSolve",
      [](Graph& graph, const Parts& a, const Parts& b, bool left_side, bool lower,
         bool unit_diagonal, char transpose, Sequence& prog, const DebugContext& debug,
         std::size_t block_size) {
        return popx::triangularSolve(
            graph, a, b, {left_side, lower, unit_diagonal, transpose, block_size}, prog, debug);
      },
      "graph"_a, "a"_a, "b"_a, "left_side"_a, "lower"_a, "unit_diagonal"_a, "transpose"_a, "prog"_a,
      debugArg(), "block_size"_a = 0);
  m.def("tridiagonalSolve", &popx::tridiagonalSolve, "graph"_a, "lower"_a, "diagonal"_a, "upper"_a,
        "b"_a, "perturb"_a, "prog"_a, debugArg());
  m.def("lu", &popx::lu, "graph"_a, "a"_a, "prog"_a, debugArg());
  m.def("permutationOfPivots", &popx::permutationOfPivots, "graph"_a, "pivots"_a, "size"_a,
        "prog"_a, debugArg());
}

void bindOrthogonal(py::module_ m) {
  m.def("qr", &popx::qr, "graph"_a, "a"_a, "prog"_a, debugArg());
  m.def("qrWithPivots", &popx::qrWithPivots, "graph"_a, "a"_a, "columns"_a, "prog"_a, debugArg());
  m.def("householderProduct", &popx::householderProduct, "graph"_a, "factors"_a, "tau"_a, "prog"_a,
        debugArg());
  m.def("householderMultiply", &popx::householderMultiply, "graph"_a, "factors"_a, "tau"_a, "c"_a,
        "left"_a, "adjoint"_a, "prog"_a, debugArg());
}

void bindSpectra(py::module_ m) {
  m.def("eigh", &popx::eigh, "graph"_a, "a"_a, "lower"_a, "prog"_a, debugArg());
  m.def("tridiagonal", &popx::tridiagonal, "graph"_a, "a"_a, "lower"_a, "prog"_a, debugArg());
  m.def("eig", &popx::eig, "graph"_a, "a"_a, "left"_a, "right"_a, "prog"_a, debugArg());
  m.def("schur", &popx::schur, "graph"_a, "a"_a, "vectors"_a, "prog"_a, debugArg());
  m.def("hessenberg", &popx::hessenberg, "graph"_a, "a"_a, "prog"_a, debugArg());
  m.def("svd", &popx::svd, "graph"_a, "a"_a, "vectors"_a, "full"_a, "divide"_a, "prog"_a,
        debugArg());
}

void bindFft(py::module_ m) {
  py::native_enum<popx::FftType>(m, "FftType", "enum.Enum")
      .value("FFT", popx::FftType::FFT)
      .value("IFFT", popx::FftType::IFFT)
      .value("RFFT", popx::FftType::RFFT)
      .value("IRFFT", popx::FftType::IRFFT)
      .finalize();
  m.def("fft", &popx::fft, "graph"_a, "a"_a, "type"_a, "lengths"_a, "prog"_a, debugArg());
}

}  // namespace

void bindLinalg(py::module_& m) {
  const py::module_ popx = submodule(m, "popx");
  bindSolve(popx);
  bindOrthogonal(popx);
  bindSpectra(popx);
  bindFft(popx);
}
