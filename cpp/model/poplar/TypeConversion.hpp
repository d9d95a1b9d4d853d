#pragma once
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/Quarter.hpp"
#include "poplar/Type.hpp"

namespace gccs {
using poplar::ArrayRef;
}

namespace poplar {

/// Converts host values to the form that a tensor of `dstType` stores, rounded to nearest even;
/// floats that are too large become infinite. T is float, double, or an integer type of constants.
/// Throw poplar_error for QUARTER without metadata.
template <typename T>
void convertToDeviceType(const Type& dstType, ArrayRef<T> src, void* dst);
/// The same for QUARTER: too large values become NaN, or otherwise the largest value.
template <typename T>
void convertToDeviceType(const Type& dstType, const QuarterMetadata& metadata, ArrayRef<T> src,
                         void* dst, bool notANumberOnOverflow = true);

/// The same from vectors.
template <typename T, class A>
void convertToDeviceType(const Type& dstType, const std::vector<T, A>& src, void* dst) {
  convertToDeviceType(dstType, ArrayRef<T>(src), dst);
}
template <typename T, class A>
void convertToDeviceType(const Type& dstType, const QuarterMetadata& metadata,
                         const std::vector<T, A>& src, void* dst,
                         bool notANumberOnOverflow = true) {
  convertToDeviceType(dstType, metadata, ArrayRef<T>(src), dst, notANumberOnOverflow);
}

/// The reverse, for all elements of `dst`.
template <typename T>
void convertFromDeviceType(const Type& srcType, const void* src, ArrayRef<T> dst);
template <typename T>
void convertFromDeviceType(const Type& srcType, const QuarterMetadata& metadata, const void* src,
                           ArrayRef<T> dst);

/// The same to vectors, which keep their size.
template <typename T, class A>
void convertFromDeviceType(const Type& srcType, const void* src, std::vector<T, A>& dst) {
  convertFromDeviceType(srcType, src, ArrayRef<T>(dst));
}
template <typename T, class A>
void convertFromDeviceType(const Type& srcType, const QuarterMetadata& metadata, const void* src,
                           std::vector<T, A>& dst) {
  convertFromDeviceType(srcType, metadata, src, ArrayRef<T>(dst));
}

}  // namespace poplar
