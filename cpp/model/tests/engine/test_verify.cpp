// The loader refuses altered fields even if the seal fits.
#include <functional>
#include <limits>
#include <span>
#include <string>

#include "Check.hpp"
#include "engine/Rank.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Image.hpp"
#include "engine/image/Overlap.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/VerifyStep.hpp"
#include "engine/verify/Verify.hpp"

namespace engine = ipujax::engine;
using engine::Access;
using engine::BufferKind;
using engine::ElementType;
using engine::Image;
using engine::NodeKind;
using engine::OperandDesc;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

/// x [4, 4] is copied to a temporary, then its transpose to the result, three times.
Image copies() {
  Image image;
  image.signature.name = "f";
  image.signature.inputs = {{"float32", {4, 4}, 64, {}}, {"bool", {}, 1, {}}};
  image.signature.outputs = {{"float32", {4, 4}, 64, {}}};
  image.signature.output_alias = {-1};
  image.buffers = {{BufferKind::kInput, 64, 0, 0, 0},
                   {BufferKind::kArena, 64, 64, 0, 0},
                   {BufferKind::kOutput, 64, 0, 0, 0},
                   {BufferKind::kInput, 1, 0, 1, 0},
                   {BufferKind::kConstant, 8, 0, 0, 0}};
  image.arena_bytes = 128;
  image.constants.resize(8);
  const auto copy = [](OperandDesc from, OperandDesc to) {
    engine::StepDesc step;
    step.kernel = "engine.copy";
    step.operands = {std::move(from), std::move(to)};
    return step;
  };
  const auto operand = [](std::uint32_t buffer, Access access, std::vector<std::int64_t> strides) {
    return OperandDesc{buffer, ElementType::kFloat, access, 0, {4, 4}, std::move(strides)};
  };
  image.steps = {copy(operand(0, Access::kRead, {4, 1}), operand(1, Access::kWrite, {4, 1})),
                 copy(operand(1, Access::kRead, {1, 4}), operand(2, Access::kWrite, {4, 1}))};
  image.nodes.resize(6);
  image.nodes[0].children = {1, 2};
  image.nodes[1] = {NodeKind::kStep, 0, {}, {}, {}};
  image.nodes[2] = {
      NodeKind::kIf, 0, {3, 5}, {}, {3, ElementType::kBool, Access::kRead, 0, {}, {}}};
  image.nodes[3] = {NodeKind::kRepeat, 3, {4}, {}, {}};
  image.nodes[4] = {NodeKind::kStep, 1, {}, {}, {}};
  image.debug.resize(1);
  return image;
}

void load(const Image& image) {
  const std::string sealed = image.serialise();
  Image::deserialise(std::as_bytes(std::span(sealed)));
}

void refuses(const std::function<void(Image&)>& alter, const std::string& reason) {
  Image image = copies();
  alter(image);
  CHECK_THROWS(load(image), reason);
}

void refusesOperand(const std::function<void(OperandDesc&)>& alter, const std::string& reason) {
  refuses([&](Image& image) { alter(image.steps[1].operands[0]); }, reason);
}

engine::Footprint footprint(std::int64_t offset, std::vector<std::int64_t> shape,
                            std::vector<std::int64_t> strides) {
  const OperandDesc o{0,      ElementType::kFloat, Access::kRead,
                      offset, std::move(shape),    std::move(strides)};
  engine::Footprint footprint;
  footprint.assign(o, offset * 4);
  return footprint;
}

}  // namespace

TEST(what_was_not_altered_is_loaded) { load(copies()); }

TEST(operands_stay_inside_their_buffers) {
  refusesOperand([](OperandDesc& o) { o.buffer = 9; }, "names no buffer");
  refusesOperand([](OperandDesc& o) { o.offset = 1; }, "outside its buffer");
  refusesOperand([](OperandDesc& o) { o.offset = -1; }, "outside its buffer");
  refusesOperand([](OperandDesc& o) { o.offset = kHuge; }, "outside its buffer");
  refusesOperand([](OperandDesc& o) { o.shape[0] = 5; }, "outside its buffer");
  refusesOperand([](OperandDesc& o) { o.strides[0] = -1; }, "outside its buffer");
  refusesOperand([](OperandDesc& o) { o.strides[0] = kHuge; }, "strides");
  refusesOperand([](OperandDesc& o) { o.strides[0] = std::int64_t{1} << 45; }, "reaches too far");
  refusesOperand([](OperandDesc& o) { o.shape[0] = -4; }, "no size");
  refusesOperand([](OperandDesc& o) { o.shape = {1 << 20, 1 << 20}; }, "too many elements");
  refusesOperand(
      [](OperandDesc& o) {
        o.strides = {0, 0}, o.shape = {1 << 20, 1 << 20};
      },
      "too many elements");
  refusesOperand([](OperandDesc& o) { o.type = static_cast<ElementType>(77); }, "malformed");
  refusesOperand([](OperandDesc& o) { o.access = static_cast<Access>(7); }, "unknown type");
  const std::size_t rank = ipujax::engine::kMostRank + 1;
  refusesOperand([&](OperandDesc& o) { o.shape.assign(rank, 1), o.strides.assign(rank, 1); },
                 "dimensions");
}

