// popnn's non-linearities. Graph::addVertex loads them when a program first names one. Source of
// fields and cycles: PopLibs, lib/popnn; results are those of popnn::nonLinearity.
#include <popops/codelets/elementwise_results.h>
#include <popnn/codelets/nonlinearity_cycles.h>
#include <poplar/codelets/vertex_loops.h>

namespace popnn {

using namespace ipujax_vertices;

namespace nonlinearity {

using namespace popops::elementwise;

template <NonLinearityType type>
float forward(float x) {
  static_assert(type < NonLinearityType::SOFTMAX, "popnn has no such vertex");
  switch (type) {
    case NonLinearityType::SIGMOID:
      return sigmoidFloat(x);
    case NonLinearityType::HARD_SIGMOID:
      return clampOf(x * 0.2f + 0.5f, 0.0f, 1.0f);
    case NonLinearityType::RELU:
      return OfFloats<Op::kRelu>::of(x, x, x);
    case NonLinearityType::TANH:
      return tanhFloat(x);
    case NonLinearityType::GELU:
      return geluFloat(x);
    case NonLinearityType::GELU_ERF:
      return geluErfFloat(x);
    default:
      return x * sigmoidFloat(x);
  }
}

/// The derivative from the vertex's `out`: the result of sigmoid, relu and tanh, the argument of
/// the others.
template <NonLinearityType type>
float derivative(float y) {
  static_assert(type < NonLinearityType::SOFTMAX, "popnn has no such vertex");
  switch (type) {
    case NonLinearityType::SIGMOID:
      return y * (1.0f - y);
    case NonLinearityType::HARD_SIGMOID:
      return absOf(y) <= 2.5f ? 0.2f : 0.0f;
    case NonLinearityType::RELU:
      return y > 0.0f ? 1.0f : 0.0f;
    case NonLinearityType::TANH:
      return 1.0f - y * y;
    case NonLinearityType::GELU: {
      const float s = sigmoidFloat(2 * 0.79788456f * (y + 0.044715f * y * y * y));
      const float slope = 2 * 0.79788456f * (1.0f + 3 * 0.044715f * y * y);
      return s + y * s * (1.0f - s) * slope;
    }
    case NonLinearityType::GELU_ERF:
      return 0.5f * (1.0f + erfFloat(y * 0.70710678f)) + y * 0.39894228f * expFloat(-0.5f * y * y);
    default: {
      const float s = sigmoidFloat(y);
      return s + y * s * (1.0f - s);
    }
  }
}

/// Cycles of six workers.
template <class T, NonLinearityType type>
std::uint64_t sixOf(unsigned n, bool backward) {
  return whole(vertexCycles(type, std::is_same_v<T, half>, backward, kWorkers, n));
}
/// Cycles of one worker, row by row.
template <class T, NonLinearityType type, class List>
std::uint64_t rowsOf(const List& rows, bool backward) {
  double sum = 0;
  for (unsigned i = 0; i < rows.size(); ++i)
    sum += workerCycles(type, std::is_same_v<T, half>, backward, 1, rows[i].size());
  return whole(sum);
}

template <class T>
using Lists = poplar::VectorList<T, poplar::VectorListLayout::DELTAN, 8>;

template <class T, NonLinearityType type>
T result(T x) {
  return static_cast<T>(forward<type>(static_cast<float>(x)));
}
template <class T, NonLinearityType type>
T gradient(T of_result, T y) {
  return static_cast<T>(static_cast<float>(of_result) * derivative<type>(static_cast<float>(y)));
}

}  // namespace nonlinearity

template <class T, NonLinearityType type>
class NonLinearity1DInPlace : public poplar::MultiVertex {
 public:
  poplar::InOut<Pointer<T>> data;
  unsigned short n;

  bool compute(unsigned worker) {
    return ofWorker(worker, n,
                    [&](unsigned i) { data[i] = nonlinearity::result<T, type>(data[i]); });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::sixOf<T, type>(n, false); }
};
template <class T, NonLinearityType type>
class NonLinearitySupervisor : public NonLinearity1DInPlace<T, type> {};

template <class T, NonLinearityType type>
class NonLinearity1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> data;
  poplar::Output<Pointer<T>> out;
  unsigned short n;

  bool compute(unsigned worker) {
    return ofWorker(worker, n,
                    [&](unsigned i) { out[i] = nonlinearity::result<T, type>(data[i]); });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::sixOf<T, type>(n, false); }
};

template <class T, NonLinearityType type>
class NonLinearity2DInPlace : public poplar::Vertex {
 public:
  poplar::InOut<nonlinearity::Lists<T>> data;

  bool compute() {
    return ofRows(data, [&](unsigned i, unsigned j) {
      data[i][j] = nonlinearity::result<T, type>(data[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::rowsOf<T, type>(data, false); }
};

template <class T, NonLinearityType type>
class NonLinearity2D : public poplar::Vertex {
 public:
  poplar::Input<nonlinearity::Lists<T>> data;
  Rows<poplar::Output<Pointer<T>>> out;

  bool compute() {
    return ofRows(data, [&](unsigned i, unsigned j) {
      out[i][j] = nonlinearity::result<T, type>(data[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::rowsOf<T, type>(data, false); }
};

template <class T, NonLinearityType type>
class NonLinearityGrad1D : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> outGrad;
  poplar::Input<Pointer<T>> out;
  poplar::Output<Pointer<T>> inGrad;
  unsigned short n;

  bool compute(unsigned worker) {
    return ofWorker(worker, n, [&](unsigned i) {
      inGrad[i] = nonlinearity::gradient<T, type>(outGrad[i], out[i]);
    });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::sixOf<T, type>(n, true); }
};
template <class T, NonLinearityType type>
class NonLinearityGradSupervisor : public NonLinearityGrad1D<T, type> {};

template <class T, NonLinearityType type>
class NonLinearityGrad2D : public poplar::Vertex {
 public:
  InputRows<T> outGrad;
  InputRows<T> out;
  poplar::Output<nonlinearity::Lists<T>> inGrad;

  bool compute() {
    return ofRows(inGrad, [&](unsigned i, unsigned j) {
      inGrad[i][j] = nonlinearity::gradient<T, type>(outGrad[i][j], out[i][j]);
    });
  }
  std::uint64_t getCycleEstimate() const { return nonlinearity::rowsOf<T, type>(inGrad, true); }
};

}  // namespace popnn
