#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: the MemoryDescriptions extension (type 6). It names the memories of the devices
// of a topology, which has no PJRT_Memory. The device description owns what it returns.

struct PJRT_MemoryDescription {};

struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;
  std::size_t num_memory_descriptions;
  std::size_t default_memory_index;
};
IPUJAX_ABI_SIZE(PJRT_DeviceDescription_MemoryDescriptions_Args, 48);
IPUJAX_ABI_AT(PJRT_DeviceDescription_MemoryDescriptions_Args, device_description, 16);
IPUJAX_ABI_AT(PJRT_DeviceDescription_MemoryDescriptions_Args, memory_descriptions, 24);
IPUJAX_ABI_AT(PJRT_DeviceDescription_MemoryDescriptions_Args, num_memory_descriptions, 32);
IPUJAX_ABI_AT(PJRT_DeviceDescription_MemoryDescriptions_Args, default_memory_index, 40);

struct PJRT_MemoryDescription_Kind_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;
  std::size_t kind_size;
  int kind_id;
};
IPUJAX_ABI_SIZE(PJRT_MemoryDescription_Kind_Args, 48);
IPUJAX_ABI_AT(PJRT_MemoryDescription_Kind_Args, memory_description, 16);
IPUJAX_ABI_AT(PJRT_MemoryDescription_Kind_Args, kind, 24);
IPUJAX_ABI_AT(PJRT_MemoryDescription_Kind_Args, kind_size, 32);
IPUJAX_ABI_AT(PJRT_MemoryDescription_Kind_Args, kind_id, 40);

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*memory_descriptions)(PJRT_DeviceDescription_MemoryDescriptions_Args*);
  PJRT_Error* (*kind)(PJRT_MemoryDescription_Kind_Args*);
};
IPUJAX_ABI_SIZE(PJRT_MemoryDescriptions_Extension, 40);
IPUJAX_ABI_AT(PJRT_MemoryDescriptions_Extension, memory_descriptions, 24);
IPUJAX_ABI_AT(PJRT_MemoryDescriptions_Extension, kind, 32);
