#pragma once

/// A group of variables that a Model's search decides before or after others.
class PriorityGroupID {
 public:
  using underlying_type = unsigned;
  PriorityGroupID() = default;
  explicit PriorityGroupID(underlying_type id) : id(id) {}
  operator underlying_type() const { return id; }  // NOLINT: implicit as in the SDK
  underlying_type id = 0;
};
