#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_TopologyDescription and ahead-of-time compilation.

struct PJRT_TopologyDescription_Create_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* topology_name;
  std::size_t topology_name_size;
  const PJRT_NamedValue* create_options;
  std::size_t num_options;
  PJRT_TopologyDescription* topology;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Create_Args, 56);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, topology_name, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, topology_name_size, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, create_options, 32);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, num_options, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Create_Args, topology, 48);

struct PJRT_TopologyDescription_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Destroy_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Destroy_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Destroy_Args, topology, 16);

struct PJRT_TopologyDescription_PlatformVersion_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const char* platform_version;
  std::size_t platform_version_size;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_PlatformVersion_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformVersion_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformVersion_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformVersion_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformVersion_Args, platform_version, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size, 32);

struct PJRT_TopologyDescription_PlatformName_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  const char* platform_name;
  std::size_t platform_name_size;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_PlatformName_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformName_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformName_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformName_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformName_Args, platform_name, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_PlatformName_Args, platform_name_size, 32);

struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  PJRT_DeviceDescription* const* descriptions;
  std::size_t num_descriptions;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_GetDeviceDescriptions_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetDeviceDescriptions_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetDeviceDescriptions_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetDeviceDescriptions_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions, 32);

struct PJRT_TopologyDescription_Serialize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  PJRT_SerializedTopology* serialized_topology;
  void (*serialized_topology_deleter)(PJRT_SerializedTopology*);
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Serialize_Args, 56);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, serialized_bytes, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, serialized_bytes_size, 32);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, serialized_topology, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter, 48);

struct PJRT_TopologyDescription_Deserialize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* serialized_topology;
  std::size_t serialized_topology_size;
  PJRT_TopologyDescription* topology;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Deserialize_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Deserialize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Deserialize_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Deserialize_Args, serialized_topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Deserialize_Args, serialized_topology_size, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Deserialize_Args, topology, 32);

struct PJRT_TopologyDescription_Attributes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const PJRT_NamedValue* attributes;
  std::size_t num_attributes;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Attributes_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Attributes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Attributes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Attributes_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Attributes_Args, attributes, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Attributes_Args, num_attributes, 32);

struct PJRT_TopologyDescription_Fingerprint_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  std::uint64_t fingerprint;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_Fingerprint_Args, 32);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Fingerprint_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Fingerprint_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Fingerprint_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_Fingerprint_Args, fingerprint, 24);

struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  int memory_space_kind_id;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout* layout;
  const char* serialized_shape;
  std::size_t serialized_shape_size;
  void (*serialized_shape_deleter)(const char*);
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, 88);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, memory_space_kind_id,
              24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, num_dims, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, element_type, 48);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, layout, 56);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape, 64);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_size,
              72);
IPUJAX_ABI_AT(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args,
              serialized_shape_deleter, 80);

struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  const int* memory_space_kind_ids;
  std::size_t num_memory_space_kind_ids;
};
IPUJAX_ABI_SIZE(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, 40);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, memory_space_kind_ids, 24);
IPUJAX_ABI_AT(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, num_memory_space_kind_ids, 32);

struct PJRT_Compile_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  const PJRT_Program* program;
  const char* compile_options;
  std::size_t compile_options_size;
  PJRT_Client* client;
  PJRT_Executable* executable;
};
IPUJAX_ABI_SIZE(PJRT_Compile_Args, 64);
IPUJAX_ABI_AT(PJRT_Compile_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Compile_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Compile_Args, topology, 16);
IPUJAX_ABI_AT(PJRT_Compile_Args, program, 24);
IPUJAX_ABI_AT(PJRT_Compile_Args, compile_options, 32);
IPUJAX_ABI_AT(PJRT_Compile_Args, compile_options_size, 40);
IPUJAX_ABI_AT(PJRT_Compile_Args, client, 48);
IPUJAX_ABI_AT(PJRT_Compile_Args, executable, 56);
