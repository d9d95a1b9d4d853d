// popops' vertices. Graph::addVertex loads them when a program first names one. Source of fields,
// results and cycles: PopLibs, lib/popops/codelets.
#include <poplar/codelets/vertex_loops.h>

#include <poplar/QuarterFloat.hpp>

namespace popops {

using namespace ipujax_vertices;

template <class T, class Out>
std::uint64_t fillCycles(const Out& out) {
  return whole(ipujax::engine::expr::fillCycles(elementOf<T>(), out.size()));
}
template <class T, class List>
std::uint64_t fillRowCycles(const List& rows) {
  std::uint64_t cycles = 0;
  for (unsigned i = 0; i < rows.size(); ++i) cycles += fillCycles<T>(rows[i]);
  return cycles;
}

/// A field's value in a vector's type and, for quarters, its format.
template <class T>
struct Filling {
  using Field = T;
  template <class Row>
  static T of(T value, const Row&) {
    return value;
  }
};
template <>
struct Filling<quarter> {
  using Field = float;
  template <class Row>
  static quarter of(float value, const Row& row) {
    const std::uint8_t packed = *row.getMetadata();
    const int scale = (packed & 0x1f) - (packed & 0x20);
    return poplar::toQuarter(value,
                             {packed & 0x80 ? quarter_metadata::f143 : quarter_metadata::f152,
                              static_cast<signed char>(scale)});
  }
};

template <class T>
class Fill : public poplar::Vertex {
 public:
  typename Filling<T>::Field in;
  poplar::Output<Span<T>> out;

  bool compute() {
    const T value = Filling<T>::of(in, out);
    return ofAll(out.size(), [&](unsigned i) { out[i] = value; });
  }
  std::uint64_t getCycleEstimate() const { return fillCycles<T>(out); }
};

template <class T>
class Fill2d : public poplar::Vertex {
 public:
  typename Filling<T>::Field in;
  OutputRows<T> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) {
      const T value = Filling<T>::of(in, out[i]);
      ofAll(out[i].size(), [&](unsigned j) { out[i][j] = value; });
    }
    return true;
  }
  std::uint64_t getCycleEstimate() const { return fillRowCycles<T>(out); }
};

/// As in the first SDKs.
template <class T>
class Zero : public poplar::Vertex {
 public:
  poplar::Output<Span<T>> out;

  bool compute() {
    return ofAll(out.size(), [&](unsigned i) { out[i] = static_cast<T>(0); });
  }
  std::uint64_t getCycleEstimate() const { return fillCycles<T>(out); }
};

template <class T>
class Zero2d : public poplar::Vertex {
 public:
  OutputRows<T> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = static_cast<T>(0); });
  }
  std::uint64_t getCycleEstimate() const { return fillRowCycles<T>(out); }
};

/// Writes offsets[i], offsets[i] + 1 ... to row i.
template <class T>
class Iota : public poplar::Vertex {
 public:
  OutputRows<T> out;
  poplar::Input<Pointer<T>> offsets;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = offsets[i] + static_cast<T>(j); });
  }
  std::uint64_t getCycleEstimate() const {
    return rowCycles(out, 10, 4, Rate{3, sizeof(T) == 2 ? 4u : 2u});
  }
};

/// Writes 1 if any element is a NaN or, with kOrInf, an infinity; else 0.
template <class T, bool kOrInf>
class HasNaNOrInf2D : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<Span<T>>> in;
  poplar::Output<float> out;

  bool compute() {
    bool found = false;
    ofRows(in, [&](unsigned i, unsigned j) { found |= isFound(static_cast<float>(in[i][j])); });
    *out = found ? 1.0f : 0.0f;
    return true;
  }
  static bool isFound(float x) { return kOrInf ? !(x - x == 0.0f) : x != x; }
};

/// The same, but leaves outSetIfFound unchanged if there is none. The sizes are the 8-byte vectors
/// of each worker, the workers with one more, and the elements after them.
template <class T, bool kOrInf>
class HasNaNOrInf1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> in;
  unsigned short sizeIn8BytesPerWorker;
  unsigned char remWorkerId;
  unsigned char remWorkerExtras;
  poplar::InOut<float> outSetIfFound;

  bool compute(unsigned worker) {
    const unsigned vectors = sizeIn8BytesPerWorker * kWorkers + remWorkerId;
    return ofWorker(worker, vectors * (8 / sizeof(T)) + remWorkerExtras, [&](unsigned i) {
      if (HasNaNOrInf2D<T, kOrInf>::isFound(static_cast<float>(in[i]))) *outSetIfFound = 1.0f;
    });
  }
};

class CircBufIncrIndex : public poplar::Vertex {
 public:
  poplar::InOut<unsigned> index;
  unsigned hSize;

  bool compute() {
    *index = (*index + 1) % hSize;
    return true;
  }
};

class CircOffset : public poplar::Vertex {
 public:
  poplar::Input<unsigned> indexIn;
  poplar::Output<unsigned> indexOut;
  unsigned hSize;
  unsigned offset;

  bool compute() {
    const unsigned moved = *indexIn + offset;
    *indexOut = moved >= hSize ? moved - hSize : moved;
    return true;
  }
};

}  // namespace popops
