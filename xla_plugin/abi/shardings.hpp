#pragma once
#include "abi/base.hpp"

// PJRT C API 0.112: the Shardings extension (type 19). The arrays are owned by the executable and
// hold one serialised xla.OpSharding each; null means "no sharding is known".

struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_parameters;
  const char* const* shardings;
  const std::size_t* sharding_sizes;
};
IPUJAX_ABI_SIZE(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, 48);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, num_parameters, 24);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, shardings, 32);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, sharding_sizes, 40);

struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  std::size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  std::size_t num_outputs;
  const char* const* shardings;
  const std::size_t* sharding_sizes;
};
IPUJAX_ABI_SIZE(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, 48);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, executable, 16);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, num_outputs, 24);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, shardings, 32);
IPUJAX_ABI_AT(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, sharding_sizes, 40);

struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*parameter_shardings)(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args*);
  PJRT_Error* (*output_shardings)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args*);
};
IPUJAX_ABI_SIZE(PJRT_Shardings_Extension, 40);
IPUJAX_ABI_AT(PJRT_Shardings_Extension, parameter_shardings, 24);
IPUJAX_ABI_AT(PJRT_Shardings_Extension, output_shardings, 32);
