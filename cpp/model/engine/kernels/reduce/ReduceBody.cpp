#include "engine/kernels/reduce/ReduceBody.hpp"

#include <cstring>

#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine {

using expr::ExprProgram;

ReduceBody::ReduceBody(const ExprProgram& program) : evaluator_(program) {
  for (auto type : program.outputTypes()) bytes_.push_back(sizeOf(type));
}

std::size_t ReduceBody::check(const StepCheck& check) {
  const std::size_t k = check.numOperands() / 3;
  check.need(k > 0 && k <= TurnBuffers::kMaxValues, "1 to 16 values");
  check.operands(3 * k);
  std::vector<ElementType> types;
  for (std::size_t i = 0; i < k; ++i) {
    const auto in = check.read(i).hasShapeOf(check.read(0));
    check.written(k + i).hasTypeOf(in).hasShapeOf(check.written(k)).isContiguous();
    check.read(2 * k + i).hasTypeOf(in).isOne();
    types.push_back(in->type);
  }
  auto both = types;
  both.insert(both.end(), types.begin(), types.end());
  check.program("expr", both, types);
  return k;
}

void ReduceBody::apply(const std::byte* const* a, const std::byte* const* b, std::byte* const* out,
                       std::int64_t n, std::byte* scratch) const {
  const std::byte* inputs[2 * TurnBuffers::kMaxValues];
  const std::size_t k = numValues();
  for (std::size_t i = 0; i < k; ++i) {
    inputs[i] = a[i];
    inputs[k + i] = b[i];
  }
  evaluator_.runBlock(inputs, out, n, scratch);
}

std::byte* ReduceBody::scratchIn(Workspace& workspace) const {
  auto* scratch = workspace.get(static_cast<std::int64_t>(evaluator_.scratchBytes()) + 64);
  evaluator_.prepare(nullptr, scratch);
  return scratch;
}

TurnBuffers::TurnBuffers(const ReduceBody& body, std::int64_t lanes, Workspace& workspace) {
  for (auto& blocks : blocks_)
    for (std::size_t i = 0; i < body.numValues(); ++i)
      blocks[i] = workspace.get(static_cast<std::int64_t>(body.bytes(i)) * lanes);
}

void foldLanes(const ReduceBody& body, TurnBuffers& values, std::byte* const* left,
               std::byte* const* right, std::int64_t n, std::byte* scratch) {
  while (n > 1) {
    const std::int64_t pairs = n / 2;
    for (std::size_t i = 0; i < body.numValues(); ++i) {
      const std::size_t size = body.bytes(i);
      simd::gatherStrided(values.now()[i], 2, left[i], size, pairs);
      simd::gatherStrided(values.now()[i] + size, 2, right[i], size, pairs);
      if (n % 2 != 0) {
        std::memcpy(values.next()[i] + pairs * size, values.now()[i] + (n - 1) * size, size);
      }
    }
    body.apply(left, right, values.next(), pairs, scratch);
    values.flip();
    n = pairs + n % 2;
  }
}

}  // namespace ipujax::engine
