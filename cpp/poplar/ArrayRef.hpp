#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace poplar {

/// A borrowed, read-only array; the argument type of most of the API.
template <class T>
class ArrayRef : public std::span<const T> {
 public:
  ArrayRef() = default;
  ArrayRef(const T* data, std::size_t size) : std::span<const T>(data, size) {}
  ArrayRef(const std::vector<T>& v) : std::span<const T>(v) {}  // NOLINT: implicit as in the SDK
  ArrayRef(std::span<const T> s) : std::span<const T>(s) {}     // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  ArrayRef(std::initializer_list<T> l) : std::span<const T>(l.begin(), l.size()) {}  // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  std::vector<T> cloneAsVector() const { return {this->begin(), this->end()}; }
};

}  // namespace poplar
