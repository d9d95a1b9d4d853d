#pragma once
// Shared by the codelets of PopLibs' vertices: the layouts of their fields, their loops, and their
// cycles, which PopLibs' estimators give without the launch of a MultiVertex.
#include <cstdint>
#include <engine/ops/ElementwiseCycles.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <type_traits>

namespace ipujax_vertices {

using ipujax::engine::ElementType;
using ipujax::engine::expr::Op;
using ipujax::engine::expr::Rate;

template <class T>
using Pointer = poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>;
template <class T>
using Span = poplar::Vector<T, poplar::VectorLayout::SPAN, 8>;
template <class Edge>
using Rows = poplar::Vector<Edge, poplar::VectorLayout::ONE_PTR>;

template <class T>
using InputRows = Rows<poplar::Input<Pointer<T>>>;
template <class T>
using OutputRows = poplar::Vector<poplar::Output<Span<T>>>;
template <class T>
using InOutRows = poplar::Vector<poplar::InOut<Span<T>>>;

constexpr unsigned kWorkers = kIpujaxWorkers;

/// Calls element(i) for a MultiVertex worker's share of n elements.
template <class F>
void share(unsigned worker, unsigned n, const F& element) {
  const unsigned most = (n + kWorkers - 1) / kWorkers;
  const unsigned begin = worker * most;
  const unsigned end = n < begin + most ? n : begin + most;
  for (unsigned i = begin; i < end; ++i) element(i);
}
template <class F>
bool ofWorker(unsigned worker, unsigned n, const F& element) {
  share(worker, n, element);
  return true;
}

template <class F>
bool ofAll(unsigned n, const F& element) {
  for (unsigned i = 0; i < n; ++i) element(i);
  return true;
}

/// Calls element(i, j) for the elements j of all rows i.
template <class List, class F>
bool ofRows(const List& rows, const F& element) {
  for (unsigned i = 0; i < rows.size(); ++i) {
    for (unsigned j = 0; j < rows[i].size(); ++j) element(i, j);
  }
  return true;
}

template <class T>
constexpr ElementType elementOf() {
  if (std::is_same<T, bool>::value) return ElementType::kBool;
  if (std::is_same<T, half>::value) return ElementType::kHalf;
  if (std::is_same<T, float>::value) return ElementType::kFloat;
  const int bytes = sizeof(T) == 1 ? 1 : sizeof(T) == 2 ? 3 : sizeof(T) == 4 ? 5 : 7;
  return static_cast<ElementType>(bytes + (std::is_unsigned<T>::value ? 1 : 0));
}

inline std::uint64_t whole(double cycles) { return static_cast<std::uint64_t>(cycles); }

/// Cycles of loops over rows: `constant`, and for each row `of_row` plus its loop.
template <class List>
std::uint64_t rowCycles(const List& rows, double constant, double of_row, Rate rate) {
  for (unsigned i = 0; i < rows.size(); ++i) constant += of_row + rate.of(rows[i].size());
  return whole(constant);
}

}  // namespace ipujax_vertices
