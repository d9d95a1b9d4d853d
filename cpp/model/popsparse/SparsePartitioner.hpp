#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "poplar/Interval.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Target.hpp"
#include "poplar/Type.hpp"
#include "popsparse/FullyConnected.hpp"
#include "popsparse/FullyConnectedParams.hpp"
#include "popsparse/MatMulParams.hpp"
#include "popsparse/SparseStorageFormats.hpp"

namespace popsparse {

class PartitionerImpl;

/// A sparse matrix as stored on the device. With a static pattern, only the values are a tensor.
template <typename T>
struct EncodedSparsity {
  /// First the row of each block, then the column of each, both counted in blocks; 65535 for unused
  /// blocks.
  std::vector<std::size_t> metaInfo;
  std::vector<T> nzValues;
  std::array<std::size_t, 2> blockDimensions{1, 1};  ///< of a static pattern
};

namespace internal {

/// Converts matrices to and from the form stored on the device. T is float or double.
template <typename T>
class PartitionerBase {
 public:
  using Data = EncodedSparsity<T>;

  ~PartitionerBase();
  PartitionerBase(PartitionerBase&&) noexcept;

  /// Throws poplibs_error if indices are out of range or not at the start of a block, or if the
  /// matrix has more blocks than there is room for.
  Data createSparsityDataImpl(const CSCMatrix<T>& matrix) const;
  Data createSparsityDataImpl(const CSRMatrix<T>& matrix) const;
  Data createSparsityDataImpl(const COOMatrix<T>& matrix) const;

  /// Ordered by row, then by column.
  COOMatrix<T> sparsityDataImplToCOOMatrix(const Data& data) const;
  CSRMatrix<T> sparsityDataImplToCSRMatrix(const Data& data) const;
  CSCMatrix<T> sparsityDataImplToCSCMatrix(const Data& data) const;

  const PartitionerImpl& getImpl() const { return *impl_; }

 protected:
  explicit PartitionerBase(PartitionerImpl impl);

 private:
  std::unique_ptr<PartitionerImpl> impl_;
};

}  // namespace internal

namespace dynamic {

template <typename T>
using SparsityDataImpl = EncodedSparsity<T>;

template <typename T>
class Partitioner : public popsparse::internal::PartitionerBase<T> {
 public:
  Partitioner(const FullyConnectedParams& params, const poplar::Type& dataType,
              const poplar::Target& target, const poplar::OptionFlags& options,
              PlanningCache* cache = {}, std::string name = "");
  Partitioner(const MatMulParams& params, const poplar::Type& dataType,
              const poplar::Target& target, const poplar::OptionFlags& options,
              PlanningCache* cache = {}, std::string name = "");

  /// Where the partitions of rows, columns and the batch start: the model has one of each.
  std::array<std::vector<std::size_t>, 3> getPlanPartitions() const { return {{{0}, {0}, {0}}}; }
  std::size_t getmetaInfoBucketElements() const;
};

}  // namespace dynamic

namespace static_ {

template <typename T>
using SparsityDataImpl = EncodedSparsity<T>;

template <typename T>
class Partitioner : public popsparse::internal::PartitionerBase<T> {
 public:
  Partitioner(const MatMulParams& params, const poplar::Type& dataType,
              const poplar::Target& target, const poplar::OptionFlags& options,
              PlanningCache* cache = {}, std::string name = "");
};

}  // namespace static_
}  // namespace popsparse
