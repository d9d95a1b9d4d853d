// The vertices of popops::selectScalarFromRows and updateScalarInRows. Graph::addVertex loads them
// when a program first names one. Source of fields, results and cycles: PopLibs,
// lib/popops/codelets.
#include <poplar/codelets/vertex_loops.h>

#include <popops/EncodingConstants.hpp>

namespace popops {

using namespace ipujax_vertices;

namespace rows {

/// The columns [start, end) of a row of `width`, which begin at params[begin].
struct Part {
  unsigned begin, start, end, width;
};

/// The element in column `index`: 0 where the part does not have it, NaN where no row has it.
template <class T, class Params>
T selected(const Params& params, const Part& part, unsigned index) {
  if (index != MASKED_LABEL_CODE && index >= part.width) return static_cast<T>(__builtin_nanf(""));
  if (index < part.start || index >= part.end) return static_cast<T>(0.0f);
  return params[part.begin + index - part.start];
}

/// Decrements column `index` of the part; sets all of it to NaN if no row has the column.
template <class T, class Params>
void decrement(const Params& params, const Part& part, unsigned index) {
  if (index == MASKED_LABEL_CODE) return;
  if (index >= part.width) {
    for (unsigned i = 0; i < part.end - part.start; ++i)
      params[part.begin + i] = static_cast<T>(__builtin_nanf(""));
  } else if (index >= part.start && index < part.end) {
    auto& element = params[part.begin + index - part.start];
    element = static_cast<T>(element - static_cast<T>(1.0f));
  }
}

/// Calls of(row, part) for the rows that an interval spans: the first begins at column `start`, the
/// last ends before `end`.
template <class Starts, class F>
void ofInterval(const Starts& starts, unsigned first, unsigned num_rows, unsigned start,
                unsigned end, unsigned width, const F& of) {
  for (unsigned row = 0; row < num_rows; ++row)
    of(row,
       Part{starts[first + row], row == 0 ? start : 0, row + 1 == num_rows ? end : width, width});
}

/// Calls of(interval, row, part) for all intervals of a vertex.
template <class V, class F>
bool ofIntervals(const V& v, const F& of) {
  unsigned first = 0;
  for (unsigned i = 0; i < v.params.size(); first += v.rowCounts[i], ++i) {
    ofInterval(v.rowsStart, first, v.rowCounts[i], v.firstStartCol[i], v.lastEndCol[i],
               v.paramsWidth, [&](unsigned row, const Part& part) { of(i, row, part); });
  }
  return true;
}

/// Calls of(region, row, part) for blocks of columns, which lie in memory one after another, row by
/// row.
template <class V, class F>
bool ofRegions(const V& v, const F& of) {
  unsigned block = 0;
  for (unsigned region = 0; region < v.params.size(); ++region) {
    const unsigned height = v.regionHeights[region];
    unsigned begin = 0, column = v.firstColumns[region];
    for (unsigned i = 0; i < v.regionWidths[region]; ++i, ++block) {
      const unsigned width = v.columnWidths[block];
      for (unsigned row = 0; row < height; ++row, begin += width)
        of(region, row, Part{begin, column, column + width, v.paramsWidth});
      column += width;
    }
  }
  return true;
}

/// Cycles to look up elements; storing a half also reads its neighbour.
template <class T>
std::uint64_t lookUpCycles(std::uint64_t elements) {
  return 27 + (sizeof(T) == 2 ? 12 : 8) * elements;
}

/// The sum of the first n numbers.
template <class Numbers>
std::uint64_t total(const Numbers& numbers, unsigned n) {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += numbers[i];
  return sum;
}

}  // namespace rows

/// The fields of one interval of rows.
template <template <class> class Edge, class T>
struct Interval : poplar::Vertex {
  Edge<Pointer<T>> params;
  poplar::Input<Pointer<unsigned>> indices;
  poplar::Vector<unsigned> rowsStart;
  unsigned paramsWidth;
  unsigned firstStartCol;
  unsigned lastEndCol;
  unsigned rowCount;

