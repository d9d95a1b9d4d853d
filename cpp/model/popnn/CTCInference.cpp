#include "popnn/CTCInference.hpp"

#include <limits>

#include "poplin/MatMul.hpp"
#include "popnn/LogSoftmax.hpp"
#include "popnn/Rnn.hpp"
#include "popnn/internal/CTC.hpp"
#include "popnn/internal/Fused.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Encoding.hpp"
#include "popops/Reduce.hpp"
#include "popops/TopK.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::ctc_infer {
namespace {

using internal::ctcConstant;
using internal::kLogZero;
using internal::logAdd;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
namespace pe = popops::expr;
using pe::_1;
using pe::_2;
using pe::_3;
using pe::_4;
using pe::Const;
using pe::Select;

/// W beams for each of B sequences, in FLOAT [B][W][T + 4]. The last dimension holds labels (blank
/// after the end), length, last label (blank if there is none), and log-probabilities of alignments
/// that end in a blank and in the last label.
struct Beams {
  Tensor all;
  std::size_t T;
  Tensor labels() const { return all.slice(0, T, 2); }
  Tensor column(std::size_t i) const { return all.slice(T + i, T + i + 1, 2); }  // [B][W][1]
  Tensor length() const { return column(0); }
  Tensor last() const { return column(1); }
  Tensor blank() const { return column(2); }
  Tensor label() const { return column(3); }
};

/// One step of the search. C classes.
class Step {
 public:
  Step(Graph& graph, const Beams& beams, const Tensor& logs, unsigned blank, Sequence& prog,
       const DebugContext& debug)
      : graph_(graph),
        prog_(prog),
        debug_(debug),
        beams_(beams),
        logs_(logs),
        blank_(static_cast<float>(blank)),
        B(beams.all.dim(0)),
        W(beams.all.dim(1)),
        C(logs.dim(1)) {
    classes_ = numbers(C);
    places_ = numbers(beams.T);
  }

  /// The beams after the step, [B][W][T + 4].
  Tensor run() {
    const Tensor lasts = oneHot(beams_.last(), classes_);  // [B][W][C]
    const Tensor step = logs_.expand({1});                 // [B][1][C]
    const Tensor total = map(logAdd({_1, _2}), {beams_.blank(), beams_.label()});
    // Append a label; the last one may repeat only after a blank.
    Tensor longer =
        map(Select(_1, _2, _3 > Const(0.5f)) + _4, {beams_.blank(), total, lasts, step});
    longer = map(Select(Const(kLogZero), _1, _2 == Const(blank_)), {longer, classes_});
    const Tensor again = sum(map(_1 * _2, {lasts, step}));  // [B][W][1]
    const auto blank = static_cast<std::size_t>(blank_);
    const Tensor endBlank = map(_1 + _2, {total, step.slice(blank, blank + 1, 2)});
    Tensor endLabel = map(Select(Const(kLogZero), _1 + _2, _3 == Const(0.0f)),
                          {beams_.label(), again, beams_.length()});
    endLabel = merge(lasts, longer, endLabel);
    return select(endBlank, endLabel, longer);
  }

 private:
  Tensor map(const pe::Expr& expression, const std::vector<Tensor>& ts) {
    return popops::map(graph_, expression, ts, prog_, debug_);
  }
  Tensor sum(const Tensor& t) {
    return popops::reduce(graph_, t, {2}, popops::Operation::ADD, prog_, debug_).expand({2});
  }
  Tensor product(const Tensor& a, const Tensor& b) {
    return poplin::matMulGrouped(graph_, a, b, prog_, poplar::FLOAT, debug_);
  }
  /// 0, 1, ... as FLOAT, [1][1][n].
  Tensor numbers(std::size_t n) {
    return popops::cast(graph_, internal::ctcCount(graph_, n, debug_), poplar::FLOAT, prog_, debug_)
        .reshape({1, 1, n});
  }
  Tensor oneHot(const Tensor& index, const Tensor& counts) {
    return map(pe::Cast(_1 == _2, poplar::FLOAT), {index, counts});
  }

  /// A beam with a label appended may equal another beam. Its probability then moves there: it is
  /// removed from `longer` [B][W][C] and added to the other's endLabel, which is returned.
  Tensor merge(const Tensor& lasts, const Tensor& longer, const Tensor& endLabel) {
    // The labels of beam j without the last one, and whether they are those of beam i: [B][i][j].
    const Tensor shorter = map(Select(Const(blank_), _1, _2 + Const(1.0f) == _3),
                               {beams_.labels(), places_, beams_.length()});
    const Tensor unequal = popops::reduce(
        graph_,
        map(pe::Cast(_1 != _2, poplar::FLOAT), {beams_.labels().expand({2}), shorter.expand({1})}),
        {3}, popops::Operation::ADD, prog_, debug_);               // [B][W][W]
    const Tensor lengths = beams_.length().dimShuffle({0, 2, 1});  // [B][1][W]
    const Tensor isPrefix =
        map(pe::Cast(_1 == Const(0.0f) && _2 > Const(0.0f), poplar::FLOAT), {unequal, lengths});
    const Tensor appended = product(longer, lasts.dimShuffle({0, 2, 1}));  // [B][i][j]
    const Tensor moved = map(Select(_1, Const(kLogZero), _2 > Const(0.5f)), {appended, isPrefix});
    const Tensor most = popops::reduce(graph_, moved, {1}, popops::Operation::MAX, prog_, debug_)
                            .expand({2});           // [B][j][1]
    const Tensor taken = product(isPrefix, lasts);  // [B][i][C]
    popops::mapInPlace(graph_, Select(Const(kLogZero), _1, _2 > Const(0.5f)), {longer, taken},
                       prog_, debug_);
    return map(logAdd({_1, _2}), {endLabel, most});
  }

