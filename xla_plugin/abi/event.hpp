#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Event.

/// The callee owns `error`, which is null on success.
using PJRT_Event_OnReadyCallback = void (*)(PJRT_Error* error, void* user_arg);

struct PJRT_Event_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Event_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Event_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_Destroy_Args, event, 16);

struct PJRT_Event_IsReady_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  bool is_ready;
};
IPUJAX_ABI_SIZE(PJRT_Event_IsReady_Args, 32);
IPUJAX_ABI_AT(PJRT_Event_IsReady_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_IsReady_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_IsReady_Args, event, 16);
IPUJAX_ABI_AT(PJRT_Event_IsReady_Args, is_ready, 24);

struct PJRT_Event_Error_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Event_Error_Args, 24);
IPUJAX_ABI_AT(PJRT_Event_Error_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_Error_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_Error_Args, event, 16);

struct PJRT_Event_Await_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Event_Await_Args, 24);
IPUJAX_ABI_AT(PJRT_Event_Await_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_Await_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_Await_Args, event, 16);

struct PJRT_Event_OnReady_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
};
IPUJAX_ABI_SIZE(PJRT_Event_OnReady_Args, 40);
IPUJAX_ABI_AT(PJRT_Event_OnReady_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_OnReady_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_OnReady_Args, event, 16);
IPUJAX_ABI_AT(PJRT_Event_OnReady_Args, callback, 24);
IPUJAX_ABI_AT(PJRT_Event_OnReady_Args, user_arg, 32);

struct PJRT_Event_Create_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Event_Create_Args, 24);
IPUJAX_ABI_AT(PJRT_Event_Create_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_Create_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_Create_Args, event, 16);

struct PJRT_Event_Set_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
};
IPUJAX_ABI_SIZE(PJRT_Event_Set_Args, 48);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, event, 16);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, error_code, 24);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, error_message, 32);
IPUJAX_ABI_AT(PJRT_Event_Set_Args, error_message_size, 40);
