// popops' vertices for a tensor and a scalar or a vector. Graph::addVertex loads them when a
// program first names one. Source of fields and cycles: PopLibs, lib/popops/codelets; results are
// those of popops::map.
#include <popops/codelets/elementwise_cycles.h>

namespace popops {

template <auto op, class T>
std::uint64_t outerCycles(unsigned rows, unsigned elements, bool unaligned) {
  const double row = (unaligned ? 25 : 7) + scalarRate<op, T>().of(elements);
  return whole(cycles::kLaunchCycles + 11 + kWorkers * (15 + rows * row));
}

inline unsigned blocksOf(unsigned packed) { return (packed >> 3) * kWorkers + (packed & 7); }

/// Cycles for blocks of `size` elements: one column at a time, or four for halves.
template <class T>
double columnCycles(unsigned size, unsigned blocks) {
  if (std::is_same<T, half>::value) return (size + 3) / 4 * (11.0 + blocks);
  return size * (8.0 + 2.0 * blocks);
}
template <class T>
std::uint64_t innerCycles(unsigned size, unsigned packed) {
  const unsigned blocks = (packed >> 3) + ((packed & 7) != 0 ? 1 : 0);
  return whole(cycles::kLaunchCycles + 11 + kWorkers * (20 + columnCycles<T>(size, blocks)));
}
/// Cycles of one worker, for rows of as many blocks as are connected.
template <class T, class Vectors, class Data>
std::uint64_t innerRowCycles(const Vectors& B, const Data& data) {
  double cycles = 9;
  for (unsigned i = 0; i < B.size(); ++i) {
    const unsigned size = B[i].size(), blocks = size == 0 ? 0 : data[i].size() / size;
    cycles += (std::is_same<T, half>::value ? 24 : 18) + columnCycles<T>(size, blocks);
  }
  return whole(cycles);
}

/// The second operand is a scalar.
template <expr::BinaryOpType op, class T>
class BroadcastScalar1D : public poplar::MultiVertex {
 public:
  poplar::Input<Span<T>> data;
  poplar::Output<Pointer<ResultOf<op, T>>> out;
  poplar::Input<T> B;

  bool compute(unsigned worker) {
    return ofWorker(worker, data.size(), [&](unsigned i) { out[i] = apply<op, T>(data[i], *B); });
  }
  std::uint64_t getCycleEstimate() const { return scalarCycles<op, T>(data.size()); }
};
template <expr::BinaryOpType op, class T>
class BroadcastScalar1DSupervisor : public BroadcastScalar1D<op, T> {};

template <expr::BinaryOpType op, class T>
class BroadcastScalar1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<Span<T>> data;
  poplar::Input<T> B;

  bool compute(unsigned worker) {
    return ofWorker(worker, data.size(), [&](unsigned i) { data[i] = apply<op, T>(data[i], *B); });
  }
  std::uint64_t getCycleEstimate() const { return scalarCycles<op, T>(data.size()); }
};
template <expr::BinaryOpType op, class T>
class BroadcastScalar1DInPlaceSupervisor : public BroadcastScalar1DInPlace<op, T> {};

/// Computed in float.
template <expr::BinaryOpType op, class In, class Out>
class BroadcastScalar2Types1D : public poplar::MultiVertex {
 public:
  poplar::Input<Span<In>> data;
  poplar::Output<Pointer<Out>> out;
  poplar::Input<In> B;

  bool compute(unsigned worker) {
    return ofWorker(worker, data.size(), [&](unsigned i) {
      out[i] = static_cast<Out>(apply<op, float>(float(data[i]), float(*B)));
    });
  }
  std::uint64_t getCycleEstimate() const { return scalarCycles<op, float>(data.size()); }
};
template <expr::BinaryOpType op, class In, class Out>
class BroadcastScalar2Types1DSupervisor : public BroadcastScalar2Types1D<op, In, Out> {};

