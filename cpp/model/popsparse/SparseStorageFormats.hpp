#pragma once
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace popsparse {

/// The size of a matrix's blocks; {1, 1} if single elements are stored.
struct Block {
  std::size_t getNumColumnsInBlock() const { return blockDimensions[1]; }
  std::size_t getNumRowsInBlock() const { return blockDimensions[0]; }
  std::size_t getBlockSize() const { return blockDimensions[0] * blockDimensions[1]; }
  std::array<std::size_t, 2> getBlockDimensions() const { return blockDimensions; }

 protected:
  explicit Block(std::array<std::size_t, 2> dimensions) : blockDimensions(dimensions) {}
  std::array<std::size_t, 2> blockDimensions;
};

namespace internal {

/// Base of the three formats. `nzValues` holds blocks one after the other, each row-major. Matrices
/// made without their size have 0 rows and columns here.
template <typename T>
struct StoredMatrix : Block {
  using Dimensions = std::array<std::size_t, 2>;
  using Indices = std::vector<std::size_t>;

  std::size_t numRows = 0;
  std::size_t numColumns = 0;
  std::vector<T> nzValues;
  Indices columnIndices;
  Indices rowIndices;

 protected:
  StoredMatrix(std::size_t rows, std::size_t columns, std::vector<T> values, Indices columnIndices,
               Indices rowIndices, const Dimensions& block)
      : Block(block),
        numRows(rows),
        numColumns(columns),
        nzValues(std::move(values)),
        columnIndices(std::move(columnIndices)),
        rowIndices(std::move(rowIndices)) {}
};

}  // namespace internal

/// Coordinates: the first row and column of each block, counted in elements.
template <typename T>
struct COOMatrix : internal::StoredMatrix<T> {
  using Base = internal::StoredMatrix<T>;
  using typename Base::Dimensions;
  using typename Base::Indices;

  COOMatrix(std::size_t numRows, std::size_t numColumns, std::vector<T> nzValues,
            Indices columnIndices, Indices rowIndices, const Dimensions& block = {1, 1})
      : Base(numRows, numColumns, std::move(nzValues), std::move(columnIndices),
             std::move(rowIndices), block) {}
  COOMatrix(std::vector<T> nzValues, Indices columnIndices, Indices rowIndices,
            const Dimensions& block = {1, 1})
      : COOMatrix(0, 0, std::move(nzValues), std::move(columnIndices), std::move(rowIndices),
                  block) {}
  /// Allocates room for `numNZValues` values.
  COOMatrix(std::size_t numRows, std::size_t numColumns, std::size_t numNZValues,
            const Dimensions& block = {1, 1})
      : COOMatrix(numRows, numColumns, std::vector<T>(numNZValues),
                  Indices(numNZValues / (block[0] * block[1])),
                  Indices(numNZValues / (block[0] * block[1])), block) {}
  COOMatrix(std::size_t numNZValues, const Dimensions& block = {1, 1})
      : COOMatrix(0, 0, numNZValues, block) {}
  COOMatrix(std::size_t numRows, std::size_t numColumns, const Dimensions& block = {1, 1})
      : COOMatrix(numRows, numColumns, std::size_t{0}, block) {}
  COOMatrix(const Dimensions& block = {1, 1}) : COOMatrix(0, 0, block) {}
};

/// Compressed columns: where the values of each column of blocks start in nzValues (with their end
/// as the last entry), and the first row of each block in elements.
template <typename T>
struct CSCMatrix : internal::StoredMatrix<T> {
  using Base = internal::StoredMatrix<T>;
  using typename Base::Dimensions;
  using typename Base::Indices;

  CSCMatrix(std::size_t numRows, std::size_t numColumns, std::vector<T> nzValues,
            Indices columnIndices, Indices rowIndices, const Dimensions& block = {1, 1})
      : Base(numRows, numColumns, std::move(nzValues), std::move(columnIndices),
             std::move(rowIndices), block) {}
  CSCMatrix(std::vector<T> nzValues, Indices columnIndices, Indices rowIndices,
            const Dimensions& block = {1, 1})
      : CSCMatrix(0, 0, std::move(nzValues), std::move(columnIndices), std::move(rowIndices),
                  block) {}
  CSCMatrix(std::size_t numRows, std::size_t numColumns, std::size_t numNZValues,
            const Dimensions& block = {1, 1})
      : CSCMatrix(numRows, numColumns, std::vector<T>(numNZValues),
                  Indices(numColumns / block[1] + 1), Indices(numNZValues / (block[0] * block[1])),
                  block) {}
  CSCMatrix(std::size_t numRows, std::size_t numColumns, const Dimensions& block = {1, 1})
      : CSCMatrix(numRows, numColumns, std::size_t{0}, block) {}
  CSCMatrix(const Dimensions& block = {1, 1}) : CSCMatrix(0, 0, {}, {}, {}, block) {}
};

/// Compressed rows: where the values of each row of blocks start in nzValues (with their end as the
/// last entry), and the first column of each block in elements.
template <typename T>
struct CSRMatrix : internal::StoredMatrix<T> {
  using Base = internal::StoredMatrix<T>;
  using typename Base::Dimensions;
  using typename Base::Indices;

  CSRMatrix(std::size_t numRows, std::size_t numColumns, std::vector<T> nzValues,
            Indices columnIndices, Indices rowIndices, const Dimensions& block = {1, 1})
      : Base(numRows, numColumns, std::move(nzValues), std::move(columnIndices),
             std::move(rowIndices), block) {}
  CSRMatrix(std::vector<T> nzValues, Indices columnIndices, Indices rowIndices,
            const Dimensions& block = {1, 1})
      : CSRMatrix(0, 0, std::move(nzValues), std::move(columnIndices), std::move(rowIndices),
                  block) {}
  CSRMatrix(std::size_t numRows, std::size_t numColumns, std::size_t numNZValues,
            const Dimensions& block = {1, 1})
      : CSRMatrix(numRows, numColumns, std::vector<T>(numNZValues),
                  Indices(numNZValues / (block[0] * block[1])), Indices(numRows / block[0] + 1),
                  block) {}
  CSRMatrix(std::size_t numRows, std::size_t numColumns, const Dimensions& block = {1, 1})
      : CSRMatrix(numRows, numColumns, std::size_t{0}, block) {}
  CSRMatrix(const Dimensions& block = {1, 1}) : CSRMatrix(0, 0, {}, {}, {}, block) {}
};

}  // namespace popsparse
