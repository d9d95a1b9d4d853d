#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "poplar/DataStream.hpp"
#include "poplar/Type.hpp"

namespace poplar {

/// One argument or result of a host function: its type and number of elements.
using HostFunctionArgument = std::tuple<Type, std::size_t>;

/// A host function that programs call: see Graph::addHostFunction. Its arguments and results are
/// streams.
class HostFunction {
 public:
  HostFunction() = default;
  /// Only an id, for tables of functions; programs can only call those made by addHostFunction.
  explicit HostFunction(unsigned id) : id_(id) {}
  HostFunction(std::string handle, std::vector<DataStream> inputs, std::vector<DataStream> outputs)
      : id_((inputs.empty() ? outputs : inputs).front().id()),
        handle_(std::move(handle)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}
  const std::string& handle() const { return handle_; }
  /// The id of its first stream.
  unsigned getId() const { return id_; }
  const std::vector<DataStream>& inputs() const { return inputs_; }
  const std::vector<DataStream>& outputs() const { return outputs_; }
  friend bool operator==(const HostFunction& a, const HostFunction& b) { return a.id_ == b.id_; }
  friend bool operator!=(const HostFunction& a, const HostFunction& b) { return !(a == b); }

 private:
  unsigned id_ = ~0u;
  std::string handle_;
  std::vector<DataStream> inputs_;
  std::vector<DataStream> outputs_;
};

}  // namespace poplar
