// popops' transposes. Graph::addVertex loads them when a program first names one. Source of fields
// and cycles: PopLibs, lib/popops/codelets and getTransposeCycleEstimate.
#include <poplar/codelets/vertex_loops.h>

namespace popops {

using namespace ipujax_vertices;

/// Transposes the matrix of `rows` * `columns` elements that begins at `begin`.
template <class From, class To>
void transposed(const From& from, const To& to, unsigned begin, unsigned rows, unsigned columns) {
  for (unsigned x = 0; x < columns; ++x) {
    for (unsigned y = 0; y < rows; ++y) to[begin + x * rows + y] = from[begin + y * columns + x];
  }
}

/// Cycles of one worker, for matrices of blocks of four rows and four columns.
inline double transposeCycles(unsigned matrices, unsigned rows, unsigned columns) {
  if (rows == 1 && columns == 1) return matrices < 2 ? 17 + 12 : 17 + 20 + (matrices - 2) * 4.0;
  if (columns == 1) return 27 + matrices * (15 + 20 + 4 * (rows - 2.0));
  return 29 + matrices * (18 + rows * (12 + 4 * (columns - 2.0)));
}

/// Rows and columns are counted in fours; SDKs give their fields one of two names.
template <class V>
unsigned rowsOf(const V& v) {
  return v.numSrcRowsD4 + v.numSrcRowsD4Or8;
}
template <class V>
unsigned columnsOf(const V& v) {
  return v.numSrcColumnsD4 + v.numSrcColumnsD4Or8;
}

/// Transposes one of the vertex's matrices, which lie one after another.
template <class V>
void transposeOne(const V& v, unsigned matrix) {
  transposed(v.src, v.dst, matrix * 16 * rowsOf(v) * columnsOf(v), 4 * rowsOf(v), 4 * columnsOf(v));
}

/// numTranspositions matrices for each of the first workerCount workers, one fewer for the others.
template <class T>
class Transpose1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> src;
  poplar::Output<Pointer<T>> dst;
  unsigned short numSrcRowsD4 = 0, numSrcRowsD4Or8 = 0;
  unsigned short numSrcColumnsD4 = 0, numSrcColumnsD4Or8 = 0;
  unsigned short numTranspositions;
  unsigned short workerCount;

  bool compute(unsigned worker) {
    const unsigned matrices = numTranspositions * kWorkers - (kWorkers - workerCount);
    return ofWorker(worker, matrices, [this](unsigned i) { transposeOne(*this, i); });
  }
  std::uint64_t getCycleEstimate() const {
    return whole(ipujax::engine::expr::kLaunchCycles + 7 +
                 kWorkers * transposeCycles(numTranspositions, rowsOf(*this), columnsOf(*this)));
  }
};
template <class T>
class TransposeSupervisor : public Transpose1D<T> {};

template <class T>
class Transpose1DSingleWorker : public poplar::Vertex {
 public:
  poplar::Input<Pointer<T>> src;
  poplar::Output<Pointer<T>> dst;
  unsigned short numSrcRowsD4 = 0, numSrcRowsD4Or8 = 0;
  unsigned short numSrcColumnsD4 = 0, numSrcColumnsD4Or8 = 0;
  unsigned short numTranspositionsM1;

  bool compute() {
    return ofAll(numTranspositionsM1 + 1, [this](unsigned i) { transposeOne(*this, i); });
  }
  std::uint64_t getCycleEstimate() const {
    return whole(transposeCycles(numTranspositionsM1 + 1, rowsOf(*this), columnsOf(*this)));
  }
};
template <class T>
class Transpose : public Transpose1DSingleWorker<T> {};

/// Cycles for matrices of any size; faster where rows and columns are whole vectors.
template <class T>
std::uint64_t transpose2DCycles(unsigned matrices, unsigned rows, unsigned columns) {
  if (sizeof(T) == 4) {
    const bool fast = rows % 2 == 0 && columns % 2 == 0 && columns >= 2 && columns < 8192 &&
                      rows * (columns - 2) / 2 < 512 && rows < 512;
    return fast ? 27 + matrices * (11 + rows / 2 * (6 + 3 * (columns / 2 - 1)))
                : 13 + matrices * (8 + columns * (5 + rows * 4 / 2));
  }
  const bool fours = rows % 4 == 0 && columns % 4 == 0;
  if (fours && columns >= 8 && columns < 16384 && 1 + 3 * (columns / 4) < 512)
    return 39 + matrices * (12 + rows / 4 * (15 + 4 * (columns / 4 - 2)));
  if (fours && columns == 4 && rows == 4) return 34 + 15 * matrices;
  if (fours && columns == 4 && rows > 4 && 1 + 3 * (rows / 4) < 512)
    return 30 + matrices * (17 + 20 + 4 * (rows / 4 - 2));
  return 15 + matrices * (8 + columns * (5 + rows * 5 / 2));
}

/// A matrix of any size in each row.
template <class T>
class Transpose2D : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<Pointer<T>>> src;
  Rows<poplar::Output<Pointer<T>>> dst;
  unsigned short numSrcRows;
  unsigned short numSrcColumns;

  bool compute() {
    return ofAll(src.size(),
                 [&](unsigned i) { transposed(src[i], dst[i], 0, numSrcRows, numSrcColumns); });
  }
  std::uint64_t getCycleEstimate() const {
    return transpose2DCycles<T>(dst.size(), numSrcRows, numSrcColumns);
  }
};
template <class T>
class Transpose2d : public Transpose2D<T> {};

}  // namespace popops
