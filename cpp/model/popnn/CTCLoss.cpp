#include "popnn/CTCLoss.hpp"

#include <limits>

#include "poplar/exceptions.hpp"
#include "poplin/MatMul.hpp"
#include "popnn/LogSoftmax.hpp"
#include "popnn/Rnn.hpp"
#include "popnn/internal/CTC.hpp"
#include "popnn/internal/CTCCost.hpp"
#include "popnn/internal/Fused.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Encoding.hpp"
#include "popops/Reduce.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::ctc {
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

/// Labels with a blank around each, S = 2 * labels + 1 states. Sizes: T steps, B batch, C classes.
class Loss {
 public:
  Loss(Graph& graph, const Tensor& data, const Tensor& labels, const Tensor& lengths,
       const Tensor& labelLengths, unsigned blank, Sequence& prog, const DebugContext& debug)
      : graph_(graph),
        prog_(prog),
        debug_(debug),
        data_(data),
        lengths_(lengths),
        labelLengths_(labelLengths),
        T(data.dim(0)),
        B(data.dim(1)),
        C(data.dim(2)),
        S(2 * labels.dim(1) + 1) {
    const Tensor one = graph.addConstant(poplar::UNSIGNED_INT, {1, 1}, blank, {debug, "blank"});
    graph.setTileMapping(one, 0);
    const Tensor blanks = one.broadcast(static_cast<unsigned>(B), 0);
    std::vector<Tensor> columns;
    for (std::size_t i = 0; i < labels.dim(1); ++i) {
      columns.push_back(blanks);
      columns.push_back(labels.slice(i, i + 1, 1));
    }
    columns.push_back(blanks);
    states_ = poplar::concat(columns, 1);
    oneHot_ = graph.addVariable(poplar::FLOAT, {B * S, C}, poplar::VariableMappingMethod::LINEAR,
                                {debug, "oneHot"});
    popops::encodeOneHot(graph, states_.flatten(), oneHot_, prog, {debug, "oneHot"});
    oneHot_ = oneHot_.reshape({B, S, C});
    emit_ = poplin::matMulGrouped(graph, data.dimShuffle({1, 0, 2}), oneHot_.dimShuffle({0, 2, 1}),
                                  prog, poplar::FLOAT, {debug, "emit"})
                .dimShuffle({1, 0, 2});
    // A state may be entered from two states before if both are labels and differ.
    Tensor skip = ctcConstant(graph, {B, std::min<std::size_t>(S, 2)}, 0, debug);
    if (S > 2)
      skip = poplar::concat(skip,
                            popops::map(graph, pe::Cast(_1 != _2 && _1 != _3, poplar::FLOAT),
                                        {states_.slice(2, S, 1), states_.slice(0, S - 2, 1), one},
                                        prog, {debug, "skip"}),
                            1);
    skip_ = skip;
    count_ = internal::ctcCount(graph, S, debug).expand({0});
    last_ = popops::add(graph, labelLengths, labelLengths, prog, {debug, "last"}).expand({1});
  }

  /// The loss [B]. Unless `alpha` is null, also sets it to the sums up to each step, [T][B][S], for
  /// the gradient.
  Tensor loss(Tensor* alpha) {
    forward_ = recursion(false, begin(), alpha);
    const Tensor paths =
        popops::map(graph_, Select(_1, Const(kLogZero), _2 == _3 || _2 + Const(1u) == _3),
                    {forward_, count_, last_}, prog_, {debug_, "paths"});
    likelihood_ = logSum(paths);
    possible_ = popops::gt(graph_, likelihood_, kLogZero / 2, prog_, {debug_, "possible"});
    const float infinity = std::numeric_limits<float>::infinity();
    return popops::map(graph_, Select(-_1, Const(infinity), _2), {likelihood_, possible_}, prog_,
                       {debug_, "loss"});
  }

  /// The posterior of each class, [T][B][C], from the sums of `loss`.
  Tensor posterior(const Tensor& alpha) {
    Tensor beta;
    recursion(true, end(), &beta);
    within_ = popops::map(graph_, _1 < _2 && _3,
                          {internal::ctcCount(graph_, T, debug_).expand({1}), lengths_.expand({0}),
                           possible_.expand({0})},
                          prog_, {debug_, "within"});
    // Alignments through a time and state: sums before and after it, which count its term twice.
    const Tensor states =
        popops::map(graph_, Select(pe::Exp(_1 + _2 - _3 - _4), Const(0.0f), pe::_5),
                    {alpha, beta, emit_, likelihood_.reshape({1, B, 1}), within_.expand({2})},
                    prog_, {debug_, "posterior"});
    return poplin::matMulGrouped(graph_, states.dimShuffle({1, 0, 2}), oneHot_, prog_,
                                 poplar::FLOAT, {debug_, "classes"})
        .dimShuffle({1, 0, 2});
  }

