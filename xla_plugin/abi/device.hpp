#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Device and PJRT_DeviceDescription.

struct PJRT_DeviceDescription_Id_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  int id;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_Id_Args, 32);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Id_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Id_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Id_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Id_Args, id, 24);

struct PJRT_DeviceDescription_ProcessIndex_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  int process_index;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_ProcessIndex_Args, 32);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ProcessIndex_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ProcessIndex_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ProcessIndex_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ProcessIndex_Args, process_index, 24);

struct PJRT_DeviceDescription_Attributes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  std::size_t num_attributes;
  const PJRT_NamedValue* attributes;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_Attributes_Args, 40);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Attributes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Attributes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Attributes_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Attributes_Args, num_attributes, 24);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Attributes_Args, attributes, 32);

struct PJRT_DeviceDescription_Kind_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* device_kind;
  std::size_t device_kind_size;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_Kind_Args, 40);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Kind_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Kind_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Kind_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Kind_Args, device_kind, 24);
IPUJAX_ABI_AT(PJRT_DeviceDescription_Kind_Args, device_kind_size, 32);

struct PJRT_DeviceDescription_DebugString_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* debug_string;
  std::size_t debug_string_size;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_DebugString_Args, 40);
IPUJAX_ABI_AT(PJRT_DeviceDescription_DebugString_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_DebugString_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_DebugString_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_DebugString_Args, debug_string, 24);
IPUJAX_ABI_AT(PJRT_DeviceDescription_DebugString_Args, debug_string_size, 32);

struct PJRT_DeviceDescription_ToString_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* to_string;
  std::size_t to_string_size;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_ToString_Args, 40);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ToString_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ToString_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ToString_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ToString_Args, to_string, 24);
IPUJAX_ABI_AT(PJRT_DeviceDescription_ToString_Args, to_string_size, 32);

struct PJRT_Device_GetDescription_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_DeviceDescription* device_description;
};
IPUJAX_ABI_SIZE(PJRT_Device_GetDescription_Args, 32);
IPUJAX_ABI_AT(PJRT_Device_GetDescription_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_GetDescription_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_GetDescription_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_GetDescription_Args, device_description, 24);

struct PJRT_Device_IsAddressable_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  bool is_addressable;
};
IPUJAX_ABI_SIZE(PJRT_Device_IsAddressable_Args, 32);
IPUJAX_ABI_AT(PJRT_Device_IsAddressable_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_IsAddressable_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_IsAddressable_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_IsAddressable_Args, is_addressable, 24);

struct PJRT_Device_LocalHardwareId_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  int local_hardware_id;
};
IPUJAX_ABI_SIZE(PJRT_Device_LocalHardwareId_Args, 32);
IPUJAX_ABI_AT(PJRT_Device_LocalHardwareId_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_LocalHardwareId_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_LocalHardwareId_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_LocalHardwareId_Args, local_hardware_id, 24);

struct PJRT_Device_AddressableMemories_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_Memory* const* memories;
  std::size_t num_memories;
};
IPUJAX_ABI_SIZE(PJRT_Device_AddressableMemories_Args, 40);
IPUJAX_ABI_AT(PJRT_Device_AddressableMemories_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_AddressableMemories_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_AddressableMemories_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_AddressableMemories_Args, memories, 24);
IPUJAX_ABI_AT(PJRT_Device_AddressableMemories_Args, num_memories, 32);

struct PJRT_Device_DefaultMemory_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_Memory* memory;
};
IPUJAX_ABI_SIZE(PJRT_Device_DefaultMemory_Args, 32);
IPUJAX_ABI_AT(PJRT_Device_DefaultMemory_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_DefaultMemory_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_DefaultMemory_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_DefaultMemory_Args, memory, 24);

struct PJRT_Device_MemoryStats_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  std::int64_t bytes_in_use;
  std::int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  std::int64_t num_allocs;
  bool num_allocs_is_set;
  std::int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  std::int64_t bytes_limit;
  bool bytes_limit_is_set;
  std::int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  std::int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  std::int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  std::int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  std::int64_t pool_bytes;
  bool pool_bytes_is_set;
  std::int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
};
IPUJAX_ABI_SIZE(PJRT_Device_MemoryStats_Args, 192);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_in_use, 24);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_bytes_in_use, 32);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_bytes_in_use_is_set, 40);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, num_allocs, 48);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, num_allocs_is_set, 56);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, largest_alloc_size, 64);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, largest_alloc_size_is_set, 72);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_limit, 80);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_limit_is_set, 88);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_reserved, 96);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_reserved_is_set, 104);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_bytes_reserved, 112);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_bytes_reserved_is_set, 120);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_reservable_limit, 128);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, bytes_reservable_limit_is_set, 136);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, largest_free_block_bytes, 144);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, largest_free_block_bytes_is_set, 152);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, pool_bytes, 160);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, pool_bytes_is_set, 168);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_pool_bytes, 176);
IPUJAX_ABI_AT(PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set, 184);

struct PJRT_Device_ClearMemoryStats_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
};
IPUJAX_ABI_SIZE(PJRT_Device_ClearMemoryStats_Args, 24);
IPUJAX_ABI_AT(PJRT_Device_ClearMemoryStats_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_ClearMemoryStats_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_ClearMemoryStats_Args, device, 16);

struct PJRT_Device_PoisonExecution_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  std::int32_t launch_id;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
  bool poisoned;
  const PJRT_NamedValue* payload;
  std::size_t num_payload;
};
IPUJAX_ABI_SIZE(PJRT_Device_PoisonExecution_Args, 72);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, launch_id, 24);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, error_code, 28);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, error_message, 32);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, error_message_size, 40);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, poisoned, 48);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, payload, 56);
IPUJAX_ABI_AT(PJRT_Device_PoisonExecution_Args, num_payload, 64);

struct PJRT_Device_GetAttributes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  const PJRT_NamedValue* attributes;
  std::size_t num_attributes;
  PJRT_Device_Attributes* device_attributes;
  void (*attributes_deleter)(PJRT_Device_Attributes*);
};
IPUJAX_ABI_SIZE(PJRT_Device_GetAttributes_Args, 56);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, attributes, 24);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, num_attributes, 32);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, device_attributes, 40);
IPUJAX_ABI_AT(PJRT_Device_GetAttributes_Args, attributes_deleter, 48);

struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  const char* description;
  std::size_t description_size;
  PJRT_AsyncTrackingEvent* event;
};
IPUJAX_ABI_SIZE(PJRT_Device_CreateAsyncTrackingEvent_Args, 48);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, device, 16);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, description, 24);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, description_size, 32);
IPUJAX_ABI_AT(PJRT_Device_CreateAsyncTrackingEvent_Args, event, 40);

struct PJRT_AsyncTrackingEvent_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncTrackingEvent* event;
};
IPUJAX_ABI_SIZE(PJRT_AsyncTrackingEvent_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_AsyncTrackingEvent_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncTrackingEvent_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncTrackingEvent_Destroy_Args, event, 16);
