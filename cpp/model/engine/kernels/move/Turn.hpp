#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"

namespace ipujax::engine {

/// Replaces a FIFO's oldest value by the newest one without a copy: buffers exchange memory
/// (docs/decisions/0026). Operands: place, newest, oldest, and the FIFO's rows; the slice's
/// attribute "clamp" says how a place beyond them counts (see Outside).
/// If the newest value is needed afterwards, it is only read, and its row gets a copy.
class TurnKernel final : public Kernel {
 public:
  static constexpr const char* kName = "engine.turn";
  enum Operand : std::uint8_t { kPlace, kNewest, kOldest, kFirstRow };

  explicit TurnKernel(const StepDesc& step);
  /// The row that exchanges memory before `run`: first with the oldest value, then with the newest
  /// one unless that is copied.
  std::size_t rowAt(std::span<std::byte* const> pointers) const;
  bool copiesNewest() const { return copy_.has_value(); }
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  std::size_t num_rows_;
  bool wraps_;
  std::optional<StridedCopy> copy_;  ///< of the newest value, if that is only read
};

/// The buffers that exchange memory with others, by number.
std::vector<bool> turningBuffers(const Image& image);

}  // namespace ipujax::engine
