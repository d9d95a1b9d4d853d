#pragma once
#include <cassert>
#include <cmath>
#include <cstddef>
#include <ostream>
#include <tuple>

#include "popsparse/SparsityParams.hpp"

namespace popsparse {
namespace dynamic {

/// A layer with sparse weights [outputChannels, inputChannels]: each pass is a product with them.
class FullyConnectedParams {
 public:
  /// Throws poplibs_error for an nzRatio outside [0, 1], or if blocks do not divide the weights.
  static FullyConnectedParams createWithNzRatio(const SparsityParams& sparsityParams,
                                                double nzRatio, std::size_t batchSize,
                                                std::size_t numGroups, std::size_t inputChannels,
                                                std::size_t outputChannels);
  static FullyConnectedParams createWithNumNonZeroValues(
      const SparsityParams& sparsityParams, std::size_t numNonZeroElems, std::size_t batchSize,
      std::size_t numGroups, std::size_t inputChannels, std::size_t outputChannels);

  std::size_t getBatchSize() const { return batchSize_; }
  std::size_t getNumGroups() const { return numGroups_; }
  std::size_t getInputChannels() const { return numGroups_ * inputsPerGroup_; }
  std::size_t getOutputChannels() const { return numGroups_ * outputsPerGroup_; }
  std::size_t getInputChannelsPerGroup() const { return inputsPerGroup_; }
  std::size_t getOutputChannelsPerGroup() const { return outputsPerGroup_; }
  const SparsityParams& getSparsityParams() const { return sparsityParams_; }
  double getNzRatio() const { return nzRatio_; }
  std::size_t getNumNonZeroValues() const;

  friend bool operator<(const FullyConnectedParams& a, const FullyConnectedParams& b) {
    return a.key() < b.key();
  }
  friend bool operator==(const FullyConnectedParams& a, const FullyConnectedParams& b) {
    return a.key() == b.key();
  }
  friend bool operator!=(const FullyConnectedParams& a, const FullyConnectedParams& b) {
    return !(a == b);
  }
  friend std::ostream& operator<<(std::ostream& os, const FullyConnectedParams& p);

 private:
  FullyConnectedParams() = default;
  std::tuple<SparsityParams, double, std::size_t, std::size_t, std::size_t, std::size_t> key()
      const {
    return {sparsityParams_, nzRatio_, batchSize_, numGroups_, inputsPerGroup_, outputsPerGroup_};
  }
  SparsityParams sparsityParams_;
  double nzRatio_ = 0;
  std::size_t batchSize_ = 0;
  std::size_t numGroups_ = 0;
  std::size_t inputsPerGroup_ = 0;
  std::size_t outputsPerGroup_ = 0;
};

}  // namespace dynamic
}  // namespace popsparse
