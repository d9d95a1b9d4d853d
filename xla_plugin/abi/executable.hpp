#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Executable and PJRT_LoadedExecutable.
// Long: the C API has this many structs for two objects.

using PJRT_SendCallback = PJRT_Error* (*)(PJRT_Chunk* chunk, PJRT_CallbackError* callback_error,
                                          std::size_t total_size_in_bytes, bool done,
                                          void* user_arg);
using PJRT_RecvCallback = void (*)(PJRT_CopyToDeviceStream* stream, void* user_arg);
using PJRT_HloOutputCallback = void (*)();  // never sent to this platform

struct PJRT_ExecuteContext_Create_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
};
IPUJAX_ABI_SIZE(PJRT_ExecuteContext_Create_Args, 24);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Create_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Create_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Create_Args, context, 16);

struct PJRT_ExecuteContext_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
};
IPUJAX_ABI_SIZE(PJRT_ExecuteContext_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_ExecuteContext_Destroy_Args, context, 16);

struct PJRT_Executable_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
};
IPUJAX_ABI_SIZE(PJRT_Executable_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Executable_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_Destroy_Args, executable, 16);

struct PJRT_LoadedExecutable_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Destroy_Args, executable, 16);

struct PJRT_LoadedExecutable_GetExecutable_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* loaded_executable;
  PJRT_Executable* executable;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_GetExecutable_Args, 32);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetExecutable_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetExecutable_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetExecutable_Args, executable, 24);

struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized*);
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_GetDeviceAssignment_Args, 56);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_bytes_size, 32);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment, 40);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment_deleter,
              48);

struct PJRT_Executable_Name_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* executable_name;
  std::size_t executable_name_size;
};
IPUJAX_ABI_SIZE(PJRT_Executable_Name_Args, 40);
IPUJAX_ABI_AT(PJRT_Executable_Name_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_Name_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_Name_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_Name_Args, executable_name, 24);
IPUJAX_ABI_AT(PJRT_Executable_Name_Args, executable_name_size, 32);

struct PJRT_Executable_NumReplicas_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_replicas;
};
IPUJAX_ABI_SIZE(PJRT_Executable_NumReplicas_Args, 32);
IPUJAX_ABI_AT(PJRT_Executable_NumReplicas_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_NumReplicas_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_NumReplicas_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_NumReplicas_Args, num_replicas, 24);

struct PJRT_Executable_NumPartitions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_partitions;
};
IPUJAX_ABI_SIZE(PJRT_Executable_NumPartitions_Args, 32);
IPUJAX_ABI_AT(PJRT_Executable_NumPartitions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_NumPartitions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_NumPartitions_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_NumPartitions_Args, num_partitions, 24);

struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
};
IPUJAX_ABI_SIZE(PJRT_LogicalDeviceIds, 8);
IPUJAX_ABI_AT(PJRT_LogicalDeviceIds, replica, 0);
IPUJAX_ABI_AT(PJRT_LogicalDeviceIds, partition, 4);

struct PJRT_LoadedExecutable_AddressableDevices_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_Device* const* addressable_devices;
  std::size_t num_addressable_devices;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_AddressableDevices_Args, 40);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDevices_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDevices_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDevices_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDevices_Args, addressable_devices, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices, 32);

struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_LogicalDeviceIds* addressable_device_logical_ids;
  std::size_t num_addressable_device_logical_ids;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, 40);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args,
              addressable_device_logical_ids, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args,
              num_addressable_device_logical_ids, 32);

struct PJRT_Executable_OptimizedProgram_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  PJRT_Program* program;
};
IPUJAX_ABI_SIZE(PJRT_Executable_OptimizedProgram_Args, 32);
IPUJAX_ABI_AT(PJRT_Executable_OptimizedProgram_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_OptimizedProgram_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_OptimizedProgram_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_OptimizedProgram_Args, program, 24);

struct PJRT_LoadedExecutable_Delete_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_Delete_Args, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Delete_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Delete_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Delete_Args, executable, 16);

struct PJRT_LoadedExecutable_IsDeleted_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  bool is_deleted;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_IsDeleted_Args, 32);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_IsDeleted_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_IsDeleted_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_IsDeleted_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_IsDeleted_Args, is_deleted, 24);

struct PJRT_SendCallbackInfo {
  std::int64_t channel_id;
  void* user_arg;
  PJRT_SendCallback send_callback;
};
IPUJAX_ABI_SIZE(PJRT_SendCallbackInfo, 24);
IPUJAX_ABI_AT(PJRT_SendCallbackInfo, channel_id, 0);
IPUJAX_ABI_AT(PJRT_SendCallbackInfo, user_arg, 8);
IPUJAX_ABI_AT(PJRT_SendCallbackInfo, send_callback, 16);

