#include "engine/kernels/reduce/ReduceUnrolled.hpp"

#include <algorithm>
#include <array>

namespace ipujax::engine {
namespace {

using expr::ExprBuilder;
using expr::ExprProgram;
using Values = std::vector<std::int32_t>;

constexpr std::int64_t kMostLanes = 64;
constexpr std::int64_t kMostValues = 16;
constexpr std::size_t kMostInstructions = 256;
constexpr std::size_t kMostInputs = 64;
constexpr std::size_t kMostOutputs = 4;

/// The results of the body for two sets of values.
Values applied(ExprBuilder& builder, const ExprProgram& body, const Values& a, const Values& b) {
  Values values = a;
  values.insert(values.end(), b.begin(), b.end());
  for (expr::Instruction instruction : body.instructions()) {
    for (auto& arg : instruction.args)
      if (arg >= 0) arg = values[static_cast<std::size_t>(arg)];
    values.push_back(builder.again(instruction));
  }
  Values results;
  for (const auto output : body.outputs())
    results.push_back(values[static_cast<std::size_t>(output)]);
  return results;
}

/// Offsets, in elements, of all values reduced to the first result, in row-major order.
std::vector<std::int64_t> reducedOffsets(const OperandDesc& operand,
                                         const std::vector<bool>& reduced) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    if (!reduced[d]) continue;
    std::vector<std::int64_t> inner;
    for (const auto at : offsets)
      for (std::int64_t i = 0; i < operand.shape[d]; ++i)
        inner.push_back(at + i * operand.strides[d]);
    offsets = std::move(inner);
  }
  return offsets;
}

/// Whether the first values of consecutive results are adjacent.
bool areNeighbours(const OperandDesc& operand, const std::vector<bool>& reduced) {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    if (reduced[d]) continue;
    shape.push_back(operand.shape[d]);
    strides.push_back(operand.strides[d]);
  }
  return isRowMajor(shape, strides);
}

}  // namespace

std::unique_ptr<const UnrolledReduce> UnrolledReduce::make(const StepDesc& step,
                                                           const ExprProgram& body) {
  const std::size_t k = body.numOutputs();
  const auto& shape = step.operands[0].shape;
  std::vector<bool> reduced(shape.size(), false);
  for (const auto d : step.attributes.integers("dims")) reduced[static_cast<std::size_t>(d)] = true;
  const std::int64_t lanes = step.operands[k].numElements();
  std::int64_t values = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (reduced[d]) values *= shape[d];
  if (lanes < 1 || lanes > kMostLanes || values < 1 || values > kMostValues) return nullptr;
  const auto count = static_cast<std::size_t>(values);
  if (count * body.instructions().size() > kMostInstructions || k > kMostOutputs ||
      (count + 1) * k > kMostInputs || body.isRandom())
    return nullptr;
  for (std::size_t i = 0; i < k; ++i)
    if (!areNeighbours(step.operands[i], reduced)) return nullptr;
  std::vector<std::vector<std::int64_t>> offsets;
  std::vector<ElementType> body_types = body.inputTypes();
  body_types.resize(k);
  for (std::size_t i = 0; i < k; ++i) offsets.push_back(reducedOffsets(step.operands[i], reduced));
  std::vector<ElementType> types;
  std::vector<Source> sources;
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t i = 0; i < k; ++i) {
      const auto bytes = static_cast<std::int64_t>(sizeOf(body_types[i]));
      types.push_back(body_types[i]);
      sources.push_back({i, offsets[i][r] * bytes});
    }
  }
  for (std::size_t i = 0; i < k; ++i) {
    types.push_back(body_types[i]);
    sources.push_back({2 * k + i, 0});
  }
  ExprBuilder builder(types);
  const auto inputs = [&](std::size_t first) {
    Values result;
    for (std::size_t i = 0; i < k; ++i) result.push_back(builder.input(first * k + i));
    return result;
  };
  Values folded = inputs(0);
  for (std::size_t r = 1; r < count; ++r) folded = applied(builder, body, folded, inputs(r));
  for (const auto v : applied(builder, body, inputs(count), folded)) builder.output(v);
  std::vector<bool> uniform(types.size(), false);
  std::fill(uniform.end() - static_cast<std::ptrdiff_t>(k), uniform.end(), true);
  return std::unique_ptr<const UnrolledReduce>(
      new UnrolledReduce(builder.build(), uniform, std::move(sources), k, lanes));
}

void UnrolledReduce::run(std::span<std::byte* const> p) const {
  std::array<const std::byte*, kMostInputs> inputs;
  std::array<std::byte*, kMostOutputs> outputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    inputs[i] = p[inputs_[i].operand] + inputs_[i].offset;
  for (std::size_t i = 0; i < num_outputs_; ++i) outputs[i] = p[num_outputs_ + i];
  evaluator_.run({inputs.data(), inputs_.size()}, {outputs.data(), num_outputs_}, lanes_);
}

}  // namespace ipujax::engine
