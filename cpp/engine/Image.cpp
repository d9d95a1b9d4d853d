#include "engine/Image.hpp"

#include <bit>
#include <cstring>

#include "engine/Serial.hpp"
#include "engine/verify/Verify.hpp"

namespace ipujax::engine {
namespace {

constexpr char kMagic[8] = {'I', 'P', 'U', 'J', 'A', 'X', 'E', 'X'};
constexpr std::uint32_t kFormat = 7;  // raise with every change of what follows

/// A 64-bit mixing hash over 8-byte words: finds cut, flipped and moved bytes; not cryptographic.
std::uint64_t checksum(const void* data, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h[4] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u, size};
  const auto mix = [](std::uint64_t& state, std::uint64_t word) {
    state = std::rotl((state ^ word) * 0xff51afd7ed558ccdu, 31);
  };
  std::size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    std::uint64_t words[4];
    std::memcpy(words, p + i, 32);
    for (int k = 0; k < 4; ++k) mix(h[k], words[k]);
  }
  for (; i < size; ++i) mix(h[i % 4], p[i] + 1u);
  for (int k = 1; k < 4; ++k) mix(h[0], h[k]);
  return h[0] ^ h[0] >> 29;
}

void write(Writer& w, const TensorSpec& spec) {
  w.put(spec.dtype);
  w.put(spec.shape);
  w.put(spec.bytes);
  w.put(spec.sharding);
}

TensorSpec readTensorSpec(Reader& r) {
  TensorSpec spec;
  spec.dtype = r.text();
  spec.shape = r.list<std::int64_t>();
  spec.bytes = r.get<std::uint64_t>();
  spec.sharding = r.text();
  return spec;
}

void write(Writer& w, const OperandDesc& o) {
  w.put(o.buffer);
  w.put(o.type);
  w.put(o.access);
  w.put(o.offset);
  w.put(o.shape);
  w.put(o.strides);
}

OperandDesc readOperand(Reader& r) {
  OperandDesc o;
  o.buffer = r.get<std::uint32_t>();
  o.type = r.get<ElementType>();
  o.access = r.get<Access>();
  o.offset = r.get<std::int64_t>();
  o.shape = r.list<std::int64_t>();
  o.strides = r.list<std::int64_t>();
  if (o.shape.size() != o.strides.size() || sizeOf(o.type) == 0)
    throw std::out_of_range("an operand is malformed");
  return o;
}

void write(Writer& w, const BufferDesc& buffer) {
  w.put(buffer.kind);
  w.put(buffer.bytes);
  w.put(buffer.offset);
  w.put(buffer.input);
  w.put(buffer.output);
}

BufferDesc readBuffer(Reader& r) {
  BufferDesc buffer;
  buffer.kind = r.get<BufferKind>();
  buffer.bytes = r.get<std::uint64_t>();
  buffer.offset = r.get<std::uint64_t>();
  buffer.input = r.get<std::uint32_t>();
  buffer.output = r.get<std::uint32_t>();
  return buffer;
}

void write(Writer& w, const StepDesc& step) {
  w.put(step.kernel);
  w.put<std::uint64_t>(step.operands.size());
  for (const auto& operand : step.operands) write(w, operand);
  step.attributes.write(w);
  w.put(step.cost);
  w.put(step.debug);
  w.put<std::uint64_t>(step.inner.size());
  for (const auto& inner : step.inner) write(w, inner);
}

StepDesc readStep(Reader& r, bool is_inner = false) {
  StepDesc step;
  step.kernel = r.text();
  step.operands.resize(r.count(16));
  for (auto& operand : step.operands) operand = readOperand(r);
  step.attributes = Attributes::read(r);
  step.cost = r.getStruct<Cost>();
  step.debug = r.get<std::uint32_t>();
  step.inner.resize(r.count(16));
  if (is_inner && !step.inner.empty()) throw std::out_of_range("steps are nested too deep");
  for (auto& inner : step.inner) inner = readStep(r, true);
  return step;
}

void write(Writer& w, const Node& node) {
  w.put(node.kind);
  w.put(node.value);
  w.put(node.children);
  w.put(node.selectors);
  write(w, node.predicate);
}

