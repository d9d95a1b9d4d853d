#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/move/Copy.hpp"

namespace ipujax::engine {

/// A FIFO gives its oldest value and takes the newest one in its place, without a copy: buffers
/// exchange memory (docs/decisions/0026). Operands: place, newest, oldest, and the FIFO's rows; a
/// place beyond them counts as the slice's attribute "clamp" says (see Outside).
/// Where the newest value is needed afterwards it is only read, and its row gets a copy.
class TurnKernel final : public Kernel {
 public:
  static constexpr const char* kName = "engine.turn";
  enum Operand : std::uint8_t { kPlace, kNewest, kOldest, kFirstRow };

  explicit TurnKernel(const StepDesc& step);
  /// The row whose memory the oldest value takes before `run`, and then the newest one, unless that
  /// is copied.
  std::size_t rowAt(std::span<std::byte* const> pointers) const;
  bool copiesNewest() const { return copy_.has_value(); }
  void run(RunContext& context, std::span<std::byte* const> pointers) const override;

 private:
  std::size_t num_rows_;
  bool wraps_;
  std::optional<StridedCopy> copy_;  ///< of the newest value, where it stays as it is
};

/// The buffers that exchange memory with others, by number.
std::vector<bool> turningBuffers(const Image& image);

}  // namespace ipujax::engine
