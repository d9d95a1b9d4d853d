#pragma once
#include <cstddef>
#include <cstdint>

// PJRT C API 0.112, declared from its published layout: the types that all other parts use.
// Plain C layout; each structure is followed by assertions of its size and of every offset.

#define IPUJAX_ABI_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has moved")
#define IPUJAX_ABI_AT(type, field, bytes) \
  static_assert(offsetof(type, field) == (bytes), #type "::" #field " has moved")

inline constexpr int kPjrtApiMajor = 0;
inline constexpr int kPjrtApiMinor = 112;

// Handles. jaxlib only passes them around, so each of our classes derives from its (empty) handle
// and a static_cast converts between the two. PJRT_Error and PJRT_Memory begin with a table.
struct PJRT_AsyncHostToDeviceTransferManager {};
struct PJRT_AsyncTrackingEvent {};
struct PJRT_Buffer {};
struct PJRT_Client {};
struct PJRT_CopyToDeviceStream {};
struct PJRT_Device {};
struct PJRT_DeviceAssignmentSerialized {};
struct PJRT_DeviceDescription {};
struct PJRT_Device_Attributes {};
struct PJRT_Event {};
struct PJRT_Executable {};
struct PJRT_ExecuteContext {};
struct PJRT_FulfillAliasBufferCallback {};
struct PJRT_LoadedExecutable {};
struct PJRT_MultiSlice_Config {};
struct PJRT_SerializedCompileOptions {};
struct PJRT_SerializedExecutable {};
struct PJRT_SerializedTopology {};
struct PJRT_TopologyDescription {};
struct PJRT_Error_FunctionTable;
struct PJRT_Memory_FunctionTable;
struct PJRT_Error {
  const PJRT_Error_FunctionTable* vtable;
};
IPUJAX_ABI_SIZE(PJRT_Error, 8);
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* vtable;
};
IPUJAX_ABI_SIZE(PJRT_Memory, 8);

enum PJRT_Extension_Type : int {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Custom_Partitioner = 2,
  PJRT_Extension_Type_Stream = 3,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_Triton = 7,
  PJRT_Extension_Type_RawBuffer = 8,
  PJRT_Extension_Type_PhaseCompile = 9,
  PJRT_Extension_Type_Example = 10,
  PJRT_Extension_Type_Unknown = 11,
  PJRT_Extension_Type_CrossHostTransfers = 12,
  PJRT_Extension_Type_ExecutableMetadata = 13,
  PJRT_Extension_Type_Callback = 14,
  PJRT_Extension_Type_HostAllocator = 15,
  PJRT_Extension_Type_TpuTopology = 16,
  PJRT_Extension_Type_TpuExecutable = 17,
  PJRT_Extension_Type_Megascale = 18,
  PJRT_Extension_Type_Shardings = 19,
  PJRT_Extension_Type_AbiVersion = 20,
  PJRT_Extension_Type_Collectives = 21,
  PJRT_Extension_Type_MultiSlice = 22,
  PJRT_Extension_Type_HostMemoryAllocator = 23,
  PJRT_Extension_Type_XlaTransform = 24,
};

enum PJRT_Error_Code : int {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
};

enum PJRT_NamedValue_Type : int {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
};

enum PJRT_ProcessState : int {
  PJRT_ProcessState_kUnspecified = 0,
  PJRT_ProcessState_kUninitialized = 1,
  PJRT_ProcessState_kDisconnected = 2,
  PJRT_ProcessState_kConnected = 3,
  PJRT_ProcessState_kError = 4,
};

enum PJRT_Buffer_Type : int {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_C64 = 14,
  PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
  PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19,
  PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24,
  PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26,
  PJRT_Buffer_Type_F8E3M4 = 27,
  PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29,
  PJRT_Buffer_Type_S1 = 30,
  PJRT_Buffer_Type_U1 = 31,
};

enum PJRT_HostBufferSemantics : int {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
};

enum PJRT_Buffer_MemoryLayout_Type : int {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1,
};

