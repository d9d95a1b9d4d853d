#include "engine/loop/ScalarLoop.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/kernels/move/Turn.hpp"
#include "engine/loop/ComposedLoop.hpp"
#include "engine/loop/Regions.hpp"
#include "engine/loop/ScalarCode.hpp"
#include "engine/loop/ScalarControl.hpp"
#include "engine/loop/ScalarMap.hpp"
#include "engine/loop/ScalarRows.hpp"

namespace ipujax::engine::loop {
namespace {

constexpr std::size_t kMostOps = 1024;
/// With fewer steps, entering the code takes longer than it saves.
constexpr std::uint64_t kFewestSteps = 16;
constexpr std::int64_t kMostCopiedBytes = 4096;

/// Assembles the code of one loop; lives for one loop.
class Assembler {
 public:
  Assembler(const Image& image, StepKernels kernels)
      : image_(image), kernels_(kernels), code_(image) {}

  bool add(std::uint32_t index) {
    if (code_.size() >= kMostOps) return false;
    const Node& node = image_.nodes[index];
    switch (node.kind) {
      case NodeKind::kSequence:
        return std::ranges::all_of(node.children, [&](auto child) { return add(child); });
      case NodeKind::kStep:
        return addStep(node.value);
      case NodeKind::kRepeat:
        return addRepeat(index, node);
      case NodeKind::kRepeatWhile:
        return addWhile(index, node);
      case NodeKind::kIf:
        return addBranch(index, node);
      case NodeKind::kSwitch:
        return addSwitch(index, node);
      default:
        return false;
    }
  }

  ScalarCode take() {
    addEnd();
    code_.finish();
    return std::move(code_);
  }
  std::vector<std::unique_ptr<const LoopKernel>> takeLoops() { return std::move(loops_); }
  /// Steps that are not started in a run of the loop; an open loop counts as kFewestSteps turns.
  std::uint64_t stepsSaved() const { return steps_saved_; }

 private:
  bool addStep(std::uint64_t number) {
    const StepDesc& step = image_.steps[number];
    if (step.kernel == "engine.account") return true;  // does nothing on the host
    const Kernel& kernel = *kernels_[number];
    const bool meets = dynamic_cast<const CollectiveKernel*>(&kernel) != nullptr;
    const bool turns = dynamic_cast<const TurnKernel*>(&kernel) != nullptr;
    if (meets || turns || kernel.callsHost() || kernel.usesStreams()) return false;
    if (takeApart(step, number)) {
      steps_saved_ += repeated_;
      return true;
    }
    code_.add(scalar::kernel, {.a = code_.operands(number), .b = code_.fixed(&kernel)},
              static_cast<std::int64_t>(step.operands.size()));
    return true;
  }

  bool takeApart(const StepDesc& step, std::uint64_t number) {
    if (step.kernel == "engine.copy") return addCopy(step, number);
    switch (roleOf(step)) {
      case KernelRole::kElementwise:
        return addMap(image_, number, code_);
      case KernelRole::kSliceOfRow:
      case KernelRole::kSlices:
        return addRowLoad(image_, number, code_);
      case KernelRole::kUpdateOfRow:
      case KernelRole::kUpdates:
        return addRowStore(image_, number, code_);
      case KernelRole::kPad:
        return addPad(step, number);
      default:
        return false;
    }
  }

  bool addCopy(const StepDesc& step, std::uint64_t number) {
    const OperandDesc& from = step.operands[0];
    const OperandDesc& to = step.operands[1];
    const auto bytes = static_cast<std::int64_t>(sizeOf(from.type));
    const std::int64_t all = to.numElements() * bytes;
    if (to.isContiguous() && from.isContiguous() && all <= kMostCopiedBytes) {
      if (all > 0) addMove(code_.operand(number, 0), code_.operand(number, 1), all);
      return true;
    }
    if (!isSmallAndApart(step)) return false;
    const auto read = elementsOf(from.shape, from.strides);
    const auto written = elementsOf(to.shape, to.strides);
    for (std::size_t i = 0; i < read.size(); ++i)
      addMove(code_.operand(number, 0).at(read[i] * bytes),
              code_.operand(number, 1).at(written[i] * bytes), bytes);
    return true;
  }

  void addMove(const Place& from, const Place& to, std::int64_t bytes) {
    code_.addCopy(from, to, static_cast<std::size_t>(bytes));
  }

  /// Whether few elements are written, none of which is read.
  bool isSmallAndApart(const StepDesc& step) const {
    const OperandDesc& written = step.operands.back();
    const std::int64_t elements = written.numElements();
    if (elements < 1 || elements > static_cast<std::int64_t>(kInstructionsOfStep)) return false;
    const Footprint to = footprintOf(image_, written);
    return std::all_of(step.operands.begin(), step.operands.end() - 1,
                       [&](const auto& read) { return areApart(footprintOf(image_, read), to); });
  }

  bool addPad(const StepDesc& step, std::uint64_t number) {
    const OperandDesc& inside = step.operands[0];
    const OperandDesc& to = step.operands[2];
    if (!isSmallAndApart(step)) return false;
    const auto bytes = static_cast<std::int64_t>(sizeOf(to.type));
    std::int64_t first = 0;
    std::vector<std::int64_t> steps(to.shape.size());
    for (std::size_t d = 0; d < to.shape.size(); ++d) {
      first += step.attributes.integers("start")[d] * to.strides[d];
      steps[d] = step.attributes.integers("step")[d] * to.strides[d];
    }
    const auto read = elementsOf(inside.shape, inside.strides);
    const auto filled = elementsOf(inside.shape, steps);
    for (const std::int64_t at : elementsOf(to.shape, to.strides)) {
      const auto found = std::ranges::find(filled, at - first);
      const bool is_value = found == filled.end();
      const auto i = static_cast<std::size_t>(found - filled.begin());
      const Place from =
          is_value ? code_.operand(number, 1) : code_.operand(number, 0).at(read[i] * bytes);
      addMove(from, code_.operand(number, 2).at(at * bytes), bytes);
    }
    return true;
  }

