#include "popnn/Rnn.hpp"

#include <algorithm>
#include <string>

#include "popops/Cast.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/Reduce.hpp"
#include "popops/Zero.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::rnn {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
namespace pe = popops::expr;

void checkParams(const RnnParams& params) {
  if (params.layerSizes.size() == 2 && params.maxTimeSteps > 0 && params.batchSize > 0) return;
  throw poputil::poplibs_error(
      "[popnn::rnn] needs batches, time steps and two layer sizes, of input and output; got " +
      std::to_string(params.batchSize) + " sequences of " + std::to_string(params.maxTimeSteps) +
      " steps and " + std::to_string(params.layerSizes.size()) +
      " layer sizes. Run one layer at a time.");
}

/// [steps * multiple, ...] or [steps, multiple, ...] as the latter.
Tensor byStep(const Tensor& t, std::size_t steps) {
  if (t.rank() > 3 && t.dim(0) == steps) return t;
  if (t.rank() == 0 || t.dim(0) % steps != 0)
    throw poputil::poplibs_error("[popnn::rnn::Rnn] needs a sequence of " + std::to_string(steps) +
                                 " steps in dimension 0; got " + t.shapeToString() + ".");
  return t.reshapePartial(0, 1, {steps, t.dim(0) / steps});
}

/// The tile of a layer's first elements. Sizes choose it, so that layers begin on different tiles.
unsigned firstTile(const Graph& graph, const RnnParams& params) {
  std::size_t seed = params.maxTimeSteps;
  for (const std::size_t n : {params.batchSize, params.layerSizes[0], params.layerSizes[1]})
    seed = seed * 31 + n;
  return static_cast<unsigned>(seed % graph.getTarget().getNumTiles());
}

/// [steps][multiple][batch][size]: an element's steps and multiples are on one tile, the same for
/// all tensors of a layer and size, so that slices of a step and states lie together.
Tensor aligned(Graph& graph, const RnnParams& params, std::size_t steps, std::size_t multiple,
               std::size_t size, const DebugContext& debug) {
  const Tensor t =
      graph.addVariable(params.dataType, {params.batchSize, size, steps, multiple}, debug);
  const std::size_t elements = params.batchSize * size;
  const std::size_t tiles = graph.getTarget().getNumTiles();
  const std::size_t of_tile = std::max<std::size_t>(
      (elements + tiles - 1) / tiles, graph.getTarget().getVectorWidth(params.dataType));
  poplar::Graph::TileToTensorMapping mapping(tiles);
  const unsigned first = firstTile(graph, params);
  for (std::size_t i = 0; i * of_tile < elements; ++i)
    mapping[(first + i) % tiles].emplace_back(
        i * of_tile * steps * multiple, std::min(elements, (i + 1) * of_tile) * steps * multiple);
  graph.setTileMapping(t, mapping);
  return t.dimShuffle({2, 3, 0, 1});
}

/// A variable mapped as a step of a sequence.
Tensor oneStep(Graph& graph, const Tensor& step, const DebugContext& debug) {
  return graph.clone(step, debug, poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
}

std::size_t bytesOnFullestTile(const Graph& graph, const RnnParams& params, std::size_t size) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  const std::size_t elements = (params.batchSize * size + tiles - 1) / tiles;
  return elements * graph.getTarget().getTypeSize(params.dataType);
}

