#pragma once
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/blas/Pack.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"

/// A graph with random inputs, one program and results as doubles, for poplin's tests.
/// Values are small multiples of 1/8, so that sums are exact in float and, where small, in half.
class OnDevice {
 public:
  poplar::Graph graph{poplar::IPUModel().createDevice()};
  poplar::program::Sequence prog;

  poplar::Tensor random(poplar::Type type, const std::vector<std::size_t>& shape) {
    return fill(graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, "x"));
  }

  /// Gives `t`, a whole variable, random values.
  poplar::Tensor fill(const poplar::Tensor& t) {
    const std::string name = "in" + std::to_string(inputs_.size());
    std::vector<double> values(t.numElements());
    const bool real = t.elementType() == poplar::FLOAT || t.elementType() == poplar::HALF;
    for (auto& x : values) x = digit_(engine_) * (real ? 0.125 : 1.0);
    inputs_.emplace_back(name, pack(t.elementType(), values));
    values_.push_back(std::move(values));
    graph.createHostWrite(name, t);
    return t;
  }

  /// Values of the i-th random input, row-major.
  const std::vector<double>& values(std::size_t i) const { return values_[i]; }

  std::vector<double> read(const poplar::Tensor& t) {
    graph.createHostRead("out", t);
    poplar::Engine engine(graph, prog);
    engine.load(poplar::Device(graph.getTarget()));
    for (auto& [name, bytes] : inputs_)
      engine.writeTensor(name, bytes.data(), bytes.data() + bytes.size());
    engine.run(0);
    std::vector<std::byte> bytes(t.numElements() * sizeOf(t.elementType().element()));
    engine.readTensor("out", bytes.data(), bytes.data() + bytes.size());
    return unpack(t.elementType(), bytes, t.numElements());
  }

 private:
  static std::vector<std::byte> pack(poplar::Type type, const std::vector<double>& values) {
    const std::size_t size = sizeOf(type.element());
    std::vector<std::byte> bytes;
    bytes.reserve(values.size() * size + 1);  // not null if there are no elements
    bytes.resize(values.size() * size);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == poplar::FLOAT || type == poplar::HALF) {
        const auto x = static_cast<float>(values[i]);
        ipujax::engine::blas::storeRow(&x, bytes.data(), type.element(),
                                       static_cast<std::int64_t>(i), 1, 1);
      } else {
        const auto x = static_cast<std::int64_t>(values[i]);
        std::copy_n(reinterpret_cast<const std::byte*>(&x), size, bytes.data() + i * size);
      }
    }
    return bytes;
  }

  static std::vector<double> unpack(poplar::Type type, const std::vector<std::byte>& bytes,
                                    std::size_t count) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (type == poplar::INT) {
        values[i] = reinterpret_cast<const std::int32_t*>(bytes.data())[i];
      } else if (type == poplar::SIGNED_CHAR) {
        values[i] = reinterpret_cast<const std::int8_t*>(bytes.data())[i];
      } else {
        float x = 0;
        ipujax::engine::blas::loadRow(bytes.data(), type.element(), static_cast<std::int64_t>(i), 1,
                                      1, &x);
        values[i] = static_cast<double>(x);
      }
    }
    return values;
  }

  std::mt19937 engine_{11};
  std::uniform_int_distribution<int> digit_{-6, 6};
  std::vector<std::pair<std::string, std::vector<std::byte>>> inputs_;
  std::vector<std::vector<double>> values_;
};
