#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ipujax::engine {

/// The engine's optimisations of time and memory. None changes a bit of a result, so that tests can
/// compare runs with and without each of them (tests/fuzz).
enum class Mechanism : std::uint8_t {
  kLoops,       ///< loops of tiny steps run as one kernel (docs/decisions/0017)
  kRows,        ///< adjacent steps on the same rows run as one step (0018)
  kReductions,  ///< elementwise steps run inside the reductions that read them (0016)
  kChains,      ///< cheap elementwise operations stay in registers (0008)
  kCopies,      ///< the two sides of a copy become one buffer (0007)
  kPlaces,      ///< buffers that are not live at the same time share memory
  kTurns,       ///< FIFOs exchange memory with their operands and results (0026)
  kStarts,      ///< variables begin at many tiles of an IPU, not all at tile 0 (0028)
  kTiles,       ///< memory is counted by class of tiles; only the fullest get addresses (0029)
  kPieces,      ///< values only copied into a piece of an array are computed there (0007)
};
constexpr std::array<std::string_view, 10> kMechanismNames = {
    "loops",  "rows",  "reductions", "chains", "copies",
    "places", "turns", "starts",     "tiles",  "pieces"};

/// The mechanisms that are on: all but those named.
class Mechanisms {
 public:
  Mechanisms() = default;
  /// From names, comma-separated; throws std::invalid_argument for one that is not known.
  static Mechanisms without(std::string_view names);
  /// From `bits()`; throws std::invalid_argument if a bit belongs to no mechanism.
  static Mechanisms fromBits(std::uint32_t bits);

  bool has(Mechanism m) const { return (off_ >> static_cast<unsigned>(m) & 1u) == 0; }
  std::uint32_t bits() const { return off_; }  ///< 1 for each mechanism that is off

 private:
  std::uint32_t off_ = 0;
};

}  // namespace ipujax::engine