/// What both kinds of network share: the work of one step.
class Network {
 public:
  Network(Graph& graph, const RnnParams& params, const std::vector<Tensor>& initState,
          StateSequence sequence, const std::vector<Tensor>& inputs, Sequence& prog,
          const DebugContext& debug)
      : graph_(graph),
        params_(params),
        sequence_(std::move(sequence)),
        inputs_(inputs),
        debug_(debug) {
    checkParams(params);
    if (sequence_.output.valid() && sequence_.stateIndex >= initState.size())
      throw poputil::poplibs_error("[popnn::rnn::Rnn] needs a state index below " +
                                   std::to_string(initState.size()) + "; got " +
                                   std::to_string(sequence_.stateIndex) + ".");
    for (const Tensor& t : initState) {
      const bool is_batch =
          t.rank() == 3 && t.dim(1) == params.batchSize && t.elementType() == params.dataType;
      states_.push_back(is_batch
                            ? aligned(graph, params, 1, t.dim(0), t.dim(2), {debug, "state"})[0]
                            : graph.clone(t, {debug, "state"}));
      prog.add(Copy(t, states_.back(), false, {debug, "state"}));
    }
    for (const char* name : {"begin", "counter"}) {
      Tensor& t = name[0] == 'b' ? time_.begin : time_.counter;
      t = graph.addVariable(poplar::UNSIGNED_INT, {1}, {debug, name});
      graph.setTileMapping(t, 0);
      popops::zero(graph, t, prog, {debug, name});
    }
    if (!params.variableTimeSteps()) return;
    const Tensor given = params.varTimeSteps.flatten();
    if (given.numElements() != 1 && given.numElements() != params.batchSize)
      throw poputil::poplibs_error("[popnn::rnn] needs time steps for each of the " +
                                   std::to_string(params.batchSize) + " sequences, or one; got " +
                                   given.shapeToString() + ".");
    limits_ = given.elementType() == poplar::UNSIGNED_INT
                  ? given
                  : popops::cast(graph, given, poplar::UNSIGNED_INT, prog, {debug, "limits"});
  }

  /// Zeroes what steps that do not run would leave undefined.
  void clear(const std::vector<Tensor>& sequences, Sequence& prog) {
    if (!params_.variableTimeSteps()) return;
    for (const Tensor& t : sequences) popops::zero(graph_, t, prog, {debug_, "zero"});
    if (sequence_.output.valid()) popops::zero(graph_, sequence_.output, prog, {debug_, "zero"});
  }

  /// Adds one step at time.counter, which `body` fills; it runs if any sequence has this step.
  template <class Body>
  void addStep(Sequence& loop, const Body& body) {
    if (!params_.variableTimeSteps()) {
      body(loop);
      return;
    }
    const auto flags = popops::lt(graph_, time_.counter, limits_, loop, {debug_, "within"});
    time_.variableSeqFlag = popops::reduce(graph_, flags, {0}, popops::Operation::LOGICAL_OR, loop,
                                           {debug_, "anyWithin"});
    Sequence step(debug_);
    if (params_.batchVariableTimeSteps()) {
      flags_.mask = popops::cast(graph_, flags, params_.dataType, step, {debug_, "mask"});
      flags_.inverse = popops::map(graph_, pe::Const(params_.dataType, 1.0f) - pe::_1,
                                   {flags_.mask}, step, {debug_, "inverse"});
    }
    body(step);
    loop.add(poplar::program::If(time_.variableSeqFlag, step, Sequence(debug_), debug_));
  }

  Tensor sliceOf(const Tensor& sequence, Sequence& prog) {
    const Tensor slice = oneStep(graph_, sequence.slice(0, 1), {debug_, "slice"});
    popops::dynamicSliceWithOutput(graph_, slice, sequence, time_.counter, {0}, {1}, prog,
                                   {debug_, "slice"});
    return slice.squeeze({0});
  }
  void update(const Tensor& sequence, const Tensor& step, Sequence& prog) {
    popops::dynamicUpdate(graph_, sequence, step.expand({0}), time_.counter, {0}, {1}, prog,
                          {debug_, "update"});
  }
  std::vector<Tensor> inputSlices(Sequence& prog) {
    std::vector<Tensor> slices;
    for (const Tensor& t : inputs_) slices.push_back(sliceOf(t, prog));
    return slices;
  }
  void keepState(Sequence& prog) {
    if (!sequence_.output.valid()) return;
    Tensor state = states_[sequence_.stateIndex];
    if (flags_.valid())
      state = popops::mul(graph_, state, flags_.mask.expand({1}), prog, {debug_, "masked"});
    popops::dynamicUpdate(graph_, byStep(sequence_.output, params_.maxTimeSteps), state.expand({0}),
                          time_.counter, {0}, {1}, prog, {debug_, "sequence"});
  }

  Graph& graph_;
  const RnnParams& params_;
  StateSequence sequence_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> states_;
  TimeStepState time_;
  RnnBatchwiseFlags flags_;
  DebugContext debug_;

 private:
  Tensor limits_;
};

std::vector<Tensor> joined(std::vector<Tensor> states, const std::vector<Tensor>& created) {
  states.insert(states.end(), created.begin(), created.end());
  return states;
}

}  // namespace

RnnParams::RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps,
                     std::vector<std::size_t> layerSizes)
    : RnnParams(dataType, batchSize, timeSteps, Tensor(), std::move(layerSizes)) {}

