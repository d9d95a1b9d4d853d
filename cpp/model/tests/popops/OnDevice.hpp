#pragma once
#include <numeric>
#include <vector>

#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"

/// A graph with inputs given as values, one program, and results read back, for tests that are
/// Poplar programs.
struct OnDevice {
  poplar::Graph graph{poplar::IPUModel().createDevice()};
  poplar::program::Sequence prog;
  std::vector<std::pair<std::string, std::vector<std::byte>>> inputs;

  template <class T>
  poplar::Tensor input(poplar::Type type, std::vector<std::size_t> shape, std::vector<T> values) {
    const std::string name = "in" + std::to_string(inputs.size());
    auto t = graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, name);
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    inputs.emplace_back(name, std::vector<std::byte>(bytes, bytes + values.size() * sizeof(T)));
    graph.createHostWrite(name, t);
    return t;
  }

  /// 0, 1, 2 ... as floats.
  poplar::Tensor iota(std::vector<std::size_t> shape) {
    std::size_t n = 1;
    for (auto d : shape) n *= d;
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.0f);
    return input(poplar::FLOAT, shape, values);
  }

  /// Compiles and runs the program; call this once per graph.
  template <class T>
  std::vector<T> read(const poplar::Tensor& t, int runs = 1) {
    graph.createHostRead("out", t);
    poplar::Engine engine(graph, prog);
    engine.load(poplar::Device(graph.getTarget()));
    for (auto& [name, bytes] : inputs)
      engine.writeTensor(name, bytes.data(), bytes.data() + bytes.size());
    for (int i = 0; i < runs; ++i) engine.run(0);
    std::vector<T> values(t.numElements());
    engine.readTensor("out", values.data(), values.data() + values.size());
    return values;
  }
};
