#include "mutants/Mutator.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "engine/image/Image.hpp"
#include "mutants/Random.hpp"

namespace mutants {
namespace {

namespace engine = ipujax::engine;
using engine::Attributes;
using engine::Image;
using engine::OperandDesc;
using engine::StepDesc;

/// A number near a critical value, or near the old one.
std::int64_t another(Random& random, std::int64_t old) {
  static const std::int64_t kSpecial[] = {0,
                                          1,
                                          -1,
                                          2,
                                          3,
                                          4,
                                          7,
                                          8,
                                          15,
                                          16,
                                          17,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          100,
                                          127,
                                          128,
                                          255,
                                          256,
                                          511,
                                          512,
                                          4095,
                                          4096,
                                          65535,
                                          65536,
                                          -2,
                                          -64,
                                          1 << 20,
                                          std::int64_t{1} << 30,
                                          (std::int64_t{1} << 31) - 1,
                                          std::int64_t{1} << 31,
                                          std::int64_t{1} << 32,
                                          std::int64_t{1} << 40,
                                          std::int64_t{1} << 46,
                                          std::int64_t{1} << 60,
                                          std::int64_t{1} << 62,
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
  const auto u = static_cast<std::uint64_t>(old);
  switch (random.below(8)) {
    case 0:
      return static_cast<std::int64_t>(u + 1);
    case 1:
      return static_cast<std::int64_t>(u - 1);
    case 2:
      return static_cast<std::int64_t>(u * 2);
    case 3:
      return old / 2;
    case 4:
      return static_cast<std::int64_t>(0 - u);
    case 5:
      return static_cast<std::int64_t>(u ^ std::uint64_t{1} << random.below(64));
    default:
      return kSpecial[random.below(std::size(kSpecial))];
  }
}

template <class T>
void alter(Random& random, T& value) {
  value = static_cast<T>(another(random, static_cast<std::int64_t>(value)));
}

void alterText(Random& random, std::string& text) {
  if (text.empty() || random.oneIn(4)) {
    text += static_cast<char>(random.below(256));
  } else if (random.oneIn(3)) {
    text.resize(random.below(text.size()));
  } else {
    text[random.below(text.size())] = static_cast<char>(random.below(256));
  }
}

template <class T>
void alterList(Random& random, std::vector<T>& list) {
  const auto choice = random.below(6);
  if (list.empty() || choice == 0) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(random.below(list.size() + 1)),
                static_cast<T>(another(random, 1)));
  } else if (choice == 1) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(random.below(list.size())));
  } else if (choice == 2) {
    std::swap(random.of(list), random.of(list));
  } else if (choice == 3) {
    random.of(list) = random.of(list);
  } else {
    alter(random, random.of(list));
  }
}

void alterOperand(Random& random, OperandDesc& o) {
  switch (random.below(9)) {
    case 0:
      return alter(random, o.buffer);
    case 1:
      o.type = static_cast<engine::ElementType>(random.below(random.oneIn(9) ? 256 : 12));
      return;
    case 2:
      o.access = static_cast<engine::Access>(random.below(random.oneIn(9) ? 256 : 3));
      return;
    case 3:
      return alter(random, o.offset);
    case 4:
      return alterList(random, o.shape);
    case 5:
      return alterList(random, o.strides);
    case 6: {  // one dimension more, or less
      if (o.shape.empty() || random.oneIn(2)) {
        o.shape.push_back(random.oneIn(2) ? 1 : another(random, 2));
        o.strides.push_back(random.oneIn(2) ? 0 : another(random, 1));
      } else {
        o.shape.pop_back();
        if (!o.strides.empty()) o.strides.pop_back();
      }
      return;
    }
    case 7:
      if (!o.shape.empty()) alter(random, random.of(o.shape));
      return;
    default:
      if (!o.strides.empty()) alter(random, random.of(o.strides));
      return;
  }
}

