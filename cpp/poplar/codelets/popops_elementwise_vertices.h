// The elementwise vertices of popops that programs name in Graph::addVertex, which loads them for
// the first. Source of fields: PopLibs, lib/popops/codelets; results are those of popops::map.
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <poplar/codelets/elementwise_results.h>
#include <popops/ExprOp.hpp>
#include <type_traits>

namespace popops {
namespace elementwise {

template <class T>
using Pointer = poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>;
template <class T>
using Span = poplar::Vector<T, poplar::VectorLayout::SPAN, 8>;
template <class Edge>
using Rows = poplar::Vector<Edge, poplar::VectorLayout::ONE_PTR>;

}  // namespace elementwise

template <expr::UnaryOpType op, class T>
class UnaryOp1D : public poplar::MultiVertex {
 public:
  poplar::Input<elementwise::Pointer<T>> in;
  poplar::Output<elementwise::Span<typename elementwise::Result<op, T>::Type>> out;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < out.size(); i += numWorkers())
      out[i] = elementwise::apply<op, T>(in[i], in[i]);
    return true;
  }
};
template <expr::UnaryOpType op, class T>
class UnaryOp1DSupervisor : public UnaryOp1D<op, T> {};

/// `n`: of the vertices of non-linearities, which are given the number of elements.
template <expr::UnaryOpType op, class T>
class UnaryOp1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<elementwise::Span<T>> inOut;
  unsigned short n = 0;

  bool compute(unsigned worker) {
    const unsigned size = n != 0 ? n : inOut.size();
    for (unsigned i = worker; i < size; i += numWorkers())
      inOut[i] = elementwise::apply<op, T>(inOut[i], inOut[i]);
    return true;
  }
};
template <expr::UnaryOpType op, class T>
class UnaryOp1DInPlaceSupervisor : public UnaryOp1DInPlace<op, T> {};

template <expr::UnaryOpType op, class T>
class UnaryOp2D : public poplar::Vertex {
 public:
  elementwise::Rows<poplar::Input<elementwise::Pointer<T>>> in;
  poplar::Vector<poplar::Output<elementwise::Span<typename elementwise::Result<op, T>::Type>>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) {
      for (unsigned j = 0; j < out[i].size(); ++j)
        out[i][j] = elementwise::apply<op, T>(in[i][j], in[i][j]);
    }
    return true;
  }
};

template <expr::UnaryOpType op, class T>
class UnaryOp2DInPlace : public poplar::Vertex {
 public:
  poplar::Vector<poplar::InOut<elementwise::Span<T>>> inOut;

  bool compute() {
    for (unsigned i = 0; i < inOut.size(); ++i) {
      for (unsigned j = 0; j < inOut[i].size(); ++j)
        inOut[i][j] = elementwise::apply<op, T>(inOut[i][j], inOut[i][j]);
    }
    return true;
  }
};

template <expr::BinaryOpType op, class T>
class BinaryOp1D : public poplar::MultiVertex {
 public:
  poplar::Input<elementwise::Pointer<T>> in1;
  poplar::Input<elementwise::Pointer<T>> in2;
  poplar::Output<elementwise::Span<typename elementwise::Result<op, T>::Type>> out;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < out.size(); i += numWorkers())
      out[i] = elementwise::apply<op, T>(in1[i], in2[i]);
    return true;
  }
};
template <expr::BinaryOpType op, class T>
class BinaryOp1DSupervisor : public BinaryOp1D<op, T> {};

template <expr::BinaryOpType op, class T>
class BinaryOp1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<elementwise::Span<T>> in1Out;
  poplar::Input<elementwise::Pointer<T>> in2;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < in1Out.size(); i += numWorkers())
      in1Out[i] = elementwise::apply<op, T>(in1Out[i], in2[i]);
    return true;
  }
};
template <expr::BinaryOpType op, class T>
class BinaryOp1DInPlaceSupervisor : public BinaryOp1DInPlace<op, T> {};

template <expr::BinaryOpType op, class T>
class BinaryOp2D : public poplar::Vertex {
 public:
  elementwise::Rows<poplar::Input<elementwise::Pointer<T>>> in1;
  elementwise::Rows<poplar::Input<elementwise::Pointer<T>>> in2;
  poplar::Vector<poplar::Output<elementwise::Span<typename elementwise::Result<op, T>::Type>>> out;

  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) {
      for (unsigned j = 0; j < out[i].size(); ++j)
        out[i][j] = elementwise::apply<op, T>(in1[i][j], in2[i][j]);
    }
    return true;
  }
};

template <expr::BinaryOpType op, class T>
class BinaryOp2DInPlace : public poplar::Vertex {
 public:
  poplar::Vector<poplar::InOut<elementwise::Span<T>>> in1Out;
  elementwise::Rows<poplar::Input<elementwise::Pointer<T>>> in2;

  bool compute() {
    for (unsigned i = 0; i < in1Out.size(); ++i) {
      for (unsigned j = 0; j < in1Out[i].size(); ++j)
        in1Out[i][j] = elementwise::apply<op, T>(in1Out[i][j], in2[i][j]);
    }
    return true;
  }
};

