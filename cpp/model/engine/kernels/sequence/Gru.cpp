#include <array>
#include <vector>

#include "engine/kernels/sequence/Recurrent.hpp"

/// The host kernels "popnn.gru_forward" and "popnn.gru_backward": all steps of a layer. Attributes
/// besides those of Lstm.cpp: `after`, the reset gate is applied after the candidate's weights, and
/// `attends`, there is attention. Units are reset, update, candidate and, with `after`, the memory.
namespace ipujax::engine {
namespace {

using namespace recurrent;

/// Values that the forward pass keeps for each step, [4 or 5][B][O].
enum Kept { kReset, kUpdate, kCandidate, kBefore, kMemory };

struct Layer : LayerOf<3> {
  bool after, attends;

  Layer(const StepDesc& step, const OperandDesc& weights)
      : LayerOf(step, weights),
        after(step.attributes.integer("after") != 0),
        attends(step.attributes.integer("attends") != 0) {}
  std::int64_t numKept() const { return after ? 5 : 4; }
  /// Operands after the first `count`: attention and limits, then those written.
  std::size_t attention(std::size_t count) const { return count; }
  std::size_t limits(std::size_t count) const { return count + (attends ? 1 : 0); }
  std::size_t written(std::size_t count) const { return limits(count) + (limited ? 1 : 0); }
};

/// Reads x [T, B, I], weights [3, I, O] and [3, O, O], biases [3, O] or [3, 2, O], h [B, O],
/// attention [B, T], limits; writes the output [T, B, O] or [B, O] and, with `keeps`,
/// [T, 4 or 5, B, O].
class GruForward final : public Kernel {
 public:
  explicit GruForward(const StepDesc& step)
      : layer_(step, step.operands[1]),
        input_weights_(step.operands[1]),
        output_weights_(step.operands[2]),
        limits_(layer_.limited ? &step.operands[layer_.limits(kRead)] : nullptr,
                step.operands[0].shape[0]),
        keeps_(step.attributes.integer("keeps") != 0) {
    layer_.T = step.operands[0].shape[0];
    layer_.B = step.operands[0].shape[1];
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto& l = layer_;
    Workspace workspace;
    const std::size_t out = l.written(kRead);
    Run run{&context.pool, l.limited ? p[l.limits(kRead)] : nullptr,
            l.attends ? floats(p[l.attention(kRead)]) : nullptr};
    const float* biases = biasesOf(floats(p[3]), workspace);
    const StepWeights input_weights(
        rowsOf(asMatrix(input_weights_, p[1], l.at, workspace), 3 * l.O), l.I, 3 * l.O, l.T,
        workspace);
    run.h = l.full ? workspace.get<float>(l.state()) : floats(p[out]);
    std::memcpy(run.h, p[4], bytesOf(l.state()));
    const float* weights = asMatrix(output_weights_, p[2], l.at, workspace);
    const auto unitsOf = [&](int first, int count) {
      return StepWeights(rowsOf(weights + first * l.O, 3 * l.O), l.O, count * l.O, l.T, workspace);
    };
    run.gates = unitsOf(kReset, 2);
    run.candidate = unitsOf(kCandidate, 1);
    run.memory = workspace.get<float>(l.state());
    run.memory_biases = floats(p[3]) + (2 * l.at[kCandidate] + 1) * l.O;
    forSequences(context.pool, l.B, 3 * l.T * l.O * l.O,
                 [&](ThreadPool* pool, std::int64_t begin, std::int64_t end) {
                   Run part = run;
                   part.pool = pool;
                   part.begin = begin;
                   part.end = end;
                   StepInputs inputs(floats(p[0]), biases, input_weights, l.T, l.B, begin, end);
                   for (std::int64_t t = 0; t < l.T; ++t) {
                     part.t = t;
                     part.units = inputs.at(t, pool);
                     part.out = l.full ? floats(p[out]) + t * l.state() : nullptr;
                     part.kept =
                         keeps_ ? floats(p[out + 1]) + t * l.numKept() * l.state() : nullptr;
                     step(part);
                   }
                 });
  }

 private:
  static constexpr std::size_t kRead = 5;
  struct Run {
    ThreadPool* pool;
    const std::byte* limits;
    const float* attention;
    std::int64_t begin = 0, end = 0;  ///< of the sequences
    float* units = nullptr;           ///< of these sequences
    float *h = nullptr, *memory = nullptr, *out = nullptr, *kept = nullptr;
    const float* memory_biases = nullptr;
    StepWeights gates = {}, candidate = {};
    std::int64_t t = 0;
  };

