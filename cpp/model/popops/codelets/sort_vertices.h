// popops' sorting vertices. Graph::addVertex loads them when a program first names one. Source of
// fields, results and cycles: PopLibs, lib/popops/codelets.
#include <poplar/codelets/vertex_loops.h>

#include <cmath>

namespace popops {

using namespace ipujax_vertices;

template <class List>
void exchange(List& list, unsigned a, unsigned b) {
  const auto held = list[a];
  list[a] = list[b];
  list[b] = held;
}

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

/// Cycles to sort n keys if every comparison exchanges; each step of the heap takes `of_step`.
inline std::uint64_t heapSortCycles(unsigned n, unsigned of_step) {
  const double levels = n < 2 ? 0 : std::floor(std::log2(static_cast<double>(n)));
  return whole(of_step * (19 * n * levels + 6.0 * n + 2));
}

template <class KeyType>
class HeapSortVertex : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<KeyType>> out;

  bool compute() {
    heapSort(out, out.size(), [this](unsigned a, unsigned b) { exchange(out, a, b); });
    return true;
  }
  std::uint64_t getCycleEstimate() const { return heapSortCycles(out.size(), 8); }
};

/// Values move with their keys; the order of equal keys' values is undefined.
template <class KeyType, class ValueType>
class HeapSortVertexKV : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<KeyType>> key;
  poplar::InOut<poplar::Vector<ValueType>> value;

  bool compute() {
    heapSort(key, key.size(), [this](unsigned a, unsigned b) {
      exchange(key, a, b);
      exchange(value, a, b);
    });
    return true;
  }
  std::uint64_t getCycleEstimate() const { return heapSortCycles(key.size(), 16); }
};

/// The work of one worker of a bitonic sort, element by element. compare(i, j, order) exchanges
/// elements i and j if `order` equals whether i is the greater. The list holds: the number of steps
/// minus one; the first element; the direction and, in 31 bits, how many of its elements are done;
/// the number of elements in the first run; and for each step the distance between compared
/// elements, and their number. A run is as long as the distance and then skips as many elements;
/// the direction changes after every `changes` elements.
template <class List, class F>
void compareAndSwap(const List& list, unsigned changes, const F& compare) {
  unsigned element = list[1];
  const unsigned packed = list[2] | static_cast<unsigned>(list[3]) << 16;
  bool order = (packed & 1) != 0;
  unsigned left = changes - (packed >> 1);
  for (unsigned step = 0; step <= list[0]; ++step) {
    const unsigned distance = list[5 + 2 * step];
    unsigned elements = list[6 + 2 * step];
    const auto within = [&](unsigned n) { return n < elements ? n : elements; };
    unsigned run = within(step == 0 ? list[4] : distance);
    while (run != 0) {
      for (unsigned i = 0; i < run; ++i, ++element) compare(element, element + distance, order);
      element += distance;
      elements -= run;
      left -= run;
      run = within(distance);
      if (left == 0) {
        order = !order;
        left = changes;
      }
    }
  }
}

/// Cycles if every comparison exchanges and each step of a list has its share of the keys in one
/// run. The lists' contents are not known before they are read.
template <class V>
std::uint64_t compareAndSwapCycles(const V& v) {
  const unsigned workers = v.worklists.size();
  std::uint64_t most = 0;
  for (unsigned i = 0; i < workers; ++i) {
    const std::uint64_t words = v.worklists[i].size(), steps = words < 7 ? 0 : (words - 5) / 2;
    const std::uint64_t pairs = (v.keys.size() / 2 + workers - 1) / workers;
    const std::uint64_t of_step = 4 + 8 + (pairs < 1 ? 0 : pairs - 1) * 11 + 11;
    const std::uint64_t cycles = 23 + steps * of_step;
    most = most < cycles ? cycles : most;
  }
  return whole(ipujax::engine::expr::kLaunchCycles + 19) + kWorkers * most;
}

template <class KeyType>
class CompareAndSwapAtDistance : public poplar::MultiVertex {
 public:
  poplar::InOut<poplar::Vector<KeyType, poplar::VectorLayout::ONE_PTR>> keys;
  poplar::Vector<poplar::Input<poplar::Vector<unsigned short, poplar::VectorLayout::ONE_PTR, 4>>>
      worklists;
  unsigned distanceToChangeOrder;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < worklists.size(); i += kWorkers) {
      compareAndSwap(worklists[i], distanceToChangeOrder,
                     [this](unsigned a, unsigned b, bool order) {
                       if (order == (keys[a] > keys[b])) exchange(keys, a, b);
                     });
    }
    return true;
  }
  std::uint64_t getCycleEstimate() const { return compareAndSwapCycles(*this); }
};

template <class KeyType, class ValueType>
class CompareAndSwapAtDistanceKeyVal : public poplar::MultiVertex {
 public:
  poplar::InOut<poplar::Vector<KeyType, poplar::VectorLayout::ONE_PTR>> keys;
  poplar::InOut<poplar::Vector<ValueType, poplar::VectorLayout::ONE_PTR>> values;
  poplar::Vector<poplar::Input<poplar::Vector<unsigned short, poplar::VectorLayout::ONE_PTR, 4>>>
      worklists;
  unsigned distanceToChangeOrder;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < worklists.size(); i += kWorkers) {
      compareAndSwap(worklists[i], distanceToChangeOrder,
                     [this](unsigned a, unsigned b, bool order) {
                       if (order != (keys[a] > keys[b])) return;
                       exchange(keys, a, b);
                       exchange(values, a, b);
                     });
    }
    return true;
  }
  std::uint64_t getCycleEstimate() const { return compareAndSwapCycles(*this); }
};

}  // namespace popops
