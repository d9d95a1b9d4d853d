#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Client.
// Long: the C API has this many structs for one object.

struct PJRT_KeyValueGetCallback_Args;
struct PJRT_KeyValueTryGetCallback_Args;
struct PJRT_KeyValuePutCallback_Args;
using PJRT_KeyValueGetCallback = PJRT_Error* (*)(PJRT_KeyValueGetCallback_Args*);
using PJRT_KeyValueTryGetCallback = PJRT_Error* (*)(PJRT_KeyValueTryGetCallback_Args*);
using PJRT_KeyValuePutCallback = PJRT_Error* (*)(PJRT_KeyValuePutCallback_Args*);
using PJRT_KeyValueGetCallback_ValueDeleter = void (*)(char* value);
using PJRT_KeyValueTryGetCallback_ValueDeleter = void (*)(char* value);

struct PJRT_KeyValueGetCallback_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;
  std::size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;
  std::size_t value_size;
  PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback;
};
IPUJAX_ABI_SIZE(PJRT_KeyValueGetCallback_Args, 80);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, key, 16);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, key_size, 24);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, timeout_in_ms, 32);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, callback_error, 40);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, user_arg, 48);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, value, 56);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, value_size, 64);
IPUJAX_ABI_AT(PJRT_KeyValueGetCallback_Args, value_deleter_callback, 72);

struct PJRT_KeyValueTryGetCallback_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;
  std::size_t key_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;
  std::size_t value_size;
  PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback;
};
IPUJAX_ABI_SIZE(PJRT_KeyValueTryGetCallback_Args, 72);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, key, 16);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, key_size, 24);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, callback_error, 32);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, user_arg, 40);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, value, 48);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, value_size, 56);
IPUJAX_ABI_AT(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback, 64);

struct PJRT_KeyValuePutCallback_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;
  std::size_t key_size;
  const char* value;
  std::size_t value_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
};
IPUJAX_ABI_SIZE(PJRT_KeyValuePutCallback_Args, 64);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, key, 16);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, key_size, 24);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, value, 32);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, value_size, 40);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, callback_error, 48);
IPUJAX_ABI_AT(PJRT_KeyValuePutCallback_Args, user_arg, 56);

struct PJRT_Client_Create_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_NamedValue* create_options;
  std::size_t num_options;
  PJRT_KeyValueGetCallback kv_get_callback;
  void* kv_get_user_arg;
  PJRT_KeyValuePutCallback kv_put_callback;
  void* kv_put_user_arg;
  PJRT_Client* client;
  PJRT_KeyValueTryGetCallback kv_try_get_callback;
  void* kv_try_get_user_arg;
};
IPUJAX_ABI_SIZE(PJRT_Client_Create_Args, 88);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, create_options, 16);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, num_options, 24);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_get_callback, 32);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_get_user_arg, 40);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_put_callback, 48);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_put_user_arg, 56);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, client, 64);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_try_get_callback, 72);
IPUJAX_ABI_AT(PJRT_Client_Create_Args, kv_try_get_user_arg, 80);

struct PJRT_Client_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
};
IPUJAX_ABI_SIZE(PJRT_Client_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Client_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_Destroy_Args, client, 16);

struct PJRT_Client_PlatformName_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const char* platform_name;
  std::size_t platform_name_size;
};
IPUJAX_ABI_SIZE(PJRT_Client_PlatformName_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_PlatformName_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_PlatformName_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_PlatformName_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_PlatformName_Args, platform_name, 24);
IPUJAX_ABI_AT(PJRT_Client_PlatformName_Args, platform_name_size, 32);

struct PJRT_Client_ProcessIndex_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  int process_index;
};
IPUJAX_ABI_SIZE(PJRT_Client_ProcessIndex_Args, 32);
IPUJAX_ABI_AT(PJRT_Client_ProcessIndex_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_ProcessIndex_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_ProcessIndex_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_ProcessIndex_Args, process_index, 24);

struct PJRT_Client_PlatformVersion_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const char* platform_version;
  std::size_t platform_version_size;
};
IPUJAX_ABI_SIZE(PJRT_Client_PlatformVersion_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_PlatformVersion_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_PlatformVersion_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_PlatformVersion_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_PlatformVersion_Args, platform_version, 24);
IPUJAX_ABI_AT(PJRT_Client_PlatformVersion_Args, platform_version_size, 32);

struct PJRT_Client_TopologyDescription_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_TopologyDescription* topology;
};
IPUJAX_ABI_SIZE(PJRT_Client_TopologyDescription_Args, 32);
IPUJAX_ABI_AT(PJRT_Client_TopologyDescription_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_TopologyDescription_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_TopologyDescription_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_TopologyDescription_Args, topology, 24);

struct PJRT_Client_Devices_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Device* const* devices;
  std::size_t num_devices;
};
IPUJAX_ABI_SIZE(PJRT_Client_Devices_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_Devices_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_Devices_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_Devices_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_Devices_Args, devices, 24);
IPUJAX_ABI_AT(PJRT_Client_Devices_Args, num_devices, 32);

