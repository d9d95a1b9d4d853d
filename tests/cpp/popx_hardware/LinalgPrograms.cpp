#include <random>

#include "Twins.hpp"
#include "popx/Cholesky.hpp"
#include "popx/Eigen.hpp"
#include "popx/Lu.hpp"
#include "popx/Qr.hpp"
#include "popx/Svd.hpp"
#include "popx/TriangularSolve.hpp"

/// Functions whose results have no free sign or phase; test_linalg.cpp checks the others by their
/// definition.
namespace TWINS {

namespace {

using poplar::Graph;
using poplar::program::Sequence;
using popx::Parts;
using Tensors = Twin::Tensors;

/// Random numbers; `dominant`: with a large diagonal, for matrices that must be positive definite.
std::vector<Twin::Value> numbers(std::vector<std::size_t> shape, bool complex, bool dominant) {
  std::size_t size = 1;
  for (const auto d : shape) size *= d;
  std::mt19937 engine(static_cast<unsigned>(size + complex));
  std::normal_distribution<float> normal;
  std::vector<Twin::Value> parts;
  for (int part = 0; part < (complex ? 2 : 1); ++part) {
    std::vector<float> values(size);
    for (auto& x : values) x = normal(engine);
    const std::size_t n = shape.back();
    for (std::size_t i = 0; i < size; ++i) {
      if (shape[1] != n || i / n % n != i % n) continue;
      // Hermitian matrices have a real diagonal.
      values[i] = part == 1 ? 0 : values[i] + (dominant ? 3 * static_cast<float>(n) : 0);
    }
    parts.push_back(valueOf(poplar::FLOAT, shape, values));
  }
  return parts;
}

Tensors flat(const std::vector<Parts>& results) {
  Tensors all;
  for (const auto& parts : results) all.insert(all.end(), parts.begin(), parts.end());
  return all;
}

using Function = std::vector<Parts> (*)(Graph&, const Parts&, Sequence&);

struct Row {
  const char* name;
  Function run;
  bool square = true;
  bool dominant = false;
};

const Row kRows[] = {
    {"cholesky, lower",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       return {popx::cholesky(g, a, true, p)};
     },
     true, true},
    {"cholesky, upper",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       return {popx::cholesky(g, a, false, p)};
     },
     true, true},
    {"triangularSolve",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       return {popx::triangularSolve(g, a, a, {true, true, false, 'C'}, p),
               popx::triangularSolve(g, a, a, {false, false, true, 'N'}, p),
               popx::triangularSolve(g, a, a, {false, true, false, 'T'}, p)};
     },
     true, true},
    {"lu", [](auto& g, auto& a, auto& p) { return popx::lu(g, a, p); }, false},
    {"qr", [](auto& g, auto& a, auto& p) { return popx::qr(g, a, p); }, false},
    {"products with Q",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       const auto factors = popx::qr(g, a, p);
       return {popx::householderProduct(g, factors[0], factors[1], p),
               popx::householderMultiply(g, factors[0], factors[1], a, true, false, p),
               popx::householderMultiply(g, factors[0], factors[1], a, true, true, p),
               popx::householderMultiply(g, factors[0], factors[1], a, false, false, p),
               popx::householderMultiply(g, factors[0], factors[1], a, false, true, p)};
     }},
    {"tridiagonal, lower",
     [](auto& g, auto& a, auto& p) { return popx::tridiagonal(g, a, true, p); }},
    {"tridiagonal, upper",
     [](auto& g, auto& a, auto& p) { return popx::tridiagonal(g, a, false, p); }},
    {"hessenberg", [](auto& g, auto& a, auto& p) { return popx::hessenberg(g, a, p); }},
    {"eigh",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       const auto results = popx::eigh(g, a, true, p);
       return {results[1], results[2]};
     }},
    {"svd",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       const auto results = popx::svd(g, a, false, true, true, p);
       return {results[0], results[1], results[3]};
     },
     false},
    {"tridiagonalSolve",
     [](auto& g, auto& a, auto& p) -> std::vector<Parts> {
       std::vector<Parts> lines(3);
       for (const auto& part : a)
         for (std::size_t i = 0; i < 3; ++i)
           lines[i].push_back(part.slice(i, i + 1, 1).squeeze({1}));
       Parts right;
       for (const auto& part : a) right.push_back(part.dimShuffle({0, 2, 1}));
       auto results = popx::tridiagonalSolve(g, lines[0], lines[1], lines[2], right, false, p);
       const auto more = popx::tridiagonalSolve(g, lines[0], lines[1], lines[2], right, true, p);
       results.insert(results.end(), more.begin(), more.end());
       return results;
     },
     false}};

Parts asParts(const Tensors& inputs, bool complex) {
  return {inputs.begin(), inputs.begin() + (complex ? 2 : 1)};
}

/// QR with pivots in which every 3rd column comes first.
std::vector<Parts> pivoted(Graph& g, const Parts& a, Sequence& p) {
  const auto shape = a[0].shape();
  std::vector<int> first(shape[0] * shape[2]);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = i % shape[2] % 3 == 2;
  const auto columns = g.addConstant<int>(poplar::INT, {shape[0], shape[2]}, first);
  g.setTileMapping(columns, 0);
  return popx::qrWithPivots(g, a, columns, p);
}

}  // namespace

std::vector<Twin> linalg() {
  std::vector<Twin> twins;
  const auto add = [&](const std::string& name, Function run, std::vector<std::size_t> shape,
                       bool complex, bool dominant) {
    const auto text = name + " " + std::to_string(shape[1]) + "x" + std::to_string(shape[2]) +
                      (complex ? " complex" : "");
    const auto call = [run, complex](Graph& g, const Tensors& inputs, Sequence& p) {
      return flat(run(g, asParts(inputs, complex), p));
    };
    // Later reflectors of a tridiagonal form amplify the rounding of earlier ones, which is that
    // of the CPU's BLAS.
    const bool is_form = name.rfind("tridiagonal,", 0) == 0;
    const double tolerance = name[0] == 't' || name[0] == 'h' ? 1e-3 : 2e-5;
    twins.push_back(
        {text, numbers(std::move(shape), complex, dominant), call, is_form ? 2e-2 : tolerance});
  };
  for (const bool complex : {false, true}) {
    for (const Row& row : kRows) {
      const bool three = std::string(row.name) == "tridiagonalSolve";
      for (const std::size_t n : {1, 2, 9, 33}) {
        if (three || row.square) {
          add(row.name, row.run, {2, three ? 3 : n, n}, complex, row.dominant);
          continue;
        }
        add(row.name, row.run, {2, n, n}, complex, false);
        add(row.name, row.run, {2, n, n + 3}, complex, false);
        add(row.name, row.run, {2, n + 4, n}, complex, false);
      }
      if (!three) add(row.name, row.run, {2, 0, 0}, complex, false);
    }
    add("qrWithPivots", pivoted, {2, 8, 5}, complex, false);
    add("qrWithPivots", pivoted, {3, 5, 9}, complex, false);
  }
  return twins;
}

}  // namespace TWINS
