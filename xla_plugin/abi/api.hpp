#pragma once
#include "abi/buffer.hpp"
#include "abi/client.hpp"
#include "abi/device.hpp"
#include "abi/error.hpp"
#include "abi/event.hpp"
#include "abi/executable.hpp"
#include "abi/memory.hpp"
#include "abi/plugin.hpp"
#include "abi/topology.hpp"
#include "abi/transfer.hpp"

// The function table of PJRT C API 0.112, in memory order. Each row: name without "PJRT_", offset
// in the table, and the struct_size jaxlib writes into the entry's arguments (unpadded).
// clang-format off
#define IPUJAX_PJRT_VOID_ENTRIES(ENTRY) \
  ENTRY(Error_Destroy, 40, 24) \
  ENTRY(Error_Message, 48, 40)
#define IPUJAX_PJRT_ENTRIES(ENTRY) \
  ENTRY(Error_GetCode, 56, 28) \
  ENTRY(Plugin_Initialize, 64, 16) \
  ENTRY(Plugin_Attributes, 72, 32) \
  ENTRY(Event_Destroy, 80, 24) \
  ENTRY(Event_IsReady, 88, 25) \
  ENTRY(Event_Error, 96, 24) \
  ENTRY(Event_Await, 104, 24) \
  ENTRY(Event_OnReady, 112, 40) \
  ENTRY(Client_Create, 120, 88) \
  ENTRY(Client_Destroy, 128, 24) \
  ENTRY(Client_PlatformName, 136, 40) \
  ENTRY(Client_ProcessIndex, 144, 28) \
  ENTRY(Client_PlatformVersion, 152, 40) \
  ENTRY(Client_Devices, 160, 40) \
  ENTRY(Client_AddressableDevices, 168, 40) \
  ENTRY(Client_LookupDevice, 176, 40) \
  ENTRY(Client_LookupAddressableDevice, 184, 40) \
  ENTRY(Client_AddressableMemories, 192, 40) \
  ENTRY(Client_Compile, 200, 56) \
  ENTRY(Client_DefaultDeviceAssignment, 208, 48) \
  ENTRY(Client_BufferFromHostBuffer, 216, 120) \
  ENTRY(DeviceDescription_Id, 224, 28) \
  ENTRY(DeviceDescription_ProcessIndex, 232, 28) \
  ENTRY(DeviceDescription_Attributes, 240, 40) \
  ENTRY(DeviceDescription_Kind, 248, 40) \
  ENTRY(DeviceDescription_DebugString, 256, 40) \
  ENTRY(DeviceDescription_ToString, 264, 40) \
  ENTRY(Device_GetDescription, 272, 32) \
  ENTRY(Device_IsAddressable, 280, 25) \
  ENTRY(Device_LocalHardwareId, 288, 28) \
  ENTRY(Device_AddressableMemories, 296, 40) \
  ENTRY(Device_DefaultMemory, 304, 32) \
  ENTRY(Device_MemoryStats, 312, 185) \
  ENTRY(Memory_Id, 320, 28) \
  ENTRY(Memory_Kind, 328, 40) \
  ENTRY(Memory_DebugString, 336, 40) \
  ENTRY(Memory_ToString, 344, 40) \
  ENTRY(Memory_AddressableByDevices, 352, 40) \
  ENTRY(Executable_Destroy, 360, 24) \
  ENTRY(Executable_Name, 368, 40) \
  ENTRY(Executable_NumReplicas, 376, 32) \
  ENTRY(Executable_NumPartitions, 384, 32) \
  ENTRY(Executable_NumOutputs, 392, 32) \
  ENTRY(Executable_SizeOfGeneratedCodeInBytes, 400, 32) \
  ENTRY(Executable_GetCostAnalysis, 408, 40) \
  ENTRY(Executable_OutputMemoryKinds, 416, 48) \
  ENTRY(Executable_OptimizedProgram, 424, 32) \
  ENTRY(Executable_Serialize, 432, 56) \
  ENTRY(LoadedExecutable_Destroy, 440, 24) \
  ENTRY(LoadedExecutable_GetExecutable, 448, 32) \
  ENTRY(LoadedExecutable_AddressableDevices, 456, 40) \
  ENTRY(LoadedExecutable_Delete, 464, 24) \
  ENTRY(LoadedExecutable_IsDeleted, 472, 25) \
  ENTRY(LoadedExecutable_Execute, 480, 80) \
  ENTRY(Executable_DeserializeAndLoad, 488, 72) \
  ENTRY(LoadedExecutable_Fingerprint, 496, 40) \
  ENTRY(Buffer_Destroy, 504, 24) \
  ENTRY(Buffer_ElementType, 512, 28) \
  ENTRY(Buffer_Dimensions, 520, 40) \
  ENTRY(Buffer_UnpaddedDimensions, 528, 40) \
  ENTRY(Buffer_DynamicDimensionIndices, 536, 40) \
  ENTRY(Buffer_GetMemoryLayout, 544, 104) \
  ENTRY(Buffer_OnDeviceSizeInBytes, 552, 32) \
  ENTRY(Buffer_Device, 560, 32) \
  ENTRY(Buffer_Memory, 568, 32) \
  ENTRY(Buffer_Delete, 576, 24) \
  ENTRY(Buffer_IsDeleted, 584, 25) \
  ENTRY(Buffer_CopyToDevice, 592, 40) \
  ENTRY(Buffer_ToHostBuffer, 600, 56) \
  ENTRY(Buffer_IsOnCpu, 608, 25) \
  ENTRY(Buffer_ReadyEvent, 616, 32) \
  ENTRY(Buffer_UnsafePointer, 624, 32) \
  ENTRY(Buffer_IncreaseExternalReferenceCount, 632, 24) \
  ENTRY(Buffer_DecreaseExternalReferenceCount, 640, 24) \
  ENTRY(Buffer_OpaqueDeviceMemoryDataPointer, 648, 32) \
  ENTRY(CopyToDeviceStream_Destroy, 656, 24) \
  ENTRY(CopyToDeviceStream_AddChunk, 664, 40) \
  ENTRY(CopyToDeviceStream_TotalBytes, 672, 32) \
  ENTRY(CopyToDeviceStream_GranuleSize, 680, 32) \
  ENTRY(CopyToDeviceStream_CurrentBytes, 688, 32) \
  ENTRY(TopologyDescription_Create, 696, 56) \
  ENTRY(TopologyDescription_Destroy, 704, 24) \
  ENTRY(TopologyDescription_PlatformName, 712, 40) \
  ENTRY(TopologyDescription_PlatformVersion, 720, 40) \
  ENTRY(TopologyDescription_GetDeviceDescriptions, 728, 40) \
  ENTRY(TopologyDescription_Serialize, 736, 56) \
  ENTRY(TopologyDescription_Attributes, 744, 40) \
  ENTRY(Compile, 752, 64) \
  ENTRY(Executable_OutputElementTypes, 760, 40) \
  ENTRY(Executable_OutputDimensions, 768, 48) \
  ENTRY(Buffer_CopyToMemory, 776, 40) \
  ENTRY(Client_CreateViewOfDeviceBuffer, 784, 112) \
  ENTRY(Executable_Fingerprint, 792, 40) \
  ENTRY(Client_TopologyDescription, 800, 32) \
  ENTRY(Executable_GetCompiledMemoryStats, 808, 144) \
  ENTRY(Memory_Kind_Id, 816, 28) \
  ENTRY(ExecuteContext_Create, 824, 24) \
  ENTRY(ExecuteContext_Destroy, 832, 24) \
  ENTRY(Buffer_CopyRawToHost, 840, 56) \
  ENTRY(AsyncHostToDeviceTransferManager_Destroy, 848, 24) \
  ENTRY(AsyncHostToDeviceTransferManager_TransferData, 856, 72) \
  ENTRY(Client_CreateBuffersForAsyncHostToDevice, 864, 72) \
  ENTRY(AsyncHostToDeviceTransferManager_RetrieveBuffer, 872, 40) \
  ENTRY(AsyncHostToDeviceTransferManager_Device, 880, 32) \
  ENTRY(AsyncHostToDeviceTransferManager_BufferCount, 888, 32) \
  ENTRY(AsyncHostToDeviceTransferManager_BufferSize, 896, 40) \
  ENTRY(AsyncHostToDeviceTransferManager_SetBufferError, 904, 48) \
  ENTRY(AsyncHostToDeviceTransferManager_AddMetadata, 912, 40) \
  ENTRY(Client_DmaMap, 920, 40) \
  ENTRY(Client_DmaUnmap, 928, 32) \
  ENTRY(Client_CreateUninitializedBuffer, 936, 80) \
  ENTRY(Client_UpdateGlobalProcessInfo, 944, 40) \
  ENTRY(TopologyDescription_Deserialize, 952, 40) \
  ENTRY(Client_CreateAliasBuffer, 960, 80) \
  ENTRY(Client_FulfillAliasBuffer, 968, 64) \
  ENTRY(LoadedExecutable_GetDeviceAssignment, 976, 56) \
  ENTRY(Client_CreateErrorBuffer, 984, 112) \
  ENTRY(AsyncHostToDeviceTransferManager_TransferLiteral, 992, 80) \
  ENTRY(Buffer_CopyRawToHostFuture, 1000, 64) \
  ENTRY(Device_PoisonExecution, 1008, 72) \
  ENTRY(Device_CreateAsyncTrackingEvent, 1016, 48) \
  ENTRY(AsyncTrackingEvent_Destroy, 1024, 24) \
  ENTRY(Executable_GetCompileOptions, 1032, 56) \
  ENTRY(Buffer_DonateWithControlDependency, 1040, 48) \
  ENTRY(Event_Create, 1048, 24) \
  ENTRY(Event_Set, 1056, 48) \
  ENTRY(Device_GetAttributes, 1064, 56) \
  ENTRY(Client_Load, 1072, 56) \
  ENTRY(LoadedExecutable_AddressableDeviceLogicalIds, 1080, 40) \
  ENTRY(Buffer_Bitcast, 1088, 64) \
  ENTRY(Error_ForEachPayload, 1096, 40) \
  ENTRY(TopologyDescription_Fingerprint, 1104, 32) \
  ENTRY(Executable_ParameterMemoryKinds, 1112, 48) \
  ENTRY(Device_ClearMemoryStats, 1120, 24) \
  ENTRY(TopologyDescription_MakeCanonicalShapeForMemorySpace, 1128, 88) \
  ENTRY(TopologyDescription_GetMemorySpaceKindIds, 1136, 40)
