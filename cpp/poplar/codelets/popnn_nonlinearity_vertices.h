// The non-linearities of popnn that programs name in Graph::addVertex, which loads them for the
// first. Source of fields and results: PopLibs, lib/popnn/codelets and popnn::nonLinearity.
#include <cmath>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <popnn/NonLinearityDef.hpp>

namespace popnn {
namespace nonlinearity {

constexpr float kRootOfTwoOverPi = 0.7978845608f;
constexpr float kCubic = 0.044715f;

inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
inline float geluTanh(float x) {
  return std::tanh(kRootOfTwoOverPi * (x + kCubic * x * x * x));
}
inline float normalCdf(float x) { return 0.5f * (1.0f + std::erf(x * 0.70710678f)); }

template <NonLinearityType type>
float forward(float x) {
  static_assert(type < NonLinearityType::SOFTMAX, "popnn has no such vertex");
  switch (type) {
    case NonLinearityType::SIGMOID:
      return sigmoid(x);
    case NonLinearityType::HARD_SIGMOID:
      return std::fmin(std::fmax(x * 0.2f + 0.5f, 0.0f), 1.0f);
    case NonLinearityType::RELU:
      return x < 0.0f ? 0.0f : x;
    case NonLinearityType::TANH:
      return std::tanh(x);
    case NonLinearityType::GELU:
      return 0.5f * x * (1.0f + geluTanh(x));
    case NonLinearityType::GELU_ERF:
      return x * normalCdf(x);
    default:
      return x * sigmoid(x);
  }
}

/// The derivative by what the vertex has as `out`: the result of sigmoids, relu and tanh, the
/// argument of the others.
template <NonLinearityType type>
float derivative(float y) {
  static_assert(type < NonLinearityType::SOFTMAX, "popnn has no such vertex");
  switch (type) {
    case NonLinearityType::SIGMOID:
      return y * (1.0f - y);
    case NonLinearityType::HARD_SIGMOID:
      return y > 0.0f && y < 1.0f ? 0.2f : 0.0f;
    case NonLinearityType::RELU:
      return y > 0.0f ? 1.0f : 0.0f;
    case NonLinearityType::TANH:
      return 1.0f - y * y;
    case NonLinearityType::GELU: {
      const float t = geluTanh(y);
      const float slope = kRootOfTwoOverPi * (1.0f + 3.0f * kCubic * y * y);
      return 0.5f * (1.0f + t) + 0.5f * y * (1.0f - t * t) * slope;
    }
    case NonLinearityType::GELU_ERF:
      return normalCdf(y) + y * 0.39894228f * std::exp(-0.5f * y * y);
    default: {
      const float s = sigmoid(y);
      return s + y * s * (1.0f - s);
    }
  }
}

template <class T>
using Pointer = poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>;
template <class T>
using Lists = poplar::VectorList<T, poplar::VectorListLayout::DELTAN, 8>;
template <class Edge>
using Rows = poplar::Vector<Edge, poplar::VectorLayout::ONE_PTR>;

}  // namespace nonlinearity

template <class FPType, NonLinearityType type>
class NonLinearity1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<nonlinearity::Pointer<FPType>> data;
  unsigned short n;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < n; i += numWorkers())
      data[i] = static_cast<FPType>(nonlinearity::forward<type>(float(data[i])));
    return true;
  }
};
template <class FPType, NonLinearityType type>
class NonLinearitySupervisor : public NonLinearity1DInPlace<FPType, type> {};

template <class FPType, NonLinearityType type>
class NonLinearity1D : public poplar::MultiVertex {
 public:
  poplar::Input<nonlinearity::Pointer<FPType>> data;
  poplar::Output<nonlinearity::Pointer<FPType>> out;
  unsigned short n;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < n; i += numWorkers())
      out[i] = static_cast<FPType>(nonlinearity::forward<type>(float(data[i])));
    return true;
  }
};

template <class FPType, NonLinearityType type>
class NonLinearity2DInPlace : public poplar::Vertex {
 public:
  poplar::InOut<nonlinearity::Lists<FPType>> data;

  bool compute() {
    for (unsigned i = 0; i < data.size(); ++i) {
      for (unsigned j = 0; j < data[i].size(); ++j)
        data[i][j] = static_cast<FPType>(nonlinearity::forward<type>(float(data[i][j])));
    }
    return true;
  }
};

template <class FPType, NonLinearityType type>
class NonLinearity2D : public poplar::Vertex {
 public:
  poplar::Input<nonlinearity::Lists<FPType>> data;
  nonlinearity::Rows<poplar::Output<nonlinearity::Pointer<FPType>>> out;

  bool compute() {
    for (unsigned i = 0; i < data.size(); ++i) {
      for (unsigned j = 0; j < data[i].size(); ++j)
        out[i][j] = static_cast<FPType>(nonlinearity::forward<type>(float(data[i][j])));
    }
    return true;
  }
};

template <class FPType, NonLinearityType type>
class NonLinearityGrad1D : public poplar::MultiVertex {
 public:
  poplar::Input<nonlinearity::Pointer<FPType>> outGrad;
  poplar::Input<nonlinearity::Pointer<FPType>> out;
  poplar::Output<nonlinearity::Pointer<FPType>> inGrad;
  unsigned short n;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < n; i += numWorkers())
      inGrad[i] = outGrad[i] * static_cast<FPType>(nonlinearity::derivative<type>(float(out[i])));
    return true;
  }
};
template <class FPType, NonLinearityType type>
class NonLinearityGradSupervisor : public NonLinearityGrad1D<FPType, type> {};

template <class FPType, NonLinearityType type>
class NonLinearityGrad2D : public poplar::Vertex {
 public:
  nonlinearity::Rows<poplar::Input<nonlinearity::Pointer<FPType>>> outGrad;
  nonlinearity::Rows<poplar::Input<nonlinearity::Pointer<FPType>>> out;
  poplar::Output<nonlinearity::Lists<FPType>> inGrad;

  bool compute() {
    for (unsigned i = 0; i < inGrad.size(); ++i) {
      for (unsigned j = 0; j < inGrad[i].size(); ++j)
        inGrad[i][j] =
            outGrad[i][j] * static_cast<FPType>(nonlinearity::derivative<type>(float(out[i][j])));
    }
    return true;
  }
};

}  // namespace popnn
