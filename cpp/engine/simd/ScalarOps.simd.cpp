#include "engine/simd/ScalarOps.hpp"

#include "engine/simd/Conversions.hpp"
#include "engine/simd/IntegerMath.hpp"
#include "engine/simd/MapLoops.hpp"

/// The functions of ElementwiseOps.def on one element; those with loops of their own have none.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

template <class T>
IPUJAX_INLINE T valueAt(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}

template <class F, class A, class R>
void unaryScalar(const ScalarOp* op, LoopRun* run) {
  *reinterpret_cast<R*>(op->out) = F{}(valueAt<A>(op->a));
  next(op, run);
}
template <class F, class A, class R>
void binaryScalar(const ScalarOp* op, LoopRun* run) {
  *reinterpret_cast<R*>(op->out) = F{}(valueAt<A>(op->a), valueAt<A>(op->b));
  next(op, run);
}
template <class F, class A, class C, class R>
void ternaryScalar(const ScalarOp* op, LoopRun* run) {
  *reinterpret_cast<R*>(op->out) = F{}(valueAt<A>(op->a), valueAt<A>(op->b), valueAt<C>(op->c));
  next(op, run);
}

template <int kOperands, class A, class F>
ScalarOp::Function scalarOf(F) {
  using R = ResultOf<F, A>;
  if constexpr (kOperands == 1)
    return unaryScalar<F, A, R>;
  else if constexpr (kOperands == 2)
    return binaryScalar<F, A, R>;
  else
    return ternaryScalar<F, A, A, R>;
}
#define IPUJAX_SCALAR(A, ...) return scalarOf<kOperands, A>(IPUJAX_LAMBDA(A, __VA_ARGS__));

template <class T>
ScalarOp::Function integer(expr::Op op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define I(...) IPUJAX_SCALAR(T, __VA_ARGS__)
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

ScalarOp::Function boolean(expr::Op op) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define B(...) IPUJAX_SCALAR(std::uint8_t, __VA_ARGS__)
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

template <class From>
ScalarOp::Function castFrom(ElementType to) {
  if (to == ElementType::kBool) return unaryScalar<ToBool<From>, From, std::uint8_t>;
  return withElement(to, []<class To>(To) -> ScalarOp::Function {
    return unaryScalar<Convert<From, To>, From, To>;
  });
}
}  // namespace

ScalarOp::Function findScalarFloat(expr::Op op) {
  switch (op) {
#define FUNCTIONS IPUJAX_CASE
#define F(...) IPUJAX_SCALAR(float, __VA_ARGS__)
#include "engine/expr/ElementwiseOps.def"
    default:
      break;
  }
  return nullptr;
}

ScalarOp::Function findScalarInteger(expr::Op op, ElementType type) {
  if (type == ElementType::kBool) return boolean(op);
  return withInteger(type, [&]<class T>(T) { return integer<T>(op); });
}

ScalarOp::Function findScalarSelect(std::size_t bytes) {
  return withBytes(bytes, []<class T>(T) -> ScalarOp::Function {
    return ternaryScalar<Select<T>, T, std::uint8_t, T>;
  });
}

ScalarOp::Function findScalarCast(ElementType from, ElementType to) {
  return withElement(from, [&]<class From>(From) { return castFrom<From>(to); });
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