void alterValue(Random& random, Attributes::Value& value) {
  if (auto* n = std::get_if<std::int64_t>(&value)) return alter(random, *n);
  if (auto* list = std::get_if<Attributes::Integers>(&value)) return alterList(random, *list);
  if (auto* text = std::get_if<std::string>(&value)) return alterText(random, *text);
  static const double kReals[] = {0,
                                  -1,
                                  1e300,
                                  -1e300,
                                  std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
  value = kReals[random.below(std::size(kReals))];
}

void alterAttributes(Random& random, Attributes& attributes) {
  std::vector<std::pair<std::string, Attributes::Value>> all(attributes.all().begin(),
                                                             attributes.all().end());
  if (all.empty()) return;
  auto& one = random.of(all);
  switch (random.below(8)) {
    case 0:
      alterText(random, one.first);
      break;
    case 1:
      one.second = random.of(all).second;
      break;
    case 2:
      one = all.back();
      all.pop_back();
      break;
    default:
      alterValue(random, one.second);
  }
  attributes = Attributes();
  for (auto& [name, value] : all) attributes.set(name, value);
}

void alterStep(Random& random, StepDesc& step, std::vector<StepDesc>& others) {
  if (!step.inner.empty() && random.oneIn(2))
    return alterStep(random, random.of(step.inner), others);
  switch (random.below(12)) {
    case 0:
      step.kernel = random.of(others).kernel;
      return;
    case 1:
      step.attributes = random.of(others).attributes;
      return;
    case 2:
      if (!step.operands.empty()) random.of(step.operands) = random.of(step.operands);
      return;
    case 3: {
      auto& from = random.of(others).operands;
      if (!from.empty() && random.oneIn(2))
        step.operands.push_back(random.of(from));
      else if (!step.operands.empty())
        step.operands.pop_back();
      return;
    }
    case 4:
      if (random.oneIn(3))
        alter(random, step.debug);
      else
        step.cost.flops = static_cast<double>(another(random, 1));
      return;
    case 5:
    case 6:
    case 7:
    case 8:
      return alterAttributes(random, step.attributes);
    default:
      if (!step.operands.empty()) alterOperand(random, random.of(step.operands));
  }
}

void alterNode(Random& random, engine::Node& node) {
  switch (random.below(5)) {
    case 0:
      node.kind = static_cast<engine::NodeKind>(random.below(8));
      return;
    case 1:
      return alter(random, node.value);
    case 2:
      return alterList(random, node.children);
    case 3:
      return alterList(random, node.selectors);
    default:
      return alterOperand(random, node.predicate);
  }
}

void alterBuffer(Random& random, engine::BufferDesc& buffer) {
  switch (random.below(5)) {
    case 0:
      buffer.kind = static_cast<engine::BufferKind>(random.below(6));
      return;
    case 1:
      return alter(random, buffer.bytes);
    case 2:
      return alter(random, buffer.offset);
    case 3:
      return alter(random, buffer.input);
    default:
      return alter(random, buffer.output);
  }
}

void alterSignature(Random& random, engine::Signature& s) {
  auto& specs = random.oneIn(2) ? s.inputs : s.outputs;
  switch (random.below(9)) {
    case 0:
      if (!specs.empty()) alter(random, random.of(specs).bytes);
      return;
    case 1:
      if (!specs.empty()) alterList(random, random.of(specs).shape);
      return;
    case 2:
      if (!specs.empty()) alterText(random, random.of(specs).dtype);
      return;
    case 3:
      return alterList(random, s.output_alias);
    case 4:
      return alter(random, s.num_replicas);
    case 5:
      return alterList(random, s.device_ids);
    case 6:
      if (!specs.empty() && random.oneIn(2))
        specs.pop_back();
      else if (!specs.empty())
        specs.push_back(random.of(specs));
      return;
    case 7:
      if (!specs.empty())
        random.of(specs).memory = static_cast<engine::MemoryKind>(random.below(3));
      return;
    default:
      s.has_host_callbacks = !s.has_host_callbacks;
  }
}

void alterRest(Random& random, Image& image) {
  switch (random.below(6)) {
    case 0:
      return alter(random, image.arena_bytes);
    case 1:
      image.constants.resize(random.below(image.constants.size() + 1));
      return;
    case 2:
      if (!image.debug.empty()) image.debug.pop_back();
      return;
    case 3:
      if (!image.streams.empty()) alter(random, random.of(image.streams).bytes);
      return;
    case 4:
      if (!image.memory.largest.empty()) alter(random, random.of(image.memory.largest).debug);
      return;
    default:
      if (!image.entry_points.empty()) image.entry_points.pop_back();
  }
}

/// Alters data: constants hold indices, predicates and tables too.
void alterConstants(Random& random, Image& image) {
  if (image.constants.size() < 4) return;
  const auto value = static_cast<std::uint32_t>(another(random, 1));
  std::memcpy(image.constants.data() + random.below(image.constants.size() - 3), &value, 4);
}

void alterImage(Random& random, Image& image, Image& other) {
  const auto choice = random.below(20);
  if (choice < 12 && !image.steps.empty()) {
    auto& others = other.steps.empty() ? image.steps : other.steps;
    return alterStep(random, random.of(image.steps), random.oneIn(4) ? others : image.steps);
  }
  if (choice < 14) return alterNode(random, random.of(image.nodes));
  if (choice < 16 && !image.buffers.empty()) return alterBuffer(random, random.of(image.buffers));
  if (choice < 18) return alterSignature(random, image.signature);
  return random.oneIn(2) ? alterConstants(random, image) : alterRest(random, image);
}

std::string withFieldsAltered(Random& random, const std::string& sealed,
                              const std::string& other_sealed) {
  Image image = *Image::deserialise(std::as_bytes(std::span(sealed)));
  Image other = *Image::deserialise(std::as_bytes(std::span(other_sealed)));
  const auto changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) alterImage(random, image, other);
  return image.serialise();
}

