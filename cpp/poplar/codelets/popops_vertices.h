// The vertices of popops that programs name in Graph::addVertex, which loads them for the first.
// Source of fields and results: PopLibs, lib/popops/codelets.
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

namespace popops {

template <class T>
class Fill : public poplar::Vertex {
 public:
  T in;
  poplar::Output<poplar::Vector<T>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in;
    return true;
  }
};

template <class T>
class Fill2d : public poplar::Vertex {
 public:
  T in;
  poplar::Vector<poplar::Output<poplar::Vector<T>>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) {
      for (unsigned j = 0; j < out[i].size(); ++j) out[i][j] = in;
    }
    return true;
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
