#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/codelets/VertexAbi.hpp"

/// What a codelet includes: the bases of vertices and the types of their fields, as the host's
/// compiler sees them. A codelet's fields are pointers into the tensors connected to them; the
/// model fills them in before each compute(). `half` is stored as IEEE half and computed in float.
namespace poplar {

enum class VectorLayout {
  NOT_VECTOR,
  SPAN,
  SHORT_SPAN,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  COMPACT_PTR
};
enum class VectorListLayout { NOT_VECTOR_LIST, DELTAN, DELTANELEMENTS, COMPACT_DELTAN };

/// Run by one worker.
class Vertex {};

/// Run by all workers of a tile: compute(workerId) is called for each.
class MultiVertex {
 public:
  static constexpr unsigned numWorkers() { return kIpujaxWorkers; }
};

/// Run by a tile's supervisor.
class SupervisorVertex {};

/// IEEE binary16 storage; converts to float, rounds to nearest even.
class half_storage {
 public:
  half_storage() = default;
  half_storage(float value) : bits_(round(value)) {}                         // NOLINT: as a number
  half_storage(double value) : bits_(round(static_cast<float>(value))) {}    // NOLINT
  half_storage(int value) : bits_(round(static_cast<float>(value))) {}       // NOLINT
  half_storage(unsigned value) : bits_(round(static_cast<float>(value))) {}  // NOLINT
  operator float() const { return widen(bits_); }                            // NOLINT

  half_storage& operator+=(float o) { return *this = half_storage(float(*this) + o); }
  half_storage& operator-=(float o) { return *this = half_storage(float(*this) - o); }
  half_storage& operator*=(float o) { return *this = half_storage(float(*this) * o); }
  half_storage& operator/=(float o) { return *this = half_storage(float(*this) / o); }

 private:
  static float asFloat(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  static std::uint32_t asBits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
  }
  static float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return asFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u) return asFloat(sign | ((magnitude << 13) + 0x38000000u));
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  static std::uint16_t round(float value) {
    const std::uint32_t bits = asBits(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    std::uint32_t result;
    if (magnitude > 0x7f800000u) {
      result = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) {
      result = 0x7c00u;  // rounds to infinity
    } else if (magnitude < 0x38800000u) {
      result = asBits(asFloat(magnitude) + 0.5f) - 0x3f000000u;  // a multiple of 2^-24
    } else {
      result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
  }

  std::uint16_t bits_;
};

/// A vector in a vertex's own state (sized by setFieldSize), or a list of edges.
template <class T, VectorLayout L = VectorLayout::SPAN, unsigned MinAlign = 0,
          bool Interleaved = false>
class Vector {
 public:
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  T* data_;
  std::size_t size_;
};

/// One row of a VectorList, or the target of an edge.
template <class T>
class Span {
 public:
  T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T* data() const { return data_; }
  T& operator*() const { return *data_; }

 private:
  T* data_;
  std::size_t size_;
};

template <class T, VectorListLayout L = VectorListLayout::DELTAN, unsigned MinAlign = 0,
          bool Interleaved = false>
class VectorList;

/// Edges. Input is read, Output written, InOut both.
template <class T>
class Input {
 public:
  operator const T&() const { return *data_; }  // NOLINT: reads like a value
  const T& operator*() const { return *data_; }
  const T* operator->() const { return data_; }

 private:
  const T* data_;
};

template <class T>
class Output {
 public:
  operator T&() const { return *data_; }  // NOLINT
  T& operator*() const { return *data_; }
  T* operator->() const { return data_; }
  const Output& operator=(const T& value) const {
    *data_ = value;
    return *this;
  }

 private:
  T* data_;
};

template <class T>
class InOut : public Output<T> {
 public:
  using Output<T>::operator=;
};

template <class T, VectorLayout L, unsigned A, bool I>
class Input<Vector<T, L, A, I>> : public Span<const T> {};
template <class T, VectorLayout L, unsigned A, bool I>
class Output<Vector<T, L, A, I>> : public Span<T> {};
template <class T, VectorLayout L, unsigned A, bool I>
class InOut<Vector<T, L, A, I>> : public Span<T> {};

template <class T, VectorListLayout L, unsigned A, bool I>
class Input<VectorList<T, L, A, I>> : public Span<const Span<const T>> {};
template <class T, VectorListLayout L, unsigned A, bool I>
class Output<VectorList<T, L, A, I>> : public Span<const Span<T>> {};
template <class T, VectorListLayout L, unsigned A, bool I>
class InOut<VectorList<T, L, A, I>> : public Span<const Span<T>> {};

/// Short vectors, element by element.
template <class T, int N>
struct ShortVector {
  T lane[N];
  T& operator[](int i) { return lane[i]; }
  const T& operator[](int i) const { return lane[i]; }

  template <class F>
  static ShortVector map(const ShortVector& a, const ShortVector& b, F f) {
    ShortVector r;
    for (int i = 0; i < N; ++i) r.lane[i] = T(f(float(a.lane[i]), float(b.lane[i])));
    return r;
  }
  friend ShortVector operator+(const ShortVector& a, const ShortVector& b) {
    return map(a, b, [](float x, float y) { return x + y; });
  }
  friend ShortVector operator-(const ShortVector& a, const ShortVector& b) {
    return map(a, b, [](float x, float y) { return x - y; });
  }
  friend ShortVector operator*(const ShortVector& a, const ShortVector& b) {
    return map(a, b, [](float x, float y) { return x * y; });
  }
  friend ShortVector operator/(const ShortVector& a, const ShortVector& b) {
    return map(a, b, [](float x, float y) { return x / y; });
  }
};

}  // namespace poplar

using half = poplar::half_storage;
using half2 = poplar::ShortVector<half, 2>;
using half4 = poplar::ShortVector<half, 4>;
using float2 = poplar::ShortVector<float, 2>;
using float4 = poplar::ShortVector<float, 4>;
