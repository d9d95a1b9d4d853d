#include <array>
#include <vector>

#include "engine/kernels/sequence/Recurrent.hpp"

/// The host kernels "popnn.lstm_forward" and "popnn.lstm_backward": all steps of a layer. In both,
/// attribute `at` says where the units forget, input, output and candidate are in the weights,
/// `gate` and `activation` are Activations, `full` means that every step has an output, and
/// `limited` that the last operand read gives the number of steps of each sequence.
namespace ipujax::engine {
namespace {

using namespace recurrent;

/// Values that the forward pass keeps for each step, [6][B][O].
enum Kept { kForget, kInput, kOutput, kCandidate, kTanh, kBefore, kNumKept };

constexpr std::array<std::int64_t, 4> kAsGiven{0, 1, 2, 3};

struct Layer : LayerOf<4> {  // at: of forget, input, output, candidate
  using LayerOf::LayerOf;
  std::int64_t row() const { return 4 * O; }
};

/// Reads x [T, B, I], weights [4, I, O] and [4, O, O], biases [4, O], h and c [B, O], limits;
/// writes the output [T, B, O] or [B, O], the cell state [B, O] and, with `keeps`, [T, 6, B, O].
class LstmForward final : public Kernel {
 public:
  explicit LstmForward(const StepDesc& step)
      : layer_(step, step.operands[1]),
        input_weights_(step.operands[1]),
        output_weights_(step.operands[2]),
        limits_(layer_.limited ? &step.operands[6] : nullptr, step.operands[0].shape[0]),
        keeps_(step.attributes.integer("keeps") != 0) {
    layer_.T = step.operands[0].shape[0];
    layer_.B = step.operands[0].shape[1];
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto& l = layer_;
    Workspace workspace;
    const std::size_t out = layer_.limited ? 7 : 6;
    const std::byte* limits = layer_.limited ? p[6] : nullptr;
    const float* input_weights = asMatrix(input_weights_, p[1], kAsGiven, workspace);
    const float* weights = asMatrix(output_weights_, p[2], kAsGiven, workspace);
    Rows rows{floats(p[0]), floats(p[3]),
              StepWeights(rowsOf(input_weights, l.row()), l.I, l.row(), l.T, workspace),
              StepWeights(rowsOf(weights, l.row()), l.O, l.row(), l.T, workspace), limits};
    const std::int64_t state = l.B * l.O;
    rows.last = l.full ? workspace.get<float>(state) : floats(p[out]);
    rows.cell = floats(p[out + 1]);
    rows.out = l.full ? floats(p[out]) : nullptr;
    rows.kept = keeps_ ? floats(p[out + 2]) : nullptr;
    std::memcpy(rows.last, p[4], bytesOf(state));
    std::memcpy(rows.cell, p[5], bytesOf(state));
    forSequences(context.pool, l.B, l.T * l.O * l.row(),
                 [&](ThreadPool* pool, std::int64_t begin, std::int64_t end) {
                   loop(pool, rows, begin, end);
                 });
  }

 private:
  struct Rows {
    const float *x, *biases;
    StepWeights input_weights, weights;
    const std::byte* limits;
    float *last = nullptr, *cell = nullptr, *out = nullptr, *kept = nullptr;
  };

  /// All steps of sequences [begin, end).
  void loop(ThreadPool* pool, const Rows& rows, std::int64_t begin, std::int64_t end) const {
    const auto& l = layer_;
    Workspace workspace;
    float* tanh = workspace.get<float>(l.O);
    blas::Gemm gemm;
    gemm.accumulate = true;
    gemm.m = end - begin;
    rows.weights.setIn(gemm);
    StepInputs inputs(rows.x, rows.biases, rows.input_weights, l.T, l.B, begin, end);
    for (std::int64_t t = 0; t < l.T; ++t) {
      float* units = inputs.at(t, pool);
      const bool in_out = t > 0 && rows.out && rows.limits == nullptr;
      const float* before = in_out ? rows.out + (t - 1) * l.B * l.O : rows.last;
      gemm.a = rowsOf(before + begin * l.O, l.O);
      gemm.c = rowsInto(units, l.row());
      stepProduct(pool, gemm);
      for (std::int64_t b = begin; b < end; ++b)
        step(rows, t, b, units + (b - begin) * l.row(), tanh);
    }
  }

