#include "engine/loop/LoopKernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "engine/loop/LoopStretch.hpp"

namespace ipujax::engine {
namespace {

using loop::Action;
using loop::Cell;
using loop::CellPlaces;
using loop::composeCondition;
using loop::composeIterations;
using loop::Layout;
using loop::LoopBody;
using loop::Stretch;

constexpr std::uint64_t kMostUnrolled = 64;
constexpr std::uint64_t kMostWork = 192;  ///< instructions and rows of one expression, about
constexpr std::uint64_t kFewestSteps =
    16;  ///< below, the way into the block is longer than it saves

/// Block of one thread, grown to the largest loop it has run.
class Block {
 public:
  ~Block() { std::free(data_); }
  std::byte* get(std::size_t bytes) {
    if (bytes > size_) {
      std::free(data_);
      size_ = 0;
      data_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
      if (!data_) throw std::bad_alloc();
      size_ = bytes;
    }
    return data_;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};
thread_local Block block_of_thread;

std::uint64_t workOf(const LoopBody& loop) {
  std::uint64_t work = 0;
  for (const auto* actions : {&loop.condition, &loop.body})
    for (const Action& a : *actions)
      work += a.kind == Action::Kind::kMap ? a.program.instructions().size() : 2;
  return std::max<std::uint64_t>(work, 1);
}

/// The loop of one width: where its cells lie in the block, and its iterations made ready.
struct Part {
  explicit Part(LoopBody body) : loop(std::move(body)) {}

  bool plan(std::uint64_t many, std::uint64_t rest, Layout& layout) {
    constexpr std::size_t kPadding = expr::ExprEvaluator::kPadding;
    cells_begin = layout.bytes();
    for (const Cell& cell : loop.cells) {
      const std::size_t bytes = sizeOf(cell.type) * static_cast<std::size_t>(loop.width);
      const std::size_t at = layout.take(bytes + kPadding);
      cells.at[0].push_back(at);
      cells.at[1].push_back(cell.written ? layout.take(bytes + kPadding) : at);
    }
    cells_end = layout.bytes();
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

  void begin(const Lane& lane, std::byte* block) const {
    std::memset(block + cells_begin, 0, cells_end - cells_begin);
    for (std::size_t c = 0; c < loop.cells.size(); ++c) {
      const Cell& cell = loop.cells[c];
      const std::byte* from = lane.operands(cell.step)[cell.operand];
      std::byte* to = block + cells.at[0][c];
      const std::size_t bytes = sizeOf(cell.type);
      const auto width = static_cast<std::size_t>(loop.width);
      if (!cell.isOne() || width == 1) {
        std::memcpy(to, from, bytes * width);
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) std::memcpy(to + i * bytes, from, bytes);
    }
    for (const auto* stretch : {&stretch_of_many, &stretch_of_rest, &condition})
      if (*stretch) (*stretch)->begin(lane, block);
  }

  void store(const Lane& lane, const std::byte* block, int bank, std::uint32_t c) const {
    const Cell& cell = loop.cells[c];
    std::memcpy(lane.operands(cell.step)[cell.operand], block + cells.at[bank][c],
                static_cast<std::size_t>(cell.elements) * sizeOf(cell.type));
  }

  LoopBody loop;
  CellPlaces cells;
  std::size_t cells_begin = 0, cells_end = 0;
  std::optional<Stretch> stretch_of_many;
  std::optional<Stretch> stretch_of_rest;
  std::optional<Stretch> condition;
};

}  // namespace

struct LoopKernel::Impl {
  /// A cell that the steps would have written. Later ones may share memory with earlier ones.
  struct Stored {
    const Part* part;
    std::uint32_t cell;
    std::size_t time() const { return part->loop.cells[cell].last_write; }
  };

  explicit Impl(std::vector<LoopBody> bodies) {
    for (auto& body : bodies) parts.push_back(std::make_unique<Part>(std::move(body)));
  }

  bool plan() {
    std::uint64_t work = 0;
    for (const auto& part : parts) work = std::max(work, workOf(part->loop));
    many = std::clamp<std::uint64_t>(kMostWork / work, 1, kMostUnrolled);
    const LoopBody& loop = parts[0]->loop;
    is_open = loop.predicate >= 0;
    count = loop.count;
    if (!is_open) many = std::min(many, count);
    rest = is_open ? 1 : count % many;
    for (const auto& part : parts) {
      if (!part->plan(many, rest, layout)) return false;
      for (std::uint32_t c = 0; c < part->loop.cells.size(); ++c) {
        const Cell& cell = part->loop.cells[c];
        if (cell.written && (part == parts[0] || !cell.isOne())) stored.push_back({part.get(), c});
      }
    }
    std::ranges::sort(stored, {}, &Stored::time);
    return true;
  }

  /// One stretch of every part: all or, where the first one says that it was not to be made, none.
  template <std::optional<Stretch> Part::*kStretch>
  bool run(std::byte* block, int bank) const {
    for (const auto& part : parts)
      if (!(part.get()->*kStretch)->run(block, bank)) return false;
    return true;
  }

  /// Returns the bank that holds the result, or -1 where the run was cancelled.
  int iterate(std::byte* block, const std::atomic<bool>& cancelled) const {
    int bank = 0;
    const auto is_cancelled = [&] { return cancelled.load(std::memory_order_relaxed); };
    if (is_open) {
      for (; run<&Part::stretch_of_many>(block, bank); bank = 1 - bank)
        if (is_cancelled()) return -1;
      for (; run<&Part::stretch_of_rest>(block, bank); bank = 1 - bank)
        if (is_cancelled()) return -1;
      run<&Part::condition>(block, bank);
      return 1 - bank;
    }
    for (std::uint64_t i = 0; i < count / many; ++i, bank = 1 - bank) {
      if (is_cancelled()) return -1;
      run<&Part::stretch_of_many>(block, bank);
    }
    if (rest == 0) return bank;
    run<&Part::stretch_of_rest>(block, bank);
    return 1 - bank;
  }

  std::vector<std::unique_ptr<Part>> parts;
  Layout layout;
  bool is_open = false;
  std::uint64_t count = 0;
  std::uint64_t many = 1;  ///< iterations that are one expression
  std::uint64_t rest = 0;  ///< those that are left over
  std::vector<Stored> stored;
};

LoopKernel::LoopKernel(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
LoopKernel::~LoopKernel() = default;

std::unique_ptr<const LoopKernel> LoopKernel::make(const Image& image, std::uint32_t node) {
  auto loops = loop::findLoopBodies(image, node);
  if (loops.empty()) return nullptr;
  std::uint64_t steps = 0;
  for (const auto& loop : loops) steps = std::max(steps, loop.count * loop.body.size());
  if (loops[0].predicate < 0 && steps < kFewestSteps) return nullptr;
  auto impl = std::make_unique<Impl>(std::move(loops));
  if (!impl->plan()) return nullptr;
  return std::unique_ptr<const LoopKernel>(new LoopKernel(std::move(impl)));
}

void LoopKernel::run(const Lane& lane, const std::atomic<bool>& cancelled) const {
  std::byte* block = block_of_thread.get(impl_->layout.bytes());
  for (const auto& part : impl_->parts) part->begin(lane, block);
  const int bank = impl_->iterate(block, cancelled);
  if (bank < 0) return;
  for (const auto& [part, cell] : impl_->stored) part->store(lane, block, bank, cell);
}

}  // namespace ipujax::engine