  std::uint64_t getCycleEstimate() const { return rows::lookUpCycles<T>(rowCount); }

 protected:
  template <class F>
  bool ofRowParts(const F& of) const {
    rows::ofInterval(rowsStart, 0, rowCount, firstStartCol, lastEndCol, paramsWidth, of);
    return true;
  }
};

template <class T>
class SelectFromInterval : public Interval<poplar::Input, T> {
 public:
  poplar::Output<Pointer<T>> output;

  bool compute() {
    return this->ofRowParts([this](unsigned row, const rows::Part& part) {
      output[row] = rows::selected<T>(this->params, part, this->indices[row]);
    });
  }
};

template <class T>
class UpdateIntervalDEC : public Interval<poplar::InOut, T> {
 public:
  bool compute() {
    return this->ofRowParts([this](unsigned row, const rows::Part& part) {
      rows::decrement<T>(this->params, part, this->indices[row]);
    });
  }
};

/// The fields of several intervals.
template <template <class> class Edge, class T>
struct Intervals : poplar::Vertex {
  poplar::Vector<Edge<Pointer<T>>> params;
  Rows<poplar::Input<Pointer<unsigned>>> indices;
  Rows<unsigned> rowsStart;
  Rows<unsigned> firstStartCol;
  Rows<unsigned> lastEndCol;
  Rows<unsigned> rowCounts;
  unsigned paramsWidth;

  std::uint64_t getCycleEstimate() const {
    const unsigned n = params.size();
    return rows::lookUpCycles<T>(n * rows::total(rowCounts, n));
  }
};

template <class T>
class SelectFromIntervals : public Intervals<poplar::Input, T> {
 public:
  Rows<poplar::Output<Pointer<T>>> output;

  bool compute() {
    return rows::ofIntervals(*this, [this](unsigned i, unsigned row, const rows::Part& part) {
      output[i][row] = rows::selected<T>(this->params[i], part, this->indices[i][row]);
    });
  }
};

template <class T>
class UpdateIntervalsDEC : public Intervals<poplar::InOut, T> {
 public:
  bool compute() {
    return rows::ofIntervals(*this, [this](unsigned i, unsigned row, const rows::Part& part) {
      rows::decrement<T>(this->params[i], part, this->indices[i][row]);
    });
  }
};

/// The fields of regions of columns.
template <template <class> class Edge, class T>
struct Columns : poplar::Vertex {
  poplar::Vector<Edge<Pointer<T>>> params;
  Rows<poplar::Input<Pointer<unsigned>>> indices;
  Rows<unsigned> columnWidths;
  Rows<unsigned> regionHeights;
  Rows<unsigned> regionWidths;
  Rows<unsigned> firstColumns;
  unsigned paramsWidth;

  std::uint64_t getCycleEstimate() const {
    const unsigned n = params.size();
    return rows::lookUpCycles<T>(n * rows::total(regionWidths, n) * rows::total(regionHeights, n));
  }
};

template <class T>
class SelectFromRowsInColumns : public Columns<poplar::Input, T> {
 public:
  Rows<poplar::Output<Pointer<T>>> output;

  bool compute() {
    for (unsigned i = 0; i < this->params.size(); ++i) {
      for (unsigned row = 0; row < this->regionHeights[i]; ++row)
        output[i][row] = static_cast<T>(0.0f);
    }
    return rows::ofRegions(*this, [this](unsigned i, unsigned row, const rows::Part& part) {
      const T found = rows::selected<T>(this->params[i], part, this->indices[i][row]);
      output[i][row] = static_cast<T>(output[i][row] + found);
    });
  }
};

template <class T>
class UpdateColumnsDEC : public Columns<poplar::InOut, T> {
 public:
  bool compute() {
    return rows::ofRegions(*this, [this](unsigned i, unsigned row, const rows::Part& part) {
      rows::decrement<T>(this->params[i], part, this->indices[i][row]);
    });
  }
};

}  // namespace popops
