#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "poplar/StringRef.hpp"

namespace ipujax::engine {
struct ProgramNode;
}

namespace poplar {

/// Type of VertexRef::getId.
using vertex_id = unsigned;

/// A set of vertices that run in parallel between two syncs.
class ComputeSet {
 public:
  ComputeSet() = default;
  ComputeSet(unsigned id, std::shared_ptr<ipujax::engine::ProgramNode> steps = nullptr)
      : id_(id), steps_(std::move(steps)) {}
  unsigned getId() const { return id_; }
  /// For the library: the steps that its functions add to the set, in addition to the vertices.
  const std::shared_ptr<ipujax::engine::ProgramNode>& steps() const { return steps_; }
  friend bool operator==(const ComputeSet& a, const ComputeSet& b) { return a.id_ == b.id_; }
  friend bool operator!=(const ComputeSet& a, const ComputeSet& b) { return a.id_ != b.id_; }

 private:
  unsigned id_ = ~0u;
  std::shared_ptr<ipujax::engine::ProgramNode> steps_;
};

/// A program stored once and called from many places.
class Function {
 public:
  Function() = default;
  Function(unsigned id) : id_(id) {}
  unsigned getId() const { return id_; }
  friend bool operator==(const Function& a, const Function& b) { return a.id_ == b.id_; }
  friend bool operator!=(const Function& a, const Function& b) { return a.id_ != b.id_; }

 private:
  unsigned id_ = ~0u;
};

class FieldRef;

/// One vertex instance.
class VertexRef {
 public:
  VertexRef() = default;
  explicit VertexRef(unsigned id) : id_(id) {}
  unsigned getId() const { return id_; }
  bool isNull() const { return id_ == ~0u; }
  FieldRef operator[](StringRef field) const;
  friend bool operator==(const VertexRef& a, const VertexRef& b) { return a.id_ == b.id_; }
  friend bool operator!=(const VertexRef& a, const VertexRef& b) { return a.id_ != b.id_; }
  friend bool operator<(const VertexRef& a, const VertexRef& b) { return a.id_ < b.id_; }

 private:
  unsigned id_ = ~0u;
};

/// A field of a vertex, or one element of a field that is a list.
class FieldRef {
 public:
  FieldRef() = default;
  FieldRef(VertexRef vertex, std::string name) : vertex(vertex), name(std::move(name)) {}
  FieldRef operator[](std::size_t i) const {
    FieldRef element = *this;
    element.index = i;
    element.indexed = true;
    return element;
  }
  bool isIndexed() const { return indexed; }
  std::size_t getIndex() const { return index; }

  VertexRef vertex;
  std::string name;
  std::size_t index = 0;
  bool indexed = false;
};

inline FieldRef VertexRef::operator[](StringRef field) const { return {*this, std::string(field)}; }

}  // namespace poplar
