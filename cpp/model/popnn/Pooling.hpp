#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popnn/PoolingDef.hpp"

namespace popnn {

const char* asString(const PoolingType& type);

namespace pooling {

/// A pooling layer over tensors of shape [batch][channels][field...]. Negative padding truncates.
struct PoolParams {
  PoolParams(PoolingType poolingType, std::vector<std::size_t> inputFieldShape,
             std::vector<std::size_t> kernelShape, std::vector<unsigned> stride,
             std::vector<int> inputTruncationOrPaddingLower,
             std::vector<int> inputTruncationOrPaddingUpper, std::size_t numChannels,
             std::size_t batchSize, poplar::Type dType)
      : poolingType(poolingType),
        inputFieldShape(std::move(inputFieldShape)),
        kernelShape(std::move(kernelShape)),
        stride(std::move(stride)),
        inputTruncationOrPaddingLower(std::move(inputTruncationOrPaddingLower)),
        inputTruncationOrPaddingUpper(std::move(inputTruncationOrPaddingUpper)),
        numChannels(numChannels),
        batchSize(batchSize),
        dType(dType) {}

  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::vector<std::size_t> getOutputFieldShape() const;

  PoolingType poolingType;
  std::vector<std::size_t> inputFieldShape;
  std::vector<std::size_t> kernelShape;
  std::vector<unsigned> stride;
  std::vector<int> inputTruncationOrPaddingLower;
  std::vector<int> inputTruncationOrPaddingUpper;
  std::size_t numChannels;
  std::size_t batchSize;
  poplar::Type dType;
};

using popnn::asString;
std::ostream& operator<<(std::ostream& o, const PoolParams& params);
std::vector<std::size_t> getOutputFieldShape(const PoolParams& params);

/// Additions or comparisons of all elements under the kernel, padding not counted, and for AVG a
/// multiplication for each output; the backward pass has as many.
std::uint64_t getFwdFlops(const PoolParams& params);
std::uint64_t getBwdFlops(const PoolParams& params);
/// The same in cycles, if all tiles work on whole 64-bit vectors.
double getFwdPerfectCycleCount(const poplar::Graph& graph, const PoolParams& params);
double getBwdPerfectCycleCount(const poplar::Graph& graph, const PoolParams& params);

/// Pools `in`; AVG divides by the elements under the kernel, padding not counted.
poplar::Tensor pool(poplar::Graph& graph, const PoolParams& params, const poplar::Tensor& in,
                    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                    const poplar::OptionFlags& options = {});

/// The gradient of MAX pooling with respect to its input: every element that equals its window's
/// maximum gets the window's gradient, divided by their number if `useScaledGradient`. For AVG and
/// SUM pooling it is that of the function below.
poplar::Tensor poolInputGradient(poplar::Graph& graph, const PoolParams& params,
                                 const poplar::Tensor& in, const poplar::Tensor& pooled,
                                 const poplar::Tensor& pooledGradient, bool useScaledGradient,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {});
/// The same for AVG and SUM pooling.
poplar::Tensor poolInputGradient(poplar::Graph& graph, const PoolParams& params,
                                 unsigned fwdChansPerGroup, const poplar::Tensor& pooledGradient,
                                 poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {});

}  // namespace pooling
}  // namespace popnn
