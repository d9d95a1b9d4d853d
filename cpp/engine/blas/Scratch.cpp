#include "engine/blas/Scratch.hpp"

#include <array>
#include <memory>
#include <new>

namespace ipujax::engine::blas {
namespace {

struct Free {
  void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
struct Block {
  std::unique_ptr<float[], Free> data;
  std::int64_t count = 0;
};

}  // namespace

float* scratch(ScratchUse use, std::int64_t count) {
  thread_local std::array<Block, static_cast<std::size_t>(ScratchUse::kCount)> blocks;
  Block& block = blocks[static_cast<std::size_t>(use)];
  if (block.count < count) {
    block.data.reset();
    block.count = 0;
    const std::int64_t rounded = (count + 4095) / 4096 * 4096;
    block.data.reset(static_cast<float*>(
        ::operator new[](static_cast<std::size_t>(rounded) * sizeof(float), std::align_val_t{64})));
    block.count = rounded;
  }
  return block.data.get();
}

}  // namespace ipujax::engine::blas
