#pragma once
#include <string>
#include <vector>

#include "popx/Native.hpp"

/// For the library: steps that do one thing to each matrix of a batch, real or complex.
namespace popx {

using poplar::DebugContext;
using poplar::Graph;
using poplar::program::Sequence;

/// The tensors of one value: {real}, or {real, imaginary} of one shape for complex numbers.
using Parts = std::vector<poplar::Tensor>;

namespace batch {

/// A value of a step: the last `rank` dimensions belong to one item, those before count items.
struct Input {
  Parts parts;
  unsigned rank = 2;
};
struct Output {
  std::vector<std::size_t> shape;
  unsigned rank = 2;
  bool complex = false;
  poplar::Type type = poplar::FLOAT;
};

/// Adds the step; its results are spread over all tiles.
std::vector<Parts> emit(Graph& graph, const std::string& kernel, const std::vector<Input>& inputs,
                        const std::vector<Output>& outputs, native::Attributes attributes,
                        native::Cost cost, Sequence& prog, const DebugContext& debugContext);

/// Throws unless the value is {FLOAT} or {FLOAT, FLOAT} of one shape with at least `rank`
/// dimensions, the last two equal where `square`.
void check(const std::string& where, const Parts& value, unsigned rank, bool square = false);

std::vector<std::size_t> leading(const Parts& value, unsigned rank);  ///< the batch dimensions
/// `leading` followed by `item`.
std::vector<std::size_t> shapeOf(std::vector<std::size_t> leading,
                                 const std::vector<std::size_t>& item);

/// The account of a factorisation that goes through `steps` dependent steps in each item. Matrices
/// are spread over the tiles; each step broadcasts a column (or the like) to the tiles that share
/// the matrix, then updates what is left. Our estimate: one multiply-add a cycle and worker.
native::Cost cost(const Graph& graph, std::uint64_t items, std::uint64_t rows,
                  std::uint64_t columns, double steps, double flops_per_item, bool complex);

/// Matrices A [..., m, n].
struct Matrices {
  /// Checks them.
  Matrices(const std::string& where, const Parts& a, bool square = false);

  native::Cost cost(const Graph& graph, double steps, double flops_per_item) const {
    return batch::cost(graph, items, m, n, steps, flops_per_item, complex);
  }
  /// An integer for each item: 0, or why it has no result.
  Output status() const { return {leading, 0, false, poplar::INT}; }

  std::vector<std::size_t> leading;
  std::uint64_t items, m, n, small;  ///< small: the lesser of m and n
  bool complex;
};

}  // namespace batch
}  // namespace popx