template <expr::BinaryOpType op, class T>
class BroadcastScalar2DData : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<Span<T>>> data;
  Rows<poplar::Output<Pointer<ResultOf<op, T>>>> out;
  poplar::Input<T> B;

  bool compute() {
    return ofRows(data, [&](unsigned i, unsigned j) { out[i][j] = apply<op, T>(data[i][j], *B); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(data, 20, 28, scalarRate<op, T>()); }
};

template <expr::BinaryOpType op, class T>
class BroadcastScalar2DDataInPlace : public poplar::Vertex {
 public:
  InOutRows<T> data;
  poplar::Input<T> B;

  bool compute() {
    return ofRows(data, [&](unsigned i, unsigned j) { data[i][j] = apply<op, T>(data[i][j], *B); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(data, 20, 28, scalarRate<op, T>()); }
};

/// Each row has its own scalar.
template <expr::BinaryOpType op, class T>
class BroadcastScalar2D : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<Span<T>>> data;
  Rows<poplar::Output<Pointer<ResultOf<op, T>>>> out;
  Rows<poplar::Input<T>> B;

  bool compute() {
    return ofRows(data,
                  [&](unsigned i, unsigned j) { out[i][j] = apply<op, T>(data[i][j], *B[i]); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(data, 20, 28, rateOf<op, T>()); }
};

template <expr::BinaryOpType op, class T>
class BroadcastScalar2DInPlace : public poplar::Vertex {
 public:
  InOutRows<T> data;
  Rows<poplar::Input<T>> B;

  bool compute() {
    return ofRows(data,
                  [&](unsigned i, unsigned j) { data[i][j] = apply<op, T>(data[i][j], *B[i]); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(data, 20, 28, rateOf<op, T>()); }
};

/// Rows of `columns` elements; each uses the next element of B, wrapping around. `kUnaligned`: rows
/// need not be aligned to 8 bytes.
template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByColumn1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> data;
  poplar::Output<Pointer<T>> out;
  poplar::Input<Span<T>> B;
  unsigned short columns;
  unsigned short rows;

  bool compute(unsigned worker) {
    return ofWorker(worker, unsigned(rows) * columns,
                    [&](unsigned i) { out[i] = apply<op, T>(data[i], B[i / columns % B.size()]); });
  }
  std::uint64_t getCycleEstimate() const {
    return outerCycles<op, T>(rows, (columns + kWorkers - 1) / kWorkers, kUnaligned);
  }
};

template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByColumn1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<Pointer<T>> data;
  poplar::Input<Span<T>> B;
  unsigned short columns;
  unsigned short rows;

  bool compute(unsigned worker) {
    return ofWorker(worker, unsigned(rows) * columns, [&](unsigned i) {
      data[i] = apply<op, T>(data[i], B[i / columns % B.size()]);
    });
  }
  std::uint64_t getCycleEstimate() const {
    return outerCycles<op, T>(rows, (columns + kWorkers - 1) / kWorkers, kUnaligned);
  }
};

template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByRow1D : public BroadcastVectorOuterByColumn1D<op, T, kUnaligned> {
 public:
  std::uint64_t getCycleEstimate() const {
    return outerCycles<op, T>((this->rows + kWorkers - 1) / kWorkers, this->columns, kUnaligned);
  }
};

template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByRow1DInPlace
    : public BroadcastVectorOuterByColumn1DInPlace<op, T, kUnaligned> {
 public:
  std::uint64_t getCycleEstimate() const {
    return outerCycles<op, T>((this->rows + kWorkers - 1) / kWorkers, this->columns, kUnaligned);
  }
};

template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByColumnSupervisor
    : public BroadcastVectorOuterByColumn1D<op, T, kUnaligned> {};
template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByColumnInPlaceSupervisor
    : public BroadcastVectorOuterByColumn1DInPlace<op, T, kUnaligned> {};
template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByRowSupervisor : public BroadcastVectorOuterByRow1D<op, T, kUnaligned> {
};
template <expr::BinaryOpType op, class T, bool kUnaligned>
class BroadcastVectorOuterByRowInPlaceSupervisor
    : public BroadcastVectorOuterByRow1DInPlace<op, T, kUnaligned> {};

/// Applies B to each block of its size. `dataBlockCountPacked` holds the number of blocks divided
/// by six workers and, in the low three bits, the remainder.
template <expr::BinaryOpType op, class T>
class BroadcastVectorInner1D : public poplar::MultiVertex {
 public:
  poplar::Input<Span<T>> B;
  poplar::Input<Pointer<T>> data;
  std::uint16_t dataBlockCountPacked;
  poplar::Output<Pointer<T>> out;

  bool compute(unsigned worker) {
    const unsigned size = B.size();
    return ofWorker(worker, blocksOf(dataBlockCountPacked), [&](unsigned block) {
      const unsigned begin = block * size;
      for (unsigned i = 0; i < size; ++i) out[begin + i] = apply<op, T>(data[begin + i], B[i]);
    });
  }
  std::uint64_t getCycleEstimate() const { return innerCycles<T>(B.size(), dataBlockCountPacked); }
};
template <expr::BinaryOpType op, class T>
class BroadcastVectorInnerSupervisor : public BroadcastVectorInner1D<op, T> {};

template <expr::BinaryOpType op, class T>
class BroadcastVectorInner1DInPlace : public poplar::MultiVertex {
 public:
  poplar::Input<Span<T>> B;
  poplar::InOut<Pointer<T>> data;
  std::uint16_t dataBlockCountPacked;

  bool compute(unsigned worker) {
    const unsigned size = B.size();
    return ofWorker(worker, blocksOf(dataBlockCountPacked), [&](unsigned block) {
      const unsigned begin = block * size;
      for (unsigned i = 0; i < size; ++i) data[begin + i] = apply<op, T>(data[begin + i], B[i]);
    });
  }
  std::uint64_t getCycleEstimate() const { return innerCycles<T>(B.size(), dataBlockCountPacked); }
};
template <expr::BinaryOpType op, class T>
class BroadcastVectorInnerInPlaceSupervisor : public BroadcastVectorInner1DInPlace<op, T> {};

/// `workList`: the number of rows minus one, then for each row the size of B and the number of
/// blocks of this size.
template <class List, class F>
void ofBlocks(const List& list, const F& element) {
  const unsigned rows = list[0] + 1;
  for (unsigned i = 0; i < rows; ++i) {
    const unsigned size = list[1 + 2 * i], elements = size * list[2 + 2 * i];
    for (unsigned j = 0; j < elements; ++j) element(i, j, j % size);
  }
}
/// Applies B[i] to each block of row i.
template <expr::BinaryOpType op, class T>
class BroadcastVectorInner2D : public poplar::Vertex {
 public:
  InputRows<T> B;
  poplar::Input<Rows<std::uint16_t>> workList;
  InputRows<T> data;
  Rows<poplar::Output<Pointer<T>>> out;

  bool compute() {
    ofBlocks(workList, [&](unsigned i, unsigned j, unsigned b) {
      out[i][j] = apply<op, T>(data[i][j], B[i][b]);
    });
    return true;
  }
  std::uint64_t getCycleEstimate() const { return innerRowCycles<T>(B, data); }
};

template <expr::BinaryOpType op, class T>
class BroadcastVectorInner2DInPlace : public poplar::Vertex {
 public:
  InputRows<T> B;
  poplar::Input<Rows<std::uint16_t>> workList;
  Rows<poplar::InOut<Pointer<T>>> data;

  bool compute() {
    ofBlocks(workList, [&](unsigned i, unsigned j, unsigned b) {
      data[i][j] = apply<op, T>(data[i][j], B[i][b]);
    });
    return true;
  }
  std::uint64_t getCycleEstimate() const { return innerRowCycles<T>(B, data); }
};

}  // namespace popops
