#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: the Profiler extension (type 1), and the table of functions that it points to.
// One profiler is one tracing session of the process.

struct PLUGIN_Profiler;
struct PLUGIN_Profiler_Error;

struct PLUGIN_Profiler_Error_Destroy_Args {
  std::size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Error_Destroy_Args, 24);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_Destroy_Args, error, 16);

struct PLUGIN_Profiler_Error_Message_Args {
  std::size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
  const char* message;  // out
  std::size_t message_size;
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Error_Message_Args, 40);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_Message_Args, error, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_Message_Args, message, 24);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_Message_Args, message_size, 32);

struct PLUGIN_Profiler_Error_GetCode_Args {
  std::size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Error_GetCode_Args, 32);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_GetCode_Args, error, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_Error_GetCode_Args, code, 24);

struct PLUGIN_Profiler_Create_Args {
  std::size_t struct_size;
  const char* options;
  std::size_t options_size;
  PLUGIN_Profiler* profiler;  // out
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Create_Args, 32);
IPUJAX_ABI_AT(PLUGIN_Profiler_Create_Args, options, 8);
IPUJAX_ABI_AT(PLUGIN_Profiler_Create_Args, options_size, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_Create_Args, profiler, 24);

/// Arguments of destroy, start and stop.
struct PLUGIN_Profiler_Args {
  std::size_t struct_size;
  PLUGIN_Profiler* profiler;
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Args, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_Args, profiler, 8);

struct PLUGIN_Profiler_CollectData_Args {
  std::size_t struct_size;
  PLUGIN_Profiler* profiler;
  std::uint8_t* buffer;  // null in the first call, which asks for the size
  std::size_t buffer_size_in_bytes;
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_CollectData_Args, 32);
IPUJAX_ABI_AT(PLUGIN_Profiler_CollectData_Args, profiler, 8);
IPUJAX_ABI_AT(PLUGIN_Profiler_CollectData_Args, buffer, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_CollectData_Args, buffer_size_in_bytes, 24);

struct PLUGIN_Profiler_Api {
  std::size_t struct_size;
  void* priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args*);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args*);
  PLUGIN_Profiler_Error* (*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args*);
  PLUGIN_Profiler_Error* (*create)(PLUGIN_Profiler_Create_Args*);
  PLUGIN_Profiler_Error* (*destroy)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*start)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*stop)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*collect_data)(PLUGIN_Profiler_CollectData_Args*);
};
IPUJAX_ABI_SIZE(PLUGIN_Profiler_Api, 80);
IPUJAX_ABI_AT(PLUGIN_Profiler_Api, error_destroy, 16);
IPUJAX_ABI_AT(PLUGIN_Profiler_Api, create, 40);
IPUJAX_ABI_AT(PLUGIN_Profiler_Api, collect_data, 72);

struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api* profiler_api;
  std::int64_t traceme_context_id;  // has no meaning here
};
IPUJAX_ABI_SIZE(PJRT_Profiler_Extension, 40);
IPUJAX_ABI_AT(PJRT_Profiler_Extension, profiler_api, 24);
IPUJAX_ABI_AT(PJRT_Profiler_Extension, traceme_context_id, 32);
