#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "engine/LoopPrograms.hpp"
#include "engine/expr/ExprProgram.hpp"

/// Loops as one kernel against the same steps walked one by one.
namespace engine = ipujax::engine;
namespace expr = ipujax::engine::expr;

namespace {

using namespace loops;
using expr::Op;

/// Cells, steps and rows of a random loop; the same for the loop and for its steps laid out.
class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : random_(seed) {
    width_ = std::vector<std::int64_t>{1, 3, 8, 16, 17, 40}[pick(6)];
    count_ = pick(4) ? 6 + pick(150) : pick(6);
    goes_on_ = pick(2) == 1;
    for (std::uint32_t i = 0; i < kSingle; ++i) cell(ElementType::kFloat, width_);
    cell(ElementType::kFloat, 1);
    cell(ElementType::kHalf, width_);
    cell(ElementType::kFloat, 5);
    cell(ElementType::kInt32, width_);
    counter_ = cell(ElementType::kInt32, 1);
    limit_ = cell(ElementType::kInt32, 1);
    flag_ = cell(ElementType::kBool, 1);
    set(counter_, static_cast<std::int32_t>(pick(5)) - 2);
    set(limit_, static_cast<std::int32_t>(count_));
    for (const auto rows : {&from_, &to_}) {
      *rows = cell(ElementType::kFloat, width_ * kRows);
      program.image.buffers.back().bytes = cells_.back().bytes;
    }
    if (pick(2)) body_.push_back(row(false));
    const std::size_t num_maps = 1 + pick(5);
    for (std::size_t i = 0; i < num_maps; ++i) body_.push_back(pick(4) ? map() : copy());
    if (pick(2)) body_.push_back(row(true));
    body_.push_back(count());
    condition_.push_back(below());
  }

  Program asLoop(bool open) {
    Program p = program;
    const auto loop =
        p.add(0, open ? NodeKind::kRepeatWhile : NodeKind::kRepeat, open ? 1 : count_);
    if (open) {
      p.image.nodes[loop].value = goes_on_ ? 1 : 0;
      p.image.nodes[loop].predicate = operand(flag_, Access::kRead);
      p.addSteps(p.add(loop, NodeKind::kSequence), condition_);
    }
    p.addSteps(p.add(loop, NodeKind::kSequence), body_);
    return p;
  }

  Program laidOut(bool open) {
    Program p = program;
    std::uint32_t at = 0;
    for (std::uint64_t i = 0; i < (open ? count_ + 3 : count_); ++i) {
      if (open) {
        p.addSteps(at, condition_);
        const auto branch = p.add(at, NodeKind::kIf);
        p.image.nodes[branch].predicate = operand(flag_, Access::kRead);
        const auto then = p.add(branch, NodeKind::kSequence);
        const auto otherwise = p.add(branch, NodeKind::kSequence);
        at = goes_on_ ? then : otherwise;
      }
      p.addSteps(at, body_);
    }
    return p;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  static constexpr float kSpecial[] = {kInfinity, -kInfinity, kNaN, -0.0F, 1e-40F};
  static constexpr std::uint32_t kSingle = 3;  ///< the cell of one float
  static constexpr std::int64_t kRows = 37;    // fewer than steps: indices are clamped, too
  struct CellInfo {
    ElementType type;
    std::int64_t elements;
    std::size_t bytes;
  };

  std::size_t pick(std::size_t n) { return random_() % n; }

  std::uint32_t cell(ElementType type, std::int64_t elements) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeOf(type);
    Bytes contents(bytes);
    for (std::int64_t i = 0; i < elements; ++i) {
      const bool special = pick(16) == 0;
      const float value =
          special ? kSpecial[pick(5)] : static_cast<float>(pick(2000)) / 500.0F - 2.0F;
      const auto integer = static_cast<std::int32_t>(pick(100)) - 50;
      const auto half =
          static_cast<std::uint16_t>(special ? 0x7c00 + pick(0x400)  // signalling, too
                                             : 0x3800 + pick(0x800));
      std::byte* to = contents.data() + static_cast<std::size_t>(i) * sizeOf(type);
      if (type == ElementType::kFloat) std::memcpy(to, &value, 4);
      if (type == ElementType::kInt32) std::memcpy(to, &integer, 4);
      if (type == ElementType::kHalf) std::memcpy(to, &half, 2);
    }
    cells_.push_back({type, elements, bytes});
    return program.buffer(std::move(contents));
  }
  void set(std::uint32_t cell, std::int32_t value) {
    std::memcpy(program.start[cell].data(), &value, 4);
  }

