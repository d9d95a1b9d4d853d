#pragma once
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Operation.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

/// How to reduce. With `update` the result is added to the output; with a scale (a FLOAT scalar)
/// it is multiplied first. Both are only for ADD, SQUARE_ADD and LOG_ADD. For LOG_ADD the result is
/// log-added to the output, and the scale is a logarithm that is added.
struct ReduceParams {
  ReduceParams() = default;
  ReduceParams(popops::Operation op, bool update = false) : op(op), update(update) {}  // NOLINT
  ReduceParams(popops::Operation op, bool update, poplar::Tensor scale)
      : op(op), update(update), useScale(true), scale(std::move(scale)) {}

  popops::Operation op = Operation::ADD;
  bool update = false;
  bool useScale = false;
  poplar::Tensor scale;
};

/// Reduces `in` over `dims`, which may repeat; the result has the others, in order. Integers wrap;
/// half is accumulated in float and rounded once; MIN and MAX propagate NaN. Reducing no elements
/// gives the operation's identity. Cost: poplibs ReductionPlan.cpp and
/// CycleEstimationFunctions.cpp.
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& outType,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});
/// The result has the type of `in`.
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});
/// Writes (or, with params.update, adds to) `out`, whose shape may differ in dimensions of 1.
void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});

/// The same in compute sets that the caller executes, in order: they are appended to `css`.
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Type& outType,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});
poplar::Tensor reduce(poplar::Graph& graph, const poplar::Tensor& in,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});
void reduceWithOutput(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& out,
                      const std::vector<std::size_t>& dims, ReduceParams params,
                      std::vector<poplar::ComputeSet>& css,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {});

/// One of several reductions.
struct SingleReduceOp {
  SingleReduceOp(poplar::Tensor in, std::vector<std::size_t> dims, ReduceParams params,
                 poplar::Type accumulateType, std::string debugName = "")
      : in(std::move(in)),
        dims(std::move(dims)),
        params(std::move(params)),
        accumulateType(accumulateType),
        useOutType(true),
        debugName(std::move(debugName)) {}
  SingleReduceOp(poplar::Tensor in, std::vector<std::size_t> dims, ReduceParams params,
                 std::string debugName = "")
      : in(std::move(in)),
        dims(std::move(dims)),
        params(std::move(params)),
        debugName(std::move(debugName)) {}
  poplar::Tensor in;
  std::vector<std::size_t> dims;
  ReduceParams params;
  poplar::Type accumulateType;
  bool useOutType = false;
  std::string debugName;
};

/// Runs reductions one after another. Valid `outputs` are written; others are created and returned
/// there.
void reduceMany(poplar::Graph& graph, const std::vector<SingleReduceOp>& reductions,
                std::vector<poplar::Tensor>& outputs, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext = {},
                const poplar::OptionFlags& options = {});

}  // namespace popops
