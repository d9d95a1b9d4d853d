#pragma once
#include <cstdint>

#include "engine/Cost.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poplin/PlanningCache.hpp"
#include "poplin/internal/Plan.hpp"

/// Where planned operands lie. A variable made for a plan is contiguous and row-major, so that it
/// can be bound to a host array; its elements are spread in order, as many on a tile as the plan
/// keeps there.
namespace poplin {

/// Maps `t` as a plan expects: at most `per_tile` elements on a tile, fewer if tiles are plenty.
void placeAsPlanned(poplar::Graph& graph, const poplar::Tensor& t, std::uint64_t per_tile);

/// The same for weights [G, Co, Ci, kernel...] that are read in slices of the output channels, one
/// after another: each slice is on all tiles, at the same places, so that taking one moves nothing.
void placeInSlices(poplar::Graph& graph, const poplar::Tensor& weights, std::uint64_t per_tile,
                   std::uint64_t slices);

/// Whether t's elements are those of a variable with that mapping.
bool isPlacedAsPlanned(const poplar::Graph& graph, const poplar::Tensor& t, std::uint64_t per_tile);

/// The plan for these operands. Its cycles include moving and regrouping those that are not where
/// the plan reads them; limits_moves says whether the moves count towards its memory limit.
plan::Plan planForOperands(const poplar::Graph& graph, plan::Problem problem,
                           const poplar::Tensor& in, const poplar::Tensor& weights,
                           PlanningCache* cache);

bool isFloating(poplar::Type type);  ///< FLOAT or HALF

/// Quarters as HALF, which holds their significands; others unchanged. Values beyond HALF's
/// exponents become infinite or zero. Our cost estimate is one extra cast, or none for an IPU whose
/// tiles take quarters.
poplar::Tensor withoutQuarters(poplar::Graph& graph, const poplar::Tensor& t,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext, bool is_free = false);

/// Whether tiles have vertices for products of quarters: in poplibs only IPU21, a C600, has them.
bool multipliesQuarters(const poplar::Graph& graph);

/// Throws type_error unless poplin::`where` can multiply these; `sign` stands for the product.
void checkTypes(const char* where, poplar::Type a, const char* sign, poplar::Type b,
                poplar::Type out);

/// The type in which a product's vertices multiply: a's where floats are multiplied, else the
/// widest of the three.
ipujax::engine::ElementType multipliedType(poplar::Type a, poplar::Type b, poplar::Type out);

/// Charges the cast of an integer operand that is narrower than the type multiplied, on the tiles
/// that hold it.
void addWidening(ipujax::engine::Cost& cost, const poplar::Graph& graph, const poplar::Tensor& t,
                 ipujax::engine::ElementType multiplied);

}  // namespace poplin