  /// The W most probable of the kept and the extended beams.
  Tensor select(const Tensor& endBlank, const Tensor& endLabel, const Tensor& longer) {
    const Tensor kept = map(logAdd({_1, _2}), {endBlank, endLabel}).squeeze({2});  // [B][W]
    const Tensor scores = poplar::concat(kept, longer.reshape({B, W * C}), 1);
    const auto [best, indices] = popops::topKWithPermutation(
        graph_, prog_, scores,
        {static_cast<unsigned>(W), true, popops::SortOrder::DESCENDING, true}, debug_);
    const auto w = static_cast<unsigned>(W), c = static_cast<unsigned>(C);
    const Tensor isLonger = map(_1 >= Const(w), {indices}).expand({2});
    const Tensor parent =
        map(pe::Cast(Select((_1 - Const(w)) / Const(c), _1, _1 >= Const(w)), poplar::FLOAT),
            {indices})
            .expand({2});
    const Tensor label =
        map(pe::Cast(Select((_1 - Const(w)) % Const(c), Const(0u), _1 >= Const(w)), poplar::FLOAT),
            {indices})
            .expand({2});
    const Tensor updated =
        poplar::concat({beams_.labels(), beams_.length(), beams_.last(), endBlank, endLabel}, 2);
    const Beams from{product(oneHot(parent, numbers(W)), updated), beams_.T};
    const Tensor labels = map(Select(_1, _2, _3 && _4 == pe::_5),
                              {label, from.labels(), isLonger, places_, from.length()});
    const Tensor length = map(_1 + pe::Cast(_2, poplar::FLOAT), {from.length(), isLonger});
    const Tensor last = map(Select(_1, _2, _3), {label, from.last(), isLonger});
    const Tensor blank = map(Select(Const(kLogZero), _1, _2), {from.blank(), isLonger});
    const Tensor ending = map(Select(_1, _2, _3), {best.expand({2}), from.label(), isLonger});
    return poplar::concat({labels, length, last, blank, ending}, 2);
  }

  Graph& graph_;
  Sequence& prog_;
  DebugContext debug_;
  const Beams& beams_;
  Tensor logs_;  ///< [B][C]
  float blank_;
  std::size_t B, W, C;
  Tensor classes_, places_;  ///< [1][1][C], [1][1][T]
};

/// One empty beam of probability 1; others of probability 0.
Tensor firstBeams(Graph& graph, std::size_t B, std::size_t W, std::size_t T, unsigned blank,
                  const DebugContext& debug) {
  const auto constant = [&](std::size_t beams, std::size_t n, float value) {
    return ctcConstant(graph, {B, beams, n}, value, debug);
  };
  const auto blankValue = static_cast<float>(blank);
  const Tensor empty = poplar::concat(
      {constant(W, T, blankValue), constant(W, 1, 0), constant(W, 1, blankValue)}, 2);
  Tensor probability = constant(1, 1, 0);
  if (W > 1) probability = poplar::concat(probability, constant(W - 1, 1, kLogZero), 1);
  return poplar::concat({empty, probability, constant(W, 1, kLogZero)}, 2);
}

Tensor search(Graph& graph, const Tensor& logs, const Tensor& lengths, unsigned blank,
              std::size_t W, Sequence& prog, const DebugContext& debug) {
  const std::size_t T = logs.dim(0), B = logs.dim(1), n = T + 4;
  const rnn::RnnParams params(poplar::FLOAT, B, T, lengths, {logs.dim(2), W * n});
  const Tensor begin = graph.addVariable(poplar::FLOAT, {1, B, W * n},
                                         poplar::VariableMappingMethod::LINEAR, {debug, "beams"});
  prog.add(Copy(firstBeams(graph, B, W, T, blank, debug).flatten(), begin.flatten(), false, debug));
  const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                        std::vector<Tensor>& state, const rnn::RnnSlice& slice,
                        std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
    Sequence loop{DebugContext(dnai)};
    const Beams beams{state[0].reshape({B, W, n}), T};
    const Tensor next = Step(g, beams, slice.inputs[0], blank, loop, {dnai, "step"}).run();
    if (flags.valid())
      popops::mapInPlace(g, Select(_2, _1, _3 > Const(0.5f)),
                         {beams.all, next, flags.mask.reshape({B, 1, 1})}, loop, {dnai, "next"});
    else
      loop.add(Copy(next, beams.all, false, {dnai, "next"}));
    return loop;
  };
  OptionFlags none;
  return rnn::Rnn(graph, params, false, {begin}, {Tensor(), 0}, {logs}, nullptr, nullptr, {}, {},
                  prog, step, 1, none, {debug, "beamSearch"})[0]
      .reshape({B, W, n});
}

