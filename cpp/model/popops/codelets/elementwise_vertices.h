// popops' elementwise vertices. Graph::addVertex loads them when a program first names one. Source
// of fields and cycles: PopLibs, lib/popops/codelets; results are those of popops::map.
#include <popops/codelets/elementwise_cycles.h>

namespace popops {

using elementwise::castTo;

template <expr::UnaryOpType op, class T>
class UnaryOp1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> in;
  poplar::Output<Span<ResultOf<op, T>>> out;

  bool compute(unsigned worker) {
    return ofWorker(worker, out.size(), [&](unsigned i) { out[i] = apply<op, T>(in[i]); });
  }
  std::uint64_t getCycleEstimate() const { return unaryCycles<op, T>(out.size()); }
};
template <expr::UnaryOpType op, class T>
class UnaryOp1DSupervisor : public UnaryOp1D<op, T> {};

/// `n`: the number of elements, given only to the vertices of non-linearities.
template <expr::UnaryOpType op, class T>
class UnaryOp1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<Span<T>> inOut;
  unsigned short n = 0;

  bool compute(unsigned worker) {
    return ofWorker(worker, size(), [&](unsigned i) { inOut[i] = apply<op, T>(inOut[i]); });
  }
  std::uint64_t getCycleEstimate() const { return unaryCycles<op, T>(size()); }

 private:
  unsigned size() const { return n != 0 ? n : inOut.size(); }
};
template <expr::UnaryOpType op, class T>
class UnaryOp1DInPlaceSupervisor : public UnaryOp1DInPlace<op, T> {};

template <expr::UnaryOpType op, class T>
class UnaryOp2D : public poplar::Vertex {
 public:
  InputRows<T> in;
  OutputRows<ResultOf<op, T>> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = apply<op, T>(in[i][j]); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 20, 0, rateOf<op, T>()); }
};

template <expr::UnaryOpType op, class T>
class UnaryOp2DInPlace : public poplar::Vertex {
 public:
  InOutRows<T> inOut;

  bool compute() {
    return ofRows(inOut, [&](unsigned i, unsigned j) { inOut[i][j] = apply<op, T>(inOut[i][j]); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(inOut, 20, 0, rateOf<op, T>()); }
};

template <expr::BinaryOpType op, class T>
class BinaryOp1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> in1;
  poplar::Input<Pointer<T>> in2;
  poplar::Output<Span<ResultOf<op, T>>> out;

  bool compute(unsigned worker) {
    return ofWorker(worker, out.size(), [&](unsigned i) { out[i] = apply<op, T>(in1[i], in2[i]); });
  }
  std::uint64_t getCycleEstimate() const { return binaryCycles<op, T>(out.size()); }
};
template <expr::BinaryOpType op, class T>
class BinaryOp1DSupervisor : public BinaryOp1D<op, T> {};

template <expr::BinaryOpType op, class T>
class BinaryOp1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<Span<T>> in1Out;
  poplar::Input<Pointer<T>> in2;

  bool compute(unsigned worker) {
    return ofWorker(worker, in1Out.size(),
                    [&](unsigned i) { in1Out[i] = apply<op, T>(in1Out[i], in2[i]); });
  }
  std::uint64_t getCycleEstimate() const { return binaryCycles<op, T>(in1Out.size()); }
};
template <expr::BinaryOpType op, class T>
class BinaryOp1DInPlaceSupervisor : public BinaryOp1DInPlace<op, T> {};

template <expr::BinaryOpType op, class T>
class BinaryOp2D : public poplar::Vertex {
 public:
  InputRows<T> in1;
  InputRows<T> in2;
  OutputRows<ResultOf<op, T>> out;

  bool compute() {
    return ofRows(out,
                  [&](unsigned i, unsigned j) { out[i][j] = apply<op, T>(in1[i][j], in2[i][j]); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 5, 0, rateOf<op, T>()); }
};

template <expr::BinaryOpType op, class T>
class BinaryOp2DInPlace : public poplar::Vertex {
 public:
  InOutRows<T> in1Out;
  InputRows<T> in2;

