#pragma once
#include <memory>
#include <stdexcept>
#include <string>

#include "pjrt_abi.hpp"

namespace ipujax::plugin {

/// Why something failed. Shared, never changed: one failure may poison many buffers.
struct Failure {
  PJRT_Error_Code code;
  std::string message;
};
using FailurePtr = std::shared_ptr<const Failure>;  ///< null means success

/// The one exception type of the plugin; it becomes a PJRT_Error at the C boundary.
class PluginError : public std::runtime_error {
 public:
  PluginError(PJRT_Error_Code code, const std::string& message)
      : std::runtime_error(message), failure_(std::make_shared<Failure>(Failure{code, message})) {}
  explicit PluginError(FailurePtr failure)
      : std::runtime_error(failure->message), failure_(std::move(failure)) {}
  const FailurePtr& failure() const { return failure_; }

 private:
  FailurePtr failure_;
};

FailurePtr makeFailure(PJRT_Error_Code code, std::string message);

/// The failure of the exception being handled: call inside a catch block only.
FailurePtr currentFailure() noexcept;

[[noreturn]] void failInvalidArgument(const std::string& message);

}  // namespace ipujax::plugin