struct PJRT_Client_AddressableDevices_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Device* const* addressable_devices;
  std::size_t num_addressable_devices;
};
IPUJAX_ABI_SIZE(PJRT_Client_AddressableDevices_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_AddressableDevices_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_AddressableDevices_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_AddressableDevices_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_AddressableDevices_Args, addressable_devices, 24);
IPUJAX_ABI_AT(PJRT_Client_AddressableDevices_Args, num_addressable_devices, 32);

struct PJRT_Client_LookupDevice_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  int id;
  PJRT_Device* device;
};
IPUJAX_ABI_SIZE(PJRT_Client_LookupDevice_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_LookupDevice_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_LookupDevice_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_LookupDevice_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_LookupDevice_Args, id, 24);
IPUJAX_ABI_AT(PJRT_Client_LookupDevice_Args, device, 32);

struct PJRT_Client_LookupAddressableDevice_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  int local_hardware_id;
  PJRT_Device* addressable_device;
};
IPUJAX_ABI_SIZE(PJRT_Client_LookupAddressableDevice_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_LookupAddressableDevice_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_LookupAddressableDevice_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_LookupAddressableDevice_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_LookupAddressableDevice_Args, local_hardware_id, 24);
IPUJAX_ABI_AT(PJRT_Client_LookupAddressableDevice_Args, addressable_device, 32);

struct PJRT_ProcessInfo {
  std::size_t struct_size;
  int task_id;
  std::uint64_t incarnation_id;
  PJRT_ProcessState state;
  int error_code;
  const char* error_message;
  std::size_t error_message_size;
};
IPUJAX_ABI_SIZE(PJRT_ProcessInfo, 48);
IPUJAX_ABI_AT(PJRT_ProcessInfo, struct_size, 0);
IPUJAX_ABI_AT(PJRT_ProcessInfo, task_id, 8);
IPUJAX_ABI_AT(PJRT_ProcessInfo, incarnation_id, 16);
IPUJAX_ABI_AT(PJRT_ProcessInfo, state, 24);
IPUJAX_ABI_AT(PJRT_ProcessInfo, error_code, 28);
IPUJAX_ABI_AT(PJRT_ProcessInfo, error_message, 32);
IPUJAX_ABI_AT(PJRT_ProcessInfo, error_message_size, 40);

struct PJRT_Client_UpdateGlobalProcessInfo_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_ProcessInfo* process_infos;
  std::size_t num_process_infos;
};
IPUJAX_ABI_SIZE(PJRT_Client_UpdateGlobalProcessInfo_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_UpdateGlobalProcessInfo_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_UpdateGlobalProcessInfo_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_UpdateGlobalProcessInfo_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_UpdateGlobalProcessInfo_Args, process_infos, 24);
IPUJAX_ABI_AT(PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos, 32);

struct PJRT_Client_AddressableMemories_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Memory* const* addressable_memories;
  std::size_t num_addressable_memories;
};
IPUJAX_ABI_SIZE(PJRT_Client_AddressableMemories_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_AddressableMemories_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_AddressableMemories_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_AddressableMemories_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_AddressableMemories_Args, addressable_memories, 24);
IPUJAX_ABI_AT(PJRT_Client_AddressableMemories_Args, num_addressable_memories, 32);

struct PJRT_Client_Compile_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const PJRT_Program* program;
  const char* compile_options;
  std::size_t compile_options_size;
  PJRT_LoadedExecutable* executable;
};
IPUJAX_ABI_SIZE(PJRT_Client_Compile_Args, 56);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, program, 24);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, compile_options, 32);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, compile_options_size, 40);
IPUJAX_ABI_AT(PJRT_Client_Compile_Args, executable, 48);

struct PJRT_Client_Load_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Executable* executable;
  const char* compile_options;
  std::size_t compile_options_size;
  PJRT_LoadedExecutable* loaded_executable;
};
IPUJAX_ABI_SIZE(PJRT_Client_Load_Args, 56);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, executable, 24);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, compile_options, 32);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, compile_options_size, 40);
IPUJAX_ABI_AT(PJRT_Client_Load_Args, loaded_executable, 48);

struct PJRT_Client_DefaultDeviceAssignment_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  int num_replicas;
  int num_partitions;
  std::size_t default_assignment_size;
  int* default_assignment;
};
IPUJAX_ABI_SIZE(PJRT_Client_DefaultDeviceAssignment_Args, 48);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, num_replicas, 24);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, num_partitions, 28);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment_size, 32);
IPUJAX_ABI_AT(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment, 40);

struct PJRT_Client_DmaMap_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  void* data;
  std::size_t size;
};
IPUJAX_ABI_SIZE(PJRT_Client_DmaMap_Args, 40);
IPUJAX_ABI_AT(PJRT_Client_DmaMap_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_DmaMap_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_DmaMap_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_DmaMap_Args, data, 24);
IPUJAX_ABI_AT(PJRT_Client_DmaMap_Args, size, 32);