  /// What the softmax adds to the gradient: the probabilities, where there is a gradient.
  Tensor probabilities() const {
    return popops::map(graph_, Select(pe::Exp(_1), Const(0.0f), _2), {data_, within_.expand({2})},
                       prog_, {debug_, "probabilities"});
  }

 private:
  Tensor logZeros(std::size_t columns) {
    return ctcConstant(graph_, {B, columns}, kLogZero, debug_);
  }

  Tensor begin() {
    const Tensor zero = ctcConstant(graph_, {B, 1}, 0, debug_);
    return S > 1 ? poplar::concat(zero, logZeros(S - 1), 1) : zero;
  }
  Tensor end() {
    return popops::map(graph_, Select(Const(0.0f), Const(kLogZero), _1 == _2), {count_, last_},
                       prog_, {debug_, "end"});
  }
  Tensor logSum(const Tensor& t) {
    const Tensor most =
        popops::reduce(graph_, t, {1}, popops::Operation::MAX, prog_, {debug_, "max"});
    const Tensor powers =
        popops::map(graph_, pe::Exp(_1 - _2), {t, most.expand({1})}, prog_, {debug_, "exp"});
    const Tensor sum =
        popops::reduce(graph_, powers, {1}, popops::Operation::ADD, prog_, {debug_, "sum"});
    return popops::map(graph_, pe::Log(_1) + _2, {sum, most}, prog_, {debug_, "log"});
  }
  /// Each state's neighbour `n` places away, on the side from which it is entered.
  Tensor shifted(const Tensor& t, std::size_t n, bool reverse) {
    if (S <= n) return logZeros(S);
    return reverse ? poplar::concat(t.slice(n, S, 1), logZeros(n), 1)
                   : poplar::concat(logZeros(n), t.slice(0, S - n, 1), 1);
  }
  Tensor skips(bool reverse) {
    if (!reverse || S <= 2) return skip_;
    return poplar::concat(skip_.slice(2, S, 1), ctcConstant(graph_, {B, 2}, 0, debug_), 1);
  }

  /// Sums over all alignments up to (from) each step, [T][B][S], and sets `sequence` to them unless
  /// it is null; returns those of the last step.
  Tensor recursion(bool reverse, const Tensor& init, Tensor* sequence) {
    const rnn::RnnParams params(poplar::FLOAT, B, T, lengths_, {S, S});
    rnn::StateSequence kept{Tensor(), 0};
    if (sequence != nullptr)
      kept.output = *sequence = rnn::createOutputTensor(graph_, params, 1, {debug_, "alignments"});
    const Tensor state = graph_.addVariable(poplar::FLOAT, {B, S},
                                            poplar::VariableMappingMethod::LINEAR, {debug_, "sum"});
    prog_.add(Copy(init, state, false, debug_));
    const Tensor skip = skips(reverse);
    const auto step = [&](Graph& g, const rnn::TimeStepState&, const rnn::RnnBatchwiseFlags& flags,
                          std::vector<Tensor>& states, const rnn::RnnSlice& slice,
                          std::vector<Tensor>&, Sequence*, const poplar::DebugNameAndId& dnai) {
      Sequence loop{DebugContext(dnai)};
      const Tensor now = states[0][0];
      const pe::Any two = Select(_3, Const(kLogZero), _4 > Const(0.5f));
      const Tensor next = popops::map(
          g, logAdd({_1, _2, two}) + pe::_5,
          {now, shifted(now, 1, reverse), shifted(now, 2, reverse), skip, slice.inputs[0]}, loop,
          {dnai, "step"});
      if (flags.valid())
        popops::mapInPlace(g, Select(_2, _1, _3 > Const(0.5f)), {now, next, flags.mask.expand({1})},
                           loop, {dnai, "next"});
      else
        loop.add(Copy(next, now, false, {dnai, "next"}));
      return loop;
    };
    OptionFlags none;
    return rnn::Rnn(graph_, params, reverse, {state.expand({0})}, kept, {emit_}, nullptr, nullptr,
                    {}, {}, prog_, step, 1, none, {debug_, "recursion"})[0][0];
  }

