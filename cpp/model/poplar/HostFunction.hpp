#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "poplar/DataStream.hpp"
#include "poplar/Type.hpp"

namespace poplar {

/// One argument or result of a host function: of which type, and how many elements.
using HostFunctionArgument = std::tuple<Type, std::size_t>;

/// A function of the host that programs call: see Graph::addHostFunction. Its arguments and its
/// results are streams.
class HostFunction {
 public:
  HostFunction() = default;
  /// A number alone, for tables of functions: programs call those that addHostFunction made.
  explicit HostFunction(unsigned id) : id_(id) {}
  HostFunction(std::string handle, std::vector<DataStream> inputs, std::vector<DataStream> outputs)
      : id_((inputs.empty() ? outputs : inputs).front().id()),
        handle_(std::move(handle)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}
  const std::string& handle() const { return handle_; }
  /// The number of its first stream.
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