  OperandDesc operand(std::uint32_t cell, Access access) const {
    const auto& info = cells_[cell];
    return whole(cell, info.type, info.elements == 1 ? Dims{} : Dims{info.elements}, access);
  }
  /// The cell as a step with this many elements sees it.
  OperandDesc operand(std::uint32_t cell, Access access, std::int64_t elements) const {
    OperandDesc o = operand(cell, access);
    o.shape = {elements};
    o.strides = {cells_[cell].elements == elements ? 1 : 0};
    return o;
  }

  std::uint32_t anyCell(ElementType type, std::int64_t elements) {
    for (;;) {
      const auto c = static_cast<std::uint32_t>(pick(limit_));
      const bool fits = cells_[c].elements == elements || cells_[c].elements == 1;
      if (cells_[c].type == type && fits) return c;
    }
  }

  /// A map with one or two results of values of one type.
  engine::StepDesc map() {
    static const Op kFloats[] = {Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kSubtract,
                                 Op::kSin, Op::kTanh,     Op::kDivide};
    static const Op kIntegers[] = {Op::kAdd, Op::kMultiply, Op::kMaximum, Op::kBitwiseXor};
    const auto target = static_cast<std::uint32_t>(pick(counter_));
    const ElementType type = cells_[target].type;
    const std::int64_t elements = cells_[target].elements;
    const std::size_t num_inputs = 1 + pick(3);
    engine::StepDesc step;
    step.kernel = "popx.map";
    for (std::size_t i = 0; i < num_inputs; ++i)
      step.operands.push_back(operand(anyCell(type, elements), Access::kRead, elements));
    expr::ExprBuilder builder(std::vector<ElementType>(num_inputs, type));
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < num_inputs; ++i) values.push_back(builder.input(i));
    values.push_back(builder.constantFrom(type, 0.75));
    const std::size_t num_ops = 1 + pick(4);
    for (std::size_t i = 0; i < num_ops; ++i) {
      const bool integer = type == ElementType::kInt32;
      const Op op = integer ? kIntegers[pick(4)] : kFloats[pick(7)];
      const auto a = values[pick(values.size())];
      const auto b = values[pick(values.size())];
      values.push_back(expr::numOperands(op) == 1 ? builder.apply(op, {a})
                                                  : builder.apply(op, {a, b}));
    }
    builder.output(values.back());
    step.operands.push_back(operand(target, Access::kWrite, elements));
    step.attributes.set("expr", builder.build().toIntegers());
    return step;
  }

  engine::StepDesc copy() {
    const auto target = static_cast<std::uint32_t>(pick(counter_));
    const std::int64_t elements = cells_[target].elements;
    const auto source = anyCell(cells_[target].type, elements);
    engine::StepDesc step;
    step.kernel = "engine.copy";
    step.operands = {operand(source, Access::kRead, elements),
                     operand(target, Access::kWrite, elements)};
    return step;
  }

  engine::StepDesc row(bool stores) {
    engine::StepDesc step;
    step.kernel = stores ? "popops.dynamic_update" : "popops.dynamic_slice";
    step.operands = {whole(stores ? to_ : from_, ElementType::kFloat, {kRows, width_},
                           stores ? Access::kReadWrite : Access::kRead),
                     whole(counter_, ElementType::kInt32, {1}, Access::kRead),
                     whole(static_cast<std::uint32_t>(pick(3)), ElementType::kFloat, {1, width_},
                           stores ? Access::kRead : Access::kWrite)};
    if (stores && pick(2)) {  // a single element as the whole row
      step.operands[2].buffer = kSingle;
      step.operands[2].strides = {0, 0};
    }
    step.attributes.set("window", Dims{0, 1}).set("map", Dims{0}).set("batching", Dims{});
    step.attributes.set("sizes", Dims{1, width_});
    step.attributes.set("clamp", static_cast<std::int64_t>(1 + pick(2)));
    if (stores) step.attributes.set("body", std::string("replace"));
    return step;
  }

  /// counter += 1
  engine::StepDesc count() {
    expr::ExprBuilder builder({ElementType::kInt32});
    builder.output(
        builder.apply(Op::kAdd, {builder.input(0), builder.constant(ElementType::kInt32, 1)}));
    engine::StepDesc step;
    step.kernel = "popx.map";
    step.operands = {operand(counter_, Access::kRead), operand(counter_, Access::kWrite)};
    step.attributes.set("expr", builder.build().toIntegers());
    return step;
  }

  /// flag = counter < limit, or the opposite
  engine::StepDesc below() {
    expr::ExprBuilder builder({ElementType::kInt32, ElementType::kInt32});
    const Op op = goes_on_ ? Op::kLessThan : Op::kGreaterThanEqual;
    builder.output(builder.apply(op, {builder.input(0), builder.input(1)}));
    engine::StepDesc step;
    step.kernel = "popx.map";
    step.operands = {operand(counter_, Access::kRead), operand(limit_, Access::kRead),
                     operand(flag_, Access::kWrite)};
    step.attributes.set("expr", builder.build().toIntegers());
    return step;
  }

  Program program;
  std::mt19937 random_;
  std::int64_t width_ = 1;
  std::uint64_t count_ = 1;
  bool goes_on_ = true;  ///< the flag that a while loop goes on with
  std::vector<CellInfo> cells_;
  std::vector<engine::StepDesc> body_, condition_;
  std::uint32_t counter_ = 0, limit_ = 0, flag_ = 0, from_ = 0, to_ = 0;
};

}  // namespace