  /// Biases [3 O] in the order of the units; with `after`, each gate's two biases are added.
  float* biasesOf(const float* given, Workspace& workspace) const {
    const auto& l = layer_;
    float* biases = workspace.get<float>(3 * l.O);
    for (std::int64_t u = 0; u < 3; ++u) {
      const float* from = given + l.at[static_cast<std::size_t>(u)] * l.O * (l.after ? 2 : 1);
      for (std::int64_t i = 0; i < l.O; ++i)
        biases[u * l.O + i] = from[i] + (l.after && u < kCandidate ? from[l.O + i] : 0.0f);
    }
    return biases;
  }

  /// to += a U of some units, [B, O] x [O, units O]; `to` has the rows of these sequences only.
  void product(const Run& run, const float* a, const StepWeights& weights, float* to,
               std::int64_t row) const {
    blas::Gemm gemm;
    gemm.accumulate = true;
    gemm.m = run.end - run.begin;
    weights.setIn(gemm);
    gemm.a = rowsOf(a + run.begin * layer_.O, layer_.O);
    gemm.c = rowsInto(to, row);
    stepProduct(run.pool, gemm);
  }

  float* rowOf(const Run& run, std::int64_t b) const {
    return run.units + (b - run.begin) * 3 * layer_.O;
  }

  void step(const Run& run) const {
    const auto& l = layer_;
    const Loops& loop = loops();
    product(run, run.h, run.gates, run.units, 3 * l.O);
    if (l.after) {
      for (std::int64_t b = run.begin; b < run.end; ++b)
        std::memcpy(run.memory + b * l.O, run.memory_biases, bytesOf(l.O));
      product(run, run.h, run.candidate, run.memory + run.begin * l.O, l.O);
    }
    for (std::int64_t b = run.begin; b < run.end; ++b) {
      float* unit = rowOf(run, b);
      float* memory = run.memory + b * l.O;
      for (const int u : {kReset, kUpdate}) loop.activate[l.gate](unit + u * l.O, l.O);
      if (l.after)
        loop.multiplyAdd(unit, memory, unit + kCandidate * l.O, l.O);
      else
        loop.multiply(unit, run.h + b * l.O, memory, l.O);
    }
    if (!l.after) product(run, run.memory, run.candidate, run.units + kCandidate * l.O, 3 * l.O);
    for (std::int64_t b = run.begin; b < run.end; ++b) finish(run, b, rowOf(run, b));
  }

  void finish(const Run& run, std::int64_t b, float* unit) const {
    const auto& l = layer_;
    float *h = run.h + b * l.O, *out = run.out ? run.out + b * l.O : nullptr;
    const auto keptRow = [&](std::int64_t which) { return run.kept + (which * l.B + b) * l.O; };
    if (run.t >= limits_.of(run.limits, b)) {
      if (out) std::memset(out, 0, bytesOf(l.O));
      for (std::int64_t which = 0; run.kept && which < l.numKept(); ++which)
        std::memset(keptRow(which), 0, bytesOf(l.O));
      return;
    }
    loops().activate[l.activation](unit + kCandidate * l.O, l.O);
    if (run.kept) {
      for (int u = 0; u < 3; ++u) std::memcpy(keptRow(u), unit + u * l.O, bytesOf(l.O));
      std::memcpy(keptRow(kBefore), h, bytesOf(l.O));
      if (l.after) std::memcpy(keptRow(kMemory), run.memory + b * l.O, bytesOf(l.O));
    }
    const float attention = run.attention ? run.attention[b * l.T + run.t] : 0.0f;
    loops().gru(unit + kUpdate * l.O, unit + kCandidate * l.O, attention, h, l.O);
    if (out) std::memcpy(out, h, bytesOf(l.O));
  }

