#include "engine/verify/Verify.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include "engine/Rank.hpp"
#include "engine/image/StepCheck.hpp"
#include "engine/kernels/VerifyStep.hpp"
#include "engine/kernels/move/Turn.hpp"
#include "support/SignatureBytes.hpp"

namespace ipujax::engine {
namespace {

/// More than any machine has; sums of a few such numbers are far from overflow.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::int64_t kMostStride = std::int64_t{1} << 46;
constexpr std::int64_t kMostVolume = std::int64_t{1} << 31;
constexpr std::size_t kMostOperands = 1 << 16;
/// Nodes between the root and a leaf: walks recurse this deep.
constexpr std::uint32_t kMostDepth = 4000;

[[noreturn]] void refuse(const std::string& what) {
  throw ImageError("[Executable] cannot be run: " + what + ". Compile it again.");
}

void need(bool good, const char* what) {
  if (!good) refuse(what);
}

bool isFinite(const Cost& c) {
  for (const double value :
       {c.compute_cycles, c.mean_compute_cycles, c.exchange_cycles, c.sync_cycles,
        c.repeated_exchange_cycles, c.repeated_sync_cycles, c.link_cycles, c.host_cycles,
        c.exchange_bytes, c.link_bytes, c.host_bytes, c.flops})
    if (!std::isfinite(value)) return false;
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Image& image) : image_(image) {}

  void run() {
    verifySignature();
    verifyBuffers();
    verifyStreams();
    for (const auto& step : image_.steps) verifyOne(step);
    verifyTurns();
    verifyTree();
    for (const auto& tensor : image_.memory.largest)
      need(tensor.debug < image_.debug.size(), "a tensor names no debug entry");
    need(std::isfinite(image_.clock_hz) && image_.clock_hz >= 0, "the clock is no frequency");
    if (image_.profile) verifyProfile(*image_.profile);
  }

 private:
  void verifyProfile(const Profile& profile) const {
    for (const Slice& s : profile.slices) {
      need(s.node < image_.nodes.size(), "a slice of time names no node");
      for (const double value : {s.times, s.begin_cycles, s.cycles, s.compute_cycles,
                                 s.exchange_cycles, s.sync_cycles, s.link_cycles, s.host_cycles})
        need(std::isfinite(value) && value >= 0, "a slice of time has no length");
    }
    for (const LivePoint& point : profile.live)
      need(point.node < image_.nodes.size(), "a live point names no node");
    for (const TensorProfile& tensor : profile.tensors) {
      need(tensor.debug < image_.debug.size(), "a tensor names no debug entry");
      need(tensor.category < profile.categories.size(), "a tensor is of an unknown category");
      need(tensor.type <= ElementType::kDouble, "a tensor is of an unknown type");
    }
    for (const TileProfile& ipu : profile.ipus) {
      need(!profile.categories.empty(), "tile memory has no categories");
      const std::size_t tiles = ipu.tile_bytes.size() / profile.categories.size();
      need(tiles * profile.categories.size() == ipu.tile_bytes.size() && ipu.fullest_tile < tiles,
           "the fullest tile is none");
    }
    for (const double flops : {profile.half_flops_per_cycle, profile.float_flops_per_cycle})
      need(std::isfinite(flops) && flops >= 0, "a peak of flops is no number");
  }

  void verifySignature() const {
    const Signature& s = image_.signature;
    runtime::verify(s);
    // An Engine passes one selector, and nothing else.
    need(image_.entry_points.empty() ||
             (s.inputs.size() == 1 && s.inputs[0].bytes == sizeof(std::int32_t) &&
              s.outputs.empty()),
         "the entry points need one selector");
  }

  void verifyStreams() const {
    for (const auto& stream : image_.streams) {
      need(stream.bytes <= kMostBytes, "a stream's blocks are too large");
      const std::uint64_t lanes = std::uint64_t{stream.parts} * image_.signature.num_replicas;
      need(lanes > 0 && lanes <= runtime::kMostReplicas && stream.bytes % stream.parts == 0,
           "a stream has no parts of equal size");
      need(!stream.broadcasts || (stream.to_device && stream.parts == 1),
           "a stream that is broadcast is of one replica");
    }
  }

