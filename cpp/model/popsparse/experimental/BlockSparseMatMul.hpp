#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "popsparse/experimental/BlockSparse.hpp"

namespace popsparse {
namespace experimental {

class BSMatMulImpl;

/// A product whose right side or result has a block pattern known when the graph is built. `dim`
/// and `blockSize` are those of M, K and N in [M, K] x [K, N]. Masks have 1 for each block present,
/// row-major, one group after another. Throw poplibs_error if blocks do not divide the matrices or
/// the mask has another size.
class BSMatMulParams {
 public:
  /// dense x sparse. With `rhsNeedTranspose`, the mask and the elements of blocks are those of [N,
  /// K].
  BSMatMulParams(const std::array<int, 3>& dim, const std::array<int, 3>& blockSize,
                 const std::vector<unsigned char>& rhsSparsity, bool rhsNeedTranspose,
                 poplar::Type inDataType, poplar::Type outDataType, poplar::Type partialDataType,
                 unsigned numGroupsIn = 1);
  /// dense x dense = sparse. Throws poplibs_error for a mask inside blocks.
  BSMatMulParams(const std::array<int, 3>& dim, const std::array<int, 3>& blockSize,
                 const std::vector<unsigned char>& resSparsity, poplar::Type inDataType,
                 poplar::Type outDataType, poplar::Type partialDataType,
                 SubBlockMask subBlockMask = SubBlockMask::None, unsigned numGroupsIn = 1);
  BSMatMulParams(BSMatMulParams&& other) noexcept;
  ~BSMatMulParams();

  std::unique_ptr<BSMatMulImpl> impl;
};

/// The left operand: [groups x M, K].
poplar::Tensor createBSMatMulInputLHS(poplar::Graph& graph, const BSMatMulParams& bsMatMul,
                                      const std::string& name);
/// The right operand: sparse [blocks of all groups, elements of a block], or dense [groups x K, N].
poplar::Tensor createBSMatMulInputRHS(poplar::Graph& graph, const BSMatMulParams& bsMatMul,
                                      const std::string& name);
/// Returns [groups x M, N] if dense, [blocks of all groups, elements of a block] if sparse. Options
/// (memoryCycleRatio, partitionMethod ...) have no effect: products are accumulated in FLOAT.
poplar::Tensor bsMatMul(poplar::Graph& graph, const BSMatMulParams& bsMatMul,
                        poplar::program::Sequence& prog, const poplar::Tensor& lhsMatrix,
                        const poplar::Tensor& rhsMatrix, const poplar::OptionFlags& options = {},
                        const std::string& debugPrefix = "");

}  // namespace experimental
}  // namespace popsparse
