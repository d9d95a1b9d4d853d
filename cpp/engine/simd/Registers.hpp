#pragma once
#include "engine/simd/Isa.hpp"

/// How wide vector registers are. Included by *.simd.cpp only.
namespace ipujax::engine::simd::IPUJAX_ISA_NAMESPACE {

#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

}  // namespace ipujax::engine::simd::IPUJAX_ISA_NAMESPACE
