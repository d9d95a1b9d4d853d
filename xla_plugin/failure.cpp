#include "failure.hpp"

#include <new>
#include <utility>

#include "hosts/PeerError.hpp"
#include "runtime/DeviceError.hpp"
#include "runtime/FeedError.hpp"
#include "support/Signature.hpp"

namespace ipujax::plugin {

FailurePtr makeFailure(PJRT_Error_Code code, std::string message) {
  return std::make_shared<Failure>(Failure{code, std::move(message)});
}

FailurePtr currentFailure() noexcept {
  try {
    throw;
  } catch (const PluginError& error) {
    return error.failure();
  } catch (const runtime::ExecutableError& error) {
    return makeFailure(PJRT_Error_Code_DATA_LOSS, error.what());
  } catch (const runtime::NotSupportedError& error) {
    return makeFailure(PJRT_Error_Code_UNIMPLEMENTED, error.what());
  } catch (const hosts::PeerError& error) {
    return makeFailure(PJRT_Error_Code_ABORTED, error.what());
  } catch (const hosts::ExchangeCancelled& error) {
    return makeFailure(PJRT_Error_Code_CANCELLED, error.what());
  } catch (const runtime::DeviceError& error) {
    return makeFailure(
        error.isRecoverable() ? PJRT_Error_Code_UNAVAILABLE : PJRT_Error_Code_INTERNAL,
        error.what());
  } catch (const runtime::FeedInterrupted& error) {
    return makeFailure(PJRT_Error_Code_CANCELLED, error.what());
  } catch (const runtime::FeedError& error) {
    return makeFailure(PJRT_Error_Code_FAILED_PRECONDITION, error.what());
  } catch (const std::bad_alloc&) {
    return makeFailure(PJRT_Error_Code_RESOURCE_EXHAUSTED,
                       "[ipu plugin] needs more host memory than the system gives. Use smaller "
                       "arrays or delete some.");
  } catch (const std::invalid_argument& error) {
    return makeFailure(PJRT_Error_Code_INVALID_ARGUMENT, error.what());
  } catch (const std::exception& error) {
    return makeFailure(PJRT_Error_Code_INTERNAL, error.what());
  } catch (...) {
    return makeFailure(PJRT_Error_Code_UNKNOWN,
                       "[ipu plugin] got an exception of unknown type. Please report it.");
  }
}

void failInvalidArgument(const std::string& message) {
  throw PluginError(PJRT_Error_Code_INVALID_ARGUMENT, message);
}

}  // namespace ipujax::plugin
