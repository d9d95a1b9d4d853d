#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/LoopPrograms.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/MapOps.hpp"

/// Loops of single elements of every type and operation, with lookups by computed indices, loops
/// and branches inside: as threaded code against the same steps walked.
namespace expr = ipujax::engine::expr;

namespace {

using namespace loops;
using engine::StepDesc;
using expr::Op;

constexpr ElementType kTypes[] = {ElementType::kBool,   ElementType::kInt8,   ElementType::kUInt8,
                                  ElementType::kInt16,  ElementType::kUInt16, ElementType::kInt32,
                                  ElementType::kInt32,  ElementType::kUInt32, ElementType::kInt64,
                                  ElementType::kUInt64, ElementType::kHalf,   ElementType::kFloat,
                                  ElementType::kFloat,  ElementType::kDouble};
constexpr std::int64_t kTable = 16;  ///< elements of a table, or four rows of four

bool isInteger(ElementType type) { return type != ElementType::kBool && type < ElementType::kHalf; }

class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : random_(seed) {
    for (const ElementType type : kTypes) {
      arrays_.push_back(array(type, 1));
      arrays_.push_back(array(type, 1 + static_cast<std::int64_t>(pick(4))));
      tables_.push_back(array(type, kTable));
    }
    const auto loop = program_.add(0, NodeKind::kRepeat, pick(12));
    block(program_.add(loop, NodeKind::kSequence), 0);
  }

  const Program& program() const { return program_; }
  Program walked() const {
    Program p = program_;
    p.image.mechanisms = engine::Mechanisms::without("loops");
    return p;
  }

