#include "popsparse/SparsePartitioner.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "popsparse/internal/Pattern.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse {
namespace internal {
namespace {

/// Encodes `entries` in their order, with zeros up to the capacity.
template <typename T>
EncodedSparsity<T> encode(const PartitionerImpl& size, std::array<std::size_t, 2> block,
                          const std::vector<Entry<T>>& entries) {
  const std::size_t blockSize = block[0] * block[1];
  const std::size_t room = size.capacity ? size.capacity : entries.size();
  if (entries.size() > room)
    throw poputil::poplibs_error(
        "[popsparse::Partitioner] needs at most " + std::to_string(room) + " blocks; got " +
        std::to_string(entries.size()) +
        ". Make the parameters for more values, or raise metaInfoBucketOversizeProportion.");
  EncodedSparsity<T> data;
  data.blockDimensions = block;
  data.metaInfo.assign(2 * room, kNoBlock);
  data.nzValues.assign(room * blockSize, T(0));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    data.metaInfo[i] = entries[i].row;
    data.metaInfo[room + i] = entries[i].column;
    std::copy_n(entries[i].values, blockSize, &data.nzValues[i * blockSize]);
  }
  return data;
}

/// Blocks of a dynamic pattern have the size given by the parameters.
template <typename T>
std::array<std::size_t, 2> blockOf(const PartitionerImpl& size, const EncodedSparsity<T>& data) {
  return size.capacity ? size.block : data.blockDimensions;
}

/// The blocks that are in use.
template <typename T>
std::vector<Entry<T>> decode(const EncodedSparsity<T>& data, std::size_t blockSize) {
  const std::size_t room = data.metaInfo.size() / 2;
  if (data.nzValues.size() != room * blockSize)
    throw poputil::poplibs_error("[popsparse::Partitioner] needs values for " +
                                 std::to_string(room) + " blocks of " + std::to_string(blockSize) +
                                 "; got " + std::to_string(data.nzValues.size()) +
                                 ". Read both tensors whole.");
  std::vector<Entry<T>> entries;
  for (std::size_t i = 0; i < room; ++i)
    if (data.metaInfo[i] != kNoBlock)
      entries.push_back({data.metaInfo[i], data.metaInfo[room + i], &data.nzValues[i * blockSize]});
  return entries;
}

/// Values of the entries, the start of each line of blocks, and each block's position in its line.
template <typename T>
struct Compressed {
  std::vector<T> values;
  std::vector<std::size_t> starts;
  std::vector<std::size_t> places;

  Compressed(const std::vector<Entry<T>>& entries, std::size_t blockSize, std::size_t lines,
             std::size_t Entry<T>::*line, std::size_t Entry<T>::*place, std::size_t placeSize)
      : starts(lines + 1) {
    for (const auto& e : entries) {
      values.insert(values.end(), e.values, e.values + blockSize);
      places.push_back(e.*place * placeSize);
      starts[e.*line + 1] += blockSize;
    }
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  }
};

}  // namespace

template <typename T>
PartitionerBase<T>::PartitionerBase(PartitionerImpl impl)
    : impl_(std::make_unique<PartitionerImpl>(impl)) {}
template <typename T>
PartitionerBase<T>::~PartitionerBase() = default;
template <typename T>
PartitionerBase<T>::PartitionerBase(PartitionerBase&&) noexcept = default;

template <typename T>
EncodedSparsity<T> PartitionerBase<T>::createSparsityDataImpl(const CSCMatrix<T>& matrix) const {
  return encode(*impl_, matrix.getBlockDimensions(), entriesOf(*impl_, matrix));
}
template <typename T>
EncodedSparsity<T> PartitionerBase<T>::createSparsityDataImpl(const CSRMatrix<T>& matrix) const {
  return encode(*impl_, matrix.getBlockDimensions(), entriesOf(*impl_, matrix));
}
template <typename T>
EncodedSparsity<T> PartitionerBase<T>::createSparsityDataImpl(const COOMatrix<T>& matrix) const {
  return encode(*impl_, matrix.getBlockDimensions(), entriesOf(*impl_, matrix));
}

template <typename T>
COOMatrix<T> PartitionerBase<T>::sparsityDataImplToCOOMatrix(const Data& data) const {
  const auto block = blockOf(*impl_, data);
  const std::size_t blockSize = block[0] * block[1];
  COOMatrix<T> made(impl_->numRows, impl_->numColumns, block);
  for (const auto& e : decode(data, blockSize)) {
    made.nzValues.insert(made.nzValues.end(), e.values, e.values + blockSize);
    made.rowIndices.push_back(e.row * block[0]);
    made.columnIndices.push_back(e.column * block[1]);
  }
  return made;
}

template <typename T>
CSRMatrix<T> PartitionerBase<T>::sparsityDataImplToCSRMatrix(const Data& data) const {
  const auto block = blockOf(*impl_, data);
  Compressed<T> c(decode(data, block[0] * block[1]), block[0] * block[1], impl_->numRows / block[0],
                  &Entry<T>::row, &Entry<T>::column, block[1]);
  return {impl_->numRows,      impl_->numColumns,   std::move(c.values),
          std::move(c.places), std::move(c.starts), block};
}

template <typename T>
CSCMatrix<T> PartitionerBase<T>::sparsityDataImplToCSCMatrix(const Data& data) const {
  const auto block = blockOf(*impl_, data);
  auto entries = decode(data, block[0] * block[1]);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.column, a.row) < std::tuple(b.column, b.row);
  });
  Compressed<T> c(entries, block[0] * block[1], impl_->numColumns / block[1], &Entry<T>::column,
                  &Entry<T>::row, block[0]);
  return {impl_->numRows,      impl_->numColumns,   std::move(c.values),
          std::move(c.starts), std::move(c.places), block};
}

template class PartitionerBase<float>;
template class PartitionerBase<double>;

}  // namespace internal

namespace dynamic {

template <typename T>
Partitioner<T>::Partitioner(const FullyConnectedParams& params, const poplar::Type& /*dataType*/,
                            const poplar::Target& /*target*/, const poplar::OptionFlags& options,
                            PlanningCache* /*cache*/, std::string /*name*/)
    : popsparse::internal::PartitionerBase<T>(
          popsparse::internal::sizeOf("Partitioner", params, options)) {}

template <typename T>
Partitioner<T>::Partitioner(const MatMulParams& params, const poplar::Type& /*dataType*/,
                            const poplar::Target& /*target*/, const poplar::OptionFlags& options,
                            PlanningCache* /*cache*/, std::string /*name*/)
    : popsparse::internal::PartitionerBase<T>(
          popsparse::internal::sizeOf("Partitioner", params, options)) {}

template <typename T>
std::size_t Partitioner<T>::getmetaInfoBucketElements() const {
  return 2 * this->getImpl().capacity;
}

template class Partitioner<float>;
template class Partitioner<double>;

}  // namespace dynamic

namespace static_ {

template <typename T>
Partitioner<T>::Partitioner(const MatMulParams& params, const poplar::Type& /*dataType*/,
                            const poplar::Target& /*target*/, const poplar::OptionFlags& options,
                            PlanningCache* /*cache*/, std::string /*name*/)
    : popsparse::internal::PartitionerBase<T>(
          popsparse::internal::sizeOf("Partitioner", params, options)) {}

template class Partitioner<float>;
template class Partitioner<double>;

}  // namespace static_
}  // namespace popsparse