TEST(loops_leave_what_their_steps_leave) {
  int kernels = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomLoop random(seed);
    for (const bool open : {false, true}) {
      const Program loop = random.asLoop(open);
      kernels += loop.hasLoopKernel() ? 1 : 0;
      const auto got = loop.run();
      const auto want = random.laidOut(open).run();
      for (std::size_t b = 0; b < want.size(); ++b)
        if (got[b] != want[b])
          check::fail(__FILE__, __LINE__, "seed ", seed, open ? " while" : " repeat", " buffer ",
                      b);
    }
  }
  CHECK(kernels > 450);  // or nothing was compared
}

namespace {

/// x += x, `count` times; 0: for ever.
Program endless(std::uint64_t count) {
  Program p;
  const auto x = p.buffer(Bytes(4));
  const auto flag = p.buffer(Bytes(1, std::byte{1}));
  expr::ExprBuilder builder({ElementType::kFloat});
  builder.output(builder.apply(Op::kAdd, {builder.input(0), builder.input(0)}));
  engine::StepDesc step;
  step.kernel = "popx.map";
  step.operands = {whole(x, ElementType::kFloat, {}, Access::kRead),
                   whole(x, ElementType::kFloat, {}, Access::kWrite)};
  step.attributes.set("expr", builder.build().toIntegers());
  engine::StepDesc again = step;
  again.kernel = "engine.copy";
  again.attributes = {};
  for (auto& o : again.operands) o = whole(flag, ElementType::kBool, {}, o.access);
  const auto loop = p.add(0, count ? NodeKind::kRepeat : NodeKind::kRepeatWhile, count ? count : 1);
  if (count == 0) {
    p.image.nodes[loop].predicate = whole(flag, ElementType::kBool, {}, Access::kRead);
    p.addSteps(p.add(loop, NodeKind::kSequence), {again});
  }
  p.addSteps(p.add(loop, NodeKind::kSequence), {step});
  return p;
}

}  // namespace

