#pragma once
#include <unordered_map>
#include <vector>

#include "popx/hardware/Expr.hpp"

/// For the library: rewrites expressions to operations of popops and bitcasts.
namespace popx {

/// `roots` and the nodes below them, each once and after its operands.
std::vector<const expr::Node*> inOrder(const std::vector<expr::Expr>& roots);

/// Replaces operations that popops lacks, and gives constants the type of the other operands.
class Rewriter {
 public:
  /// `types`: of the placeholders.
  explicit Rewriter(std::vector<poplar::Type> types) : types_(std::move(types)) {}

  std::vector<expr::Expr> rewritten(const std::vector<expr::Expr>& roots);

 private:
  struct Typed {
    expr::Expr expr;
    poplar::Type type;
  };
  Typed operation(const expr::Node& node) const;
  Typed function(const expr::Node& node, const std::vector<expr::Expr>& args,
                 const poplar::Type& type) const;
  poplar::Type sharedType(const expr::Node& node, std::size_t count) const;

  std::vector<poplar::Type> types_;
  std::unordered_map<const expr::Node*, Typed> done_;
};

}  // namespace popx
