#pragma once
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "engine/VertexAbi.hpp"
#include "poplar/Vertex.hpp"
#include "poplar/codelets/ends.h"

/// Turns codelet classes into the tables of VertexAbi.hpp. It comes before a codelet's source, so
/// that the source's macros cannot change it; the model appends a row for each class that it found.
/// For the same reason, the appended code and the macros here use only names that begin with
/// "ipujax".
namespace ipujax_codelet {

using poplar::InOut;
using poplar::Input;
using poplar::Output;
using poplar::Vector;
using poplar::VectorLayout;
using poplar::VectorList;
using poplar::VectorListLayout;

template <class T>
constexpr bool is_element = std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                            std::is_same_v<T, half> || std::is_same_v<T, quarter>;

template <class T>
constexpr std::uint32_t elementCode() {
  using U = std::remove_cv_t<T>;
  if (std::is_same_v<U, bool>) return 0;
  if (std::is_same_v<U, half>) return 9;
  if (std::is_same_v<U, float>) return 10;
  if (std::is_same_v<U, double>) return 11;
  if (std::is_same_v<U, quarter>) return 2;
  constexpr std::uint32_t kUnsigned = std::is_unsigned_v<U> ? 1 : 0;
  static_assert(is_element<U>, "elements of a codelet's edges and vectors are numbers");
  return (sizeof(U) == 1 ? 1 : sizeof(U) == 2 ? 3 : sizeof(U) == 4 ? 5 : 7) + kUnsigned;
}

constexpr std::uint32_t ipuBytes(VectorLayout layout) {
  if (layout == VectorLayout::SPAN) return 8;
  return layout == VectorLayout::SCALED_PTR32 || layout == VectorLayout::SCALED_PTR64 ||
                 layout == VectorLayout::SCALED_PTR128
             ? 2
             : 4;
}

template <class T, std::uint32_t kKind, std::uint32_t kDirection, std::uint32_t kIpuBytes>
struct Described {
  using Element = T;
  static constexpr std::uint32_t kind = kKind, direction = kDirection, ipu_bytes = kIpuBytes;
};

template <class F>
struct Describe : Described<F, kIpujaxValue, kIpujaxNone, sizeof(F)> {};
template <class T>
struct Describe<poplar::SimOnlyField<T>> : Described<T, kIpujaxValue, kIpujaxNone, sizeof(T)> {};
template <class T, VectorLayout L, unsigned A, bool I>
struct Describe<Vector<T, L, A, I>> : Described<T, kIpujaxStateVector, kIpujaxNone, ipuBytes(L)> {};

#define IPUJAX_DESCRIBE_EDGE(Edge, direction)                                                      \
  template <class T>                                                                               \
  struct Describe<Edge<T>> : Described<T, kIpujaxScalarEdge, direction, 4> {};                     \
  template <class T, VectorLayout L, unsigned A, bool I>                                           \
  struct Describe<Edge<Vector<T, L, A, I>>>                                                        \
      : Described<T, kIpujaxVectorEdge, direction, ipuBytes(L)> {};                                \
  template <class T, VectorListLayout L, unsigned A, bool I>                                       \
  struct Describe<Edge<VectorList<T, L, A, I>>>                                                    \
      : Described<T, kIpujaxListOfVectors, direction, 8> {};                                       \
  template <class T, VectorLayout L, unsigned A, bool I>                                           \
  struct Describe<Vector<Edge<T>, L, A, I>> : Described<T, kIpujaxListOfScalars, direction, 8> {}; \
  template <class T, VectorLayout L, unsigned A, bool I, VectorLayout M, unsigned B, bool J>       \
  struct Describe<Vector<Edge<Vector<T, M, B, J>>, L, A, I>>                                       \
      : Described<T, kIpujaxListOfVectors, direction, 8> {};
IPUJAX_DESCRIBE_EDGE(Input, kIpujaxIn)
IPUJAX_DESCRIBE_EDGE(Output, kIpujaxOut)
IPUJAX_DESCRIBE_EDGE(InOut, kIpujaxInOut)
#undef IPUJAX_DESCRIBE_EDGE

template <class Element, std::uint32_t kKind>
constexpr std::uint32_t has_metadata = std::is_same_v<Element, quarter> &&
                                       (kKind == kIpujaxVectorEdge ||
                                        kKind == kIpujaxListOfVectors);

/// The entry of a member; without a name if a graph cannot set the member, such as an array.
template <class Member, class V, class Base, class F>
constexpr IpujaxField entry(F Base::*) {
  using D = Describe<std::remove_cv_t<F>>;
  using Element = std::remove_cv_t<typename D::Element>;
  if constexpr (D::kind == kIpujaxValue && !is_element<Element>) {
    return {};
  } else {
    return {Member::ipujax_name, D::kind,
            D::direction,        elementCode<Element>(),
            sizeof(Element),     static_cast<std::uint32_t>(Member::template ipujax_offset<V>()),
            D::ipu_bytes,        has_metadata<Element, D::kind>};
  }
}
template <class Member, class V, class Other>
constexpr IpujaxField entry(Other*) {  // a static member
  return {};
}

/// A member's name. `IpujaxOf` is its pointer type in a class; specialisations of a template may
/// lack it.
#define IPUJAX_MEMBER(member)                           \
  struct IpujaxMember_##member {                        \
    static constexpr const char* ipujax_name = #member; \
    template <class Ipujax>                             \
    using IpujaxOf = decltype(&Ipujax::member);         \
    template <class Ipujax>                             \
    static constexpr unsigned long ipujax_offset() {    \
      return __builtin_offsetof(Ipujax, member);        \
    }                                                   \
  };