TEST(a_loop_kernel_can_be_cancelled) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1} << 50}) {
    const Program p = endless(count);
    CHECK(p.hasLoopKernel());
    engine::Session session(std::make_shared<engine::Image>(p.image),
                            std::make_shared<engine::DeviceMemory>());
    auto memory = p.start;
    const std::vector<const void*> inputs{p.start[0].data(), p.start[1].data()};
    const std::vector<void*> outputs{memory[0].data(), memory[1].data()};
    std::jthread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      session.cancel();
    });
    CHECK_THROWS((session.run(inputs, outputs), 0), "cancelled");
  }
}

TEST(arrays_that_a_loop_reads_and_writes_are_walked) {
  Program p = endless(100);
  auto& operands = p.image.steps[0].operands;
  p.start[0].resize(32);
  p.image.buffers[0].bytes = 32;
  operands[0] = whole(0, ElementType::kFloat, {6}, Access::kRead);
  operands[1] = whole(0, ElementType::kFloat, {6}, Access::kWrite);
  CHECK(p.hasLoopKernel());
  operands[1].offset = 1;
  CHECK(!p.hasLoopKernel());
}

namespace {

engine::StepDesc storeRow(std::uint32_t array, std::uint32_t index, std::uint32_t from,
                          std::int64_t width) {
  engine::StepDesc step;
  step.kernel = "popops.dynamic_update";
  step.operands = {whole(array, ElementType::kFloat, {40}, Access::kReadWrite),
                   whole(index, ElementType::kInt32, {1}, Access::kRead),
                   whole(from, ElementType::kFloat, {width}, Access::kRead)};
  step.attributes.set("window", Dims{0}).set("map", Dims{0}).set("batching", Dims{});
  step.attributes.set("sizes", Dims{width}).set("clamp", std::int64_t{1});
  step.attributes.set("body", std::string("replace"));
  return step;
}

/// Twenty times: rows of three and of `width` are stored at i, then i += 1; as a loop, or laid out.
Program twoRows(std::int64_t width, bool same_array, bool as_loop) {
  Program p;
  const auto i = p.buffer(Bytes(4));
  const auto three = p.buffer(Bytes(12, std::byte{3}));
  const auto wide = p.buffer(Bytes(static_cast<std::size_t>(width) * 4, std::byte{8}));
  const auto y = p.buffer(Bytes(160));
  const auto z = p.buffer(Bytes(160));
  expr::ExprBuilder builder({ElementType::kInt32});
  builder.output(
      builder.apply(Op::kAdd, {builder.input(0), builder.constant(ElementType::kInt32, 1)}));
  engine::StepDesc count;
  count.kernel = "popx.map";
  count.operands = {whole(i, ElementType::kInt32, {}, Access::kRead),
                    whole(i, ElementType::kInt32, {}, Access::kWrite)};
  count.attributes.set("expr", builder.build().toIntegers());
  const std::vector<engine::StepDesc> body = {storeRow(y, i, three, 3),
                                              storeRow(same_array ? y : z, i, wide, width), count};
  if (as_loop) {
    p.addSteps(p.add(p.add(0, NodeKind::kRepeat, 20), NodeKind::kSequence), body);
  } else {
    for (int iteration = 0; iteration < 20; ++iteration) p.addSteps(0, body);
  }
  return p;
}

}  // namespace

TEST(rows_of_two_widths_are_stored_in_order) {
  for (const std::int64_t width : {3, 8}) {
    for (const bool same_array : {false, true}) {
      const Program loop = twoRows(width, same_array, true);
      CHECK(loop.hasLoopKernel());
      CHECK(loop.run() == twoRows(width, same_array, false).run());
    }
  }
}