  void verifyBuffers() const {
    need(image_.arena_bytes <= kMostBytes, "the arena is too large");
    const Signature& s = image_.signature;
    std::vector<bool> read(s.inputs.size());
    std::vector<bool> made(s.outputs.size());
    for (const auto& buffer : image_.buffers) {
      need(buffer.kind <= BufferKind::kInputOutput, "a buffer is of an unknown kind");
      need(buffer.bytes <= kMostBytes && buffer.offset <= kMostBytes, "a buffer is too large");
      if (buffer.kind == BufferKind::kArena || buffer.kind == BufferKind::kConstant) {
        const bool arena = buffer.kind == BufferKind::kArena;
        const std::uint64_t room = arena ? image_.arena_bytes : image_.constants.size();
        need(buffer.offset + buffer.bytes <= room,
             arena ? "a buffer lies outside the arena" : "a constant lies outside the constants");
        need(buffer.offset % 8 == 0, "a buffer is not aligned");
        continue;
      }
      if (buffer.kind != BufferKind::kOutput) bind(buffer.input, buffer.bytes, s.inputs, read);
      if (buffer.kind != BufferKind::kInput) bind(buffer.output, buffer.bytes, s.outputs, made);
    }
    for (std::size_t o = 0; o < made.size(); ++o)
      need(made[o] || s.outputs[o].bytes == 0, "nothing makes a result");
  }

  static void bind(std::uint32_t index, std::uint64_t bytes, const std::vector<TensorSpec>& specs,
                   std::vector<bool>& bound) {
    need(index < specs.size(), "a buffer names no input or output");
    need(bytes <= specs[index].bytes, "a buffer is larger than its input or output");
    need(!bound[index], "two buffers name one input or output");
    bound[index] = true;
  }

  void verifyOne(const StepDesc& step) {
    need(step.debug < image_.debug.size(), "a step names no debug entry");
    need(isFinite(step.cost), "a step costs no number of cycles");
    need(step.operands.size() <= kMostOperands, "a step has too many operands");
    const std::size_t n = step.operands.size();
    if (footprints_.size() < n) footprints_.resize(n);
    for (std::size_t i = 0; i < n; ++i) verifyOperand(step.operands[i], footprints_[i]);
    for (const auto& inner : step.inner)
      for (const auto& operand : inner.operands) verifyShape(operand);
    verifyStep(step, image_, {footprints_.data(), n});
  }

  /// Checks sizes and strides, so that their products do not overflow.
  static void verifyShape(const OperandDesc& o) {
    need(o.type <= ElementType::kDouble && o.access <= Access::kReadWrite,
         "an operand is of an unknown type");
    need(o.shape.size() == o.strides.size() && o.shape.size() <= kMostRank,
         "an operand has too many dimensions");
    std::int64_t elements = 1;
    std::int64_t volume = 1;  // as if there were no empty dimensions
    for (std::size_t d = 0; d < o.shape.size(); ++d) {
      need(o.shape[d] >= 0, "an operand has no size");
      need(o.shape[d] <= StepCheck::kMostElements, "an operand has too many elements");
      need(o.strides[d] >= -kMostStride && o.strides[d] <= kMostStride,
           "an operand has too large strides");
      need(o.shape[d] <= 1 || std::abs(o.strides[d]) <= kMostStride / (o.shape[d] - 1),
           "an operand reaches too far");
      elements *= o.shape[d];
      volume *= std::max<std::int64_t>(o.shape[d], 1);
      need(elements <= StepCheck::kMostElements, "an operand has too many elements");
      need(volume <= kMostVolume, "an operand has too large dimensions");
    }
  }