/// The bytes after magic, format, version, size and checksum.
std::string contentsOf(const std::string& sealed) {
  std::uint64_t version = 0;
  std::memcpy(&version, sealed.data() + 12, sizeof version);
  return sealed.substr(12 + 8 + version + 16);
}

}  // namespace

void alterBytes(Random& random, std::string& bytes) {
  // Mostly alters the program, not the text of the module after it.
  const std::size_t limit =
      random.oneIn(4) ? bytes.size() : std::min<std::size_t>(bytes.size(), 8192);
  const std::size_t at = random.below(limit);
  const std::size_t word = std::min(at, bytes.size() - 8);
  switch (random.below(8)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      return;
    case 1:
      bytes[at] = static_cast<char>(random.below(256));
      return;
    case 2:
    case 3: {
      std::int64_t value = 0;
      std::memcpy(&value, bytes.data() + word, 8);
      value = another(random, value);
      std::memcpy(bytes.data() + word, &value, 8);
      return;
    }
    case 4: {
      auto value = static_cast<std::int32_t>(another(random, 1));
      std::memcpy(bytes.data() + word, &value, 4);
      return;
    }
    case 5:
      bytes.resize(at + 1);
      return;
    case 6:
      random.oneIn(2) ? bytes.erase(at, 1 + random.below(16))
                      : bytes.insert(at, 1 + random.below(16), static_cast<char>(random.below(3)));
      return;
    default: {
      const std::size_t size = std::min<std::size_t>(1 + random.below(64), bytes.size() - at);
      const std::string part = bytes.substr(random.below(bytes.size() - size + 1), size);
      bytes.replace(at, size, part);
    }
  }
}

namespace {

std::string withBytesAltered(Random& random, const std::string& sealed) {
  std::string contents = contentsOf(sealed);
  const auto changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes && contents.size() > 16; ++i) alterBytes(random, contents);
  return Image::seal(contents);
}

Random randomOf(std::uint64_t number) { return Random(number * 0x9e3779b97f4a7c15u + 12345); }

}  // namespace

std::size_t parentOf(const std::vector<std::string>& corpus, std::uint64_t number) {
  return randomOf(number).below(corpus.size());
}

std::string mutate(const std::vector<std::string>& corpus, std::uint64_t number) {
  Random random = randomOf(number);
  const std::string& sealed = corpus[random.below(corpus.size())];
  const std::string& other = corpus[random.below(corpus.size())];
  return random.oneIn(3) ? withBytesAltered(random, sealed)
                         : withFieldsAltered(random, sealed, other);
}

}  // namespace mutants