Node readNode(Reader& r) {
  Node node;
  node.kind = r.get<NodeKind>();
  node.value = r.get<std::uint64_t>();
  node.children = r.list<std::uint32_t>();
  node.selectors = r.list<std::int64_t>();
  node.predicate = readOperand(r);
  return node;
}

void write(Writer& w, const Signature& s) {
  w.put(s.name);
  for (const auto* specs : {&s.inputs, &s.outputs}) {
    w.put<std::uint64_t>(specs->size());
    for (const auto& spec : *specs) write(w, spec);
  }
  w.put(s.output_alias);
  w.put(s.has_host_callbacks);
  w.put(s.num_replicas);
  w.put(s.device_ids);
  w.put(s.interface);
}

Signature readSignature(Reader& r) {
  Signature s;
  s.name = r.text();
  for (auto* specs : {&s.inputs, &s.outputs}) {
    specs->resize(r.count(16));
    for (auto& spec : *specs) spec = readTensorSpec(r);
  }
  s.output_alias = r.list<std::int32_t>();
  s.has_host_callbacks = r.get<bool>();
  s.num_replicas = r.get<std::uint32_t>();
  s.device_ids = r.list<std::int32_t>();
  s.interface = r.text();
  return s;
}

void write(Writer& w, const MemoryAccount& m) {
  w.put(m.tile_capacity);
  w.put(m.worst_tile);
  w.put(m.worst_tile_bytes);
  w.put(m.always_live_bytes);
  w.put(m.peak_live_bytes);
  w.put(m.vertex_state_bytes);
  w.put(m.code_bytes);
  w.put<std::uint64_t>(m.largest.size());
  for (const auto& tensor : m.largest) {
    w.put(tensor.debug);
    w.put(tensor.bytes);
    w.put(tensor.worst_tile_bytes);
  }
}

MemoryAccount readMemory(Reader& r) {
  MemoryAccount m;
  m.tile_capacity = r.get<std::uint64_t>();
  m.worst_tile = r.get<std::uint32_t>();
  m.worst_tile_bytes = r.get<std::uint64_t>();
  m.always_live_bytes = r.get<std::uint64_t>();
  m.peak_live_bytes = r.get<std::uint64_t>();
  m.vertex_state_bytes = r.get<std::uint64_t>();
  m.code_bytes = r.get<std::uint64_t>();
  m.largest.resize(r.count(20));
  for (auto& tensor : m.largest) {
    tensor.debug = r.get<std::uint32_t>();
    tensor.bytes = r.get<std::uint64_t>();
    tensor.worst_tile_bytes = r.get<std::uint64_t>();
  }
  return m;
}

void writeContents(Writer& w, const Image& image) {
  write(w, image.signature);
  w.put<std::uint64_t>(image.buffers.size());
  for (const auto& buffer : image.buffers) write(w, buffer);
  w.put<std::uint64_t>(image.steps.size());
  for (const auto& step : image.steps) write(w, step);
  w.put<std::uint64_t>(image.nodes.size());
  for (const auto& node : image.nodes) write(w, node);
  w.put<std::uint64_t>(image.debug.size());
  for (const auto& entry : image.debug) {
    w.put(entry.name);
    w.put(entry.source);
  }
  w.put<std::uint64_t>(image.streams.size());
  for (const auto& stream : image.streams) {
    w.put(stream.handle);
    w.put(stream.bytes);
    w.put(stream.to_device);
  }
  w.put<std::uint64_t>(image.entry_points.size());
  for (const auto& name : image.entry_points) w.put(name);
  w.put(image.arena_bytes);
  w.put<std::uint64_t>(image.constants.size());
  w.raw(image.constants.data(), image.constants.size());
  write(w, image.memory);
  w.put(image.clock_hz);
  w.put(image.num_tiles);
  w.put(image.mechanisms.bits());
  w.put(image.stablehlo);
  w.put(image.fingerprint);
}