  void verifyOperand(const OperandDesc& o, Footprint& footprint) const {
    verifyShape(o);
    need(o.buffer < image_.buffers.size(), "an operand names no buffer");
    const BufferDesc& buffer = image_.buffers[o.buffer];
    const auto element = static_cast<std::int64_t>(sizeOf(o.type));
    need(o.offset >= 0 && o.offset <= static_cast<std::int64_t>(buffer.bytes) / element,
         "an operand begins outside its buffer");
    footprint.assign(o, o.offset * element);
    need(footprint.begin >= 0 && footprint.end <= static_cast<std::int64_t>(buffer.bytes),
         "an operand lies outside its buffer");
    const bool arena = buffer.kind == BufferKind::kArena;
    const bool constant = buffer.kind == BufferKind::kConstant;
    if (o.access != Access::kRead) {
      need(!constant && buffer.kind != BufferKind::kInput,
           "an operand writes to a constant or an argument");
      need(areElementsApart(footprint), "an operand writes an element twice");
    }
    footprint.space = arena ? 0 : constant ? 1 : 2 + std::uint64_t{o.buffer};
    if (arena || constant) footprint.move(static_cast<std::int64_t>(buffer.offset));
  }

  /// Checks that buffers that exchange memory share it with no other buffer.
  void verifyTurns() const {
    const std::vector<bool> turning = turningBuffers(image_);
    std::vector<std::uint32_t> order;
    for (std::uint32_t b = 0; b < image_.buffers.size(); ++b)
      if (image_.buffers[b].kind == BufferKind::kArena && image_.buffers[b].bytes > 0)
        order.push_back(b);
    std::ranges::sort(order, {}, [&](std::uint32_t b) { return image_.buffers[b].offset; });
    std::uint64_t end = 0;          // of the previous buffers
    std::uint64_t turning_end = 0;  // of the previous buffers that turn
    for (const std::uint32_t b : order) {
      const BufferDesc& buffer = image_.buffers[b];
      need(buffer.offset >= (turning[b] ? end : turning_end),
           "a buffer that exchanges memory overlaps another");
      end = std::max(end, buffer.offset + buffer.bytes);
      if (turning[b]) turning_end = std::max(turning_end, buffer.offset + buffer.bytes);
    }
  }

  /// Checks that children come after their only parent, so walks end and take linear time.
  void verifyTree() const {
    need(!image_.nodes.empty(), "the program is empty");
    std::vector<std::uint32_t> depth(image_.nodes.size(), 0);
    for (std::uint32_t i = 0; i < image_.nodes.size(); ++i) {
      const Node& node = image_.nodes[i];
      for (const auto child : node.children) {
        need(child < image_.nodes.size() && child > i, "a node names a child that cannot be");
        need(depth[child] == 0, "a node has two parents");
        depth[child] = depth[i] + 1;
        need(depth[child] <= kMostDepth, "the program is nested too deep");
      }
      verifyNode(node);
    }
  }

  void verifyNode(const Node& node) const {
    const std::size_t children = node.children.size();
    const auto needChildren = [&](std::size_t n) {
      need(children == n, "a node has a wrong number of children");
    };
    switch (node.kind) {
      case NodeKind::kSequence:
        return;
      case NodeKind::kStep:
        need(node.value < image_.steps.size(), "a node names no step");
        return needChildren(0);
      case NodeKind::kRepeat:
        return needChildren(1);
      case NodeKind::kRepeatWhile:
        need(node.value <= 1, "a loop repeats while its predicate is neither true nor false");
        needChildren(2);
        return verifyPredicate(node.predicate);
      case NodeKind::kIf:
        needChildren(2);
        return verifyPredicate(node.predicate);
      case NodeKind::kSwitch:
        needChildren(node.selectors.size() + 1);
        return verifyPredicate(node.predicate);
      case NodeKind::kError:
        need(node.value < image_.debug.size(), "an error has no text");
        return needChildren(0);
    }
    refuse("a node is of an unknown kind");
  }

  void verifyPredicate(const OperandDesc& o) const {
    Footprint footprint;
    verifyOperand(o, footprint);
    constexpr std::array kTypes{ElementType::kBool, ElementType::kInt8, ElementType::kUInt8,
                                ElementType::kInt32, ElementType::kUInt32};
    need(o.access == Access::kRead && o.numElements() == 1 &&
             std::ranges::find(kTypes, o.type) != kTypes.end(),
         "a condition is not one element of a fitting type");
  }

  const Image& image_;
  std::vector<Footprint> footprints_;  ///< of one step's operands
};

}  // namespace

void verify(const Image& image) { Verifier(image).run(); }

}  // namespace ipujax::engine
