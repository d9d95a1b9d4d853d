#pragma once
#include <memory>

namespace poputil {

/// Data that a library keeps with a tensor; each library derives its own.
class TensorMetaDataBase {
 public:
  virtual ~TensorMetaDataBase() = default;
};

/// Holds such data; copies share it, and it never changes.
class TensorMetaData {
 public:
  TensorMetaData() = default;
  TensorMetaData(std::unique_ptr<TensorMetaDataBase> data)  // NOLINT: implicit as in the SDK
      : data_(std::move(data)) {}
  const TensorMetaDataBase* getData() const { return data_.get(); }

 private:
  std::shared_ptr<const TensorMetaDataBase> data_;
};

}  // namespace poputil
