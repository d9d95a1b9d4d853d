// The vertices of popops that programs name in Graph::addVertex, which loads them for the first.
// Source of fields, results and cycles: PopLibs, lib/popops/codelets.
#include <poplar/codelets/vertex_loops.h>

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

template <class T>
class Fill : public poplar::Vertex {
 public:
  T in;
  poplar::Output<Span<T>> out;

  bool compute() {
    return ofAll(out.size(), [&](unsigned i) { out[i] = in; });
  }
  std::uint64_t getCycleEstimate() const { return fillCycles<T>(out); }
};

template <class T>
class Fill2d : public poplar::Vertex {
 public:
  T in;
  OutputRows<T> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = in; });
  }
  std::uint64_t getCycleEstimate() const { return fillRowCycles<T>(out); }
};

/// As the first SDKs had it.
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

/// offsets[i], offsets[i] + 1 ... in row i.
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

/// 1 where an element is a NaN or, with kOrInf, an infinity; else 0.
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

/// The same, which leaves outSetIfFound as it is where there is none. Sizes are of 8 bytes for each
/// worker, of workers that have one of these more, and of elements behind them.
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

/// Sorts n keys, the smallest first, in place; `swap` exchanges two of them.
template <class Keys, class Swap>
void heapSort(const Keys& keys, unsigned n, const Swap& swap) {
  const auto sink = [&](unsigned top, unsigned end) {
    for (unsigned child = 2 * top + 1; child < end; child = 2 * top + 1) {
      if (child + 1 < end && keys[child] < keys[child + 1]) ++child;
      if (!(keys[top] < keys[child])) return;
      swap(top, child);
      top = child;
    }
  };
  for (unsigned top = n / 2; top-- > 0;) sink(top, n);
  for (unsigned end = n; end-- > 1;) {
    swap(0, end);
    sink(0, end);
  }
}

template <class KeyType>
class HeapSortVertex : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<KeyType>> out;

  bool compute() {
    heapSort(out, out.size(), [this](unsigned a, unsigned b) {
      const KeyType held = out[a];
      out[a] = out[b];
      out[b] = held;
    });
    return true;
  }
};

/// Values move with their keys; those of equal keys are in no order.
template <class KeyType, class ValueType>
class HeapSortVertexKV : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<KeyType>> key;
  poplar::InOut<poplar::Vector<ValueType>> value;

  bool compute() {
    heapSort(key, key.size(), [this](unsigned a, unsigned b) {
      const KeyType held_key = key[a];
      key[a] = key[b];
      key[b] = held_key;
      const ValueType held_value = value[a];
      value[a] = value[b];
      value[b] = held_value;
    });
    return true;
  }
};

}  // namespace popops