struct PJRT_RecvCallbackInfo {
  std::int64_t channel_id;
  void* user_arg;
  PJRT_RecvCallback recv_callback;
};
IPUJAX_ABI_SIZE(PJRT_RecvCallbackInfo, 24);
IPUJAX_ABI_AT(PJRT_RecvCallbackInfo, channel_id, 0);
IPUJAX_ABI_AT(PJRT_RecvCallbackInfo, user_arg, 8);
IPUJAX_ABI_AT(PJRT_RecvCallbackInfo, recv_callback, 16);

struct PJRT_HloOutputCallbackInfo {
  void* user_arg;
  PJRT_HloOutputCallback callback;
  std::int64_t callback_id;
  std::size_t num_operands;
};
IPUJAX_ABI_SIZE(PJRT_HloOutputCallbackInfo, 32);
IPUJAX_ABI_AT(PJRT_HloOutputCallbackInfo, user_arg, 0);
IPUJAX_ABI_AT(PJRT_HloOutputCallbackInfo, callback, 8);
IPUJAX_ABI_AT(PJRT_HloOutputCallbackInfo, callback_id, 16);
IPUJAX_ABI_AT(PJRT_HloOutputCallbackInfo, num_operands, 24);

struct PJRT_ExecuteOptions {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_SendCallbackInfo** send_callbacks;
  PJRT_RecvCallbackInfo** recv_callbacks;
  std::size_t num_send_ops;
  std::size_t num_recv_ops;
  int launch_id;
  const std::int64_t* non_donatable_input_indices;
  std::size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;
  std::size_t num_tasks;
  int* task_ids;
  std::int64_t* incarnation_ids;
  PJRT_MultiSlice_Config* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo* hlo_output_callbacks;
  std::size_t num_hlo_output_callbacks;
};
IPUJAX_ABI_SIZE(PJRT_ExecuteOptions, 144);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, struct_size, 0);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, extension_start, 8);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, send_callbacks, 16);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, recv_callbacks, 24);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, num_send_ops, 32);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, num_recv_ops, 40);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, launch_id, 48);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, non_donatable_input_indices, 56);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, num_non_donatable_input_indices, 64);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, context, 72);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, call_location, 80);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, num_tasks, 88);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, task_ids, 96);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, incarnation_ids, 104);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, multi_slice_config, 112);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, use_major_to_minor_data_layout_for_callbacks, 120);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, hlo_output_callbacks, 128);
IPUJAX_ABI_AT(PJRT_ExecuteOptions, num_hlo_output_callbacks, 136);

struct PJRT_LoadedExecutable_Execute_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;
  std::size_t num_devices;
  std::size_t num_args;
  PJRT_Buffer** const* output_lists;
  PJRT_Event** device_complete_events;
  PJRT_Device* execute_device;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_Execute_Args, 80);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, options, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, argument_lists, 32);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, num_devices, 40);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, num_args, 48);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, output_lists, 56);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, device_complete_events, 64);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Execute_Args, execute_device, 72);

struct PJRT_Executable_NumOutputs_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_outputs;
};
IPUJAX_ABI_SIZE(PJRT_Executable_NumOutputs_Args, 32);
IPUJAX_ABI_AT(PJRT_Executable_NumOutputs_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_NumOutputs_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_NumOutputs_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_NumOutputs_Args, num_outputs, 24);

struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::int64_t size_in_bytes;
};
IPUJAX_ABI_SIZE(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, 32);
IPUJAX_ABI_AT(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes, 24);

struct PJRT_Executable_Fingerprint_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* executable_fingerprint;
  std::size_t executable_fingerprint_size;
};
IPUJAX_ABI_SIZE(PJRT_Executable_Fingerprint_Args, 40);
IPUJAX_ABI_AT(PJRT_Executable_Fingerprint_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_Fingerprint_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_Fingerprint_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_Fingerprint_Args, executable_fingerprint, 24);
IPUJAX_ABI_AT(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size, 32);

struct PJRT_Executable_GetCostAnalysis_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_properties;
  const PJRT_NamedValue* properties;
};
IPUJAX_ABI_SIZE(PJRT_Executable_GetCostAnalysis_Args, 40);
IPUJAX_ABI_AT(PJRT_Executable_GetCostAnalysis_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_GetCostAnalysis_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_GetCostAnalysis_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_GetCostAnalysis_Args, num_properties, 24);
IPUJAX_ABI_AT(PJRT_Executable_GetCostAnalysis_Args, properties, 32);

