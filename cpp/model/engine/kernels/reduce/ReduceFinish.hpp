#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/Half.hpp"
#include "engine/Workspace.hpp"
#include "engine/image/Step.hpp"
#include "engine/image/StepCheck.hpp"
#include "engine/kernels/reduce/ReduceLoops.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::reduction {

/// Turns accumulators into the output: initial value, scale, update, conversion.
class Finish {
 public:
  /// output: the step's operand that is written.
  Finish(const StepDesc& step, std::size_t output, const Loops& loops)
      : loops_(loops),
        output_(output),
        type_(step.operands[output].type),
        log_(step.attributes.integer("reducer") == static_cast<std::int64_t>(Reducer::kLogAdd)),
        update_(step.attributes.integer("update") != 0),
        scale_(step.attributes.integer("scale")),
        init_(step.attributes.integer("init")) {}

  /// Checks the attributes and the operands from `output` on; `n` is the number of results.
  static void check(const StepCheck& check, std::size_t output, const Loops& loops,
                    std::int64_t n) {
    const bool update = check.flag("update");
    const auto last = static_cast<std::int64_t>(check.numOperands()) - 1;
    const auto first = static_cast<std::int64_t>(output) + 1;
    const auto other = [&](const char* name) {
      const std::int64_t operand = check.integer(name, -1, last);
      check.need(operand < 0 || operand >= first, "scale and initial value behind its output");
      return operand;
    };
    const std::int64_t scale = other("scale");
    const std::int64_t init = other("init");
    check.need(scale < 0 || scale != init, "a scale that is not its initial value");
    check.operands(output + 1 + (scale >= 0 ? 1 : 0) + (init >= 0 ? 1 : 0));
    const auto out = update ? check.updated(output) : check.written(output);
    out.isContiguous().hasElements(n);
    // Results that are not written as accumulated go through floats.
    if (out->type != loops.acc || update || scale >= 0) {
      check.need(loops.acc == ElementType::kFloat, "sums in float");
      out.isFloating();
    }
    if (scale >= 0) check.read(static_cast<std::size_t>(scale)).isOne().isOf(ElementType::kFloat);
    if (init < 0) return;
    const bool half = out->type == ElementType::kHalf;
    check.read(static_cast<std::size_t>(init)).isOne().isOfBytes(half ? 2 : sizeOf(loops.acc));
  }

  /// `accumulate(acc)` writes n accumulators, directly into the output if that is of their type and
  /// there is no scale or update.
  template <class F>
  void run(std::int64_t n, std::span<std::byte* const> pointers, const F& accumulate) const {
    const bool plain = type_ == loops_.acc && !update_ && scale_ < 0;
    Workspace workspace;
    std::byte* acc = plain ? pointers[output_] : workspace.get(n * 4 + 64);
    accumulate(acc);
    init(acc, n, pointers);
    if (!plain) store(reinterpret_cast<float*>(acc), pointers[output_], n, pointers);
  }

 private:
  void init(std::byte* acc, std::int64_t n, std::span<std::byte* const> pointers) const {
    if (init_ < 0) return;
    const std::uint64_t bits = accumulatorOf(pointers[init_], type_, loops_);
    if (bits == loops_.identity) return;
    alignas(64) std::array<std::byte, 64 * 8> block;
    simd::fill(block.data(), &bits, sizeOf(loops_.acc), 64);
    for (std::int64_t i = 0; i < n; i += 64) {
      loops_.merge(block.data(), acc + i * sizeOf(loops_.acc), std::min<std::int64_t>(64, n - i));
    }
  }
  /// Accumulators are float here, the output float or half.
  void store(float* acc, std::byte* out, std::int64_t n,
             std::span<std::byte* const> pointers) const {
    if (scale_ >= 0) {
      float scale;
      std::memcpy(&scale, pointers[scale_], sizeof scale);
      for (std::int64_t i = 0; i < n; ++i) acc[i] = log_ ? acc[i] + scale : acc[i] * scale;
    }
    if (update_) update(acc, out, n);
    if (type_ == ElementType::kFloat) {
      std::memcpy(out, acc, static_cast<std::size_t>(n) * sizeof(float));
    } else {
      simd::floatToHalf(acc, reinterpret_cast<std::uint16_t*>(out), n);
    }
  }
  /// Combines the output's previous values into the accumulators.
  void update(float* acc, const std::byte* out, std::int64_t n) const {
    if (type_ == ElementType::kFloat) return loops_.merge(out, acc, n);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(out);
    std::array<float, 64> held;
    for (std::int64_t begin = 0; begin < n; begin += 64) {
      const std::int64_t size = std::min<std::int64_t>(64, n - begin);
      for (std::int64_t i = 0; i < size; ++i) held[i] = halfToFloat(halves[begin + i]);
      loops_.merge(held.data(), acc + begin, size);
    }
  }

  const Loops& loops_;
  std::size_t output_;
  ElementType type_;  ///< of the output
  bool log_;          ///< of logarithms: a scale is added
  bool update_;
  std::int64_t scale_;  ///< operand, or -1
  std::int64_t init_;   ///< operand, or -1
};

}  // namespace ipujax::engine::reduction
