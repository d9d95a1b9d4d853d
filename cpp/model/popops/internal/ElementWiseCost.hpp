#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/ops/ElementwiseCycles.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Tensor.hpp"

/// Costs of elementwise work on tiles: poplibs' estimators, with launch constants measured on
/// hardware.
namespace popops::elementwise {

using ipujax::engine::ElementType;
using ipujax::engine::expr::ExprProgram;

using ipujax::engine::expr::kLaunchCycles;
using ipujax::engine::expr::kSupervisorLaunchCycles;
using ipujax::engine::expr::kTimerCycles;

/// Worker cycles of one operation on n elements, loads and stores included.
double loopCycles(ipujax::engine::expr::Op op, ElementType operand, ElementType result,
                  std::uint64_t n);

/// Tile cycles of one vertex doing `program` on n elements, launch included. `scalar[i]`: input i
/// is one element (which uses a broadcast-scalar vertex if there is one).
double vertexCycles(const ExprProgram& program, const std::vector<bool>& scalar, std::uint64_t n,
                    unsigned workers);
double scaledAddCycles(ElementType type, std::uint64_t n, unsigned workers);
double castCycles(ElementType from, ElementType to, std::uint64_t n, unsigned workers);
double fillCycles(ElementType type, std::uint64_t n, unsigned workers);

/// Cost of a map: operands move to the output's tiles, then one compute set runs. `cycles` gives
/// the cycles for n elements if the work has a dedicated vertex.
ipujax::engine::Cost costOf(const poplar::Graph& graph, const ExprProgram& program,
                            const std::vector<poplar::Tensor>& inputs,
                            const std::vector<poplar::Tensor>& outputs,
                            const std::function<double(std::uint64_t)>& cycles = {});

}  // namespace popops::elementwise

namespace popops {

/// Tile cycles of `op` ("add", "scaled_add", "exp", ... : the engine's names) on n elements of one
/// tile, as the tile's cycle counter would measure, minus its own time. For benches and tests.
double elementwiseCycles(const std::string& op, const poplar::Type& type, std::uint64_t n,
                         unsigned workers);

}  // namespace popops
