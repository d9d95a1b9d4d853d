#include "popx/MatrixBatch.hpp"

#include <algorithm>
#include <cmath>

#include "popx/Type.hpp"

namespace popx::batch {

static_assert(kMostRows == native::kMostRows);

std::vector<Parts> emit(Graph& graph, const std::string& kernel, const std::vector<Input>& inputs,
                        const std::vector<Output>& outputs, native::Attributes attributes,
                        native::Cost cost, Sequence& prog, const DebugContext& debugContext) {
  native::StepSpec spec;
  spec.kernel = kernel;
  spec.attributes = std::move(attributes);
  spec.cost = cost;
  native::Attributes::Integers ranks;
  native::Attributes::Integers complex;
  for (const Input& input : inputs) {
    ranks.push_back(input.rank);
    complex.push_back(input.parts.size() == 2);
    for (const auto& part : input.parts) {
      spec.operands.push_back({part, native::Access::kRead, false});
    }
  }
  std::vector<Parts> results;
  for (const Output& output : outputs) {
    ranks.push_back(output.rank);
    complex.push_back(output.complex);
    Parts parts;
    const poplar::Type type = output.type.value_or(inputs[0].parts[0].elementType());
    for (int i = 0; i < (output.complex ? 2 : 1); ++i) {
      auto part = graph.addVariable(type, output.shape, poplar::VariableMappingMethod::LINEAR,
                                    {debugContext, "factor"});
      spec.operands.push_back({part, native::Access::kWrite, false});
      parts.push_back(part);
    }
    results.push_back(std::move(parts));
  }
  spec.attributes.set("ranks", std::move(ranks));
  spec.attributes.set("complex", std::move(complex));
  native::emit(graph, prog, std::move(spec), debugContext);
  return results;
}

bool holdsReals(const poplar::Type& type) { return type == poplar::FLOAT || type == DOUBLE; }

namespace {

/// Worker cycles of a multiply-add.
double multiplyAddCycles(const poplar::Type& type) {
  return type == DOUBLE ? native::softwareMultiplyAddCycles(type.element()) : 1;
}

}  // namespace

native::Cost cost(const Graph& graph, std::uint64_t items, std::uint64_t rows,
                  std::uint64_t columns, double steps, double flops_per_item, Numbers numbers) {
  native::Cost cost;
  cost.code_bytes = 2048;  // our estimate
  const double elements = static_cast<double>(rows * columns) * (numbers.complex ? 2 : 1);
  if (items == 0 || elements == 0) return cost;
  const poplar::Target& target = graph.getTarget();
  const double flops = std::max(flops_per_item * (numbers.complex ? 4 : 1), elements);
  const double tiles = target.getNumTiles();
  const auto bytes = static_cast<double>(target.getTypeSize(numbers.type));
  // At least 96 elements a tile: with less the exchange of a step outweighs its arithmetic.
  const double share = std::floor(tiles / static_cast<double>(items));
  const double tiles_per_item = std::clamp(share, 1.0, std::max(1.0, std::ceil(elements / 96)));
  const double rounds = std::ceil(static_cast<double>(items) * tiles_per_item / tiles);
  const double busy = std::min(tiles, static_cast<double>(items) * tiles_per_item);
  const double bytes_per_tile = elements * bytes / tiles_per_item;
  // Each worker does a multiply-add in one of its own cycles; workers take turns.
  const double compute = rounds * flops / 2 / tiles_per_item * multiplyAddCycles(numbers.type);
  const double count = std::max(1.0, steps);
  native::addComputeSet(cost, target, compute + count * rounds * 50,  // 50: a vertex's start
                        static_cast<std::uint64_t>(busy));
  const double column_bytes = elements * bytes / static_cast<double>(columns);
  if (tiles_per_item > 1) {
    native::addExchange(cost, target, {column_bytes * count * busy, column_bytes * count * rounds});
    cost.sync_cycles += (count - 1) * 2 * target.getMaxIPUSyncDelay();
  }
  cost.flops = flops * static_cast<double>(items);
  cost.temporary_bytes = static_cast<std::uint64_t>(bytes_per_tile + column_bytes);
  if (tiles_per_item > 1) cost.received_bytes = static_cast<std::uint64_t>(column_bytes);
  cost.vertex_state_bytes = 64;  // our estimate
  return cost;
}

native::Cost blockedCost(const Graph& graph, const Matrices& a, const Blocked& steps,
                         double flops_per_item) {
  if (steps.block_size == 0 || steps.n <= 0 || a.items == 0)
    return cost(graph, a, steps.n, flops_per_item);
  const double block = std::min(static_cast<double>(steps.block_size), steps.n);
  const double blocks = std::ceil(steps.n / block);
  const auto width = static_cast<std::uint64_t>(block);
  // Panels instead of columns.
  native::Cost found = cost(graph, a.items, a.m * width, (a.n + width - 1) / width, 2 * blocks,
                            flops_per_item, {a.type, a.complex});
  const poplar::Target& target = graph.getTarget();
  const double factor = (a.complex ? 4 : 1) * multiplyAddCycles(a.type);
  const double workers = target.getNumWorkerContexts();
  const double rounds = std::ceil(static_cast<double>(a.items) / target.getNumTiles());
  // block ** 3 / 3 operations by one worker, whose turn is every sixth cycle.
  const double alone = block * block * block / 6 * factor * workers;
  const auto busy = std::min<std::uint64_t>(a.items, target.getNumTiles());
  native::addComputeSet(found, target, blocks * rounds * (alone + 50), busy);
  found.sync_cycles += (blocks - 1) * target.getMaxIPUSyncDelay();
  const double unrolled = steps.halves ? 1 + std::ceil(std::log2(blocks)) : blocks;
  found.code_bytes += static_cast<std::uint64_t>(512 * unrolled);
  found.temporary_bytes +=
      static_cast<std::uint64_t>(block * block) * target.getTypeSize(a.type) * (a.complex ? 2 : 1);
  return found;
}

}  // namespace popx::batch