  void step(const Rows& rows, std::int64_t t, std::int64_t b, float* units, float* tanh) const {
    const auto& l = layer_;
    const Loops& loop = loops();
    const std::size_t bytes = bytesOf(l.O);
    float *h = rows.last + b * l.O, *c = rows.cell + b * l.O;
    float* to = rows.out ? rows.out + (t * l.B + b) * l.O : h;
    const auto kept = [&](int which) {
      return rows.kept + ((t * kNumKept + which) * l.B + b) * l.O;
    };
    if (t >= limits_.of(rows.limits, b)) {
      if (rows.out) std::memset(to, 0, bytes);
      for (int which = 0; rows.kept && which < kNumKept; ++which)
        std::memset(kept(which), 0, bytes);
      return;
    }
    float* unit[4];
    for (int u = 0; u < 4; ++u) {
      unit[u] = units + l.at[static_cast<std::size_t>(u)] * l.O;
      loop.activate[u == kCandidate ? l.activation : l.gate](unit[u], l.O);
    }
    if (rows.kept) {
      for (int u = 0; u < 4; ++u) std::memcpy(kept(u), unit[u], bytes);
      std::memcpy(kept(kBefore), c, bytes);
    }
    loop.lstm[l.activation](unit[kForget], unit[kInput], unit[kOutput], unit[kCandidate], c,
                            rows.kept ? kept(kTanh) : tanh, to, l.O);
    if (rows.out && rows.limits) std::memcpy(h, to, bytes);
  }

  Layer layer_;
  OperandDesc input_weights_, output_weights_;
  Limits limits_;
  bool keeps_;
};

/// Reads kept [T, 6, B, O], weights [4, I, O] and [4, O, O], gradients of the output [T, B, O] or
/// [B, O] and of the last cell state [B, O], limits; writes gradients of h and c [B, O], of the
/// pre-activations [T, B, 4 O], units in the order of the weights, and, with `inputs`, of x.
class LstmBackward final : public Kernel {
 public:
  explicit LstmBackward(const StepDesc& step)
      : layer_(step, step.operands[1]),
        input_weights_(step.operands[1]),
        output_weights_(step.operands[2]),
        limits_(layer_.limited ? &step.operands[5] : nullptr, step.operands[0].shape[0]),
        inputs_(step.attributes.integer("inputs") != 0) {
    layer_.T = step.operands[0].shape[0];
    layer_.B = step.operands[0].shape[2];
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto& l = layer_;
    Workspace workspace;
    const std::size_t out = l.limited ? 6 : 5;
    const std::byte* limits = l.limited ? p[5] : nullptr;
    const std::int64_t state = l.B * l.O;
    const std::size_t bytes = bytesOf(state);
    float *h = floats(p[out]), *c = floats(p[out + 1]), *units = floats(p[out + 2]);
    l.full ? std::memset(h, 0, bytes) : std::memcpy(h, p[3], bytes);
    std::memcpy(c, p[4], bytes);
    Rows rows{floats(p[0]), l.full ? floats(p[3]) : nullptr, limits, h, c, units};
    rows.grad = workspace.get<float>(state);
    const float* weights = asTransposed(output_weights_, p[2], kAsGiven, workspace);
    rows.weights = StepWeights(rowsOf(weights, l.O), l.row(), l.O, l.T, workspace);
    forSequences(context.pool, l.B, l.T * l.O * l.row(),
                 [&](ThreadPool* pool, std::int64_t begin, std::int64_t end) {
                   loop(pool, rows, begin, end);
                 });
    if (!inputs_) return;
    blas::Gemm gemm;
    gemm.k = l.row();
    gemm.m = l.T * l.B;
    gemm.n = l.I;
    gemm.a = rowsOf(units, l.row());
    gemm.b = rowsOf(asTransposed(input_weights_, p[1], kAsGiven, workspace), l.I);
    gemm.c = rowsInto(floats(p[out + 3]), l.I);
    if (l.I > 0) blas::gemm(&context.pool, gemm);
  }

 private:
  struct Rows {
    const float *kept, *given;
    const std::byte* limits;
    float *h, *c, *units, *grad = nullptr;
    StepWeights weights = {};
  };

