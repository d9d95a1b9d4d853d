#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Buffer.

struct PJRT_Buffer_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Buffer_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Destroy_Args, buffer, 16);

struct PJRT_Buffer_ElementType_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type type;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_ElementType_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_ElementType_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_ElementType_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_ElementType_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_ElementType_Args, type, 24);

struct PJRT_Buffer_Dimensions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const std::int64_t* dims;
  std::size_t num_dims;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Dimensions_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_Dimensions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Dimensions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Dimensions_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_Dimensions_Args, dims, 24);
IPUJAX_ABI_AT(PJRT_Buffer_Dimensions_Args, num_dims, 32);

struct PJRT_Buffer_UnpaddedDimensions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const std::int64_t* unpadded_dims;
  std::size_t num_dims;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_UnpaddedDimensions_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_UnpaddedDimensions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_UnpaddedDimensions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_UnpaddedDimensions_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_UnpaddedDimensions_Args, unpadded_dims, 24);
IPUJAX_ABI_AT(PJRT_Buffer_UnpaddedDimensions_Args, num_dims, 32);

struct PJRT_Buffer_DynamicDimensionIndices_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const std::size_t* dynamic_dim_indices;
  std::size_t num_dynamic_dims;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_DynamicDimensionIndices_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_DynamicDimensionIndices_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_DynamicDimensionIndices_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_DynamicDimensionIndices_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_DynamicDimensionIndices_Args, dynamic_dim_indices, 24);
IPUJAX_ABI_AT(PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims, 32);

struct PJRT_Buffer_GetMemoryLayout_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_MemoryLayout layout;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_GetMemoryLayout_Args, 104);
IPUJAX_ABI_AT(PJRT_Buffer_GetMemoryLayout_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_GetMemoryLayout_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_GetMemoryLayout_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_GetMemoryLayout_Args, layout, 24);

struct PJRT_Buffer_ToHostBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* src;
  PJRT_Buffer_MemoryLayout* host_layout;
  void* dst;
  std::size_t dst_size;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_ToHostBuffer_Args, 56);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, src, 16);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, host_layout, 24);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, dst, 32);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, dst_size, 40);
IPUJAX_ABI_AT(PJRT_Buffer_ToHostBuffer_Args, event, 48);

struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  std::size_t on_device_size_in_bytes;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_OnDeviceSizeInBytes_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_OnDeviceSizeInBytes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_OnDeviceSizeInBytes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_OnDeviceSizeInBytes_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes, 24);

struct PJRT_Buffer_Delete_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Delete_Args, 24);
IPUJAX_ABI_AT(PJRT_Buffer_Delete_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Delete_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Delete_Args, buffer, 16);

struct PJRT_Buffer_IsDeleted_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  bool is_deleted;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_IsDeleted_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_IsDeleted_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_IsDeleted_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_IsDeleted_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_IsDeleted_Args, is_deleted, 24);

struct PJRT_Buffer_CopyRawToHost_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* dst;
  std::int64_t offset;
  std::int64_t transfer_size;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_CopyRawToHost_Args, 56);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, dst, 24);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, offset, 32);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, transfer_size, 40);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHost_Args, event, 48);

struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  std::size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
  void* dst;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, 48);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, callback_data, 8);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_code, 16);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_message, 24);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, error_message_size, 32);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst, 40);

struct PJRT_Buffer_CopyRawToHostFuture_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  std::int64_t offset;
  std::int64_t transfer_size;
  PJRT_Event* event;
  void* callback_data;
  void (*future_ready_callback)(PJRT_Buffer_CopyRawToHostFuture_Callback_Args*);
};
IPUJAX_ABI_SIZE(PJRT_Buffer_CopyRawToHostFuture_Args, 64);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, offset, 24);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, transfer_size, 32);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, event, 40);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, callback_data, 48);
IPUJAX_ABI_AT(PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback, 56);

struct PJRT_Buffer_CopyToDevice_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* dst_device;
  PJRT_Buffer* dst_buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_CopyToDevice_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToDevice_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToDevice_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToDevice_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToDevice_Args, dst_device, 24);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToDevice_Args, dst_buffer, 32);

struct PJRT_Buffer_CopyToMemory_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* dst_memory;
  PJRT_Buffer* dst_buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_CopyToMemory_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToMemory_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToMemory_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToMemory_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToMemory_Args, dst_memory, 24);
IPUJAX_ABI_AT(PJRT_Buffer_CopyToMemory_Args, dst_buffer, 32);

struct PJRT_Buffer_Bitcast_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type element_type;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Buffer* out_buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Bitcast_Args, 64);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, element_type, 24);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, num_dims, 40);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, device_layout, 48);
IPUJAX_ABI_AT(PJRT_Buffer_Bitcast_Args, out_buffer, 56);

struct PJRT_Buffer_IsOnCpu_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  bool is_on_cpu;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_IsOnCpu_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_IsOnCpu_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_IsOnCpu_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_IsOnCpu_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_IsOnCpu_Args, is_on_cpu, 24);

struct PJRT_Buffer_Device_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* device;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Device_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_Device_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Device_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Device_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_Device_Args, device, 24);

struct PJRT_Buffer_Memory_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_Memory_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_Memory_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_Memory_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_Memory_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_Memory_Args, memory, 24);

struct PJRT_Buffer_ReadyEvent_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Event* event;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_ReadyEvent_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_ReadyEvent_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_ReadyEvent_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_ReadyEvent_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_ReadyEvent_Args, event, 24);

struct PJRT_Buffer_UnsafePointer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  std::uintptr_t buffer_pointer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_UnsafePointer_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_UnsafePointer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_UnsafePointer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_UnsafePointer_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_UnsafePointer_Args, buffer_pointer, 24);

struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_IncreaseExternalReferenceCount_Args, 24);
IPUJAX_ABI_AT(PJRT_Buffer_IncreaseExternalReferenceCount_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_IncreaseExternalReferenceCount_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer, 16);

struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_DecreaseExternalReferenceCount_Args, 24);
IPUJAX_ABI_AT(PJRT_Buffer_DecreaseExternalReferenceCount_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_DecreaseExternalReferenceCount_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer, 16);

struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* device_memory_ptr;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, 32);
IPUJAX_ABI_AT(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr, 24);

struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  std::size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_DonateWithControlDependency_Callback_Args, 40);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Callback_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Callback_Args, callback_data, 8);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_code, 16);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message, 24);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message_size, 32);

struct PJRT_Buffer_DonateWithControlDependency_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* callback_data;
  void (*dependency_ready_callback)(PJRT_Buffer_DonateWithControlDependency_Callback_Args*);
  PJRT_Buffer* out_buffer;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_DonateWithControlDependency_Args, 48);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, callback_data, 24);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, dependency_ready_callback, 32);
IPUJAX_ABI_AT(PJRT_Buffer_DonateWithControlDependency_Args, out_buffer, 40);
