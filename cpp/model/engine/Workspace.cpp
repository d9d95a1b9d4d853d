#include "engine/Workspace.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

namespace ipujax::engine {

namespace {
constexpr std::size_t kLine = 64;
constexpr std::size_t kLeastBlock = 1 << 18;
constexpr std::size_t kKept = std::size_t{32} << 20;  // above it, glibc returns freed memory
constexpr int kPatience = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kApart = true;  // one block for each allocation, so that overruns are seen
#else
constexpr bool kApart = false;
#endif

struct Delete {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{kLine}); }
};
struct Block {
  explicit Block(std::size_t bytes)
      : data(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kLine}))),
        size(bytes) {}
  std::unique_ptr<std::byte[], Delete> data;
  std::size_t size;
};
}  // namespace

/// Blocks filled one after the other; more than one only until the outermost scope ends.
struct Workspace::Arena {
  std::vector<Block> blocks;
  std::size_t block = 0;      // index of the one being filled
  std::size_t used = 0;       // bytes of it
  std::size_t below = 0;      // bytes of the blocks before it
  std::size_t wanted = 0;     // size of the next first block
  std::size_t most = 0;       // peak use in this outermost scope
  std::size_t most_calm = 0;  // the same, over the scopes that `calm` counts
  int depth = 0;
  int calm = 0;

  std::size_t held() const {
    std::size_t bytes = 0;
    for (const Block& b : blocks) bytes += b.size;
    return bytes;
  }

  std::byte* take(std::size_t bytes) {
    while (block == blocks.size() || blocks[block].size - used < bytes) {
      if (block < blocks.size()) {
        below += blocks[block++].size;
        used = 0;
      }
      if (block == blocks.size())
        blocks.emplace_back(kApart ? bytes : std::max({bytes, wanted, held(), kLeastBlock}));
    }
    std::byte* const at = blocks[block].data.get() + used;
    used += bytes;
    most = std::max(most, below + used);
    return at;
  }

  void returnTo(std::size_t first_block, std::size_t first_used) {
    while (block > first_block) {
      --block;
      below -= blocks[block].size;
    }
    used = first_used;
    if (kApart)
      while (blocks.size() > block + (used > 0 ? 1 : 0)) blocks.pop_back();
  }

  void clear(std::size_t next) {
    blocks.clear();
    wanted = next;
    calm = 0;
    most_calm = 0;
  }

  /// Called when the outermost scope has ended.
  void settle() {
    if (blocks.size() > 1) {
      clear(most);
    } else if (!blocks.empty() && blocks.front().size > kKept) {
      most_calm = std::max(most_calm, most);
      if (most > blocks.front().size / 2) {
        calm = 0;
        most_calm = 0;
      } else if (++calm >= kPatience) {
        clear(most_calm);
      }
    }
    most = 0;
  }
};

Workspace::Arena& Workspace::arenaOfThread() {
  thread_local Arena arena;
  return arena;
}

Workspace::Workspace() : arena_(arenaOfThread()), block_(arena_.block), used_(arena_.used) {
  ++arena_.depth;
}

Workspace::~Workspace() {
  arena_.returnTo(block_, used_);
  if (--arena_.depth == 0) arena_.settle();
}

/// Adds one cache line: rows with a power of two of bytes would all share the same cache sets.
std::byte* Workspace::take(std::size_t bytes) {
  return arena_.take(kApart ? bytes : (bytes + 2 * kLine - 1) / kLine * kLine);
}

void Workspace::release() {
  Arena& arena = arenaOfThread();
  if (arena.depth == 0) arena.clear(0);
}

std::size_t Workspace::keptBytes() { return arenaOfThread().held(); }

}  // namespace ipujax::engine
