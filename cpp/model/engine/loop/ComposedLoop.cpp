#include "engine/loop/ComposedLoop.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/loop/LoopStretch.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::loop {
namespace {

constexpr std::size_t kPadding = expr::ExprEvaluator::kPadding;
constexpr std::uint64_t kMostUnrolled = 64;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostWork = 192;  ///< about; instructions and rows of one expression
/// With fewer steps, moving data to the block takes longer than it saves.
constexpr std::uint64_t kFewestSteps = 16;

std::uint64_t workOf(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kMap:
      return action.program.instructions().size();
    case Action::Kind::kCopy:
      return 1;
    default:
      return 2;
  }
}

std::uint64_t workOf(const LoopBody& loop) {
  std::uint64_t work = 0;
  for (const auto* actions : {&loop.condition, &loop.body})
    for (const Action& a : *actions) work += workOf(a);
  return std::max<std::uint64_t>(work, 1);
}

/// The loop of one width: where its cells lie in the block, and its iterations ready to run.
struct Part {
  explicit Part(LoopBody body) : loop(std::move(body)) {}

  bool plan(std::uint64_t many, std::uint64_t rest, Layout& layout) {
    for (const Cell& cell : loop.cells) {
      const std::size_t bytes = sizeOf(cell.type) * static_cast<std::size_t>(loop.width);
      const std::size_t at = layout.take(bytes + kPadding);
      cells.at[0].push_back(at);
      cells.at[1].push_back(cell.written ? layout.take(bytes + kPadding) : at);
    }
    if (!add(stretch_of_many, many, layout)) return false;
    if (rest > 0 && !add(stretch_of_rest, rest, layout)) return false;
    if (loop.predicate >= 0) condition.emplace(loop, composeCondition(loop), cells, layout);
    return true;
  }

  bool add(std::optional<Stretch>& stretch, std::uint64_t iterations, Layout& layout) const {
    auto program = composeIterations(loop, iterations);
    if (program) stretch.emplace(loop, *std::move(program), cells, layout);
    return program.has_value();
  }

  void begin(const ReplicaBindings& bindings, std::byte* block) const {
    for (std::size_t c = 0; c < loop.cells.size(); ++c) {
      const Cell& cell = loop.cells[c];
      const std::byte* from = bindings.operands(cell.step)[cell.operand];
      std::byte* to = block + cells.at[0][c];
      const std::size_t bytes = sizeOf(cell.type);
      const std::size_t all = bytes * static_cast<std::size_t>(loop.width);
      if (cell.isOne()) {
        simd::fill(to, from, bytes, loop.width);
      } else {
        std::memcpy(to, from, all);
      }
      // Results of the padding are not used, but subnormals in it would be slow.
      for (const auto& bank : cells.at) std::memset(block + bank[c] + all, 0, kPadding);
    }
    for (const auto* stretch : {&stretch_of_many, &stretch_of_rest, &condition})
      if (*stretch) (*stretch)->begin(bindings, block);
  }

  void store(const ReplicaBindings& bindings, const std::byte* block, int bank,
             std::uint32_t c) const {
    const Cell& cell = loop.cells[c];
    std::memcpy(bindings.operands(cell.step)[cell.operand], block + cells.at[bank][c],
                static_cast<std::size_t>(cell.elements) * sizeOf(cell.type));
  }

  LoopBody loop;
  CellPlaces cells;
  std::optional<Stretch> stretch_of_many;
  std::optional<Stretch> stretch_of_rest;
  std::optional<Stretch> condition;
};

class ComposedLoop final : public LoopKernel {
 public:
  ComposedLoop(std::uint32_t node, std::vector<LoopBody> bodies) : node_(node) {
    for (auto& body : bodies) parts_.push_back(std::make_unique<Part>(std::move(body)));
  }

