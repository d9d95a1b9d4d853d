#pragma once
#include "poplar/GraphElements.hpp"

namespace poplar {

/// Where a function's code is stored until it is used: in streaming memory.
enum class FunctionBufferMappingType { REMOTE };

/// A function's code stored outside the tiles. The model's functions are always loaded: copying
/// their code does nothing, and profiles count it in tile memory.
class FunctionBuffer {
 public:
  FunctionBuffer() = default;
  /// Only an id, for tables of buffers; addFunctionBuffer makes buffers with code.
  explicit FunctionBuffer(unsigned id) : id_(id) {}
  FunctionBuffer(Function function, unsigned id) : function_(function), id_(id) {}
  unsigned getId() const { return id_; }
  const Function& function() const { return function_; }
  friend bool operator==(const FunctionBuffer& a, const FunctionBuffer& b) {
    return a.id_ == b.id_;
  }
  friend bool operator!=(const FunctionBuffer& a, const FunctionBuffer& b) { return !(a == b); }

 private:
  Function function_;
  unsigned id_ = ~0u;
};

}  // namespace poplar