std::shared_ptr<Image> readContents(Reader& r) {
  auto image = std::make_shared<Image>();
  image->signature = readSignature(r);
  image->buffers.resize(r.count(25));
  for (auto& buffer : image->buffers) buffer = readBuffer(r);
  image->steps.resize(r.count(32));
  for (auto& step : image->steps) step = readStep(r);
  image->nodes.resize(r.count(16));
  for (auto& node : image->nodes) node = readNode(r);
  image->debug.resize(r.count(16));
  for (auto& entry : image->debug) {
    entry.name = r.text();
    entry.source = r.text();
  }
  image->streams.resize(r.count(16));
  for (auto& stream : image->streams) {
    stream.handle = r.text();
    stream.bytes = r.get<std::uint64_t>();
    stream.to_device = r.get<bool>();
  }
  image->entry_points.resize(r.count(8));
  for (auto& name : image->entry_points) name = r.text();
  image->arena_bytes = r.get<std::uint64_t>();
  const auto constant_bytes = r.count(1);
  const std::byte* constants = r.take(constant_bytes);
  image->constants.assign(constants, constants + constant_bytes);
  image->memory = readMemory(r);
  image->clock_hz = r.get<double>();
  image->num_tiles = r.get<std::uint32_t>();
  image->mechanisms = Mechanisms::fromBits(r.get<std::uint32_t>());
  image->stablehlo = r.text();
  image->fingerprint = r.text();
  if (!r.atEnd()) throw std::out_of_range("bytes follow the end");
  verify(*image);
  return image;
}

Cost costOf(const Image& image, std::uint32_t index) {
  const Node& node = image.nodes[index];
  if (node.kind == NodeKind::kStep) return image.steps[node.value].cost;
  Cost total;
  if (node.kind == NodeKind::kIf || node.kind == NodeKind::kSwitch) {
    // Only one branch runs; the account takes the dearest.
    for (const auto child : node.children) {
      const Cost cost = costOf(image, child);
      if (cost.cycles() > total.cycles()) total = cost;
    }
    return total;
  }
  for (const auto child : node.children) total += costOf(image, child);
  if (node.kind == NodeKind::kRepeat) {
    const auto n = static_cast<double>(node.value);
    total.compute_cycles *= n;
    total.mean_compute_cycles *= n;
    total.exchange_cycles *= n;
    total.sync_cycles *= n;
    total.link_cycles *= n;
    total.exchange_bytes *= n;
    total.link_bytes *= n;
    total.flops *= n;
  }
  return total;
}

}  // namespace

Cost Image::cost() const { return costOf(*this, 0); }

std::string Image::serialise() const {
  Writer contents;
  writeContents(contents, *this);
  return seal(contents.take());
}

std::string Image::seal(const std::string& contents) {
  Writer sealed;
  sealed.raw(kMagic, sizeof(kMagic));
  sealed.put(kFormat);
  sealed.put(std::string(IPUJAX_VERSION));
  sealed.put<std::uint64_t>(contents.size());
  sealed.put(checksum(contents.data(), contents.size()));
  sealed.raw(contents.data(), contents.size());
  return sealed.take();
}

std::shared_ptr<const Image> Image::deserialise(std::span<const std::byte> bytes) {
  try {
    Reader r(bytes);
    if (std::memcmp(r.take(sizeof(kMagic)), kMagic, sizeof(kMagic)) != 0)
      throw ImageError(
          "[Executable] needs an ipujax executable; got other bytes. Pass the bytes of a "
          "serialised executable.");
    const auto format = r.get<std::uint32_t>();
    const std::string version = r.text();
    if (format != kFormat || version != IPUJAX_VERSION) {
      throw ImageError("[Executable] needs one made by ipujax " IPUJAX_VERSION "; got " + version +
                       ". Compile it again.");
    }
    const auto size = r.get<std::uint64_t>();
    const auto sum = r.get<std::uint64_t>();
    const std::byte* body = r.take(size);
    if (!r.atEnd() || checksum(body, size) != sum)
      throw ImageError(
          "[Executable] the checksum does not match: the bytes were altered. "
          "Compile it again.");
    Reader contents({body, size});
    return readContents(contents);
  } catch (const ImageError&) {
    throw;
  } catch (const std::exception& e) {
    throw ImageError(std::string("[Executable] cannot be read: ") + e.what() +
                     ". Compile it again.");
  }
}

}  // namespace ipujax::engine