struct PJRT_Executable_GetCompiledMemoryStats_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::int64_t generated_code_size_in_bytes;
  std::int64_t argument_size_in_bytes;
  std::int64_t output_size_in_bytes;
  std::int64_t alias_size_in_bytes;
  std::int64_t temp_size_in_bytes;
  std::int64_t host_generated_code_size_in_bytes;
  std::int64_t host_argument_size_in_bytes;
  std::int64_t host_output_size_in_bytes;
  std::int64_t host_alias_size_in_bytes;
  std::int64_t host_temp_size_in_bytes;
  std::int64_t peak_memory_in_bytes;
  std::int64_t total_size_in_bytes;
  std::int64_t total_allocation_bytes;
  std::int64_t indefinite_allocations;
  std::int64_t peak_unpadded_heap_bytes;
};
IPUJAX_ABI_SIZE(PJRT_Executable_GetCompiledMemoryStats_Args, 144);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes, 24);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, argument_size_in_bytes, 32);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, output_size_in_bytes, 40);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, alias_size_in_bytes, 48);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes, 56);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, host_generated_code_size_in_bytes, 64);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, host_argument_size_in_bytes, 72);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, host_output_size_in_bytes, 80);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, host_alias_size_in_bytes, 88);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes, 96);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes, 104);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, total_size_in_bytes, 112);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, total_allocation_bytes, 120);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, indefinite_allocations, 128);
IPUJAX_ABI_AT(PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes, 136);

struct PJRT_Executable_OutputElementTypes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  PJRT_Buffer_Type* output_types;
  std::size_t num_output_types;
};
IPUJAX_ABI_SIZE(PJRT_Executable_OutputElementTypes_Args, 40);
IPUJAX_ABI_AT(PJRT_Executable_OutputElementTypes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_OutputElementTypes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_OutputElementTypes_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_OutputElementTypes_Args, output_types, 24);
IPUJAX_ABI_AT(PJRT_Executable_OutputElementTypes_Args, num_output_types, 32);

struct PJRT_Executable_OutputDimensions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_outputs;
  const std::int64_t* dims;
  const std::size_t* dim_sizes;
};
IPUJAX_ABI_SIZE(PJRT_Executable_OutputDimensions_Args, 48);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, num_outputs, 24);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_Executable_OutputDimensions_Args, dim_sizes, 40);

struct PJRT_Executable_ParameterMemoryKinds_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_parameters;
  const char* const* memory_kinds;
  const std::size_t* memory_kind_sizes;
};
IPUJAX_ABI_SIZE(PJRT_Executable_ParameterMemoryKinds_Args, 48);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, num_parameters, 24);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, memory_kinds, 32);
IPUJAX_ABI_AT(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes, 40);

struct PJRT_Executable_OutputMemoryKinds_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_outputs;
  const char* const* memory_kinds;
  const std::size_t* memory_kind_sizes;
};
IPUJAX_ABI_SIZE(PJRT_Executable_OutputMemoryKinds_Args, 48);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, num_outputs, 24);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, memory_kinds, 32);
IPUJAX_ABI_AT(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes, 40);

struct PJRT_Executable_Serialize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Executable* executable;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  PJRT_SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable*);
};
IPUJAX_ABI_SIZE(PJRT_Executable_Serialize_Args, 56);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, serialized_bytes, 24);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, serialized_bytes_size, 32);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, serialized_executable, 40);
IPUJAX_ABI_AT(PJRT_Executable_Serialize_Args, serialized_executable_deleter, 48);

struct PJRT_Executable_GetCompileOptions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  PJRT_SerializedCompileOptions* serialized_compile_options;
  void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions*);
};
IPUJAX_ABI_SIZE(PJRT_Executable_GetCompileOptions_Args, 56);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, serialized_bytes, 24);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, serialized_bytes_size, 32);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, serialized_compile_options, 40);
IPUJAX_ABI_AT(PJRT_Executable_GetCompileOptions_Args, serialized_compile_options_deleter, 48);

struct PJRT_LoadOptions {
  std::size_t struct_size;
  const std::int32_t* computation_origin;
  std::size_t computation_origin_size;
  PJRT_MultiSlice_Config* multi_slice_config;
};
IPUJAX_ABI_SIZE(PJRT_LoadOptions, 32);
IPUJAX_ABI_AT(PJRT_LoadOptions, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadOptions, computation_origin, 8);
IPUJAX_ABI_AT(PJRT_LoadOptions, computation_origin_size, 16);
IPUJAX_ABI_AT(PJRT_LoadOptions, multi_slice_config, 24);

struct PJRT_Executable_DeserializeAndLoad_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const char* serialized_executable;
  std::size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;
  const char* overridden_serialized_compile_options;
  std::size_t overridden_serialized_compile_options_size;
  PJRT_LoadOptions* load_options;
};
IPUJAX_ABI_SIZE(PJRT_Executable_DeserializeAndLoad_Args, 72);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable, 24);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, serialized_executable_size, 32);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, loaded_executable, 40);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options, 48);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options_size,
              56);
IPUJAX_ABI_AT(PJRT_Executable_DeserializeAndLoad_Args, load_options, 64);

struct PJRT_LoadedExecutable_Fingerprint_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* executable_fingerprint;
  std::size_t executable_fingerprint_size;
};
IPUJAX_ABI_SIZE(PJRT_LoadedExecutable_Fingerprint_Args, 40);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Fingerprint_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Fingerprint_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Fingerprint_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint, 24);
IPUJAX_ABI_AT(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size, 32);
