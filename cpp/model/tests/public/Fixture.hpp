#pragma once
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <random>
#include <string>
#include <vector>

/// A graph on a small model, with variables that the host reads.
struct Fixture {
  poplar::Device device;
  poplar::Graph graph;
  poplar::program::Sequence prog;

  explicit Fixture(unsigned tiles = 8, unsigned ipus = 1)
      : device(modelOf(tiles, ipus)), graph(device) {}

  static poplar::Device modelOf(unsigned tiles, unsigned ipus) {
    poplar::IPUModel model;
    model.tilesPerIPU = tiles;
    model.numIPUs = ipus;
    return model.createDevice();
  }
  poplar::Tensor variable(const char* name, std::vector<std::size_t> shape,
                          poplar::Type type = poplar::FLOAT) {
    const auto t = graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, name);
    graph.createHostRead(name, t);
    return t;
  }
  template <class T>
  poplar::Tensor constant(std::vector<std::size_t> shape, const std::vector<T>& values,
                          poplar::Type type = poplar::equivalent_device_type<T>::value) {
    const auto t = graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR);
    graph.setInitialValue(t, values);
    return t;
  }
  template <class T = float>
  std::vector<T> read(poplar::Engine& engine, const char* name, std::size_t n) {
    std::vector<T> values(n);
    engine.readTensor(name, values.data(), values.data() + n);
    return values;
  }
  /// Runs the program and returns a tensor's elements.
  template <class T = float>
  std::vector<T> run(const poplar::Tensor& t) {
    const auto out = variable("result", t.shape(), t.elementType());
    prog.add(poplar::program::Copy(t, out));
    poplar::Engine engine(graph, prog);
    engine.loadAndRun(device);
    return read<T>(engine, "result", t.numElements());
  }
  /// Cycles of a program on tile 0 as the program counts them.
  std::uint64_t cyclesOf(poplar::program::Sequence& timed) {
    const auto count = poplar::cycleCount(graph, timed, 0, poplar::SyncType::INTERNAL);
    graph.createHostRead("count", count);
    poplar::Engine engine(graph, timed);
    engine.loadAndRun(device);
    return read<std::uint64_t>(engine, "count", 1)[0];
  }
};

inline std::vector<float> randomFloats(std::mt19937& random, std::size_t n) {
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> made(n);
  for (auto& x : made) x = values(random);
  return made;
}
