#pragma once
#include "engine/simd/Isa.hpp"

/// Width of vector registers, and how loops ask for them. Included by *.simd.cpp only.

// For loops whose elements do not depend on one another, even if out is an operand's memory.
#if defined(__clang__)
#define IPUJAX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IPUJAX_IVDEP _Pragma("GCC ivdep")
#endif

namespace ipujax::engine::simd::IPUJAX_ISA_NAMESPACE {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

}  // namespace ipujax::engine::simd::IPUJAX_ISA_NAMESPACE
