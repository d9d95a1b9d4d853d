#include "engine/kernels/sequence/Recurrent.hpp"

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::recurrent {

IPUJAX_DECLARE_SIMD(Loops recurrentLoops())

const Loops& loops() {
  static const Loops found = IPUJAX_PICK(recurrentLoops)();
  return found;
}

const float* asMatrix(const OperandDesc& weights, const std::byte* data,
                      std::span<const std::int64_t> at, Workspace& workspace) {
  const auto& strides = weights.strides;
  const auto units = static_cast<std::int64_t>(at.size());
  const std::int64_t rows = weights.shape[1], n = weights.shape[2];
  const float* from = floats(data);
  bool in_order = strides[2] == 1 && strides[0] == n && (strides[1] == units * n || rows == 1);
  for (std::int64_t u = 0; u < units; ++u) in_order &= at[static_cast<std::size_t>(u)] == u;
  if (in_order) return from;
  float* to = workspace.get<float>(units * rows * n);
  for (std::int64_t u = 0; u < units; ++u)
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* in = from + at[static_cast<std::size_t>(u)] * strides[0] + r * strides[1];
      float* out = to + (r * units + u) * n;
      if (strides[2] == 1)
        std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
      else
        for (std::int64_t i = 0; i < n; ++i) out[i] = in[i * strides[2]];
    }
  return to;
}

const float* asTransposed(const OperandDesc& weights, const std::byte* data,
                          std::span<const std::int64_t> at, Workspace& workspace) {
  const auto& strides = weights.strides;
  const auto units = static_cast<std::int64_t>(at.size());
  const std::int64_t rows = weights.shape[1], n = weights.shape[2];
  float* to = workspace.get<float>(units * n * rows);
  for (std::int64_t u = 0; u < units; ++u) {
    const float* from = floats(data) + at[static_cast<std::size_t>(u)] * strides[0];
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < n; ++i)
        to[(u * n + i) * rows + r] = from[r * strides[1] + i * strides[2]];
  }
  return to;
}

bool checkLayer(StepCheck& check, std::size_t units) {
  std::vector<bool> seen(units);
  for (const auto at : check.integers("at", units)) {
    const auto place = static_cast<std::size_t>(at);
    check.need(at >= 0 && place < units && !seen[place], "units in some order");
    seen[place] = true;
  }
  check.integer("gate", 0, kActivations - 1);
  check.integer("activation", 0, kActivations - 1);
  check.flag("full");
  return check.flag("limited");
}

void checkLimits(StepCheck& check, std::size_t operand, std::int64_t batch) {
  const auto limits = check.read(operand).isOfBytes(4).isInteger().hasRank(1);
  check.need(limits->shape[0] == 1 || limits->shape[0] == batch, "a limit for each sequence");
}

void checkRead(StepCheck& check, std::size_t operand, const Sizes& shape, bool packed) {
  const auto read = check.read(operand).isOf(ElementType::kFloat).hasShape(shape);
  if (packed) read.isContiguous();
}
void checkWritten(StepCheck& check, std::size_t operand, const Sizes& shape) {
  check.written(operand).isOf(ElementType::kFloat).hasShape(shape).isContiguous();
}

}  // namespace ipujax::engine::recurrent
