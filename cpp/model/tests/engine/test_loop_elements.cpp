#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "Check.hpp"
#include "engine/LoopPrograms.hpp"
#include "engine/expr/ExprProgram.hpp"

/// Loops that cut, join and index small arrays, as one kernel against the same steps walked.
namespace expr = ipujax::engine::expr;

namespace {

using namespace loops;
using engine::StepDesc;
using expr::Op;

class SmallArrays {
 public:
  explicit SmallArrays(unsigned seed) : random_(seed) {
    count_ = 6 + pick(60);
    for (auto& array : arrays_) {
      array.type = pick(3) ? ElementType::kFloat : ElementType::kInt32;
      array.elements = 1 + static_cast<std::int64_t>(pick(6));
      array.buffer = buffer(array.type, array.elements);
    }
    table_ = buffer(ElementType::kFloat, kRows * kColumns);
    indices_ = buffer(ElementType::kInt32, 2);
    strides_ = buffer(ElementType::kInt32, 2);
    const std::int32_t steps[2] = {static_cast<std::int32_t>(pick(4)) - 1,
                                   static_cast<std::int32_t>(pick(4)) - 1};
    std::memcpy(program_.start[strides_].data(), steps, sizeof steps);
    if (pick(2)) row(false);
    const std::size_t num_steps = 2 + pick(6);
    for (std::size_t i = 0; i < num_steps; ++i) {
      const auto kind = pick(8);
      kind < 4 ? map() : kind < 6 ? copy() : pad();
    }
    if (pick(2)) row(true);
    moveOn();
  }

  Program asLoop() {
    Program p = program_;
    p.addSteps(p.add(p.add(0, NodeKind::kRepeat, count_), NodeKind::kSequence), body_);
    return p;
  }
  Program laidOut() {
    Program p = program_;
    for (std::uint64_t i = 0; i < count_; ++i) p.addSteps(0, body_);
    return p;
  }

 private:
  static constexpr std::int64_t kRows = 5;
  static constexpr std::int64_t kColumns = 9;
  struct Array {
    ElementType type = ElementType::kFloat;
    std::int64_t elements = 1;
    std::uint32_t buffer = 0;
  };

  std::size_t pick(std::size_t n) { return random_() % n; }

  std::uint32_t buffer(ElementType type, std::int64_t elements) {
    Bytes contents(static_cast<std::size_t>(elements) * 4);
    for (std::int64_t i = 0; i < elements; ++i) {
      const float special[] = {std::numeric_limits<float>::infinity(), -0.0F,
                               std::numeric_limits<float>::quiet_NaN()};
      const float value =
          pick(12) == 0 ? special[pick(3)] : static_cast<float>(pick(2000)) / 500.0F - 2.0F;
      const auto integer = static_cast<std::int32_t>(pick(20)) - 8;
      std::memcpy(contents.data() + i * 4,
                  type == ElementType::kFloat ? static_cast<const void*>(&value) : &integer, 4);
    }
    return program_.buffer(std::move(contents));
  }

