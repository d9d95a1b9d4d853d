#include "popx/checks/Matrices.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "poplar/exceptions.hpp"

namespace popx::batch {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& needs, const std::string& got,
                         const std::string& advice) {
  throw poplar::poplar_error("[" + where + "] needs " + needs + "; got " + got + ". " + advice);
}

}  // namespace

std::vector<std::size_t> leading(const Parts& value, unsigned rank) {
  const auto& shape = value[0].shape();
  return {shape.begin(), shape.end() - rank};
}

std::vector<std::size_t> shapeOf(std::vector<std::size_t> leading,
                                 const std::vector<std::size_t>& item) {
  leading.insert(leading.end(), item.begin(), item.end());
  return leading;
}

std::size_t elementsOf(const std::vector<std::size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

void check(const std::string& where, const Parts& value, unsigned rank, bool square) {
  const auto refuse = [&](const std::string& needs, const std::string& got) {
    batch::refuse(where, needs, got, "Cast, reshape or pad it first.");
  };
  if (value.empty() || value.size() > 2) {
    refuse("one real tensor, or a real and an imaginary one", std::to_string(value.size()));
  }
  for (const auto& part : value) {
    if (!holdsReals(part.elementType())) {
      refuse("tensors of type float", part.elementType().toString());
    }
    if (part.elementType() != value[0].elementType()) {
      refuse("parts of one type", part.elementType().toString());
    }
    if (part.shape() != value[0].shape()) {
      refuse("parts of one shape", part.shapeToString() + " and " + value[0].shapeToString());
    }
  }
  const auto& shape = value[0].shape();
  if (shape.size() < rank) {
    refuse("at least " + std::to_string(rank) + " dimensions", value[0].shapeToString());
  }
  if (square && shape[shape.size() - 1] != shape[shape.size() - 2]) {
    refuse("square matrices", value[0].shapeToString());
  }
  for (std::size_t i = shape.size() - rank; i < shape.size(); ++i) {
    if (shape[i] > kMostRows) refuse("matrices of at most 30000 rows", value[0].shapeToString());
  }
}

Matrices::Matrices(const std::string& where, const Parts& a, bool square) {
  check(where, a, 2, square);
  leading = batch::leading(a, 2);
  items = elementsOf(leading);
  m = a[0].shape()[a[0].rank() - 2];
  n = a[0].shape().back();
  small = std::min(m, n);
  complex = a.size() == 2;
  type = a[0].elementType();
}

bool Matrices::hasNumbersOf(const Parts& other) const {
  return complex == (other.size() == 2) && type == other[0].elementType();
}

Matrices rightSideOf(const std::string& where, const Parts& a, const Parts& b, bool left) {
  const Matrices triangle(where, a, true);
  const Matrices right(where, b);
  if (!triangle.hasNumbersOf(b) || triangle.leading != right.leading ||
      (left ? right.m : right.n) != triangle.n) {
    refuse(where, "a triangle and a right side of fitting shapes and kinds",
           a[0].shapeToString() + " and " + b[0].shapeToString(), "Make their shapes agree.");
  }
  return right;
}

Matrices rightSideOf(const std::string& where, const std::vector<Parts>& diagonals,
                     const Parts& b) {
  const Matrices right(where, b);
  const std::vector<std::size_t> line(b[0].shape().begin(), b[0].shape().end() - 1);
  for (const Parts& part : diagonals) {
    if (!right.hasNumbersOf(part) || part[0].shape() != line) {
      refuse(where, "three diagonals as long as the right side",
             part[0].shapeToString() + " and " + b[0].shapeToString(), "Make their shapes agree.");
    }
  }
  return right;
}

void checkColumns(const std::string& where, const Matrices& a, const poplar::Tensor& columns) {
  if (columns.elementType() == poplar::INT && columns.shape() == shapeOf(a.leading, {a.n})) return;
  refuse(where, "an INT for each column",
         columns.elementType().toString() + " " + columns.shapeToString(),
         "Pass zeros where any order will do.");
}

Matrices reflectorsOf(const std::string& where, const Parts& factors, const Parts& tau) {
  const Matrices sizes(where, factors);
  check(where, tau, 1);
  if (!sizes.hasNumbersOf(tau) || leading(tau, 1) != sizes.leading ||
      tau[0].shape().back() > sizes.small) {
    refuse(where, "one tau for each reflector",
           factors[0].shapeToString() + " and " + tau[0].shapeToString(),
           "Pass the results of popx::qr.");
  }
  return sizes;
}

Matrices productOf(const std::string& where, const Parts& factors, const Parts& tau) {
  const Matrices sizes = reflectorsOf(where, factors, tau);
  if (sizes.m < sizes.n) {
    refuse(where, "at least as many rows as columns", factors[0].shapeToString(),
           "Slice off the last columns.");
  }
  return sizes;
}

Matrices multiplied(const std::string& where, const Parts& factors, const Parts& tau,
                    const Parts& c, bool left) {
  const Matrices sizes = reflectorsOf(where, factors, tau);
  const Matrices target(where, c);
  if (!sizes.hasNumbersOf(c) || target.leading != sizes.leading ||
      (left ? target.m : target.n) != sizes.m) {
    refuse(where, "a matrix that Q fits",
           factors[0].shapeToString() + " and " + c[0].shapeToString(),
           "Pass as many rows (left) or columns as Q has rows.");
  }
  return target;
}

void checkPivots(const std::string& where, const poplar::Tensor& pivots, std::size_t size) {
  if (pivots.elementType() == poplar::INT && pivots.rank() > 0 && pivots.shape().back() <= size)
    return;
  refuse(where, "INT pivots, at most " + std::to_string(size) + " a row",
         pivots.elementType().toString() + " " + pivots.shapeToString(),
         "Pass the pivots of popx::lu, minus 1.");
}

}  // namespace popx::batch
