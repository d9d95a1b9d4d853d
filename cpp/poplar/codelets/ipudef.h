#pragma once
#include "poplar/HalfFloat.hpp"

// The short vectors by their names alone.
using poplar::half2;
using poplar::half4;
using poplar::float2;
using poplar::float4;
using poplar::int2;
using poplar::int4;
using poplar::uint2;
using poplar::uint4;
using poplar::short2;
using poplar::short4;
using poplar::ushort2;
using poplar::ushort4;
using poplar::char2;
using poplar::char4;
using poplar::uchar2;
using poplar::uchar4;