TEST(writes_go_to_what_may_be_written_and_once) {
  refuses([](Image& i) { i.steps[1].operands[1].buffer = 0; }, "constant or an argument");
  refuses(
      [](Image& i) {
        i.steps[1].operands[1] = {4, ElementType::kFloat, Access::kWrite, 0, {1}, {1}};
      },
      "constant or an argument");
  refuses([](Image& i) { i.steps[0].operands[1].strides = {1, 1}; }, "an element twice");
  refuses(
      [](Image& i) {
        i.steps[0].operands[0] = i.steps[0].operands[1];
        i.steps[0].operands[0].access = Access::kRead;
        i.steps[0].operands[0].strides = {1, 4};
      },
      "do not overlap");
  Image in_place = copies();
  in_place.steps[0].operands[0] = in_place.steps[0].operands[1];
  in_place.steps[0].operands[0].access = Access::kRead;
  load(in_place);
}

TEST(buffers_lie_where_there_is_memory) {
  refuses([](Image& i) { i.buffers[1].offset = 65; }, "outside the arena");
  refuses([](Image& i) { i.buffers[1].offset = ~std::uint64_t{0} - 60; }, "too large");
  refuses([](Image& i) { i.buffers[1].offset = 4; }, "not aligned");
  refuses([](Image& i) { i.buffers[1].kind = static_cast<BufferKind>(9); }, "unknown kind");
  refuses([](Image& i) { i.buffers[4].bytes = 9; }, "outside the constants");
  refuses([](Image& i) { i.buffers[0].bytes = 65; }, "larger than its input");
  refuses([](Image& i) { i.buffers[0].input = 2; }, "names no input");
  refuses([](Image& i) { i.buffers[3] = i.buffers[0]; }, "two buffers");
  refuses([](Image& i) { i.buffers[2].kind = BufferKind::kArena; }, "nothing makes a result");
  refuses([](Image& i) { i.arena_bytes = std::uint64_t{1} << 60; }, "arena is too large");
}

TEST(signatures_hold_together) {
  refuses([](Image& i) { i.signature.output_alias = {}; }, "aliases");
  refuses([](Image& i) { i.signature.output_alias = {5}; }, "no input");
  refuses([](Image& i) { i.signature.output_alias = {1}; }, "another size");
  refuses(
      [](Image& i) {
        i.signature.output_alias = {0};
        i.signature.outputs[0].memory = engine::MemoryKind::kPinnedHost;
      },
      "another memory");
  refuses([](Image& i) { i.signature.inputs[1].memory = static_cast<engine::MemoryKind>(2); },
          "unknown memory");
  refuses(
      [](Image& i) {
        i.signature.inputs.push_back({"token", {}, 0, {}, engine::MemoryKind::kPinnedHost});
      },
      "a token lies");
  refuses([](Image& i) { i.signature.num_replicas = 0; }, "no replica");
  refuses([](Image& i) { i.signature.device_ids = {0, 0}; }, "devices");
  refuses([](Image& i) { i.signature.inputs[0].shape = {-1}; }, "no size");
  for (const std::vector<std::int64_t>& layout :
       {std::vector<std::int64_t>{0}, {0, 0}, {1, 2}, {-1, 0}, {0, 1, 2}})
    refuses([&](Image& i) { i.signature.outputs[0].minor_to_major = layout; }, "the layout of an");
  Image transposed = copies();
  transposed.signature.outputs[0].minor_to_major = {0, 1};
  load(transposed);
  refuses([](Image& i) { i.entry_points = {"0"}; }, "one selector");
}