  /// The bits of a buffer with all NaNs made equal: it is not defined which of two is left.
  Bytes comparable(const Bytes& bytes, std::size_t buffer) const {
    Bytes result = bytes;
    const ElementType type = types_[buffer];
    const auto each = [&]<class T>(T nan, auto isNaN) {
      for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, result.data() + at, sizeof(T));
        if (isNaN(value)) std::memcpy(result.data() + at, &nan, sizeof(T));
      }
    };
    if (type == ElementType::kFloat) each(std::nanf(""), [](float v) { return std::isnan(v); });
    if (type == ElementType::kDouble) each(std::nan(""), [](double v) { return std::isnan(v); });
    if (type == ElementType::kHalf)
      each(std::uint16_t{0x7e00}, [](std::uint16_t v) { return (v & 0x7fffu) > 0x7c00u; });
    return result;
  }

 private:
  struct Array {
    ElementType type;
    std::int64_t elements;
    std::uint32_t buffer;
  };

  std::size_t pick(std::size_t n) { return random_() % n; }

  Array array(ElementType type, std::int64_t elements) {
    const std::size_t size = sizeOf(type);
    Bytes contents(static_cast<std::size_t>(elements) * size);
    for (std::size_t at = 0; at < contents.size(); at += size) {
      if (type == ElementType::kFloat || type == ElementType::kDouble) {
        const float special[] = {INFINITY, -INFINITY, NAN, -0.0F, 1e-40F};
        const float f = pick(8) ? static_cast<float>(pick(4000)) / 500.0F - 4.0F : special[pick(5)];
        const double d = f;
        std::memcpy(contents.data() + at, size == 4 ? static_cast<const void*>(&f) : &d, size);
      } else {
        std::uint64_t bits = pick(4) ? pick(40) : random_() * 0x9e3779b97f4a7c15ull;
        if (type == ElementType::kBool) bits &= 1u;
        if (type == ElementType::kHalf) bits = pick(8) ? 0x3000 + pick(0x1800) : random_();
        std::memcpy(contents.data() + at, &bits, size);
      }
    }
    types_.push_back(type);
    return {type, elements, program_.buffer(std::move(contents))};
  }

  const Array& arrayOf(ElementType type) {
    for (;;) {
      const Array& found = arrays_[pick(arrays_.size())];
      if (found.type == type) return found;
    }
  }
  const Array& indexArray() {
    for (;;) {
      const Array& found = arrays_[pick(arrays_.size())];
      if (isInteger(found.type)) return found;
    }
  }

  /// The array as a step of n elements reads it: all of it, or one element for all.
  OperandDesc read(const Array& array, std::int64_t n) {
    OperandDesc o = whole(array.buffer, array.type, {n}, Access::kRead);
    if (array.elements < n || pick(4) == 0) {
      o.strides = {0};
      o.offset = static_cast<std::int64_t>(pick(static_cast<std::size_t>(array.elements)));
    }
    return o;
  }

  void block(std::uint32_t node, int depth) {
    const std::size_t num_steps = 2 + pick(6);
    for (std::size_t i = 0; i < num_steps; ++i) {
      const std::size_t kind = pick(depth < 2 ? 13 : 9);
      if (kind < 4) {
        add(node, map());
      } else if (kind < 5) {
        add(node, copy());
      } else if (kind < 9) {
        add(node, row(kind % 2 == 0));
      } else if (kind == 9) {
        const auto loop = program_.add(node, NodeKind::kRepeat, pick(5));
        block(program_.add(loop, NodeKind::kSequence), depth + 1);
      } else if (kind == 10) {
        openLoop(node, depth);
      } else if (kind == 11) {
        choice(node, depth);
      } else {
        branch(node, depth);
      }
    }
  }
  void add(std::uint32_t node, StepDesc step) { program_.addSteps(node, {std::move(step)}); }

  /// Begins a loop that counts up from a number while it is below another one.
  void openLoop(std::uint32_t node, int depth) {
    const Array counter = array(ElementType::kInt32, 1);
    const Array limit = array(ElementType::kInt32, 1);
    const Array flag = array(ElementType::kBool, 1);
    const auto few = static_cast<std::int32_t>(pick(6));
    const std::int32_t zero = 0;
    std::memcpy(program_.start[limit.buffer].data(), &few, 4);
    std::memcpy(program_.start[counter.buffer].data(), &zero, 4);
    const bool goes_on = pick(2) == 1;
    const auto loop = program_.add(node, NodeKind::kRepeatWhile, goes_on ? 1 : 0);
    program_.image.nodes[loop].predicate = whole(flag.buffer, flag.type, {}, Access::kRead);
    const auto condition = program_.add(loop, NodeKind::kSequence);
    add(condition, binary(goes_on ? Op::kLessThan : Op::kGreaterThanEqual, counter, limit, flag));
    const auto body = program_.add(loop, NodeKind::kSequence);
    block(body, depth + 1);
    expr::ExprBuilder builder({ElementType::kInt32});
    builder.output(
        builder.apply(Op::kAdd, {builder.input(0), builder.constant(ElementType::kInt32, 1)}));
    StepDesc count;
    count.kernel = "popx.map";
    count.operands = {whole(counter.buffer, counter.type, {}, Access::kRead),
                      whole(counter.buffer, counter.type, {}, Access::kWrite)};
    count.attributes.set("expr", builder.build().toIntegers());
    add(body, std::move(count));
  }

  void branch(std::uint32_t node, int depth) {
    const Array flag = array(ElementType::kBool, 1);
    const Array& a = arrayOf(ElementType::kInt32);
    add(node, binary(Op::kLessThan, a, arrayOf(ElementType::kInt32), flag));
    const auto chosen = program_.add(node, NodeKind::kIf);
    program_.image.nodes[chosen].predicate = whole(flag.buffer, flag.type, {}, Access::kRead);
    block(program_.add(chosen, NodeKind::kSequence), depth + 1);
    block(program_.add(chosen, NodeKind::kSequence), depth + 1);
  }

  void choice(std::uint32_t node, int depth) {
    const bool is_small = pick(2) == 0;
    const Array selector = array(is_small ? ElementType::kInt8 : ElementType::kInt32, 1);
    const std::size_t cases = 1 + pick(3);
    const auto chosen = program_.add(node, NodeKind::kSwitch);
    for (std::size_t i = 0; i < cases; ++i)
      program_.image.nodes[chosen].selectors.push_back(
          pick(2) ? static_cast<std::int8_t>(program_.start[selector.buffer][0])
                  : static_cast<std::int64_t>(pick(40)));
    program_.image.nodes[chosen].predicate =
        whole(selector.buffer, selector.type, {}, Access::kRead);
    for (std::size_t i = 0; i <= cases; ++i)
      block(program_.add(chosen, NodeKind::kSequence), depth + 1);
  }

  StepDesc binary(Op op, const Array& a, const Array& b, const Array& to) {
    expr::ExprBuilder builder({a.type, b.type});
    builder.output(builder.apply(op, {builder.input(0), builder.input(1)}));
    StepDesc step;
    step.kernel = "popx.map";
    step.operands = {whole(a.buffer, a.type, {}, Access::kRead),
                     whole(b.buffer, b.type, {}, Access::kRead),
                     whole(to.buffer, to.type, {}, Access::kWrite)};
    step.attributes.set("expr", builder.build().toIntegers());
    return step;
  }

  /// Random operations on values of any type, with one to three results.
  StepDesc map() {
    std::vector<const Array*> targets;
    const Array& first = arrays_[pick(arrays_.size())];
    const std::int64_t n = first.elements;
    const std::size_t num_results = 1 + pick(3);
    for (int attempt = 0; attempt < 20 && targets.size() < num_results; ++attempt) {
      const Array& target = targets.empty() ? first : arrays_[pick(arrays_.size())];
      const bool is_new = std::ranges::find(targets, &target) == targets.end();
      if (is_new && target.elements == n) targets.push_back(&target);
    }
    StepDesc step;
    step.kernel = "popx.map";
    std::vector<ElementType> types;
    for (const Array* target : targets) {  // in place, too
      for (int i = 0; i < 2; ++i) {
        const Array& source = pick(3) ? arrayOf(target->type) : *target;
        OperandDesc o = read(source, n);
        const bool written = std::ranges::any_of(
            targets, [&](const Array* t) { return t->buffer == source.buffer; });
        if (written) o = whole(source.buffer, source.type, {n}, Access::kRead);
        step.operands.push_back(o);
        types.push_back(source.type);
      }
    }
    expr::ExprBuilder builder(types);
    std::vector<std::int32_t> values;
    for (std::size_t i = 0; i < types.size(); ++i) values.push_back(builder.input(i));
    const std::size_t num_ops = 1 + pick(8);
    for (std::size_t i = 0; i < num_ops; ++i) values.push_back(operation(builder, values));
    for (const Array* target : targets) {
      builder.output(valueOf(builder, values, target->type));
      step.operands.push_back(whole(target->buffer, target->type, {n}, Access::kWrite));
    }
    step.attributes.set("expr", builder.build().toIntegers());
    return step;
  }

  /// The last value of a type, or any value converted to it.
  std::int32_t valueOf(expr::ExprBuilder& builder, const std::vector<std::int32_t>& values,
                       ElementType type) {
    for (std::size_t i = values.size(); i-- > 0 && pick(4);)
      if (builder.typeOf(values[i]) == type) return values[i];
    return builder.cast(values[pick(values.size())], type);
  }

  std::int32_t operation(expr::ExprBuilder& builder, const std::vector<std::int32_t>& values) {
    for (;;) {
      const auto op = static_cast<Op>(pick(expr::kOpCount));
      const std::int32_t a = values[pick(values.size())];
      const ElementType type = builder.typeOf(a);
      if (pick(8) == 0) return builder.constantFrom(type, 3);
      const bool special = op == Op::kConstant || op == Op::kCast || op == Op::kBitcast ||
                           op == Op::kReducePrecision || op == Op::kRandomBits ||
                           op == Op::kRotateLeft;  // of 32 bits, by 0 to 31
      if (special || !engine::simd::findMap({op, type, type})) continue;
      std::vector<std::int32_t> args{a};
      while (static_cast<int>(args.size()) < expr::numOperands(op))
        args.push_back(valueOf(builder, values, type));
      if (op == Op::kSelect) args[2] = valueOf(builder, values, ElementType::kBool);
      try {
        return builder.apply(op, args);
      } catch (const std::invalid_argument&) {  // not of this type
      }
    }
  }

  StepDesc copy() {
    const Array& to = arrays_[pick(arrays_.size())];
    const Array& from = arrayOf(to.type);
    StepDesc step;
    step.kernel = "engine.copy";
    step.operands = {from.buffer == to.buffer
                         ? whole(from.buffer, from.type, {to.elements}, Access::kRead)
                         : read(from, to.elements),
                     whole(to.buffer, to.type, {to.elements}, Access::kWrite)};
    return step;
  }

  /// A piece of a table, or of a row of it, at any index.
  StepDesc row(bool stores) {
    const Array& table = tables_[pick(tables_.size())];
    const Array& small = arrayOf(table.type);
    const Array& index = indexArray();
    const std::int64_t n = small.elements;
    const bool two = index.elements > 1 && pick(2);
    StepDesc step;
    OperandDesc large = whole(table.buffer, table.type, two ? Dims{4, 4} : Dims{kTable},
                              stores ? Access::kReadWrite : Access::kRead);
    if (!two && n <= 4 && pick(4) == 0) {  // every fourth element
      large.shape = {4};
      large.strides = {4};
    }
    step.operands = {large, whole(index.buffer, index.type, {two ? 2 : 1}, Access::kRead),
                     whole(small.buffer, small.type, two ? Dims{1, n} : Dims{n},
                           stores ? Access::kRead : Access::kWrite)};
    step.attributes.set("window", two ? Dims{0, 1} : Dims{0});
    step.attributes.set("map", two ? Dims{0, 1} : Dims{0});
    step.attributes.set("sizes", two ? Dims{1, n} : Dims{n});
    step.attributes.set("batching", Dims{});
    const std::size_t outside = pick(3);  // left out, clamped, or wrapped
    const bool clamps = (outside == 0 && !stores) || (outside == 2 && (n > 1 || stores));
    step.attributes.set("clamp", clamps ? std::int64_t{1} : static_cast<std::int64_t>(outside));
    step.kernel = stores ? "popops.dynamic_update" : "popops.dynamic_slice";
    if (stores) step.attributes.set("body", update(table.type)).set("unique", std::int64_t{1});
    return step;
  }

  std::string update(ElementType type) {
    if (type == ElementType::kBool)
      return std::vector<std::string>{"replace", "and", "or"}[pick(3)];
    static const char* const kAll[] = {"replace", "replace", "add", "mul", "min", "max", "and"};
    return kAll[pick(isInteger(type) ? 7 : 6)];
  }

  Program program_;
  std::mt19937_64 random_;
  std::vector<Array> arrays_, tables_;
  std::vector<ElementType> types_;  ///< by buffer
};

}  // namespace

