#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/build/Build.hpp"
#include "engine/image/Image.hpp"
#include "engine/run/Session.hpp"
#include "poplar/Graph.hpp"

/// Programs of float arrays, for tests of what the engine makes of them.
namespace check {

namespace engine = ipujax::engine;
using Shape = std::vector<std::size_t>;

inline std::size_t product(const Shape& shape) {
  std::size_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

/// A program of float arrays.
struct FloatProgram {
  poplar::Graph graph{poplar::Target()};
  poplar::program::Sequence prog;
  engine::BuildOptions options;

  static engine::TensorSpec spec(const Shape& shape) {
    return {"float32", {shape.begin(), shape.end()}, 4 * product(shape), {}};
  }
  poplar::Tensor input(const Shape& shape) {
    const std::string name = "in" + std::to_string(options.signature.inputs.size());
    const poplar::Tensor t =
        graph.addVariable(poplar::FLOAT, shape, poplar::VariableMappingMethod::LINEAR, name);
    prog.add(
        poplar::program::Copy(graph.addHostToDeviceFIFO(name, poplar::FLOAT, t.numElements()), t));
    options.signature.inputs.push_back(spec(shape));
    return t;
  }
  void output(const poplar::Tensor& t) {
    const std::string name = "out" + std::to_string(options.signature.outputs.size());
    prog.add(
        poplar::program::Copy(t, graph.addDeviceToHostFIFO(name, poplar::FLOAT, t.numElements())));
    options.signature.outputs.push_back(spec(t.shape()));
  }
  std::shared_ptr<const engine::Image> build() { return engine::buildImage(graph, prog, options); }
};

inline std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 500.0f;
  return values;
}

/// All results of one run.
inline std::vector<std::vector<float>> run(const std::shared_ptr<const engine::Image>& image,
                                           const std::vector<std::vector<float>>& inputs) {
  engine::Session session(image, std::make_shared<engine::DeviceMemory>());
  std::vector<const void*> in;
  for (const auto& values : inputs) in.push_back(values.data());
  std::vector<std::vector<float>> results;
  std::vector<void*> out;
  for (const auto& spec : image->signature.outputs)
    out.push_back(results.emplace_back(spec.bytes / 4).data());
  session.run(in, out);
  return results;
}

}  // namespace check
