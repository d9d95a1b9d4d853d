#pragma once
#include <cstddef>
#include <functional>

#include "poplar/Interval.hpp"

namespace poplar {

/// A variable of a graph.
class VariableRef {
 public:
  VariableRef() = default;
  explicit VariableRef(unsigned id) : id(id) {}
  friend bool operator==(const VariableRef& a, const VariableRef& b) { return a.id == b.id; }
  friend bool operator!=(const VariableRef& a, const VariableRef& b) { return a.id != b.id; }
  friend bool operator<(const VariableRef& a, const VariableRef& b) { return a.id < b.id; }

  std::size_t hash() const { return id; }

  unsigned id = ~0u;
};

/// A run of elements of one variable.
struct VariableInterval {
  VariableInterval(VariableRef var, Interval interval) : var(var), interval(interval) {}
  friend bool operator==(const VariableInterval& a, const VariableInterval& b) {
    return a.var == b.var && a.interval == b.interval;
  }
  friend bool operator!=(const VariableInterval& a, const VariableInterval& b) { return !(a == b); }

  VariableRef var;
  Interval interval;
};

}  // namespace poplar

template <>
struct std::hash<poplar::VariableRef> {
  std::size_t operator()(const poplar::VariableRef& var) const { return var.hash(); }
};