RnnParams::RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
                     const Tensor& varTimeSteps, std::vector<std::size_t> layerSizes)
    : dataType(dataType),
      batchSize(batchSize),
      maxTimeSteps(maxTimeSteps),
      timeSteps(maxTimeSteps),
      varTimeSteps(varTimeSteps),
      layerSizes(std::move(layerSizes)) {}

std::size_t RnnParams::getMaxShards(const Graph&) const { return 1; }
std::size_t RnnParams::getInputBytesPerTile(const Graph& graph) const {
  return bytesOnFullestTile(graph, *this, layerSizes.at(0));
}
std::size_t RnnParams::getOutputBytesPerTile(const Graph& graph) const {
  return bytesOnFullestTile(graph, *this, layerSizes.at(1));
}
bool RnnParams::variableTimeSteps() const { return varTimeSteps.valid(); }
bool RnnParams::batchVariableTimeSteps() const {
  return varTimeSteps.valid() && varTimeSteps.numElements() > 1;
}

Tensor createInitialState(Graph& graph, const RnnParams& params, bool isOutput, unsigned multiple,
                          unsigned, const DebugContext& debugContext) {
  checkParams(params);
  return aligned(graph, params, 1, multiple, params.layerSizes[isOutput ? 1 : 0],
                 {debugContext, "initialState"})[0];
}

Tensor createRecurrentTensor(Graph& graph, const RnnParams& params, unsigned size, unsigned,
                             const DebugContext& debugContext) {
  checkParams(params);
  return aligned(graph, params, params.maxTimeSteps, 1, size, {debugContext, "sequence"})
      .squeeze({1});
}

Tensor createInputTensor(Graph& graph, const RnnParams& params, unsigned numShards,
                         const DebugContext& debugContext) {
  checkParams(params);
  return createRecurrentTensor(graph, params, static_cast<unsigned>(params.layerSizes[0]),
                               numShards, debugContext);
}

Tensor createOutputTensor(Graph& graph, const RnnParams& params, unsigned numShards,
                          const DebugContext& debugContext) {
  return createOutputTensor(graph, params, 1, numShards, debugContext);
}

Tensor createOutputTensor(Graph& graph, const RnnParams& params, unsigned multiple, unsigned,
                          const DebugContext& debugContext) {
  checkParams(params);
  return aligned(graph, params, params.maxTimeSteps, multiple, params.layerSizes[1],
                 {debugContext, "output"})
      .reshapePartial(0, 2, {params.maxTimeSteps * multiple});
}

Tensor shiftRnnTensor(Graph& graph, const RnnParams& params, const Tensor& tBase,
                      const Tensor& tSingle, Sequence& prog, unsigned,
                      const DebugContext& debugContext) {
  const Tensor steps = byStep(tBase, params.maxTimeSteps);
  const Tensor first = graph.clone(steps.slice(0, 1), {debugContext, "first"});
  prog.add(Copy(tSingle.reshape(first.shape()), first, false, {debugContext, "first"}));
  return poplar::concat(first, steps.slice(0, params.maxTimeSteps - 1)).reshape(tBase.shape());
}

std::vector<Tensor> Rnn(Graph& graph, const RnnParams& params, bool reverse,
                        const std::vector<Tensor>& initState, const StateSequence& stateSequence,
                        const std::vector<Tensor>& inputs, const Tensor* interimIn,
                        Tensor* interimOut, const std::vector<Tensor>& outputs,
                        const std::vector<Tensor>& created, Sequence& prog,
                        const LoopBodyType& loopFn, unsigned, poplar::OptionFlags&,
                        const DebugContext& debugContext) {
  const std::size_t steps = params.maxTimeSteps;
  Network network(graph, params, initState, stateSequence, inputs, prog, debugContext);
  std::vector<Tensor> written;
  for (const Tensor& t : outputs) written.push_back(byStep(t, steps));
  if (interimOut != nullptr) written.push_back(byStep(*interimOut, steps));
  network.clear(written, prog);
  auto made = created;
  Sequence loop(debugContext), init(debugContext);
  network.addStep(loop, [&](Sequence& step) {
    RnnSlice slice;
    slice.inputs = network.inputSlices(step);
    if (interimIn != nullptr) slice.interimIn = network.sliceOf(byStep(*interimIn, steps), step);
    std::vector<Tensor> parts;
    for (const Tensor& t : written) parts.push_back(oneStep(graph, t[0], {debugContext, "step"}));
    slice.outputs.assign(parts.begin(), parts.begin() + static_cast<long>(outputs.size()));
    if (interimOut != nullptr) slice.interimOut = parts.back();
    step.add(loopFn(graph, network.time_, network.flags_, network.states_, slice, made, &init,
                    {debugContext.getPathName()}));
    for (std::size_t i = 0; i < parts.size(); ++i) network.update(written[i], parts[i], step);
    network.keepState(step);
  });
  const Tensor& counter = network.time_.counter;
  if (reverse)
    popops::fill(graph, counter, prog, static_cast<unsigned>(steps - 1), {debugContext, "last"});
  if (reverse)
    popops::subInPlace(graph, counter, 1u, loop, {debugContext, "previous"});
  else
    popops::addInPlace(graph, counter, 1u, loop, {debugContext, "next"});
  prog.add(init);
  prog.add(poplar::program::Repeat(static_cast<unsigned>(steps), loop, debugContext));
  return joined(network.states_, made);
}

