#pragma once
#include <cstdint>
#include <ctime>

#include "engine/VertexAbi.hpp"
#include "ipu_cycles.h"

// The state of a worker that builtins read and write. The model sets it before each compute().

namespace ipujax_registers {

struct Worker {
  std::uint32_t tile = 0;
  std::uint32_t worker = 0;
  std::uint32_t clock_reads = 0;  ///< makes the state differ after reading the clock
  void* vertex = nullptr;
  std::uint64_t random[2] = {1, 2};
  float tas = 0;
  float accumulators[16] = {};
  std::uint32_t lower[256] = {};  ///< registers of get and put
  std::uint32_t upper[256] = {};  ///< of uget and uput
  const unsigned char* load = nullptr;  ///< CCCSLOAD
};

inline Worker& worker() {
  static thread_local Worker state;
  return state;
}

inline std::uint64_t mixed(std::uint64_t& seed) {  // splitmix64
  std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/// Resets TAS and the accumulators; random numbers depend on the run, the vertex and the worker.
inline void enter(void* vertex, std::uint32_t tile, std::uint32_t id, std::uint64_t seed) {
  Worker& w = worker();
  w.tile = tile;
  w.worker = id;
  w.vertex = vertex;
  seed = seed * 8 + id;
  w.random[0] = mixed(seed);
  w.random[1] = mixed(seed);
  w.tas = 0;
  for (float& a : w.accumulators) a = 0;
}

inline std::uint64_t rotated(std::uint64_t x, int by) { return x << by | x >> (64 - by); }

/// xoroshiro128aox, the generator of an IPU. Source: arXiv:2203.04058.
inline std::uint64_t next() {
  Worker& w = worker();
  const std::uint64_t s0 = w.random[0], s1 = w.random[1];
  const std::uint64_t sx = s0 ^ s1, sa = s0 & s1;
  w.random[0] = rotated(s0, 55) ^ sx ^ sx << 14;
  w.random[1] = rotated(sx, 36);
  return sx ^ (rotated(sa, 1) | rotated(sa, 2));
}

/// Cycles of the tile's clock: counted, as the model does for sources that read the clock, or the
/// host's time at 1.33 GHz.
inline std::uint64_t cycles() {
  ++worker().clock_reads;
#ifdef IPUJAX_COUNTS_CYCLES
  return ipujax_cycles::cycles();
#else
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return (static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
          static_cast<std::uint64_t>(now.tv_nsec)) * 4 / 3;
#endif
}

}  // namespace ipujax_registers

// Functions that the model looks up in a library; libraries without registers lack them.
extern "C" {
__attribute__((weak, visibility("default"))) IpujaxEnter ipujax_enter() {
  return ipujax_registers::enter;
}
__attribute__((weak, visibility("default"))) IpujaxRange ipujax_registers_here() {
  auto& worker = ipujax_registers::worker();
  return {&worker, &worker + 1};
}
__attribute__((weak, visibility("default"))) std::uint64_t* ipujax_random_here() {
  return ipujax_registers::worker().random;
}
}
