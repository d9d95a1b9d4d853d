#include "error.hpp"

#include <memory>
#include <utility>

#include "handle.hpp"

namespace ipujax::plugin {
namespace {

void destroyError(PJRT_Error* error) { adopt<Error>(error).reset(); }

void message(const PJRT_Error* error, const char** text, std::size_t* size) {
  const auto& message = object<Error>(error).failure().message;
  *text = message.data();
  *size = message.size();
}

PJRT_Error_Code getCode(const PJRT_Error* error) { return object<Error>(error).failure().code; }

void forEachPayload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}  // none are attached

const PJRT_Error_FunctionTable kFunctions{.struct_size = sizeof(PJRT_Error_FunctionTable),
                                          .instance_size = sizeof(Error),
                                          .extension_start = nullptr,
                                          .destroy = destroyError,
                                          .message = message,
                                          .get_code = getCode,
                                          .for_each_payload = forEachPayload};

void destroyEntry(PJRT_Error_Destroy_Args* args) { destroyError(args->error); }

void messageEntry(PJRT_Error_Message_Args* args) {
  message(args->error, &args->message, &args->message_size);
}

// These two must not fail: errors about errors would never end.
PJRT_Error* getCodeEntry(PJRT_Error_GetCode_Args* args) {
  args->code = getCode(args->error);
  return nullptr;
}

PJRT_Error* forEachPayloadEntry(PJRT_Error_ForEachPayload_Args*) { return nullptr; }

}  // namespace

Error::Error(FailurePtr failure) : PJRT_Error{&kFunctions}, failure_(std::move(failure)) {}

PJRT_Error* makeError(FailurePtr failure) noexcept {
  if (!failure) return nullptr;
  return release(std::make_unique<Error>(std::move(failure)));
}

void error::bind(PJRT_Api& api) {
  api.PJRT_Error_Destroy = destroyEntry;
  api.PJRT_Error_Message = messageEntry;
  api.PJRT_Error_GetCode = getCodeEntry;
  api.PJRT_Error_ForEachPayload = forEachPayloadEntry;
}

}  // namespace ipujax::plugin
