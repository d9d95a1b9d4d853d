#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: the Layouts extension (type 4). A layout's text is as in XLA's programs:
// "{1,0}", dimensions from minor to major.

struct PJRT_Layouts_MemoryLayout {};
struct PJRT_Layouts_SerializedLayout {};

struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_MemoryLayout_Destroy_Args, 24);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Destroy_Args, layout, 16);

struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;
  std::size_t serialized_bytes_size;
  PJRT_Layouts_SerializedLayout* serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout*);
};
IPUJAX_ABI_SIZE(PJRT_Layouts_MemoryLayout_Serialize_Args, 56);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Serialize_Args, layout, 16);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes, 24);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_bytes_size, 32);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout, 40);
IPUJAX_ABI_AT(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout_deleter, 48);

struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Layouts_MemoryLayout* layout;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, 32);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, buffer, 16);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout, 24);

struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Buffer_Type type;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, 56);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, client, 16);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, type, 24);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, num_dims, 40);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout, 48);

struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology_description;
  PJRT_Buffer_Type type;
  const std::int64_t* dims;
  std::size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, 56);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, topology_description, 16);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, type, 24);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, dims, 32);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, num_dims, 40);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout, 48);

struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_outputs;
  PJRT_Layouts_MemoryLayout** layouts;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, 40);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, num_outputs, 24);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts, 32);

struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_parameters;
  PJRT_Layouts_MemoryLayout** layouts;
};
IPUJAX_ABI_SIZE(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, 40);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, num_parameters, 24);
IPUJAX_ABI_AT(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts, 32);

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args*);
  PJRT_Error* (*serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args*);
  PJRT_Error* (*client_default_layout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args*);
  PJRT_Error* (*buffer_layout)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args*);
  PJRT_Error* (*topology_default_layout)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args*);
  PJRT_Error* (*output_layouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args*);
  PJRT_Error* (*parameter_layouts)(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args*);
};
IPUJAX_ABI_SIZE(PJRT_Layouts_Extension, 80);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, destroy, 24);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, serialize, 32);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, client_default_layout, 40);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, buffer_layout, 48);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, topology_default_layout, 56);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, output_layouts, 64);
IPUJAX_ABI_AT(PJRT_Layouts_Extension, parameter_layouts, 72);