  const Array* arrayOf(ElementType type, std::int64_t least, const Array* not_this = nullptr) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const Array& array = arrays_[pick(std::size(arrays_))];
      if (array.type == type && array.elements >= least && &array != not_this) return &array;
    }
    return nullptr;
  }

  /// n elements of an array: in order, backwards, or every second one; for reads also one for all.
  OperandDesc view(const Array& array, std::int64_t n, Access access) {
    OperandDesc o{array.buffer, array.type, access, 0, {n}, {1}};
    if (access == Access::kRead && (array.elements < n || pick(4) == 0)) {
      o.strides = {0};
      o.offset = static_cast<std::int64_t>(pick(static_cast<std::size_t>(array.elements)));
      return o;
    }
    const std::int64_t most = n > 1 ? (array.elements - 1) / (n - 1) : 1;
    const auto stride = 1 + static_cast<std::int64_t>(pick(static_cast<std::size_t>(most)));
    const std::int64_t reach = (n - 1) * stride;
    o.offset = static_cast<std::int64_t>(pick(static_cast<std::size_t>(array.elements - reach)));
    o.strides = {stride};
    if (pick(3) == 0) {
      o.offset += reach;
      o.strides = {-stride};
    }
    return o;
  }

  void map() {
    static const Op kFloats[] = {Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kSubtract, Op::kTanh};
    static const Op kIntegers[] = {Op::kAdd, Op::kMultiply, Op::kMinimum, Op::kBitwiseXor};
    const Array& target = arrays_[pick(std::size(arrays_))];
    const auto n = 1 + static_cast<std::int64_t>(pick(static_cast<std::size_t>(target.elements)));
    const OperandDesc out = view(target, n, Access::kWrite);
    StepDesc step;
    step.kernel = "popx.map";
    expr::ExprBuilder builder({target.type, target.type});
    for (int i = 0; i < 2; ++i) {
      const Array* source = arrayOf(target.type, 1, &target);
      OperandDesc in = source && pick(4) ? view(*source, n, Access::kRead) : out;  // in place
      in.access = Access::kRead;
      step.operands.push_back(in);
    }
    const bool integer = target.type == ElementType::kInt32;
    const Op op = integer ? kIntegers[pick(4)] : kFloats[pick(5)];
    const auto a = builder.input(0);
    const auto b = builder.input(1);
    const auto c = expr::numOperands(op) == 1 ? builder.apply(op, {a}) : builder.apply(op, {a, b});
    builder.output(builder.apply(integer ? Op::kAdd : Op::kMultiply,
                                 {c, builder.constantFrom(target.type, 0.5)}));
    step.operands.push_back(out);
    step.attributes.set("expr", builder.build().toIntegers());
    body_.push_back(std::move(step));
  }

  void copy() {
    const Array& target = arrays_[pick(std::size(arrays_))];
    const Array* source = arrayOf(target.type, 1, &target);
    if (!source) return;
    const auto n = 1 + static_cast<std::int64_t>(pick(static_cast<std::size_t>(target.elements)));
    StepDesc step;
    step.kernel = "engine.copy";
    step.operands = {view(*source, n, Access::kRead), view(target, n, Access::kWrite)};
    body_.push_back(std::move(step));
  }

  void pad() {
    const Array& target = arrays_[pick(std::size(arrays_))];
    const Array* source = arrayOf(target.type, 1, &target);
    if (!source) return;
    const auto most = std::min(source->elements, target.elements);
    const auto n = 1 + static_cast<std::int64_t>(pick(static_cast<std::size_t>(most)));
    const std::int64_t stride = n > 1 && 2 * (n - 1) < target.elements ? 2 : 1;
    const std::int64_t free = target.elements - (n - 1) * stride;
    StepDesc step;
    step.kernel = "popx.pad";
    step.operands = {view(*source, n, Access::kRead), view(*source, 1, Access::kRead),
                     whole(target.buffer, target.type, {target.elements}, Access::kWrite)};
    step.operands[1].shape = step.operands[1].strides = {};
    step.attributes.set("start",
                        Dims{static_cast<std::int64_t>(pick(static_cast<std::size_t>(free)))});
    step.attributes.set("step", Dims{stride});
    body_.push_back(std::move(step));
  }

  /// A piece of a row of the table, at both indices or at the second one.
  void row(bool stores) {
    static const char* const kUpdates[] = {"replace", "add", "mul", "min", "max"};
    const Array* array = arrayOf(ElementType::kFloat, 1);
    if (!array) return;
    const bool two = pick(2) == 1;
    const std::int64_t n = array->elements;
    const OperandDesc small = whole(array->buffer, array->type, two ? Dims{1, n} : Dims{n},
                                    stores ? Access::kRead : Access::kWrite);
    OperandDesc table = whole(table_, ElementType::kFloat, {kRows, kColumns},
                              stores ? Access::kReadWrite : Access::kRead);
    OperandDesc place = whole(indices_, ElementType::kInt32, {2}, Access::kRead);
    StepDesc step;
    if (two) {
      step.attributes.set("window", Dims{0, 1}).set("map", Dims{0, 1}).set("sizes", Dims{1, n});
    } else {
      table.shape = {kRows * kColumns};
      table.strides = {1};
      place.shape = {1};
      place.offset = 1;
      step.attributes.set("window", Dims{0}).set("map", Dims{0}).set("sizes", Dims{n});
    }
    step.attributes.set("batching", Dims{});
    step.operands = {table, place, small};
    if (stores) {
      step.kernel = pick(2) ? "popx.scatter" : "popops.dynamic_update";
      step.attributes.set("clamp", static_cast<std::int64_t>(pick(2)));
      step.attributes.set("body", std::string(kUpdates[pick(5)]));
      step.attributes.set("unique", std::int64_t{1});
    } else {
      step.kernel = pick(2) ? "popx.gather" : "popops.dynamic_slice";
      step.attributes.set("clamp", std::int64_t{1});
    }
    body_.push_back(std::move(step));
  }

  /// indices += strides
  void moveOn() {
    expr::ExprBuilder builder({ElementType::kInt32, ElementType::kInt32});
    builder.output(builder.apply(Op::kAdd, {builder.input(0), builder.input(1)}));
    StepDesc step;
    step.kernel = "popx.map";
    step.operands = {whole(indices_, ElementType::kInt32, {2}, Access::kRead),
                     whole(strides_, ElementType::kInt32, {2}, Access::kRead),
                     whole(indices_, ElementType::kInt32, {2}, Access::kWrite)};
    step.attributes.set("expr", builder.build().toIntegers());
    body_.push_back(std::move(step));
  }

  Program program_;
  std::mt19937 random_;
  std::uint64_t count_ = 1;
  Array arrays_[5];
  std::uint32_t table_ = 0, indices_ = 0, strides_ = 0;
  std::vector<StepDesc> body_;
};

/// Makes all NaNs equal: it is not defined which of several is left.
Bytes withOneNaN(Bytes floats) {
  for (std::size_t at = 0; at < floats.size(); at += 4) {
    float value;
    std::memcpy(&value, floats.data() + at, 4);
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(floats.data() + at, &value, 4);
  }
  return floats;
}

}  // namespace

TEST(loops_over_elements_leave_what_their_steps_leave) {
  int kernels = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SmallArrays random(seed);
    const Program loop = random.asLoop();
    kernels += loop.hasLoopKernel() ? 1 : 0;
    const auto got = loop.run();
    const auto want = random.laidOut().run();
    for (std::size_t b = 0; b < want.size(); ++b)
      if (withOneNaN(got[b]) != withOneNaN(want[b]))
        check::fail(__FILE__, __LINE__, "seed ", seed, " buffer ", b);
  }
  CHECK(kernels > 700);  // or little was compared
}
