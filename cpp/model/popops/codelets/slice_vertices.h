// The vertices of popops' slices and their updates. Graph::addVertex loads them when a program
// first names one. Source of fields, results and cycles: PopLibs, lib/popops.
#include <popops/codelets/reducers.h>
#include <poplar/codelets/vertex_loops.h>

#include <popops/OperationDef.hpp>

namespace popops {

using namespace ipujax_vertices;

namespace slices {

template <class T>
constexpr Rate copyRate() {
  return sizeof(T) == 1 ? Rate{3, 4} : Rate{2, 2};
}

/// Calls copy(sub, base) for a worker's elements of the slices at the offsets that the vertex has;
/// skips other offsets.
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

/// Sets `first` to the row at `offset`; returns false if that is beyond the last row. If the
/// highest bit of the number of rows is set, as in PopLibs, row 0 is used instead.
inline bool firstRow(unsigned offset, unsigned marked, unsigned& size, unsigned& first) {
  size = marked & 0x7fffffffu;
  first = offset < size ? offset : 0;
  return offset < size || marked != size;
}

/// Calls copy(sub, base) for a worker's elements of the rows from an offset on, wrapping around.
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

/// Calls copy(sub, base, e) for all elements e of these rows in all regions.
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

/// Cycles if the vertex has the rows of all offsets.
template <class T>
std::uint64_t offsetCycles(unsigned offsets, unsigned region) {
  const unsigned share = (offsets + kWorkers - 1) / kWorkers;
  return whole(ipujax::engine::expr::kLaunchCycles +
               kWorkers * (13 + share * (19 + copyRate<T>().of(region))));
}

/// Cycles to copy `rows` slices that workers share element by element.
template <class T>
std::uint64_t rowCycles(unsigned region, unsigned rows) {
  const unsigned share = (region + kWorkers - 1) / kWorkers;
  const unsigned copies = share / (sizeof(T) == 1 ? 4 : sizeof(T) == 2 ? 4 : 2);
  const unsigned worker =
      sizeof(T) == 1 ? 72 + (70 + 2 * copies) * rows : 35 + (24 + 2 * copies) * rows;
  return whole(ipujax::engine::expr::kLaunchCycles + 25 + kWorkers * worker);
}

/// Cycles of one worker, region by region.
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

/// A slice reads baseT and writes subT; an update reads subT and changes rows of baseT.
template <bool kUpdates, class Elements>
using BaseOf = std::conditional_t<kUpdates, poplar::InOut<Elements>, poplar::Input<Elements>>;
template <bool kUpdates, class Elements>
using SubOf = std::conditional_t<kUpdates, poplar::Input<Elements>, poplar::Output<Elements>>;

/// Copies between subT[i] and baseT[offsets[i]], rows of regionSize elements.
template <bool kUpdates, class T>
struct RowsAtOffsets : poplar::MultiVertex {
  poplar::Input<poplar::Vector<unsigned>> offsets;
  BaseOf<kUpdates, Pointer<T>> baseT;
  SubOf<kUpdates, Pointer<T>> subT;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  bool splitSingleRegion = false;
  unsigned maxElementsPerWorker = 0;

  bool compute(unsigned worker) {
    return slices::ofOffsets(*this, worker, [&](unsigned sub, unsigned base) {
      if constexpr (kUpdates)
        baseT[base] = subT[sub];
      else
        subT[sub] = baseT[base];
    });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::offsetCycles<T>(offsets.size(), regionSize);
  }
};
template <class T>
class MultiSlice : public RowsAtOffsets<false, T> {};
template <class T>
class MultiUpdate : public RowsAtOffsets<true, T> {};

/// The fields of updates baseT[offsets[i]] = op(baseT[offsets[i]], subT[i]).
template <class T>
struct UpdatedRows : poplar::MultiVertex {
  poplar::Input<poplar::Vector<unsigned>> offsets;
  poplar::Input<Pointer<T>> subT;
  poplar::InOut<Pointer<T>> baseT;
  unsigned short regionSize;
  bool indicesAreSorted = false;
  unsigned baseOffset = 0;
  unsigned numBaseElements;
  unsigned maxElementsPerWorker = 0;

