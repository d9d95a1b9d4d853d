#include "engine/loop/LoopKernel.hpp"

#include <algorithm>
#include <array>
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

}  // namespace

struct LoopKernel::Impl {
  explicit Impl(LoopBody body) : loop(std::move(body)) {}

  bool plan() {
    for (const Cell& cell : loop.cells) {
      const std::size_t bytes = sizeOf(cell.type) * static_cast<std::size_t>(loop.width);
      const std::size_t at = layout.take(bytes + expr::ExprEvaluator::kPadding);
      cells.at[0].push_back(at);
      cells.at[1].push_back(cell.written ? layout.take(bytes + expr::ExprEvaluator::kPadding) : at);
    }
    cell_bytes = layout.bytes();
    const std::uint64_t unrolled =
        std::clamp<std::uint64_t>(kMostWork / workOf(loop), 1, kMostUnrolled);
    if (loop.predicate >= 0) return planWhile(unrolled);
    many = std::min(loop.count, unrolled);
    if (!add(stretch_of_many, many)) return false;
    rest = loop.count % many;
    return rest == 0 || add(stretch_of_rest, rest);
  }

  bool planWhile(std::uint64_t unrolled) {
    many = unrolled;
    if (!add(stretch_of_many, many) || !add(stretch_of_rest, 1)) return false;
    condition.emplace(loop, composeCondition(loop), cells, layout);
    return true;
  }

  bool add(std::optional<Stretch>& stretch, std::uint64_t iterations) {
    auto program = composeIterations(loop, iterations);
    if (program) stretch.emplace(loop, *std::move(program), cells, layout);
    return program.has_value();
  }

  void load(const Lane& lane, std::byte* block) const {
    std::memset(block, 0, cell_bytes);
    for (std::size_t c = 0; c < loop.cells.size(); ++c) {
      const Cell& cell = loop.cells[c];
      const std::byte* from = lane.operands(cell.step)[cell.operand];
      std::byte* to = block + cells.at[0][c];
      const std::size_t bytes = sizeOf(cell.type);
      const auto width = static_cast<std::size_t>(loop.width);
      if (!cell.one || width == 1) {
        std::memcpy(to, from, bytes * width);
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) std::memcpy(to + i * bytes, from, bytes);
    }
  }

  void store(const Lane& lane, const std::byte* block, int bank) const {
    for (std::size_t c = 0; c < loop.cells.size(); ++c) {
      const Cell& cell = loop.cells[c];
      if (!cell.written) continue;
      const std::size_t elements = cell.one ? 1 : static_cast<std::size_t>(loop.width);
      std::memcpy(lane.operands(cell.step)[cell.operand], block + cells.at[bank][c],
                  elements * sizeOf(cell.type));
    }
  }

  /// Returns the bank that holds the result, or -1 where the run was cancelled.
  int iterate(std::byte* block, std::span<std::byte* const> arrays,
              const std::atomic<bool>& cancelled) const {
    int bank = 0;
    if (loop.predicate < 0) {
      for (std::uint64_t i = 0; i < loop.count / many; ++i, bank = 1 - bank) {
        if (cancelled.load(std::memory_order_relaxed)) return -1;
        stretch_of_many->run(block, bank, arrays);
      }
      if (rest == 0) return bank;
      stretch_of_rest->run(block, bank, arrays);
      return 1 - bank;
    }
    for (const auto* stretch : {&stretch_of_many, &stretch_of_rest}) {
      for (; (*stretch)->run(block, bank, arrays); bank = 1 - bank)
        if (cancelled.load(std::memory_order_relaxed)) return -1;
    }
    condition->run(block, bank, arrays);
    return 1 - bank;
  }

  LoopBody loop;
  Layout layout;
  CellPlaces cells;
  std::size_t cell_bytes = 0;
  std::uint64_t many = 1;  ///< iterations that are one expression
  std::uint64_t rest = 0;
  std::optional<Stretch> stretch_of_many;
  std::optional<Stretch> stretch_of_rest;  ///< of a while loop: one iteration
  std::optional<Stretch> condition;
};

LoopKernel::LoopKernel(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
LoopKernel::~LoopKernel() = default;

std::unique_ptr<const LoopKernel> LoopKernel::make(const Image& image, std::uint32_t node) {
  auto loop = loop::findLoopBody(image, node);
  if (!loop) return nullptr;
  if (loop->predicate < 0 && loop->count * loop->body.size() < kFewestSteps) return nullptr;
  auto impl = std::make_unique<Impl>(*std::move(loop));
  if (!impl->plan()) return nullptr;
  return std::unique_ptr<const LoopKernel>(new LoopKernel(std::move(impl)));
}

void LoopKernel::run(const Lane& lane, const std::atomic<bool>& cancelled) const {
  std::byte* block = block_of_thread.get(impl_->layout.bytes());
  impl_->load(lane, block);
  std::array<std::byte*, loop::kMostSteps> arrays;
  const auto& actions = impl_->loop.body;
  for (std::size_t a = 0; a < actions.size(); ++a) {
    const bool is_row = actions[a].windows != nullptr;
    arrays[a] = is_row ? lane.operands(actions[a].step)[0] : nullptr;
  }
  for (const auto* stretch : {&impl_->stretch_of_many, &impl_->stretch_of_rest, &impl_->condition})
    if (*stretch) (*stretch)->begin(block);
  const int bank = impl_->iterate(block, {arrays.data(), actions.size()}, cancelled);
  if (bank >= 0) impl_->store(lane, block, bank);
}

}  // namespace ipujax::engine
