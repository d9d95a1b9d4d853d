#pragma once
#include <poplar/Graph.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "Fixture.hpp"

inline void add(Fixture& f, const std::string& source) {
  std::istringstream text(source);
  f.graph.addCodelets(text);
}

/// Runs one vertex of a type on tile 1 with these fields; returns its field `out`.
template <class T>
std::vector<T> run(Fixture& f, const char* type,
                   const std::vector<std::pair<const char*, poplar::Tensor>>& fields,
                   std::size_t n) {
  const poplar::Tensor out = f.graph.addVariable(poplar::equivalent_device_type<T>::value, {n});
  const poplar::ComputeSet cs = f.graph.addComputeSet();
  const poplar::VertexRef v = f.graph.addVertex(cs, type);
  for (const auto& [name, tensor] : fields) f.graph.connect(v[name], tensor);
  f.graph.connect(v["out"], out);
  f.graph.setTileMapping(v, 1);
  f.graph.setTileMapping(out, 1);
  f.prog.add(poplar::program::Execute(cs));
  return f.run<T>(out);
}
