#pragma once
#include <cstddef>
#include <type_traits>

// Clang's vectors for codelets: `v.x`, `v[i]`, elementwise arithmetic with vectors and numbers.
// CodeletText.cpp replaces their attribute, which GCC does not have, with this macro.
#define IPUJAX_EXT_VECTOR(type, n) ipujax_vectors::ExtVector<type, (n)>

namespace ipujax_vectors {

#ifdef __clang__

template <class T, int n>
using ExtVector = T __attribute__((ext_vector_type(n)));

#else

/// The elements and their names.
template <class T, int n>
struct ExtElements {
  T v[n];
};
template <class T>
struct ExtElements<T, 2> {
  union {
    T v[2];
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    struct {
      T s0, s1;
    };
    struct {
      T lo, hi;
    };
  };
};
template <class T>
struct ExtElements<T, 3> {
  union {
    T v[4];  // as large as four elements
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    struct {
      T s0, s1, s2;
    };
  };
};
template <class T>
struct ExtElements<T, 4> {
  union {
    T v[4];
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    struct {
      T s0, s1, s2, s3;
    };
  };
};

template <class T, int n>
struct ExtVector : ExtElements<T, n> {
  /// GCC vectors with the same elements, as intrinsics use.
  template <class V>
  using IfVector =
      std::enable_if_t<!std::is_class_v<V> && !std::is_array_v<V> && !std::is_pointer_v<V> &&
                       sizeof(V) == n * sizeof(T) &&
                       std::is_same_v<std::decay_t<decltype(std::declval<V&>()[0])>, T> >;

  ExtVector() = default;
  ExtVector(T all) {  // NOLINT: as a number
    for (int i = 0; i < n; ++i) this->v[i] = all;
  }
  template <class... Elements, class = std::enable_if_t<sizeof...(Elements) == n && (n > 1)> >
  ExtVector(Elements... elements) {  // NOLINT: as a list in braces
    int i = 0;
    ((this->v[i++] = T(elements)), ...);
  }
  template <class V, class = IfVector<V> >
  ExtVector(const V& vector) {  // NOLINT: the same elements
    for (int i = 0; i < n; ++i) this->v[i] = vector[i];
  }
  template <class V, class = IfVector<V> >
  operator V() const {  // NOLINT: the same elements
    V vector{};
    for (int i = 0; i < n; ++i) vector[i] = this->v[i];
    return vector;
  }
  T& operator[](std::size_t i) { return this->v[i]; }
  const T& operator[](std::size_t i) const { return this->v[i]; }

#define IPUJAX_BY_ELEMENT(op)                                            \
  friend ExtVector operator op(const ExtVector& a, const ExtVector& b) { \
    ExtVector made;                                                      \
    for (int i = 0; i < n; ++i) made.v[i] = T(a.v[i] op b.v[i]);         \
    return made;                                                         \
  }                                                                      \
  ExtVector& operator op##=(const ExtVector& b) { return *this = *this op b; }
  IPUJAX_BY_ELEMENT(+)
  IPUJAX_BY_ELEMENT(-)
  IPUJAX_BY_ELEMENT(*)
  IPUJAX_BY_ELEMENT(/)
  IPUJAX_BY_ELEMENT(%)
  IPUJAX_BY_ELEMENT(&)
  IPUJAX_BY_ELEMENT(|)
  IPUJAX_BY_ELEMENT(^)
  IPUJAX_BY_ELEMENT(<<)
  IPUJAX_BY_ELEMENT(>>)
#undef IPUJAX_BY_ELEMENT
  friend ExtVector operator-(const ExtVector& a) {
    ExtVector made;
    for (int i = 0; i < n; ++i) made.v[i] = T(-a.v[i]);
    return made;
  }
  friend ExtVector operator~(const ExtVector& a) { return a ^ ExtVector(T(-1)); }

  /// -1 where true, 0 elsewhere, in integers as wide as the elements.
  using Mask = ExtVector<
      std::conditional_t<sizeof(T) == 1, signed char,
                         std::conditional_t<sizeof(T) == 2, short,
                                            std::conditional_t<sizeof(T) == 4, int, long long> > >,
      n>;
#define IPUJAX_COMPARED(op)                                            \
  friend Mask operator op(const ExtVector& a, const ExtVector& b) {    \
    Mask made;                                                         \
    for (int i = 0; i < n; ++i) made.v[i] = a.v[i] op b.v[i] ? -1 : 0; \
    return made;                                                       \
  }
  IPUJAX_COMPARED(==)
  IPUJAX_COMPARED(!=)
  IPUJAX_COMPARED(<)
  IPUJAX_COMPARED(<=)
  IPUJAX_COMPARED(>)
  IPUJAX_COMPARED(>=)
#undef IPUJAX_COMPARED
};

#endif

}  // namespace ipujax_vectors
