#pragma once
#include "poplar/GraphElements.hpp"

namespace poplar {

/// Where the code of a function waits for its use: in streaming memory.
enum class FunctionBufferMappingType { REMOTE };

/// Code of a function outside the tiles. The model's functions are always at hand: copies of their
/// code do nothing, and the account keeps them in tile memory.
class FunctionBuffer {
 public:
  FunctionBuffer() = default;
  /// A number alone, for tables of buffers: copies of it need one that addFunctionBuffer made.
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
