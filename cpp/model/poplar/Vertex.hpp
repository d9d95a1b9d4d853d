#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/VertexAbi.hpp"
#include "poplar/HalfFloat.hpp"
#include "poplar/QuarterFloat.hpp"
#ifndef IPUJAX_OWN_RPTSIZE
#include "poplar/Loops.hpp"
#endif

/// Included by codelets: base classes of vertices and the types of their fields, for the host's
/// compiler. A codelet's fields are pointers into the tensors connected to them; the model fills
/// them in before each compute(). `half` is stored as IEEE half and computed in float.
namespace poplar {

enum class VectorLayout {
  NOT_VECTOR,
  SPAN,
  SHORT_SPAN,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  COMPACT_PTR,
  TWO_PTR = SPAN  // the name in early SDKs
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
/// Exchanges data with the outside of the IPU; the model runs it as a supervisor vertex.
class ExternalExchangeVertex : public SupervisorVertex {};
/// A supervisor vertex if a condition holds, such as having assembly; never on the model.
template <bool>
class SupervisorVertexIf : public Vertex {};

/// A field that only simulators used.
template <class T>
class SimOnlyField {
 public:
  operator const T&() const { return value_; }  // NOLINT: reads like a value
  const T& operator*() const { return value_; }

 private:
  T value_;
};

/// Packed format and scale of quarters without a metadata tensor: F143, scale 0.
inline const std::uint8_t* quarterMetadata() {
  static const std::uint8_t packed = 0x80;
  return &packed;
}

/// Number of elements in 32 bits, as on an IPU, so that compilers can count a loop with an
/// `unsigned` and vectorise it. Converts to the host's size_t, which codelets for hosts expect.
struct VectorSize {
  alignas(std::size_t) std::uint32_t elements;
  operator std::size_t() const { return elements; }  // NOLINT: reads like a number
  const std::uint8_t* metadata() const { return quarterMetadata(); }
};

/// Size of a vector of quarters, with the metadata of its tensor.
struct QuarterVectorSize : VectorSize {
  const std::uint8_t* packed;
  const std::uint8_t* metadata() const { return packed ? packed : quarterMetadata(); }
};
template <class T>
using SizeOf =
    std::conditional_t<std::is_same_v<std::remove_cv_t<T>, quarter>, QuarterVectorSize, VectorSize>;

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
  const std::uint8_t* getMetadata() const { return size_.metadata(); }

 private:
  T* data_;
  SizeOf<T> size_;
};

/// Read-only elements of an input. The model compiles codelets with IPUJAX_CONST_INPUTS, except
/// those that cast pointers to these elements, as some IPU codelets do.
#ifdef IPUJAX_CONST_INPUTS
template <class T>
using OnlyRead = const T;
#else
template <class T>
using OnlyRead = T;
#endif

/// One row of a VectorList, or the target of an edge.
template <class T>
class Span {
 public:
  template <class I, class = std::enable_if_t<std::is_arithmetic_v<I>>>
  T& operator[](I i) const {  // codelets also index by std::floor
    return data_[static_cast<std::ptrdiff_t>(i)];
  }
  operator T*() const { return data_; }  // NOLINT: where a function takes a pointer
  std::size_t size() const { return size_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T* data() const { return data_; }
  T& operator*() const { return *data_; }
  const Span* operator->() const { return this; }  // in->size(), as in the SDK
  const std::uint8_t* getMetadata() const { return size_.metadata(); }

 private:
  T* data_;
  SizeOf<T> size_;
};

template <class T, VectorListLayout L = VectorListLayout::DELTAN, unsigned MinAlign = 0,
          bool Interleaved = false>
class VectorList;

/// Edges: Input is read, Output is written, InOut is both. Assigning to an edge writes its target;
/// the edge stays connected.
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
  Output() = default;
  Output(const Output&) = default;
  Output& operator=(const Output& other) {  // NOLINT: self-assignment copies one value
    *data_ = *other.data_;
    return *this;
  }
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

/// Writes the elements of one row to another of the same size.
template <class From, class To>
void assignRow(const Span<From>& from, const Span<To>& to) {
  if (from.size() != to.size())
    throw std::length_error("needs rows of one size in an assignment; got " +
                            std::to_string(from.size()) + " elements for " +
                            std::to_string(to.size()) + ". Assign single elements.");
  for (std::size_t i = 0; i < to.size(); ++i) to.data()[i] = from.data()[i];
}

/// The target of an edge. Codelet functions may also take it as a Vector, which has the same
/// members.
template <class T, VectorLayout L, unsigned A, bool I>
class VectorEdge : public Span<T> {
 public:
  Vector<T, L, A, I>& operator*() { return reinterpret_cast<Vector<T, L, A, I>&>(*this); }
  const Vector<T, L, A, I>& operator*() const {
    return reinterpret_cast<const Vector<T, L, A, I>&>(*this);
  }
  operator Vector<T, L, A, I>&() { return **this; }              // NOLINT
  operator const Vector<T, L, A, I>&() const { return **this; }  // NOLINT
};
template <class T, VectorLayout L, unsigned A, bool I>
class VectorEdge<const T, L, A, I> : public Span<const T> {
 public:
  const Vector<T, L, A, I>& operator*() const {
    return reinterpret_cast<const Vector<T, L, A, I>&>(*this);
  }
  operator const Vector<T, L, A, I>&() const { return **this; }  // NOLINT
};

/// A written edge; assigning to it writes its elements.
template <class T, VectorLayout L, unsigned A, bool I>
class WrittenVectorEdge : public VectorEdge<T, L, A, I> {
 public:
  WrittenVectorEdge() = default;
  WrittenVectorEdge(const WrittenVectorEdge&) = default;
  WrittenVectorEdge& operator=(const WrittenVectorEdge& other) {  // NOLINT: nothing to free
    assignRow(other, *this);
    return *this;
  }
  template <class From>
  WrittenVectorEdge& operator=(const Span<From>& from) {
    assignRow(from, *this);
    return *this;
  }
};

template <class T, VectorLayout L, unsigned A, bool I>
class Input<Vector<T, L, A, I>> : public VectorEdge<OnlyRead<T>, L, A, I> {};
template <class T, VectorLayout L, unsigned A, bool I>
class Output<Vector<T, L, A, I>> : public WrittenVectorEdge<T, L, A, I> {
 public:
  using WrittenVectorEdge<T, L, A, I>::operator=;
};
template <class T, VectorLayout L, unsigned A, bool I>
class InOut<Vector<T, L, A, I>> : public WrittenVectorEdge<T, L, A, I> {
 public:
  using WrittenVectorEdge<T, L, A, I>::operator=;
};

template <class T, VectorListLayout L, unsigned A, bool I>
class Input<VectorList<T, L, A, I>> : public Span<const Span<OnlyRead<T>>> {};
template <class T, VectorListLayout L, unsigned A, bool I>
class Output<VectorList<T, L, A, I>> : public Span<const Span<T>> {};
template <class T, VectorListLayout L, unsigned A, bool I>
class InOut<VectorList<T, L, A, I>> : public Span<const Span<T>> {};

}  // namespace poplar
