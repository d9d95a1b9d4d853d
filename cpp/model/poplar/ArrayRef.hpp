#pragma once
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace poplar {

/// A borrowed, read-only array; the argument type of most of the API.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using const_reference = const T&;
  using const_iterator = const T*;
  using iterator = const_iterator;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}  // NOLINT: as in the SDK
  /// From any container with data() and size(): a vector, an array, a span.
  template <
      class Container, class Pointer = decltype(std::declval<const Container&>().data()),
      class = decltype(std::declval<const Container&>().size()),
      class = std::enable_if_t<std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Pointer>>, T>>>
  constexpr ArrayRef(const Container& c) : data_(c.data()), size_(c.size()) {}  // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(std::initializer_list<T> l) : data_(l.begin()), size_(l.size()) {}  // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr const T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return begin(); }
  constexpr const T* cend() const { return end(); }
  constexpr std::size_t max_size() const { return size_; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  std::vector<T> cloneAsVector() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class Container>
ArrayRef(const Container&) -> ArrayRef<typename Container::value_type>;
/// ArrayRef{vector} refers to the vector's elements, as ArrayRef(vector) does.
template <class T, class A>
ArrayRef(std::initializer_list<std::vector<T, A>>) -> ArrayRef<T>;

}  // namespace poplar
