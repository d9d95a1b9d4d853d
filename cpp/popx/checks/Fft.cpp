#include "popx/checks/Fft.hpp"

#include "poplar/exceptions.hpp"
#include "popx/checks/Matrices.hpp"

namespace popx::fourier {
namespace {

using poplar::Tensor;

std::string lengthsText(const std::vector<std::size_t>& lengths) {
  std::string text;
  for (const std::size_t length : lengths)
    text += (text.empty() ? "" : ",") + std::to_string(length);
  return "{" + text + "}";
}

void check(const Parts& a, FftType type, const std::vector<std::size_t>& lengths) {
  const auto refuse = [](const std::string& needs, const std::string& got) {
    throw poplar::poplar_error("[popx::fft] needs " + needs + "; got " + got +
                               ". Reshape, slice or cast first.");
  };
  if (lengths.empty() || lengths.size() > 3) {
    refuse("1 to 3 lengths", std::to_string(lengths.size()));
  }
  const std::size_t parts = isReal(type, false) ? 1 : 2;
  if (a.size() != parts) {
    refuse(parts == 1 ? "real numbers" : "real and imaginary parts", std::to_string(a.size()));
  }
  for (const Tensor& part : a) {
    if (!batch::holdsReals(part.elementType())) refuse("float", part.elementType().toString());
    if (part.elementType() != a[0].elementType())
      refuse("parts of one type", part.elementType().toString());
    if (part.shape() != a[0].shape()) refuse("parts of one shape", part.shapeToString());
  }
  const auto& shape = a[0].shape();
  if (shape.size() < lengths.size()) refuse("a dimension for each length", a[0].shapeToString());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const bool last = i + 1 == lengths.size();
    const std::size_t wanted = last && type == FftType::IRFFT ? lengths[i] / 2 + 1 : lengths[i];
    if (shape[shape.size() - lengths.size() + i] != wanted) {
      refuse("dimensions of the lengths " + lengthsText(lengths), a[0].shapeToString());
    }
  }
}

}  // namespace

bool isReal(FftType type, bool result) { return type == (result ? FftType::IRFFT : FftType::RFFT); }

std::vector<std::size_t> resultShape(const Parts& a, FftType type,
                                     const std::vector<std::size_t>& lengths) {
  check(a, type, lengths);
  std::vector<std::size_t> shape = a[0].shape();
  if (type == FftType::RFFT) shape.back() = lengths.back() / 2 + 1;
  if (type == FftType::IRFFT) shape.back() = lengths.back();
  return shape;
}

}  // namespace popx::fourier
