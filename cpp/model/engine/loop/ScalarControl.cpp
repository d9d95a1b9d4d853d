#include "engine/loop/ScalarControl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/kernels/Kernel.hpp"
#include "engine/loop/LoopKernel.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::loop::scalar {
namespace {

using simd::next;

std::int64_t word(const std::byte* record, std::size_t number) {
  return reinterpret_cast<const std::int64_t*>(record)[number];
}
/// Several small elements are moved as one value, which may be unaligned.
template <class T>
T valueAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void setValue(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void run(const ScalarOp* op, LoopRun* state) { op->function(op, state, 0, 0.0f); }

template <class I>
void chooseBy(const ScalarOp* op, LoopRun* state, std::uint64_t, float) {
  const std::int64_t selector = valueAt<I>(op->a);
  std::size_t at = 1;
  const auto end = 1 + 2 * static_cast<std::size_t>(op->immediate);
  while (at < end && word(op->c, at) != selector) at += 2;
  run(op + word(op->c, at < end ? at + 1 : end), state);
  if (state->isCancelled()) return;
  run(op + word(op->c, 0), state);
}

template <class T>
void copyElement(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  setValue(op->out, valueAt<T>(op->a));
  next(op, run, integer, number);
}
void copyBytes(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  std::memmove(op->out, op->a, static_cast<std::size_t>(op->immediate));
  next(op, run, integer, number);
}

template <class I, Outside kOutside>
void locateIndex(const ScalarOp* op, LoopRun* run, const std::byte* from) {
  const std::int64_t most = word(op->c, 0);
  std::int64_t index = Windows::read<I>(op->a);
  if constexpr (kOutside == Outside::kClamp) {
    index = std::clamp<std::int64_t>(index, 0, most);
  } else if constexpr (kOutside == Outside::kWrap) {
    index = Windows::wrapped(index, most + 1);
  } else if (index < 0 || index > most) {
    from = nullptr;
  }
  setValue(op->out, from ? from + index * word(op->c, 1) : nullptr);
  next(op, run);
}
template <class I, Outside kOutside>
void locateFirst(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  locateIndex<I, kOutside>(op, run, op->b);
}
template <class I, Outside kOutside>
void locateNext(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  locateIndex<I, kOutside>(op, run, valueAt<const std::byte*>(op->b));
}
template <class I>
Function locateBy(Outside outside, bool from_address) {
  switch (outside) {
    case Outside::kClamp:
      return from_address ? locateNext<I, Outside::kClamp> : locateFirst<I, Outside::kClamp>;
    case Outside::kWrap:
      return from_address ? locateNext<I, Outside::kWrap> : locateFirst<I, Outside::kWrap>;
    default:
      return from_address ? locateNext<I, Outside::kSkip> : locateFirst<I, Outside::kSkip>;
  }
}

template <class T>
void loadOne(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  setValue(op->out, valueAt<T>(valueAt<const std::byte*>(op->a) + op->immediate));
  next(op, run);
}
void loadBytes(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  std::memmove(op->out, valueAt<const std::byte*>(op->a), static_cast<std::size_t>(op->immediate));
  next(op, run);
}
template <class T>
void storeOne(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  if (auto* to = valueAt<std::byte*>(op->out)) setValue(to + op->immediate, valueAt<T>(op->a));
  next(op, run);
}
void storeBytes(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  if (auto* to = valueAt<std::byte*>(op->out))
    std::memmove(to, op->a, static_cast<std::size_t>(op->immediate));
  next(op, run);
}

template <class I, class T, bool kHeld>
void loadIndexed(const ScalarOp* op, LoopRun* run, std::uint64_t integer, float number) {
  const I at = kHeld ? simd::heldValue<I>(integer, number) : valueAt<I>(op->a);
  const std::int64_t index = std::clamp<std::int64_t>(at, 0, word(op->c, 0));
  const T value = valueAt<T>(op->b + index * word(op->c, 1));
  setValue(op->out, value);
  simd::hold(value, integer, number);
  next(op, run, integer, number);
}
template <class I>
Function loadIndexedBy(ElementType type, bool held) {
  if (type == ElementType::kFloat)
    return held ? loadIndexed<I, float, true> : loadIndexed<I, float, false>;
  return withBytes(sizeOf(type), [&]<class T>(T) -> Function {
    return held ? loadIndexed<I, T, true> : loadIndexed<I, T, false>;
  });
}

}  // namespace

void end(const ScalarOp*, LoopRun*, std::uint64_t, float) {}

void repeat(const ScalarOp* op, LoopRun* state, std::uint64_t, float) {
  for (std::int64_t i = 0; i < op->immediate; ++i) {
    if (state->isCancelled()) return;
    run(op + 1, state);
  }
  run(op + word(op->c, 0), state);
}

void repeatWhile(const ScalarOp* op, LoopRun* state, std::uint64_t, float) {
  const ScalarOp* const body = op + word(op->c, 0);
  const bool goes_on = word(op->c, 2) != 0;
  std::uint64_t iterations = 0;
  for (;; ++iterations) {
    if (state->isCancelled()) return;
    run(op + 1, state);
    if ((*op->a != std::byte{0}) != goes_on) break;
    run(body, state);
  }
  state->trip_counts.add(static_cast<std::uint32_t>(word(op->c, 3)), iterations);
  run(op + word(op->c, 1), state);
}

void branch(const ScalarOp* op, LoopRun* state, std::uint64_t, float) {
  run(*op->a != std::byte{0} ? op + 1 : op + word(op->c, 0), state);
  if (state->isCancelled()) return;
  run(op + word(op->c, 1), state);
}

Function choose(std::size_t bytes) {
  return bytes == 1 ? chooseBy<std::int8_t> : chooseBy<std::int32_t>;
}

void kernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  if (run->isCancelled()) return;  // it may take long
  const auto* pointers = reinterpret_cast<std::byte* const*>(op->a);
  reinterpret_cast<const Kernel*>(op->b)->run(
      run->context, std::span(pointers, static_cast<std::size_t>(op->immediate)));
  next(op, run);
}

void loopKernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  reinterpret_cast<const LoopKernel*>(op->b)->run(*run);
  if (run->isCancelled()) return;
  next(op, run);
}

void mapLoop(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  const auto loop = reinterpret_cast<simd::MapFn>(static_cast<std::uintptr_t>(word(op->c, 0)));
  loop(op->a, op->b, nullptr, op->out, 1, word(op->c, 1));
  next(op, run);
}
void halfToFloat(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  simd::halfToFloat(reinterpret_cast<const std::uint16_t*>(op->a),
                    reinterpret_cast<float*>(op->out), 1);
  next(op, run);
}
void floatToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  simd::floatToHalf(reinterpret_cast<const float*>(op->a),
                    reinterpret_cast<std::uint16_t*>(op->out), 1);
  next(op, run);
}
void roundToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float) {
  simd::roundToHalf(reinterpret_cast<float*>(op->out), 1);
  next(op, run);
}

Function copyOf(std::size_t bytes) {
  if (!isWord(bytes)) return copyBytes;
  return withBytes(bytes, []<class T>(T) -> Function { return copyElement<T>; });
}

Function locate(ElementType index, Outside outside, bool from_address) {
  return withInteger(index, [&]<class I>(I) { return locateBy<I>(outside, from_address); });
}
Function loadAt(std::size_t bytes) {
  if (!isWord(bytes)) return loadBytes;
  return withBytes(bytes, []<class T>(T) -> Function { return loadOne<T>; });
}
Function storeAt(std::size_t bytes) {
  if (!isWord(bytes)) return storeBytes;
  return withBytes(bytes, []<class T>(T) -> Function { return storeOne<T>; });
}
Function loadElement(ElementType index, ElementType type, bool held) {
  if (index == ElementType::kUInt32) return loadIndexedBy<std::uint32_t>(type, held);
  return loadIndexedBy<std::int32_t>(type, held);
}

}  // namespace ipujax::engine::loop::scalar
