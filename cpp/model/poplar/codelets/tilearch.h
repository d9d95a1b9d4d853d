#pragma once
#include "poplar/TileConstants.hpp"

// Tile registers that C++ codelets name. They have the IPU's numbers if these are public, else
// arbitrary distinct ones.
#define CSR_UPPER_MASK 0xff
#define CSR_W_WSR__INDEX 0
#define CSR_W_WSR__CTXTID_M1__SHIFT 0
#define CSR_W_WSR__CTXTID_M1__MASK 0x7
#define CSR_W_REPEAT_COUNT__INDEX 4
#define CSR_W_REPEAT_COUNT__VALUE__SHIFT 0
#define CSR_W_REPEAT_COUNT__VALUE__MASK 0xfff
#define CSR_W_FP_STS__INDEX 0x70
#define CSR_W_FP_CLR__INDEX 0x71
#define CSR_W_FP_CTL__INDEX 0x72
#define CSR_W_FP_NFMT__INDEX 0x73
#define CSR_W_FP_SCL__INDEX 0x74
#define CSR_W_FP_INFMT__INDEX 0x75
#define CSR_W_FP_ISCL__INDEX 0x76
#define CSR_W_TAS__INDEX 0x77
#define CSR_W_PRNG_0_0__INDEX 0x78
#define CSR_W_PRNG_0_1__INDEX 0x79
#define CSR_W_PRNG_1_0__INDEX 0x7a
#define CSR_W_PRNG_1_1__INDEX 0x7b
#define CSR_W_PRNG_SEED__INDEX 0x7c
#define CSR_S_SCOUNT_L__INDEX 0x60
#define CSR_S_SCOUNT_U__INDEX 0x61
#define ZAACC_BITMASK 0x1
#define TEXCH_SYNCZONE_LOCAL 1

// Results of __builtin_ipu_class.
#define TFPU_CLASS_UNC 0
#define TFPU_CLASS_SNAN 1
#define TFPU_CLASS_QNAN 2
#define TFPU_CLASS_NINF 3
#define TFPU_CLASS_NNORM 4
#define TFPU_CLASS_NDENORM 5
#define TFPU_CLASS_NZERO 6
#define TFPU_CLASS_PZERO 7
#define TFPU_CLASS_PDENORM 8
#define TFPU_CLASS_PNORM 9
#define TFPU_CLASS_PINF 10