  Graph& graph_;
  Sequence& prog_;
  DebugContext debug_;
  Tensor data_, lengths_, labelLengths_;
  std::size_t T, B, C, S;
  Tensor states_;      ///< [B][S], classes
  Tensor oneHot_;      ///< [B][S][C]
  Tensor emit_;        ///< [T][B][S], the states' log-probabilities
  Tensor skip_;        ///< [B][S], 1 or 0
  Tensor count_;       ///< [1][S]
  Tensor last_;        ///< [B][1], the blank after the last label
  Tensor forward_;     ///< [B][S], the sums up to the last step
  Tensor likelihood_;  ///< [B]
  Tensor possible_;    ///< [B], whether there is an alignment
  Tensor within_;      ///< [T][B], where there is a gradient
};

/// The gradient to compute besides the loss.
enum class Gradient { kNone, kOfLogProbs, kOfLogits };

/// The loss and, if requested, the gradient.
struct Results {
  Tensor loss, gradient;
};

Results composed(Graph& graph, const Tensor& logs, const std::vector<Tensor>& integers,
                 unsigned blank, Gradient wanted, Sequence& prog, const DebugContext& debug) {
  Loss loss(graph, logs, integers[0], integers[1], integers[2], blank, prog, debug);
  if (wanted == Gradient::kNone) return {loss.loss(nullptr), {}};
  Tensor alpha;
  const Tensor value = loss.loss(&alpha), posterior = loss.posterior(alpha);
  if (wanted == Gradient::kOfLogProbs)
    return {value, popops::neg(graph, posterior, prog, {debug, "gradient"})};
  return {value, popops::sub(graph, loss.probabilities(), posterior, prog, {debug, "gradient"})};
}

/// PopLibs' vertices as one step, after the softmax if `data` are logits.
Results fused(Graph& graph, const Tensor& data, bool areLogits, const std::vector<Tensor>& integers,
              unsigned blank, Gradient wanted, Sequence& prog, const DebugContext& debug) {
  internal::FusedStep step(graph);
  if (areLogits)
    step.compose([&](Sequence& p) { return logSoftmax(graph, data, p, {debug, "logSoftmax"}); });
  Results made{graph.addVariable(poplar::FLOAT, {data.dim(1)},
                                 poplar::VariableMappingMethod::LINEAR, {debug, "loss"}),
               {}};
  if (wanted != Gradient::kNone) made.gradient = graph.clone(data, {debug, "gradient"});
  const internal::CtcSizes sizes{data.dim(0), data.dim(1), data.dim(2), integers[0].dim(1),
                                 wanted != Gradient::kNone};
  step.adds(internal::ctcLossCost(graph.getTarget(), sizes, wanted == Gradient::kOfLogits));
  step.reads(data);
  for (const Tensor& t : integers) step.reads(t);
  step.writes(made.loss);
  if (wanted != Gradient::kNone) step.writes(made.gradient);
  step.attributes()
      .set("blank", std::int64_t{blank})
      .set("gradient", std::int64_t{wanted != Gradient::kNone})
      .set("softmax", std::int64_t{wanted == Gradient::kOfLogits})
      .set("logits", std::int64_t{areLogits});
  step.emit("popnn.ctc_loss", prog, {debug, "ctcLoss"});
  return made;
}

Results lossAndGradient(Graph& graph, const poplar::Type& outType, const Tensor& data,
                        const Tensor& labels, const Tensor& dataLengths, const Tensor& labelLengths,
                        Sequence& prog, unsigned blankClass, const Plan& plan, bool areLogits,
                        Gradient wanted, const DebugContext& debug) {
  internal::checkCtcData(data, plan, false, blankClass);
  const bool fuses = internal::mayFuse(graph);
  // Halves are rounded after each operation of the softmax, which the kernel does not do.
  const bool fuses_softmax = areLogits && fuses && data.elementType() == poplar::FLOAT;
  const Tensor given =
      areLogits && !fuses_softmax ? logSoftmax(graph, data, prog, {debug, "logSoftmax"}) : data;
  // The kernel itself takes logarithms of 0 as kLogZero.
  const Tensor wide = fuses && given.elementType() == poplar::FLOAT
                          ? given
                          : internal::ctcData(graph, given, prog, debug);
  const std::size_t batch = data.dim(1), most = plan.getImpl().maxLabelLength;
  if (labels.rank() != 2 || labels.dim(1) > most)
    throw poputil::poplibs_error("[popnn::ctc] needs labels [batch, at most " +
                                 std::to_string(most) + "] as planned; got " +
                                 labels.shapeToString() + ". Plan for this length.");
  const auto indices = [&](const Tensor& t, const std::vector<std::size_t>& shape,
                           const char* what) {
    return internal::ctcIndices(graph, t, shape, what, prog, debug);
  };
  const std::vector<Tensor> integers{
      indices(labels, {batch, labels.dim(1)}, "labels for each batch element"),
      indices(dataLengths, {batch}, "data lengths [batch]"),
      indices(labelLengths, {batch}, "label lengths [batch]")};
  const auto [loss, gradient] =
      fuses ? fused(graph, wide, fuses_softmax, integers, blankClass, wanted, prog, debug)
            : composed(graph, wide, integers, blankClass, wanted, prog, debug);
  const auto cast = [&](const Tensor& t) {
    if (!t.valid() || t.elementType() == outType) return t;
    return popops::cast(graph, t, outType, prog, {debug, "cast"});
  };
  return {cast(loss), cast(gradient)};
}

