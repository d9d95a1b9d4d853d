#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Memory.

struct PJRT_Memory_FunctionTable {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  std::size_t instance_struct_size;
  void* (*get_user_data)(PJRT_Memory*, const void*);
  void (*set_user_data)(PJRT_Memory*, const void*, void*, void (*dtor)(void*));
};
IPUJAX_ABI_SIZE(PJRT_Memory_FunctionTable, 40);
IPUJAX_ABI_AT(PJRT_Memory_FunctionTable, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_FunctionTable, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_FunctionTable, instance_struct_size, 16);
IPUJAX_ABI_AT(PJRT_Memory_FunctionTable, get_user_data, 24);
IPUJAX_ABI_AT(PJRT_Memory_FunctionTable, set_user_data, 32);

struct PJRT_Memory_Id_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  int id;
};
IPUJAX_ABI_SIZE(PJRT_Memory_Id_Args, 32);
IPUJAX_ABI_AT(PJRT_Memory_Id_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_Id_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_Id_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_Id_Args, id, 24);

struct PJRT_Memory_Kind_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* kind;
  std::size_t kind_size;
};
IPUJAX_ABI_SIZE(PJRT_Memory_Kind_Args, 40);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Args, kind, 24);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Args, kind_size, 32);

struct PJRT_Memory_Kind_Id_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  int kind_id;
};
IPUJAX_ABI_SIZE(PJRT_Memory_Kind_Id_Args, 32);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Id_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Id_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Id_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_Kind_Id_Args, kind_id, 24);

struct PJRT_Memory_DebugString_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* debug_string;
  std::size_t debug_string_size;
};
IPUJAX_ABI_SIZE(PJRT_Memory_DebugString_Args, 40);
IPUJAX_ABI_AT(PJRT_Memory_DebugString_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_DebugString_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_DebugString_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_DebugString_Args, debug_string, 24);
IPUJAX_ABI_AT(PJRT_Memory_DebugString_Args, debug_string_size, 32);

struct PJRT_Memory_ToString_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* to_string;
  std::size_t to_string_size;
};
IPUJAX_ABI_SIZE(PJRT_Memory_ToString_Args, 40);
IPUJAX_ABI_AT(PJRT_Memory_ToString_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_ToString_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_ToString_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_ToString_Args, to_string, 24);
IPUJAX_ABI_AT(PJRT_Memory_ToString_Args, to_string_size, 32);

struct PJRT_Memory_AddressableByDevices_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  PJRT_Device* const* devices;
  std::size_t num_devices;
};
IPUJAX_ABI_SIZE(PJRT_Memory_AddressableByDevices_Args, 40);
IPUJAX_ABI_AT(PJRT_Memory_AddressableByDevices_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Memory_AddressableByDevices_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Memory_AddressableByDevices_Args, memory, 16);
IPUJAX_ABI_AT(PJRT_Memory_AddressableByDevices_Args, devices, 24);
IPUJAX_ABI_AT(PJRT_Memory_AddressableByDevices_Args, num_devices, 32);
