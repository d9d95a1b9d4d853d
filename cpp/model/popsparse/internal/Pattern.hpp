#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "poplar/OptionFlags.hpp"
#include "poplar/Type.hpp"
#include "popsparse/FullyConnectedParams.hpp"
#include "popsparse/MatMulParams.hpp"
#include "popsparse/SparseStorageFormats.hpp"
#include "poputil/TensorMetaData.hpp"

namespace popsparse {

/// The size of a sparse matrix and its blocks, and the number of blocks that it has room for.
class PartitionerImpl {
 public:
  std::size_t numRows = 0;     ///< in elements
  std::size_t numColumns = 0;  ///< in elements
  std::array<std::size_t, 2> block{1, 1};
  std::size_t capacity = 0;  ///< in blocks; 0 for a static pattern: no limit

  std::size_t blockSize() const { return block[0] * block[1]; }
  std::size_t blockRows() const { return numRows / block[0]; }
  std::size_t blockColumns() const { return numColumns / block[1]; }
};

namespace internal {

/// The row and the column of an unused block.
constexpr std::size_t kNoBlock = 65535;

/// What a SparseTensor carries: its size and, for a static pattern, the positions of its blocks.
struct Pattern : poputil::TensorMetaDataBase {
  PartitionerImpl size;
  std::vector<unsigned> rows;     ///< in blocks, ordered by row, then by column
  std::vector<unsigned> columns;  ///< in blocks
};

/// Throw poplibs_error for more than one group, and invalid_option for unknown options and for
/// partials that are not float.
PartitionerImpl sizeOf(const char* where, const dynamic::FullyConnectedParams& params,
                       const poplar::OptionFlags& options);
PartitionerImpl sizeOf(const char* where, const dynamic::MatMulParams& params,
                       const poplar::OptionFlags& options);
PartitionerImpl sizeOf(const char* where, const static_::MatMulParams& params,
                       const poplar::OptionFlags& options);

/// One block of a matrix on the host.
template <typename T>
struct Entry {
  std::size_t row;     ///< in blocks
  std::size_t column;  ///< in blocks
  const T* values;
};

/// The blocks ordered by row, then by column. Throws poplibs_error for a malformed matrix.
template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const CSRMatrix<T>& matrix);
template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const CSCMatrix<T>& matrix);
template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const COOMatrix<T>& matrix);

}  // namespace internal
}  // namespace popsparse