std::vector<Tensor> Rnn(Graph& graph, const RnnParams& params, const std::vector<Tensor>& initState,
                        const StateSequence& stateSequence, const std::vector<Tensor>& inputs,
                        const Tensor& interimIn, const unsigned numTemps, Sequence& prog,
                        const LoopBodyType& loopFn, const std::vector<Tensor>& gatherInputs,
                        const GatherBodyType& gatherFn, unsigned, unsigned stepsPerGather,
                        poplar::OptionFlags&, const DebugContext& debugContext) {
  const std::size_t steps = params.maxTimeSteps;
  if (stepsPerGather == 0 || steps % stepsPerGather != 0)
    throw poputil::poplibs_error("[popnn::rnn::Rnn] needs steps per gather that divide the " +
                                 std::to_string(steps) + " time steps; got " +
                                 std::to_string(stepsPerGather) + ".");
  Network network(graph, params, initState, stateSequence, inputs, prog, debugContext);
  network.clear({}, prog);
  const Tensor& counter = network.time_.counter;
  const Tensor buffer = popops::createSliceableTensor(
      graph, params.dataType, {stepsPerGather, numTemps, params.batchSize, params.layerSizes.at(1)},
      {0}, {1}, 0, {debugContext, "temporaries"});
  std::vector<Tensor> made;
  Sequence loop(debugContext), round(debugContext), init(debugContext);
  network.clear({buffer}, round);
  network.addStep(loop, [&](Sequence& step) {
    RnnSlice slice;
    slice.inputs = network.inputSlices(step);
    if (interimIn.valid()) slice.interimIn = network.sliceOf(byStep(interimIn, steps), step);
    slice.interimOut = graph.clone(buffer[0], {debugContext, "step"});
    step.add(loopFn(graph, network.time_, network.flags_, network.states_, slice, made, &init,
                    {debugContext.getPathName()}));
    const Tensor at = popops::rem(graph, counter, stepsPerGather, step, {debugContext, "at"});
    popops::dynamicUpdate(graph, buffer, slice.interimOut.expand({0}), at, {0}, {1}, step,
                          {debugContext, "update"});
    network.keepState(step);
  });
  popops::subInPlace(graph, counter, 1u, loop, {debugContext, "previous"});
  round.add(poplar::program::Repeat(stepsPerGather, loop, debugContext));
  RnnSlice gathered;
  const Tensor first = popops::add(graph, counter, 1u, round, {debugContext, "first"});
  for (const Tensor& t : gatherInputs)
    gathered.inputs.push_back(popops::dynamicSlice(graph, t, first, {0}, {stepsPerGather}, round,
                                                   {debugContext, "gather"}));
  gathered.interimIn = buffer.reshapePartial(0, 2, {std::size_t{stepsPerGather} * numTemps});
  round.add(gatherFn(graph, gathered, stepsPerGather, &init, {debugContext.getPathName()}));
  popops::fill(graph, counter, prog, static_cast<unsigned>(steps - 1), {debugContext, "last"});
  prog.add(init);
  prog.add(
      poplar::program::Repeat(static_cast<unsigned>(steps / stepsPerGather), round, debugContext));
  return joined(network.states_, made);
}

}  // namespace popnn::rnn