  bool compute() {
    return ofRows(in1Out, [&](unsigned i, unsigned j) {
      in1Out[i][j] = apply<op, T>(in1Out[i][j], in2[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(in1Out, 20, 0, rateOf<op, T>()); }
};

template <class SrcType, class DstType>
constexpr Rate castRate() {
  return cycles::castRate(elementOf<SrcType>(), elementOf<DstType>());
}

template <class SrcType, class DstType>
class Cast1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<SrcType>> src;
  poplar::Output<Pointer<DstType>> dst;
  unsigned numElems;

  bool compute(unsigned worker) {
    return ofWorker(worker, numElems, [&](unsigned i) { dst[i] = castTo<DstType>(src[i]); });
  }
  std::uint64_t getCycleEstimate() const {
    return whole(cycles::castCycles(castRate<SrcType, DstType>(), numElems, kWorkers));
  }
};

/// As in SDK 2. `partitionParams`, from the highest bit: the number of elements of each of the
/// first workers; then, in three bits each, the number of these workers, the last worker that has
/// elements, and how many it lacks. Other workers have four elements fewer.
template <class SrcType, class DstType>
class CastSupervisor : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<SrcType>> src;
  poplar::Output<Pointer<DstType>> dst;
  unsigned partitionParams;

  unsigned elements() const {
    const unsigned most = partitionParams >> 9, first = partitionParams >> 6 & 7;
    return first * most + (kWorkers - first) * (most - 4) - (partitionParams & 7);
  }
  bool compute(unsigned worker) {
    return ofWorker(worker, elements(), [&](unsigned i) { dst[i] = castTo<DstType>(src[i]); });
  }
  std::uint64_t getCycleEstimate() const {
    return whole(cycles::castCycles(castRate<SrcType, DstType>(), elements(), kWorkers));
  }
};

template <class SrcType, class DstType>
class Cast1DSingleWorker : public poplar::Vertex {
 public:
  poplar::Input<Pointer<SrcType>> src;
  poplar::Output<Pointer<DstType>> dst;
  unsigned numElems;

  bool compute() {
    return ofAll(numElems, [&](unsigned i) { dst[i] = castTo<DstType>(src[i]); });
  }
  std::uint64_t getCycleEstimate() const {
    return whole(5 + 19 + castRate<SrcType, DstType>().of(numElems));
  }
};
template <class SrcType, class DstType>
class Cast : public Cast1DSingleWorker<SrcType, DstType> {};

template <class SrcType, class DstType>
class Cast2D : public poplar::Vertex {
 public:
  InputRows<SrcType> src;
  OutputRows<DstType> dst;

  bool compute() {
    return ofRows(dst, [&](unsigned i, unsigned j) { dst[i][j] = castTo<DstType>(src[i][j]); });
  }
  std::uint64_t getCycleEstimate() const {
    return rowCycles(dst, 5, 11 + 19, castRate<SrcType, DstType>());
  }
};
template <class SrcType, class DstType>
class Cast2d : public Cast2D<SrcType, DstType> {};

/// in3 ? in1 : in2.
template <class T>
class Select : public poplar::Vertex {
 public:
  InputRows<T> in1;
  InputRows<T> in2;
  InputRows<bool> in3;
  OutputRows<T> out;

  bool compute() {
    return ofRows(out,
                  [&](unsigned i, unsigned j) { out[i][j] = in3[i][j] ? in1[i][j] : in2[i][j]; });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 5, 6, Rate{5, 1}); }
};

template <class T>
class SelectInPlace : public poplar::Vertex {
 public:
  InOutRows<T> in1Out;
  InputRows<T> in2;
  InputRows<bool> in3;

  bool compute() {
    return ofRows(in1Out, [&](unsigned i, unsigned j) {
      if (!in3[i][j]) in1Out[i][j] = in2[i][j];
    });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(in1Out, 5, 6, Rate{5, 1}); }
};

/// Selects between two scalars.
template <class T>
class BroadcastSelect : public poplar::Vertex {
 public:
  poplar::Input<T> in1;
  poplar::Input<T> in2;
  InputRows<bool> in3;
  OutputRows<T> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = in3[i][j] ? *in1 : *in2; });
  }
  std::uint64_t getCycleEstimate() const {
    return sizeof(T) == 1 ? rowCycles(out, 10, 66, Rate{17, 4})
                          : rowCycles(out, 10, sizeof(T) == 2 ? 30 : 8, Rate{4, 1});
  }
};

/// Selects by one boolean: copies rows.
template <class T>
class BroadcastSelectorSelect : public poplar::Vertex {
 public:
  InputRows<T> in1;
  InputRows<T> in2;
  poplar::Input<bool> in3;
  OutputRows<T> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) { out[i][j] = *in3 ? in1[i][j] : in2[i][j]; });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 12, 35, Rate{1, 4 / sizeof(T)}); }
};

template <class T>
class BroadcastSelectorSelectInPlace : public poplar::Vertex {
 public:
  InOutRows<T> in1Out;
  InputRows<T> in2;
  poplar::Input<bool> in3;

  bool compute() {
    return ofRows(in1Out, [&](unsigned i, unsigned j) {
      if (!*in3) in1Out[i][j] = in2[i][j];
    });
  }
  std::uint64_t getCycleEstimate() const {
    return rowCycles(in1Out, 12, 35, Rate{1, 4 / sizeof(T)});
  }
};

constexpr auto kClamp = expr::TernaryOpType::CLAMP;

/// in1 clamped to [in2, in3].
template <class T>
class Clamp : public poplar::Vertex {
 public:
  InputRows<T> in1;
  InputRows<T> in2;
  InputRows<T> in3;
  OutputRows<T> out;

  bool compute() {
    return ofRows(out, [&](unsigned i, unsigned j) {
      out[i][j] = apply<kClamp, T>(in1[i][j], in2[i][j], in3[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 5, 6, rateOf<kClamp, T>()); }
};

template <class T>
class ClampInPlace : public poplar::Vertex {
 public:
  InOutRows<T> in1Out;
  InputRows<T> in2;
  InputRows<T> in3;

  bool compute() {
    return ofRows(in1Out, [&](unsigned i, unsigned j) {
      in1Out[i][j] = apply<kClamp, T>(in1Out[i][j], in2[i][j], in3[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(in1Out, 5, 6, rateOf<kClamp, T>()); }
};

/// Clamps between two scalars.
template <class T>
class BroadcastClamp : public poplar::Vertex {
 public:
  InputRows<T> in1;
  poplar::Input<T> in2;
  poplar::Input<T> in3;
  OutputRows<T> out;

  bool compute() {
    return ofRows(
        out, [&](unsigned i, unsigned j) { out[i][j] = apply<kClamp, T>(in1[i][j], *in2, *in3); });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(out, 5, 6, rateOf<kClamp, T>()); }
};

template <class T>
class BroadcastClampInPlace : public poplar::Vertex {
 public:
  InOutRows<T> in1Out;
  poplar::Input<T> in2;
  poplar::Input<T> in3;

  bool compute() {
    return ofRows(in1Out, [&](unsigned i, unsigned j) {
      in1Out[i][j] = apply<kClamp, T>(in1Out[i][j], *in2, *in3);
    });
  }
  std::uint64_t getCycleEstimate() const { return rowCycles(in1Out, 5, 6, rateOf<kClamp, T>()); }
};

}  // namespace popops
