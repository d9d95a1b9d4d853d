// The vertices of popops' slices, and of updates of them, that programs name in Graph::addVertex,
// which loads them for the first. Source of fields, results and cycles: PopLibs, lib/popops.
#include <poplar/codelets/reducers.h>
#include <poplar/codelets/vertex_loops.h>

#include <popops/OperationDef.hpp>

namespace popops {

using namespace ipujax_vertices;

namespace slices {

template <class T>
constexpr Rate copyRate() {
  return sizeof(T) == 1 ? Rate{3, 4} : Rate{2, 2};
}

/// copy(sub, base) for the elements of a worker in the slices at the offsets that the vertex has;
/// others are left out.
template <class V, class F>
bool ofOffsets(const V& v, unsigned worker, const F& copy) {
  for (unsigned o = 0; o < v.offsets.size(); ++o) {
    const unsigned row = v.offsets[o] - v.baseOffset;
    if (row >= v.numBaseElements) continue;
    share(worker, v.regionSize,
          [&](unsigned e) { copy(o * v.regionSize + e, row * v.regionSize + e); });
  }
  return true;
}

/// The first of the rows from `offset` on; false where it is beyond the last. PopLibs marks by the
/// highest bit of the number of rows that it is the first row then.
inline bool firstRow(unsigned offset, unsigned marked, unsigned& size, unsigned& first) {
  size = marked & 0x7fffffffu;
  first = offset < size ? offset : 0;
  return offset < size || marked != size;
}

/// copy(sub, base) for the elements of a worker in the rows from an offset on, round and round.
template <class V, class F>
bool ofRowsFrom(const V& v, unsigned worker, const F& copy) {
  unsigned size = 0, first = 0;
  if (!firstRow(*v.offset, v.numBaseElements, size, first)) return true;
  for (unsigned row = 0; row < v.numSubElements; ++row) {
    const unsigned base = (first + row) % size;
    share(worker, v.regionSize,
          [&](unsigned e) { copy(row * v.regionSize + e, base * v.regionSize + e); });
  }
  return true;
}

/// copy(sub, base, e) for all elements e of these rows in all regions.
template <class V, class F>
bool ofRegionsFrom(const V& v, const F& copy) {
  unsigned size = 0, first = 0;
  if (!firstRow(*v.offset, v.numBaseElements, size, first)) return true;
  for (unsigned region = 0; region < v.numRegions; ++region) {
    for (unsigned row = 0; row < v.numSubElements; ++row) {
      const unsigned sub = region * v.numSubElements + row;
      const unsigned base = region * size + (first + row) % size;
      for (unsigned e = 0; e < v.baseT[base].size(); ++e) copy(sub, base, e);
    }
  }
  return true;
}

/// Where every offset is one of the vertex's.
template <class T>
std::uint64_t offsetCycles(unsigned offsets, unsigned region) {
  const unsigned share = (offsets + kWorkers - 1) / kWorkers;
  return whole(ipujax::engine::expr::kLaunchCycles +
               kWorkers * (13 + share * (19 + copyRate<T>().of(region))));
}

/// A copy of `rows` slices that workers share element by element.
template <class T>
std::uint64_t rowCycles(unsigned region, unsigned rows) {
  const unsigned share = (region + kWorkers - 1) / kWorkers;
  const unsigned copies = share / (sizeof(T) == 1 ? 4 : sizeof(T) == 2 ? 4 : 2);
  const unsigned worker =
      sizeof(T) == 1 ? 72 + (70 + 2 * copies) * rows : 35 + (24 + 2 * copies) * rows;
  return whole(ipujax::engine::expr::kLaunchCycles + 25 + kWorkers * worker);
}

/// Of one worker, region by region.
template <class T, class V>
std::uint64_t regionCycles(const V& v) {
  const unsigned vector = sizeof(T) <= 2 ? 4 : 2, start = sizeof(T) == 2 ? 31 : 29;
  std::uint64_t cycles = 23;
  for (unsigned region = 0; region < v.numRegions; ++region) {
    const unsigned size = v.baseT[region * (v.numBaseElements & 0x7fffffffu)].size();
    const unsigned vectors = (size + vector - 1) / vector;
    cycles += (start + (sizeof(T) == 2 ? 2 : 1) * vectors) * v.numSubElements + 13;
  }
  return cycles;
}

}  // namespace slices

/// subT[i] = baseT[offsets[i]], of rows of regionSize elements.
template <class T>
class MultiSlice : public poplar::MultiVertex {
 public:
  poplar::Input<poplar::Vector<unsigned>> offsets;
  poplar::Input<Pointer<T>> baseT;
  poplar::Output<Pointer<T>> subT;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  bool splitSingleRegion = false;
  unsigned maxElementsPerWorker = 0;

