#include "engine/simd/ScalarOps.hpp"

#include <iterator>

#include "engine/simd/Conversions.hpp"
#include "engine/simd/IntegerMath.hpp"
#include "engine/simd/MapLoops.hpp"

/// The functions of ElementwiseOps.def on one element; operations with their own loops have none.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class T>
IPUJAX_INLINE T valueAt(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}

template <class T>
IPUJAX_INLINE void leave(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number,
                         T value) {
  *reinterpret_cast<T*>(op->out) = value;
  hold(value, integer, number);
  next(op, run, integer, number);
}

template <class F, class A, class R, unsigned kHeld>
void unaryScalar(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  const A a = kHeld & 1u ? heldValue<A>(integer, number) : valueAt<A>(op->a);
  leave<R>(op, run, integer, number, F{}(a));
}
template <class F, class A, class R, unsigned kHeld>
void binaryScalar(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  const A a = kHeld & 1u ? heldValue<A>(integer, number) : valueAt<A>(op->a);
  const A b = kHeld & 2u ? heldValue<A>(integer, number) : valueAt<A>(op->b);
  leave<R>(op, run, integer, number, F{}(a, b));
}
template <class F, class A, class C, class R, unsigned kHeld>
void ternaryScalar(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  const A a = kHeld & 1u ? heldValue<A>(integer, number) : valueAt<A>(op->a);
  const A b = kHeld & 2u ? heldValue<A>(integer, number) : valueAt<A>(op->b);
  const C c = kHeld & 4u ? heldValue<C>(integer, number) : valueAt<C>(op->c);
  leave<R>(op, run, integer, number, F{}(a, b, c));
}

template <class F, class A, class R>
ScalarOp::Function unaryOf(unsigned held) {
  return held == 0 ? unaryScalar<F, A, R, 0> : unaryScalar<F, A, R, 1>;
}
template <class F, class A, class R>
ScalarOp::Function binaryOf(unsigned held) {
  constexpr ScalarOp::Function kAll[] = {binaryScalar<F, A, R, 0>, binaryScalar<F, A, R, 1>,
                                         binaryScalar<F, A, R, 2>, binaryScalar<F, A, R, 3>};
  return kAll[held & 3u];
}
template <class F, class A, class C, class R>
ScalarOp::Function ternaryOf(unsigned held) {
  constexpr ScalarOp::Function kAll[] = {ternaryScalar<F, A, C, R, 0>, ternaryScalar<F, A, C, R, 1>,
                                         ternaryScalar<F, A, C, R, 2>, nullptr,
                                         ternaryScalar<F, A, C, R, 4>};
  return held < std::size(kAll) ? kAll[held] : nullptr;
}

template <int kOperands, class A, class F>
ScalarOp::Function scalarOf(F, unsigned held) {
  using R = ResultOf<F, A>;
  if constexpr (kOperands == 1)
    return unaryOf<F, A, R>(held);
  else if constexpr (kOperands == 2)
    return binaryOf<F, A, R>(held);
  else
    return ternaryOf<F, A, A, R>(held);
}
#define IPUJAX_SCALAR(A, ...) return scalarOf<kOperands, A>(IPUJAX_LAMBDA(A, __VA_ARGS__), held);

template <class T>
ScalarOp::Function integer(expr::Op op, unsigned held) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define I(...) IPUJAX_SCALAR(T, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

ScalarOp::Function boolean(expr::Op op, unsigned held) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define B(...) IPUJAX_SCALAR(std::uint8_t, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

template <class From>
ScalarOp::Function castFrom(ElementType to, unsigned held) {
  if (to == ElementType::kBool) return unaryOf<ToBool<From>, From, std::uint8_t>(held);
  return withElement(to, [&]<class To>(To) { return unaryOf<Convert<From, To>, From, To>(held); });
}
}  // namespace

ScalarOp::Function findScalarFloat(expr::Op op, unsigned held) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define F(...) IPUJAX_SCALAR(float, __VA_ARGS__)
#include "engine/ops/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

ScalarOp::Function findScalarInteger(expr::Op op, ElementType type, unsigned held) {
  if (type == ElementType::kBool) return boolean(op, held);
  return withInteger(type, [&]<class T>(T) { return integer<T>(op, held); });
}

/// Moves bits only, but floats are in another register.
ScalarOp::Function findScalarSelect(ElementType type, unsigned held) {
  if (type == ElementType::kFloat)
    return ternaryOf<Select<float>, float, std::uint8_t, float>(held);
  return withBytes(sizeOf(type),
                   [&]<class T>(T) { return ternaryOf<Select<T>, T, std::uint8_t, T>(held); });
}

ScalarOp::Function findScalarCast(ElementType from, ElementType to, unsigned held) {
  return withElement(from, [&]<class From>(From) { return castFrom<From>(to, held); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
