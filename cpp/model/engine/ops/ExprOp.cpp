#include "engine/ops/ExprOp.hpp"

#include <cstddef>

namespace ipujax::engine::expr {

namespace {
struct Row {
  const char* name;
  int operands;
  int traits;
};
constexpr Row kRows[] = {
#define OP(Name, name, operands, traits, ...) {name, operands, traits},
#include "engine/ops/ElementwiseOps.def"
    {"unknown", 0, kPlain}};

const Row& rowOf(Op op) {
  return kRows[static_cast<std::size_t>(op < Op::kCount ? op : Op::kCount)];
}
}  // namespace

const char* nameOf(Op op) { return rowOf(op).name; }
int numOperands(Op op) { return rowOf(op).operands; }
bool has(Op op, OpTraits trait) { return (rowOf(op).traits & trait) != 0; }

}  // namespace ipujax::engine::expr
