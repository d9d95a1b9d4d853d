#include "engine/loop/ScalarControl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/Kernel.hpp"
#include "engine/loop/LoopKernel.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::loop::scalar {
namespace {

using simd::next;

std::int64_t word(const std::byte* record, std::size_t number) {
  return reinterpret_cast<const std::int64_t*>(record)[number];
}
template <class T>
T valueAt(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
void setValue(std::byte* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

void run(const ScalarOp* op, LoopRun* state) { op->function(op, state); }

template <class T>
void copyElement(const ScalarOp* op, LoopRun* run) {
  setValue(op->out, valueAt<T>(op->a));
  next(op, run);
}
void copyBytes(const ScalarOp* op, LoopRun* run) {
  std::memmove(op->out, op->a, static_cast<std::size_t>(op->immediate));
  next(op, run);
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
void locateFirst(const ScalarOp* op, LoopRun* run) {
  locateIndex<I, kOutside>(op, run, op->b);
}
template <class I, Outside kOutside>
void locateNext(const ScalarOp* op, LoopRun* run) {
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
void loadOne(const ScalarOp* op, LoopRun* run) {
  setValue(op->out, valueAt<T>(valueAt<const std::byte*>(op->a) + op->immediate));
  next(op, run);
}
void loadBytes(const ScalarOp* op, LoopRun* run) {
  std::memmove(op->out, valueAt<const std::byte*>(op->a), static_cast<std::size_t>(op->immediate));
  next(op, run);
}
template <class T>
void storeOne(const ScalarOp* op, LoopRun* run) {
  if (auto* to = valueAt<std::byte*>(op->out)) setValue(to + op->immediate, valueAt<T>(op->a));
  next(op, run);
}
void storeBytes(const ScalarOp* op, LoopRun* run) {
  if (auto* to = valueAt<std::byte*>(op->out))
    std::memmove(to, op->a, static_cast<std::size_t>(op->immediate));
  next(op, run);
}

template <class I, class T>
void loadIndexed(const ScalarOp* op, LoopRun* run) {
  const std::int64_t index = std::clamp<std::int64_t>(valueAt<I>(op->a), 0, word(op->c, 0));
  setValue(op->out, valueAt<T>(op->b + index * word(op->c, 1)));
  next(op, run);
}
template <class I>
Function loadIndexedBy(std::size_t bytes) {
  return withBytes(bytes, []<class T>(T) -> Function { return loadIndexed<I, T>; });
}

}  // namespace

void end(const ScalarOp*, LoopRun*) {}

void repeat(const ScalarOp* op, LoopRun* state) {
  for (std::int64_t i = 0; i < op->immediate; ++i) {
    if (state->isCancelled()) return;
    run(op + 1, state);
  }
  run(op + word(op->c, 0), state);
}

void repeatWhile(const ScalarOp* op, LoopRun* state) {
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

void branch(const ScalarOp* op, LoopRun* state) {
  run(*op->a != std::byte{0} ? op + 1 : op + word(op->c, 0), state);
  if (state->isCancelled()) return;
  run(op + word(op->c, 1), state);
}

void kernel(const ScalarOp* op, LoopRun* run) {
  const auto* pointers = reinterpret_cast<std::byte* const*>(op->a);
  reinterpret_cast<const Kernel*>(op->b)->run(
      run->context, std::span(pointers, static_cast<std::size_t>(op->immediate)));
  next(op, run);
}

void loopKernel(const ScalarOp* op, LoopRun* run) {
  reinterpret_cast<const LoopKernel*>(op->b)->run(*run);
  if (run->isCancelled()) return;
  next(op, run);
}

void mapLoop(const ScalarOp* op, LoopRun* run) {
  const auto loop = reinterpret_cast<simd::MapFn>(static_cast<std::uintptr_t>(word(op->c, 0)));
  loop(op->a, op->b, nullptr, op->out, 1, word(op->c, 1));
  next(op, run);
}
void halfToFloat(const ScalarOp* op, LoopRun* run) {
  simd::halfToFloat(reinterpret_cast<const std::uint16_t*>(op->a),
                    reinterpret_cast<float*>(op->out), 1);
  next(op, run);
}
void floatToHalf(const ScalarOp* op, LoopRun* run) {
  simd::floatToHalf(reinterpret_cast<const float*>(op->a),
                    reinterpret_cast<std::uint16_t*>(op->out), 1);
  next(op, run);
}
void roundToHalf(const ScalarOp* op, LoopRun* run) {
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
Function loadElement(ElementType index, std::size_t bytes) {
  if (!isWord(bytes)) return nullptr;
  if (index == ElementType::kInt32) return loadIndexedBy<std::int32_t>(bytes);
  if (index == ElementType::kUInt32) return loadIndexedBy<std::uint32_t>(bytes);
  return nullptr;
}

}  // namespace ipujax::engine::loop::scalar
