#pragma once
#include <string>

#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/CodeletStatics.hpp"
#include "engine/codelets/CodeletStore.hpp"
#include "engine/codelets/Compiler.hpp"
#include "engine/graph/CopyCost.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/graph/RemoteCopy.hpp"
#include "engine/kernels/conv/Window.hpp"
#include "engine/kernels/host/HostCallback.hpp"
#include "engine/kernels/linalg/FftPlan.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "engine/kernels/reduce/ReduceBody.hpp"
#include "engine/kernels/sort/SortKeys.hpp"
#include "engine/ops/SoftwareArithmetic.hpp"
#include "gcl/internal/ReplicaGroups.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "popnn/internal/CTC.hpp"
#include "popnn/internal/ReduceWindow.hpp"
#include "popops/internal/DynamicSlice.hpp"
#include "popops/internal/ExprCompile.hpp"
#include "popops/internal/Gather.hpp"
#include "popops/internal/Map.hpp"
#include "popops/internal/ReduceCost.hpp"
#include "popops/internal/ReduceStep.hpp"
#include "popops/internal/Scatter.hpp"
#include "popops/internal/Sort.hpp"

/// Everything that popx uses of the model. A popx function that is not yet a composition of public
/// calls adds a step (`native::emit`: the name of a host kernel, its operands, attributes and
/// cost), or calls a more general internal function that a public one of PopLibs is built on. popx
/// includes only this header and public ones; without a model, this is the one file to replace, by
/// one that refuses.
namespace popx::native {

namespace groups = gcl::groups;

using ipujax::engine::Access;
using ipujax::engine::addComputeSet;
using ipujax::engine::addExchange;
using ipujax::engine::addHostTransfer;
using ipujax::engine::appendCopy;
using ipujax::engine::appendRemoteCopy;
using ipujax::engine::Attributes;
using ipujax::engine::ceilDiv;
using ipujax::engine::CodeletFault;
using ipujax::engine::copyCost;
using ipujax::engine::Cost;
using ipujax::engine::DebugContext;
using ipujax::engine::elementsOf;
using ipujax::engine::ElementType;
using ipujax::engine::elementTypeOf;
using ipujax::engine::emit;
using ipujax::engine::FftType;
using ipujax::engine::FloatOrder;
using ipujax::engine::forEachRun;
using ipujax::engine::guarded;
using ipujax::engine::HalfBehaviour;
using ipujax::engine::hideConstructors;
using ipujax::engine::makeNode;
using ipujax::engine::Outside;
using ipujax::engine::placementOf;
using ipujax::engine::ProgramKind;
using ipujax::engine::ProgramNode;
using ipujax::engine::reshapeView;
using ipujax::engine::rowMajorStrides;
using ipujax::engine::runCompiler;
using ipujax::engine::runConstructors;
using ipujax::engine::shapeText;
using ipujax::engine::share;
using ipujax::engine::softwareMultiplyAddCycles;
using ipujax::engine::SortKey;
using ipujax::engine::StepSpec;
using ipujax::engine::TemporaryFolder;
using ipujax::engine::TurnBuffers;
using ipujax::engine::Use;
using ipujax::engine::VariableUse;
using ipujax::engine::ViewPtr;
using ipujax::engine::Window;
using ipujax::engine::writeFile;
using ipujax::engine::batch::kMostRows;
using ipujax::engine::expr::ExprProgram;
using ipujax::engine::fourier::kLargestRadix;
using ipujax::engine::fourier::largestPrimeFactor;
using ipujax::engine::reduction::reducerOf;
using popnn::internal::ctcLoss;
using popnn::internal::reduceWindowNamed;
using popnn::internal::windowCost;
using popnn::internal::windowOrScanCost;
using popnn::internal::windowOutputShape;
using popops::internal::clampedSlice;
using popops::internal::clampedUpdate;
using popops::internal::compileExpr;
using popops::internal::emitReduce;
using popops::internal::reduceCost;
using popops::internal::ReduceStep;
using popops::internal::VertexRate;

}  // namespace popx::native