  /// Reads what it changes, so each row counts as two rows of a copy.
  std::uint64_t getCycleEstimate() const {
    return slices::offsetCycles<T>(offsets.size(), 2 * regionSize);
  }
};

template <class T, bool kWritesSubwords, Operation op>
class MultiUpdateOp : public UpdatedRows<T> {
 public:
  bool compute(unsigned worker) {
    auto& base = this->baseT;
    return slices::ofOffsets(*this, worker, [&](unsigned from, unsigned to) {
      base[to] = reduced<op, T>(base[to], this->subT[from]);
    });
  }
};

/// The same with scale * subT[i].
template <class T, class ScaleType, bool kWritesSubwords, Operation op>
class ScaledMultiUpdateOp : public UpdatedRows<T> {
 public:
  using Computed = std::conditional_t<std::is_same_v<ScaleType, half>, float, ScaleType>;
  poplar::Input<ScaleType> scale;

  bool compute(unsigned worker) {
    auto& base = this->baseT;
    const Computed by = static_cast<Computed>(*scale);
    return slices::ofOffsets(*this, worker, [&](unsigned from, unsigned to) {
      const T other = static_cast<T>(by * static_cast<Computed>(this->subT[from]));
      base[to] = reduced<op, T>(base[to], other);
    });
  }
};

/// Copies between subT and baseT[offset, ...), wrapping around.
template <bool kUpdates, class T>
struct RowsFrom1D : poplar::MultiVertex {
  poplar::Input<unsigned> offset;
  BaseOf<kUpdates, Pointer<T>> baseT;
  SubOf<kUpdates, Pointer<T>> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned regionSize;

  bool compute(unsigned worker) {
    return slices::ofRowsFrom(*this, worker, [&](unsigned sub, unsigned base) {
      if constexpr (kUpdates)
        baseT[base] = subT[sub];
      else
        subT[sub] = baseT[base];
    });
  }
  std::uint64_t getCycleEstimate() const {
    return slices::rowCycles<T>(regionSize, numSubElements);
  }
};
template <class T>
class DynamicSlice1D : public RowsFrom1D<false, T> {};
template <class T>
class DynamicSlice1d : public RowsFrom1D<false, T> {};
template <class T>
class DynamicSliceSupervisor : public RowsFrom1D<false, T> {};
template <class T>
class DynamicUpdateSlice1D : public RowsFrom1D<true, T> {};
template <class T>
class DynamicUpdateSlice1d : public RowsFrom1D<true, T> {};
template <class T>
class DynamicUpdateSliceSupervisor : public RowsFrom1D<true, T> {};

/// The same in each of numRegions groups of rows.
template <bool kUpdates, class T>
struct RowsFrom2D : poplar::Vertex {
  poplar::Input<unsigned> offset;
  poplar::Vector<BaseOf<kUpdates, Span<T>>> baseT;
  Rows<SubOf<kUpdates, Pointer<T>>> subT;
  unsigned numBaseElements;
  unsigned numSubElements;
  unsigned short numRegions;

  bool compute() {
    return slices::ofRegionsFrom(*this, [&](unsigned sub, unsigned base, unsigned e) {
      if constexpr (kUpdates)
        baseT[base][e] = subT[sub][e];
      else
        subT[sub][e] = baseT[base][e];
    });
  }
  std::uint64_t getCycleEstimate() const { return slices::regionCycles<T>(*this); }
};
template <class T>
class DynamicSlice2D : public RowsFrom2D<false, T> {};
template <class T>
class DynamicSlice2d : public RowsFrom2D<false, T> {};
template <class T>
class DynamicUpdateSlice2D : public RowsFrom2D<true, T> {};
template <class T>
class DynamicUpdateSlice2d : public RowsFrom2D<true, T> {};

}  // namespace popops
