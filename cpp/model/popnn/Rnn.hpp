#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poputil/DebugInfo.hpp"

namespace popnn {
/// Recurrent networks of any cell. On the IPU Model a network is one shard: numShards has no
/// effect.
namespace rnn {

struct RnnParams {
  poplar::Type dataType;
  std::size_t batchSize;
  std::size_t maxTimeSteps;
  std::size_t timeSteps;  ///< deprecated: maxTimeSteps
  /// The steps at run time, of INT or UNSIGNED_INT: [batchSize], or one element for all sequences.
  /// Invalid if each sequence has maxTimeSteps.
  poplar::Tensor varTimeSteps;
  std::vector<std::size_t> layerSizes;  ///< input size, output size

  RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
            std::vector<std::size_t> layerSizes);
  RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
            const poplar::Tensor& varTimeSteps, std::vector<std::size_t> layerSizes);

  std::size_t getMaxShards(const poplar::Graph& graph) const;
  /// Bytes of one step's input (output) on the fullest tile.
  std::size_t getInputBytesPerTile(const poplar::Graph& graph) const;
  std::size_t getOutputBytesPerTile(const poplar::Graph& graph) const;
  bool variableTimeSteps() const;
  bool batchVariableTimeSteps() const;
};

/// [multiple, batchSize, output size (isOutput) or input size].
poplar::Tensor createInitialState(poplar::Graph& graph, const RnnParams& params, bool isOutput,
                                  unsigned multiple, unsigned numShards,
                                  const poplar::DebugContext& debugContext = {});
/// [maxTimeSteps, batchSize, size], each step mapped alike.
poplar::Tensor createRecurrentTensor(poplar::Graph& graph, const RnnParams& params, unsigned size,
                                     unsigned numShards,
                                     const poplar::DebugContext& debugContext = {});
poplar::Tensor createInputTensor(poplar::Graph& graph, const RnnParams& params, unsigned numShards,
                                 const poplar::DebugContext& debugContext = {});
poplar::Tensor createOutputTensor(poplar::Graph& graph, const RnnParams& params, unsigned numShards,
                                  const poplar::DebugContext& debugContext = {});
/// [maxTimeSteps * multiple, batchSize, output size].
poplar::Tensor createOutputTensor(poplar::Graph& graph, const RnnParams& params, unsigned multiple,
                                  unsigned numShards,
                                  const poplar::DebugContext& debugContext = {});

/// tBase shifted by one step: step 0 is a copy of tSingle, and step n is step n - 1 of tBase.
poplar::Tensor shiftRnnTensor(poplar::Graph& graph, const RnnParams& params,
                              const poplar::Tensor& tBase, const poplar::Tensor& tSingle,
                              poplar::program::Sequence& prog, unsigned numShards,
                              const poplar::DebugContext& debugContext = {});

/// The tensors of one step: inputs [batch, size]; the others keep a leading dimension of their
/// multiple.
struct RnnSlice {
  std::vector<poplar::Tensor> inputs;
  poplar::Tensor interimIn;
  poplar::Tensor interimOut;
  std::vector<poplar::Tensor> outputs;
};

/// For each sequence of the batch, in dataType: whether it has this step (1 or 0), and the inverse.
/// Valid if the steps are given per sequence.
struct RnnBatchwiseFlags {
  poplar::Tensor mask;
  poplar::Tensor inverse;

  bool valid() const { return mask.valid(); }
};

/// UNSIGNED_INT [1]: the first step of the shard (0) and the step; BOOL, valid if the steps are
/// variable: whether any sequence has this step.
struct TimeStepState {
  poplar::Tensor begin;
  poplar::Tensor counter;
  poplar::Tensor variableSeqFlag;
};

/// The program of one step. It updates the state tensors in place, reads the slice's inputs and
/// interimIn and writes its outputs and interimOut. It may add its own tensors to `created`, and
/// their initialisation to the given program, which runs before the loop.
using LoopBodyType = std::function<poplar::program::Sequence(
    poplar::Graph& graph, const TimeStepState& time, const RnnBatchwiseFlags&,
    std::vector<poplar::Tensor>&, const RnnSlice& slice, std::vector<poplar::Tensor>&,
    poplar::program::Sequence*, const poplar::DebugNameAndId&)>;

/// The program that processes the temporaries of the last `stepsPerGather` steps, slice.interimIn
/// [stepsPerGather * numTemps, batch, output size] in the order of time, and slice.inputs [steps,
/// batch, size].
using GatherBodyType = std::function<poplar::program::Sequence(
    poplar::Graph& graph, const RnnSlice& slice, unsigned stepsPerGather,
    poplar::program::Sequence*, const poplar::DebugNameAndId&)>;

/// Keeps the state of an index for each step in `output` [maxTimeSteps, batch, size], which may be
/// invalid.
struct StateSequence {
  poplar::Tensor output;
  std::size_t stateIndex;
};

/// Runs a cell for each step, from the last one if `reverse`. Returns the states after the last
/// step run, then the tensors that loopFn added to `created`. Steps past the end of all sequences
/// do not run; sequences, also a StateSequence's, are zero there.
///
/// interimIn, interimOut and outputs have their steps in dimension 0: [maxTimeSteps * multiple,
/// batch, size] or [maxTimeSteps, multiple, batch, size]. Options: codeReuse has no effect.
std::vector<poplar::Tensor> Rnn(poplar::Graph& graph, const RnnParams& params, bool reverse,
                                const std::vector<poplar::Tensor>& initState,
                                const StateSequence& stateSequence,
                                const std::vector<poplar::Tensor>& inputs,
                                const poplar::Tensor* interimIn, poplar::Tensor* interimOut,
                                const std::vector<poplar::Tensor>& outputs,
                                const std::vector<poplar::Tensor>& created,
                                poplar::program::Sequence& prog, const LoopBodyType& loopFn,
                                unsigned numShards, poplar::OptionFlags& options,
                                const poplar::DebugContext& debugContext = {});

/// The same backwards in time, with numTemps temporaries [batch, output size] of each step in
/// slice.interimOut, which gatherFn processes after every stepsPerGather steps; maxTimeSteps must
/// be a multiple of it.
std::vector<poplar::Tensor> Rnn(
    poplar::Graph& graph, const RnnParams& params, const std::vector<poplar::Tensor>& initState,
    const StateSequence& stateSequence, const std::vector<poplar::Tensor>& inputs,
    const poplar::Tensor& interimIn, const unsigned numTemps, poplar::program::Sequence& prog,
    const LoopBodyType& loopFn, const std::vector<poplar::Tensor>& gatherInputs,
    const GatherBodyType& gatherFn, unsigned numShards, unsigned stepsPerGather,
    poplar::OptionFlags& options, const poplar::DebugContext& debugContext = {});

}  // namespace rnn
}  // namespace popnn