  bool compute(unsigned worker) {
    return slices::ofOffsets(*this, worker,
                             [&](unsigned sub, unsigned base) { subT[sub] = baseT[base]; });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::offsetCycles<T>(offsets.size(), regionSize);
  }
};

/// baseT[offsets[i]] = subT[i].
template <class T>
class MultiUpdate : public poplar::MultiVertex {
 public:
  poplar::Input<poplar::Vector<unsigned>> offsets;
  poplar::InOut<Pointer<T>> baseT;
  poplar::Input<Pointer<T>> subT;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  bool splitSingleRegion = false;
  unsigned maxElementsPerWorker = 0;

  bool compute(unsigned worker) {
    return slices::ofOffsets(*this, worker,
                             [&](unsigned sub, unsigned base) { baseT[base] = subT[sub]; });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::offsetCycles<T>(offsets.size(), regionSize);
  }
};

/// baseT[offsets[i]] = op(baseT[offsets[i]], subT[i]).
template <class T, bool kWritesSubwords, Operation op>
class MultiUpdateOp : public poplar::MultiVertex {
 public:
  poplar::Input<poplar::Vector<unsigned>> offsets;
  poplar::Input<Pointer<T>> subT;
  poplar::InOut<Pointer<T>> baseT;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned maxElementsPerWorker = 0;

  bool compute(unsigned worker) {
    return slices::ofOffsets(*this, worker, [&](unsigned sub, unsigned base) {
      baseT[base] = reduced<op, T>(baseT[base], subT[sub]);
    });
  }
};

/// The same with scale * subT[i].
template <class T, class ScaleType, bool kWritesSubwords, Operation op>
class ScaledMultiUpdateOp : public poplar::MultiVertex {
 public:
  using Computed = std::conditional_t<std::is_same_v<ScaleType, half>, float, ScaleType>;
  poplar::Input<poplar::Vector<unsigned>> offsets;
  poplar::Input<Pointer<T>> subT;
  poplar::InOut<Pointer<T>> baseT;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned maxElementsPerWorker = 0;
  poplar::Input<ScaleType> scale;

  bool compute(unsigned worker) {
    const Computed by = static_cast<Computed>(*scale);
    return slices::ofOffsets(*this, worker, [&](unsigned sub, unsigned base) {
      const T other = static_cast<T>(by * static_cast<Computed>(subT[sub]));
      baseT[base] = reduced<op, T>(baseT[base], other);
    });
  }
};

/// subT = baseT[offset, ...), round and round.
template <class T>
class DynamicSlice1D : public poplar::MultiVertex {
 public:
  poplar::Input<unsigned> offset;
  poplar::Input<Pointer<T>> baseT;
  poplar::Output<Pointer<T>> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned regionSize;

  bool compute(unsigned worker) {
    return slices::ofRowsFrom(*this, worker,
                              [&](unsigned sub, unsigned base) { subT[sub] = baseT[base]; });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::rowCycles<T>(regionSize, numSubElements);
  }
};
template <class T>
class DynamicSlice1d : public DynamicSlice1D<T> {};
template <class T>
class DynamicSliceSupervisor : public DynamicSlice1D<T> {};

/// baseT[offset, ...) = subT.
template <class T>
class DynamicUpdateSlice1D : public poplar::MultiVertex {
 public:
  poplar::Input<unsigned> offset;
  poplar::InOut<Pointer<T>> baseT;
  poplar::Input<Pointer<T>> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned regionSize;

  bool compute(unsigned worker) {
    return slices::ofRowsFrom(*this, worker,
                              [&](unsigned sub, unsigned base) { baseT[base] = subT[sub]; });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::rowCycles<T>(regionSize, numSubElements);
  }
};
template <class T>
class DynamicUpdateSlice1d : public DynamicUpdateSlice1D<T> {};
template <class T>
class DynamicUpdateSliceSupervisor : public DynamicUpdateSlice1D<T> {};

/// The same in each of numRegions groups of rows.
template <class T>
class DynamicSlice2D : public poplar::Vertex {
 public:
  poplar::Input<unsigned> offset;
  poplar::Vector<poplar::Input<Span<T>>> baseT;
  Rows<poplar::Output<Pointer<T>>> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned short numRegions;

  bool compute() {
    return slices::ofRegionsFrom(
        *this, [&](unsigned sub, unsigned base, unsigned e) { subT[sub][e] = baseT[base][e]; });
  }
  std::uint64_t getCycleEstimate() const { return slices::regionCycles<T>(*this); }
};
template <class T>
class DynamicSlice2d : public DynamicSlice2D<T> {};

template <class T>
class DynamicUpdateSlice2D : public poplar::Vertex {
 public:
  poplar::Input<unsigned> offset;
  poplar::Vector<poplar::InOut<Span<T>>> baseT;
  InputRows<T> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned short numRegions;

  bool compute() {
    return slices::ofRegionsFrom(
        *this, [&](unsigned sub, unsigned base, unsigned e) { baseT[base][e] = subT[sub][e]; });
  }
  std::uint64_t getCycleEstimate() const { return slices::regionCycles<T>(*this); }
};
template <class T>
class DynamicUpdateSlice2d : public DynamicUpdateSlice2D<T> {};

}  // namespace popops