// clang-format on

struct PJRT_Api {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
#define IPUJAX_VOID_FIELD(name, offset, args_size) void (*PJRT_##name)(PJRT_##name##_Args*);
#define IPUJAX_FIELD(name, offset, args_size) PJRT_Error* (*PJRT_##name)(PJRT_##name##_Args*);
  IPUJAX_PJRT_VOID_ENTRIES(IPUJAX_VOID_FIELD)
  IPUJAX_PJRT_ENTRIES(IPUJAX_FIELD)
#undef IPUJAX_VOID_FIELD
#undef IPUJAX_FIELD
};

IPUJAX_ABI_SIZE(PJRT_Api, 1144);
IPUJAX_ABI_AT(PJRT_Api, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Api, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Api, pjrt_api_version, 16);
#define IPUJAX_CHECK_ENTRY(name, offset, args_size)                            \
  IPUJAX_ABI_AT(PJRT_Api, PJRT_##name, offset);                                \
  static_assert((args_size) <= sizeof(PJRT_##name##_Args) &&                   \
                    (args_size) + alignof(void*) > sizeof(PJRT_##name##_Args), \
                "PJRT_" #name "_Args has moved");
IPUJAX_PJRT_VOID_ENTRIES(IPUJAX_CHECK_ENTRY)
IPUJAX_PJRT_ENTRIES(IPUJAX_CHECK_ENTRY)
#undef IPUJAX_CHECK_ENTRY
