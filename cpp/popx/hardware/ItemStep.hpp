#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "popx/checks/Matrices.hpp"

/// For the library: steps that apply one operation to each item of a batch, each item on one tile.
namespace popx {

/// Values in tile memory, [items, elements] or [items], and vertices that work on one item each.
/// Complex numbers are pairs of floats there.
class ItemStep {
 public:
  /// `where`: the function's name, in errors.
  ItemStep(Graph& graph, std::string where, std::size_t items, Sequence& prog,
           const DebugContext& debugContext);

  /// A copy of a value; the last `rank` dimensions belong to one item.
  poplar::Tensor copy(const Parts& value, unsigned rank);
  poplar::Tensor room(const poplar::Type& type, std::size_t elements);
  poplar::Tensor zeros(const poplar::Type& type, std::size_t elements);
  poplar::Tensor status();  ///< [items], INT
  /// The same values for each item.
  poplar::Tensor shared(const poplar::Tensor& values);

  using Fields = std::vector<std::pair<std::string, poplar::Tensor>>;
  using Numbers = std::vector<std::pair<std::string, double>>;
  /// A vertex popx::`type` of codelets/`family`.cpp for each item. Throws if the values made so far
  /// do not fit on the tiles.
  void run(const std::string& family, const std::string& type, const Fields& fields,
           const Numbers& numbers, double flops);

 private:
  unsigned tileOf(std::size_t item) const;
  void checkMemory() const;

  Graph& graph_;
  std::string where_;
  std::size_t items_;
  Sequence& prog_;
  DebugContext debug_context_;
  std::uint64_t bytes_per_item_ = 0;
};

/// "Name<true>" for complex numbers.
std::string instanceFor(const std::string& name, bool complex);

/// The parts of a value of `shape` with these items; integers are one part.
Parts partsOf(const poplar::Tensor& values, const std::vector<std::size_t>& shape, bool complex);

}  // namespace popx