TEST(threaded_loops_leave_what_their_steps_leave) {
  int kernels = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const RandomLoop random(seed);
    kernels += random.program().hasLoopKernel() ? 1 : 0;
    const auto got = random.program().run();
    const auto want = random.walked().run();
    for (std::size_t b = 0; b < want.size(); ++b)
      if (random.comparable(got[b], b) != random.comparable(want[b], b))
        check::fail(__FILE__, __LINE__, "seed ", seed, " buffer ", b);
  }
  CHECK(kernels > 800);  // or little was compared
}

namespace {

StepDesc copyOfFlag(std::uint32_t buffer, std::uint32_t to) {
  StepDesc step;
  step.kernel = "engine.copy";
  step.operands = {whole(buffer, ElementType::kBool, {1}, Access::kRead),
                   whole(to, ElementType::kBool, {1}, Access::kWrite)};
  return step;
}

}  // namespace

TEST(loops_with_more_branches_than_code_may_have_are_walked) {
  for (const int branches : {10, 2000}) {
    Program program;
    const auto flag = program.buffer(Bytes(1, std::byte{1}));
    const auto copy = program.buffer(Bytes(1));
    const auto body = program.add(program.add(0, NodeKind::kRepeat, 100), NodeKind::kSequence);
    program.addSteps(body, {copyOfFlag(flag, copy)});
    for (int i = 0; i < branches; ++i) {
      const auto branch = program.add(body, NodeKind::kIf);
      program.image.nodes[branch].predicate = whole(flag, ElementType::kBool, {}, Access::kRead);
      for (int child = 0; child < 2; ++child) program.add(branch, NodeKind::kSequence);
    }
    CHECK_EQ(program.hasLoopKernel(), branches == 10);
  }
}

TEST(an_empty_array_with_a_long_dimension_takes_no_memory) {
  Program program;
  const auto inside = program.buffer({});
  const auto value = program.buffer(Bytes(4));
  const auto to = program.buffer(Bytes(16));
  StepDesc pad;
  pad.kernel = "popx.pad";
  pad.operands = {whole(inside, ElementType::kFloat, {1 << 26, 0}, Access::kRead),
                  whole(value, ElementType::kFloat, {}, Access::kRead),
                  whole(to, ElementType::kFloat, {2, 2}, Access::kWrite)};
  pad.attributes.set("start", Dims{0, 0}).set("step", Dims{1, 1});
  program.addSteps(program.add(0, NodeKind::kRepeat, 100), {pad});
  const std::clock_t begin = std::clock();
  CHECK(program.hasLoopKernel());
  CHECK(std::clock() - begin < CLOCKS_PER_SEC / 10);  // a list of its rows takes longer
}
