#pragma once
#include <array>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poplar/Type.hpp"

namespace popsparse {
namespace experimental {

/// Elements above or below the diagonal of the whole matrix that are 0 inside its blocks.
enum class SubBlockMask { None, ZeroUpperTriangle, ZeroLowerTriangle };

/// Softmax over each row of a block-sparse matrix: only elements in blocks, and not masked, take
/// part. `sparseTensor` is [blocks, elements of a block] or flat, in the order of `sparsity`: 1 for
/// each block that stands, row-major. Returns the same shape; masked elements are 0.
poplar::Tensor bsSoftmax(poplar::Graph& graph, poplar::Tensor sparseTensor,
                         const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                         const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                         poplar::program::Sequence& prog, const std::string& debugStr = "");
void bsSoftmaxInPlace(poplar::Graph& graph, poplar::Tensor sparseTensor,
                      const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                      const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                      poplar::program::Sequence& prog, const std::string& debugStr = "");
/// The same for `numGroups` matrices of size `dim`, one below the other: `sparsity` and the blocks
/// are those of the first group, then those of the next. Each has a diagonal of its own.
poplar::Tensor bsSoftmax(poplar::Graph& graph, poplar::Tensor sparseTensor,
                         const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                         const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                         unsigned numGroups, poplar::program::Sequence& prog,
                         const std::string& debugStr = "");
void bsSoftmaxInPlace(poplar::Graph& graph, poplar::Tensor sparseTensor,
                      const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                      const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                      unsigned numGroups, poplar::program::Sequence& prog,
                      const std::string& debugStr = "");
/// The gradient with respect to the input, from the output and its gradient.
poplar::Tensor bsSoftmaxGrad(poplar::Graph& graph, poplar::Tensor sparseOut,
                             poplar::Tensor sparseOutGrad, const std::array<int, 2>& dim,
                             const std::array<int, 2>& blockSize,
                             const std::vector<unsigned char>& sparsity,
                             poplar::program::Sequence& prog, const std::string& debugStr = "");

}  // namespace experimental
}  // namespace popsparse
