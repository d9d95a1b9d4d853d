#include "poplar/TypeConversion.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "engine/Half.hpp"
#include "engine/Quarter.hpp"
#include "poplar/MetadataCreation.hpp"
#include "poplar/exceptions.hpp"

// Quarters have one zero, one NaN, whose bits are those of a negative zero, and no infinity.
// Source: Noune et al., 8-bit Numerical Formats for Deep Neural Networks, arXiv:2206.02915.
namespace poplar {
namespace {

using ipujax::engine::ElementType;

std::uint8_t toQuarter(const QuarterMetadata& metadata, double value, bool nanOnOverflow) {
  return ipujax::engine::toQuarter(metadata.getBinary(), value, nanOnOverflow);
}

double fromQuarter(const QuarterMetadata& metadata, std::uint8_t bits) {
  return ipujax::engine::fromQuarter(metadata.getBinary(), bits);
}

void needMetadata(const char* where, const Type& type, bool given) {
  if (type.requiresMetadata() == given) return;
  throw poplar_error(std::string("[") + where + "] needs metadata for quarter and for it alone; " +
                     "got " + type.toString() + (given ? " with" : " without") +
                     " metadata. Use the other overload.");
}

/// Calls function(T{}) with the host's type of the elements.
template <class F>
void withStored(const Type& type, const F& function) {
  ipujax::engine::withElement(type.element(), function);
}

}  // namespace

void refuseQuarter() {
  throw poplar_error(
      "[poplar] needs an element type that arithmetic has; got quarters or their metadata. Cast "
      "them with popops::cast.");
}

QuarterMetadata::QuarterMetadata(Format format, int scale)
    : format_(format), scale_(static_cast<std::int8_t>(scale)) {
  if (scale < -32 || scale > 31)
    throw poplar_error("[QuarterMetadata] needs a scale in [-32, 31]; got " +
                       std::to_string(scale) + ". Scale the values first.");
}

std::ostream& operator<<(std::ostream& os, QuarterMetadata::Format format) {
  return os << (format == QuarterMetadata::Format::F143 ? "F143" : "F152");
}

std::ostream& operator<<(std::ostream& os, const QuarterMetadata& metadata) {
  return os << "{" << metadata.getFormat() << ", scale " << int{metadata.getScale()} << "}";
}

template <typename T>
void convertToDeviceType(const Type& dstType, ArrayRef<T> src, void* dst) {
  needMetadata("convertToDeviceType", dstType, false);
  auto* out = static_cast<unsigned char*>(dst);
  if (dstType == HALF) {
    for (const T value : src) {
      const std::uint16_t bits = ipujax::engine::floatToHalf(static_cast<float>(value));
      std::memcpy(out, &bits, sizeof bits);
      out += sizeof bits;
    }
    return;
  }
  withStored(dstType, [&](auto zero) {
    for (const T value : src) {
      const auto stored = dstType == BOOL ? static_cast<decltype(zero)>(value != T(0))
                                          : static_cast<decltype(zero)>(value);
      std::memcpy(out, &stored, sizeof stored);
      out += sizeof stored;
    }
  });
}

template <typename T>
void convertToDeviceType(const Type& dstType, const QuarterMetadata& metadata, ArrayRef<T> src,
                         void* dst, bool notANumberOnOverflow) {
  needMetadata("convertToDeviceType", dstType, true);
  auto* out = static_cast<std::uint8_t*>(dst);
  for (const T value : src)
    *out++ = toQuarter(metadata, static_cast<double>(value), notANumberOnOverflow);
}

template <typename T>
void convertFromDeviceType(const Type& srcType, const void* src, ArrayRef<T> dst) {
  needMetadata("convertFromDeviceType", srcType, false);
  const auto* in = static_cast<const unsigned char*>(src);
  // The SDK's signature takes the output as an ArrayRef.
  auto* out = const_cast<T*>(dst.data());  // NOLINT
  if (srcType == HALF) {
    for (std::size_t i = 0; i < dst.size(); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
      out[i] = static_cast<T>(ipujax::engine::halfToFloat(bits));
    }
    return;
  }
  withStored(srcType, [&](auto stored) {
    for (std::size_t i = 0; i < dst.size(); ++i) {
      std::memcpy(&stored, in + i * sizeof stored, sizeof stored);
      out[i] = static_cast<T>(stored);
    }
  });
}

template <typename T>
void convertFromDeviceType(const Type& srcType, const QuarterMetadata& metadata, const void* src,
                           ArrayRef<T> dst) {
  needMetadata("convertFromDeviceType", srcType, true);
  const auto* in = static_cast<const std::uint8_t*>(src);
  auto* out = const_cast<T*>(dst.data());  // NOLINT: as above
  for (std::size_t i = 0; i < dst.size(); ++i)
    out[i] = static_cast<T>(fromQuarter(metadata, in[i]));
}

#define IPUJAX_CONVERSIONS(T)                                                                \
  template void convertToDeviceType(const Type&, ArrayRef<T>, void*);                        \
  template void convertToDeviceType(const Type&, const QuarterMetadata&, ArrayRef<T>, void*, \
                                    bool);                                                   \
  template void convertFromDeviceType(const Type&, const void*, ArrayRef<T>);                \
  template void convertFromDeviceType(const Type&, const QuarterMetadata&, const void*, ArrayRef<T>)
IPUJAX_CONVERSIONS(float);
IPUJAX_CONVERSIONS(double);
IPUJAX_CONVERSIONS(bool);
IPUJAX_CONVERSIONS(char);
IPUJAX_CONVERSIONS(signed char);
IPUJAX_CONVERSIONS(unsigned char);
IPUJAX_CONVERSIONS(short);
IPUJAX_CONVERSIONS(unsigned short);
IPUJAX_CONVERSIONS(int);
IPUJAX_CONVERSIONS(unsigned);
IPUJAX_CONVERSIONS(long);
IPUJAX_CONVERSIONS(unsigned long);
IPUJAX_CONVERSIONS(long long);
IPUJAX_CONVERSIONS(unsigned long long);
#undef IPUJAX_CONVERSIONS

}  // namespace poplar
