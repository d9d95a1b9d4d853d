#pragma once
#include <string>
#include <vector>

#include "Fixture.hpp"

/// One vertex on tile 0, run once.
struct OneVertex : Fixture {
  poplar::ComputeSet cs = graph.addComputeSet("vertex");
  poplar::VertexRef v;

  explicit OneVertex(const std::string& type) : v(graph.addVertex(cs, type)) {
    graph.setTileMapping(v, 0);
  }
  template <class T>
  poplar::Tensor onTile(std::vector<std::size_t> shape, const std::vector<T>& values,
                        poplar::Type type = poplar::equivalent_device_type<T>::value) {
    const poplar::Tensor t = constant<T>(std::move(shape), values, type);
    graph.setTileMapping(t, 0);
    return t;
  }
  template <class T>
  std::vector<T> result(const poplar::Tensor& t) {
    prog = poplar::program::Sequence({poplar::program::Execute(cs)});
    return run<T>(t);
  }
};
