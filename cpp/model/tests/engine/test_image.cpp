#include <cstddef>
#include <span>
#include <string>

#include "Check.hpp"
#include "engine/Attributes.hpp"
#include "engine/Serial.hpp"
#include "engine/image/Image.hpp"

namespace engine = ipujax::engine;

namespace {

engine::Image tiny() {
  engine::Image image;
  image.signature.name = "f";
  image.signature.inputs.push_back({"float32", {4}, 16, {}});
  image.signature.outputs.push_back({"float32", {4}, 16, {}});
  image.signature.output_alias = {-1};
  image.buffers = {{engine::BufferKind::kInput, 16, 0, 0, 0},
                   {engine::BufferKind::kOutput, 16, 0, 0, 0}};
  engine::StepDesc step;
  step.kernel = "engine.copy";
  step.operands = {{0, engine::ElementType::kFloat, engine::Access::kRead, 0, {4}, {1}},
                   {1, engine::ElementType::kFloat, engine::Access::kWrite, 0, {4}, {1}}};
  step.attributes.set("answer", std::int64_t{42}).set("list", engine::Attributes::Integers{1, 2});
  step.cost.compute_cycles = 7;
  image.steps = {step};
  image.nodes.resize(2);
  image.nodes[0].children = {1};
  image.nodes[1].kind = engine::NodeKind::kStep;
  image.debug.resize(1);
  image.constants.resize(5);
  return image;
}

std::shared_ptr<const engine::Image> read(const std::string& bytes) {
  return engine::Image::deserialise(std::as_bytes(std::span(bytes)));
}

}  // namespace

TEST(everything_comes_back) {
  const auto image = read(tiny().serialise());
  CHECK_EQ(image->signature.inputs[0].dtype, "float32");
  CHECK_EQ(image->steps[0].attributes.integer("answer"), 42);
  CHECK_EQ(image->steps[0].attributes.integers("list")[1], 2);
  CHECK_EQ(image->constants.size(), 5u);
  CHECK_EQ(image->cost().cycles(), 7.0);
}

TEST(every_cut_is_refused) {
  const std::string bytes = tiny().serialise();
  for (std::size_t keep = 0; keep < bytes.size(); ++keep)
    CHECK_THROWS(read(bytes.substr(0, keep)), "[Executable]");
  CHECK_THROWS(read(bytes + "x"), "checksum");
}

TEST(every_flipped_bit_is_refused) {
  const std::string bytes = tiny().serialise();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string altered = bytes;
    altered[i] = static_cast<char>(altered[i] ^ 0x10);
    CHECK_THROWS(read(altered), "[Executable]");
  }
}

TEST(references_out_of_range_are_refused_even_when_sealed) {
  auto image = tiny();
  image.steps[0].operands[0].buffer = 9;
  CHECK_THROWS(read(image.serialise()), "names no buffer");
  image = tiny();
  image.nodes[0].children = {0};
  CHECK_THROWS(read(image.serialise()), "child");
  image = tiny();
  image.buffers[0].input = 3;
  CHECK_THROWS(read(image.serialise()), "names no input");
}

TEST(attributes_tell_absent_and_wrong_types) {
  engine::Attributes attributes;
  attributes.set("n", std::int64_t{1});
  CHECK_THROWS(attributes.integer("m"), "'m'");
  CHECK_THROWS(attributes.text("n"), "text");
}
