#pragma once
#include <cstring>
#include <random>
#include <vector>

#include "engine/kernels/Kernel.hpp"

/// Runs one kernel on hand-made arrays, and makes random strided views.
namespace step_runner {

using namespace ipujax::engine;
using Shape = std::vector<std::int64_t>;

inline std::int64_t product(const Shape& shape) {
  std::int64_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

/// A typed array and a view of it with dimensions in a random order, gaps and reversals.
template <class T>
struct Array {
  OperandDesc desc;
  std::vector<T> memory;

  Array(ElementType type, Access access, Shape shape, std::mt19937* strange = nullptr) {
    desc.type = type;
    desc.access = access;
    desc.shape = shape;
    desc.strides.assign(shape.size(), 0);
    std::vector<std::size_t> order(shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (strange) std::shuffle(order.begin(), order.end(), *strange);
    std::int64_t next = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t d = order[i];
      if (strange && (*strange)() % 4 == 0) next *= 2;
      desc.strides[d] = next;
      next *= std::max<std::int64_t>(1, shape[d]);
      if (strange && shape[d] > 0 && (*strange)() % 5 == 0) {
        desc.offset += (shape[d] - 1) * desc.strides[d];
        desc.strides[d] = -desc.strides[d];
      }
    }
    memory.resize(static_cast<std::size_t>(next));
  }

  std::byte* pointer() { return reinterpret_cast<std::byte*>(memory.data() + desc.offset); }
  T& at(const Shape& index) {
    std::int64_t o = desc.offset;
    for (std::size_t i = 0; i < index.size(); ++i) o += index[i] * desc.strides[i];
    return memory.at(static_cast<std::size_t>(o));
  }
};

/// Calls fn(index) for every index of shape, row-major.
template <class F>
void each(const Shape& shape, F fn) {
  Shape index(shape.size(), 0);
  for (std::int64_t i = 0; i < product(shape); ++i) {
    fn(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

inline void run(const StepDesc& step, std::vector<std::byte*> pointers) {
  const auto kernel = KernelRegistry::instance().make(step);
  RunContext context{ThreadPool::shared()};
  kernel->run(context, pointers);
}

}  // namespace step_runner
