#include "engine/blas/Scratch.hpp"

#include <array>
#include <memory>
#include <new>

namespace ipujax::engine::blas {
namespace {

constexpr std::int64_t kGrain = 1 << 14;

struct Free {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
struct Block {
  std::unique_ptr<std::byte[], Free> data;
  std::int64_t bytes = 0;
};

}  // namespace

void* scratchBytes(ScratchUse use, std::int64_t bytes) {
  thread_local std::array<Block, static_cast<std::size_t>(ScratchUse::kCount)> blocks;
  Block& block = blocks[static_cast<std::size_t>(use)];
  if (block.bytes < bytes) {
    block.data.reset();
    block.bytes = 0;
    const std::int64_t rounded = (bytes + kGrain - 1) / kGrain * kGrain;
    block.data.reset(static_cast<std::byte*>(
        ::operator new[](static_cast<std::size_t>(rounded), std::align_val_t{64})));
    block.bytes = rounded;
  }
  return block.data.get();
}

}  // namespace ipujax::engine::blas