  Layer layer_;
  OperandDesc input_weights_, output_weights_;
  Limits limits_;
  bool keeps_;
};

/// Reads kept, weights [3, I, O] and [3, O, O], the output's gradient [T, B, O] or [B, O],
/// attention [B, T], limits; writes gradients of h [B, O], of the pre-activations
/// [T, B, 3 or 4 O], with `inputs` of x, and of the attention [T, B].
class GruBackward final : public Kernel {
 public:
  explicit GruBackward(const StepDesc& step)
      : layer_(step, step.operands[1]),
        input_weights_(step.operands[1]),
        output_weights_(step.operands[2]),
        limits_(layer_.limited ? &step.operands[layer_.limits(kRead)] : nullptr,
                step.operands[0].shape[0]),
        inputs_(step.attributes.integer("inputs") != 0) {
    layer_.T = step.operands[0].shape[0];
    layer_.B = step.operands[0].shape[2];
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto& l = layer_;
    Workspace workspace;
    const std::size_t out = l.written(kRead);
    Run run{&context.pool, l.limited ? p[l.limits(kRead)] : nullptr,
            l.attends ? floats(p[l.attention(kRead)]) : nullptr};
    run.h = floats(p[out]);
    run.grad = workspace.get<float>(l.state());
    run.direct = workspace.get<float>(l.state());
    const float* weights = asTransposed(output_weights_, p[2], l.at, workspace);
    const auto unitsOf = [&](int first, int count) {
      return StepWeights(rowsOf(weights + first * l.O * l.O, l.O), count * l.O, l.O, l.T,
                         workspace);
    };
    run.gates = unitsOf(kReset, 2);
    run.candidate = unitsOf(kCandidate, 1);
    l.full ? std::memset(run.h, 0, bytesOf(l.state()))
           : std::memcpy(run.h, p[3], bytesOf(l.state()));
    float* units = floats(p[out + 1]);
    const float* kept = floats(p[0]);
    const float* given = l.full ? floats(p[3]) : nullptr;
    float* to_attention = l.attends ? floats(p[out + (inputs_ ? 3 : 2)]) : nullptr;
    forSequences(context.pool, l.B, l.T * l.O * row(),
                 [&](ThreadPool* pool, std::int64_t begin, std::int64_t end) {
                   Run part = run;
                   part.pool = pool;
                   part.begin = begin;
                   part.end = end;
                   for (std::int64_t t = l.T - 1; t >= 0; --t) {
                     part.t = t;
                     for (std::int64_t i = begin * l.O; i < end * l.O; ++i)
                       part.grad[i] = given ? part.h[i] + given[t * l.state() + i] : part.h[i];
                     part.kept = kept + t * l.numKept() * l.state();
                     part.units = units + t * l.B * row();
                     part.to_attention = to_attention ? to_attention + t * l.B : nullptr;
                     step(part);
                   }
                 });
    if (!inputs_ || l.I == 0) return;
    blas::Gemm gemm;
    gemm.m = l.T * l.B;
    gemm.n = l.I;
    gemm.k = 3 * l.O;
    gemm.a = rowsOf(units, row());
    gemm.b = rowsOf(asTransposed(input_weights_, p[1], l.at, workspace), l.I);
    gemm.c = rowsInto(floats(p[out + 2]), l.I);
    blas::gemm(&context.pool, gemm);
  }

 private:
  static constexpr std::size_t kRead = 4;
  struct Run {
    ThreadPool* pool;
    const std::byte* limits;
    const float* attention;
    std::int64_t begin = 0, end = 0;  ///< of the sequences
    float *h = nullptr, *grad = nullptr, *direct = nullptr, *units = nullptr,
          *to_attention = nullptr;
    const float* kept = nullptr;
    StepWeights gates = {}, candidate = {};
    std::int64_t t = 0;
  };

  std::int64_t row() const { return (layer_.after ? 4 : 3) * layer_.O; }
  const float* kept(const Run& run, int which, std::int64_t b) const {
    return run.kept + (which * layer_.B + b) * layer_.O;
  }

  /// to = (or +=) some units times their rows of U^T.
  void product(const Run& run, const float* units, const StepWeights& weights, bool accumulate,
               float* to) const {
    blas::Gemm gemm;
    gemm.accumulate = accumulate;
    gemm.m = run.end - run.begin;
    weights.setIn(gemm);
    gemm.a = rowsOf(units + run.begin * row(), row());
    gemm.c = rowsInto(to + run.begin * layer_.O, layer_.O);
    stepProduct(run.pool, gemm);
  }

