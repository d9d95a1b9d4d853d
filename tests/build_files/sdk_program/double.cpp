#include <poplar/Vertex.hpp>

class Double : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) x[i] *= 2;
    return true;
  }
};
