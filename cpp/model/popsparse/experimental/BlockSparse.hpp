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

/// Sets elements inside blocks to 0 if they are above or below the diagonal of the whole matrix.
enum class SubBlockMask { None, ZeroUpperTriangle, ZeroLowerTriangle };

/// Softmax over each row of a block-sparse matrix: only unmasked elements in blocks take part.
/// `sparseTensor` is [blocks, elements of a block] or flat, in the order of `sparsity`, which has 1
/// for each block present, row-major. Returns the same shape; masked elements are 0.
poplar::Tensor bsSoftmax(poplar::Graph& graph, poplar::Tensor sparseTensor,
                         const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                         const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                         poplar::program::Sequence& prog, const std::string& debugStr = "");
void bsSoftmaxInPlace(poplar::Graph& graph, poplar::Tensor sparseTensor,
                      const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                      const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                      poplar::program::Sequence& prog, const std::string& debugStr = "");
/// The same for `numGroups` matrices of size `dim`, stacked vertically: `sparsity` and the blocks
/// list the first group, then the next. Each matrix has its own diagonal.
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