using PJRT_CallbackError = PJRT_Error* (*)(PJRT_Error_Code code, const char* message,
                                           std::size_t message_size);

struct PJRT_Extension_Base {
  std::size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};
IPUJAX_ABI_SIZE(PJRT_Extension_Base, 24);
IPUJAX_ABI_AT(PJRT_Extension_Base, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Extension_Base, type, 8);
IPUJAX_ABI_AT(PJRT_Extension_Base, next, 16);

struct PJRT_Api_Version {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;
  int minor_version;
};
IPUJAX_ABI_SIZE(PJRT_Api_Version, 24);
IPUJAX_ABI_AT(PJRT_Api_Version, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Api_Version, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Api_Version, major_version, 16);
IPUJAX_ABI_AT(PJRT_Api_Version, minor_version, 20);

struct PJRT_NamedValue {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* name;
  std::size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char* string_value;
    std::int64_t int64_value;
    const std::int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  std::size_t value_size;
};
IPUJAX_ABI_SIZE(PJRT_NamedValue, 56);
IPUJAX_ABI_AT(PJRT_NamedValue, struct_size, 0);
IPUJAX_ABI_AT(PJRT_NamedValue, extension_start, 8);
IPUJAX_ABI_AT(PJRT_NamedValue, name, 16);
IPUJAX_ABI_AT(PJRT_NamedValue, name_size, 24);
IPUJAX_ABI_AT(PJRT_NamedValue, type, 32);
IPUJAX_ABI_AT(PJRT_NamedValue, string_value, 40);
IPUJAX_ABI_AT(PJRT_NamedValue, int64_value, 40);
IPUJAX_ABI_AT(PJRT_NamedValue, int64_array_value, 40);
IPUJAX_ABI_AT(PJRT_NamedValue, float_value, 40);
IPUJAX_ABI_AT(PJRT_NamedValue, bool_value, 40);
IPUJAX_ABI_AT(PJRT_NamedValue, value_size, 48);

struct PJRT_Program {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
};
IPUJAX_ABI_SIZE(PJRT_Program, 48);
IPUJAX_ABI_AT(PJRT_Program, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Program, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Program, code, 16);
IPUJAX_ABI_AT(PJRT_Program, code_size, 24);
IPUJAX_ABI_AT(PJRT_Program, format, 32);
IPUJAX_ABI_AT(PJRT_Program, format_size, 40);

struct PJRT_Chunk {
  void* data;
  std::size_t size;
  void (*deleter)(void*, void*);
  void* deleter_arg;
};
IPUJAX_ABI_SIZE(PJRT_Chunk, 32);
IPUJAX_ABI_AT(PJRT_Chunk, data, 0);
IPUJAX_ABI_AT(PJRT_Chunk, size, 8);
IPUJAX_ABI_AT(PJRT_Chunk, deleter, 16);
IPUJAX_ABI_AT(PJRT_Chunk, deleter_arg, 24);

struct PJRT_Buffer_MemoryLayout_Tiled {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const std::int64_t* minor_to_major;
  std::size_t minor_to_major_size;
  const std::int64_t* tile_dims;
  const std::size_t* tile_dim_sizes;
  std::size_t num_tiles;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_MemoryLayout_Tiled, 56);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major, 16);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, minor_to_major_size, 24);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, tile_dims, 32);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, tile_dim_sizes, 40);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Tiled, num_tiles, 48);

struct PJRT_Buffer_MemoryLayout_Strides {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const std::int64_t* byte_strides;
  std::size_t num_byte_strides;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_MemoryLayout_Strides, 32);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Strides, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Strides, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Strides, byte_strides, 16);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout_Strides, num_byte_strides, 24);

struct PJRT_Buffer_MemoryLayout {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
};
IPUJAX_ABI_SIZE(PJRT_Buffer_MemoryLayout, 80);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout, tiled, 16);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout, strides, 16);
IPUJAX_ABI_AT(PJRT_Buffer_MemoryLayout, type, 72);
