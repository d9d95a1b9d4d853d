#include "engine/Serial.hpp"
#include "engine/image/Image.hpp"
#include "engine/verify/Verify.hpp"
#include "support/Seal.hpp"
#include "support/SignatureBytes.hpp"

namespace ipujax::engine {
namespace {

constexpr runtime::SealKind kSeal{
    {'I', 'P', 'U', 'J', 'A', 'X', 'E', 'X'}, 18, "an ipujax executable"};

using runtime::Is;
using runtime::members;

// The members of each structure in the order of the format, as in support/SignatureBytes.hpp.
template <class A, Is<OperandDesc> T>
void members(A& archive, T& o) {
  archive(o.buffer, o.type, o.access, o.offset, o.shape, o.strides);
  if (A::kReads && (o.shape.size() != o.strides.size() || sizeOf(o.type) == 0))
    throw std::out_of_range("an operand is malformed");
}

template <class A, Is<BufferDesc> T>
void members(A& archive, T& buffer) {
  archive(buffer.kind, buffer.bytes, buffer.offset, buffer.input, buffer.output);
}

template <class A, Is<StepDesc> T>
void members(A& archive, T& step, bool is_inner = false) {
  archive(step.kernel);
  archive.list(step.operands, 16, [&](auto& operand) { members(archive, operand); });
  if constexpr (A::kReads) {
    step.attributes = Attributes::read(archive);
  } else {
    step.attributes.write(archive);
  }
  archive(step.cost, step.debug);
  archive.list(step.inner, 16, [&](auto& inner) {
    if (A::kReads && is_inner) throw std::out_of_range("steps are nested too deep");
    members(archive, inner, true);
  });
}

template <class A, Is<Node> T>
void members(A& archive, T& node) {
  archive(node.kind, node.value, node.children, node.selectors);
  members(archive, node.predicate);
}

template <class A, Is<MemoryAccount> T>
void members(A& archive, T& m) {
  archive(m.tile_capacity, m.worst_tile, m.worst_tile_bytes, m.always_live_bytes, m.peak_live_bytes,
          m.vertex_state_bytes, m.code_bytes, m.code_capacity);
  archive.list(m.largest, 24, [&](auto& tensor) {
    archive(tensor.debug, tensor.count, tensor.bytes, tensor.worst_tile_bytes);
  });
}

template <class A, Is<Profile> T>
void members(A& archive, T& profile) {
  archive(profile.slices, profile.live);
  archive.list(profile.categories, 8, [&](auto& name) { archive(name); });
  archive.list(profile.tensors, 42, [&](auto& tensor) {
    archive(tensor.debug, tensor.category, tensor.type, tensor.shape, tensor.bytes,
            tensor.peak_tile_bytes, tensor.live_at_peak, tensor.always_live);
  });
  archive.list(profile.ipus, 12, [&](auto& ipu) { archive(ipu.fullest_tile, ipu.tile_bytes); });
  archive(profile.half_flops_per_cycle, profile.float_flops_per_cycle);
}

template <class A, Is<Image> T>
void members(A& archive, T& image) {
  const auto each = [&](auto& item) { members(archive, item); };
  members(archive, image.signature);
  archive.list(image.buffers, 25, each);
  archive.list(image.steps, 32, each);
  archive.list(image.nodes, 16, each);
  archive.list(image.debug, 16, [&](auto& entry) { archive(entry.name, entry.source); });
  archive.list(image.streams, 21, [&](auto& stream) {
    archive(stream.handle, stream.bytes, stream.to_device, stream.broadcasts, stream.parts);
  });
  archive.list(image.entry_points, 8, [&](auto& name) { archive(name); });
  archive(image.arena_bytes, image.constants);
  members(archive, image.memory);
  archive(image.ipus);
  archive(image.clock_hz, image.num_tiles, image.assumed_trip_count, image.cycles_without_host);
  std::uint32_t mechanisms = image.mechanisms.bits();
  archive(mechanisms);
  if constexpr (A::kReads) image.mechanisms = Mechanisms::fromBits(mechanisms);
  archive(image.streaming, image.stablehlo, image.fingerprint);
  bool has_profile = image.profile.has_value();
  archive(has_profile);
  if constexpr (A::kReads) {
    if (has_profile) image.profile.emplace();
  }
  if (has_profile) members(archive, *image.profile);
}

}  // namespace

std::string Image::serialise() const {
  Writer contents;
  members(contents, *this);
  return seal(contents.take());
}

std::string Image::seal(const std::string& contents) { return runtime::seal(kSeal, contents); }

std::shared_ptr<const Image> Image::deserialise(std::span<const std::byte> bytes) {
  try {
    Reader contents(runtime::unseal(kSeal, bytes));
    auto image = std::make_shared<Image>();
    members(contents, *image);
    if (!contents.atEnd()) throw std::out_of_range("bytes follow the end");
    verify(*image);
    return image;
  } catch (const ImageError&) {
    throw;
  } catch (const std::exception& e) {
    throw ImageError(std::string("[Executable] cannot be read: ") + e.what() +
                     ". Compile it again.");
  }
}

}  // namespace ipujax::engine
