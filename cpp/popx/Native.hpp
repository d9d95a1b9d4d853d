#pragma once
#include <string>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/kernels/Copy.hpp"
#include "engine/kernels/FftPlan.hpp"
#include "engine/kernels/HostCallback.hpp"
#include "engine/kernels/MatrixBatch.hpp"
#include "engine/kernels/ReduceBody.hpp"
#include "engine/kernels/SortKeys.hpp"
#include "engine/kernels/Window.hpp"
#include "gcl/internal/ReplicaGroups.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popnn/internal/ReduceWindow.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/Gather.hpp"
#include "popops/internal/Map.hpp"
#include "popops/internal/ReduceCost.hpp"
#include "popops/internal/ReduceStep.hpp"
#include "popops/internal/Scatter.hpp"
#include "popops/internal/Sort.hpp"

/// The seam: all that popx takes of the model. A popx function that is no composition of public
/// calls yet adds a step (`native::emit`: the name of a host kernel, its operands, attributes and
/// cost), or calls what a public function of PopLibs is made of and more general than it is. popx
/// includes this header and public ones, nothing else; where there is no model, this is the one
/// file to replace, by one that refuses.
namespace popx::native {

using namespace ipujax::engine;  // NOLINT: a seam is what is on its other side
using gcl::groups::ReplicaGroups;
using popnn::internal::reduceWindowNamed;
using popnn::internal::windowCost;
using popnn::internal::windowOrScanCost;
using popnn::internal::windowOutputShape;
using popops::internal::compileExpr;
using popops::internal::emitReduce;
using popops::internal::ReduceStep;

}  // namespace popx::native