TEST(trees_end) {
  refuses([](Image& i) { i.nodes[3].children = {3}; }, "child");
  refuses([](Image& i) { i.nodes[0].children = {1, 2, 4}; }, "two parents");
  refuses([](Image& i) { i.nodes[3].children = {}; }, "number of children");
  refuses([](Image& i) { i.nodes[1].children = {5}; }, "number of children");
  refuses([](Image& i) { i.nodes[1].value = 2; }, "no step");
  refuses([](Image& i) { i.nodes[2].kind = static_cast<NodeKind>(9); }, "unknown kind");
  refuses([](Image& i) { i.nodes[2].predicate.offset = 1; }, "outside its buffer");
  refuses([](Image& i) { i.nodes[2].predicate = i.steps[0].operands[0]; }, "condition");
  refuses([](Image& i) { i.nodes = {}; }, "empty");
  refuses(
      [](Image& i) {
        i.nodes.assign(5000, {});
        for (std::uint32_t n = 0; n + 1 < i.nodes.size(); ++n) i.nodes[n].children = {n + 1};
      },
      "too deep");
}

TEST(names_and_numbers_exist) {
  refuses([](Image& i) { i.steps[0].debug = 1; }, "debug entry");
  refuses([](Image& i) { i.memory.largest = {{3, 1, 1, 1}}; }, "debug entry");
  refuses([](Image& i) { i.steps[0].cost.flops = std::numeric_limits<double>::infinity(); },
          "cycles");
  refuses([](Image& i) { i.steps[0].kernel = "engine.gone"; }, "engine.gone");
  refuses([](Image& i) { i.clock_hz = -1; }, "clock");
}

TEST(streams_have_parts_of_equal_size) {
  const auto with = [](std::uint64_t bytes, bool to_device, bool broadcasts, std::uint32_t parts) {
    return [=](Image& i) { i.streams = {{"in", bytes, to_device, broadcasts, parts}}; };
  };
  Image good = copies();
  with(64, true, false, 4)(good);
  load(good);
  refuses(with(64, true, false, 0), "parts of equal size");
  refuses(with(64, true, false, 3), "parts of equal size");
  refuses(with(64, true, false, 1 << 17), "parts of equal size");
  refuses(with(64, true, true, 4), "broadcast");
  refuses(with(64, false, true, 1), "broadcast");
  refuses(with(~std::uint64_t{0}, true, false, 1), "too large");
}

TEST(floating_point_exceptions_are_those_that_exist) {
  refuses([](Image& i) { i.steps[0].attributes.set("float_traps", std::int64_t{8}); },
          "float_traps");
  refuses([](Image& i) { i.steps[0].attributes.set("float_traps", "all"); }, "float_traps");
}

TEST(fifos_exchange_whole_buffers_of_their_own) {
  // A place, the newest and the oldest value, and one row, each in a buffer of the arena.
  const auto turn = [](const std::function<void(Image&)>& alter) {
    Image image = copies();
    const auto first = static_cast<std::uint32_t>(image.buffers.size());
    const auto base = (image.arena_bytes + 63) / 64 * 64;
    image.arena_bytes = base + 256;
    engine::StepDesc step;
    step.kernel = "engine.turn";
    step.attributes.set("clamp", std::int64_t{1});
    for (std::uint32_t i = 0; i < 4; ++i) {
      image.buffers.push_back({engine::BufferKind::kArena, i == 0 ? 4u : 16u, base + 64 * i, 0, 0});
      const Access access = i == 0 ? Access::kRead : i == 2 ? Access::kWrite : Access::kReadWrite;
      const auto type = i == 0 ? ElementType::kUInt32 : ElementType::kFloat;
      step.operands.push_back({first + i, type, access, 0, {i == 0 ? 1 : 4}, {1}});
    }
    image.steps.push_back(step);
    alter(image);
    engine::verify(image);
  };
  turn([](Image&) {});
  const auto refusesTurn = [&](const std::function<void(Image&)>& alter, const char* what) {
    CHECK_THROWS(turn(alter), what);
  };
  refusesTurn([](Image& i) { i.steps.back().operands.pop_back(); }, "rows");
  refusesTurn([](Image& i) { i.steps.back().attributes.set("clamp", std::int64_t{0}); }, "clamp");
  refusesTurn([](Image& i) { i.buffers.back().bytes = 32; }, "whole buffers");
  refusesTurn([](Image& i) { i.steps.back().operands[3].shape = {3}; }, "shape");
  refusesTurn([](Image& i) { i.buffers.push_back(i.buffers.back()); }, "overlaps another");
}