  /// All steps of sequences [begin, end).
  void loop(ThreadPool* pool, const Rows& rows, std::int64_t begin, std::int64_t end) const {
    const auto& l = layer_;
    blas::Gemm gemm;
    gemm.m = end - begin;
    rows.weights.setIn(gemm);
    for (std::int64_t t = l.T - 1; t >= 0; --t) {
      const float* given = rows.given ? rows.given + t * l.state() : nullptr;
      for (std::int64_t i = begin * l.O; i < end * l.O; ++i)
        rows.grad[i] = given ? rows.h[i] + given[i] : rows.h[i];
      for (std::int64_t b = begin; b < end; ++b) step(rows, t, b);
      gemm.a = rowsOf(rows.units + (t * l.B + begin) * l.row(), l.row());
      gemm.c = rowsInto((rows.limits ? rows.grad : rows.h) + begin * l.O, l.O);
      stepProduct(pool, gemm);
      for (std::int64_t b = begin; rows.limits && b < end; ++b)  // others pass theirs on
        if (t < limits_.of(rows.limits, b)) std::copy_n(rows.grad + b * l.O, l.O, rows.h + b * l.O);
    }
  }

  void step(const Rows& rows, std::int64_t t, std::int64_t b) const {
    const auto& l = layer_;
    float* to = rows.units + (t * l.B + b) * l.row();
    if (t >= limits_.of(rows.limits, b)) {
      std::memset(to, 0, bytesOf(l.row()));
      return;
    }
    const auto row = [&](int which) {
      return rows.kept + ((t * kNumKept + which) * l.B + b) * l.O;
    };
    loops().lstmBack[l.gate][l.activation](
        {row(kForget), row(kInput), row(kOutput), row(kCandidate), row(kTanh), row(kBefore),
         rows.grad + b * l.O, rows.c + b * l.O, to + l.at[kForget] * l.O, to + l.at[kInput] * l.O,
         to + l.at[kOutput] * l.O, to + l.at[kCandidate] * l.O},
        l.O);
  }

  Layer layer_;
  OperandDesc input_weights_, output_weights_;
  Limits limits_;
  bool inputs_;
};

void checkForward(StepCheck& check) {
  const bool limited = checkLayer(check, 4), full = check.flag("full"), keeps = check.flag("keeps");
  const std::size_t out = limited ? 7 : 6;
  check.operands(out + (keeps ? 3 : 2));
  const auto x = check.read(0).hasRank(3);
  const auto u = check.read(2).hasRank(3);
  const std::int64_t T = x->shape[0], B = x->shape[1], I = x->shape[2], O = u->shape[2];
  checkRead(check, 0, {T, B, I});
  checkRead(check, 1, {4, I, O}, false);
  checkRead(check, 2, {4, O, O}, false);
  checkRead(check, 3, {4, O});
  checkRead(check, 4, {B, O});
  checkRead(check, 5, {B, O});
  if (limited) checkLimits(check, 6, B);
  checkWritten(check, out, full ? Sizes{T, B, O} : Sizes{B, O});
  checkWritten(check, out + 1, {B, O});
  if (keeps) checkWritten(check, out + 2, {T, kNumKept, B, O});
}

void checkBackward(StepCheck& check) {
  const bool limited = checkLayer(check, 4), full = check.flag("full"),
             inputs = check.flag("inputs");
  const std::size_t out = limited ? 6 : 5;
  check.operands(out + (inputs ? 4 : 3));
  const auto kept = check.read(0).hasRank(4);
  const auto w = check.read(1).hasRank(3);
  const std::int64_t T = kept->shape[0], B = kept->shape[2], O = kept->shape[3], I = w->shape[1];
  checkRead(check, 0, {T, kNumKept, B, O});
  checkRead(check, 1, {4, I, O}, false);
  checkRead(check, 2, {4, O, O}, false);
  checkRead(check, 3, full ? Sizes{T, B, O} : Sizes{B, O});
  checkRead(check, 4, {B, O});
  if (limited) checkLimits(check, 5, B);
  checkWritten(check, out, {B, O});
  checkWritten(check, out + 1, {B, O});
  checkWritten(check, out + 2, {T, B, 4 * O});
  if (inputs) checkWritten(check, out + 3, {T, B, I});
}

const RegisterKernel kForward{"popnn.lstm_forward", makeKernel<LstmForward>, checkForward};
const RegisterKernel kBackward{"popnn.lstm_backward", makeKernel<LstmBackward>, checkBackward};

}  // namespace
}  // namespace ipujax::engine