struct PJRT_Client_DmaUnmap_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  void* data;
};
IPUJAX_ABI_SIZE(PJRT_Client_DmaUnmap_Args, 32);
IPUJAX_ABI_AT(PJRT_Client_DmaUnmap_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_DmaUnmap_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_DmaUnmap_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_DmaUnmap_Args, data, 24);

struct PJRT_Client_CreateUninitializedBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const std::int64_t* shape_dims;
  std::size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Client_CreateUninitializedBuffer_Args, 80);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, shape_dims, 24);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, shape_num_dims, 32);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, shape_element_type, 40);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, shape_layout, 48);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, device, 56);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, memory, 64);
IPUJAX_ABI_AT(PJRT_Client_CreateUninitializedBuffer_Args, buffer, 72);

struct PJRT_Client_CreateErrorBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
  const std::int64_t* shape_dims;
  std::size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Memory* memory;
  PJRT_Buffer* buffer;
  const PJRT_NamedValue* payload;
  std::size_t num_payload;
};
IPUJAX_ABI_SIZE(PJRT_Client_CreateErrorBuffer_Args, 112);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, error_code, 24);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, error_message, 32);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, error_message_size, 40);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, shape_dims, 48);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, shape_num_dims, 56);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, shape_element_type, 64);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, shape_layout, 72);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, memory, 80);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, buffer, 88);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, payload, 96);
IPUJAX_ABI_AT(PJRT_Client_CreateErrorBuffer_Args, num_payload, 104);

struct PJRT_Client_CreateAliasBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Memory* memory;
  const std::int64_t* shape_dims;
  std::size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Buffer* alias_buffer;
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
IPUJAX_ABI_SIZE(PJRT_Client_CreateAliasBuffer_Args, 80);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, memory, 24);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, shape_dims, 32);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, shape_num_dims, 40);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, shape_element_type, 48);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, shape_layout, 56);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, alias_buffer, 64);
IPUJAX_ABI_AT(PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb, 72);

struct PJRT_Client_FulfillAliasBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Buffer* buffer;
  PJRT_Error_Code status_code;
  const char* error_message;
  std::size_t error_message_size;
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};
IPUJAX_ABI_SIZE(PJRT_Client_FulfillAliasBuffer_Args, 64);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, buffer, 24);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, status_code, 32);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, error_message, 40);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, error_message_size, 48);
IPUJAX_ABI_AT(PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb, 56);

struct PJRT_Client_BufferFromHostBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const void* data;
  PJRT_Buffer_Type type;
  const std::int64_t* dims;
  std::size_t num_dims;
  const std::int64_t* byte_strides;
  std::size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Event* done_with_host_buffer;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Client_BufferFromHostBuffer_Args, 120);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, data, 24);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, type, 32);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, dims, 40);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, num_dims, 48);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, byte_strides, 56);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, num_byte_strides, 64);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics, 72);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, device, 80);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, memory, 88);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, device_layout, 96);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer, 104);
IPUJAX_ABI_AT(PJRT_Client_BufferFromHostBuffer_Args, buffer, 112);

struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  void* device_buffer_ptr;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout* layout;
  PJRT_Device* device;
  void (*on_delete_callback)(void*, void*);
  void* on_delete_callback_arg;
  std::intptr_t stream;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;
};
IPUJAX_ABI_SIZE(PJRT_Client_CreateViewOfDeviceBuffer_Args, 112);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, device_buffer_ptr, 24);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, num_dims, 40);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, element_type, 48);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, layout, 56);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, device, 64);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback, 72);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, on_delete_callback_arg, 80);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, stream, 88);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer, 96);
IPUJAX_ABI_AT(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory, 104);

struct PJRT_ShapeSpec {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Buffer_Type element_type;
};
IPUJAX_ABI_SIZE(PJRT_ShapeSpec, 40);
IPUJAX_ABI_AT(PJRT_ShapeSpec, struct_size, 0);
IPUJAX_ABI_AT(PJRT_ShapeSpec, extension_start, 8);
IPUJAX_ABI_AT(PJRT_ShapeSpec, dims, 16);
IPUJAX_ABI_AT(PJRT_ShapeSpec, num_dims, 24);
IPUJAX_ABI_AT(PJRT_ShapeSpec, element_type, 32);

struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_ShapeSpec* shape_specs;
  std::size_t num_shape_specs;
  PJRT_Buffer_MemoryLayout** device_layouts;
  std::size_t num_device_layouts;
  PJRT_Memory* memory;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
};
IPUJAX_ABI_SIZE(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, 72);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, shape_specs, 24);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, num_shape_specs, 32);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, device_layouts, 40);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, num_device_layouts, 48);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, memory, 56);
IPUJAX_ABI_AT(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, transfer_manager, 64);
