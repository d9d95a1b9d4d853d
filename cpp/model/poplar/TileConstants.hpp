#pragma once

// Constants of a tile, for IPU codelets. Source: the memory map of ipu-stack (memory.rs).
#define CTXT_WORKERS 6
#define TMEM_REGION0_BASE_ADDR 0x4c000
#define TMEM_REGION1_BASE_ADDR 0x80000
#define TMEM_ELEMSIZE 0x4000
// Input channels that a convolution unit loads per cycle. Source: PopLibs' codelets of
// convolutions.
#define CONV_UNIT_INPUT_LOAD_ELEMS_FLOAT 2
#define CONV_UNIT_INPUT_LOAD_ELEMS_HALF 4
#define CONV_UNIT_INPUT_LOAD_ELEMS_QUARTER 8
#define TMEM_BYTE_MAX_ADDRESS_WIDTH 21
#define NUM_STRIDE_BITS 10