template <class V, class Member, class = void>
struct FieldOf {
  static constexpr IpujaxField value{};
};
template <class V, class Member>
struct FieldOf<V, Member, std::void_t<typename Member::template IpujaxOf<V>>> {
  static constexpr IpujaxField value = entry<Member, V>(typename Member::template IpujaxOf<V>{});
};

/// The fields of a codelet among the members that its classes declare.
template <std::size_t kMembers>
struct Fields {
  IpujaxField all[kMembers + 1]{};  // C++ has no empty arrays
  unsigned count = 0;
};
template <class V, class... Members>
constexpr Fields<sizeof...(Members)> fieldsOf() {
  Fields<sizeof...(Members)> fields;
  ((FieldOf<V, Members>::value.name ? void(fields.all[fields.count++] = FieldOf<V, Members>::value)
                                    : void()),
   ...);
  return fields;
}
template <class V, class... Members>
inline constexpr Fields<sizeof...(Members)> kFields = fieldsOf<V, Members...>();

/// `kConstructs`: whether the default constructor is defined, if it is declared.
template <class V, bool kConstructs>
void construct(void* place) {
  if constexpr (kConstructs && std::is_default_constructible_v<V>) new (place) V;
}

/// Whether compute() takes no arguments, or a worker's number as in a MultiVertex.
template <class V, class = void>
struct Takes {
  static constexpr bool nothing = false;
};
template <class V>
struct Takes<V, std::void_t<decltype(std::declval<V&>().compute())>> {
  static constexpr bool nothing = true;
};
template <class V, class = void>
struct TakesWorker {
  static constexpr bool value = false;
};
template <class V>
struct TakesWorker<V, std::void_t<decltype(std::declval<V&>().compute(0u))>> {
  static constexpr bool value = true;
};

template <class Call>
int succeeded(Call call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return 1;
  } else {
    return call() ? 1 : 0;
  }
}

template <class V>
int computeOn(V& vertex, unsigned worker) {
  (void)vertex, (void)worker;
  if constexpr (std::is_base_of_v<poplar::MultiVertex, V> && TakesWorker<V>::value) {
    return succeeded([&] { return vertex.compute(worker); });
  } else if constexpr (Takes<V>::nothing) {
    return succeeded([&] { return vertex.compute(); });
  } else {
    throw std::logic_error("it has no compute()");  // a base of codelets
  }
}

/// Whether compute() may run on a copy of the vertex: not if it uses the vertex's address, or if
/// workers may read fields that others wrote.
template <class V>
#if defined(IPUJAX_USES_VERTEX_BASE) || defined(IPUJAX_WORKERS_WAIT)
constexpr bool computes_on_copy = false;
#else
constexpr bool computes_on_copy = std::is_trivially_copyable_v<V> && sizeof(V) <= 512;
#endif

/// Runs on a copy: a compiler that knows that nothing else has the object keeps its fields in
/// registers and vectorises loops over edges. Written fields are copied back for the next worker
/// and run.
template <class V>
int compute(void* place, unsigned worker) {
  V& shared = *static_cast<V*>(place);
  if constexpr (computes_on_copy<V>) {
    V vertex = shared;
    const int good = computeOn(vertex, worker);
    // by bytes: members may be constant
    __builtin_memcpy(place, static_cast<const void*>(&vertex), sizeof(V));
    return good;
  } else {
    return computeOn(shared, worker);
  }
}

/// The codelet's own cycle estimate, as in the first SDKs.
template <class V, class = void>
struct Estimate {
  static constexpr std::uint64_t (*function)(const void*) = nullptr;
};
template <class V>
struct Estimate<V, std::void_t<decltype(std::declval<const V&>().getCycleEstimate())>> {
  static std::uint64_t function(const void* place) {
    return static_cast<std::uint64_t>(static_cast<const V*>(place)->getCycleEstimate());
  }
};

/// A row of the table; constexpr, since code that fills a long table takes minutes to compile.
template <class V, bool kConstructs, class... Members>
constexpr IpujaxCodelet ipujax_row(const char* name) {
  return {name,
          sizeof(V),
          std::is_base_of_v<poplar::MultiVertex, V> ? 1u : 0u,
          kFields<V, Members...>.count,
          kFields<V, Members...>.all,
          construct<V, kConstructs>,
          compute<V>,
          Estimate<V>::function};
}

#ifdef IPUJAX_COUNTS_CYCLES
inline void beginCount(std::uint64_t cycles, std::uint64_t limit) {
  auto& counter = ipujax_cycles::counter();
  counter.slots = 0;
  counter.limit = limit;
  counter.begin = cycles;
}
inline std::uint64_t countedSlots() { return ipujax_cycles::counter().slots; }
inline void allowRanges(const IpujaxRange* ranges, std::size_t count) {
  ipujax_cycles::counter().ranges = ranges;
  ipujax_cycles::counter().num_ranges = count;
}

}  // namespace ipujax_codelet

extern "C" __attribute__((weak, visibility("default"))) const IpujaxCounter* ipujax_counter() {
  static constexpr IpujaxCounter kEntries{ipujax_codelet::beginCount, ipujax_codelet::countedSlots,
                                          ipujax_codelet::allowRanges};
  return &kEntries;
}
#else
}  // namespace ipujax_codelet
#endif
