#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: transfers in parts: PJRT_AsyncHostToDeviceTransferManager and
// PJRT_CopyToDeviceStream.

struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, transfer_manager, 16);

struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  const void* data;
  std::int64_t offset;
  std::int64_t transfer_size;
  bool is_last_transfer;
  PJRT_Event* done_with_h2d_transfer;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, 72);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, buffer_index, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, data, 32);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, offset, 40);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, transfer_size, 48);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, is_last_transfer, 56);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, done_with_h2d_transfer, 64);

struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  PJRT_Buffer* buffer_out;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, 40);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_index, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_out, 32);

struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  PJRT_Device* device_out;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_Device_Args, 32);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Device_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Device_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Device_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_Device_Args, device_out, 24);

struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  std::size_t buffer_count;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, 32);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, buffer_count, 24);

struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  std::size_t buffer_size;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, 40);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_index, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size, 32);

struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  PJRT_Error_Code error_code;
  const char* error_message;
  std::size_t error_message_size;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, 48);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, buffer_index, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_code, 28);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message, 32);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message_size, 40);

struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  const PJRT_NamedValue* transfer_metadata;
  std::size_t num_metadata;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, 40);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, transfer_metadata, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, num_metadata, 32);

struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  const void* data;
  const std::int64_t* shape_dims;
  std::size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Event* done_with_h2d_transfer;
};
IPUJAX_ABI_SIZE(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, 80);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, transfer_manager, 16);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, buffer_index, 24);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, data, 32);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_dims, 40);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_num_dims, 48);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_element_type, 56);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, shape_layout, 64);
IPUJAX_ABI_AT(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, done_with_h2d_transfer,
              72);

struct PJRT_CopyToDeviceStream_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
};
IPUJAX_ABI_SIZE(PJRT_CopyToDeviceStream_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_Destroy_Args, stream, 16);

struct PJRT_CopyToDeviceStream_AddChunk_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  PJRT_Chunk* chunk;
  PJRT_Event* transfer_complete;
};
IPUJAX_ABI_SIZE(PJRT_CopyToDeviceStream_AddChunk_Args, 40);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_AddChunk_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_AddChunk_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_AddChunk_Args, stream, 16);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_AddChunk_Args, chunk, 24);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete, 32);

struct PJRT_CopyToDeviceStream_TotalBytes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  std::int64_t total_bytes;
};
IPUJAX_ABI_SIZE(PJRT_CopyToDeviceStream_TotalBytes_Args, 32);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_TotalBytes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_TotalBytes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_TotalBytes_Args, stream, 16);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes, 24);

struct PJRT_CopyToDeviceStream_GranuleSize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  std::int64_t granule_size_in_bytes;
};
IPUJAX_ABI_SIZE(PJRT_CopyToDeviceStream_GranuleSize_Args, 32);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_GranuleSize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_GranuleSize_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_GranuleSize_Args, stream, 16);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes, 24);

struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  std::int64_t current_bytes;
};
IPUJAX_ABI_SIZE(PJRT_CopyToDeviceStream_CurrentBytes_Args, 32);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_CurrentBytes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_CurrentBytes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_CurrentBytes_Args, stream, 16);
IPUJAX_ABI_AT(PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes, 24);
