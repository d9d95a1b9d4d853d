#pragma once
#include "failure.hpp"

namespace ipujax::plugin {

/// A PJRT_Error: owned by jaxlib from the moment it is returned until it is destroyed.
class Error final : public PJRT_Error {
 public:
  explicit Error(FailurePtr failure);
  const Failure& failure() const { return *failure_; }

 private:
  FailurePtr failure_;
};

/// A new error for jaxlib to own; null for a null failure.
PJRT_Error* makeError(FailurePtr failure) noexcept;

namespace error {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
