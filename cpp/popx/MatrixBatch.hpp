#pragma once
#include <optional>
#include <string>
#include <vector>

#include "popx/Native.hpp"
#include "popx/checks/Matrices.hpp"

/// For the fast build: steps that apply one operation to each matrix of a batch, real or complex.
namespace popx::batch {

/// A value of a step: the last `rank` dimensions belong to one item, those before count items.
struct Input {
  Parts parts;
  unsigned rank = 2;
};
struct Output {
  std::vector<std::size_t> shape;
  unsigned rank = 2;
  bool complex = false;
  std::optional<poplar::Type> type = {};  ///< absent: the type of the first input
};

/// Adds the step; its results are spread over all tiles.
std::vector<Parts> emit(Graph& graph, const std::string& kernel, const std::vector<Input>& inputs,
                        const std::vector<Output>& outputs, native::Attributes attributes,
                        native::Cost cost, Sequence& prog, const DebugContext& debugContext);

/// The cost of a factorisation with `steps` dependent steps in each item. Matrices are spread over
/// the tiles; each step broadcasts a column (or the like) to the tiles that share the matrix, then
/// updates the rest. Our estimate: one multiply-add per worker cycle; for doubles, as many cycles
/// as software arithmetic takes.
struct Numbers {
  poplar::Type type = poplar::FLOAT;
  bool complex = false;
};
native::Cost cost(const Graph& graph, std::uint64_t items, std::uint64_t rows,
                  std::uint64_t columns, double steps, double flops_per_item, Numbers numbers);

inline native::Cost cost(const Graph& graph, const Matrices& a, double steps,
                         double flops_per_item) {
  return cost(graph, a.items, a.m, a.n, steps, flops_per_item, {a.type, a.complex});
}

/// The dependent steps of a factorisation.
struct Blocked {
  double n;                ///< columns, or rows of X
  std::size_t block_size;  ///< how many one step handles; 0: one, in a loop
  bool halves;             ///< whether code is made for repeated halves, not for each block
};

/// The same by blocks: in each step one worker factorises the block on the diagonal, which is sent
/// to the tiles that share the panel, and the panel to those that share the rest. Steps are
/// unrolled: 512 bytes of code each (our estimate).
native::Cost blockedCost(const Graph& graph, const Matrices& a, const Blocked& steps,
                         double flops_per_item);

/// An integer for each item: 0, or why it has no result.
inline Output status(const Matrices& a) { return {a.leading, 0, false, poplar::INT}; }

}  // namespace popx::batch
