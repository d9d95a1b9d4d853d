#include "embedded/Error.hpp"

#include <new>

#include "support/Signature.hpp"

namespace ipujax::embedded {

Error currentError() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const runtime::DeviceError& error) {
    const auto status = error.isRecoverable() ? Status::kRecoverable : Status::kUnrecoverable;
    return {status, error.what(), error.recovery()};
  } catch (const runtime::ExecutableError& error) {
    return {Status::kBadFile, error.what()};
  } catch (const runtime::NotSupportedError& error) {
    return {Status::kNotSupported, error.what()};
  } catch (const std::bad_alloc&) {
    return {Status::kOutOfMemory,
            "[runtime] needs more memory than the system gives. Use a smaller program."};
  } catch (const std::invalid_argument& error) {
    return {Status::kInvalidArgument, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, error.what()};
  } catch (...) {
    return {Status::kFailed, "[runtime] got an exception of unknown type. Please report it."};
  }
}

}  // namespace ipujax::embedded
