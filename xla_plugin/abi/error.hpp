#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Error.

/// Called once per payload: key, key size, value, value size, user argument.
using PJRT_Error_PayloadVisitor = void (*)(const char*, std::size_t, const char*, std::size_t,
                                           void*);

struct PJRT_Error_FunctionTable {
  std::size_t struct_size;
  std::size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error*);
  void (*message)(const PJRT_Error*, const char**, std::size_t*);
  PJRT_Error_Code (*get_code)(const PJRT_Error*);
  void (*for_each_payload)(const PJRT_Error*, PJRT_Error_PayloadVisitor visitor, void*);
};
IPUJAX_ABI_SIZE(PJRT_Error_FunctionTable, 56);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, instance_size, 8);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, extension_start, 16);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, destroy, 24);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, message, 32);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, get_code, 40);
IPUJAX_ABI_AT(PJRT_Error_FunctionTable, for_each_payload, 48);

struct PJRT_Error_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Error* error;
};
IPUJAX_ABI_SIZE(PJRT_Error_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Error_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Error_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Error_Destroy_Args, error, 16);

struct PJRT_Error_Message_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  const char* message;
  std::size_t message_size;
};
IPUJAX_ABI_SIZE(PJRT_Error_Message_Args, 40);
IPUJAX_ABI_AT(PJRT_Error_Message_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Error_Message_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Error_Message_Args, error, 16);
IPUJAX_ABI_AT(PJRT_Error_Message_Args, message, 24);
IPUJAX_ABI_AT(PJRT_Error_Message_Args, message_size, 32);

struct PJRT_Error_GetCode_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  PJRT_Error_Code code;
};
IPUJAX_ABI_SIZE(PJRT_Error_GetCode_Args, 32);
IPUJAX_ABI_AT(PJRT_Error_GetCode_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Error_GetCode_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Error_GetCode_Args, error, 16);
IPUJAX_ABI_AT(PJRT_Error_GetCode_Args, code, 24);

struct PJRT_Error_ForEachPayload_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  PJRT_Error_PayloadVisitor visitor;
  void* user_arg;
};
IPUJAX_ABI_SIZE(PJRT_Error_ForEachPayload_Args, 40);
IPUJAX_ABI_AT(PJRT_Error_ForEachPayload_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Error_ForEachPayload_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Error_ForEachPayload_Args, error, 16);
IPUJAX_ABI_AT(PJRT_Error_ForEachPayload_Args, visitor, 24);
IPUJAX_ABI_AT(PJRT_Error_ForEachPayload_Args, user_arg, 32);