TEST(runs_of_edges_lie_within_their_operands) {
  using Integers = engine::Attributes::Integers;
  // The 16 elements of the first array as two edges, one after the other.
  const auto gather = [](const Integers& runs, std::int64_t scatters = 0) {
    Image image = copies();
    engine::StepDesc& step = image.steps[0];
    step.kernel = "engine.edges";
    std::swap(step.operands[0], step.operands[1]);
    step.attributes.set("runs", runs).set("scatters", scatters);
    load(image);
  };
  gather({1, 8, 0, 8, 1, 0, 8, 8});
  CHECK_THROWS(gather({1, 8, 0, 8}, 1), "operand 0 to be only read");
  for (const Integers& runs : std::vector<Integers>{{1, 9, 0, 8},
                                                    {1, 0, 9, 8},
                                                    {1, -1, 0, 8},
                                                    {1, 0, -1, 8},
                                                    {1, 0, 0, -1},
                                                    {1, 0, 0, 17},
                                                    {0, 0, 0, 8},
                                                    {2, 0, 0, 8},
                                                    {1, 0, 0}})
    CHECK_THROWS(gather(runs), "runs within its operands");
}

/// A kernel that accepts an empty step has not declared what it needs.
TEST(every_kernel_refuses_a_step_of_nothing) {
  const Image image = copies();
  int refused = 0;
  for (const auto& name : engine::KernelRegistry::instance().names()) {
    engine::StepDesc step;
    step.kernel = name;
    if (name == "engine.account") continue;  // does nothing, on nothing
    CHECK_THROWS(engine::verifyStep(step, image, {}), name);
    ++refused;
  }
  CHECK(refused > 50);
}

TEST(windows_that_wrap_fit_their_array) {
  using Integers = engine::Attributes::Integers;
  // Three of the first array's rows.
  const auto slice = [](const std::function<void(engine::StepDesc&)>& alter) {
    Image image = copies();
    engine::StepDesc step;
    step.kernel = "popops.dynamic_slice";
    step.operands = image.steps[0].operands;
    step.operands.insert(step.operands.begin() + 1,
                         {4, ElementType::kInt32, Access::kRead, 0, {1}, {1}});
    step.operands[2].shape = {3, 4};
    step.attributes.set("window", Integers{0, 1}).set("map", Integers{0});
    step.attributes.set("batching", Integers{}).set("sizes", Integers{3, 4});
    step.attributes.set("clamp", std::int64_t{2});
    alter(step);
    image.steps[0] = step;
    load(image);
  };
  slice([](engine::StepDesc&) {});
  using engine::StepDesc;
  CHECK_THROWS(slice([](StepDesc& s) { s.attributes.set("clamp", std::int64_t{4}); }), "clamp");
  CHECK_THROWS(slice([](StepDesc& s) { s.operands[0].shape = {2, 4}; }), "fits the array");
  CHECK_THROWS(slice([](StepDesc& s) {
                 s.attributes.set("window", Integers{1}).set("sizes", Integers{1, 4});
                 s.operands[2].shape = {4};
                 s.operands[2].strides = {1};
               }),
               "all dimensions");
  CHECK_THROWS(slice([](StepDesc& s) {
                 s.attributes.set("batching", Integers{-1});
                 s.operands[1].shape = {1, 1};
                 s.operands[1].strides = {1, 1};
                 s.operands[2].shape = {1, 3, 4};
                 s.operands[2].strides = {12, 4, 1};
               }),
               "one window");
  CHECK_THROWS(slice([](StepDesc& s) {
                 s.kernel = "popops.dynamic_update";
                 s.attributes.set("body", std::string("add")).set("unique", std::int64_t{1});
                 std::swap(s.operands[0], s.operands[2]);
                 s.operands[0].access = Access::kReadWrite;
                 s.operands[2].access = Access::kRead;
                 s.operands[0].shape = {4, 4};
                 s.operands[2].shape = {3, 4};
               }),
               "replaced");
}

