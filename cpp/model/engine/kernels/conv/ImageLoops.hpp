#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// Loops over pixels of three channels.
namespace ipujax::engine {

/// The scaling of each channel; for halves, the values are already rounded to half.
struct ChannelScales {
  float scale;
  float offsets[3];
  float scales[3];
};

/// out[4 i + c] = (in[3 i + c] * scale - offsets[c]) * scales[c], and out[4 i + 3] = 0. Halves are
/// rounded after each operation.
struct ImageLoops {
  void (*floats)(const float* in, float* out, std::int64_t pixels, const ChannelScales& by);
  void (*halves)(const std::uint16_t* in, std::uint16_t* out, std::int64_t pixels,
                 const ChannelScales& by);
};

IPUJAX_DECLARE_SIMD(extern const ImageLoops kImageLoops)

/// The loops for this CPU.
inline const ImageLoops& imageLoops() {
  static const ImageLoops& picked = IPUJAX_PICK(kImageLoops);
  return picked;
}

}  // namespace ipujax::engine
