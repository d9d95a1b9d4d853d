#pragma once
#include "poplar/HalfFloat.hpp"

// Short vectors as in the IPU's compiler: elementwise arithmetic, `v[i]`, `float2{a, b}`.
namespace ipujax_vectors {

#ifdef IPUJAX_NATIVE_HALF
typedef half half2 __attribute__((vector_size(4)));
typedef half half4 __attribute__((vector_size(8)));
typedef half half8 __attribute__((vector_size(16)));
#else
using half2 = poplar::HalfVector<2>;
using half4 = poplar::HalfVector<4>;
using half8 = poplar::HalfVector<8>;
#endif
typedef float float2 __attribute__((vector_size(8)));
typedef float float4 __attribute__((vector_size(16)));
typedef int int2 __attribute__((vector_size(8)));
typedef int int4 __attribute__((vector_size(16)));
typedef unsigned uint2 __attribute__((vector_size(8)));
typedef unsigned uint4 __attribute__((vector_size(16)));
// `long` has 32 bits on an IPU.
typedef int long2 __attribute__((vector_size(8)));
typedef int long4 __attribute__((vector_size(16)));
typedef unsigned ulong2 __attribute__((vector_size(8)));
typedef unsigned ulong4 __attribute__((vector_size(16)));
typedef long long longlong2 __attribute__((vector_size(16)));
typedef unsigned long long ulonglong2 __attribute__((vector_size(16)));
typedef short short2 __attribute__((vector_size(4)));
typedef short short4 __attribute__((vector_size(8)));
typedef unsigned short ushort2 __attribute__((vector_size(4)));
typedef unsigned short ushort4 __attribute__((vector_size(8)));
typedef signed char char2 __attribute__((vector_size(2)));
typedef signed char char4 __attribute__((vector_size(4)));
typedef signed char char8 __attribute__((vector_size(8)));
typedef unsigned char uchar2 __attribute__((vector_size(2)));
typedef unsigned char uchar4 __attribute__((vector_size(4)));
typedef unsigned char uchar8 __attribute__((vector_size(8)));

}  // namespace ipujax_vectors

#define IPUJAX_SHORT_VECTORS(X)                                                                  \
  X(half2) X(half4) X(half8) X(float2) X(float4) X(int2) X(int4) X(uint2) X(uint4) X(long2)      \
  X(long4) X(ulong2) X(ulong4) X(longlong2) X(ulonglong2) X(short2) X(short4) X(ushort2)         \
  X(ushort4) X(char2) X(char4) X(char8) X(uchar2) X(uchar4) X(uchar8)

// Sources that define vectors of these names for hosts (IPUJAX_OWN_VECTORS) keep theirs.
#ifndef IPUJAX_OWN_VECTORS
#define IPUJAX_IN_POPLAR(name) using ipujax_vectors::name;
namespace poplar {
IPUJAX_SHORT_VECTORS(IPUJAX_IN_POPLAR)
}
#undef IPUJAX_IN_POPLAR
#endif
