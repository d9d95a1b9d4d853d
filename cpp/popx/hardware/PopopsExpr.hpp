#pragma once
#include <unordered_map>
#include <vector>

#include "poplar/Graph.hpp"
#include "popops/Expr.hpp"
#include "popx/hardware/Expr.hpp"

/// For the library: an expression of popops and its tensors.
namespace popx {

/// Tensors that hold the values of some nodes.
using Values = std::unordered_map<const expr::Node*, poplar::Tensor>;

class PopopsExpr {
 public:
  /// The tree below `root`; nodes with a value become placeholders. A tree of constants alone gets
  /// its constants as tensors, since a map needs a tensor.
  PopopsExpr(poplar::Graph& graph, const expr::Node& root, const Values& values,
             const poplar::DebugContext& debugContext);

  const popops::expr::Expr& expr() const { return expr_; }
  const std::vector<poplar::Tensor>& tensors() const { return tensors_; }

 private:
  popops::expr::Any made(const expr::Node& node);
  popops::expr::Any operation(const expr::Node& node);
  popops::expr::Any placeHolder(const expr::Node& node, const poplar::Tensor& value);

  poplar::Graph& graph_;
  const Values& values_;
  poplar::DebugContext debug_;
  std::unordered_map<const expr::Node*, unsigned> places_{};
  std::vector<poplar::Tensor> tensors_{};
  bool constants_are_tensors_ = false;
  popops::expr::Any expr_;
};

/// A constant's value, of rank 0.
poplar::Tensor constantTensor(poplar::Graph& graph, const expr::Node& constant,
                              const poplar::DebugContext& debugContext);

}  // namespace popx
