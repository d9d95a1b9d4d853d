#pragma once
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <tuple>
#include <vector>

#include "poplar/Type.hpp"

namespace poplin {

/// The shape of a convolution and the transforms of its input, kernel and output. Per spatial
/// dimension: the input and the kernel are truncated, dilated, padded, then flipped; the kernel
/// slides over the input; the output is truncated, strided, then padded.
struct ConvParams {
  struct InputTransform {
    std::vector<unsigned> truncationLower;
    std::vector<unsigned> truncationUpper;
    std::vector<unsigned> dilation;  ///< dilation - 1 zeros between elements
    std::vector<unsigned> paddingLower;
    std::vector<unsigned> paddingUpper;
    std::vector<bool> flip;

    InputTransform() = default;
    InputTransform(std::size_t size);
    InputTransform(std::vector<unsigned> truncationLower, std::vector<unsigned> truncationUpper,
                   std::vector<unsigned> dilation, std::vector<unsigned> paddingLower,
                   std::vector<unsigned> paddingUpper, std::vector<bool> flip);

   private:
    auto key() const {
      return std::tie(truncationLower, truncationUpper, dilation, paddingLower, paddingUpper, flip);
    }

   public:
    friend bool operator==(const InputTransform& a, const InputTransform& b) {
      return a.key() == b.key();
    }
    friend bool operator!=(const InputTransform& a, const InputTransform& b) { return !(a == b); }
    friend bool operator<(const InputTransform& a, const InputTransform& b) {
      return a.key() < b.key();
    }
  };
  struct OutputTransform {
    std::vector<unsigned> truncationLower;
    std::vector<unsigned> truncationUpper;
    std::vector<unsigned> stride;
    std::vector<unsigned> paddingLower;
    std::vector<unsigned> paddingUpper;

    OutputTransform() = default;
    OutputTransform(std::size_t size);
    OutputTransform(std::vector<unsigned> truncationLower, std::vector<unsigned> truncationUpper,
                    std::vector<unsigned> stride, std::vector<unsigned> paddingLower,
                    std::vector<unsigned> paddingUpper);

   private:
    auto key() const {
      return std::tie(truncationLower, truncationUpper, stride, paddingLower, paddingUpper);
    }

   public:
    friend bool operator==(const OutputTransform& a, const OutputTransform& b) {
      return a.key() == b.key();
    }
    friend bool operator!=(const OutputTransform& a, const OutputTransform& b) { return !(a == b); }
    friend bool operator<(const OutputTransform& a, const OutputTransform& b) {
      return a.key() < b.key();
    }
  };

  poplar::Type inputType;
  poplar::Type outputType;
  std::size_t batchSize = 0;
  std::vector<std::size_t> inputFieldShape;
  std::vector<std::size_t> kernelShape;
  std::size_t inputChannelsPerConvGroup = 0;
  std::size_t outputChannelsPerConvGroup = 0;
  std::size_t numConvGroups = 0;
  InputTransform inputTransform;
  InputTransform kernelTransform;
  OutputTransform outputTransform;

  ConvParams() = default;
  ConvParams(poplar::Type dataType, std::size_t batchSize, std::vector<std::size_t> inputFieldShape,
             std::vector<std::size_t> kernelShape, std::size_t inputChannels,
             std::size_t outputChannels, std::size_t numConvGroups);
  ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
             std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups);
  ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
             std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups,
             InputTransform inputTransform, InputTransform kernelTransform,
             OutputTransform outputTransform);

  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::size_t getNumConvGroups() const { return numConvGroups; }
  std::size_t getBatchSize() const { return batchSize; }
  std::size_t getNumInputChansPerConvGroup() const { return inputChannelsPerConvGroup; }
  std::size_t getNumOutputChansPerConvGroup() const { return outputChannelsPerConvGroup; }
  std::size_t getNumInputChans() const { return inputChannelsPerConvGroup * numConvGroups; }
  std::size_t getNumOutputChans() const { return outputChannelsPerConvGroup * numConvGroups; }
  std::size_t getInputSize(std::size_t dim) const { return inputFieldShape[dim]; }
  const std::vector<std::size_t>& getInputFieldShape() const { return inputFieldShape; }
  const std::vector<std::size_t>& getKernelShape() const { return kernelShape; }
  std::size_t getTruncatedInputSize(std::size_t dim) const;
  std::size_t getTruncatedKernelSize(std::size_t dim) const;
  /// After truncation, dilation and padding.
  std::size_t getTransformedInputSize(std::size_t dim) const;
  std::size_t getTransformedKernelSize(std::size_t dim) const;
  /// Before the output's truncation, stride and padding.
  std::size_t getUntransformedOutputSize(std::size_t dim) const;
  std::size_t getOutputSize(std::size_t dim) const;
  std::vector<std::size_t> getOutputFieldShape() const;

  /// Throws poplibs_error if the fields are inconsistent.
  void validate() const;
  /// The same convolution without transforms that change nothing: flips and dilations of at most
  /// one element, strides over at most one result.
  ConvParams canonicalize() const;

 private:
  auto key() const {
    return std::tie(inputType, outputType, batchSize, inputFieldShape, kernelShape,
                    inputChannelsPerConvGroup, outputChannelsPerConvGroup, numConvGroups,
                    inputTransform, kernelTransform, outputTransform);
  }

 public:
  friend bool operator==(const ConvParams& a, const ConvParams& b) { return a.key() == b.key(); }
  friend bool operator!=(const ConvParams& a, const ConvParams& b) { return !(a == b); }
  friend bool operator<(const ConvParams& a, const ConvParams& b) { return a.key() < b.key(); }
};

std::ostream& operator<<(std::ostream& os, const ConvParams& params);
/// Reads all of a stream, a JSON object of the fields by their names, transforms as objects, types
/// as "half" or "float" (dataType: both). Missing fields keep their values, but transforms are
/// reset first. Throws poplibs_error for other text, and as validate does; then nothing changes.
std::istream& operator>>(std::istream& is, ConvParams& params);

std::size_t hash_value(const ConvParams::InputTransform& it);
std::size_t hash_value(const ConvParams::OutputTransform& ot);
std::size_t hash_value(const ConvParams& params);

}  // namespace poplin

#define IPUJAX_HASH(Type)                                                                 \
  template <>                                                                             \
  struct std::hash<poplin::Type> {                                                        \
    std::size_t operator()(const poplin::Type& x) const { return poplin::hash_value(x); } \
  }
IPUJAX_HASH(ConvParams::InputTransform);
IPUJAX_HASH(ConvParams::OutputTransform);
IPUJAX_HASH(ConvParams);
#undef IPUJAX_HASH
