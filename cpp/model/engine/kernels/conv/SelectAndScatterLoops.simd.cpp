#include "engine/kernels/conv/SelectAndScatterLoops.hpp"

#include <cstring>

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

typedef float Floats __attribute__((vector_size(64)));
typedef std::int32_t Ints __attribute__((vector_size(64)));
constexpr std::int64_t kLanes = 16;

void pickVector(const PickWindow& w, std::int64_t at) {
  const float* row = w.operand + at;
  Floats best;
  std::memcpy(&best, row, sizeof best);
  Ints chosen{};
  std::int32_t tap = 0;
  for (std::int64_t r = 0; r < w.rows; ++r, row += w.operand_row) {
    const float* x = row;
    for (std::int64_t c = 0; c < w.columns; ++c, ++tap, x += w.operand_column) {
      if (tap == 0) continue;
      Floats next;
      std::memcpy(&next, x, sizeof next);
      const Ints keep = best >= next;
      best = keep ? best : next;
      chosen = keep ? chosen : Ints{} + tap;
    }
  }
  Floats source;
  std::memcpy(&source, w.source + at, sizeof source);
  tap = 0;
  float* out_row = w.result + at;
  for (std::int64_t r = 0; r < w.rows; ++r, out_row += w.result_row) {
    float* out = out_row;
    for (std::int64_t c = 0; c < w.columns; ++c, ++tap, out += w.result_column) {
      Floats value;
      std::memcpy(&value, out, sizeof value);
      value = (chosen == Ints{} + tap) ? value + source : value;
      std::memcpy(out, &value, sizeof value);
    }
  }
}

void pickOne(const PickWindow& w, std::int64_t at) {
  const float* row = w.operand + at;
  float best = *row;
  std::int64_t place = 0;
  for (std::int64_t r = 0; r < w.rows; ++r, row += w.operand_row) {
    for (std::int64_t c = 0; c < w.columns; ++c) {
      const float next = row[c * w.operand_column];
      if (best >= next) continue;
      best = next;
      place = r * w.result_row + c * w.result_column;
    }
  }
  w.result[at + place] += w.source[at];
}

}  // namespace

/// A NaN gives way to the next element, since best >= next is false for it. pickOne also compares
/// the first element with itself, which changes nothing.
void pick(const PickWindow& window, std::int64_t lanes) {
  std::int64_t at = 0;
  for (; at + kLanes <= lanes; at += kLanes) pickVector(window, at);
  for (; at < lanes; ++at) pickOne(window, at);
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
