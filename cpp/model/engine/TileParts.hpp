#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace ipujax::engine {

/// Uses of a tile's memory, as in docs/guides/memory.md.
enum class TilePart : std::uint8_t {
  kTemporaries,
  kParameters,       ///< arguments that are only read, and constants
  kState,            ///< results, and arguments whose memory they take over
  kAccumulators,     ///< values that a pipeline carries between micro-batches
  kStash,            ///< FIFOs of pipelines
  kRearrangement,    ///< operands of products and convolutions in the order of their vertices
  kExchangeBuffers,  ///< data that a step has received from other tiles
  kHostBuffers,      ///< data of streams, before or after it is rearranged
  kVertexState,      ///< fields of vertices, about their operands
  kVertexCode,       ///< codelets, each once
  kControlCode,      ///< calls of compute sets, exchanges and syncs
  kExchangeCode,
  kStack,    ///< of the supervisor and the workers
  kPadding,  ///< overhead of variables: alignment, and gaps between them
};
constexpr std::array<std::string_view, 14> kPartNames = {"temporaries",
                                                         "parameters",
                                                         "state",
                                                         "accumulators",
                                                         "stash",
                                                         "rearrangement",
                                                         "exchange buffers",
                                                         "host copy buffers",
                                                         "vertex state",
                                                         "vertex code",
                                                         "control code",
                                                         "exchange code",
                                                         "stack",
                                                         "padding"};

/// The bytes of one tile.
struct TileParts {
  std::array<std::uint64_t, kPartNames.size()> bytes{};

  std::uint64_t& operator[](TilePart part) { return bytes[static_cast<std::size_t>(part)]; }
  std::uint64_t operator[](TilePart part) const { return bytes[static_cast<std::size_t>(part)]; }
  TileParts& operator+=(const TileParts& other) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += other.bytes[i];
    return *this;
  }
  std::uint64_t code() const {
    return (*this)[TilePart::kVertexCode] + (*this)[TilePart::kControlCode] +
           (*this)[TilePart::kExchangeCode];
  }
  std::uint64_t total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  }
};

}  // namespace ipujax::engine
