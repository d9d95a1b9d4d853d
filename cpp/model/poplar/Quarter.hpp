#pragma once
#include <cstdint>
#include <ostream>

namespace poplar {

/// Format and scale of 8-bit floats: a value is the number in the bits times 2^scale.
class QuarterMetadata {
 public:
  enum class Format : std::uint8_t { F152, F143 };  ///< bits of sign, exponent and fraction

  QuarterMetadata() = default;
  /// Throws poplar_error for a scale outside [-32, 31].
  QuarterMetadata(Format format, int scale);
  explicit QuarterMetadata(std::uint8_t binary)  ///< as getBinary returns it
      : format_(binary & 0x80 ? Format::F143 : Format::F152),
        scale_(static_cast<std::int8_t>((binary & 0x3f) - 2 * (binary & 0x20))) {}
  Format getFormat() const { return format_; }
  std::int8_t getScale() const { return scale_; }
  /// The byte that tiles store: the format in the highest bit, the scale in the lowest six.
  std::uint8_t getBinary() const {
    return static_cast<std::uint8_t>((format_ == Format::F143 ? 0x80 : 0) | (scale_ & 0x3f));
  }
  friend bool operator==(const QuarterMetadata& a, const QuarterMetadata& b) {
    return a.format_ == b.format_ && a.scale_ == b.scale_;
  }
  friend bool operator!=(const QuarterMetadata& a, const QuarterMetadata& b) { return !(a == b); }

 private:
  Format format_ = Format::F143;
  std::int8_t scale_ = 0;
};

std::ostream& operator<<(std::ostream& os, QuarterMetadata::Format format);
std::ostream& operator<<(std::ostream& os, const QuarterMetadata& metadata);

}  // namespace poplar