/// Losses -log p in FLOAT, and lengths, [B][paths], and labels of paths, [B][paths][T].
struct Paths {
  Tensor losses, lengths, labels;
};

/// The search as separate steps.
Paths composed(Graph& graph, const Tensor& logs, const Tensor& lengths, unsigned blank,
               std::size_t W, std::size_t paths, Sequence& prog, const DebugContext& debug) {
  const Beams found{search(graph, logs, lengths, blank, W, prog, debug).slice(0, paths, 1),
                    logs.dim(0)};
  const auto integers = [&](const Tensor& t) {
    return popops::cast(graph, t, poplar::UNSIGNED_INT, prog, {debug, "integers"});
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const pe::Any total = logAdd({_1, _2});
  const Tensor losses =
      popops::map(graph, Select(-total, Const(infinity), total > Const(kLogZero / 2)),
                  {found.blank(), found.label()}, prog, {debug, "losses"});
  return {losses.squeeze({2}), integers(found.length()).squeeze({2}), integers(found.labels())};
}

/// The search as one step.
Paths fused(Graph& graph, const Tensor& logs, const Tensor& lengths, unsigned blank, std::size_t W,
            std::size_t paths, Sequence& prog, const DebugContext& debug) {
  internal::FusedStep step(graph);
  const Paths made = step.compose([&](Sequence& program) {
    return composed(graph, logs, lengths, blank, W, paths, program, debug);
  });
  step.reads(logs).reads(lengths);
  step.writes(made.losses).writes(made.lengths).writes(made.labels);
  step.attributes().set("blank", std::int64_t{blank}).set("width", static_cast<std::int64_t>(W));
  step.emit("popnn.ctc_beams", prog, {debug, "beamSearch"});
  return made;
}

}  // namespace

ctc::Plan plan(const Graph&, const poplar::Type&, unsigned batchSize, unsigned maxTime,
               unsigned numClasses, unsigned beamwidth, const OptionFlags& options) {
  internal::checkCtcOptions(options);
  auto made = std::make_unique<ctc::Plan::Impl>();
  made->batchSize = batchSize;
  made->maxTime = maxTime;
  made->numClasses = numClasses;
  made->beamwidth = beamwidth;
  made->isDecoder = true;
  return made;
}

Tensor createDataInput(Graph& graph, const poplar::Type& type, const std::size_t batchSize,
                       const std::size_t maxTime, const std::size_t numClasses, const ctc::Plan&,
                       const DebugContext& debugContext) {
  return graph.addVariable(type, {maxTime, batchSize, numClasses},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "data"});
}

std::tuple<Tensor, Tensor, Tensor> beamSearchDecoderLogProbabilities(
    Graph& graph, const Tensor& logProbs, const Tensor& dataLengths, Sequence& prog,
    unsigned blankClass, unsigned beamwidth, unsigned topPaths, const ctc::Plan& plan,
    const DebugContext& debugContext, const OptionFlags& options) {
  internal::checkCtcOptions(options);
  if (beamwidth == 0 || topPaths == 0 || topPaths > beamwidth ||
      beamwidth != plan.getImpl().beamwidth)
    throw poputil::poplibs_error(
        "[popnn::ctc_infer] needs the beam width of the plan, " +
        std::to_string(plan.getImpl().beamwidth) + ", and at most as many paths, 1 or more; got " +
        std::to_string(beamwidth) + " and " + std::to_string(topPaths) + ".");
  internal::checkCtcData(logProbs, plan, true, blankClass);
  const Tensor logs = internal::ctcData(graph, logProbs, prog, debugContext);
  const Tensor lengths = internal::ctcIndices(graph, dataLengths, {logProbs.dim(1)},
                                              "data lengths [batch]", prog, debugContext);
  const auto decode = internal::mayFuse(graph) ? fused : composed;
  const Paths found =
      decode(graph, logs, lengths, blankClass, beamwidth, topPaths, prog, debugContext);
  const poplar::Type type = logProbs.elementType();
  const Tensor losses = type == poplar::FLOAT ? found.losses
                                              : popops::cast(graph, found.losses, type, prog,
                                                             {debugContext, "losses"});
  return {losses, found.lengths, found.labels};
}

std::tuple<Tensor, Tensor, Tensor> beamSearchDecoderLogits(
    Graph& graph, const Tensor& logits, const Tensor& dataLengths, Sequence& prog,
    unsigned blankClass, unsigned beamwidth, unsigned topPaths, const ctc::Plan& plan,
    const DebugContext& debugContext, const OptionFlags& options) {
  const Tensor logs = logSoftmax(graph, logits, prog, {debugContext, "logSoftmax"});
  return beamSearchDecoderLogProbabilities(graph, logs, dataLengths, prog, blankClass, beamwidth,
                                           topPaths, plan, debugContext, options);
}

}  // namespace popnn::ctc_infer