std::pair<Tensor, Tensor> both(const Results& results) { return {results.loss, results.gradient}; }

}  // namespace

Plan plan(const Graph&, const poplar::Type&, const poplar::Type&, unsigned batchSize,
          unsigned maxTime, unsigned maxLabelLength, unsigned numClasses,
          const OptionFlags& options) {
  internal::checkCtcOptions(options);
  auto made = std::make_unique<Plan::Impl>();
  made->batchSize = batchSize;
  made->maxTime = maxTime;
  made->maxLabelLength = maxLabelLength;
  made->numClasses = numClasses;
  return made;
}

Tensor createDataInput(Graph& graph, const poplar::Type& type, const std::size_t batchSize,
                       const std::size_t maxTime, const std::size_t numClasses, const Plan&,
                       const DebugContext& debugContext) {
  return graph.addVariable(type, {maxTime, batchSize, numClasses},
                           poplar::VariableMappingMethod::LINEAR, {debugContext, "data"});
}
Tensor createLabelsInput(Graph& graph, const poplar::Type& type, const std::size_t batchSize,
                         const std::size_t maxLabelLength, const Plan&,
                         const DebugContext& debugContext) {
  return graph.addVariable(type, {batchSize, maxLabelLength}, poplar::VariableMappingMethod::LINEAR,
                           {debugContext, "labels"});
}

std::pair<Tensor, Tensor> calcLossAndGradientLogProbabilities(
    Graph& graph, const poplar::Type& outType, const Tensor& logProbs, const Tensor& labels,
    const Tensor& dataLengths, const Tensor& labelLengths, Sequence& prog,
    const unsigned blankClass, const Plan& plan, const DebugContext& debugContext,
    const OptionFlags& options) {
  bool with_softmax = true;
  for (const auto& [name, value] : options) {
    if (name == "includeSoftmaxGradient" && (value == "true" || value == "false"))
      with_softmax = value == "true";
    else
      internal::checkCtcOptions({{name, value}});
  }
  const Gradient wanted = with_softmax ? Gradient::kOfLogits : Gradient::kOfLogProbs;
  return both(lossAndGradient(graph, outType, logProbs, labels, dataLengths, labelLengths, prog,
                              blankClass, plan, false, wanted, debugContext));
}

std::pair<Tensor, Tensor> calcLossAndGradientLogits(Graph& graph, const poplar::Type& outType,
                                                    const Tensor& logits, const Tensor& labels,
                                                    const Tensor& dataLengths,
                                                    const Tensor& labelLengths, Sequence& prog,
                                                    const unsigned blankClass, const Plan& plan,
                                                    const DebugContext& debugContext,
                                                    const OptionFlags& options) {
  internal::checkCtcOptions(options);
  return both(lossAndGradient(graph, outType, logits, labels, dataLengths, labelLengths, prog,
                              blankClass, plan, true, Gradient::kOfLogits, debugContext));
}

}  // namespace popnn::ctc

namespace popnn::internal {

using poplar::Tensor;

Tensor ctcLoss(poplar::Graph& graph, const poplar::Type& outType, const Tensor& data,
               const Tensor& labels, const Tensor& dataLengths, const Tensor& labelLengths,
               poplar::program::Sequence& prog, unsigned blankClass, const ctc::Plan& plan,
               bool areLogits, const poplar::DebugContext& debug) {
  return ctc::lossAndGradient(graph, outType, data, labels, dataLengths, labelLengths, prog,
                              blankClass, plan, areLogits, ctc::Gradient::kNone, debug)
      .loss;
}

}  // namespace popnn::internal