  /// Adds an inner loop as a composed loop, if it can be one.
  bool addLoopKernel(std::uint32_t index) {
    auto loop = makeComposedLoop(image_, index);
    if (!loop) return false;
    code_.add(scalar::loopKernel, {.b = code_.fixed(loop.get())});
    loops_.push_back(std::move(loop));
    steps_saved_ += repeated_;
    return true;
  }

  bool addRepeat(std::uint32_t index, const Node& node) {
    if (addLoopKernel(index)) return true;
    const Place record = code_.record({0});
    const std::uint64_t repeated = repeated_;
    const std::uint64_t count = std::min(node.value, kFewestSteps);
    repeated_ = std::min(repeated * count, kFewestSteps);
    constexpr auto kEndless = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    const std::size_t at = code_.add(scalar::repeat, {.c = record},
                                     static_cast<std::int64_t>(std::min(node.value, kEndless)),
                                     {.kind = Meaning::Kind::kRepeat});
    if (!addBlock(node.children[0])) return false;
    code_.setRecord(record, 0, distanceFrom(at));
    repeated_ = repeated;
    return true;
  }

  bool addWhile(std::uint32_t index, const Node& node) {
    if (node.predicate.type != ElementType::kBool) return false;
    if (addLoopKernel(index)) return true;
    const Place record = code_.record({0, 0, node.value != 0 ? 1 : 0, index});
    const std::uint64_t repeated = std::exchange(repeated_, kFewestSteps);
    const std::size_t at =
        code_.add(scalar::repeatWhile, {.a = code_.predicate(index), .c = record}, 0,
                  {.kind = Meaning::Kind::kRepeatWhile});
    for (std::size_t child = 0; child < 2; ++child) {
      if (!addBlock(node.children[child])) return false;
      code_.setRecord(record, child, distanceFrom(at));
    }
    repeated_ = repeated;
    return true;
  }

  bool addBranch(std::uint32_t index, const Node& node) {
    if (node.predicate.type != ElementType::kBool) return false;
    const Place record = code_.record({0, 0});
    const std::size_t at = code_.add(scalar::branch, {.a = code_.predicate(index), .c = record}, 0,
                                     {.kind = Meaning::Kind::kBranch});
    for (std::size_t child = 0; child < 2; ++child) {
      if (!addBlock(node.children[child])) return false;
      code_.setRecord(record, child, distanceFrom(at));
    }
    return true;
  }

  bool addSwitch(std::uint32_t index, const Node& node) {
    const std::size_t cases = node.selectors.size();
    std::vector<std::int64_t> words(2 * cases + 2);
    for (std::size_t i = 0; i < cases; ++i) words[2 * i + 1] = node.selectors[i];
    const Place record = code_.record(words);
    const std::size_t at =
        code_.add(scalar::choose(sizeOf(node.predicate.type)),
                  {.a = code_.predicate(index), .c = record}, static_cast<std::int64_t>(cases),
                  {.kind = Meaning::Kind::kChoose, .bytes = sizeOf(node.predicate.type)});
    for (std::size_t i = 0; i <= cases; ++i) {
      code_.setRecord(record, i < cases ? 2 * i + 2 : 2 * cases + 1, distanceFrom(at));
      if (!addBlock(node.children[i])) return false;
    }
    code_.setRecord(record, 0, distanceFrom(at));
    return true;
  }

  bool addBlock(std::uint32_t index) {
    if (!add(index)) return false;
    addEnd();
    return true;
  }
  void addEnd() { code_.add(scalar::end, {}, 0, {.kind = Meaning::Kind::kEnd}); }
  std::int64_t distanceFrom(std::size_t at) const {
    return static_cast<std::int64_t>(code_.size() - at);
  }

  const Image& image_;
  StepKernels kernels_;
  ScalarCode code_;
  std::vector<std::unique_ptr<const LoopKernel>> loops_;
  std::uint64_t repeated_ = 1;  ///< how often the code added now runs, up to kFewestSteps
  std::uint64_t steps_saved_ = 0;
};

class ScalarLoop final : public LoopKernel {
 public:
  ScalarLoop(ScalarCode code, std::vector<std::unique_ptr<const LoopKernel>> loops)
      : code_(std::move(code)), loops_(std::move(loops)) {}
  void run(LoopRun& run) const override { code_.run(run); }

 private:
  ScalarCode code_;
  std::vector<std::unique_ptr<const LoopKernel>> loops_;  ///< that the code runs
};

}  // namespace

std::unique_ptr<const LoopKernel> makeScalarLoop(const Image& image, std::uint32_t node,
                                                 StepKernels kernels) {
  Assembler assembler(image, kernels);
  if (!assembler.add(node) || assembler.stepsSaved() < kFewestSteps) return nullptr;
  return std::make_unique<ScalarLoop>(assembler.take(), assembler.takeLoops());
}

}  // namespace ipujax::engine::loop