  bool plan() {
    std::uint64_t work = 0;
    for (const auto& part : parts_) work = std::max(work, workOf(part->loop));
    const LoopBody& loop = parts_[0]->loop;
    many_ = loop.one_by_one ? 1 : std::clamp<std::uint64_t>(kMostWork / work, 1, kMostUnrolled);
    is_open_ = loop.predicate >= 0;
    count_ = loop.count;
    if (!is_open_) many_ = std::min(many_, count_);
    rest_ = is_open_ ? 1 : count_ % many_;
    for (const auto& part : parts_) {
      if (!part->plan(many_, rest_, layout_)) return false;
      for (std::uint32_t c = 0; c < part->loop.cells.size(); ++c) {
        const Cell& cell = part->loop.cells[c];
        if (cell.written && (part == parts_[0] || !cell.isOne()))
          stored_.push_back({part.get(), c});
      }
    }
    std::ranges::sort(stored_, {}, &Stored::time);
    return true;
  }

  void run(LoopRun& run) const override {
    Workspace workspace;
    std::byte* block = workspace.get(static_cast<std::int64_t>(layout_.bytes()));
    for (const auto& part : parts_) part->begin(run.bindings, block);
    const auto [iterations, bank] = iterate(block, run.cancelled);
    if (run.isCancelled()) return;
    for (const auto& [part, cell] : stored_) part->store(run.bindings, block, bank, cell);
    if (is_open_) run.trip_counts.add(node_, iterations);
  }

 private:
  /// A cell that the steps would have written. Later ones may share memory with earlier ones.
  struct Stored {
    const Part* part;
    std::uint32_t cell;
    std::size_t time() const { return part->loop.cells[cell].last_write; }
  };

  /// Runs one stretch of every part; none of them if the first one tells that it must not run.
  template <std::optional<Stretch> Part::*kStretch>
  bool runAll(std::byte* block, int bank) const {
    for (const auto& part : parts_)
      if (!(part.get()->*kStretch)->run(block, bank)) return false;
    return true;
  }

  /// Runs at most `most` stretches, until one must not run or the run is cancelled; returns how
  /// many ran.
  template <std::optional<Stretch> Part::*kStretch>
  std::uint64_t repeat(std::byte* block, int& bank, std::uint64_t most,
                       const std::atomic<bool>& cancelled) const {
    std::uint64_t made = 0;
    for (; made < most && !cancelled.load(std::memory_order_relaxed); ++made) {
      if (!runAll<kStretch>(block, bank)) break;
      bank = 1 - bank;
    }
    return made;
  }

  struct Iterated {
    std::uint64_t iterations;
    int bank;  ///< holds the result, if the run was not cancelled
  };

  Iterated iterate(std::byte* block, const std::atomic<bool>& cancelled) const {
    int bank = 0;
    if (!is_open_) {
      repeat<&Part::stretch_of_many>(block, bank, count_ / many_, cancelled);
      repeat<&Part::stretch_of_rest>(block, bank, rest_ > 0 ? 1 : 0, cancelled);
      return {count_, bank};
    }
    // Runs the first ones one by one, so that discarded iterations never outnumber useful ones.
    std::uint64_t made = repeat<&Part::stretch_of_rest>(block, bank, many_, cancelled);
    if (made == many_) {
      made += many_ * repeat<&Part::stretch_of_many>(block, bank, kNoLimit, cancelled);
      made += repeat<&Part::stretch_of_rest>(block, bank, many_, cancelled);
    }
    runAll<&Part::condition>(block, bank);
    return {made, 1 - bank};
  }

  std::vector<std::unique_ptr<Part>> parts_;
  Layout layout_;
  bool is_open_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t many_ = 1;  ///< iterations in one expression
  std::uint64_t rest_ = 0;  ///< the remaining ones; 1 for a while loop
  std::vector<Stored> stored_;
  std::uint32_t node_;
};

}  // namespace

std::unique_ptr<const LoopKernel> makeComposedLoop(const Image& image, std::uint32_t node) {
  auto loops = findLoopBodies(image, node);
  if (std::ranges::all_of(loops, [](const LoopBody& loop) { return loop.width == 1; }))
    return nullptr;
  if (loops[0].predicate < 0 && loops[0].count < kFewestSteps) {
    std::uint64_t steps = 0;
    for (const auto& loop : loops) steps = std::max(steps, loop.count * loop.body.size());
    if (steps < kFewestSteps) return nullptr;
  }
  auto composed = std::make_unique<ComposedLoop>(node, std::move(loops));
  if (!composed->plan()) return nullptr;
  return composed;
}

}  // namespace ipujax::engine::loop
