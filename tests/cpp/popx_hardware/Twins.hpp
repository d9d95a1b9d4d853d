#pragma once
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

/// A program on popx that is compiled twice, with the fast build's functions and with those of
/// popx/hardware. Both must give equal results.
struct Twin {
  struct Value {
    poplar::Type type;
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;
  };
  using Tensors = std::vector<poplar::Tensor>;

  std::string name;
  std::vector<Value> inputs;
  std::function<Tensors(poplar::Graph&, const Tensors&, poplar::program::Sequence&)> run;
  double tolerance = 0;  ///< for floats, times the largest if above 1; 0: the same bytes
  unsigned ulps = 0;     ///< if not 0: tolerance of FLOAT and HALF, in units in the last place
  double least = 0;      ///< the units are those of numbers of at least this size
};

template <class T>
Twin::Value valueOf(poplar::Type type, std::vector<std::size_t> shape,
                    const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {type, std::move(shape), std::move(bytes)};
}

namespace fast {
std::vector<Twin> linalg();
std::vector<Twin> fourier();
std::vector<Twin> random();
std::vector<Twin> pads();
std::vector<Twin> gathers();
std::vector<Twin> maps();
std::vector<Twin> sorts();
std::vector<Twin> reductions();
std::vector<Twin> windows();
std::vector<Twin> scatters();
std::vector<Twin> selections();
std::vector<Twin> slices();
std::vector<Twin> bitOperations();
std::vector<Twin> functions();
std::vector<Twin> functionsOfHalves();
std::vector<Twin> sharedParts();
}  // namespace fast

namespace hardware {
std::vector<Twin> linalg();
std::vector<Twin> fourier();
std::vector<Twin> random();
std::vector<Twin> pads();
std::vector<Twin> gathers();
std::vector<Twin> maps();
std::vector<Twin> sorts();
std::vector<Twin> reductions();
std::vector<Twin> windows();
std::vector<Twin> scatters();
std::vector<Twin> selections();
std::vector<Twin> slices();
std::vector<Twin> bitOperations();
std::vector<Twin> functions();
std::vector<Twin> functionsOfHalves();
std::vector<Twin> sharedParts();
}  // namespace hardware
