#pragma once
#include <cstddef>
#include <cstdint>

namespace ipujax::engine::blas {

/// Who uses a thread's scratch memory; two users that live at one time on a thread differ here.
enum class ScratchUse : std::uint8_t { kShared, kLeft, kRight, kResult, kRow, kImage, kCount };

/// At least so many bytes of this thread's own memory, 64-byte aligned, kept for reuse and valid
/// until the same use asks for more.
void* scratchBytes(ScratchUse use, std::int64_t bytes);

/// At least `count` words of it.
template <class W>
W* scratch(ScratchUse use, std::int64_t count) {
  return static_cast<W*>(scratchBytes(use, count * static_cast<std::int64_t>(sizeof(W))));
}

}  // namespace ipujax::engine::blas
