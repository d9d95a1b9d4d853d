#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "popx/Parts.hpp"

/// For the library: batches of matrices, and the checks of functions that take them.
namespace popx::batch {

constexpr std::size_t kMostRows = 30000;  ///< and columns

/// Whether real numbers may have that type: FLOAT, or DOUBLE if 64-bit types are emulated.
bool holdsReals(const poplar::Type& type);

/// Throws unless the value is one such tensor or two of one type and shape, with at least `rank`
/// dimensions, the last two equal if `square`.
void check(const std::string& where, const Parts& value, unsigned rank, bool square = false);

std::vector<std::size_t> leading(const Parts& value, unsigned rank);  ///< the batch dimensions
/// `leading` followed by `item`.
std::vector<std::size_t> shapeOf(std::vector<std::size_t> leading,
                                 const std::vector<std::size_t>& item);
std::size_t elementsOf(const std::vector<std::size_t>& shape);

/// Matrices A [..., m, n].
struct Matrices {
  /// Checks them.
  Matrices(const std::string& where, const Parts& a, bool square = false);

  std::vector<std::size_t> leading;
  std::size_t items, m, n, small;  ///< small: the lesser of m and n
  bool complex;
  poplar::Type type;  ///< of the parts

  /// Whether the other's numbers have the same type and are both real or both complex.
  bool hasNumbersOf(const Parts& other) const;
};

/// B of A X = B, or of X A = B unless `left`.
Matrices rightSideOf(const std::string& where, const Parts& a, const Parts& b, bool left);
/// B of a system with these three diagonals.
Matrices rightSideOf(const std::string& where, const std::vector<Parts>& diagonals, const Parts& b);
/// Throws unless `columns` has an INT for each column of A.
void checkColumns(const std::string& where, const Matrices& a, const poplar::Tensor& columns);
/// Reflectors with at least one for each tau.
Matrices reflectorsOf(const std::string& where, const Parts& factors, const Parts& tau);
/// The same, no wider than high.
Matrices productOf(const std::string& where, const Parts& factors, const Parts& tau);
/// C of Q C, or of C Q unless `left`.
Matrices multiplied(const std::string& where, const Parts& factors, const Parts& tau,
                    const Parts& c, bool left);
/// Throws unless they are INT, at most `size` a row.
void checkPivots(const std::string& where, const poplar::Tensor& pivots, std::size_t size);

}  // namespace popx::batch