  void step(const Run& run) const {
    const auto& l = layer_;
    for (std::int64_t b = run.begin; b < run.end; ++b) gates(run, b);
    // `grad` is no longer needed: it is reused for the gradient through the reset gate.
    product(run, run.units + (l.after ? 3 : 2) * l.O, run.candidate, false, run.grad);
    for (std::int64_t b = run.begin; !l.after && b < run.end; ++b) {
      float *grad = run.grad + b * l.O, *reset = run.units + b * row();
      loops().multiply(grad, kept(run, kBefore, b), reset, l.O);
      loops().slope[l.gate](kept(run, kReset, b), reset, l.O);
      loops().multiply(grad, kept(run, kReset, b), grad, l.O);
    }
    product(run, run.units, run.gates, true, run.grad);
    for (std::int64_t b = run.begin; b < run.end; ++b) {
      if (run.t >= limits_.of(run.limits, b)) continue;  // passes its gradient on
      for (std::int64_t i = b * l.O; i < (b + 1) * l.O; ++i) run.h[i] = run.grad[i] + run.direct[i];
    }
  }

  void gates(const Run& run, std::int64_t b) const {
    const auto& l = layer_;
    float* to = run.units + b * row();
    if (run.t >= limits_.of(run.limits, b)) {
      std::memset(to, 0, bytesOf(row()));
      if (run.to_attention) run.to_attention[b] = 0.0f;
      return;
    }
    const float attention = run.attention ? run.attention[b * l.T + run.t] : 0.0f;
    const float* memory = l.after ? kept(run, kMemory, b) : nullptr;
    const float sum = loops().gruBack[l.gate][l.activation](
        {kept(run, kReset, b), kept(run, kUpdate, b), kept(run, kCandidate, b),
         kept(run, kBefore, b), memory, attention, l.attends, run.grad + b * l.O, to + l.O,
         to + 2 * l.O, to, l.after ? to + 3 * l.O : nullptr, run.direct + b * l.O},
        l.O);
    if (run.to_attention) run.to_attention[b] = sum;
  }

  Layer layer_;
  OperandDesc input_weights_, output_weights_;
  Limits limits_;
  bool inputs_;
};

void checkForward(StepCheck& check) {
  const bool limited = checkLayer(check, 3), full = check.flag("full"), keeps = check.flag("keeps");
  const bool after = check.flag("after"), attends = check.flag("attends");
  const std::size_t limits = attends ? 6 : 5, out = limits + (limited ? 1 : 0);
  check.operands(out + (keeps ? 2 : 1));
  const auto x = check.read(0).hasRank(3);
  const auto u = check.read(2).hasRank(3);
  const std::int64_t T = x->shape[0], B = x->shape[1], I = x->shape[2], O = u->shape[2];
  checkRead(check, 0, {T, B, I});
  checkRead(check, 1, {3, I, O}, false);
  checkRead(check, 2, {3, O, O}, false);
  checkRead(check, 3, after ? Sizes{3, 2, O} : Sizes{3, O});
  checkRead(check, 4, {B, O});
  if (attends) checkRead(check, 5, {B, T});
  if (limited) checkLimits(check, limits, B);
  checkWritten(check, out, full ? Sizes{T, B, O} : Sizes{B, O});
  if (keeps) checkWritten(check, out + 1, {T, after ? 5 : 4, B, O});
}

void checkBackward(StepCheck& check) {
  const bool limited = checkLayer(check, 3), full = check.flag("full"),
             inputs = check.flag("inputs");
  const bool after = check.flag("after"), attends = check.flag("attends");
  const std::size_t limits = attends ? 5 : 4, out = limits + (limited ? 1 : 0);
  const std::size_t to_attention = out + (inputs ? 3 : 2);
  check.operands(to_attention + (attends ? 1 : 0));
  const auto kept = check.read(0).hasRank(4);
  const auto w = check.read(1).hasRank(3);
  const std::int64_t T = kept->shape[0], B = kept->shape[2], O = kept->shape[3], I = w->shape[1];
  checkRead(check, 0, {T, after ? 5 : 4, B, O});
  checkRead(check, 1, {3, I, O}, false);
  checkRead(check, 2, {3, O, O}, false);
  checkRead(check, 3, full ? Sizes{T, B, O} : Sizes{B, O});
  if (attends) checkRead(check, 4, {B, T});
  if (limited) checkLimits(check, limits, B);
  checkWritten(check, out, {B, O});
  checkWritten(check, out + 1, {T, B, (after ? 4 : 3) * O});
  if (inputs) checkWritten(check, out + 2, {T, B, I});
  if (attends) checkWritten(check, to_attention, {T, B});
}

const RegisterKernel kForward{"popnn.gru_forward", makeKernel<GruForward>, checkForward};
const RegisterKernel kBackward{"popnn.gru_backward", makeKernel<GruBackward>, checkBackward};

}  // namespace
}  // namespace ipujax::engine
