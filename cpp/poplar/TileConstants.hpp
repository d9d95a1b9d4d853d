#pragma once

// Of one tile, as codelets for the IPU know it. Source: the memory map of ipu-stack (memory.rs).
#define CTXT_WORKERS 6
#define TMEM_REGION0_BASE_ADDR 0x4c000
#define TMEM_REGION1_BASE_ADDR 0x80000
#define TMEM_ELEMSIZE 0x4000
