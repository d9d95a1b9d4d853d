#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: PJRT_Plugin.

struct PJRT_Plugin_Initialize_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
};
IPUJAX_ABI_SIZE(PJRT_Plugin_Initialize_Args, 16);
IPUJAX_ABI_AT(PJRT_Plugin_Initialize_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Plugin_Initialize_Args, extension_start, 8);

struct PJRT_Plugin_Attributes_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_NamedValue* attributes;
  std::size_t num_attributes;
};
IPUJAX_ABI_SIZE(PJRT_Plugin_Attributes_Args, 32);
IPUJAX_ABI_AT(PJRT_Plugin_Attributes_Args, struct_size, 0);
IPUJAX_ABI_AT(PJRT_Plugin_Attributes_Args, extension_start, 8);
IPUJAX_ABI_AT(PJRT_Plugin_Attributes_Args, attributes, 16);
IPUJAX_ABI_AT(PJRT_Plugin_Attributes_Args, num_attributes, 24);
