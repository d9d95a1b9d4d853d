#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "Fixture.hpp"

/// One vertex on tile 0, run once.
struct OneVertex : Fixture {
  poplar::ComputeSet cs = graph.addComputeSet("vertex");
  poplar::VertexRef v;

  /// `codelets`: the source that defines the type, if no library does.
  explicit OneVertex(const std::string& type, const char* codelets = "")
      : v((add(codelets), graph.addVertex(cs, type))) {
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
  /// Cycles of tile 0 as the program counts them.
  std::uint64_t cycles() {
    poplar::program::Sequence timed({poplar::program::Execute(cs)});
    return cyclesOf(timed);
  }

 private:
  void add(const char* codelets) {
    std::istringstream source(codelets);
    if (*codelets != '\0') graph.addCodelets(source);
  }
};
