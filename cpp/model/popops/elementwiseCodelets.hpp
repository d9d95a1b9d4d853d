#pragma once
#include <cstring>
#include <type_traits>

#include "poplar/HalfFloat.hpp"
#include "poplar/TileConstants.hpp"
#include "poplar/Vertex.hpp"

/// For codelets of elementwise operations. The model runs their generic C++, never the code that
/// they have for the IPU's compiler (`__IPU__`).
using namespace poplar;  // NOLINT: as PopLibs has it

#ifndef ASM_CODELETS_ENABLED
#define ASM_CODELETS_ENABLED 0
#endif
#ifndef EXTERNAL_CODELET
#define EXTERNAL_CODELET false
#endif
#ifndef IS_EXTERNAL_CODELET
#define IS_EXTERNAL_CODELET(predicate) static const bool isExternalCodelet = false
#endif
#ifndef NUM_WORKERS
#define NUM_WORKERS CTXT_WORKERS
#endif

static constexpr auto ONE_PTR = VectorLayout::ONE_PTR;
static constexpr auto SPAN = VectorLayout::SPAN;
static constexpr auto SCALED_PTR32 = VectorLayout::SCALED_PTR32;
static constexpr auto SCALED_PTR64 = VectorLayout::SCALED_PTR64;

/// Select which form of an operation is compiled.
namespace architecture {
struct generic;
struct ipu;
using active = generic;
}  // namespace architecture

namespace {

/// Halves as floats; other types as they are.
template <typename T>
auto PromoteHalfsToFloats(T x) {
  if constexpr (std::is_same_v<T, half>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <typename T1, typename T2, typename T3 = T1>
using enable_same_size_t = std::enable_if_t<sizeof(T1) == sizeof(T2), T3>;

/// The bits of a value as another type.
template <typename To, typename From>
enable_same_size_t<To, From> copy_cast(const From& value) {
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

}  // namespace

/// The number of vectors of 2^vectorWidthShifts elements that a worker gets when all workers share
/// `size` elements; the first workers may get one more than the last. The caller handles the
/// remaining elements, which fill no vector.
static inline unsigned divideWork(unsigned size, unsigned vectorWidthShifts, unsigned worker) {
  return ((size >> vectorWidthShifts) + CTXT_WORKERS - 1 - worker) / CTXT_WORKERS;
}

/// INSTANTIATE_OP(Vertex, operation, types...): the template's instances for up to nine types.
#define IPUJAX_INSTANTIATE_1(v, op, t) template class v<op, t>;
#define IPUJAX_INSTANTIATE_2(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_1(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_3(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_2(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_4(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_3(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_5(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_4(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_6(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_5(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_7(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_6(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_8(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_7(v, op, __VA_ARGS__)
#define IPUJAX_INSTANTIATE_9(v, op, t, ...) \
  template class v<op, t>;                  \
  IPUJAX_INSTANTIATE_8(v, op, __VA_ARGS__)
#define IPUJAX_SELECT(a, b, c, d, e, f, g, h, i, name, ...) IPUJAX_INSTANTIATE##name
#define INSTANTIATE_OP(v, op, ...) \
  IPUJAX_SELECT(__VA_ARGS__, _9, _8, _7, _6, _5, _4, _3, _2, _1)(v, op, __VA_ARGS__)
