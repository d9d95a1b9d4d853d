#pragma once
// Cycles of popops' elementwise vertices by operation and type, for their codelets.
#include <popops/codelets/elementwise_results.h>
#include <poplar/codelets/vertex_loops.h>

#include <popops/ExprOp.hpp>

namespace popops {

using namespace ipujax_vertices;
using elementwise::apply;
using elementwise::opOf;
namespace cycles = ipujax::engine::expr;

template <auto op, class T>
using ResultOf = typename elementwise::Result<op, T>::Type;

template <auto op, class T>
constexpr Rate rateOf() {
  return cycles::rateOf(opOf<op>, elementOf<T>());
}
template <auto op, class T>
std::uint64_t unaryCycles(unsigned n) {
  return whole(cycles::unaryCycles(opOf<op>, rateOf<op, T>(), n, kWorkers));
}
template <auto op, class T>
std::uint64_t binaryCycles(unsigned n) {
  return whole(cycles::binaryCycles(elementOf<T>(), rateOf<op, T>(), n, kWorkers));
}
template <auto op, class T>
std::uint64_t scalarCycles(unsigned n) {
  return whole(cycles::scalarCycles(opOf<op>, elementOf<T>(), rateOf<op, T>(), n, kWorkers));
}
template <auto op, class T>
constexpr Rate scalarRate() {
  return cycles::scalarRate(opOf<op>, elementOf<T>(), rateOf<op, T>());
}

}  // namespace popops
