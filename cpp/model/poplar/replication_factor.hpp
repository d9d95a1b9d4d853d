#pragma once

namespace poplar {

/// How many copies of a program run at once: `Graph(target, replication_factor(4))`.
class replication_factor {
 public:
  constexpr explicit replication_factor(unsigned value) : value_(value) {}
  constexpr operator unsigned() const { return value_; }  // NOLINT: a number, as in the SDK

 private:
  unsigned value_;
};

}  // namespace poplar
