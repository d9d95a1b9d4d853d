#pragma once
#include <utility>

#include "poplar/Tensor.hpp"
#include "poputil/TensorMetaData.hpp"

namespace popsparse {
namespace dynamic {

/// A sparse matrix whose pattern may change between runs: the positions of its blocks
/// (UNSIGNED_SHORT, as a Partitioner encodes them) and their values.
class SparseTensor {
 public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor& metaInfo, const poplar::Tensor& nzValues,
               poputil::TensorMetaData opMetaData = {})
      : metaInfo_(metaInfo), nzValues_(nzValues), opMetaData_(std::move(opMetaData)) {}

  poplar::Tensor getMetaInfoTensor() const { return metaInfo_; }
  poplar::Tensor getNzValuesTensor() const { return nzValues_; }
  const poputil::TensorMetaData& getOpMetaData() const { return opMetaData_; }

 private:
  poplar::Tensor metaInfo_;
  poplar::Tensor nzValues_;
  poputil::TensorMetaData opMetaData_;
};

}  // namespace dynamic

namespace static_ {

/// A sparse matrix whose pattern is known when the graph is built: only its values are a tensor.
class SparseTensor {
 public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor& nzValues,  // NOLINT: implicit as in the SDK
               poputil::TensorMetaData opMetaData = {})
      : nzValues_(nzValues), opMetaData_(std::move(opMetaData)) {}

  poplar::Tensor getNzValuesTensor() const { return nzValues_; }
  const poputil::TensorMetaData& getOpMetaData() const { return opMetaData_; }

 private:
  poplar::Tensor nzValues_;
  poputil::TensorMetaData opMetaData_;
};

}  // namespace static_
}  // namespace popsparse