TEST(rows_keep_to_their_operands) {
  const auto rows = [](const std::function<void(engine::StepDesc&)>& alter) {
    Image image = copies();
    engine::StepDesc step;
    step.kernel = "engine.rows";
    step.operands = image.steps[0].operands;
    engine::expr::ExprBuilder builder({ElementType::kFloat});
    builder.output(builder.apply(engine::expr::Op::kNegate, {builder.input(0)}));
    engine::StepDesc inner = image.steps[0];
    inner.kernel = "popx.map";
    inner.attributes.set("expr", builder.build().toIntegers());
    engine::StepDesc second = inner;
    inner.operands[0].buffer = 0;
    inner.operands[1].buffer = 2;
    second.operands[0].buffer = 2;
    second.operands[1].buffer = 1;
    step.attributes.set("rows", std::int64_t{4})
        .set("chunk", std::int64_t{3})
        .set("locals", engine::Attributes::Integers{16});
    step.inner = {inner, second};
    alter(step);
    image.steps[0] = step;
    load(image);
  };
  rows([](engine::StepDesc&) {});
  using engine::StepDesc;
  CHECK_THROWS(rows([](StepDesc& s) { s.attributes.set("chunk", std::int64_t{5}); }), "chunk");
  CHECK_THROWS(rows([](StepDesc& s) { s.attributes.set("rows", std::int64_t{5}); }), "rows");
  CHECK_THROWS(
      rows([](StepDesc& s) { s.attributes.set("locals", engine::Attributes::Integers{12}); }),
      "locals");
  CHECK_THROWS(rows([](StepDesc& s) { s.inner[0].operands[1].buffer = 3; }), "locals");
  CHECK_THROWS(rows([](StepDesc& s) { s.inner[0].operands[1].strides[1] = 2; }), "locals");
  CHECK_THROWS(rows([](StepDesc& s) { s.inner[0].operands[0].strides[1] = 2; }), "as they are");
  CHECK_THROWS(rows([](StepDesc& s) { s.inner[0].kernel = "engine.copy"; }), "row by row");
}

TEST(truth_values_are_true_or_false) {
  std::string sealed = copies().serialise();
  Image yes = copies();
  yes.signature.has_host_callbacks = true;
  const std::string other = yes.serialise();
  // The one byte of the contents that differs is that truth value.
  const std::size_t header = 8 + 4 + 8 + std::string(IPUJAX_VERSION).size() + 16;
  std::string contents = sealed.substr(header);
  const std::string changed = other.substr(header);
  std::size_t at = 0;
  while (contents[at] == changed[at]) ++at;
  contents[at] = 2;
  const std::string altered = Image::seal(contents);
  CHECK_THROWS(Image::deserialise(std::as_bytes(std::span(altered))), "truth value");
}

TEST(slices_of_one_array_are_apart) {
  const auto left = footprint(0, {8, 3}, {10, 1});
  CHECK(engine::areApart(left, footprint(3, {8, 7}, {10, 1})));
  CHECK(!engine::areApart(left, footprint(2, {8, 7}, {10, 1})));
  CHECK(engine::areApart(footprint(0, {5}, {2}), footprint(1, {5}, {2})));
  CHECK(!engine::areApart(footprint(0, {5}, {2}), footprint(2, {5}, {2})));
  CHECK(
      engine::areApart(footprint(20, {2, 3, 4}, {40, 5, 1}), footprint(24, {2, 3, 1}, {40, 5, 1})));
  CHECK(engine::areApart(footprint(9, {5}, {-2}), footprint(8, {5}, {-2})));
  CHECK(engine::areApart(footprint(0, {0}, {1}), footprint(0, {4}, {1})));
  CHECK(engine::isSame(left, footprint(0, {8, 1, 3}, {10, 77, 1})));
  CHECK(engine::areElementsApart(footprint(0, {4, 4}, {1, 4})));
  CHECK(!engine::areElementsApart(footprint(0, {4, 4}, {1, 3})));
  CHECK(!engine::areElementsApart(footprint(0, {4}, {0})));
}

TEST(expressions_have_the_types_they_say) {
  using engine::expr::ExprBuilder;
  using engine::expr::ExprProgram;
  using engine::expr::Op;
  ExprBuilder builder({ElementType::kFloat, ElementType::kFloat});
  builder.output(builder.apply(Op::kAdd, {builder.input(0), builder.input(1)}));
  const auto good = builder.build().toIntegers();
  ExprProgram::fromIntegers(good);
  const auto altered = [&](std::size_t at, std::int64_t value) {
    auto integers = good;
    integers[at] = value;
    return integers;
  };
  const auto number = [](Op op, ElementType type) {
    return static_cast<std::int64_t>(op) * 256 + static_cast<std::int64_t>(type);
  };
  const auto type = static_cast<std::int64_t>(ElementType::kDouble);
  CHECK_THROWS(ExprProgram::fromIntegers(altered(5, type)), "operands of one type");
  CHECK_THROWS(ExprProgram::fromIntegers(altered(6, number(Op::kAdd, ElementType::kInt8))),
               "types");
  CHECK_THROWS(ExprProgram::fromIntegers(altered(6, number(Op::kSelect, ElementType::kFloat))),
               "format 1");
  CHECK_THROWS(ExprProgram::fromIntegers(altered(8, 9)), "format 1");
  auto longer = good;
  longer.push_back(0);
  CHECK_THROWS(ExprProgram::fromIntegers(longer), "behind its end");
}
