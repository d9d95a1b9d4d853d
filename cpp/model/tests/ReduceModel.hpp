#pragma once
#include <string>
#include <utility>
#include <vector>

#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "poputil/TileMapping.hpp"

/// A small Poplar program for tests: variables in, one run, variables out.
namespace reduce_model {

struct Model {
  poplar::Graph graph{poplar::IPUModel().createDevice()};
  poplar::program::Sequence prog;

  poplar::Tensor variable(poplar::Type type, std::vector<std::size_t> shape, const char* name) {
    poplar::Tensor t = graph.addVariable(type, shape, name);
    poputil::mapTensorLinearly(graph, t);
    return t;
  }
  void run(const std::vector<std::pair<poplar::Tensor, void*>>& ins,
           const std::vector<std::pair<poplar::Tensor, void*>>& outs) {
    const auto name = [](const char* set, std::size_t i) { return set + std::to_string(i); };
    const auto end = [&](const std::pair<poplar::Tensor, void*>& item) {
      return static_cast<char*>(item.second) +
             item.first.numElements() * graph.getTarget().getTypeSize(item.first.elementType());
    };
    for (std::size_t i = 0; i < ins.size(); ++i) graph.createHostWrite(name("i", i), ins[i].first);
    for (std::size_t i = 0; i < outs.size(); ++i) graph.createHostRead(name("o", i), outs[i].first);
    poplar::Engine engine(graph, prog);
    engine.load(poplar::Device(graph.getTarget()));
    for (std::size_t i = 0; i < ins.size(); ++i) {
      engine.writeTensor(name("i", i), ins[i].second, end(ins[i]));
    }
    engine.run(0);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      engine.readTensor(name("o", i), outs[i].second, end(outs[i]));
    }
  }
};

}  // namespace reduce_model