template <class SrcType, class DstType>
class Cast1D : public poplar::MultiVertex {
 public:
  poplar::Input<elementwise::Pointer<SrcType>> src;
  poplar::Output<elementwise::Pointer<DstType>> dst;
  unsigned numElems;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < numElems; i += numWorkers())
      dst[i] = elementwise::castTo<DstType, SrcType>(src[i]);
    return true;
  }
};

template <class SrcType, class DstType>
class Cast1DSingleWorker : public poplar::Vertex {
 public:
  poplar::Input<elementwise::Pointer<SrcType>> src;
  poplar::Output<elementwise::Pointer<DstType>> dst;
  unsigned numElems;

  bool compute() {
    for (unsigned i = 0; i < numElems; ++i)
      dst[i] = elementwise::castTo<DstType, SrcType>(src[i]);
    return true;
  }
};
template <class SrcType, class DstType>
class Cast : public Cast1DSingleWorker<SrcType, DstType> {};

template <class SrcType, class DstType>
class Cast2D : public poplar::Vertex {
 public:
  elementwise::Rows<poplar::Input<elementwise::Pointer<SrcType>>> src;
  poplar::Vector<poplar::Output<elementwise::Span<DstType>>> dst;

  bool compute() {
    for (unsigned i = 0; i < dst.size(); ++i) {
      for (unsigned j = 0; j < dst[i].size(); ++j)
        dst[i][j] = elementwise::castTo<DstType, SrcType>(src[i][j]);
    }
    return true;
  }
};
template <class SrcType, class DstType>
class Cast2d : public Cast2D<SrcType, DstType> {};

namespace elementwise {

/// The type in which A + scale * B is computed: that of its widest part.
template <class A, class B, class S>
using ScaledType = std::conditional_t<
    std::is_same_v<A, float> || std::is_same_v<B, float> || std::is_same_v<S, float>, float, A>;

/// The scale: a number of the vertex where the first of two flags is set, else a tensor.
template <class S, bool kIsConstant>
struct Scale {
  using Field = S;
  static S of(const Field& field) { return field; }
};
template <class S>
struct Scale<S, false> {
  using Field = poplar::Input<Pointer<S>>;
  static S of(const Field& field) { return field[0]; }
};

/// PopLibs' flags are isConstant and memConstraints or, in later versions, the second alone.
template <bool... kFlags>
constexpr bool is_constant = false;
template <bool kIsConstant, bool kConstraints>
constexpr bool is_constant<kIsConstant, kConstraints> = kIsConstant;

/// sign * scale * b, in the type of the computation.
template <int kSign, class A, class B, class S>
A scaledAdded(A a, B b, S scale) {
  using C = ScaledType<A, B, S>;
  const C product = static_cast<C>(static_cast<C>(scale) * static_cast<C>(b));
  return static_cast<A>(kSign > 0 ? static_cast<C>(a) + product : static_cast<C>(a) - product);
}

}  // namespace elementwise

/// A += scaleB * B.
template <class AType, class BType, class ScaleType, bool... kFlags>
class ScaledAddSupervisor : public poplar::MultiVertex {
 public:
  using Scale = elementwise::Scale<ScaleType, elementwise::is_constant<kFlags...>>;
  poplar::InOut<elementwise::Pointer<AType>> A;
  poplar::Input<elementwise::Pointer<BType>> B;
  typename Scale::Field scaleB;
  unsigned short size;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < size; i += numWorkers())
      A[i] = elementwise::scaledAdded<1, AType, BType, ScaleType>(A[i], B[i], Scale::of(scaleB));
    return true;
  }
};

template <class AType, class BType, class ScaleType, bool... kFlags>
class ScaledAdd2D : public poplar::Vertex {
 public:
  using Scale = elementwise::Scale<ScaleType, elementwise::is_constant<kFlags...>>;
  poplar::Vector<poplar::InOut<elementwise::Span<AType>>> A;
  elementwise::Rows<poplar::Input<elementwise::Pointer<BType>>> B;
  typename Scale::Field scaleB;

  bool compute() {
    for (unsigned i = 0; i < A.size(); ++i) {
      for (unsigned j = 0; j < A[i].size(); ++j)
        A[i][j] =
            elementwise::scaledAdded<1, AType, BType, ScaleType>(A[i][j], B[i][j], Scale::of(scaleB));
    }
    return true;
  }
};

/// A -= scaleB * B.
template <class AType, class BType, class ScaleType, bool... kFlags>
class ScaledSubtractSupervisor : public poplar::MultiVertex {
 public:
  using Scale = elementwise::Scale<ScaleType, elementwise::is_constant<kFlags...>>;
  poplar::InOut<elementwise::Pointer<AType>> A;
  poplar::Input<elementwise::Pointer<BType>> B;
  typename Scale::Field scaleB;
  unsigned short size;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < size; i += numWorkers())
      A[i] = elementwise::scaledAdded<-1, AType, BType, ScaleType>(A[i], B[i], Scale::of(scaleB));
    return true;
  }
};

}  // namespace popops
