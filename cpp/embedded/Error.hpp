#pragma once
#include <stdexcept>
#include <string>

#include "runtime/DeviceError.hpp"

namespace ipujax::embedded {

/// Why a call failed; the numbers are those of ipujax_status.
enum class Status : int {
  kOk = 0,
  kInvalidArgument = 1,
  kBadFile = 2,
  kNotSupported = 3,
  kTimeout = 4,
  kClosed = 5,
  kRecoverable = 6,
  kUnrecoverable = 7,
  kOutOfMemory = 8,
  kFailed = 9,
};

/// The one exception of this library; it becomes a status at the C boundary.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message,
        runtime::Recovery recovery = runtime::Recovery::kNone)
      : std::runtime_error(message), status_(status), recovery_(recovery) {}
  Status status() const { return status_; }
  /// How to recover, for a recoverable error.
  runtime::Recovery recovery() const { return recovery_; }

 private:
  Status status_;
  runtime::Recovery recovery_;
};

/// The exception being handled, as an Error: call inside a catch block only.
Error currentError() noexcept;

}  // namespace ipujax::embedded
